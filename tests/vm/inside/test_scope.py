"""Under systemd: what sbx asks of the user's manager, and what it leaves alone. Runs as root in a guest; sbx mostly
as uid 1000."""

import json
import os
import pathlib
import subprocess
import time

import sbxtest
from sbxtest import PROBE, SBX, SbxTest

RUNTIME = "/run/user/1000"
GROUPS = pathlib.Path("/sys/fs/cgroup/user.slice/user-1000.slice")
AS_TESTER = ("setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "env", "HOME=/home/tester", f"XDG_RUNTIME_DIR={RUNTIME}",
             "PATH=/usr/bin:/usr/sbin")


def scopes():
    return sorted(path.name for path in GROUPS.rglob("*.scope") if "sbx" in path.name)


class Scope(SbxTest):
    def setUp(self):
        super().setUp()
        for _ in range(600):  # the manager starts by itself; its socket is the sign
            if os.path.exists(f"{RUNTIME}/bus"):
                return
            time.sleep(0.1)
        self.fail("the user's manager does not run")

    def record(self, *command):
        done = subprocess.run(command, cwd="/tmp", stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=120)
        try:
            return done.returncode, json.loads(done.stdout)
        except ValueError:
            self.fail(f"no record: {command}\n{done}")

    def by_the_manager(self, *arguments, properties=()):
        """sbx in a service of the user's manager: below user@1000.service."""
        options = [word for name in properties for word in ("-p", name)]
        return self.record(*AS_TESTER, "systemd-run", "--user", "--wait", "--pipe", "--quiet", *options, SBX, "run", "--json", *arguments)

    def test_user_gets_a_scope_and_real_budgets(self):
        status, record = self.by_the_manager("--memory", "64M", PROBE, "hold-anonymous", "256")
        self.assertEqual(record["enforced"]["memory"], "cgroup-v2", record["degraded"])
        self.assertEqual((status, record["outcome"]["reason"]), (137, "memory"), record)
        self.assertNotIn("limits.memory", [entry["what"] for entry in record["degraded"]])
        self.assertEqual(scopes(), [])

    def test_all_of_it_is_by_cgroup(self):
        status, record = self.by_the_manager("--require", "memory.cgroup", "--require", "processes.cgroup", "--require", "cpu.cgroup", "--", "true")
        self.assertEqual((status, record["outcome"]["status"]), (0, "exited"), record)

    def test_system_service_of_that_user_polls(self):
        """A job of the system's manager is not a login: sbx stays in its group, and reports the consequence."""
        status, record = self.record("systemd-run", "--uid=1000", "--wait", "--pipe", "--quiet", SBX, "run", "--json", "--", "true")
        self.assertEqual((status, record["enforced"]["memory"]), (0, "polled"), record)
        self.assertIn("limits.memory", [entry["what"] for entry in record["degraded"]])

    def test_delegated_service_is_used(self):
        status, record = self.record("systemd-run", "--uid=1000", "-p", "Delegate=yes", "--wait", "--pipe", "--quiet", SBX, "run", "--json",
                                     "--memory", "64M", PROBE, "hold-anonymous", "256")
        self.assertEqual((status, record["enforced"]["memory"], record["outcome"]["reason"]), (137, "cgroup-v2", "memory"), record)

    def test_budget_of_the_service_is_kept_to(self):
        """The smaller of both: 64 MiB from the manager, 1 GiB from the policy."""
        status, record = self.by_the_manager("--memory", "1G", PROBE, "hold-anonymous", "512", properties=["MemoryMax=64M", "Delegate=yes"])
        self.assertEqual((status, record["outcome"]["reason"]), (137, "memory"), record)
        self.assertLessEqual(record["limits"]["memory_bytes"], 64 << 20)

    def test_nothing_is_left_of_50_runs(self):
        for _ in range(50):
            self.by_the_manager("--", "true")
        self.assertEqual(scopes(), [])


if __name__ == "__main__":
    sbxtest.main()

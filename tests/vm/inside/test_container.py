"""In a container like those of Docker and Kubernetes: sbx stays within its grants. Runs as root in a guest with
cgroup v2.

crun, the runtime of container engines, creates the container. Its /proc is masked, as by default, in one test, and not
(systempaths=unconfined) in the others."""

import json
import shutil
import subprocess

import sbxtest
from sbxtest import PROBE, SBX, SbxTest

MIB = 1 << 20
CALLERS = (0, 1000)  # users
GRANTED = {"memory": {"limit": 64 * MIB}, "pids": {"limit": 40}, "cpu": {"quota": 50_000, "period": 100_000}}
# What Docker leaves to root.
CAPABILITIES = ["CAP_" + name for name in (
    "CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP", "NET_BIND_SERVICE", "SYS_CHROOT",
    "KILL", "AUDIT_WRITE")]


class Container(SbxTest):
    def setUp(self):
        super().setUp()
        if not shutil.which("crun"):
            self.skipTest("needs crun")
        root = self.tmp / "root"
        root.mkdir()
        subprocess.run(["mount", "--bind", "/", root], check=True)
        self.addCleanup(subprocess.run, ["umount", root], check=True)
        self.bundle = self.tmp

    def configure(self, uid, command, kept):
        settings = self.bundle / "config.json"
        settings.unlink(missing_ok=True)
        subprocess.run(["crun", "spec"], cwd=self.bundle, check=True)
        config = json.loads(settings.read_text())
        config["root"] = {"path": "root", "readonly": True}
        config["process"].update(terminal=False, user={"uid": uid, "gid": uid}, args=command, cwd="/", env=["PATH=/usr/bin", "HOME=/nonexistent"],
                                 capabilities={kind: CAPABILITIES if uid == 0 else [] for kind in ("bounding", "effective", "permitted")})
        config["linux"].update(resources=GRANTED, cgroupsPath="/container")
        for name in {"maskedPaths", "readonlyPaths", "seccomp"} - set(kept):
            config["linux"].pop(name, None)
        settings.write_text(json.dumps(config))

    def inside(self, uid, *arguments, kept=()):
        self.configure(uid, [SBX, "run", "--json", *map(str, arguments)], kept)
        done = subprocess.run(["crun", "--cgroup-manager=cgroupfs", "run", "container"], cwd=self.bundle, stdin=subprocess.DEVNULL, capture_output=True,
                              check=False, timeout=120)
        try:
            record = json.loads(done.stdout)
        except ValueError:
            self.fail(f"no record: {arguments}\n{done}")
        return done.returncode, record

    def test_smaller_of_both_holds(self):
        for uid in CALLERS:
            status, record = self.inside(uid, "--memory", "1G", "--processes", "200", "--cpus", "1", "--", "true")
            self.assertEqual(status, 0, record)
            limits = record["limits"]
            self.assertEqual((limits["memory_bytes"], limits["processes"], limits["cpus"]), (64 * MIB, 40, 0.5), record)
            said = [entry["instead"] for entry in record["degraded"] if "limited to" in entry["why"]]
            self.assertEqual(said, ["64 MiB instead of 1 GiB", "40 instead of 200", "0.50 CPUs instead of 1.00"])

    def test_a_masked_proc_is_shown_behind_landlock(self):
        look = "cat /proc/version; cat /proc/self/environ; ls /proc; cat /proc/1/cmdline"
        for uid in CALLERS:
            for kept, weaker, refused in ((("maskedPaths", "readonlyPaths"), {"proc"}, 3), ((), set(), 0)):
                status, record = self.inside(uid, "--memory", "32M", "--", "sh", "-c", look, kept=kept)
                self.assertEqual({each["what"] for each in record["degraded"]} & {"proc"}, weaker, record)
                self.assertIn("Linux version", record["stdout"]["text"])
                self.assertEqual(record["stderr"]["text"].count("Permission denied") if weaker else 0, refused, record)
                status, record = self.inside(uid, "--memory", "32M", "--", PROBE, "hold-after-rest", 48, 4, kept=kept)
                self.assertEqual((status, record["outcome"]["reason"]), (137, "memory"), record)

    def test_own_budget_is_the_smaller(self):
        for uid in CALLERS:
            status, record = self.inside(uid, "--memory", "32M", "--", PROBE, "hold-after-rest", 48, 4)
            self.assertEqual((status, record["outcome"]["reason"]), (137, "memory"), record)
            self.assertEqual([entry["limit"] for entry in record["limits_met"]], ["memory"], record)

    def test_kill_by_the_container_is_named(self):
        for uid in CALLERS:
            status, record = self.inside(uid, "--memory", "1G", "--", PROBE, "hold-anonymous", 400)
            self.assertEqual((status, record["outcome"]["reason"]), (137, "memory"), record)

    def test_within_all_of_it_a_program_ends_well(self):
        for uid in CALLERS:
            status, record = self.inside(uid, "--memory", "1G", "--", PROBE, "hold-anonymous", 16)
            self.assertEqual((status, record["outcome"]["status"], record["limits_met"]), (0, "exited", []), record)


if __name__ == "__main__":
    sbxtest.main()

"""Skips one protection of the set-up at a time: an escape test must notice. Makes each stage fail: sbx must report
it.

The stages come from the table in src/spawn/handshake.hpp by way of `sbx --list-stages` (the binary of tests/faults only).
"""

import ctypes
import json
import os
import pty
import pathlib
import subprocess
import sys

import sbxtest
from sbxtest import PROBE, WITH_FAULTS, SbxTest

HERE = pathlib.Path(__file__).resolve().parent

# The cheapest test that notices each missing protection.
NOTICED_BY = {
    "group": ("proc", "test_command_is_in_a_control_group_of_its_own"),
    "affinity": ("proc", "test_affinity_is_the_budget_and_cannot_be_widened"),
    "identity": ("callers", "test_nothing_runs_as_the_hosts_root"),
    "wipe": ("host", "test_init_shows_nothing_of_the_caller"),
    "non_dumpable": ("host", "test_init_is_not_dumpable"),
    "parent_death": ("endings", "test_killed_supervisor_takes_a_stopped_init_along"),
    "hostname": ("host", "test_host_name_is_not_shown"),
    "own_network": ("host", "test_gateway_has_a_network_of_its_own"),
    "bind_attributes": ("proc", "test_every_mount_is_nosuid"),
    "nested_namespaces": ("proc", "test_nested_user_namespaces_are_off_by_setting_too"),
    "veil": ("host", "test_denied_names_of_a_granted_directory_are_absent"),
    "mask": ("proc", "test_dangerous_files_are_masked"),
    "proc_read_only": ("proc", "test_kernel_settings_cannot_be_written"),
    "root_read_only": ("host", "test_system_directories_are_read_only"),
    "old_root": ("host", "test_old_root_is_not_mounted"),
    "session": ("host", "test_command_has_a_session_of_its_own"),
    "close_fds": ("host", "test_descriptors_of_the_caller_are_not_inherited"),
    "bounding_set": ("proc", "test_no_privileges_are_left"),
    "securebits": ("proc", "test_uid_zero_means_nothing"),
    "capabilities": ("proc", "test_capabilities_are_dropped_before_the_command_starts"),
    "no_new_privs": ("proc", "test_no_privileges_are_left"),
    "limits": ("proc", "test_limits_of_each_process_hold"),
    "landlock": ("host", "test_abstract_socket_is_unreachable_in_the_hosts_network"),
    "seccomp": ("calls", "test_denied_call_is_refused_and_named"),
    "init_capabilities": ("proc", "test_init_holds_no_effective_capability"),
}
# A program that uses everything that construction stages make, and reports it.
USES_EVERYTHING = """
import os, socket, sys
granted, work = sys.argv[1:3]
assert open(granted).read() == 'x' and open('in-workspace').read() == 'y' and os.getcwd() == work
open('written', 'w').write('z')
for scratch in ('/tmp/t', '/dev/shm/s'):  # the caller's own, when what makes the private ones is left out
    open(scratch, 'w').write('z')
    os.remove(scratch)
open('/dev/null', 'w').write('z')
os.close(os.openpty()[0])
assert (os.getuid(), os.getgid()) == (1000, 1000) and 'sandbox' in open('/etc/passwd').read()
assert os.readlink('/bin') and open('/proc/self/status').read()
assert not os.path.exists('/.scratch')
server = socket.create_server(('127.0.0.1', 0))
socket.create_connection(server.getsockname()).close()
if 'gateway' in sys.argv:
    socket.create_connection(('198.19.255.1', 53)).close()
print('all of it works')
"""
# Skipping these has no visible effect: binds are also made private one by one (bind_attributes), and the old root is
# left altogether.
SECOND_TO_ANOTHER = {"private_mounts"}
# Only runs with network.mode = "allow-list" have these.
GATEWAY = {"gateway", "own_network", "links"}
# Only calls of a session have these: tests/session/test_options.py leaves them out and makes them fail.
SESSION = {"held", "call_directory"}
# Only where /proc hides processes: tests/sandbox/test_hidepid.py leaves it out and makes it fail.
HIDDEN = {"processes"}
# The child opens an ordinary user's grants itself, so the parent's stage has nothing to do.
ROOT_ONLY_CONSTRUCTION = {"grants"}

# Visible only for one kind of caller: an ordinary user's runs have no identity stage; root's PID 1 becomes
# non-dumpable by its change of uid already, prctl(2).
ROOT_ONLY = {"identity"}
# Only where a cgroup can be created.
NEEDS_GROUP = {"group"}
USER_ONLY_PROTECTIONS = {"non_dumpable"}
# Before its scopes Landlock only repeats protections of files: the mounts always refuse first.
LANDLOCK_SCOPES = 6


def landlock_abi():
    """landlock_create_ruleset(2) with LANDLOCK_CREATE_RULESET_VERSION; below 1 there is none."""
    return ctypes.CDLL(None, use_errno=True).syscall(sbxtest.SYSCALLS["landlock_create_ruleset"], None, 0, 1)


def stages():
    """(name, kind, what is true afterwards) of every stage."""
    done = subprocess.run([WITH_FAULTS, "--list-stages"], capture_output=True, timeout=60, check=False)
    return [tuple(line.split("\t")) for line in done.stdout.decode().splitlines()]


class Mutation(SbxTest):
    def setUp(self):
        super().setUp()
        self.stages = stages()
        self.assertTrue(self.stages, "the binary with hooks lists no stages")

    def here(self, names):
        """The stages that this caller's runs have."""
        without = SESSION | HIDDEN if sbxtest.IS_ROOT else SESSION | HIDDEN | ROOT_ONLY
        if self.sbx("--", "true").record["enforced"]["memory"] == "polled":
            without = without | NEEDS_GROUP
        return [name for name in names if name not in without]

    def visible(self, protections):
        unseen = USER_ONLY_PROTECTIONS if sbxtest.IS_ROOT else set()
        if landlock_abi() < LANDLOCK_SCOPES:
            unseen = unseen | {"landlock"}
        return [name for name in self.here(protections) if name not in unseen]

    def test_every_protection_has_a_test_that_notices(self):
        protections = {name for name, kind, _ in self.stages if kind == "protection"}
        self.assertEqual(protections, set(NOTICED_BY))
        self.assertTrue(all(meaning for _, _, meaning in self.stages))
        for topic, method in NOTICED_BY.values():
            self.assertIn(f"def {method}(", (HERE / f"test_{topic}.py").read_text())

    def verdict_of(self, topic, *methods, left_out=None):
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent / "harness")}
        if left_out is not None:
            environment |= {"SBX_TEST_SKIP": left_out, "SBX_GONE_WITHIN": "5"}
        done = sbxtest.start([sys.executable, HERE / f"test_{topic}.py", *methods], env=environment, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text = done.communicate(timeout=120)[0].decode(errors="replace")
        sbxtest.kill_orphans()
        self.assertRegex(text, rf"\nRan {len(methods)} tests? ")  # a script that can't begin notices nothing
        return done.returncode, text

    def test_tests_pass_with_every_protection(self):
        """The twin: the test that notices a missing protection passes when none is missing."""
        by_topic = {}
        for topic, method in sorted({NOTICED_BY[name] for name in self.here(NOTICED_BY)}):
            by_topic.setdefault(topic, []).append(method)
        for topic, methods in by_topic.items():
            status, text = self.verdict_of(topic, *methods)
            self.assertEqual(status, 0, text)

    def test_left_out_protection_is_noticed(self):
        left_out = []
        for name in self.visible(NOTICED_BY):
            with self.subTest(protection=name):
                status, text = self.verdict_of(*NOTICED_BY[name], left_out=name)
                self.assertEqual(status, 1, f"nothing noticed that '{name}' was left out\n{text}")
                left_out.append(name)
        protections = [name for name, kind, _ in self.stages if kind == "protection"]
        self.assertEqual(sorted(left_out), sorted(self.visible(protections)))

    def used(self, left_out=None):
        granted = self.write("granted", "x", mode=0o600, directory=self.tmp)
        self.write("in-workspace", "y")
        self.write(".env", "hidden")
        options = ["--workspace", f"{self.work}:overlay", "--read", granted]
        streams = self.terminal(options) if left_out == "terminal" else {}
        if left_out in GATEWAY:
            options += ["--set", 'network.mode="allow-list"']
        process = self.start_sbx("--json", *options, "--lang", "python", "-c", USES_EVERYTHING, granted, self.work,
                                 *(["gateway"] if left_out in GATEWAY else []),
                                 json_record=False, env={"SBX_TEST_SKIP": left_out}, **streams)
        return self.finish(process, json_record=False)

    def terminal(self, options):
        """The program gets a terminal only if the caller has one."""
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        self.addCleanup(os.close, slave)
        options.append("-i")
        return {"stdin": slave}

    def all_works(self, ended):
        try:
            record = json.loads(ended.out)
        except ValueError:  # the program wrote beside the record
            return False
        return ended.status == 0 and record["stdout"]["text"] == "all of it works\n"

    def test_everything_that_is_constructed_is_used(self):
        self.assertTrue(self.all_works(self.used()))

    def test_left_out_construction_is_noticed(self):
        constructions = [name for name, kind, _ in self.stages if kind == "construction"]
        self.assertLessEqual(SECOND_TO_ANOTHER | SESSION | HIDDEN | ROOT_ONLY_CONSTRUCTION, set(constructions))
        for name in constructions:
            if name in SECOND_TO_ANOTHER | SESSION | HIDDEN or (name in ROOT_ONLY_CONSTRUCTION and not sbxtest.IS_ROOT):
                continue
            with self.subTest(stage=name):
                ended = self.used(left_out=name)
                self.assertFalse(self.all_works(ended), f"nothing noticed that '{name}' was left out\n{ended}")

    def test_failing_stage_is_named(self):
        granted = self.write("granted", "x", directory=self.tmp)
        self.write(".env", "hidden")
        before = sbxtest.mounts()
        for name in self.here([name for name, _, _ in self.stages]):
            with self.subTest(stage=name):
                options = ["--workspace", f"{self.work}:overlay", "--read", granted]
                streams = self.terminal(options) if name == "terminal" else {}
                if name in GATEWAY:
                    options += ["--set", 'network.mode="allow-list"']
                marker = self.work / "ran"
                ended = self.finish(self.start_sbx(*options, PROBE, "write", marker, env={"SBX_TEST_FAIL": f"{name}:EIO"}, **streams))
                if name == "exec":  # the kernel refuses to run this file: not an error of the set-up
                    self.assertEqual((ended.status, ended.verdict), (126, ("setup-failed", "not-executable")), ended)
                else:
                    self.could_not(ended, f"'{name}'")
                    self.assertEqual(ended.outcome["reason"], "setup", ended)
                self.assertFalse(marker.exists())
        self.assertEqual(sbxtest.mounts(), before)

    def test_no_stage_fails_unasked(self):
        self.exited(self.sbx("--workspace", f"{self.work}:overlay", PROBE, "exit", 0))


if __name__ == "__main__":
    sbxtest.main()

"""Invariant 4: /proc, mounts, privileges and the root of the sandbox."""

import ctypes
import math
import os
import pathlib
import shutil
import subprocess

import sbxtest
from sbxtest import PROBE, SbxTest

CLONE_NEWUSER = 0x10000000

# Files of /proc that reveal facts about the host to an ordinary user, or change it.
DANGEROUS = ("keys", "key-users", "timer_list", "kallsyms", "cmdline", "kcore", "kmsg", "sysrq-trigger", "sched_debug")
DANGEROUS_DIRECTORIES = ("acpi", "bus", "fs", "irq", "scsi")


def process_of_sbx(log):
    """The process that strace started: the first one in its log."""
    return int(log.read_text().split(maxsplit=1)[0])


class Proc(SbxTest):
    def test_dangerous_files_are_masked(self):
        for name in DANGEROUS:
            asked = self.inside("read", f"/proc/{name}")
            self.assertIn(asked.errno, ("ENODATA", "ENOENT", "EACCES", "EPERM"), f"{name}: {asked}")

    def test_harmless_files_are_readable(self):
        for name in ("meminfo", "cpuinfo", "stat", "uptime", "loadavg", "self/status", "self/maps", "sys/kernel/osrelease"):
            self.works(self.inside("read", f"/proc/{name}"))

    def test_dangerous_files_are_readable_outside(self):
        self.works(self.outside("read", "/proc/cmdline"))
        self.works(self.outside("read", "/proc/timer_list") if sbxtest.IS_ROOT else self.outside("read", "/proc/key-users"))

    def test_dangerous_directories_are_empty(self):
        for name in DANGEROUS_DIRECTORIES:
            asked = self.inside("list", f"/proc/{name}")
            entries = [line for line in asked.lines if line not in (".", "..") and not line.startswith("refused")]
            self.assertEqual(entries, [], name)

    def test_dangerous_directories_have_entries_outside(self):
        self.assertGreater(len(self.outside("list", "/proc/irq").lines), 2)

    def test_masks_are_what_they_seem(self):
        code = """
import os
for line in open('/proc/self/mountinfo'):
    fields = line.split()
    if fields[4] == '/proc': print('proc', fields[fields.index('-') + 1])
    if fields[4].startswith('/proc/'):
        facts = os.stat(fields[4])
        print(fields[4], os.major(facts.st_rdev), os.minor(facts.st_rdev), os.path.isdir(fields[4]))
"""
        ended = self.python(code)
        lines = ended.text.splitlines()
        self.assertIn("proc proc", lines)
        masks = [line.split() for line in lines if line.startswith("/proc/")]
        files = [fields for fields in masks if fields[3] == "False"]
        self.assertTrue(files, ended)
        for fields in files:
            self.assertEqual(fields[1:3], ["1", "3"], ended)

    def test_kernel_settings_cannot_be_written(self):
        for name in ("kernel/hostname", "kernel/core_pattern", "user/max_user_namespaces", "net/ipv4/ip_forward", "vm/drop_caches"):
            self.refuses(self.inside("write", f"/proc/sys/{name}"))
        # If the kernel has the file, the null device is mounted over it, which accepts writes and does nothing.
        ended = self.python("import os\nprint(not os.path.exists(p := '/proc/sysrq-trigger') or os.stat(p).st_rdev == os.makedev(1, 3))")
        self.assertEqual(ended.text, "True\n", ended)
        ended = self.python("import os; print(os.statvfs('/proc/sys').f_flag & os.ST_RDONLY)")
        self.assertEqual(ended.text, "1\n", "the mount is read-only, whoever asks")

    def test_own_settings_in_proc_can_be_written(self):
        self.works(self.inside("read", "/proc/self/oom_score_adj"))
        ended = self.python("open('/proc/self/comm', 'w').write('other'); print(open('/proc/self/comm').read())")
        self.assertEqual(ended.text.strip(), "other")
        ended = self.python("import os; print(os.statvfs('/tmp').f_flag & os.ST_RDONLY)")
        self.assertEqual(ended.text, "0\n")

    def test_nested_user_namespaces_are_off_by_setting_too(self):
        options = ["--set", 'syscalls.allow=["unshare"]']
        self.refuses(self.inside("unshare", CLONE_NEWUSER, options=options), "ENOSPC")

    def test_user_namespaces_work_outside(self):
        self.works(self.outside("unshare", CLONE_NEWUSER))

    def test_proc_shows_only_the_sandbox(self):
        ended = self.python("import os; print(sorted(int(n) for n in os.listdir('/proc') if n.isdigit()) == [os.getpid()])")
        self.assertEqual(ended.text.strip(), "True", ended)


class Mounts(SbxTest):
    def mountinfo(self, *options):
        ended = self.sbx(*options, "--", "cat", "/proc/self/mountinfo")
        self.exited(ended)
        for line in ended.text.splitlines():
            fields = line.split()
            yield fields[4], fields[5].split(",")

    def test_every_mount_is_nosuid(self):
        directory = self.tmp / "grant"
        directory.mkdir()
        for path, flags in self.mountinfo("--read", directory, "--write", self.home, "--workspace", f"{self.work}:overlay"):
            self.assertIn("nosuid", flags, path)

    def test_every_mount_but_devices_is_nodev(self):
        devices = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "pts", "ptmx")}
        code = "import os\nfor l in open('/proc/self/mountinfo'):\n p=l.split()\n" \
               " m=os.stat(p[4]).st_mode\n print(p[4], p[5], m & 0o170000 == 0o020000)"
        ended = self.python(code)
        for line in ended.text.splitlines():
            path, flags, is_device = line.split()
            if path not in devices and is_device == "False":
                self.assertIn("nodev", flags.split(","), path)

    def test_device_nodes_work(self):
        ended = self.python("print(len(open('/dev/zero','rb').read(10)), len(open('/dev/urandom','rb').read(10)), open('/dev/null').read() == '')")
        self.assertEqual(ended.text.strip(), "10 10 True")

    def test_setuid_program_gains_nothing(self):
        asked = self.inside("setuid", "/usr/bin/su")
        self.assertFalse(asked.worked, asked)

    def test_setuid_program_gains_outside(self):
        if sbxtest.IS_ROOT:
            self.skipTest("root has the ids already: seen as an ordinary user")
        self.works(self.outside("setuid", "/usr/bin/su"))

    def test_no_privileges_are_left(self):
        ended = self.python("print(open('/proc/self/status').read())")
        facts = dict(line.split(":\t") for line in ended.text.splitlines() if ":\t" in line)
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            self.assertEqual(int(facts[name], 16), 0, name)
        self.assertEqual(facts["NoNewPrivs"], "1")
        self.assertEqual(facts["Uid"].split(), ["1000"] * 4)
        self.assertEqual(facts["Gid"].split(), ["1000"] * 4)
        self.assertEqual(facts["Seccomp"], "2")

    def test_uid_zero_means_nothing(self):
        """SECBIT_NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, each with its lock."""
        ended = self.python("import ctypes; print(ctypes.CDLL(None).prctl(27, 0, 0, 0, 0))")
        self.assertEqual(int(ended.text) & 0b11001111, 0b11001111, ended)

    def test_uid_zero_means_something_outside(self):
        self.assertEqual(ctypes.CDLL(None).prctl(27, 0, 0, 0, 0), 0)

    def test_capabilities_are_dropped_before_the_command_starts(self):
        """Not visible afterwards: an execve by a uid other than 0 drops them anyway."""
        if shutil.which("strace") is None:
            self.skipTest("strace is not installed")
        log = self.tmp / "log"
        process = sbxtest.start(["strace", "-f", "-qq", "-e", "trace=capset,execve", "-o", log, *self.command(PROBE, "exit", 0)],
                                env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.exited(self.finish(process))
        by_process = {}
        for line in log.read_text().splitlines():
            pid, _, call = line.partition(" ")
            by_process.setdefault(int(pid), []).append(call.strip())
        del by_process[process_of_sbx(log)]
        payload = [calls for calls in by_process.values() if any(call.startswith("execve") for call in calls)]
        self.assertEqual(len(payload), 1, by_process)
        before = payload[0][:next(index for index, call in enumerate(payload[0]) if call.startswith("execve"))]
        dropped = [call for call in before if call.startswith("capset") and call.endswith("= 0")]
        self.assertTrue(dropped, by_process)
        if sbxtest.IS_ROOT:  # otherwise strace may be unable to read the arguments: the process is not yet dumpable
            self.assertIn("effective=0, permitted=0, inheritable=0", dropped[-1])

    def test_capabilities_are_there_before_that(self):
        """The twin: a process of a new user namespace starts with every capability."""
        done = sbxtest.start(["unshare", "--user", "--map-root-user", "cat", "/proc/self/status"], stdout=subprocess.PIPE)
        facts = done.communicate(timeout=120)[0].decode()
        self.assertNotIn("CapEff:\t0000000000000000", facts)

    def test_init_holds_no_effective_capability(self):
        process = self.start_sbx(PROBE, "polite", 0, json_record=False)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        facts = pathlib.Path(f"/proc/{sbxtest.init_of(process)}/status").read_text()
        process.terminate()
        self.finish(process, json_record=False)
        self.assertIn("CapEff:\t0000000000000000", facts)
        self.assertIn("CapInh:\t0000000000000000", facts)

    def test_limits_of_each_process_hold(self):
        code = "import resource as r\nfor n in ('NOFILE','FSIZE','NPROC','CORE','CPU'): print(n, r.getrlimit(getattr(r, 'RLIMIT_' + n))[1])"
        options = ["--set", "limits.open_files=200", "--set", 'limits.file_size="3M"', "--processes", "33", "--cpu-time", "7s"]
        ended = self.python(code, options=options)
        found = {line.split()[0]: int(line.split()[1]) for line in ended.text.splitlines()}
        self.assertEqual((found["NOFILE"], found["FSIZE"], found["CORE"]), (200, 3 << 20, 1), ended)
        if ended.record["enforced"]["processes"] == "rlimit":
            self.assertIn(found["NPROC"], (33, 34, 35), "PID 1 counts too")
        else:
            self.assertLess(found["NPROC"], 100, "above the group's, whose counter is the evidence")
        self.assertIn(found["CPU"], (8, 9), "one second more than the budget, so that sbx speaks first")

    def test_limits_of_each_process_follow_the_policy(self):
        code = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[1])"
        self.assertEqual(self.python(code, options=["--set", "limits.open_files=77"]).text, "77\n")

    def test_privileges_are_there_in_a_namespace_outside(self):
        asked = self.outside("mount", "/tmp", wrapper=["unshare", "--user", "--map-root-user", "--mount"])
        self.works(asked)

    def test_privileged_calls_fail_even_when_the_filter_lets_them_through(self):
        options = ["--set", 'syscalls.allow=["mount", "umount2", "chroot", "mknod", "mknodat", "setns", "pivot_root"]']
        for question in (("mount", "/tmp"), ("unmount", "/proc"), ("make-device", "/tmp/node"), ("leave-chroot",)):
            asked = self.inside(*question, options=options)
            self.assertIn(asked.errno, ("EPERM", "EACCES"), f"{question}: {asked}")

    def test_there_is_nothing_above_the_root(self):
        for mode in ("empty", "overlay", "read-write"):
            self.refuses(self.inside("above-root", options=["--workspace", f"{self.work}:{mode}"]), "EXDEV")
            ended = self.sbx("--workspace", f"{self.work}:{mode}", "--", "/bin/pwd")
            self.assertTrue(ended.text.startswith("/"), ended)

    def test_there_is_something_above_a_chroot_outside(self):
        self.works(self.outside("leave-chroot", wrapper=["unshare", "--user", "--map-root-user"]))

    def test_mount_targets_are_made_without_following_links(self):
        victim = self.tmp / "victim"
        victim.mkdir()
        (self.work / "link").symlink_to("/etc")
        source = self.write("file.txt", "granted", directory=self.tmp)
        ended = self.sbx("--workspace", f"{self.work}:overlay", "--read", f"{source}:{self.work}/link/passwd", "--", "cat", "/etc/passwd")
        if ended.status == 0:
            self.assertNotIn("granted", ended.text)
        else:
            self.could_not(ended, "link")

    def test_mount_targets_are_made_in_directories(self):
        source = self.write("file.txt", "granted", directory=self.tmp)
        ended = self.sbx("--read", f"{source}:/data/deep/file", "--", "cat", "/data/deep/file")
        self.exited(ended)
        self.assertEqual(ended.text, "granted")


class Affinity(SbxTest):
    def test_affinity_is_the_budget_and_cannot_be_widened(self):
        polled = {"SBX_TEST_MEANS": "polled"}  # with a cgroup, its quota is the budget
        ended = self.python("import os; print(len(os.sched_getaffinity(0)))", options=["--cpus", "1"], env=polled)
        self.assertEqual(ended.text.strip(), "1", ended)
        asked = self.inside("widen-affinity", options=["--cpus", "1"], env=polled)
        self.refuses(asked, "EPERM")
        self.assertEqual(asked.ended.denied, {}, asked)

    def test_affinity_follows_the_budget(self):
        mine = len(os.sched_getaffinity(0))
        if mine < 2:
            self.skipTest("one CPU only")
        ended = self.python("import os; print(len(os.sched_getaffinity(0)))", options=["--cpus", "1.5"])
        self.assertEqual(int(ended.text), min(mine, math.ceil(1.5)), ended)
        self.works(self.outside("widen-affinity"))


class ControlGroup(SbxTest):
    def test_command_is_in_a_control_group_of_its_own(self):
        if self.sbx("true").record["enforced"]["memory"] == "polled":
            self.skipTest("no cgroup can be made here")
        process = self.start_sbx("--", "sh", "-c", "echo ready; read -r line", json_record=False, stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        # Seen from outside: inside, a cgroup v2 group appears as the root.
        init = sbxtest.init_of(process)
        command = pathlib.Path(f"/proc/{init}/task/{init}/children").read_text().split()
        self.assertEqual(len(command), 1)
        groups = pathlib.Path(f"/proc/{command[0]}/cgroup").read_text()
        self.assertEqual(self.finish(process, data=b"\n", json_record=False).status, 0)
        self.assertRegex(groups, r"(?m)^[0-9]+:([a-z,]*memory[a-z,]*)?:.*/sbx-[0-9a-f]{16}$")


if __name__ == "__main__":
    sbxtest.main()

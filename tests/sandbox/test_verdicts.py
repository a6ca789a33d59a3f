"""Every row of the exit-status table, and the corresponding record."""

import ctypes
import json
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import time

import sbxtest
from sbxtest import PROBE, SbxTest

WRITE_MEBIBYTES = "import sys\nwith open('/tmp/f', 'wb') as f:\n for _ in range(int(sys.argv[1])): f.write(b'x' * (1 << 20))"

SET_MODE_FILTER, NEW_LISTENER, ALLOW, RETURN, NO_NEW_PRIVS = 1, 1 << 3, 0x7FFF0000, 0x06, 38


def hold_listener():
    """In a child that becomes sbx: as under a container manager that itself watches system calls."""
    libc = ctypes.CDLL(None, use_errno=True)
    everything = ctypes.create_string_buffer(struct.pack("HBBI", RETURN, 0, 0, ALLOW))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(everything)))
    libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0)
    os.set_inheritable(libc.syscall(sbxtest.SYSCALLS["seccomp"], SET_MODE_FILTER, NEW_LISTENER, program), True)


class ByItself(SbxTest):
    def test_exit_status_is_the_commands(self):
        for code in (0, 1, 2, 124, 125, 126, 127, 137, 255):
            ended = self.exited(self.sbx(PROBE, "exit", code), code)
            self.assertEqual((ended.outcome["signal"], ended.outcome["success"]), (None, code == 0))

    def test_signal_gives_128_and_its_number(self):
        for name in ("SIGHUP", "SIGINT", "SIGKILL", "SIGSEGV", "SIGTERM", "SIGABRT", "SIGPIPE", "SIGSYS", "SIGXCPU", "SIGUSR1"):
            number = getattr(signal, name)
            ended = self.sbx(PROBE, "die", int(number))
            self.assertEqual(ended.verdict, ("signaled", None), ended)
            self.assertEqual((ended.outcome["signal"], ended.outcome["exit_code"], ended.status), (number, None, 128 + number), ended)
            self.assertFalse(ended.outcome["success"])


    def test_no_signal_is_ignored_or_blocked_when_it_starts(self):
        """sbx ignores SIGPIPE and SIGXFSZ, and here its caller does too."""
        ignoring = lambda: [signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)]
        for options in ({}, {"preexec_fn": ignoring}):
            ended = self.exited(self.sbx("--", "grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status", **options))
            self.assertEqual([line.split()[1] for line in ended.text.splitlines()], ["0" * 16] * 2, ended)
            self.over_budget(self.sbx("--set", 'limits.file_size="64K"', PROBE, "fill", "/tmp/f", 200000, **options), "file_size", 153)


class Budgets(SbxTest):
    def test_wall_time(self):
        """The probe sleeps for ever: that it ends at all is the budget's doing."""
        ended = self.over_budget(self.sbx("--timeout", "300ms", PROBE, "sleep"), "wall_time", 124)
        self.assertGreaterEqual(ended.record["usage"]["wall_ms"], 300)
        self.assertIn("300 ms", ended.outcome["detail"])

    def test_wall_time_with_grace_lets_the_program_finish(self):
        """Nobody waits for the rest of a grace that is longer than this test."""
        options = ["--timeout", "300ms", "--set", 'limits.grace="1h"']
        self.over_budget(self.sbx(*options, PROBE, "polite", 0), "wall_time", 124)

    def test_wall_time_not_reached(self):
        self.exited(self.sbx("--timeout", "20s", "--", "sleep", "0.1"))

    def test_cpu_time(self):
        ended = self.over_budget(self.sbx("--cpu-time", "300ms", PROBE, "spin"), "cpu_time", 152)
        self.assertGreaterEqual(ended.record["usage"]["user_ms"] + ended.record["usage"]["system_ms"], 300, ended)

    def test_cpu_time_of_the_whole_tree(self):
        """If each process had the budget, 16 of them would take 16 times that."""
        ended = self.sbx("--cpu-time", "600ms", "--timeout", "10m", PROBE, "leave", "spin", 16, "stay")
        self.over_budget(ended, "cpu_time", 152)
        self.assertLess(ended.record["usage"]["user_ms"] + ended.record["usage"]["system_ms"], 16 * 600 / 2, ended)

    def test_cpu_time_not_reached_while_sleeping(self):
        self.over_budget(self.sbx("--cpu-time", "300ms", "--timeout", "900ms", PROBE, "sleep"), "wall_time", 124)

    def test_output_with_kill(self):
        options = ["--set", 'output.exceed="kill"', "--output", "64K"]
        self.over_budget(self.sbx(*options, PROBE, "flood-output", 0), "output", 153)

    def test_output_below_the_cap_with_kill(self):
        options = ["--set", 'output.exceed="kill"', "--output", "64K"]
        self.exited(self.sbx(*options, PROBE, "flood-output", 65536))

    def test_output_of_the_error_stream_with_kill(self):
        options = ["--set", 'output.exceed="kill"', "--output", "64K"]
        self.over_budget(self.sbx(*options, PROBE, "flood-output", 0, 2), "output", 153)

    def test_file_size(self):
        ended = self.sbx("--set", 'limits.file_size="1M"', PROBE, "fill", "/tmp/file", 2 << 20)
        self.over_budget(ended, "file_size", 153)

    def test_a_file_size_of_zero_lets_no_file_grow(self):
        ended = self.sbx("--set", 'limits.file_size="0B"', PROBE, "fill", "/tmp/file", 1)
        self.over_budget(ended, "file_size", 153)
        self.assertEqual([(met["limit"], met["value"]) for met in ended.record["limits_met"]], [("file_size", 0)], ended)
        self.assertIn('to allow more: --set \'limits.file_size="1M"\'', self.sbx("--set", 'limits.file_size="0B"', PROBE, "fill", "/tmp/file", 1, json_record=False).err.decode())

    def test_a_limit_of_the_caller_is_told(self):
        """If lower than the policy's it applies and the record reports it; if nothing can start, the message names
        it."""
        lowered = lambda kind, value: {"preexec_fn": lambda: resource.setrlimit(kind, (value, value))}
        ended = self.exited(self.sbx("sh", "-c", "ulimit -n", **lowered(resource.RLIMIT_NOFILE, 200)))
        self.assertEqual(ended.text, "100\n")
        self.assertIn(("limits.open_files", "100 instead of 1024"), [(each["what"], each["instead"]) for each in ended.record["degraded"]])
        for isolation in ("namespaces", "landlock"):
            ended = self.sbx("--isolation", isolation, "true", **lowered(resource.RLIMIT_NPROC, 1), json_record=False)
            self.assertEqual(ended.status, 125, ended)
            self.assertIn("error[cannot-clone]: no more processes can be started", ended.err.decode())
            self.assertIn("ulimit -u", ended.err.decode())
        ended = self.sbx("--isolation", "landlock", "true", **lowered(resource.RLIMIT_SIGPENDING, 0), json_record=False)
        self.assertIn("ulimit -i", ended.err.decode())

    def test_file_size_not_reached(self):
        self.exited(self.sbx("--set", 'limits.file_size="1M"', PROBE, "fill", "/tmp/file", 1 << 20))

    def test_file_size_that_only_refuses_is_a_limit_met(self):
        """Python ignores SIGXFSZ: it gets EFBIG, and the file stays at the maximum size."""
        options = ["--set", 'limits.file_size="3M"']
        ended = self.exited(self.python(WRITE_MEBIBYTES, 9, options=options), 1)
        met = [(limit["limit"], limit["value"], limit["evidence"]) for limit in ended.record["limits_met"]]
        self.assertEqual(met, [("file_size", 3 << 20, "sampled")], ended)
        self.assertEqual(self.exited(self.python(WRITE_MEBIBYTES, 2, options=options)).record["limits_met"], [])

    def test_file_of_just_that_size_that_was_brought_in_meets_nothing(self):
        brought = self.write("brought", "x" * (3 << 20))
        options = ["--in", brought, "--set", 'limits.file_size="3M"']
        ended = self.exited(self.sbx(*options, "--", "sh", "-c", "wc -c brought; exit 1"), 1)
        self.assertEqual((ended.text, ended.record["limits_met"]), (f"{3 << 20} brought\n", []))
        both = self.exited(self.python(WRITE_MEBIBYTES, 9, options=options), 1)
        self.assertEqual([limit["limit"] for limit in both.record["limits_met"]], ["file_size"])

    def test_file_size_is_met_however_late_the_supervisor_comes(self):
        if shutil.which("strace") is None:
            self.skipTest("strace is not installed")
        for mebibytes, met in ((9, ["file_size"]), (2, [])):
            command = self.command("--set", 'limits.file_size="3M"', "--lang", "python", "-c", WRITE_MEBIBYTES, mebibytes)
            late = ["strace", "-qq", "-o", "/dev/null", "-e", "inject=recvmsg:delay_exit=150000"]
            process = sbxtest.start([*late, *command], env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual([limit["limit"] for limit in self.finish(process).record["limits_met"]], met)

    def test_full_disk_only_refuses(self):
        ended = self.sbx("--disk", "2M", "--set", 'limits.file_size="64M"', PROBE, "fill", "/tmp/file", 4 << 20)
        self.exited(ended, 1)
        self.assertIn("refused ENOSPC", ended.text)
        self.assertIn("disk", [met["limit"] for met in ended.record["limits_met"]], ended)

    def test_disk_with_room_is_not_met(self):
        ended = self.exited(self.sbx("--disk", "8M", PROBE, "fill", "/tmp/file", 4 << 20))
        self.assertEqual(ended.record["limits_met"], [])

    def test_disk_counts_whole_pages(self):
        """A tmpfs gives each file whole pages, however large the kernel's are; sbx-security(7) tells how many files fit."""
        code = ("import os\ncount = 0\ntry:\n  while True:\n    with open(f'/tmp/{count}', 'wb', 0) as file: file.write(b'x')\n    count += 1\n"
                "except OSError as error: print(count, error.strerror)")
        ended = self.exited(self.python(code, options=["--disk", "64K"]))
        self.assertEqual(ended.text, f"{(64 << 10) // os.sysconf('SC_PAGE_SIZE')} No space left on device\n")
        self.assertEqual(ended.record["usage"]["written_bytes"], 64 << 10)

    def test_open_files_only_refuse(self):
        code = "import os\ntry:\n  while True: os.open('/dev/null', 0)\nexcept OSError as e: print(e.strerror)"
        ended = self.exited(self.python(code, options=["--set", "limits.open_files=40"]))
        self.assertIn("Too many open files", ended.text)


class CouldNot(SbxTest):
    def could_not_for(self, reason, ended):
        self.could_not(ended)
        if ended.record is not None:
            self.assertEqual(ended.outcome["reason"], reason, ended)

    def test_usage(self):
        for arguments in (["--no-such-option", "--", "true"], ["--timeout", "soon", "--", "true"], []):
            self.could_not_for("usage", self.sbx(*arguments))

    def test_policy(self):
        self.could_not_for("policy", self.sbx("-p", self.policy("limits.wall_time=7\n"), "--", "true"))
        self.could_not_for("policy", self.sbx("-p", "no-such-policy", "--", "true"))

    def test_setup(self):
        self.could_not_for("setup", self.sbx("--", "true", env={"SBX_TEST_FAIL": "pivot:EIO"}))

    def test_the_shipped_binary_has_no_hooks(self):
        for hook in ("SBX_TEST_FAIL", "SBX_TEST_SKIP"):
            done = subprocess.run([sbxtest.SBX, "run", "--", "true"], env=self.environment({hook: "pivot:EIO"}), cwd=self.work, timeout=120)
            self.assertEqual(done.returncode, 0, hook)

    def test_missing_grant(self):
        self.could_not(self.sbx("--read", self.tmp / "absent", "--", "true"), "absent")

    def test_optional_grant_may_be_missing(self):
        policy = self.policy(f'[filesystem]\nread = [{{ source = "{self.tmp}/absent", optional = true }}]\n')
        self.exited(self.sbx("-p", policy, PROBE, "exit", 0))

    def test_what_cannot_be_enforced_is_an_error(self):
        """With another listener outside, calls can't be notified: ports can't be opened on demand."""
        foreign = {"preexec_fn": hold_listener, "close_fds": False}
        wide = self.policy('[network]\nmode = "allow-list"\nallow = ["example.org:1000-2000"]\n', "wide.toml")
        narrow = self.policy('[network]\nmode = "allow-list"\nallow = ["example.org:1000-1100"]\n', "narrow.toml")
        self.could_not(self.sbx("-p", wide, PROBE, "exit", 0, **foreign), "too-many-ports", "example.org:1000-2000", "wide.toml")
        self.exited(self.sbx("-p", wide, PROBE, "exit", 0))
        ended = self.exited(self.sbx("-p", narrow, PROBE, "exit", 0, **foreign))
        self.assertIn("syscalls.named", [entry["what"] for entry in ended.record["degraded"]])

    def test_a_denied_call_ends_the_run_or_nothing_runs(self):
        """Without its own listener sbx would not notice: the kernel would kill only the calling process."""
        foreign = {"preexec_fn": hold_listener, "close_fds": False}
        kill = ["--set", 'syscalls.denied="kill"']
        best_effort = ["--set", 'enforcement="best-effort"']
        for options in (kill, [*kill, *best_effort]):
            self.could_not(self.sbx(*options, PROBE, "trace", "child", **foreign), "denied-cannot-kill", "(--set)", 'syscalls.denied = "errno"')
        ended = self.sbx(*kill, PROBE, "trace", "child")
        self.assertEqual((ended.verdict, ended.status), (("denied", "syscall"), 159), ended)
        ended = self.exited(self.sbx("--set", 'syscalls.denied="errno"', PROBE, "exit", 0, **foreign))
        self.assertIn("syscalls.named", [entry["what"] for entry in ended.record["degraded"]])

    def test_not_found(self):
        for command in ("no-such-command", "/no/such/path"):
            ended = self.sbx("--", command)
            self.assertEqual(ended.status, 127, ended)
            self.assertEqual(ended.verdict, ("setup-failed", "not-found"), ended)

    def test_not_executable(self):
        path = self.write("data.bin", b"\x00\x01")
        ended = self.sbx(path)
        self.assertEqual(ended.status, 126, ended)
        self.assertEqual(ended.verdict, ("setup-failed", "not-executable"), ended)


class Lost(SbxTest):
    """PID 1 of a sandbox, killed from outside."""

    def test_after_the_command_began(self):
        process = self.start_sbx("--report", self.tmp / "record", "--", "sh", "-c", "echo ready; exec sleep 60", json_record=False)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        os.kill(sbxtest.init_of(process), signal.SIGKILL)
        ended = self.finish(process, json_record=False)
        outcome = json.loads((self.tmp / "record").read_text())["outcome"]
        self.assertEqual((ended.status, outcome["status"], outcome["code"], outcome["success"]), (125, "lost", "init-killed", False), outcome)
        self.assertEqual((outcome["reason"], outcome["exit_code"], outcome["signal"]), (None, None, None))
        self.assertIn(b"sbx: lost: the sandbox's init was killed from outside", ended.err)

    def test_of_a_command_that_began_what_it_did_stays(self):
        """So the status is not setup-failed, after which a caller may retry."""
        process = self.start_sbx("--write", self.work, "--report", self.tmp / "record", "--", "sh", "-c",
                                 f"echo done > {self.work}/effect; echo ready; exec sleep 60", json_record=False)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        os.kill(sbxtest.init_of(process), signal.SIGKILL)
        self.finish(process, json_record=False)
        self.assertEqual(json.loads((self.tmp / "record").read_text())["outcome"]["status"], "lost")
        self.assertEqual((self.work / "effect").read_text(), "done\n")


class Cancelled(SbxTest):
    def cancelled_by(self, number, program, *extra, options=()):
        process = self.start_sbx("--report", self.tmp / "r.json", *options, PROBE, *program, json_record=False)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.send_signal(number)
        for again in extra:
            time.sleep(0.05)  # the second signal must be a separate event
            process.send_signal(again)
        ended = self.finish(process, json_record=False)
        ended.record = json.loads((self.tmp / "r.json").read_text())
        self.assertEqual(ended.verdict, ("cancelled", None), ended)
        self.assertEqual(ended.status, 128 + number, ended)
        return ended

    def test_cancelled_by_each_signal(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            self.cancelled_by(number, ("polite", 0))

    def test_stubborn_program_is_killed_after_the_grace(self):
        begin = time.monotonic()
        self.cancelled_by(signal.SIGTERM, ("stubborn",))  # it would stay for ever
        self.assertGreater(time.monotonic() - begin, 1.5)

    def test_second_signal_kills_at_once(self):
        """Before the end of a grace that is longer than this test."""
        self.cancelled_by(signal.SIGTERM, ("stubborn",), signal.SIGTERM, options=["--set", 'limits.grace="1h"'])

    def test_suspended_run_goes_on(self):
        # A process group with its parent outside: SIGTSTP has no effect in an orphaned group, which a CI job may be.
        process = self.start_sbx("--", "sh", "-c", "echo ready; read x; echo $x", json_record=False, stdin=-1, process_group=0)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.send_signal(signal.SIGTSTP)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))
        process.send_signal(signal.SIGCONT)
        ended = self.finish(process, data=b"word\n", json_record=False)
        self.assertEqual((ended.status, ended.out), (0, b"word\n"))


class Record(SbxTest):
    def test_record_names_what_ran(self):
        ended = self.exited(self.sbx("--", "sh", "-c", "echo hello; exit 0"))
        self.assertEqual(ended.record["schema"], "sbx.run/1")
        self.assertRegex(ended.record["id"], "^r_[0-9a-f]{16}$")
        self.assertEqual(ended.record["policy"]["name"], "default")
        self.assertEqual(ended.record["command"][0].rpartition("/")[2], "sh")
        self.assertEqual(ended.text, "hello\n")
        self.assertEqual(set(ended.record["enforced"]["namespaces"]), {"user", "mount", "pid", "net", "ipc", "uts", "cgroup"})

    def test_record_is_on_a_descriptor_where_asked(self):
        read, write = os.pipe()
        process = self.start_sbx("--report-fd", write, PROBE, "exit", 4, json_record=False, pass_fds=[write])
        os.close(write)
        ended = self.finish(process, json_record=False)
        with os.fdopen(read) as report:
            record = json.loads(report.read())
        self.assertEqual((ended.status, record["outcome"]["exit_code"], ended.out), (4, 4, b""))

    def test_arguments_after_the_command_are_its_own(self):
        ended = self.exited(self.sbx("--", "python3", "-c", "import sys; print(sys.argv[1:])", "--json", "-p", "--", "x"))
        self.assertEqual(ended.text, "['--json', '-p', '--', 'x']\n")

    def test_dry_run_runs_nothing(self):
        process = self.start_sbx("--dry-run", "--workspace", f"{self.work}:read-write", PROBE, "write", self.work / "ran", json_record=False)
        ended = self.finish(process, json_record=False)
        self.assertEqual(ended.status, 0, ended)
        self.assertFalse((self.work / "ran").exists())

    def test_trace_time_tells_stages(self):
        ended = self.sbx("--trace-time", PROBE, "exit", 0, json_record=False)
        self.assertEqual(ended.status, 0)
        self.assertRegex(ended.err.decode(), r"\d")


if __name__ == "__main__":
    sbxtest.main()

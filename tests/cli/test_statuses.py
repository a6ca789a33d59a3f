"""Each exit status of the table in sbx-run(1): its cause, and the same in the record."""

import signal

import sbxtest
from sbxtest import PROBE, SBX, SbxTest

SPIN = "while True: pass"
FULL = "open('/tmp/file', 'wb').write(b'x' * (2 << 20))"
SIGXFSZ_AS_IT_WAS = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); "  # python ignores it
TRACE_ME = "import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)"


def python(code):
    return ("--lang", "python", "-c", code)


# The status: its cause, and the record's status and reason.
STATUSES = {
    "n": (("--", "sh", "-c", "exit 7"), ("exited", None), 7),
    "128+N": (("--", "sh", "-c", "kill -USR1 $$"), ("signaled", None), 128 + signal.SIGUSR1),
    124: (("--timeout", "200ms", "--", "sleep", "60"), ("over-budget", "wall_time")),
    125: (("-p", "nosuchpolicy", "true"), ("setup-failed", "policy")),
    126: (("plain.unknown",), ("setup-failed", "not-executable")),
    127: (("nosuchcommand",), ("setup-failed", "not-found")),
    137: (("--memory", "64M", *python("held = bytearray(256 << 20)")), ("over-budget", "memory")),
    152: (("--cpu-time", "300ms", *python(SPIN)), ("over-budget", "cpu_time")),
    153: (("--set", 'limits.file_size="1M"', *python(SIGXFSZ_AS_IT_WAS + FULL)), ("over-budget", "file_size")),
    159: (("--set", 'syscalls.denied="kill"', *python(TRACE_ME)), ("denied", "syscall")),
    130: (signal.SIGINT, ("cancelled", None)),
    143: (signal.SIGTERM, ("cancelled", None)),
    129: (signal.SIGHUP, ("cancelled", None)),
    131: (signal.SIGQUIT, ("cancelled", None)),
}
SAME_STATUS = (("--output", "1K", "--set", 'output.exceed="kill"', "--", "yes"), ("over-budget", "output"), 153)


class Statuses(SbxTest):
    def ends(self, arguments, verdict, status):
        ended = self.sbx(*arguments)
        self.assertEqual((ended.status, ended.verdict), (status, verdict), ended)
        return ended

    def test_each_way_to_end_has_its_status(self):
        self.write("plain.unknown", "no program\n")
        for number, (how, *said) in STATUSES.items():
            with self.subTest(number):
                if not isinstance(how, signal.Signals):
                    self.ends(how, said[0], said[1] if len(said) > 1 else number)
        self.ends(*SAME_STATUS)
        self.exited(self.sbx("true"))

    def test_what_is_no_program_is_called_by_what_it_is(self):
        (self.work / "loop").symlink_to("loop")
        (self.work / "directory").mkdir()
        self.write("text", "no program\n")
        for command, env, status, said in (("./directory", None, 126, "'./directory' is a directory"), ("./loop", None, 127, "'./loop' can't be reached: Too many levels"),
                                           ("./text", None, 126, "'./text' can't be executed: Permission denied"), ("./absent", None, 127, "there is no file './absent'"),
                                           ("true", {"PATH": ""}, 127, "there is no command 'true': PATH is not set")):
            ended = self.sbx("--", command, env=env)
            self.assertEqual(ended.status, status, ended)
            self.assertIn(said, ended.err.decode(), ended)
        ended = self.sbx("directory")  # not "--": it may be a file too
        self.assertEqual(ended.status, 126, ended)
        self.assertIn("'directory' is a directory", ended.err.decode())

    def test_inside_another_sandbox_its_filter_is_named(self):
        ended = self.sbx("--read", str(SBX), "--", str(SBX), "run", "true")
        self.assertEqual(ended.status, 125, ended)
        self.assertIn("the system-call filter of a container or of another sandbox is in the way", ended.err.decode() + ended.out.decode())

    def test_each_signal_that_cancels_has_its_status(self):
        """The command itself exits with 0 on the signal: the run still counts as cancelled."""
        for number, (how, *said) in STATUSES.items():
            if not isinstance(how, signal.Signals):
                continue
            with self.subTest(number):
                process = self.start_sbx("--report", "record.json", PROBE, "polite", 0, json_record=False)
                self.assertEqual(process.stdout.readline(), b"ready\n")
                process.send_signal(how)
                ended = self.finish(process, json_record=False)
                self.assertEqual(ended.status, number, ended)
                self.assertEqual(ended.status, 128 + how)


if __name__ == "__main__":
    sbxtest.main()

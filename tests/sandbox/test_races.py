"""The verdict is right in every order of events: each cause many times, with more runs at once than CPUs."""

import json
import os
import random
import signal
import time

import sbxtest
from sbxtest import PROBE, SBX, SbxTest

# A guest under emulation sets fewer: there one start takes as long as 50 here.
FAST, SLOW = int(os.environ.get("SBX_RACES", "30")), 1000
AT_ONCE = 3 * (os.cpu_count() or 1)
KILL_ON_OUTPUT = ["--output", "16K", "--set", 'output.exceed="kill"']

# name: (options, probe, (status, reason), exit status)
CAUSES = {
    "exit": ([], ("exit", 7), ("exited", None), 7),
    "exit_with_wall_times_status": ([], ("exit", 124), ("exited", None), 124),
    "signal_term": ([], ("die", signal.SIGTERM), ("signaled", None), 143),
    "signal_kill": ([], ("die", signal.SIGKILL), ("signaled", None), 137),
    "signal_xcpu": ([], ("die", signal.SIGXCPU), ("signaled", None), 152),
    "signal_sys": ([], ("die", signal.SIGSYS), ("signaled", None), 159),
    "wall_time": (["--timeout", "60ms"], ("sleep",), ("over-budget", "wall_time"), 124),
    "wall_time_of_a_busy_program": (["--timeout", "60ms", "--cpu-time", "30s"], ("spin",), ("over-budget", "wall_time"), 124),
    "cpu_time": (["--cpu-time", "60ms"], ("spin",), ("over-budget", "cpu_time"), 152),
    "output": (KILL_ON_OUTPUT, ("flood-output", 0), ("over-budget", "output"), 153),
    "file_size": (["--set", 'limits.file_size="64K"'], ("fill", "/tmp/f", 200000), ("over-budget", "file_size"), 153),
    "denied": (["--set", 'syscalls.denied="kill"'], ("trace", "child"), ("denied", "syscall"), 159),
    "memory": (["--memory", "32M"], ("hold-memory", 200), ("over-budget", "memory"), 137),
    "not_found": ([], None, ("setup-failed", "not-found"), 127),
}


class Races(SbxTest):
    def at_once(self, run, values):
        """Calls run(value) for every value, in several processes, so that the runs compete for the CPUs."""
        workers = []
        for first in range(AT_ONCE):
            reading, writing = os.pipe()
            pid = os.fork()
            if pid == 0:
                with os.fdopen(writing, "w") as answer:
                    json.dump(self.wrong_of(run, values[first::AT_ONCE]), answer)
                os._exit(0)
            os.close(writing)
            sbxtest.known_children().add(pid)
            workers.append((pid, reading))
        wrong = []
        for pid, reading in workers:
            with os.fdopen(reading) as answer:
                wrong += json.loads(answer.read() or '["a process of the test ended early"]')
            os.waitpid(pid, 0)
        self.assertEqual(wrong, [])

    def wrong_of(self, run, values):
        sbxtest.adopt_orphans()
        wrong = []
        for value in values:
            try:
                run(value)
            except BaseException as mistake:  # noqa: BLE001  told by the parent
                wrong.append(f"{value}: {mistake}")
        return wrong

    def causes(self, names, times):
        def run(name):
            options, question, verdict, status = CAUSES[name]
            ended = self.sbx(*options, *([PROBE, *question] if question else ["--", "no-such-command"]))
            self.assertEqual((ended.verdict, ended.status), (verdict, status), ended)

        mixed = [name for name in names for _ in range(times)]
        random.Random(times).shuffle(mixed)
        self.at_once(run, mixed)

    def test_programs_that_end_by_themselves(self):
        self.causes(("exit", "exit_with_wall_times_status", "signal_term", "signal_kill", "signal_xcpu", "signal_sys", "not_found"), FAST)

    def test_spent_times(self):
        self.causes(("wall_time", "wall_time_of_a_busy_program", "cpu_time"), FAST)

    def test_spent_sizes_and_denied_calls(self):
        self.causes(("output", "file_size", "denied", "memory"), FAST)

    def cancel(self, times):
        def run(turn):
            number = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)[turn % 4]
            report = self.tmp / f"r{turn}.json"
            process = self.start_sbx("--report", report, PROBE, "polite", 0, json_record=False)
            self.assertEqual(process.stdout.readline(), b"ready\n")
            process.send_signal(number)
            ended = self.finish(process, json_record=False)
            ended.record = json.loads(report.read_text())
            self.assertEqual((ended.verdict, ended.status), (("cancelled", None), 128 + number), ended)
        self.at_once(run, range(4 * times))

    def test_cancelled_runs(self):
        self.cancel(FAST)

    def end_at_the_deadline(self, times):
        """Ends as close to the wall time as possible: either verdict is right, and everything must agree with it."""
        def run(_):
            ended = self.sbx("--timeout", "100ms", "--", "sleep", "0.0985")
            if ended.verdict == ("exited", None):
                self.assertEqual((ended.outcome["exit_code"], ended.status), (0, 0), ended)
            else:
                self.assertEqual((ended.verdict, ended.status, ended.outcome["exit_code"]), (("over-budget", "wall_time"), 124, None), ended)
        self.at_once(run, range(times))

    def test_end_at_the_deadline(self):
        self.end_at_the_deadline(FAST)

    def end_beyond_the_cap(self, times):
        """Writes slightly more than the cap and exits: either may end the run; the output is truncated in both
        cases."""
        def run(_):
            ended = self.sbx(*KILL_ON_OUTPUT, PROBE, "flood-output", 20000)
            self.assertIn((*ended.verdict, ended.status), (("exited", None, 0), ("over-budget", "output", 153)), ended)
            self.assertTrue(ended.record["stdout"]["truncated"], ended)
        self.at_once(run, range(times))

    def test_end_beyond_the_cap(self):
        self.end_beyond_the_cap(FAST)

    def signal_at_any_moment(self, times):
        """A signal may arrive before set-up, during the run, or after it: one of three answers, never another."""
        def run(turn):
            process = self.start_sbx("--", "sleep", "0.03")
            time.sleep(random.Random(turn).uniform(0, 0.06))
            process.send_signal(signal.SIGTERM)
            ended = self.finish(process)
            if ended.record is None:
                self.assertIn(ended.status, (-signal.SIGTERM, 143), ended)
            else:
                self.assertIn((*ended.verdict, ended.status), (("exited", None, 0), ("cancelled", None, 143)), ended)
        self.at_once(run, range(times))

    def test_signal_at_any_moment(self):
        self.signal_at_any_moment(FAST)

    def test_signal_after_the_record_changes_nothing(self):
        def run(number):
            process = self.start_sbx("--", "true")
            record = process.stdout.readline()
            process.send_signal(number)
            process.communicate(timeout=120)
            self.assertEqual((json.loads(record)["outcome"]["exit_code"], process.returncode), (0, 0))
        self.at_once(run, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT) * max(FAST // 4, 1))

    def test_signal_ends_sbx_when_nobody_reads_the_record(self):
        read, write = os.pipe()
        os.set_blocking(write, False)
        with open(read, "rb"), open(write, "wb", buffering=0) as full:
            while full.write(b"x" * 4096):
                pass
            os.set_blocking(write, True)
            report = self.tmp / "first"
            process = self.start_sbx("--report", report, "--", "true", stdout=full)
            while not report.exists():
                self.assertIsNone(process.poll())
            process.terminate()
            process.communicate(timeout=120)
            self.assertEqual(process.returncode, -signal.SIGTERM)

    def test_slow_every_cause(self):
        self.causes(CAUSES, SLOW)

    def test_slow_cancelled_runs(self):
        self.cancel(SLOW)

    def test_slow_end_at_the_deadline(self):
        self.end_at_the_deadline(SLOW)

    def test_slow_end_beyond_the_cap(self):
        self.end_beyond_the_cap(SLOW)

    def test_slow_signal_at_any_moment(self):
        self.signal_at_any_moment(SLOW)


if __name__ == "__main__":
    sbxtest.main()

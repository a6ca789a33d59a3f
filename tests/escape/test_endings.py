"""Invariant 5: the end of the main process is the end of the run, and nothing is left within a second.

What these programs leave behind would stay for ever. Every run of these tests ends with SbxTest.finish, which fails if a
process is left."""

import os
import re
import signal

import sbxtest
from sbxtest import PROBE, SbxTest

WAYS = ("daemon", "ignore", "stop", "spin", "sleep")


class Endings(SbxTest):
    def ends_soon_after_main(self, ended):
        self.exited(ended)
        self.assertIn("left behind", ended.text)

    def test_processes_left_behind_are_gone(self):
        for way in WAYS:
            with self.subTest(way=way):
                self.ends_soon_after_main(self.sbx(PROBE, "leave", way, 10))

    def test_traced_processes_left_behind_are_gone(self):
        self.ends_soon_after_main(self.sbx("--set", 'syscalls.allow=["ptrace"]', PROBE, "leave", "trace", 5))

    def test_processes_left_behind_stay_outside(self):
        """The twin: without sbx a daemon survives its parent."""
        asked = self.outside("leave", "daemon", 2, wrapper=["sh", "-c", '"$0" "$@" >"$OUT" 2>&1'],
                             env={**os.environ, "OUT": str(self.tmp / "out")})
        self.assertEqual(asked.status, 0)
        left = sbxtest.orphans_after(0.2)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self.assertEqual(len(left), 2)

    def test_stubborn_tree_is_gone_at_the_wall_time(self):
        for way in WAYS:
            with self.subTest(way=way):
                self.over_budget(self.sbx("--timeout", "500ms", PROBE, "leave", way, 5, "stay"), "wall_time", 124)

    def test_willing_program_ends_before_the_wall_time(self):
        self.exited(self.sbx("--timeout", "20s", PROBE, "leave", "sleep", 5))

    def test_fork_bomb_is_stopped_by_the_limit(self):
        ended = self.sbx("--processes", "40", "--timeout", "20s", PROBE, "fork-bomb")
        self.exited(ended, 1)
        self.assertIn("refused EAGAIN", ended.text)
        made = int(re.search(r"children (\d+)", ended.text).group(1))
        self.assertLess(made, 40, ended)
        for met in ended.record["limits_met"]:  # no report without evidence
            self.assertEqual((met["limit"], met["value"]), ("processes", 40), ended)

    def test_processes_below_the_limit_are_made(self):
        ended = self.sbx("--processes", "40", PROBE, "leave", "sleep", 20)
        self.exited(ended)
        self.assertEqual(ended.record["limits_met"], [], ended)

    def test_limit_counts_per_sandbox(self):
        first = self.start_sbx("--processes", "30", PROBE, "leave", "sleep", 25, "stay")
        try:
            self.exited(self.sbx("--processes", "30", PROBE, "leave", "sleep", 25))
        finally:
            first.terminate()
            self.finish(first)

    def killed(self, process):
        """Kills sbx. What it leaves behind would hold the streams open: look for that first."""
        self.addCleanup(sbxtest.kill_orphans)
        process.kill()
        process.wait()
        self.assertEqual(sbxtest.orphans_after(sbxtest.GONE_WITHIN_SECONDS), [])
        self.finish(process, json_record=False)

    def test_killed_supervisor_takes_everything_along(self):
        before = sbxtest.mounts()
        for way in WAYS:
            process = self.start_sbx(PROBE, "leave", way, 5, "stay", json_record=False)
            self.assertEqual(process.stdout.readline(), b"left behind\n")
            self.killed(process)
        self.assertEqual(sbxtest.mounts(), before)

    def test_killed_supervisor_takes_a_stopped_init_along(self):
        """Not through a message to PID 1, which a stopped process would not read."""
        process = self.start_sbx(PROBE, "leave", "sleep", 2, "stay", json_record=False)
        self.assertEqual(process.stdout.readline(), b"left behind\n")
        os.kill(sbxtest.init_of(process), signal.SIGSTOP)
        self.killed(process)

    def test_signal_to_everybody_hits_the_sandbox_only(self):
        victim = sbxtest.start([PROBE, "sleep"])
        self.addCleanup(sbxtest.stop, [victim])
        ended = self.sbx(PROBE, "signal", -1, 9)
        self.assertIn(ended.outcome["status"], ("exited", "signaled"), ended)
        self.assertIsNone(victim.poll())

    def test_main_process_may_end_while_stopped_children_remain(self):
        ended = self.python("import os,signal\npid=os.fork()\nif pid==0: os.kill(os.getpid(),signal.SIGSTOP)\n"
                            "os.waitpid(pid,os.WUNTRACED)\nprint('done')")
        self.exited(ended)


if __name__ == "__main__":
    sbxtest.main()

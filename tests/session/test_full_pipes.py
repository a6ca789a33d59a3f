"""A command of sessions whose standard error nobody reads may wait itself. Nothing else in the session waits for it."""

import fcntl
import os
import subprocess

import sbxtest
from sessiontest import SBX, SessionTest, main, wait_until

FULL = b"." * 4096


class FullPipes(SessionTest):
    def setUp(self):
        super().setUp()
        self.start_session("--workspace", ".:overlay")
        self.exec_ok("--", "sh", "-c", "echo made > made")
        self.begun = []
        self.addCleanup(self.end_begun)

    def end_begun(self):
        for process, read in self.begun:
            os.close(read)
            process.kill()
            process.wait()

    def begin(self, *words, is_full):
        """The command, and the reading end of its standard error."""
        read, write = os.pipe()
        if is_full:
            fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, len(FULL))
            os.write(write, FULL)
        process = sbxtest.start([SBX, "session", *words], env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=write)
        os.close(write)
        self.begun.append((process, read))
        return process, read

    def told(self, process, read):
        """What the command says once somebody reads it, and its exit status."""
        self.begun.remove((process, read))
        with open(read, "rb") as pipe:
            said = pipe.read()
        return said.replace(FULL, b"").decode(), process.wait()

    def held_up_by(self, done, says, status, *words):
        """`done`: the session has done what the command asks for."""
        for is_full in (True, False):
            with self.subTest(words=words, is_full=is_full):
                begun = self.begin(*(word.replace("SET", f"set-{is_full}") for word in words), is_full=is_full)
                wait_until(lambda: done(is_full), "the session has done it")
                if is_full:
                    self.assertIsNone(begun[0].poll())  # it waits for whoever reads
                other = self.begin("exec", "work", "--", "true", is_full=False)
                wait_until(lambda: other[0].poll() is not None, "another call has begun and ended")
                self.assertEqual(self.told(*other), ("", 0))
                said, ended = self.told(*begun)
                self.assertIn(says, said)
                self.assertEqual(ended, status)

    def test_changes_that_are_kept(self):
        self.held_up_by(lambda is_full: f"set-{is_full}" in self.run_sbx("changes", "list").out, "sbx: kept ", 0, "keep", "work", "SET")

    def test_a_call_that_sbx_has_something_to_say_about(self):
        def has_ended(is_full):
            calls = [call["state"] for call in self.sbx_session("calls", "--json", "work").json["calls"] if "kill" in call["command"]]
            return calls == ["ended"] * (1 if is_full else 2)
        self.held_up_by(has_ended, "SIGKILL", 137, "exec", "work", "--", "sh", "-c", "kill -9 $$")


if __name__ == "__main__":
    main()

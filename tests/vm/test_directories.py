"""Directories of runs: those in use stay, those of killed runs are removed, others are not touched."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import directories
import harness

HERE = pathlib.Path(__file__).resolve().parent
# Creates a directory, reports it, and keeps it; "hand on": through a child alone, like a qemu that outlives a killed
# run.
RUN = """
import os, subprocess, sys
import directories
with directories.own(sys.argv[1]) as (directory, mark):
    (directory / "disk").write_bytes(b"x" * 4096)
    (directory / "deep").mkdir()
    if "hand on" in sys.argv:
        child = subprocess.Popen(["cat"], pass_fds=(mark,), stdout=subprocess.DEVNULL)
    print(directory.name, flush=True)
    os.read(0, 1)
"""


class Directories(unittest.TestCase):
    def setUp(self):
        cache = tempfile.TemporaryDirectory()
        self.addCleanup(cache.cleanup)
        self.cache = pathlib.Path(cache.name)

    def start(self, *words):
        run = subprocess.Popen([sys.executable, "-c", RUN, str(self.cache), *words], cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(run.stdout.close)
        self.addCleanup(run.wait)
        self.addCleanup(run.stdin.close)
        self.addCleanup(run.kill)
        return run, run.stdout.readline().strip()

    def left(self):
        return {path.name for path in self.cache.iterdir() if path.is_dir()}

    def test_a_run_that_ends_leaves_nothing(self):
        run, directory = self.start()
        self.assertEqual(self.left(), {directory})
        run.communicate("x")
        self.assertEqual((run.returncode, self.left()), (0, set()))

    def test_the_next_run_removes_what_a_killed_one_left(self):
        run, directory = self.start()
        run.send_signal(signal.SIGKILL)
        run.wait()
        self.assertEqual(self.left(), {directory})
        with directories.own(self.cache) as (mine, _):
            self.assertEqual(self.left(), {mine.name})

    def test_what_somebody_works_in_stays(self):
        _, directory = self.start()
        with directories.own(self.cache) as (mine, _):
            self.assertEqual(self.left(), {directory, mine.name})
            self.assertTrue((self.cache / directory / "disk").exists())

    def test_what_a_child_of_a_killed_run_works_in_stays_until_it_ends(self):
        run, directory = self.start("hand on")
        run.send_signal(signal.SIGKILL)
        run.wait()
        directories.remove_abandoned(self.cache)
        self.assertEqual(self.left(), {directory})
        run.stdin.close()  # which the child reads
        while self.left():
            directories.remove_abandoned(self.cache)

    def test_a_directory_without_a_mark_is_not_touched(self):
        (self.cache / f"{directories.PREFIX}mine").mkdir()
        os.symlink("/etc/passwd", self.cache / f"{directories.PREFIX}mine" / directories.OWNER)
        (self.cache / f"{directories.PREFIX}other").mkdir()
        with directories.own(self.cache):
            pass
        self.assertEqual(self.left(), {f"{directories.PREFIX}mine", f"{directories.PREFIX}other"})


if __name__ == "__main__":
    harness.main()

"""A day in a session, from a repository with uncommitted work to what was applied; and the example that shows it."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import sessiontest
import sbxtest
from harness import HANG
from sbxtest import SBX, SOURCE
from sessiontest import SessionTest

EXAMPLE = SOURCE / "examples/agent-session"


def groups_of(pids):
    """The control groups that sbx made for these processes."""
    found = set()
    for pid in pids:
        try:
            lines = pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        for _, controllers, path in (line.split(":", 2) for line in lines):
            if re.search(r"/sbx-[0-9a-f]+", path):
                found.update(pathlib.Path("/sys/fs/cgroup", each, path[1:]) for each in (controllers, *controllers.split(",")))
    return found


class Story(SessionTest):
    def git(self, *words):
        return subprocess.run(["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *words], cwd=self.work, check=True,
                              text=True, stdout=subprocess.PIPE, env=self.environment()).stdout

    def repository(self):
        for file in (EXAMPLE / "project").iterdir():
            shutil.copy(file, self.work)
        self.git("init", "-q", "-b", "main")
        self.git("add", ".")
        self.git("commit", "-qm", "start")

    def test_a_day_in_a_session(self):
        mounts = pathlib.Path("/proc/self/mountinfo").read_text()
        self.repository()
        self.write("notes.txt", "uncommitted\n")
        facts = self.start_session("-p", "agent", "--memory", "256M")
        # Three calls that depend on each other's files.
        self.assertNotEqual(self.exec_json("--", "python3", "-m", "unittest", "-q").record["outcome"]["exit_code"], 0)
        self.exec_ok("--", "sed", "-i", "s/ + 1//", "calculator.py")
        self.exec_ok("--", "python3", "-m", "unittest", "-q")
        # A server in the background, and its client.
        server = self.detach("--", "python3", "-m", "http.server", "8321")
        ask = ("import time, urllib.request\nfor _ in range(400):\n  try: print(urllib.request.urlopen('http://127.0.0.1:8321/notes.txt').read()); break\n"
               "  except OSError: time.sleep(0.02)\n")
        self.assertEqual(self.exec_ok("--lang", "python", "-c", ask).out, "b'uncommitted\\n'\n")
        # One call runs into wall time, one into memory, one is denied; each says so itself.
        self.assertEqual(self.exec_json("--", "sleep", "60", options=("--timeout", "200ms")).verdict, ("over-budget", "wall_time"))
        hungry = self.exec_json("--", "python3", "-c", "x = []\nwhile True: x.append(b'x' * 1_000_000)")
        self.assertEqual(hungry.verdict, ("over-budget", "memory"), hungry)
        denied = self.exec_json("--", "python3", "-c", "import ctypes; ctypes.CDLL(None).mount(0, 0, 0, 0, 0)").record
        self.assertEqual([each["what"] for each in denied["denials"]], ["mount"])
        states = {each["call"]: each["state"] for each in self.sbx_session("calls", "--json", "work").json["calls"]}
        self.assertEqual(states[server], "running", "the others are untouched")
        # The host looks, takes one file, and ends it.
        self.exec_ok("--", "sh", "-c", "echo spoiled >notes.txt")
        self.assertIn("calculator.py", self.sbx_session("diff", "work").out)
        applied = self.sbx_session("apply", "--yes", "work", "calculator.py")
        self.assertEqual(applied.status, 0, applied)
        below = sessiontest.descendants(facts["pid"])
        made = groups_of(below)
        self.stop_session()
        self.assertNotIn("+ 1", (self.work / "calculator.py").read_text())
        self.assertEqual((self.work / "notes.txt").read_text(), "uncommitted\n")
        self.assertEqual(self.git("status", "--porcelain"), " M calculator.py\n?? notes.txt\n")
        self.assertFalse(any(map(sessiontest.process_lives, below)))
        self.nothing_is_left()
        self.assertEqual([group for group in made if group.is_dir()], [])
        self.assertEqual(pathlib.Path("/proc/self/mountinfo").read_text(), mounts)
        self.assertNotIn(str(self.home), pathlib.Path("/proc/net/unix").read_text())

    def example(self, name):
        self.repository()
        bin_directory = self.tmp / "bin"
        bin_directory.mkdir()
        (bin_directory / "sbx").symlink_to(SBX)
        ended = sbxtest.start([EXAMPLE / name], cwd=self.work, env=self.environment({"PATH": f"{bin_directory}:/usr/bin:/bin"}),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        out, _ = ended.communicate(timeout=HANG)
        self.assertEqual(ended.returncode, 0, out)
        self.assertIn("-    return sum(numbers) / len(numbers) + 1", out)
        self.assertEqual(self.git("log", "--format=%s", "-1"), "Give the mean without adding one\n")
        self.assertEqual(self.git("status", "--porcelain", "--untracked-files=no"), "")

    def test_example_in_shell(self):
        self.example("loop.sh")

    def test_example_in_python(self):
        self.example("loop.py")


if __name__ == "__main__":
    sessiontest.main()

"""The examples do what their words say."""

import math
import os
import resource
import shutil
import subprocess

import sbxtest
from sbxtest import SBX, SOURCE, SbxTest

LOOP = SOURCE / "examples" / "agent-loop"


def seconds_for_a_program():
    """Eight times the CPU time that an honest one takes here: one second, but for emulated machines."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["/usr/bin/python3", "-c", "import socket, ctypes"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return min(8, math.ceil(8 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)))


class AgentLoop(SbxTest):
    """A canned model's programs are run, judged, and tried again where that helps."""

    def setUp(self):
        super().setUp()
        self.seconds = seconds_for_a_program()

    def loop(self, *command):
        process = sbxtest.start([*command], cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self.environment({"SBX": os.path.abspath(SBX), "CPU_TIME": f"{self.seconds}s"}))
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, (out, err))
        return out.decode()

    def judges(self, text):
        lines = text.splitlines()
        self.assertIn("  attempt 1: It failed: NameError: name 'length' is not defined", lines)
        self.assertIn("  attempt 2: 6.0", lines)
        self.assertIn("  attempt 2: 102334155", lines)
        (slow,) = (line for line in lines if f"CPU-time budget of {self.seconds} s spent" in line)
        self.assertIn("needs less", slow)
        # Nothing is made up after a refusal, and nothing is tried again.
        self.assertEqual(sum("This is policy, retrying can't help" in line for line in lines), 2, text)
        self.assertNotIn("hello", text)
        self.assertEqual(lines[-1], "solved 2 of 4")

    def test_agent_loop_in_python(self):
        self.judges(self.loop("/usr/bin/python3", LOOP / "loop.py"))

    def test_agent_loop_in_shell(self):
        if shutil.which("jq", path="/usr/local/bin:/usr/bin:/bin") is None:
            self.skipTest("jq is not installed")
        self.judges(self.loop("sh", LOOP / "loop.sh"))

    def test_outcome_says_when_retrying_cannot_help(self):
        refused = self.python("import ctypes, sys; ctypes.CDLL(None).ptrace(0, 0, 0, 0); sys.exit(3)")
        self.assertEqual(refused.outcome["detail"], "the command exited with status 3; refused: ptrace: this is policy, retrying can't help")
        self.assertNotIn("policy", self.python("import sys; sys.exit(3)").outcome["detail"])
        unharmed = self.python("import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)")
        self.assertNotIn("policy", unharmed.outcome["detail"], "it did not fail")


if __name__ == "__main__":
    sbxtest.main()

#!/usr/bin/env python3
"""The example front end: two sandboxes in one process tree."""

import json
import os
import pathlib
import subprocess
import unittest

import sbxtest
from harness import HANG


class TwoAtOnce(sbxtest.SbxTest):
    def test_each_has_its_own_budgets_and_one_is_cancelled(self):
        program = pathlib.Path(os.environ["SBX_BUILD"]) / "tests/worker/two_at_once"
        ran = subprocess.run([program], stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=self.work, env=self.environment(), timeout=HANG)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        lines = {}
        for line in ran.stdout.splitlines():
            name, status, record = line.split(" ", 2)
            lines[name] = (int(status), json.loads(record))
        status, spins = lines["spins"]
        self.assertEqual((status, spins["outcome"]["status"], spins["outcome"]["reason"]), (124, "over-budget", "wall_time"))
        self.assertEqual((spins["limits"]["memory_bytes"], spins["stdout"]["text"]), (32 << 20, "begun\n"))
        status, sleeps = lines["sleeps"]
        self.assertEqual((status, sleeps["outcome"]["status"]), (143, "cancelled"))
        self.assertEqual(sleeps["limits"]["memory_bytes"], 64 << 20)


if __name__ == "__main__":
    sbxtest.main()

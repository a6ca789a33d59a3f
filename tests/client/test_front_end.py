#!/usr/bin/env python3
"""The trial front end: a session, cells, a call and a listing in one event loop, without a command line."""

import os
import pathlib
import subprocess
import unittest

import sbxtest
import sessiontest
from harness import HANG


class FrontEnd(sessiontest.SessionTest):
    def test_three_cells_and_a_call_at_once_one_is_cancelled_and_files_are_listed(self):
        program = pathlib.Path(os.environ["SBX_BUILD"]) / "tests/client/front_end"
        ran = subprocess.run([program], stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=self.work, env=self.environment(), timeout=HANG)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""), ran.stdout)
        self.assertEqual(sorted(ran.stdout.splitlines()), ["adds 0", "call 4", "fails 3", "lists file", "prints 2", "sleeps 130"])
        self.assertEqual(self.run_sbx("session", "list", "--json").json["sessions"], [])


if __name__ == "__main__":
    sbxtest.main()

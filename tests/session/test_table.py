"""The table of Python cells (tests/cells/python_table.py) and whole tutorials, each cell a `sbx session eval` of its own."""

import base64
import os
import pathlib
import sys
import unittest

import sessiontest  # finds sbxtest
from sbxtest import SOURCE
from test_eval import EvalTest

sys.path.insert(0, str(SOURCE / "tests" / "cells"))

import celltest
from python_table import GROUPS, NEEDS, Rows, has

SYSTEM = "/usr/bin/python3"
LEAST = 120  # cells that every shell must have run


def answer_of(record):
    """A record as what the table compares."""
    answer = celltest.Answer()
    for name, kept in (("stdout", answer.out), ("stderr", answer.err)):
        stream = record[name]
        kept.extend(base64.b64decode(stream["text"]) if stream["encoding"] == "base64" else stream["text"].encode())
    answer.results = record["answer"]["results"]
    answer.errors = [record["answer"]["error"]] if record["answer"].get("error") else []
    answer.done = record["answer"]
    return answer


class Table(Rows, EvalTest):
    def ask(self, context, code, state):
        """By standard input: a word of a command can't hold NUL."""
        return self.answered(self.checked(self.sbx_session("eval", "work", "--json", "--context", context, stdin=code.encode())), state)

    def row(self, context, row, about):
        record = self.ask(context, row.code, "kept")
        answer = answer_of(record)
        self.check(row, answer, about)
        for name, kept, written in (("stdout", answer.out, row.cut), ("stderr", answer.err, row.cut_err)):
            self.assertEqual((record[name]["bytes"], record[name]["truncated"]), (written or len(kept), written is not None), f"{name}: {about}\n{answer}")
        self.assertEqual((record["late_bytes"], record["denials"]), (0, []), f"{about}\n{record}")
        self.assertEqual(record["outcome"]["success"], answer.done["ok"])

    def table(self, shell):
        """The rows of a group run in one context, one group after another in one session."""
        if shell == "ipython" and not has(SYSTEM, "IPython"):
            self.skipTest("python3-ipython is not installed")
        self.start_session("--timeout", "60s", "--cpu-time", "120s", "--memory", "2G", "--set", f'environment.set={{SBX_CELL_SHELL="{shell}"}}')
        version = sys.version_info[:2]  # ctest runs this file with Debian's Python, which sbx finds too
        ran = 0
        for group, rows in GROUPS.items():
            lacking = [module for module in NEEDS.get(group, ()) if not has(SYSTEM, module)]
            if lacking:
                print(f"skipped: {group}: {SYSTEM} has no {lacking[0]}")
                continue
            self.ask(group, "kept = 42", "new")
            for number, row in enumerate(rows):
                about = f"{group} row {number} under {shell}"
                lacking = [module for module in row.needs if not has(SYSTEM, module)]
                if lacking or version < row.since:
                    print(f"skipped: {about} needs {lacking or row.since}")
                    continue
                with self.subTest(about):
                    self.row(group, row.under(shell, sandboxed=True), about)
                    record = self.ask(group, "assert kept == 42", "kept")
                    self.assertTrue(record["answer"]["ok"], record)
                ran += 1
            self.assertEqual(self.sbx_session("restart", "work", group).status, 0)
        self.assertGreaterEqual(ran, LEAST)
        print(f"{ran} rows under {shell}")

    def test_every_row_of_the_table(self):
        self.table("plain")

    def test_every_row_of_the_table_under_ipython(self):
        self.table("ipython")


if __name__ == "__main__":
    sessiontest.main()

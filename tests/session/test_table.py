"""The table of Python cells (tests/cells/python_table.py) and whole tutorials, each cell a `sbx session eval` of its own."""

import base64
import re
import sys

import sessiontest
from sbxtest import SOURCE
from test_eval import EvalTest

import celltest
from python_table import GROUPS, NEEDS, TABLE, Rows, has

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
                ran += 1
            # Each record has said that the state was kept; the driver's own tests look after each row.
            self.assertTrue(self.ask(group, "assert kept == 42", "kept")["answer"]["ok"], group)
            self.assertEqual(self.sbx_session("restart", "work", group).status, 0)
        self.assertGreaterEqual(ran, LEAST)
        print(f"{ran} rows under {shell}")

    def test_every_row_of_the_table(self):
        self.table("plain")

    def test_every_row_of_the_table_under_ipython(self):
        self.table("ipython")


class Tutorials(EvalTest):
    """Notebooks as people write them (tests/session/tutorials): each `# %%` begins a cell, and the words after it say what the cell shows:
    table, figure, text (a value that is not a table), output, error. A cell without words shows nothing, and the last one asserts."""

    DIRECTORY = SOURCE / "tests" / "session" / "tutorials"

    def cells(self, tutorial):
        _, *cells = re.split(r"^# %%(.*)\n", tutorial.read_text(), flags=re.MULTILINE)
        self.assertEqual(cells[-2].strip(), "")
        self.assertIn("assert ", cells[-1])
        return [(words.split(), code) for words, code in zip(cells[::2], cells[1::2])]

    def shown_by(self, record):
        """The words that say what a cell has shown."""
        words = []
        for result in record["answer"]["results"]:
            data = result["data"]
            if "image/png" in data:
                self.assertTrue(celltest.is_png(data["image/png"]))
                words.append("figure")
            elif TABLE in data:
                self.assertIn("<table", data["text/html"])
                self.assertEqual(len(data[TABLE]["rows"]), data[TABLE]["total"])
                words.append("table")
            else:
                self.assertLessEqual(set(data), {"text/plain", "application/json"})
                words.append("text")
        words += ["output"] if record["stdout"]["bytes"] else []
        words += ["error"] if record["answer"]["error"] else []
        return sorted(words)

    def test_tutorials_show_what_they_should(self):
        """All in one session, so that a later tutorial finds the font cache; each in a new context with a directory of its own."""
        for module in ("pandas", "matplotlib"):
            if not has(SYSTEM, module):
                self.skipTest(f"python3-{module} is not installed")
        self.start_session("--timeout", "60s", "--cpu-time", "60s")
        tutorials = sorted(self.DIRECTORY.glob("*.py"))
        self.assertGreaterEqual(len(tutorials), 10)
        ran = 0
        for tutorial in tutorials:
            self.answered(self.cell(f"import os\nos.mkdir({tutorial.stem!r}); os.chdir({tutorial.stem!r})"), "new")
            for number, (expected, code) in enumerate(self.cells(tutorial)):
                record = self.answered(self.cell(code), "kept")
                about = f"{tutorial.name}, cell {number}:\n{code}\n{record['answer']['error']}\n{record['stderr']['text']}"
                self.assertEqual(self.shown_by(record), sorted(expected), about)
                self.assertEqual((record["answer"]["ok"], record["stderr"]["text"]), ("error" not in expected, ""), about)
                ran += 1
            self.assertEqual(self.sbx_session("restart", "work").status, 0)
        self.assertGreaterEqual(ran, 100)


if __name__ == "__main__":
    sessiontest.main()

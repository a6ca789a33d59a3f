"""What sbx lists and explains fits the terminal: 60, 80 and 120 columns. In a pipe nothing is broken."""

import json
import os
import re
import shutil
import subprocess
import unicodedata

import sessiontest
from sbxtest import SBX, SOURCE
from terminaltest import Person
from sessiontest import SessionTest

WIDTHS = (60, 80, 120)
STYLES = re.compile(r"\x1b\[[0-9;]*m|.\x08")


def width(line):
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in line if not unicodedata.combining(each))


class Widths(SessionTest):
    def setUp(self):
        super().setUp()
        self.write("notes.md", "notes\n")
        self.write("a directory with a long name and 中文 in it/file with a long name as well.txt", "text\n")
        self.write("agent.toml", self.run_sbx("policy", "init", "--name", "agent", "-p", "agent").out.replace("1G", "1Q", 1))
        self.write("refused.py", "import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0); open('/etc/shadow')\n")

    def shown(self, columns, *words):
        """The lines that a terminal of that many columns shows."""
        person = Person(self, ["/bin/sh", "-c", f'stty cols {columns}; exec "$0" "$@"', SBX, *map(str, words)])
        self.assertIn(person.end(), (0, 1), f"{words}: {person.text}")
        return [STYLES.sub("", line) for line in person.text.replace("\r", "").splitlines()]

    def fits(self, *words, keeps=()):
        """Only what one cannot break is wider: a word such as a path, and lines to copy."""
        piped = self.run_sbx(*words).out
        for columns in WIDTHS:
            lines = self.shown(columns, *words)
            self.assertTrue(lines, words)
            wide = [line for line in lines if width(line) > columns and line.strip() not in keeps and " " in line.strip()]
            self.assertEqual(wide, [], f"{words} at {columns} columns")
            if words[:1] not in (("ps",), ("doctor",)) and words[1:2] != ("stats",):  # what the machine does just now
                self.assertEqual(" ".join(lines).split(), piped.split(), "the words are those of a pipe")

    def test_sessions_calls_and_files(self):
        self.start_session("-p", "agent")
        self.start_session(name="a-session-with-a-name-that-is-quite-long")
        self.run_sbx("session", "exec", "work", "--", "sh", "-c", "echo a long command with many words that a list can't show as a whole; echo x >> notes.md")
        self.run_sbx("session", "eval", "work", "-c", "words = 'a cell with a long line of code' + ' and more of it' + ' until no terminal is wide enough'")
        for words in (("list",), ("show", "work"), ("stats", "work"), ("calls", "work"), ("contexts", "work"), ("ls", "work"), ("changes", "work")):
            with self.subTest(words):
                self.fits("session", *words)

    def test_change_sets(self):
        for name in ("monday", "a-set-with-a-name-that-is-long"):
            done = self.run_sbx("run", "-p", "python", "--keep", name, "--", "sh", "-c", "echo more >> notes.md; mkdir -p 'new directory/with a long name/below another'; touch 'new directory/with a long name/below another/file'")
            self.assertEqual(done.status, 0, done)
        for words in (("list",), ("show", "monday")):
            with self.subTest(words):
                self.fits("changes", *words)

    def test_policies_help_and_this_machine(self):
        for words in (("policy", "list"), ("policy", "explain", "limits.memory"), ("policy", "explain", "@debug"), ("policy", "explain", "over-budget"),
                      ("policy", "check", "agent.toml"), ("policy", "audit", "web-fetch"), ("doctor",), ("doctor", "-p", "ci-untrusted"), ("ps",), (), ("help",)):
            with self.subTest(words):
                self.fits(*words)

    def test_help_of_each_command(self):
        listed = re.findall(r"^  ((?:session|policy|changes) [a-z]+|[a-z]+)(?= |$)", self.run_sbx("help").out.split("\n\n", 2)[2], re.MULTILINE)
        self.assertGreater(len(listed), 40)
        for name in listed:
            if name != "sbx":
                with self.subTest(name):
                    examples = self.run_sbx("help", *name.split()).out.split("\nExamples:\n")[1].split("\n\n")[0]
                    self.fits("help", *name.split(), keeps=[line.strip() for line in examples.splitlines()])

    def test_why(self):
        self.run_sbx("run", "--explain", "--report", "refused.json", "refused.py")
        self.run_sbx("run", "--report", "time.json", "--timeout", "100ms", "--", "sleep", "100")
        self.run_sbx("run", "-p", "web-fetch", "--report", "host.json", "--", "sh", "-c", "curl -sS https://a-long-name-of-a-host.example.org/")
        for name in ("refused.json", "time.json", "host.json"):
            with self.subTest(name):
                self.assertTrue(json.loads((self.work / name).read_text()))
                self.fits("why", name)

    def test_pages(self):
        """No column of a table is too narrow for its words, of which groff warns; at 60 columns examples are wider."""
        if shutil.which("man") is None or shutil.which("groff") is None:
            self.skipTest("man or groff is not installed")
        for page in sorted((SOURCE / "man").glob("*.[1-9]")):
            for columns in WIDTHS:
                with self.subTest(f"{page.name} at {columns}"):
                    done = subprocess.run(["man", "--warnings=break", "-l", page], env={**os.environ, "MANWIDTH": str(columns), "MANPAGER": "cat", "LC_ALL": "C.UTF-8"},
                                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
                    lines = [STYLES.sub("", line) for line in done.stdout.splitlines()]
                    self.assertGreater(len(lines), 20, done)
                    self.assertEqual([line for line in lines if width(line) > max(columns, 80)], [])
                    if columns >= 80 or page.suffix != ".3":  # its declarations are longer
                        self.assertEqual(done.stderr, "")


if __name__ == "__main__":
    sessiontest.main()

"""Copies are told on a terminal while they go on, and never in a pipe. In the binary with hooks they are from the first moment on."""

import unittest

import sessiontest
from sbxtest import WITH_FAULTS
from sessiontest import SessionTest
from terminaltest import Person

SIZE = 3 << 20
COPIED = r"\r\x1b\[Ksbx: [\d.]+ .iB copied, \d+ s"


class Told(SessionTest):
    def setUp(self):
        super().setUp()
        if not WITH_FAULTS:
            raise unittest.SkipTest("SBX_WITH_FAULTS names no binary with hooks")
        (self.work / "large").write_bytes(b"\1" * SIZE)

    def shown(self, *words):
        person = Person(self, [WITH_FAULTS, *words], SBX_TEST_PROGRESS_AT_ONCE="1")
        self.assertEqual(person.end(), 0, person.text)
        return person.text

    def told(self, pattern, *words, again=lambda: None):
        self.assertRegex(self.shown(*words), pattern)
        again()
        at = 1 if words[0] == "run" else 2
        self.assertNotRegex(self.shown(*words[:at], "-q", *words[at:]), r"copied, \d+ s")
        again()
        piped = self.run_sbx(*words)
        self.assertEqual((piped.status, "\r" in piped.err + piped.out), (0, False), piped)

    def test_copies_out_of_a_run(self):
        self.told(COPIED, "run", "--in", "large", "--out", "out", "--collect", "copy", "--", "cp", "large", "copy")

    def test_copies_into_and_out_of_a_session(self):
        self.start_session()
        self.told(COPIED, "session", "put", "work", "large", "copy")
        self.told(COPIED, "session", "get", "work", "copy")

    def test_changes_that_are_applied(self):
        self.run_sbx("run", "--workspace", ".:overlay", "--keep", "set", "--", "cp", "large", "made")
        self.told(COPIED, "changes", "apply", "--yes", "set", again=lambda: (self.work / "made").unlink())


if __name__ == "__main__":
    sessiontest.main()

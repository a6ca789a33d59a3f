"""Runs tests of this directory where sbx walls programs off by a weaker form, in a container: forms.py MODULE[.CLASS[.METHOD]]…

Prints one line of JSON for each test: its name, what became of it, and why. What makes no difference to a promise is no failure here: with
which errno something is refused, and how PID 1's part is found. A run that sbx refuses because it can't keep a promise without namespaces
lets nothing out: "refused". A twin that needs no sandbox and does not work in a container shows nothing: "outside"."""

import importlib
import json
import os
import pathlib
import re
import sys
import unittest

import sbxtest

REFUSED = re.compile(r"can't be kept without namespaces|error\[no-landlock-tier\]")
IS_LANDLOCK = os.environ["SBX_FORM"] != "shielded"
NOTICE = re.compile(rb"^sbx: weaker isolation .*\n", re.MULTILINE)


LEFT_OUT = {"test_capabilities_are_dropped_before_the_command_starts", "test_uid_zero_means_nothing"}  # FORMS.md says why


class Refused(Exception):
    pass


class Form:
    """Takes the place of what sbxtest does."""

    has_run = is_live = False
    finish, start, refuses = sbxtest.SbxTest.finish, sbxtest.start, sbxtest.SbxTest.refuses

    @staticmethod
    def noting_start(command, **options):
        words = list(map(str, command))
        Form.has_run = Form.has_run or sbxtest.SBX in words
        # Some tests look at such a run before its answer is there.
        Form.is_live = IS_LANDLOCK and ("--write" in words or any(word.endswith(":read-write") for word in words))
        return Form.start(command, **options)

    @staticmethod
    def finish_or_refuse(test, *words, **named):
        ended = Form.finish(test, *words, **named)
        said = b"\n".join((ended.out or b"", ended.err or b"")).decode(errors="replace")
        if ended.status == 125 and REFUSED.search(said):
            raise Refused(said)
        ended.err = NOTICE.sub(b"", ended.err or b"")
        return ended

    @staticmethod
    def refused_by_any_errno(test, asked, errno=None):
        return Form.refuses(test, asked)

    @staticmethod
    def keeper_of(process):
        """The child of sbx that has one itself, as its second has not."""
        parents = {}
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                parents[int(entry)] = int(pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
        own = [child for child, parent in parents.items() if parent == process.pid]
        return next((child for child in own if child in parents.values()), None)


sbxtest.SbxTest.NEEDS_NAMESPACES = False
sbxtest.SbxTest.finish = Form.finish_or_refuse
sbxtest.SbxTest.refuses = Form.refused_by_any_errno
sbxtest.start = Form.noting_start
if IS_LANDLOCK:
    sbxtest.init_of = Form.keeper_of


class Results(unittest.TestResult):
    def startTest(self, test):
        Form.has_run = Form.is_live = False
        self.state = "holds", ""

    def stopTest(self, test):
        while sbxtest.kill_orphans():  # so that none counts as the next test's
            pass
        name = ".".join(test.id().split(".")[-3:])
        print(json.dumps({"test": name, "state": self.state[0], "why": self.state[1][:2000]}), flush=True)

    def addSkip(self, test, reason):
        self.state = "skipped", reason

    def addFailure(self, test, err):
        why = str(err[1])
        refused = issubclass(err[0], Refused) or Form.is_live or REFUSED.search(why)
        self.state = "refused" if refused else "fails" if Form.has_run else "outside", why

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.addFailure(test, err)


def all_tests(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from all_tests(each)
        elif "test_slow_" not in each.id():
            yield each


def main(words):
    results = Results()
    for word in words:
        importlib.import_module(word.partition(".")[0])
        for test in all_tests(unittest.defaultTestLoader.loadTestsFromName(word)):
            if test.id().rpartition(".")[2] not in LEFT_OUT:
                test.run(results)


if __name__ == "__main__":
    main(sys.argv[1:])

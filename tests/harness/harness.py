"""What every test script has in common: how it begins, waits and ends.

ctest (cmake/SbxTests.cmake) starts the scripts with this directory in PYTHONPATH and these in the environment: SBX (the
binary), SBX_WITH_FAULTS (tests/faults), SBX_PROBE (tests/probes), SBX_SOURCE and SBX_BUILD (the project and its build) and
SBX_CTEST (the name of the test there). SBX_ONLY names methods of a class, for one that fails in a CTest of many. By hand:

PYTHONPATH=tests/harness SBX=$PWD/build/test/sbx SBX_PROBE=$PWD/build/test/tests/probes/probe python3 tests/sandbox/test_x.py [CLASS or METHOD…]"""

import linecache
import os
import pathlib
import re
import sys
import time
import traceback
import unittest

SOURCE = pathlib.Path(os.environ.get("SBX_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
# Seconds: no test judges by them how fast something is; what takes longer hangs.
HANG = 1200.0 if os.environ.get("SBX_EMULATED") else 120.0
# The wall time of a program that must end by another cause: an emulated machine beside others may stand still for a minute.
AMPLE = "15m" if os.environ.get("SBX_EMULATED") else "30s"
TURN = 0.005  # seconds between two looks at something
SKIPPED = 77  # SKIP_RETURN_CODE of ctest
_LINE, _MESSAGE = 300, 5  # characters of a line, lines of a message, in the closing words

# It is for the test script itself. A Python that a test starts, as a twin of one in a sandbox, has only its own modules.
os.environ.pop("PYTHONPATH", None)


def wait_until(condition, *what):
    """Waits for something that has no event to wait for here; the last word says what."""
    deadline = time.monotonic() + HANG
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {HANG:.0f} s: {what[-1]}")
        time.sleep(TURN)


def turns(seconds):
    """As many turns as fit into that time on a quiet machine. Where other processes run late, so does this one: for what must be gone
    soon although nobody waits for it."""
    for _ in range(max(1, int(seconds / TURN))):
        yield
        time.sleep(TURN)


class Failure:
    """What one failed test expected and what came, in a few lines."""

    def __init__(self, test, error):
        self.test = test
        kind, value, trace = error
        frames = [(pathlib.Path(frame.f_code.co_filename), line) for frame, line in traceback.walk_tb(trace)
                  if "__unittest" not in frame.f_globals]
        self.asked, self.judged = frames[0] if frames else None, frames[-1] if frames else None
        for frame in frames:  # the last line of the test's own file, and the last one of all
            if frame[0] == pathlib.Path(sys.argv[0]).resolve() or str(frame[0]) == sys.argv[0]:
                self.asked = frame
        self.came = str(value) if issubclass(kind, AssertionError) else f"{kind.__name__}: {value}"

    @staticmethod
    def _place(frame):
        path = frame[0].resolve()
        return f"{path.relative_to(SOURCE) if path.is_relative_to(SOURCE) else path}:{frame[1]}: {linecache.getline(str(frame[0]), frame[1]).strip()[:_LINE]}"

    def lines(self):
        yield f"FAILED {self.test}"
        if self.asked:
            yield f"expected  {self._place(self.asked)}"
        if self.judged and self.judged != self.asked:
            yield f"     by   {self._place(self.judged)}"
        for number, line in enumerate([line for line in self.came.splitlines() if line.strip()][:_MESSAGE]):
            yield f"{'came' if number == 0 else '':8}  {line[:_LINE]}"


class Result(unittest.TextTestResult):
    """Keeps what failed for the closing words."""

    def __init__(self, *words, **named):
        super().__init__(*words, **named)
        self.told = []

    def addFailure(self, test, err):
        self.told.append(Failure(test, err))
        super().addFailure(test, err)

    def addError(self, test, err):
        self.told.append(Failure(test, err))
        super().addError(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.told.append(Failure(subtest, err))
        super().addSubTest(test, subtest, err)


def _selection():
    """The methods that the command line names, as unittest calls them; of a class all but the slow ones; without any word, all."""
    module = sys.modules["__main__"]
    classes = {name: item for name, item in vars(module).items() if isinstance(item, type) and issubclass(item, unittest.TestCase)}
    only = os.environ.get("SBX_ONLY", "").split()
    named = []
    for word in only or sys.argv[1:]:
        if word in classes:
            named += [f"{word}.{name}" for name in unittest.defaultTestLoader.getTestCaseNames(classes[word]) if not name.startswith("test_slow_")]
        else:
            named += [f"{cls}.{word}" for cls, item in classes.items() if hasattr(item, word)] or [word]
    return named


def _close(result):
    """The last lines of a failed test: what was expected, what came, and how to run it alone."""
    for failure in result.told:
        print(*failure.lines(), sep="\n", file=sys.stderr)
    name = os.environ.get("SBX_CTEST")
    if name:
        # Of many methods in one CTest those that failed.
        methods = {word for failure in result.told for word in re.findall(r"test_\w+", str(failure.test))[:1]}
        only = f"SBX_ONLY='{' '.join(sorted(methods))}' " if methods and result.testsRun > len(methods) else ""
        print(f"alone     {only}./check -R '^{name}$'", file=sys.stderr)
    if result.testsRun == 0:
        print(f"no test of {sys.argv[0]} has this name: {sys.argv[1:]}", file=sys.stderr)


def main():
    """Runs the named methods, or all. Exits with 77, which ctest shows as a skip, if all were skipped; with 1 if one was skipped
    where SBX_NO_SKIPS forbids that."""
    runner = unittest.TextTestRunner(verbosity=2, resultclass=Result)
    result = unittest.main(module="__main__", argv=[sys.argv[0], *_selection()], exit=False, testRunner=runner).result
    sys.stdout.flush()
    if not result.wasSuccessful() or result.testsRun == 0:
        _close(result)
        sys.exit(1)
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}")
    if result.skipped and os.environ.get("SBX_NO_SKIPS"):
        sys.exit(1)
    if result.skipped and len(result.skipped) == result.testsRun:
        sys.exit(SKIPPED)

"""several.py SCRIPT [METHOD…] [SCRIPT [METHOD…]]…: runs test scripts (below tests/) in succession, each in its own
process.

The processes are forks of one Python that has already imported everything: starting Python takes a second under
emulation, which is more than most tests take."""

import os
import pathlib
import runpy
import sys
import time

import sbxtest

TESTS = pathlib.Path(__file__).resolve().parents[2]


def scripts(words):
    """[[SCRIPT, METHOD…]…]"""
    found = []
    for word in words:
        if word.endswith(".py"):
            found.append([])
        found[-1].append(word)
    return found


def run(script, *methods):
    """In the child: behaves as if Python had been started with this script. Returns its exit status."""
    sbxtest.adopt_orphans()  # a child doesn't inherit that
    path = TESTS / script
    sys.argv = [str(path), *methods]
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def main():
    failed = False
    for words in scripts(sys.argv[1:]):
        began = time.monotonic()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = run(*words)
                sys.stdout.flush()
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        failed = failed or status not in (0, 77)
        verdict = {0: "@@PASS", 77: "@@SKIP"}.get(status, "@@FAIL")
        print(f"{verdict} {' '.join(words)} ({time.monotonic() - began:.1f} s)", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

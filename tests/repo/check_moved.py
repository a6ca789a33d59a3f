#!/usr/bin/env python3
"""check_moved.py SOURCE COMMIT: no promise loses its test. moved_tests.txt names for each test that is gone the one that shows the
same now: `OLD -> NEW`, or `OLD -> NEW: REASON` where they differ in more than their place. A test is `FILE METHOD` below
tests, or `Suite.Case` of C++.

Checks that each OLD is gone, that each NEW is there, and that each test of that commit is there or in the list. Sources without
their history, as in a release's archive, have only the list."""

import pathlib
import re
import subprocess
import sys

PYTHON = re.compile(r"^ +def (test_\w+)\(", re.MULTILINE)
# Names of tests have these words since.
NEW_WORDS = (("folders", "directories"), ("Folders", "Directories"), ("folder", "directory"), ("Folder", "Directory"))
CPP = re.compile(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", re.MULTILINE)


def tests_in(name, text):
    if name.endswith(".py"):
        return {f"{name} {method}" for method in PYTHON.findall(text)}
    return {f"{suite}.{case}" for suite, case in CPP.findall(text)} if name.endswith(".cpp") else set()


def with_new_words(name):
    for old, new in NEW_WORDS:
        name = name.replace(old, new)
    return name


def tests_of(source):
    files = (path for path in (source / "tests").rglob("*") if path.suffix in (".py", ".cpp"))
    return {test for path in files for test in tests_in(str(path.relative_to(source / "tests")), path.read_text())}


def tests_at(source, commit):
    """The tests of that commit; None if it is not here."""
    def git(*words):
        return subprocess.run(["git", "-c", "safe.directory=*", "-C", source, *words], check=True, capture_output=True, text=True).stdout
    try:
        git("cat-file", "-e", commit)
    except (OSError, subprocess.CalledProcessError):
        return None
    names = [name for name in git("ls-tree", "-r", "--name-only", commit, "tests/").splitlines() if name.endswith((".py", ".cpp"))]
    return {with_new_words(test) for name in names for test in tests_in(name.removeprefix("tests/"), git("show", f"{commit}:{name}"))}


def main():
    source = pathlib.Path(sys.argv[1])
    now, moved, problems = tests_of(source), {}, []
    for line in (source / "tests/repo/moved_tests.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            old, arrow, new = line.partition(" -> ")
            new = new.partition(": ")[0]
            moved[old] = new
            if not arrow or new not in now:
                problems.append(f"moved_tests.txt: there is no test {new!r}, which shows what {old!r} showed")
            if old in now:
                problems.append(f"moved_tests.txt: {old!r} is there: remove the line")
    before = tests_at(source, sys.argv[2])
    problems += [f"{test} is gone: name its successor in moved_tests.txt" for test in sorted((before or set()) - now - set(moved))]
    if len(now) < 1000:
        problems.append(f"only {len(now)} tests were found")
    print("\n".join(problems) or f"{len(now)} tests, {len(moved)} moved, {'the list alone' if before is None else f'{len(before)} before'}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()

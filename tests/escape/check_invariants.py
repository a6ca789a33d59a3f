#!/usr/bin/env python3
"""Checks INVARIANTS.md against the tests that there are.

check_invariants.py INVARIANTS.md CTEST BUILD TESTS

It knows a test that ctest lists in BUILD, a method of a class that ctest lists, and a test case that a C++ source below
TESTS defines: a build of the shipped binary alone has no C++ tests.

It reports: a sentence of an invariant without a row; a row without a twin; a test or twin that does not exist, or
that doesn't run as each kind of caller in the row; and a test that is its own twin."""

import ast
import json
import pathlib
import re
import subprocess
import sys


def sentences_of(text):
    """{"1.1": sentence}"""
    found = re.findall(r"^- \*\*(\d+\.\d+)\*\* (.+)$", text, re.MULTILINE)
    return {number: sentence.strip() for number, sentence in found}, [number for number, _ in found]


def rows_of(text):
    """(number, subject, [tests], [twins]) of every table row."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if len(cells) == 4 and re.fullmatch(r"\d+\.\d+", cells[0]):
            yield cells[0], cells[1], *(re.findall(r"`([^`]+)`", cell) for cell in cells[2:])


def methods_of(script, name):
    """The fast methods of one class of a test script."""
    classes = [node for node in ast.parse(script.read_text()).body if isinstance(node, ast.ClassDef) and node.name == name]
    return [node.name for each in classes for node in each.body if isinstance(node, ast.FunctionDef) and re.match("test_(?!slow_)", node.name)]


def names_of(test, command):
    """The name of a CTest, and where it stands for a class (NAME.CLASS.root), those of the class's methods (NAME.METHOD.root)."""
    yield test
    name, _, user = test.rpartition(".")
    prefix, _, group = name.rpartition(".")
    if len(command) > 1 and command[-1] == group and command[-2].endswith(".py"):
        yield from (f"{prefix}.{method.removeprefix('test_')}.{user}" for method in methods_of(pathlib.Path(command[-2]), group))


def known_tests(ctest, build, tests):
    shown = subprocess.run([ctest, "--test-dir", build, "--show-only=json-v1"], capture_output=True, check=True, text=True)
    listed = {name for test in json.loads(shown.stdout)["tests"] for name in names_of(test["name"], test.get("command", []))}
    defined = (re.findall(r"^TEST(?:_F)?\((\w+), (\w+)\)", source.read_text(), re.MULTILINE) for source in pathlib.Path(tests).rglob("*.cpp"))
    return listed | {f"{suite}.{case}" for cases in defined for suite, case in cases}


def is_known(name, known):
    """True if there is a test of this name, or its .root and .user forms."""
    return name in known or {f"{name}.root", f"{name}.user"} <= known


def holes_of(text, known):
    sentences, order = sentences_of(text)
    holes = [] if sentences else ["no sentence was found"]
    holes += [f"{number} stands twice" for number in set(order) if order.count(number) > 1]
    rows = list(rows_of(text))
    covered = {number for number, *_ in rows}
    holes += [f"{number} has no test: {sentence}" for number, sentence in sentences.items() if number not in covered]
    holes += [f"{number} is not a sentence" for number in sorted(covered - set(sentences))]
    for number, part, tests, twins in rows:
        if not tests:
            holes.append(f"{number} ({part}) names no test")
        if not twins:
            holes.append(f"{number} ({part}) has no twin")
        if set(tests) & set(twins):
            holes.append(f"{number} ({part}) has a test that is its own twin")
        holes += [f"{number} ({part}): there is no test called {name}" for name in tests + twins if not is_known(name, known)]
    return holes


def main():
    path, ctest, build, tests = sys.argv[1:5]
    holes = holes_of(pathlib.Path(path).read_text(), known_tests(ctest, build, tests))
    for hole in holes:
        print(hole)
    print(f"{len(holes)} holes")
    sys.exit(1 if holes else 0)


if __name__ == "__main__":
    main()

"""The tests of this directory where namespaces or a fresh /proc are refused: each holds, or what is lost stands in FORMS.md."""

import json
import pathlib
import re

import containers
import sbxtest
from sbxtest import SbxTest, main

HERE = pathlib.Path(__file__).resolve().parent
MOST_ROWS = 40
SCRIPTS = [path.stem for path in sorted(HERE.glob("test_*.py")) if path.stem not in ("test_forms", "test_mutation")]
SMALL = ["test_host.Ipc", "test_host.Processes", "test_proc.Proc"]  # what each form changes, and nothing else
# The caller's uid, and the options of sbx.
FORMS = {"shielded": (1000, []), "own-uid": (0, ["--isolation", "landlock"]), "same-uid": (1000, ["--isolation", "landlock"])}
ENOUGH = 3000  # seconds, for all tests on a busy machine


class Row:
    def __init__(self, cells):
        self.tests, self.twins = (re.findall(r"`([^`]+)`", cells[at]) for at in (0, 4))
        self.forms, self.degraded, self.lost = cells[1].split(), cells[2], cells[3]


def rows():
    lines = (HERE / "FORMS.md").read_text().splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]
    return [Row(cells) for cells in table]


def names_of_tests():
    return {f"{name.removeprefix('test_')}.{method}" for name in SCRIPTS for method in re.findall(r"def test_(\w+)\(", (HERE / f"{name}.py").read_text())}


class Table(SbxTest):
    NEEDS_NAMESPACES = False

    def test_each_row_says_what_is_lost(self):
        header = sbxtest.SOURCE / "include/sbx/outcome.hpp"
        if not header.exists():  # in a guest
            self.skipTest("the names of promises are not here")
        known, promises = names_of_tests(), re.findall(r'X\(\w+, "([^"]+)"\)', header.read_text())
        self.assertLessEqual(len(rows()), MOST_ROWS)
        for row in rows():
            self.assertIn(row.degraded, set(promises) - {"isolation"})
            self.assertLessEqual(set(row.forms), set(FORMS), row.tests)
            self.assertTrue(row.lost and row.twins and row.tests, row.tests)
            self.assertEqual({*row.tests, *row.twins} - known, set())
            self.assertEqual(set(row.tests) & set(row.twins), set())

    def test_no_test_stands_twice_for_a_form(self):
        listed = [(test, form) for row in rows() for test in row.tests for form in row.forms]
        self.assertEqual({pair for pair in listed if listed.count(pair) > 1}, set())


class Forms(SbxTest):
    NEEDS_NAMESPACES = False

    def setUp(self):
        super().setUp()
        if why := containers.why_not():
            self.skipTest(why)

    def results(self, form, words):
        if why := containers.why_not(form):
            self.skipTest(why)
        uid, options = FORMS[form]
        container = containers.Container(self.tmp / "container", uid, None, "docker", True)
        started = container.directory / "rootfs/started"
        started.mkdir()
        script = started / "sbx"
        script.write_text(f'#!/bin/sh\n[ "$1" = run ] || exec /sbx/sbx "$@"\nshift\nexec /sbx/sbx run {" ".join(options)} "$@"\n')
        script.chmod(0o755)
        container.bind(sbxtest.SOURCE, "/src")
        container.bind(pathlib.Path(sbxtest.PROBE).parent, "/probes")
        container.environment({"SBX": "/started/sbx", "SBX_PROBE": "/probes/probe", "SBX_SOURCE": "/src", "SBX_FORM": form,
                               "PYTHONPATH": "/src/tests/harness:/src/tests/escape", "PYTHONDONTWRITEBYTECODE": "1"})
        done = container.run("sh", "-c", f"python3 /src/tests/escape/forms.py {' '.join(words)}; exit $?", timeout=ENOUGH)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return {re.sub(r"^test_(\w+)\.\w+\.test_", r"\1.", each["test"]): each for each in found}

    def holds(self, form, words):
        found = self.results(form, words)
        self.assertTrue(any(each["state"] == "holds" for each in found.values()), found)
        excused = {test for row in rows() if form in row.forms for test in row.tests}
        states = {name: each["state"] for name, each in found.items()}
        print(form, {state: list(states.values()).count(state) for state in sorted(set(states.values()))})
        self.assertEqual({name: each["why"] for name, each in found.items() if each["state"] == "fails" and name not in excused}, {})
        self.assertEqual({name for name in excused if states.get(name) == "holds"}, set(), "they hold, and FORMS.md says that they don't")

    def test_shielded(self):
        self.holds("shielded", SMALL)

    def test_own_uid(self):
        self.holds("own-uid", SMALL)

    def test_same_uid(self):
        self.holds("same-uid", SMALL)

    def test_slow_all_shielded(self):
        self.holds("shielded", SCRIPTS)

    def test_slow_all_own_uid(self):
        self.holds("own-uid", SCRIPTS)

    def test_slow_all_same_uid(self):
        self.holds("same-uid", SCRIPTS)


if __name__ == "__main__":
    main()

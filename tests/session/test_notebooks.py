"""Notebooks: `sbx run --cells` runs their cells in a session that ends with it."""

import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import unittest

import schemas
import sessiontest
import sbxtest
from harness import HANG
from sbxtest import SBX, SOURCE
from sessiontest import SessionTest, wait_until
from terminaltest import Person

try:
    import jsonschema
except ImportError:
    jsonschema = None

VALIDATE = "import sys, nbformat; nbformat.validate(nbformat.read(sys.argv[1], as_version=nbformat.NO_CONVERT))"
PLOT = """
import matplotlib
import matplotlib.pyplot as plt
import pandas
table = pandas.read_csv("sales data.csv")
plt.plot(table["price"])
plt.show()
"""


LATER = "text_of_the_cell_after_this = 1"


def knows(pid, text):
    """Whether a process has the text in memory that it can read."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            place, rights = line.split()[:2]
            begin, end = (int(each, 16) for each in place.split("-"))
            if "r" not in rights or end - begin > 1 << 30:
                continue
            try:
                memory.seek(begin)
                if text.encode() in memory.read(end - begin):
                    return True
            except (OSError, ValueError):  # [vvar], [vsyscall]
                continue
    return False


def pidfds(pid):
    return [link for link in (os.readlink(f"/proc/{pid}/fd/{each}") for each in os.listdir(f"/proc/{pid}/fd")) if "pidfd" in link]


def has_nbformat():
    return subprocess.run(["/usr/bin/python3", "-c", "import nbformat"], stderr=subprocess.DEVNULL).returncode == 0


def code(source, **more):
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None, **more}


def notebook(*cells, **more):
    return {"cells": [code(each) if isinstance(each, str) else each for each in cells], "metadata": {}, "nbformat": 4, "nbformat_minor": 4, **more}


class NotebookTest(SessionTest):
    def write_notebook(self, content, name="book.ipynb"):
        path = self.work / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def cells(self, content, *options, name="book.ipynb", **rest):
        """Runs it; no session is left."""
        self.write_notebook(content, name)
        answer = self.run_sbx("run", "-p", "python", *options, "--cells", name, **rest)
        self.assertEqual(self.run_sbx("session", "list", "--json").json["sessions"], [], answer)
        return answer

    def written(self, name="book.ipynb"):
        path = self.work / "out" / name
        if has_nbformat():
            checked = subprocess.run(["/usr/bin/python3", "-c", VALIDATE, path], capture_output=True, text=True)
            self.assertEqual(checked.returncode, 0, checked.stderr)
        return json.loads(path.read_text())

    def record(self, answer):
        if jsonschema is not None:
            schema = json.loads((SOURCE / "schema/sbx.notebook.1.json").read_text())
            cell = json.loads((SOURCE / "schema/sbx.cell.1.json").read_text())
            for validated, by in [(answer.json, schema), *((each["record"], cell) for each in answer.json["cells"])]:
                errors = [f"{list(error.path)}: {error.message}" for error in jsonschema.Draft202012Validator(by).iter_errors(validated)]
                self.assertEqual(errors, [], str(answer))
        return answer.json

    def refused(self, content, word, *options, **rest):
        answer = self.cells(content, *options, **rest)
        self.assertEqual((answer.status, answer.out), (125, ""), answer)
        self.assertIn(word, answer.err)


class Cells(NotebookTest):
    def test_files_that_cells_lose_are_named(self):
        """Twins: what --out copies is not named, nor is what a cell leaves as it was."""
        (self.work / "old.csv").write_text("1\n")
        book = notebook("for name in 'new.csv', 'old.csv':\n  with open(name, 'a') as file: file.write('2')", "None")
        self.assertEqual(self.cells(book).err, "sbx: files were created or changed, and that is gone with the sandbox: new.csv, old.csv; --out DIR copies new files\n")
        self.assertIn("sbx: a file was changed and the change is gone with the sandbox: old.csv; to keep changes: sbx session eval NAME book.ipynb, then sbx session apply NAME\n",
                      self.cells(book, "--out", "out").err)
        self.assertNotIn("gone", self.cells(notebook("open('new.csv', 'w').close()"), "--out", "out").err)
        self.assertEqual(self.cells(notebook("1 + 1")).err, "")

    def test_cells_share_their_state_and_print_their_values(self):
        answer = self.cells(notebook("x = 20; print('hello')", {"cell_type": "markdown", "metadata": {}, "source": "# text"}, "x * 2", "  \n"), "--out", "out")
        self.assertEqual((answer.status, answer.out), (0, "hello\n40\n"), answer)
        book = self.written()
        first, text, second, blank = book["cells"]
        self.assertEqual((book["nbformat"], book["nbformat_minor"]), (4, 5))
        self.assertEqual(first["outputs"], [{"name": "stdout", "output_type": "stream", "text": ["hello\n"]}])
        self.assertEqual(second["outputs"][0]["data"]["text/plain"], ["40"])
        self.assertEqual([first["execution_count"], second["execution_count"], blank["execution_count"]], [1, 2, None])
        self.assertEqual(second["outputs"][0]["execution_count"], 2)
        self.assertEqual(text, {"cell_type": "markdown", "id": "cell-2", "metadata": {}, "source": ["# text"]})
        self.assertEqual(book["metadata"]["kernelspec"]["name"], "python3")

    def test_outputs_are_in_the_order_in_which_they_were_made(self):
        source = "for i in range(5):\n    print('before', i)\n    display(i)\n    print('after', i)\n"
        expected = [("stdout", "before 0\n"), ("value", "0")]
        for i in range(1, 5):
            expected += [("stdout", f"after {i - 1}\nbefore {i}\n"), ("value", str(i))]
        expected.append(("stdout", "after 4\n"))
        for options in ((), ("--json",)):
            answer = self.cells(notebook(source), "--out", "out", *options)
            self.assertEqual(answer.status, 0, answer)
            made = [(each["name"], "".join(each["text"])) if each["output_type"] == "stream" else ("value", each["data"]["text/plain"][0])
                    for each in self.written()["cells"][0]["outputs"]]
            self.assertEqual(made, expected, options)

    def shown_in(self, name="book.ipynb"):
        """The outputs of each cell: text of a stream, or the forms of a value."""
        return [["".join(each["text"]) if each["output_type"] == "stream" else {mime: "".join(form) for mime, form in each["data"].items()}
                 for each in cell["outputs"]] for cell in self.written(name)["cells"]]

    @unittest.skipIf(schemas.jsonschema is None, "python3-jsonschema is not installed")
    def test_records_have_what_their_schema_names_and_nothing_else(self):
        held = schemas.Held("sbx.notebook/1")
        odd = os.fsdecode(b"odd\xff")
        content = notebook(code("n = 1", metadata={"tags": ["parameters"]}), "1 / 0", "n")
        for name, options in ((f"{odd}.ipynb", ("--parameter", "n=2", "--out", self.tmp / odd)), ("script.py", ("--parameter", "n=2"))):
            script = '# %% tags=["parameters"]\nn = 1\n# %%\n1 / 0\n# %%\nn\n'
            held.hold(self.cells(script if name == "script.py" else content, *options, "--json", name=name).json)
        held.hold(self.cells(content, "--set", 'filesystem.read=["/nowhere"]', "--json").json)
        self.assertEqual((held.open_objects(), held.unseen()), (set(), set()))

    def test_a_list_is_shown_as_text(self):
        self.cells(notebook("{'a': [1]}", "class Tree:\n  def _repr_json_(self): return [1]\n  def __repr__(self): return 'tree'\nTree()"), "--out", "out")
        shown = [each["outputs"][0]["data"] for each in self.written()["cells"]]
        self.assertEqual(shown, [{"text/plain": ["{'a': [1]}"]}, {"text/plain": ["tree"], "application/json": [1]}])

    def test_what_was_shown_is_cleared_and_updated(self):
        cells = ("from IPython.display import clear_output, update_display\nprint('gone')\nfor i in range(3): clear_output(wait=True); print('step', i)",
                 "print('kept'); clear_output(wait=True)",
                 "print('gone'); display('gone'); clear_output(); print('stays')",
                 "h = display('a', display_id=True); print('x'); h.update('b'); display('one', display_id='k'); display('two', display_id='k'); None",
                 "update_display('later', display_id='k'); update_display('nowhere', display_id='none')")
        for options in ((), ("--json",)):
            answer = self.cells(notebook(*cells), "--out", "out", *options)
            self.assertEqual(answer.status, 0, answer)
            later = {"text/plain": "'later'"}
            self.assertEqual(self.shown_in(), [["step 2\n"], ["kept\n"], ["stays\n"], [{"text/plain": "'b'"}, "x\n", later, later], []], options)
        values = self.record(answer)["cells"][4]["record"]["answer"]["results"]
        self.assertEqual([(each["display_id"], each["update"]) for each in values], [("k", True), ("none", True)])

    @unittest.skipUnless(shutil.which("Rscript"), "R is not installed")
    def test_plots_of_r_stand_where_they_were_drawn(self):
        drawn = "print(1); plot(1:3); lines(1:3); print(2); par(mfrow = c(1, 2)); plot(1); plot(2); cat('3\\n')\nfor (i in 4:5) { par(mfrow = c(1, 1)); plot(i); cat(i, '\\n') }\n6"
        self.assertEqual(self.cells(f"# %%\n{drawn}\n# %%\npdf('own.pdf'); plot(1); invisible(dev.off()); cat('none\\n')\n", "--out", "out", name="plots.R").status, 0)
        shown = [["picture" if isinstance(each, dict) and "image/png" in each else each for each in cell] for cell in self.shown_in("plots.ipynb")]
        self.assertEqual(shown, [["[1] 1\n", "picture", "[1] 2\n", "picture", "3\n", "picture", "4 \n", "picture", "5 \n", {"text/plain": "[1] 6"}], ["none\n"]])

    @unittest.skipUnless(has_nbformat(), "python3-nbformat is not installed")
    def test_debians_nbformat_accepts_what_is_written(self):
        self.assertEqual(self.cells(notebook("1"), "--out", "out").status, 0)
        self.written()

    @unittest.skipUnless(os.path.isdir("/usr/lib/python3/dist-packages/pandas") and os.path.isdir("/usr/lib/python3/dist-packages/matplotlib"),
                         "pandas or matplotlib is not installed")
    def test_pictures_and_tables_are_in_the_notebook(self):
        (self.work / "sales data.csv").write_text("price\n1\n2\n")
        answer = self.cells(notebook(PLOT, "table"), "--out", "out", "--lang", "python", "--timeout", "100s", name="my book.ipynb",
                            env={"PATH": "/usr/bin:/bin"})
        self.assertEqual(answer.status, 0, answer)
        plot, table = self.written("my book.ipynb")["cells"]
        self.assertTrue(any("image/png" in each.get("data", {}) for each in plot["outputs"]), plot)
        self.assertIn("text/html", table["outputs"][-1]["data"])

    def test_files_that_cells_make_come_out_too(self):
        # Of a pattern that was typed it is told that nothing matches; otherwise the notebook is enough.
        self.assertIn("nothing to copy to ", self.cells(notebook("1"), "--out", "out", "--collect", "*.png").err)
        self.assertNotIn("nothing", self.cells(notebook("1"), "--out", "out").err)
        answer = self.cells(notebook("open('made.txt', 'w').write('x')"), "--out", "out")
        self.assertEqual(answer.status, 0, answer)
        self.assertEqual((self.work / "out/made.txt").read_text(), "x")
        self.assertFalse((self.work / "made.txt").exists())

    def test_a_script_is_divided_at_its_marks(self):
        script = "#!/usr/bin/env python3\n# %% [markdown]\n# Text\n# %%\nx = 1\n# %% tags=[\"raises-exception\"]\nx / 0\n# %%\n\nx / 0\n"
        answer = self.cells(script, "--out", "out", name="report.py")
        self.assertEqual(answer.status, 1, answer)
        self.assertIn("report.py:10", answer.err)
        book = self.written("report.ipynb")
        self.assertEqual([each["cell_type"] for each in book["cells"]], ["raw", "markdown", "code", "code", "code"])
        self.assertEqual(book["cells"][1]["source"], ["Text"])

    def test_a_script_of_bash(self):
        answer = self.cells("#!/bin/bash\n# %%\nx=20\necho $x\n# %%\nset -e\necho $((x + 1))\n\nfalse\n# %%\necho no\n", "--out", "out", name="steps.sh")
        self.assertEqual((answer.status, answer.out), (1, "20\n21\n"), answer)
        self.assertIn("steps.sh:9", answer.err)
        book = self.written("steps.ipynb")
        self.assertEqual(book["metadata"]["kernelspec"]["name"], "bash")
        self.assertEqual([each["ename"] for each in book["cells"][2]["outputs"] if each["output_type"] == "error"], ["ExitStatus"])


class Failures(NotebookTest):
    def test_the_first_failed_cell_ends_the_run(self):
        answer = self.cells(notebook("print(1)", "x = 1\nx / 0", "print(3)"), "--out", "out")
        self.assertEqual((answer.status, answer.out), (1, "1\n"), answer)
        self.assertIn("ZeroDivisionError: division by zero", answer.err)
        self.assertIn("cell 2 (In [2]), line 2", answer.err)
        _, failed, rest = self.written()["cells"]
        self.assertEqual(failed["outputs"][-1]["ename"], "ZeroDivisionError")
        self.assertEqual((rest["outputs"], rest["execution_count"]), ([], None))

    def test_a_stop_says_what_did_not_run_and_how_to_go_on(self):
        self.assertTrue(self.cells(notebook("1 / 0", "2", "3")).err.endswith("sbx: the run stopped: 2 cells did not run; --keep-going goes on after an error\n"))
        self.assertNotIn("the run stopped", self.cells(notebook("1", "1 / 0")).err)
        over = self.cells(notebook("import time; time.sleep(1000)", "2"), "--timeout", "500ms").err.splitlines()[-3:]
        self.assertEqual(over, ["sbx: cell 1 (In [1]), line 1: over-budget: wall-time budget of 500 ms spent (limits.wall_time)",
                                'sbx:   to allow more: --timeout 1s',
                                "sbx: the run stopped: 1 cell did not run"])
        died = self.cells(notebook("import os; os._exit(4)"))
        self.assertEqual(died.err, "sbx: cell 1 (In [1]): died: the interpreter exited with status 4\n")

    def test_a_denial_is_told_with_its_cure(self):
        told = self.cells(notebook("import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)")).err
        self.assertRegex(told, r'^sbx: denied: ptrace by \S+: .*\nsbx:   to allow it: syscalls.allow = \["ptrace"\]')

    def test_a_module_that_is_missing_is_told_with_the_way_to_it(self):
        answer = self.cells(notebook("import nosuchmodule"))
        self.assertEqual(answer.err.splitlines()[-1], "sbx: perhaps Python has no module nosuchmodule, and sbx installs none; outside, python3 -m venv .venv "
                         "makes an environment, and .venv/bin/pip installs into it: add --venv .venv")
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", ".venv"], cwd=self.work, check=True)
        for packages in self.work.glob(".venv/lib/python3*/site-packages"):
            (packages / "nosuchmodule.py").write_text("")
        self.assertEqual(self.cells(notebook("import nosuchmodule"), "--venv", ".venv").err, "")

    def test_a_file_that_is_missing_where_none_is_shown_is_told_with_the_way_to_it(self):
        self.write("data.csv", "a,b\n")
        self.write("cells.py", "# %%\nprint(open('data.csv').read())\n")
        said = f'sbx: perhaps it needs "data.csv", which is here but not in the sandbox: add --read {self.work}/data.csv'
        answer = self.run_sbx("run", "--cells", "cells.py")
        self.assertEqual((answer.status, answer.err.splitlines()[-1]), (1, said), answer)
        answer = self.run_sbx("run", "--workspace", ".:overlay", "--cells", "cells.py")
        self.assertEqual((answer.status, answer.out), (0, "a,b\n\n"), answer)
        for path, options in (("nosuch.csv", ("--workspace", ".:overlay")), ("1 / 0", ())):
            self.write("cells.py", f"# %%\nopen('{path}')\n" if options else "# %%\n1 / 0\n")
            self.assertNotIn("is empty", self.run_sbx("run", *options, "--cells", "cells.py").err)

    def test_a_command_line_that_ends_too_early_has_the_record_of_a_notebook(self):
        answer = self.run_sbx("run", "--json", "--cells")
        record = json.loads(answer.out)
        self.assertEqual((answer.status, record["schema"], record["outcome"]["code"]), (125, "sbx.notebook/1", "missing-value"), answer)

    def test_a_reader_that_left_is_told(self):
        self.write_notebook(notebook("print('x' * 100_000)", "2"))
        read, write = os.pipe()
        os.close(read)
        client = sbxtest.start([SBX, "run", "-p", "python", "--cells", "book.ipynb"], env=self.environment(), cwd=self.work,
                               stdin=subprocess.DEVNULL, stdout=write, stderr=subprocess.PIPE)
        os.close(write)
        self.assertEqual(client.communicate(timeout=HANG)[1], b"sbx: error[cannot-write]: cannot write to stdout: Broken pipe\n")
        self.assertEqual(client.returncode, 125)

    def test_a_notebook_that_can_not_be_written_is_125_even_where_a_cell_failed(self):
        small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        answer = self.cells(notebook("print('x' * 300_000)", "1 / 0"), "--out", "out", preexec_fn=small)
        self.assertEqual(answer.status, 125, answer)
        self.assertIn('cannot write "out/book.ipynb": File too large', answer.err)
        self.assertFalse((self.work / "out/book.ipynb").exists())

    def test_no_file_to_copy_is_told_in_one_line(self):
        answer = self.cells(notebook("1"), "--out", "out")
        self.assertEqual(answer.err, "sbx: the notebook is in out/book.ipynb\n")

    def test_a_tag_or_an_option_lets_it_go_on(self):
        tagged = code("1 / 0", metadata={"tags": ["raises-exception"]})
        self.assertEqual((self.cells(notebook(tagged, "print(2)"))).status, 0)
        going = self.cells(notebook("1 / 0", "print(2)"), "--keep-going")
        self.assertEqual((going.status, going.out), (1, "2\n"), going)

    def test_a_tagged_cell_is_skipped(self):
        skipped = code("raise SystemExit('should be skipped')", metadata={"tags": ["skip-execution"]})
        answer = self.cells(notebook("1", skipped, "2"), "--out", "out")
        self.assertEqual((answer.status, answer.out), (0, "1\n2\n"), answer)
        self.assertEqual([each["execution_count"] for each in self.written()["cells"]], [1, None, 2])
        script = self.cells('# %% tags=["skip-execution", "slow"]\n1 / 0\n# %%\nprint(2)\n', "--out", "out", name="tags.py")
        self.assertEqual((script.status, script.out), (0, "2\n"), script)
        self.assertEqual(self.written("tags.ipynb")["cells"][0]["metadata"], {"tags": ["skip-execution", "slow"]})

    def test_parameters_are_set_after_the_tagged_cell(self):
        defaults = code("n = 1\ntitle = 'none'", metadata={"tags": ["parameters"]})
        given = ("--parameter", "n=12345678901234567890123", "--parameter", "title=a \"text\"", "--parameter", 'more={"a": [1.50, null, true], "é": "x\\u0000"}')
        answer = self.cells(notebook("0", defaults, "print(n, title, more)"), *given, "--out", "out")
        self.assertEqual((answer.status, answer.out.splitlines()), (0, ["0", "12345678901234567890123 a \"text\" {'a': [1.5, None, True], 'é': 'x\\x00'}"]), answer)
        cell = self.written()["cells"][2]
        self.assertEqual((cell["id"], cell["metadata"]), ("injected-parameters", {"tags": ["injected-parameters"]}))
        self.assertIn("n = 12345678901234567890123\n", cell["source"])
        # A notebook that was written so is run again with others: the last value of a name wins.
        again = self.cells(json.dumps(self.written()), "--parameter", "n=1", "--parameter", "n=2", "--parameter", "title=[]", "--parameter", "more=", "--json")
        record = self.record(again)
        self.assertEqual((record["parameters"], len(record["cells"])), ({"n": "2", "title": "[]", "more": ""}, 4))
        self.assertEqual(record["cells"][3]["record"]["stdout"]["text"], "2 [] \n")

    def test_parameters_in_each_language(self):
        value = '{"list": [1, "it\'s", false]}'
        for name, mark, source, expected in (
                ("a.js", "//", "const n = 1\n// %%\nn + more.list[1]", "\"5it's\"\n"), ("b.js", "//", "let m = 0, n = 1\n// %%\nn + more.list.length", "8\n"),
                ("a.R", "#", "n <- 1\n# %%\ncat(n, more$list[[2]], more$list[[3]])", "5 it's FALSE"), ("a.sh", "#", 'n=1\n# %%\necho "$n $more"', f"5 {value}\n")):
            if name.endswith(".js") and shutil.which("node") is None or name.endswith(".R") and shutil.which("Rscript") is None:
                continue
            answer = self.cells(f'{mark} %% tags=["parameters"]\n{source}\n', "--parameter", "n=5", "--parameter", "more=" + value, name=name)
            self.assertEqual((answer.status, answer.out.replace("'5it\\'s'", "\"5it's\"")), (0, expected), answer)

    def test_bad_parameters_are_refused(self):
        for typed, word in (("n", "needs NAME=VALUE"), ("=1", '"" is not the name of a variable'), ("a b=1", '"a b" is not the name'), ("1a=1", '"1a" is not the name'),
                            (os.fsdecode(b"a=\xff"), "UTF-8"), ("a.b=1", '"a.b" is not the name of a variable in python'),
                            ("a-b=1", '"a-b" is not the name'), ("class=1", 'python keeps the name "class" for itself')):
            self.refused(notebook("1"), word, "--parameter", typed)
        for name, typed, word in (("a.js", "let=1", 'javascript keeps the name "let"'), ("a.js", "undefined=1", 'keeps the name "undefined"'),
                                  ("a.R", "TRUE=1", 'r keeps the name "TRUE"'), ("a.R", "..1=1", 'r keeps the name "..1"'),
                                  ("a.R", "_a=1", '"_a" is not the name of a variable in r'), ("a.R", ".2a=1", '".2a" is not the name of a variable in r'),
                                  ("a.sh", "UID=1", 'bash keeps the name "UID"')):
            self.refused("1", word, "--parameter", typed, name=name)
        self.refused("echo", "no NUL character", "--parameter", 'a="\\u0000"', name="a.sh")
        self.assertIn("--parameter without --cells", self.run_sbx("run", "--parameter", "a=1", "--", "true").err)
        # Without a cell for them they come first, and that is said.
        first = self.cells(notebook("a"), "--parameter", "a=text")
        self.assertEqual((first.status, first.out), (0, "'text'\n"), first)
        self.assertIn('no cell is tagged "parameters"', first.err)
        # What is near to such a word, or a word of another language, is a name.
        for typed in ("class_=1", "match=1", "function=1"):
            self.assertEqual(self.cells(notebook(typed.partition("=")[0]), "--parameter", typed).out, "1\n")
        self.assertEqual(self.cells("echo $if", "--parameter", "if=1", name="a.sh").out, "1\n")
        # A name that the cell tagged so does not have is probably mistyped; one that it has is not told.
        answer = self.cells('# %% tags=["parameters"]\nrows = 1\n# %%\nprint(rows)\n', "--parameter", "row=5", "--parameter", "rows=6", name="a.py")
        self.assertEqual((answer.status, answer.out), (0, "6\n"), answer)
        self.assertEqual([line for line in answer.err.splitlines() if "mention" in line],
                         ['sbx: the cell tagged "parameters" does not mention row: perhaps the name is mistyped'], answer)

    def test_a_cell_over_its_time_ends_the_run(self):
        answer = self.cells(notebook("print(1)", "while True: pass", "print(3)"), "--timeout", "1s", "--out", "out")
        self.assertEqual((answer.status, answer.out), (124, "1\n"), answer)
        self.assertIn("over-budget", answer.err)
        self.assertEqual(self.written()["cells"][1]["outputs"][-1]["ename"], "sbx: over-budget")

    def test_an_interpreter_that_died_is_told(self):
        answer = self.cells(notebook("import os; os._exit(4)", "1"), "--out", "out")
        self.assertEqual(answer.status, 4, answer)
        self.assertIn("died", answer.err)
        self.written()

    def test_the_record(self):
        record = self.record(self.cells(notebook("print(1)", "1 / 0", "2"), "--json"))
        self.assertEqual((record["outcome"]["status"], record["outcome"]["cell"], record["not_run"]), ("failed", 2, 1))
        self.assertEqual(record["cells"][0]["record"]["stdout"]["text"], "1\n")
        self.assertEqual(self.record(self.cells("{", "--json"))["outcome"]["code"], "bad-notebook")
        for options, wrong, hint in ((("--set", 'filesystem.read=["/nowhere"]'), "missing-grant", "optional"),
                                     (("-p", "nopolicy"), "unknown-policy", "policies: default"),
                                     (("--set", 'limits.memry="5M"'), "unknown-key", "limits.memory")):
            unstarted = self.cells(notebook("1"), "--json", *options)
            outcome = self.record(unstarted)["outcome"]
            self.assertEqual((unstarted.status, outcome["status"], outcome["code"]), (125, "setup-failed", wrong), unstarted)
            self.assertIn(hint, outcome["hint"])
            self.assertEqual(unstarted.err.count(f"error[{wrong}]"), 1, unstarted)

    def test_a_terminal_gets_no_escape_sequences_of_a_cell(self):
        """Colours pass. In a pipe and in the notebook the bytes are as the cell wrote them."""
        code = "import sys; _ = [print(x, end='', flush=True, file=f) for f in (sys.stdout, sys.stderr) for x in ('\\x1b]0;ti', 'tle\\x07', '\\x1b[3', '1mred')]"
        self.write_notebook(notebook(code))
        status, shown = self.on_terminal([SBX, "run", "-p", "python", "--out", "out", "--cells", "book.ipynb"])
        self.assertEqual(status, 0, shown)
        self.assertEqual((shown.count("\x1b]"), shown.count("\x07"), shown.count("title"), shown.count("\x1b[31mred")), (0, 0, 2, 2), repr(shown))
        written = [each["text"] for each in self.written()["cells"][0]["outputs"]]
        self.assertEqual(written, [["\x1b]0;title\x07\x1b[31mred"]] * 2)
        self.assertEqual(self.cells(notebook(code)).out, "\x1b]0;title\x07\x1b[31mred")

    def test_a_long_cell_is_told_on_a_terminal(self):
        """The cell waits for what comes when the line was seen: no time is measured."""
        self.write_notebook("# %%\nprint('one')\n# %%\nimport os, time\nwhile not os.path.exists('seen'): time.sleep(0.05)\nprint('two')\n", "long.py")
        person = Person(self, [SBX, "run", "-p", "python", "--workspace", ".:read-write", "--cells", "long.py"])
        person.expect(r"sbx: cell 2 of 2, \d+ s")
        (self.work / "seen").touch()
        self.assertEqual(person.end(), 0, person.text)
        self.assertRegex(person.text, "\\r\x1b\\[Ktwo")

    def test_what_failed_is_marked_on_a_terminal(self):
        self.write_notebook("def f():\n    raise ValueError('first\\nlast')\nf()\n", "fails.py")
        command = [SBX, "run", "-p", "python", "--color", "always", "--cells", "fails.py"]
        shown = self.on_terminal(command)[1]
        self.assertIn("\x1b[1;31mlast\x1b[0m", shown)
        self.assertRegex(shown, r'  File \x1b\[1;34m"[^"\n]*", line 2, in f\x1b\[0m')
        command[4:6] = []
        self.assertNotIn("\x1b", subprocess.run(command, cwd=self.work, env=self.environment(), capture_output=True, text=True).stderr)

    def test_a_flood_does_not_hold_up_an_interrupt(self):
        self.write_notebook(notebook("import os\nwhile True: os.write(1, b'x' * 65536)"))
        client = sbxtest.start([SBX, "run", "-p", "python", "--set", 'output.passed="1T"', "--cells", "book.ipynb"], env=self.environment(), cwd=self.work,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(client.stdout.close)
        self.assertEqual(client.stdout.read(1 << 20), b"x" * (1 << 20))
        client.send_signal(signal.SIGINT)
        while client.stdout.read(1 << 20):
            pass
        self.assertEqual(client.wait(timeout=HANG), 130)

    def end_by(self, number, before="", meanwhile=None):
        self.write_notebook(notebook(before + "print('on', flush=True)\nimport time\ntime.sleep(1000)", LATER))
        client = sbxtest.start([SBX, "run", "-p", "python", "--out", "out", "--cells", "book.ipynb"], env=self.environment(), cwd=self.work,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(client.stdout.close)
        self.assertEqual(client.stdout.readline(), b"on\n")
        if meanwhile:
            meanwhile(client.pid)
        client.send_signal(number)
        status = client.wait(timeout=HANG)
        wait_until(lambda: self.run_sbx("session", "list", "--json").json["sessions"] == [], "no session")
        return status

    def test_an_interrupt_leaves_no_session_and_writes_the_notebook(self):
        self.assertEqual(self.end_by(signal.SIGINT), 130)
        self.assertEqual(self.written()["cells"][0]["outputs"][0]["text"], ["on\n"])

    def test_the_session_ends_with_a_client_that_is_killed(self):
        self.assertEqual(self.end_by(signal.SIGKILL), -signal.SIGKILL)
        self.assertEqual(self.end_by(signal.SIGKILL, "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"), -signal.SIGKILL)

    def test_no_process_of_the_sandbox_knows_what_comes_later(self):
        if not sbxtest.IS_ROOT:
            self.skipTest("only root reads the memory of PID 1")

        def look(client):
            [session] = self.run_sbx("session", "list", "--json").json["sessions"]
            inits = [pid for pid in sessiontest.descendants(session["pid"]) if sessiontest.name_of(pid) == "sbx-init"]
            self.assertEqual(len(inits), 2, "the holder and the init of the context")
            self.assertEqual([knows(pid, LATER) for pid in inits], [False, False])
            self.assertEqual([pidfds(pid) for pid in inits], [[], []])
            self.assertTrue(knows(client, LATER), "the client has read it")

        self.assertEqual(self.end_by(signal.SIGINT, meanwhile=look), 130)


class Malformed(NotebookTest):
    def test_what_is_no_notebook_is_refused(self):
        self.refused('{"cells": [}', "line 1, column 12")
        self.refused("[" * 100_000, "deeper than 200 levels")
        self.refused("[]", "not a JSON object")
        self.refused(notebook(nbformat=3), "jupyter nbconvert --to notebook --nbformat 4")
        self.refused(notebook(nbformat=3), "old-notebook")
        self.refused(notebook(nbformat="4"), "nbformat")
        self.refused({"nbformat": 4, "cells": 1}, '"cells" is not a list')
        self.refused(notebook("1", {"cell_type": "code", "source": 5}), 'cell 2: "source" is not')
        self.refused(notebook(code("1", metadata={"tags": "x"})), "cell 1: metadata.tags is not")
        self.refused(notebook("1", metadata={"kernelspec": []}), "metadata.kernelspec is not an object")

    def test_the_name_of_a_kernel_need_not_be_a_language(self):
        for name in ("python3", "my-venv"):
            self.assertEqual(self.cells(notebook("6 * 7", metadata={"kernelspec": {"name": name, "display_name": "x"}})).out, "42\n")

    def test_another_language_is_refused(self):
        self.refused(notebook("1", metadata={"kernelspec": {"name": "ir", "language": "R"}}), "--lang r", "--lang", "python")
        self.refused(notebook("1", metadata={"kernelspec": {"name": "julia-1.9", "language": "julia"}}), "is a notebook of julia, and no interpreter keeps its state")
        self.refused("const n = 1", "as a whole program: sbx run cells.ts", name="cells.ts")
        self.refused(notebook("1", metadata={"kernelspec": {"name": "tslab", "language": "typescript"}}), "cells run in python, javascript, r and bash")

    def test_why_explains_a_notebook(self):
        answer = self.cells(notebook("1", "1 / 0"), "--json")
        why = self.run_sbx("why", "-", stdin=answer.out.encode())
        self.assertEqual(why.status, 0, why)
        self.assertIn("book.ipynb: failed", why.out)
        self.assertIn("ZeroDivisionError", why.out)

    def test_what_is_no_file_is_refused(self):
        os.mkfifo(self.work / "pipe.ipynb")
        for name in ("pipe.ipynb", "missing.ipynb", "/dev/zero"):
            answer = self.run_sbx("run", "--cells", name)
            self.assertEqual(answer.status, 125, answer)

    def test_hostile_outputs_of_the_file_are_skipped(self):
        deep = {"a": [[[[1]]]]}
        answer = self.cells(notebook(code("1", outputs=deep, execution_count="x"), code("2", id="a b"), code("3", id=7)), "--out", "out")
        self.assertEqual(answer.status, 0, answer)
        self.assertEqual([each["id"] for each in self.written()["cells"]], ["cell-1", "cell-2", "cell-3"])

    def test_hostile_values_of_a_cell_make_a_valid_notebook(self):
        hostile = "class A:\n  def _repr_mimebundle_(self, **k): return {'text/plain': 'a', 'x y': 'b', 'application/json': {'deep': [1]}}\nA()"
        self.assertEqual(self.cells(notebook(hostile, "import sys; sys.stdout.buffer.write(b'\\xff\\n')"), "--out", "out").status, 0)
        self.written()

    def test_a_notebook_that_is_run_as_a_script_is_refused_with_the_way(self):
        self.write_notebook(notebook("1"), "my book.ipynb")
        answer = self.run_sbx("run", "my book.ipynb")
        self.assertEqual(answer.status, 126, answer)
        self.assertIn("sbx run -p python --cells 'my book.ipynb'", answer.err)

    def test_a_notebook_without_code_is_written(self):
        answer = self.cells(notebook(), "--out", "out")
        self.assertEqual(answer.status, 0, answer)
        self.assertEqual(self.written()["cells"], [])

    def test_the_notebook_itself_is_never_replaced(self):
        self.refused(notebook("1"), "own-notebook", "--out", ".")

    def test_options_without_meaning_are_refused(self):
        for options in (("--session", "work"), ("-c", "1"), ("--apply",), ("-i",), ("--dry-run",)):
            answer = self.run_sbx("run", *options, "--cells", "book.ipynb")
            self.assertEqual(answer.status, 125, answer)


if __name__ == "__main__":
    sessiontest.main()

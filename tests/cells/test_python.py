#!/usr/bin/env python3
"""The driver of Python contexts: the table of cells under its own shell and under IPython's, interrupts, attacks."""

import ast
import glob
import os
import pathlib
import select
import signal
import subprocess
import unittest

import celltest
from celltest import DRIVERS, CellTest, Died
from harness import wait_until
from python_table import GROUPS, NEEDS, Rows, has

SYSTEM = "/usr/bin/python3"
BOOT = (f'first,*parts,last=open({str(DRIVERS / "python.py")!r},encoding="utf-8").read().split("\\f");'
        'exec(compile(first+last,"<sbx>","exec"),{"__name__":"__sbx__","parts_put_off":parts})')


def version_of(python):
    text = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, check=False, text=True).stdout
    return tuple(map(int, text.split()))


def interpreters():
    """Interpreters besides Debian's: those of pyenv, and what SBX_TEST_PYTHONS names, separated by colons."""
    home = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    return [name for name in os.environ.get("SBX_TEST_PYTHONS", "").split(":") if name] + sorted(glob.glob(home + "/versions/*/bin/python3"))


def others():
    return [name for name in interpreters() if version_of(name) >= (3, 8)]


class PythonTest(Rows, CellTest):
    shell = "plain"

    def python(self, interpreter=SYSTEM, shell=None, env=None, boot=BOOT, **named):
        context = self.start([interpreter, "-u", "-X", "utf8", "-c", boot], repeats=True,
                             env={**({"SBX_CELL_SHELL": "plain"} if (shell or self.shell) == "plain" else {}), **(env or {})}, **named)
        self.assertEqual((context.ready["language"], context.ready["shell"], context.start_output), ("python", shell or self.shell, (b"", b"")))
        return context

    def table(self, group, interpreter=SYSTEM):
        for module in NEEDS.get(group, ()):
            if not has(interpreter, module):
                self.skipTest(f"{interpreter} has no {module}")
            subprocess.run([interpreter, "-c", "import matplotlib.font_manager"], env={"MPLCONFIGDIR": celltest.FONTS}, capture_output=True, check=False)
        context = self.python(interpreter, cwd=self.directory())
        version = tuple(map(int, context.ready["version"].split(".")))[:2]
        context.count = 99_998
        context.cell("kept = 42")
        ran = 0
        for number, row in enumerate(GROUPS[group]):
            row = row.under(self.shell)
            context.count = number
            if version < row.since or not all(has(interpreter, module) for module in row.needs):
                print(f"{group} {number}: not on {interpreter}")
                continue
            self.check(row, context.cell(row.code), f"{group} row {number} under {self.shell} of {interpreter}")
            context.count = 99_999
            self.assertTrue(context.cell("assert kept == 42").done["ok"], row.code)
            ran += 1
        self.assertEqual(context.close(), 0)
        return ran


class Table(PythonTest):
    def test_values(self):
        self.table("values")

    def test_streams(self):
        self.table("streams")

    def test_rich(self):
        self.table("rich")

    def test_async(self):
        self.table("async")

    def test_errors(self):
        self.table("errors")

    def test_processes(self):
        self.table("processes")

    def test_magics(self):
        self.table("magics")

    def test_figures(self):
        self.table("figures")

    def test_data(self):
        self.table("data")

    def test_others(self):
        self.table("others")


class TableUnderIPython(PythonTest):
    shell = "ipython"

    def setUp(self):
        if not has(SYSTEM, "IPython"):
            self.skipTest("python3-ipython is not installed")

    def test_ipython_values(self):
        self.table("values")

    def test_ipython_streams(self):
        self.table("streams")

    def test_ipython_rich(self):
        self.table("rich")

    def test_ipython_async(self):
        self.table("async")

    def test_ipython_errors(self):
        self.table("errors")

    def test_ipython_processes(self):
        self.table("processes")

    def test_ipython_magics(self):
        self.table("magics")

    def test_ipython_figures(self):
        self.table("figures")

    def test_ipython_data(self):
        self.table("data")

    def test_ipython_others(self):
        self.table("others")


class Interpreters(PythonTest):
    ANYWHERE = ("values", "streams", "rich", "async", "errors", "processes", "magics")

    def test_every_version(self):
        found = others()
        if not found:
            self.skipTest("no interpreter besides Debian's")
        for interpreter in found:
            for group in self.ANYWHERE:
                with self.subTest(interpreter, group=group):
                    self.table(group, interpreter)

    def test_every_version_of_ipython(self):
        found = [interpreter for interpreter in others() if has(interpreter, "IPython")]
        if not found:
            self.skipTest("no IPython besides Debian's")
        self.shell = "ipython"
        for interpreter in found:
            for group in self.ANYWHERE:
                with self.subTest(interpreter, group=group):
                    self.table(group, interpreter)

    def test_an_older_python_says_so(self):
        found = [name for name in interpreters() if (3,) <= version_of(name) < (3, 8)]
        if not found:
            self.skipTest("no Python 3 before 3.8")
        for interpreter in found:
            with self.assertRaises(Died) as ended:
                self.python(interpreter)
            version = subprocess.run([interpreter, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"], capture_output=True, check=True, text=True).stdout
            self.assertEqual((ended.exception.status, ended.exception.partial.err.decode()), (1, f"sbx: cells need Python 3.8 or later, and this is {version}"))

    def test_venv(self):
        directory = self.directory()
        subprocess.run([SYSTEM, "-m", "venv", "--without-pip", directory + "/venv"], check=True)
        context = self.python(directory + "/venv/bin/python")
        self.assertEqual(context.cell("import sys; sys.prefix").text, repr(os.path.realpath(directory) + "/venv"))
        self.table("values", directory + "/venv/bin/python")

    def test_what_is_put_off_is_used_through_functions(self):
        """A class or a table of a part that is not compiled yet is not there: only functions have stand-ins."""
        first, *parts, last = (DRIVERS / "python.py").read_text().split("\f")
        self.assertTrue(parts)
        trees = [ast.parse(text) for text in (first + last, *parts)]
        for at, tree in enumerate(trees[1:], 1):
            functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
            own = {node.id for part in tree.body for node in ast.walk(part) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not isinstance(part, ast.FunctionDef)}
            own |= {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
            self.assertTrue(functions)
            for other in trees[:at] + trees[at + 1 :]:
                named = {node.id for node in ast.walk(other) if isinstance(node, ast.Name)}
                shadowed = {node.id for node in ast.walk(other) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
                self.assertEqual(named & own - shadowed, set())
                compared = {side.id for node in ast.walk(other) if isinstance(node, ast.Compare) for side in (node.left, *node.comparators) if isinstance(side, ast.Name)}
                self.assertEqual(compared & functions, set(), "a stand-in is not the function")

    def test_text_or_file_as_program(self):
        text = (DRIVERS / "python.py").read_text()
        directory = self.directory()
        for arguments in (["-c", text], [str(DRIVERS / "python.py")]):
            context = self.start([SYSTEM, "-u", "-X", "utf8", *arguments], env={"SBX_CELL_SHELL": "plain"}, cwd=directory)
            answer = context.cell("import sys\ndef f(): return 1/0\ntry: f()\nfinally: print(sys.argv, __name__, repr(sys.path[0]), sorted(n for n in globals() if n[0] != '_'))")
            self.assertEqual(answer.out, b"[''] __main__ '' ['f', 'sys']\n", answer)
            self.assertNotIn("exec", answer.error["traceback"])
            self.assertEqual(answer.error["traceback"].count("File "), 2, answer)
            answer = context.cell("import multiprocessing as m\nwith m.get_context('spawn').Pool(1) as p: r = p.map(abs, [-1])\nr")
            self.assertEqual(answer.text, "[1]", answer)

    def test_no_message_is_lost_at_once(self):
        context = self.python()
        nonces = [context.begin(f"print({n}); {n}") for n in range(50)]
        for number, nonce in enumerate(nonces):
            context.count = number + 1
            self.assertEqual(context.finish(nonce).text, str(number))
        context.ping()
        self.assertEqual(context.cell("# " + "é" * 3_000_000 + "\n5").text, "5")
        self.assertEqual(context.close(), 0)

    def test_one_that_waits_tells_what_a_start_would_find_otherwise(self):
        user = "home/.local/lib/python%d.%d/site-packages" % version_of(SYSTEM)
        cases = []
        for change, seen in ((lambda top: (top / user / "any.pth").touch(), True), (lambda top: (top / user / "there.pth").write_text("\n"), True),
                             (lambda top: (top / user / "there.pth").unlink(), True), (lambda top: (top / user / "usercustomize.py").touch(), True),
                             (lambda top: (top / "work/json.py").touch(), True), (lambda top: (top / user).rename(top / "elsewhere"), True),
                             (lambda top: (top / user / "later").mkdir(), True), (lambda top: [(top / "work").rmdir(), (top / "work").mkdir()], True),
                             (lambda top: (top / user / "new.py").touch(), False), (lambda top: (top / "work/new.py").touch(), False), (lambda top: None, False)):
            top = pathlib.Path(self.directory())
            (top / user).mkdir(parents=True)
            (top / "work").mkdir()
            (top / user / "there.pth").write_text("# a directory\nlater\n")
            cases.append((top, change, seen))
        clock = pathlib.Path(self.directory(), "clock")

        def are_old():
            clock.write_text("now")
            return clock.stat().st_ctime > (cases[-1][0] / user).stat().st_ctime + 2

        wait_until(are_old, "the files are older than the interpreters")
        for number, (top, change, seen) in enumerate(cases):
            context = self.python(cwd=top / "work", env={"HOME": str(top / "home")})
            context.send({"op": "wait"})
            self.assertTrue(context.is_unchanged(), number)
            change(top)
            self.assertEqual(context.is_unchanged(), not seen, number)
            self.assertEqual(context.close(), 0)

    def test_one_whose_files_changed_as_it_started_is_no_spare(self):
        top = pathlib.Path(self.directory())
        (top / "json.pth").touch()
        context = self.python(env={"PYTHONPATH": str(top)})
        context.send({"op": "wait"})
        self.assertFalse(context.is_unchanged())

    def test_a_package_that_each_start_runs_makes_no_spare(self):
        """Any file of it may change."""
        top = pathlib.Path(self.directory())
        (top / "sitecustomize").mkdir()
        (top / "sitecustomize/__init__.py").touch()
        context = self.python(env={"PYTHONPATH": str(top)})
        context.send({"op": "wait"})
        self.assertFalse(context.is_unchanged())

    def test_one_that_did_not_wait_is_no_spare(self):
        self.assertFalse(self.python().is_unchanged())

    def test_end_of_requests_ends_the_context(self):
        directory = self.directory()
        context = self.python(cwd=directory)
        context.cell("import atexit, threading, time\natexit.register(lambda: open('ended', 'w').write('x'))\nthreading.Thread(target=time.sleep, args=(100,)).start()")
        self.assertEqual(context.close(), 0)
        self.assertTrue(os.path.exists(directory + "/ended"))


class Questions(PythonTest):
    """About code that does not run yet, as a prompt asks them."""

    COMPLETENESS = [
        ("", "complete"), ("1 + 1", "complete"), ("# only a comment", "complete"), ("def f():", "incomplete", "    "),
        ("def f():\n    return 1\n", "complete"), ("def f():\n    return 1\n    ", "complete"), ("for i in x: print(i)", "complete"),
        ("foo(", "incomplete"), ("'\''\"\"\"abc", "incomplete"), ("x = [\n  1,", "incomplete", "  "), ("if x:\n    a\nelse:", "incomplete", "    "),
        ("@decorator", "incomplete"), ("await x", "complete"), ("async with x:", "incomplete", "    "), ("1 2", "invalid"), ("%time 1", "complete"),
        ("!ls", "complete"), ("x?", "complete"), ("%%bash\nls", "incomplete"), ("%%bash\nls\n", "complete"), ("class A:\n    def f(self):\n        pass", "incomplete"),
    ]

    def ask(self, context):
        context.is_complete([row if row[0] != "'\''\"\"\"abc" else ('"""abc', *row[1:]) for row in self.COMPLETENESS])
        context.cell("hello_world = 'x'; ran = []\nclass A:\n    def __dir__(self): ran.append(1); return ['good', 'great', '_own']\na = A()")
        self.assertIn("hello_world", context.ask("completion", "x = hel")["matches"])
        self.assertTrue(context.ask("completion", "hello_world.upp")["matches"][0].endswith("upper"))
        self.assertIn("import", context.ask("completion", "imp")["matches"])
        for code in ("nothing_of_this_name", "1.5", "unknown.x"):
            self.assertEqual(context.ask("completion", code).get("matches", []), [], code)
        self.assertEqual(len(context.ask("completion", "a.")["matches"]), 2)
        self.assertEqual(context.ask("nonsense", "x"), {})
        self.assertEqual((context.cell("len(ran)").text, context.cell("__import__('gc').isenabled()").text), ("1", "True"))

    def test_plain(self):
        context = self.python()
        self.ask(context)
        context.is_complete([("def f():\n    return 1", "incomplete", ""), ("    class A:\n        x = 1".lstrip(), "incomplete", "        ")])

    def test_under_ipython(self):
        if not has(SYSTEM, "IPython"):
            self.skipTest("python3-ipython is not installed")
        context = self.python(shell="ipython")
        self.ask(context)
        self.assertIn("%timeit", context.ask("completion", "%timei")["matches"])

    def test_a_question_is_interrupted_and_forks_nothing(self):
        context = self.python()
        context.cell("import os, time\nclass Slow:\n    def __dir__(self):\n        print('ready', flush=True); time.sleep(100)\n"
                     "class Twin:\n    def __dir__(self): os.fork(); return ['one']\nslow, twin = Slow(), Twin()")
        context.send({"op": "inspect", "nonce": "slow", "what": "completion", "code": "slow."})
        answer, sent = celltest.Answer(), []

        def interrupt(context, answer):
            if b"ready" in answer.out and not sent:
                sent.append(context.interrupt())

        context.wait_for(answer, lambda message: message["event"] == "inspected", interrupt)
        self.assertNotIn("matches", answer.done)
        self.assertEqual(context.ask("completion", "twin.")["matches"], ["one"])
        self.assertEqual(context.cell("6 * 7").text, "42")


class Order(PythonTest):
    """Of output and values, for a reader that counts the output that it has read when it reads a value."""

    def arrives(self, descriptor):
        """Waits until the pipe holds something, which stays in it."""
        self.assertTrue(select.select([descriptor], [], [], celltest.PATIENCE)[0])

    def waiting(self, seconds, **named):
        """A driver that waits that long for a reader; one that waits for ever goes on only because somebody has read."""
        text, waits = (DRIVERS / "python.py").read_text(), "\nPATIENCE = 0.2 "
        self.assertEqual(text.count(waits), 1)
        driver = os.path.join(self.directory(), "python.py")
        with open(driver, "w", encoding="utf-8") as file:
            file.write(text.replace(waits, f"\nPATIENCE = {seconds} "))
        return self.python(boot=BOOT.replace(str(DRIVERS / "python.py"), driver), **named)

    def holds_back(self, context, code, first, second):
        """Nothing arrives in the second pipe until the first one is read, and it does then."""
        nonce = context.begin(code)
        self.arrives(first)
        self.assertEqual(select.select([second], [], [], 0.1)[0], [], code)
        read = os.read(first, 1000)
        if first == context.replies:
            context.buffer += read
        self.arrives(second)
        answer = context.finish(nonce)
        self.assertTrue(answer.done["ok"], answer)

    def test_a_value_follows_the_output_before_it(self):
        for shell in ["plain"] + ["ipython"] * has(SYSTEM, "IPython"):
            context = self.waiting(3600, shell=shell)
            context.cell("import ctypes, sys; libc = ctypes.CDLL(None)")
            for code in ("print('before'); display(1)", "print('before'); 2", "libc.printf(b'before'); 3"):
                self.holds_back(context, code, context.out, context.replies)
            code = "print('before', file=sys.stderr); display(4)"
            self.holds_back(context, code, context.err, context.replies)

    def test_output_follows_the_value_before_it(self):
        for shell in ["plain"] + ["ipython"] * has(SYSTEM, "IPython"):
            context = self.waiting(3600, shell=shell)
            self.holds_back(context, "display(1); print('after')", context.replies, context.out)

    def test_nobody_reads(self):
        """One value of a cell waits for a reader that never comes; if each did, the second cell would take minutes."""
        context, mark = self.waiting(1), os.path.join(self.directory(), "mark")
        context.cell("import time")
        for code, values in (("print('x'); display(1)", 1), ("for _i in range(200): print('x'); display(1)", 200)):
            nonce = context.begin(f"_t = time.monotonic()\n{code}\nwaited = time.monotonic() - _t; open({mark!r}, 'w').close()")
            wait_until(lambda: os.path.exists(mark), "the cell has gone on although nobody read")
            os.unlink(mark)
            answer = context.finish(nonce)
            self.assertEqual((len(answer.out), len(answer.results)), (2 * values, values), answer)
            self.assertGreater(float(context.cell("waited").text), 0.9, code)

    def test_a_pipe_of_the_cell_delays_nothing(self):
        context = self.waiting(3600)
        context.cell("import os; r, w = os.pipe(); saved = os.dup(1); os.dup2(w, 1)")
        for _ in range(5):
            context.cell("print('x'); display(1)")
        self.assertEqual(context.cell("os.dup2(saved, 1); len(os.read(r, 1000))").text, "10")

    def test_an_interrupt_ends_the_wait(self):
        context = self.python()
        nonce = context.begin("while True: print('x'); display(1)")
        self.arrives(context.out)
        context.interrupt()
        answer = context.finish(nonce)
        self.assertEqual((answer.error or {}).get("name"), "KeyboardInterrupt", answer)
        self.assertEqual(context.cell("6 * 7").text, "42")

    def test_a_stream_that_shows_values(self):
        context = self.python()
        context.cell("import sys\nclass Shows:\n    def write(self, text): return len(text)\n    def flush(self): display('flushed')\nbefore = sys.stdout")
        answer = context.cell("sys.stdout = Shows()\ndisplay(1)\nsys.stdout = before")
        self.assertEqual([data["text/plain"] for data in answer.shown], ["'flushed'", "1"], answer)


class Interrupts(PythonTest):
    def interrupted(self, context, code, line, everyone=False):
        """The cell prints when it is ready for SIGINT, in the same statement: IPython compiles one after the other."""
        sent = []

        def send(context, answer):
            if not sent and b"ready\n" in answer.out:
                sent.append(True)
                context.interrupt(everyone)

        answer = context.cell(code, send)
        self.assertEqual((answer.error or {}).get("name"), "KeyboardInterrupt", answer)
        self.assertEqual(answer.done["ok"], False)
        self.assertEqual(answer.error["line"], line, answer)
        self.assertEqual(context.cell("kept").text, "42")
        return answer

    def several(self, context):
        context.cell("kept = 42; import time, asyncio, subprocess, threading")
        self.interrupted(context, "\nif True: print('ready'); time.sleep(100)", 2)
        self.interrupted(context, "first = True\nwhile True: first and print('ready'); first = False", 2)
        answer = self.interrupted(context, "\n\nif True: print('ready'); await asyncio.sleep(100)", 3)
        self.assertNotIn("<sbx>", answer.error["traceback"])
        self.interrupted(context, "async def waits():\n    try:\n        print('ready'); await asyncio.sleep(100)\n    finally:\n        print('cleaned')\nawait waits()", 3)
        self.interrupted(context, "\nif True: asyncio.create_task(asyncio.sleep(0)); print('ready'); time.sleep(100)", 2)
        self.interrupted(context, "try:\n    print('ready'); time.sleep(100)\nfinally:\n    print('finally')", 2)
        self.interrupted(context, "\nif True: print('ready'); subprocess.run(['sleep', '100'])", 2, everyone=True)
        self.interrupted(context, "t = threading.Thread(target=lambda: None); t.start()\nif True: print('ready'); threading.Event().wait()", 2)
        self.interrupted(context, "class Slow:\n    def __repr__(self):\n        print('ready'); time.sleep(100)\nSlow()", 3)
        self.interrupted(context, "class Bad(Exception):\n    def __str__(self):\n        print('ready'); time.sleep(100)\nraise Bad", 3)
        self.assertEqual(context.cell("await asyncio.sleep(0, 3)").text, "3")

    def test_state_survives(self):
        self.several(self.python())

    def test_state_survives_under_ipython(self):
        if not has(SYSTEM, "IPython"):
            self.skipTest("python3-ipython is not installed")
        self.several(self.python(shell="ipython"))

    def test_an_interrupt_that_python_drops_comes_again(self):
        """What the callback of a weak reference raises is dropped."""
        for shell in ["plain"] + ["ipython"] * has(SYSTEM, "IPython"):
            context = self.python(shell=shell)
            context.cell("kept = 42\nimport os, signal, time, weakref\nclass Thing: pass\n"
                         "def gone(_):\n    os.kill(os.getpid(), signal.SIGINT)\n    for _ in range(100): pass\n    reached.append(1)")
            answer = context.cell("reached = []; thing = Thing(); reference = weakref.ref(thing, gone)\ndel thing\ntime.sleep(100)")
            self.assertEqual(((answer.error or {}).get("name"), bytes(answer.err)), ("KeyboardInterrupt", b""), answer)
            self.assertEqual(context.cell("kept, reached").text, "(42, [])")

    def test_between_cells_nothing_happens(self):
        context = self.python()
        context.cell("kept = 42")
        for _ in range(20):
            context.interrupt()
            context.ping()
        self.assertEqual(context.cell("kept").text, "42")

    def test_messages_stay_whole(self):
        """Interrupts that arrive while the driver writes."""
        context = self.python()
        context.cell("kept = 42; text = 'x' * 1_000_000")
        for _ in range(30):
            answer = context.cell("for _i in range(3): display(text)", lambda context, _: context.interrupt())
            self.assertLessEqual(len(answer.results), 3)
            self.assertIn(answer.done["ok"], (True, False))
        self.assertEqual(context.cell("kept").text, "42")

    def test_children_of_a_cell_keep_the_default(self):
        context = self.python()
        answer = context.cell("import subprocess\np = subprocess.Popen(['grep', 'SigIgn', '/proc/self/status'], stdout=-1); p.communicate()[0].split()[1][-1:]")
        self.assertIn(int(eval(answer.text), 16) & 2, (0,), answer)

    def test_a_cell_that_blocks_sigint_hurts_itself(self):
        for code in ("signal.signal(signal.SIGINT, signal.SIG_IGN)", "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])",
                     "signal.signal(signal.SIGINT, lambda *_: None)"):
            context, other = self.python(), self.python()
            other.cell("kept = 42")
            context.cell("import signal, time\n" + code)
            context.begin("print('ready')\ntime.sleep(100)")
            context.interrupt()
            with self.assertRaises(AssertionError):
                context.finish("x", patience=0.5)
            context.process.kill()
            with self.assertRaises(Died):
                context.finish("x")
            self.assertEqual(other.cell("kept").text, "42")


class Attacks(PythonTest):
    """What a cell does to its driver changes no answer of another context, and its own as little as possible."""

    def attack(self, code, after="kept", expected="42"):
        """The context answers the attack and the next cell."""
        context = self.python()
        context.cell("kept = 42\nimport os, sys, signal, ctypes, threading")
        answer = context.cell(code)
        self.assertEqual(context.cell(after).text, expected, answer)
        self.assertEqual(context.cell("1/0").error["name"], "ZeroDivisionError")
        return answer

    TRACE = "import os, sys, threading\ndef trace(frame, event, argument):\n    if frame.f_code.co_filename == '<sbx>' and frame.f_code.co_name == '<module>': return entered()\n"

    def test_a_part_of_the_driver_that_was_left_half_way_is_loaded_again(self):
        context = self.python(shell="plain")
        context.cell(self.TRACE + "def line(*_):\n    line.count += 1\n    if line.count > 20: raise ArithmeticError\n    return line\nline.count = 0\ndef entered(): return line")
        context.cell("sys.settrace(trace)")
        self.assertEqual(context.cell("%pwd").error["name"], "ArithmeticError")
        context.cell("sys.settrace(None)")
        self.assertEqual(context.cell("_d = %pwd\n_d == os.getcwd()").text, "True")

    def test_a_child_that_is_forked_while_a_thread_loads_a_part_goes_on(self):
        context = self.python(shell="plain")
        context.cell(self.TRACE + "begun, go = threading.Event(), threading.Event()\ndef entered():\n    begun.set()\n    go.wait()")
        context.cell("def load():\n    sys.settrace(trace)\n    display({'a': 1})\nthread = threading.Thread(target=load)\nthread.start()\n_b = begun.wait()")
        answer = context.cell("pid = os.fork()\nif pid == 0:\n    display({'b': 2})\n    os._exit(7)\nended = os.waitpid(pid, 0)[1]\ngo.set()\nthread.join()\nended >> 8")
        self.assertEqual(answer.text, "7", answer)

    def test_a_file_with_the_name_of_a_module_of_the_drivers(self):
        context = self.python(shell="plain", cwd=self.directory())
        context.cell("_n = open('ast.py', 'w').write('class Node: pass')")
        answer = context.cell("import asyncio\nasync def three(): return 3\nawait asyncio.create_task(three())")
        self.assertEqual(answer.text, "3", answer)

    def test_garbage_on_the_number_of_the_channel(self):
        answer = self.attack("for fd in 3, 4:\n    try: os.write(fd, b'5: no message')\n    except OSError as e: print(e.errno)")
        self.assertEqual(answer.out, b"9\n9\n", answer)
        self.attack("for fd in range(3, 10):\n    try: os.close(fd)\n    except OSError: pass")

    def test_closing_the_event_loop_costs_one_await(self):
        for shell in ["plain"] + ["ipython"] * has(SYSTEM, "IPython"):
            context = self.python(shell=shell)
            context.cell("import asyncio, os\nasync def five(): return 5")
            context.cell("os.closerange(3, 20)")
            self.assertEqual(context.cell("await five()").error["name"], "OSError")
            self.assertEqual(context.cell("files = [os.open('/dev/null', 0) for _i in range(9)]; await five()").text, "5")
            self.assertEqual(context.cell("import gc\n_i = gc.collect()\nlen([os.close(each) for each in files])").text, "9")

    def test_closing_the_channel_ends_the_context(self):
        context, other = self.python(), self.python()
        with self.assertRaises(Died) as ended:
            context.cell("import os; os.closerange(3, 4096)")
        self.assertEqual(ended.exception.status, 1)
        self.assertIn(b"the context ends: OSError", ended.exception.partial.err)
        self.assertEqual(other.cell("1").text, "1")

    def test_a_forked_child_does_not_answer(self):
        for fork in ("os.fork()", "ctypes.CDLL(None).fork()"):
            answer = self.attack(f"pid = {fork}\nprint('child' if pid == 0 else ('parent', os.waitpid(pid, 0)[1]))\ndisplay(1)\n'value'")
            self.assertEqual(sorted(answer.out.split(b"\n")), [b"", b"('parent', 0)", b"child"], answer)
            self.assertEqual(len(answer.results), 2, answer)

    def test_a_forked_child_has_no_channel(self):
        answer = self.attack("pid = os.fork()\nif pid == 0:\n    print([os.readlink(f'/proc/self/fd/{n}')[:4] for n in os.listdir('/proc/self/fd') if int(n) > 9])\n"
                             "    os._exit(0)\n_ = os.waitpid(pid, 0)")
        self.assertEqual(answer.out, b"[]\n", answer)

    def test_a_child_that_outlives_its_cell_does_not_answer(self):
        context = self.python()
        context.cell("import os, time, sys\nr, w = os.pipe()\npid = os.fork()\nif pid == 0:\n    os.read(r, 1)\n    display('child'); print('child', flush=True)")
        answer = context.cell("os.write(w, b'x'); status = os.waitpid(pid, 0)[1]\nstatus")
        self.assertEqual((answer.text, len(answer.results), bytes(answer.out)), ("0", 1, b"child\n"), answer)

    def test_replaced_parts_of_python(self):
        self.attack("sys.stdout = sys.stderr = None")
        self.attack("sys.excepthook = sys.displayhook = lambda *a: 1/0\nsys.displayhook = sys.__displayhook__", "sys.stdout.write('42') and None", None)
        self.attack("import builtins\nfor _n in ('print', 'len', 'isinstance', 'repr', 'str', 'open', 'getattr', 'type'): setattr(builtins, _n, None)",
                    "os.write(1, b'x')", "1")
        self.attack("import json, traceback, linecache\njson.dumps = json.loads = traceback.TracebackException = linecache.getline = None")
        self.attack("os.read = os.write = os.getpid = os._exit = None")
        self.attack("sys.setrecursionlimit(40)")
        self.attack("sys.modules.clear()")
        self.attack("sys.meta_path.clear(); sys.path.clear()")
        self.attack("globals().clear()", "1 + 1", "2")
        self.attack("sys.modules['__main__'] = None")

    def test_process_ends(self):
        other = self.python()
        for code, status in (("os._exit(5)", 5), ("os.kill(os.getpid(), 9)", -signal.SIGKILL), ("ctypes.string_at(0)", -signal.SIGSEGV)):
            context = self.python()
            with self.assertRaises(Died) as ended:
                context.cell("import os, ctypes\n" + code)
            self.assertEqual(ended.exception.status, status)
        self.assertEqual(other.cell("1").text, "1")

    def test_exhausted_descriptors(self):
        answer = self.attack("files = []\nwhile True: files.append(os.open('/dev/null', 0))", "files.clear() or os.closerange(3, 300) or kept")
        self.assertEqual((answer.error["name"], answer.error["value"]), ("OSError", "[Errno 24] Too many open files: '/dev/null'"), answer)

    def test_exhausted_memory(self):
        context = self.python()
        context.cell("kept = 42\nimport resource\nresource.setrlimit(resource.RLIMIT_AS, (400 << 20, -1))")
        self.assertEqual(context.cell("x = bytearray(1 << 40)").error["name"], "MemoryError")
        self.assertEqual(context.cell("x = []\nwhile True: x.append(bytearray(1 << 20))").error["name"], "MemoryError")
        self.assertEqual(context.cell("del x; kept").text, "42")

    def test_an_audit_hook_that_raises(self):
        context, other = self.python(), self.python()
        try:
            answer = context.cell("import sys\ndef hook(*_): raise RuntimeError\nsys.addaudithook(hook)")
            self.assertFalse(context.cell("1").done["ok"], answer)
        except Died:
            pass
        self.assertEqual(other.cell("1").text, "1")

    def test_what_a_cell_shows_is_capped_in_all(self):
        answer = self.attack("for _i in range(30_000): display(_i)")
        self.assertEqual(len(answer.results), 30_000)
        answer = self.attack("for _i in range(120_000): display(_i)")
        self.assertLess(len(answer.results), 85_000)
        self.assertEqual(sum(len(result.get("left_out", ())) for result in answer.results), 1000)


if __name__ == "__main__":
    celltest.main()

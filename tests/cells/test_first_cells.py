#!/usr/bin/env python3
"""Python contexts whose interpreter has IPython: its shell is loaded by the first cell that needs it. Every cell gives what it gives where
the shell is there from the start."""

import json
import os
import re
import unittest

import celltest
from python_table import GROUPS, NEEDS, has
from test_python import SYSTEM, PythonTest, others

IS_LOADED = "print('IPy' 'thon' in __import__('sys').modules)"

# Contexts, as the cells that run in them in this order. None of these cells needs the shell.
WITHOUT_IT = {
    "values": ["1 + 1", "'text'", "b'\\xff'", "1.5", "2 + 3j", "None", "True", "Ellipsis", "NotImplemented", "float('nan')", "10 ** 5000", "'l' * 300", "'a\\nb'", "7;", "7; # why",
               "x = 8; x", "(1,)", "[]", "{}", "set()", "{3, 1, 2}", "frozenset('cab')", "list(range(60))", "list(range(3000))", "dict.fromkeys(range(40), 'value')", "[[1, [2, [3]]]] * 30",
               "a = [1]; a.append(a); a", "d = {}; d['d'] = d; d", "range(5)", "slice(1, 2)", "int", "len", "lambda x, y=2: x", "print", "Exception", "ValueError('v')", "OSError(2, 'gone')",
               "import collections, datetime, decimal, fractions, enum, dataclasses, types, re, pathlib, uuid\ncollections.OrderedDict(a=1)", "collections.Counter('hello')",
               "collections.defaultdict(list, k=[1])", "collections.deque([1, 2], 3)", "collections.ChainMap({1: 2}, {3: 4})", "collections.namedtuple('P', 'x y')(1, [2] * 40)",
               "datetime.datetime(2020, 1, 2), datetime.timedelta(days=1)", "decimal.Decimal('1.10'), fractions.Fraction(1, 3)", "enum.Enum('Color', 'RED').RED", "types.SimpleNamespace(a=1, b='x' * 90)",
               "types.MappingProxyType({1: 2})", "re.compile('a+', re.I)", "pathlib.PurePosixPath('/a')", "collections", "type", "super", "iter([1])", "(i for i in [1])", "object.__repr__",
               "[].append", "str.upper", "memoryview(b'x')[0]", "bytearray(b'ab')", "dataclasses.make_dataclass('D', ['a'])(5)", "type('Späte', (), {})", "{'b': 1, 'a': {2: [3] * 50}}", "'é中😀', '\\ud800'",
               "class Own:\n    def __repr__(self): return 'first\\nsecond\\n'\nOwn()", "[Own(), Own()]", "class Listed(list): pass\nListed([1])", "class Silent: pass\ntype(Silent()).__name__, Silent",
               "class Bad:\n    def __repr__(self): raise ValueError('bad')\nBad()", "[Bad()]", "{1: Bad()}", "class Number:\n    def __repr__(self): return 5\n(Number(),)",
               "class Recurses:\n    def __repr__(self): return repr(self)\nRecurses()"],
    "history": ["1", "_", "_ + 1", "_, __, ___", "_1", "'two'; 'three'", "In", "Out", "sorted(Out)", "_i, _ii, _iii", "_i1, _i3", "In[-1]", "Out[1]", "_oh is Out, _ih is In, Out", "x = 5", "_", "x;", "_",
                "None", "_", "for _ in range(3): pass\n_", "4", "_", "_, __", "del _\n5", "6", "_", "Out.clear()", "9", "Out", "1 / 0", "In[-2:]", "import gettext; gettext.NullTranslations().install()", "_('text')",
                "11", "_('text')", "_35", "sorted(globals())", "sorted(n for n in dir() if n[0] != '_')", "len(vars())", "display(1)", "_", "print('no value')", "_", "\n\n12\n", "In[-1]", "   ", "", "# comment", "In[-1]",
                "In = 3; Out = 4", "13", "In, Out, _oh[52]"],
    "output": ["import sys, os", "print('out'); print('err', file=sys.stderr)", "sys.stdout.write('no end')", "os.write(1, b'raw\\n')", "os.system('echo child')", "print('a'); display('b'); print('c'); 'd'",
               "input()", "input('prompt ')", "sys.stdin.read()", "print('\\ud800')", "sys.displayhook = print\n5", "6", "sys.displayhook = print\n7;", "sys.displayhook = print\nx = 7", "sys.displayhook(8)", "sys.displayhook(None)",
               "sys.ps1, sys.ps2, sys.argv, sys.flags.interactive", "__name__, __builtins__ is __import__('builtins'), '__file__' in globals()", "exit, quit", "open", "repr(open('/dev/null').fileno() > 2)",
               "class Loud:\n    def write(self, text): os.write(1, text.upper().encode())\n    def flush(self): os.write(1, b'.')\nbefore, sys.stdout = sys.stdout, Loud()\nprint('x')\n9", "sys.stdout = before\n10"],
    "ends": ["import sys", "sys.exit()", "sys.exit(3)", "sys.exit('words')", "raise SystemExit([1])", "exit()", "quit(4)", "exit", "print('before'); sys.exit(0); print('after')", "1; sys.exit(5)", "In[-2:]", "'lives'",
             "def leaves():\n    exit(7)\nleaves()", "import atexit; atexit.register(print, 'at the end');", "raise KeyboardInterrupt", "raise GeneratorExit"],
    "errors": ["1 / 0", "def f(n):\n    return 1 / n\n\ndef g(n):\n    return f(n)\n\ng(0)", "try:\n    g(0)\nexcept ZeroDivisionError as e:\n    raise ValueError('outer') from e",
               "try:\n    {}['k']\nexcept KeyError:\n    [][1]", "try:\n    g(0)\nexcept Exception:\n    raise TypeError('alone') from None", "class Own(Exception):\n    def __str__(self): raise RuntimeError('no words')\nraise Own",
               "raise type('Späte', (Exception,), {})('é')", "def deep(): deep()\ndeep()", "import sys; sys.last_value, sys.last_type", "print('first'); 2; None.x", "lambda: (yield)", "eval('1 +')", "exec('raise ValueError(3)')",
               "int('x')", "import json; json.loads('{')", "import no_such_module", "from os import no_such_name", "sum(n / 0 for n in [1])", "[n for n in None]", "class C:\n    x = 1 / 0", "assert False, ('a', 1)",
               "import warnings\nwarnings.warn('careful')", "for _i in range(3): warnings.warn('once')", "warnings.warn('old', DeprecationWarning)", "warnings.warn('later', PendingDeprecationWarning)", "x = 5\nx is 5",
               "'\\d'", "warnings.simplefilter('error')\nwarnings.warn('raised')", "warnings.resetwarnings()", "import re\nwarnings.warn_explicit('of a library', UserWarning, 're.py', 1)",
               "import threading\nt = threading.Thread(target=g, args=(0,), name='T'); t.start(); t.join()", "class Del:\n    def __del__(self): raise ValueError('unraisable')\nx = Del(); del x",
               "import inspect\ninspect.getsource(g)", "import traceback\ntry:\n    g(0)\nexcept ZeroDivisionError:\n    traceback.print_exc()", "raise OSError(2, 'gone', '/x')", "raise StopIteration(5)", "1/0;"],
    "rich": ["class Rich:\n    def __init__(self, **forms): vars(self).update((name, (lambda form: lambda **_: form)(form)) for name, form in forms.items())\n    def __repr__(self): return 'rich'",
             "Rich(_repr_html_='<b>')", "Rich(_repr_html_='<b>', _repr_png_=b'\\x89PNG', _repr_latex_='$', _repr_json_=[1], _repr_markdown_='#', _repr_svg_='<svg/>', _repr_javascript_='1', _repr_pdf_=b'%PDF', _repr_jpeg_=b'j')",
             "Rich(_repr_html_=5)", "Rich(_repr_png_=5, _repr_json_='{\"a\": 1}')", "Rich(_repr_json_=3)", "Rich(_repr_html_=('<i>', {'m': 1}))", "Rich(_repr_html_=(1, 2, 3))", "Rich(_repr_mimebundle_={'a/b': '1', 'text/html': '<u>'})",
             "Rich(_repr_mimebundle_=({'text/plain': 'own'}, {}), _repr_html_='<p>')", "Rich(_repr_mimebundle_=4)", "Rich(_repr_mimebundle_=None)", "Rich(_repr_html_=None)",
             "class Fails:\n    def _repr_html_(self): raise KeyError('k')\n    def _repr_png_(self): raise NotImplementedError\n    def _repr_mimebundle_(self, **_): raise OSError('m')\n    def __repr__(self): return 'fails'\nFails()",
             "class Pretty:\n    def _repr_pretty_(self, p, cycle):\n        with p.group(2, 'P(', ')'):\n            p.pretty(list(range(30))); p.breakable(); p.text('end')\nPretty()", "[Pretty()]",
             "class Unpretty:\n    def _repr_pretty_(self, p, cycle): raise ValueError('p')\n    def __repr__(self): return 'u'\nUnpretty()",
             "class Shows:\n    def _ipython_display_(self): print('shown')\nShows()", "display(Shows())", "_", "class Declines:\n    def _ipython_display_(self): raise NotImplementedError\n    def __repr__(self): return 'd'\nDeclines()",
             "class Breaks:\n    def _ipython_display_(self): raise ValueError('b')\n    def __repr__(self): return 'b'\nBreaks()", "class OfClass:\n    @classmethod\n    def _repr_html_(cls): return '<c>'\nOfClass",
             "display(1, 'two', [3])", "display(Rich(_repr_html_='<b>'), include=['text/html'])", "display(Rich(_repr_html_='<b>'), exclude=['text/plain'])", "display({'text/html': '<raw>'}, raw=True)", "display()",
             "h = display(1, display_id='mine')\nh", "h.update(2)", "h.display(3)", "display(4, display_id=True).display_id == h.display_id", "display(5, clear=True)", "[Rich(_repr_html_='no')]", "from unittest.mock import MagicMock, Mock\nMock(name='m')",
             "print(*map(display, [1, 2]))", "for i in range(3): display(i); print(i)"],
    "async": ["import asyncio", "await asyncio.sleep(0, 'slept')", "x = await asyncio.sleep(0, 5)\nprint(x)\nx + 1", "async def fails():\n    await asyncio.sleep(0)\n    1 / 0\nawait fails()",
              "async for i in __import__('types').coroutine(lambda: (yield)) if False else (j async for j in agen()): print(i)", "async def agen():\n    for i in range(3): yield i\n[i async for i in agen()]",
              "async with asyncio.Lock() as lock: print('locked')", "async def ran(): return 'ran'\nasyncio.run(ran())", "asyncio.run(ran())\nawait ran()", "asyncio.get_running_loop().is_running()", "t = asyncio.create_task(ran())", "await t",
              "asyncio.get_event_loop().run_until_complete(ran())", "coroutine = ran()\nawait coroutine", "await asyncio.gather(ran(), ran())", "await asyncio.wait_for(asyncio.sleep(10), 0.001)", "await asyncio.sleep(0);", "_", "await 5",
              "def plain():\n    asyncio.get_running_loop()\nplain()", "print('before')\nawait asyncio.sleep(0)\n1 / 0", "raise asyncio.CancelledError"],
    "names": ["x: int = 5", "é = 1\né", "class A:\n    x = 1\nA.x", "def f(a: 'A') -> None: 'what f does'", "f.__doc__, f.__module__, A.__module__", "'a module docstring'\ny = 1", "__doc__", "from __future__ import annotations",
              "def g(x: Missing): ...\ng.__annotations__", "import pickle\npickle.loads(pickle.dumps(A)) is A", "import multiprocessing\ndef double(n): return 2 * n\nwith multiprocessing.get_context('spawn').Pool(1) as p: r = p.map(double, [4])\nr",
              "import sys\nsys.modules['__main__'].__dict__ is globals()", "globals()['new'] = 3\nnew", "del new", "x, y = 1, 2\nx, y", "(z := 4)", "if True:\n\tw = 8\nw", "x = 1\r\nx\r\n", "lines = '''a\n  !b\n%c\n'''; lines", "await_ = 1; await_",
              "sorted(set(vars(__import__('builtins'))) - {'_'})", "'_' in vars(__import__('builtins'))", "[line for line in __import__('linecache').getlines('<cell 1>')]"],
}

# What each of these cells needs is in IPython's shell.
WITH_IT = ["!echo hi", "lines = !echo a\nlines", "%pwd", "%%bash\necho b", "x?", "?len", "%timeit -n 1 -r 1 -q pass", "get_ipython().run_line_magic('lsmagic', '') is not None", "ls no_such_file", "ls -l no_such_file", "pwd;", "_dh",
           "import IPython", "from IPython.display import HTML\nHTML('<b>')", ">>> 5", ">>> x = 1\n>>> x", "In [1]: 6", "  x = 7\n  x", "1 +", "def f(:", "return 5", "print(1)\nreturn 2", "f(", "'''open", "x = = 1", "if True:\nx", "no_such_name",
           "break", "await = 5", "x = 1\n\ty = 2", "\"\0\"", "%nosuchmagic", "%%nosuchmagic\nx", "%time 1 + 1;", "a = %pwd\ntype(a)", "__import__('importlib').import_module('IPy' 'thon.display').HTML('<i>')"]

# Cells before and after the one that loads it: state, history and displays go over.
BEFORE = ["import sys, asyncio\nkept = 42; __builtins__.kept_too = 1", "1", "'two'", "from __future__ import annotations", "h = display('shown', display_id='d')", "x = [1, 2]; x", "inputs, outputs = In, Out", "for _ in 'ab': pass", "t = asyncio.ensure_future(asyncio.sleep(0, 'task'))",
          "1 / 0", "def early(): return get_ipython() is not None"]
AFTER = ["kept, x, kept_too", "_, __, ___", "_2, _3", "Out", "In[-3:]", "_i, _ii, _iii", "_i2", "inputs is In, outputs is Out, In is _ih, Out is _oh", "def g(x: Missing): ...\ng.__annotations__", "h.update('again')", "h", "await t", "early()", "%who", "8", "_",
         "sorted(globals())", "1 / 0", "import traceback; traceback.print_exception(sys.last_value)", "import multiprocessing\nwith multiprocessing.get_context('fork').Pool(1) as p: r = p.map(abs, [-1])\nr", "%history -n 1-3", "Out.clear()\n9", "_oh", "open('/dev/null').fileno() > 2"]


def normal(answer):
    """What a cell gave, without what differs from process to process."""
    for each in answer.results + answer.errors + answer.others + [answer.done]:
        each.pop("nonce", None)
    text = json.dumps({"out": answer.out.decode("utf-8", "replace"), "err": answer.err.decode("utf-8", "replace"), "results": answer.results, "errors": answer.errors,
                       "done": answer.done, "others": answer.others}, indent=1, ensure_ascii=False)
    text = re.sub(r"0x[0-9a-f]{6,}|id='[0-9]+'|\b[0-9a-f]{32}\b|repeated \d+ more times|seed \d+", "0x", text)
    text = re.sub(r"[\d.]+(e[+-]\d+)? (ns|µs|us|ms|s)\b", "TIME", text)
    # %time says how long Python's parser and compiler took only where that is more than 0.1 s.
    return re.sub(r"(Compiler|Parser) *: TIME\\n", "", text)


class EitherWay(PythonTest):
    maxDiff = None
    interpreter = SYSTEM

    def setUp(self):
        if not has(self.interpreter, "IPython"):
            self.skipTest(f"{self.interpreter} has no IPython")

    def contexts(self):
        """(its shell is loaded when it is needed, from the start)"""
        directory = self.directory()
        made = [self.python(self.interpreter, "ipython", env={"HOME": directory, **env}, cwd=directory) for env in ({}, {"SBX_CELL_SHELL": "ipython"})]
        return *made, directory

    def same(self, cells, contexts):
        answers = []
        for code in cells:
            first, second = (normal(context.cell(code)) for context in contexts)
            self.assertEqual(first, second, code)
            answers.append(first)
        return answers

    def are_loaded(self, contexts):
        return [bytes(context.cell(IS_LOADED).out) == b"True\n" for context in contexts]

    def test_cells_that_do_not_need_it(self):
        for name, cells in WITHOUT_IT.items():
            with self.subTest(name):
                *contexts, _ = self.contexts()
                self.same(cells, contexts)
                self.assertEqual(self.are_loaded(contexts), [False, True])

    def test_cells_that_need_it(self):
        directory = self.directory()
        there = self.python(self.interpreter, "ipython", env={"HOME": directory, "SBX_CELL_SHELL": "ipython"}, cwd=directory)
        for code in WITH_IT:
            with self.subTest(code):
                context = self.python(self.interpreter, "ipython", env={"HOME": directory}, cwd=directory)
                self.assertEqual(self.are_loaded([context]), [False])
                context.count = there.count
                self.same([code], [context, there])
                self.assertEqual(self.are_loaded([context]), [True])
                context.close()

    def test_what_cells_made_goes_over(self):
        for loads in ("!echo loads", "early()", "__import__('importlib').import_module('IPy' 'thon')\n'value'", "def f(:"):
            with self.subTest(loads):
                *contexts, _ = self.contexts()
                self.same([*BEFORE, loads, *AFTER], contexts)

    def test_a_library_loads_it(self):
        """A module that a cell imports asks for the shell in ways of its own."""
        for source, value in (("from IPython import get_ipython\nfound = get_ipython() is not None", "True"), ("import IPython.display as d\nd.display('of the library')\nfound = 1", "1"),
                              ("try:\n    get_ipython\n    found = 'builtin'\nexcept NameError:\n    found = 'none'", "'builtin'"), ("found = get_ipython().__class__.__name__", "'Shell'")):
            with self.subTest(source):
                *contexts, directory = self.contexts()
                with open(os.path.join(directory, "library.py"), "w", encoding="utf-8") as file:
                    file.write(source)
                answers = self.same(["7", "import library\nlibrary.found", "_", "display(_1); 'end'", "Out"], contexts)
                self.assertIn(json.dumps(value), answers[1])

    def test_rows_of_the_table(self):
        for group in ("values", "rich", "async", "errors", "figures", "data"):
            if all(has(self.interpreter, module) for module in NEEDS.get(group, ())):
                with self.subTest(group):
                    *contexts, _ = self.contexts()
                    self.same([row.code for row in GROUPS[group] if not row.left_out and "10_000_000" not in row.code], contexts)

    def test_an_interrupt_while_it_is_loaded(self):
        """It is loaded by a later cell, however far it was."""
        for name in ("'trait' 'lets'", "'IPy' 'thon.core.debugger'"):
            with self.subTest(name):
                first, _, _ = self.contexts()
                first.cell("kept = 42\nimport os, signal, sys\nclass Interrupts:\n    def find_spec(self, name, path=None, target=None):\n"
                           f"        if name == {name}: sys.meta_path.remove(self); os.kill(os.getpid(), signal.SIGINT)\nsys.meta_path.insert(0, Interrupts())")
                self.assertEqual(first.cell("!echo loads").error["name"], "KeyboardInterrupt")
                self.assertEqual(first.cell("kept, _, Out").text, "(42, '', {})")
                answer = first.cell("!echo loads")
                self.assertEqual((bytes(answer.out), bytes(answer.err)), (b"loads\n", b""))
                self.assertEqual(first.cell("kept").text, "42")

    def test_one_that_is_broken(self):
        """Cells go on in the driver's own shell, with what they had."""
        first, _, _ = self.contexts()
        first.cell("kept = 42\nimport sys\nsys.modules['trait' 'lets'] = None")
        answer = first.cell("!echo goes on")
        self.assertEqual(bytes(answer.out), b"goes on\n", answer)
        self.assertRegex(answer.err.decode(), r"\Asbx: IPython is not usable: .*traitlets.*\n\Z")
        answer = first.cell("%pwd\nkept")
        self.assertEqual((answer.text, bytes(answer.err)), ("42", b""), answer)
        self.assertEqual(first.cell("import IPython").done["ok"], False)


class EitherWayElsewhere(unittest.TestCase):
    def test_every_version(self):
        found = [interpreter for interpreter in others() if has(interpreter, "IPython")]
        if not found:
            self.skipTest("no IPython besides Debian's")
        for interpreter in found:
            for name in unittest.defaultTestLoader.getTestCaseNames(EitherWay):
                with self.subTest(interpreter, name=name):
                    test = EitherWay(name)
                    test.interpreter = interpreter
                    result = unittest.TestResult()
                    test.run(result)
                    self.assertEqual([text for _, text in result.failures + result.errors], [])


if __name__ == "__main__":
    celltest.main()

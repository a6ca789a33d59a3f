"""Cells of Python with what each must give, by group. The rows of a group run in one context, in order.

After each row the context must still know `kept = 42`. A row says:
  out, err   standard output and error: the exact text, or a pattern that matches all of it
  main       the main result: its text/plain, beside which a dict or list may have its JSON, or {MIME type: value}; None means that there is none
  shown      the other results, as a list
  error      (name, value) of the error, and line, its line in the cell
  holds      texts that the traceback contains; lacks: texts that it does not contain
  exit       the exit code of SystemExit
  ipython    (reason, {what is different under IPython's shell})
  sandbox    (reason, {what is different in a session})
  cut        the bytes that the cell wrote to standard output, where a session keeps only a part of them; cut_err: to standard error
  needs      modules; since: the first Python that has this
A value may be a function that says whether it is right. `<cell @>` is the name of the row's own cell."""

import functools
import re
import subprocess

from celltest import is_png

ANY = lambda _: True  # noqa: E731
TABLE = "application/vnd.sbx.table+json"
png = {"image/png": is_png}


def pattern(text):
    return re.compile(text, re.DOTALL)


class Row:
    def __init__(self, code, main=None, out="", err="", shown=(), error=None, line=None, holds=(), lacks=(), exit=None, ipython=None, needs=(), since=(3, 8),
                 left_out=None, sandbox=None, cut=None, cut_err=None):
        self.code, self.main, self.out, self.err, self.shown = code, main, out, err, shown
        self.error, self.line, self.holds, self.lacks, self.exit = error, line, holds, lacks, exit
        self.needs, self.since, self.left_out = needs, since, left_out
        self.ipython, self.sandbox, self.cut, self.cut_err = ipython, sandbox, cut, cut_err

    def under(self, shell, sandboxed=False):
        row = self
        for applies, difference in ((shell == "ipython", self.ipython), (sandboxed, self.sandbox)):
            if applies and difference is not None:
                reason, changes = difference
                assert reason
                row = Row(**{**vars(row), **changes})
        return row


def as_json(value):
    return {"text/plain": ANY, "application/json": value}


only_text = {"text/plain": ANY}


def plain_and(**forms):
    return {"text/plain": ANY, **forms}


VALUES = [
    Row("1 + 1", main="2"),
    Row("'a text'", main="'a text'"),
    Row("None"),
    Row("_x = 5"),
    Row("_x", main="5"),
    Row("1 + 1;"),
    Row("1 + 1;  # a comment"),
    Row("(1 +\n 1)  # twice ; here", main="2"),
    Row("'a;b'", main="'a;b'"),
    Row("x = 3; x", main="3"),
    Row("_", main="3"),
    Row("# only a comment"),
    Row(""),
    Row("   \n\n"),
    Row("1\n2\n3", main="3"),
    Row("print('one'); 2", out="one\n", main="2"),
    Row("for i in range(3):\n    i"),
    Row("if True:\n    7"),
    Row("def f(a, b=2):\n    'docstring'\n    return a * b"),
    Row("f(21)", main="42"),
    Row("lambda: 1", main=pattern(r"<function <lambda> at 0x[0-9a-f]+>|<function __main__\.<lambda>\(\)>")),
    Row("int", main="<class 'int'>", ipython=("its pretty printer gives a class its name", {"main": "int"})),
    Row("'\\u00e9\\u4e2d\\U0001f600'", main="'é中😀'"),
    Row("print('é中😀')", out="é中😀\n"),
    Row("é = 1\né", main="1"),
    Row("'\\ud800'", main="'\\ud800'"),
    Row("b'\\x00\\xff'", main="b'\\x00\\xff'"),
    Row("class Bare:\n    def __repr__(self):\n        return 'half \\ud800 of a pair'\nBare()", main="half � of a pair"),
    Row("[i ** 2 for i in range(4)]", main=as_json([0, 1, 4, 9])),
    Row("{'a': [1, 2.5, None, True, 'é'], 'b': {}, 'c': []}", main=as_json({"a": [1, 2.5, None, True, "é"], "b": {}, "c": []})),
    Row("[]", main=as_json([])),
    Row("[2 ** 53, -2 ** 53, -0.5, 1e-300]", main=as_json([2 ** 53, -2 ** 53, -0.5, 1e-300])),
    Row("[2 ** 53 + 1]", main=only_text),
    Row("[float('nan')], [float('inf')]", main=only_text),
    Row("[float('nan')]", main=only_text),
    Row("[float('-inf')]", main=only_text),
    Row("{1: 2}", main=only_text),
    Row("[(1, 2)]", main=only_text),
    Row("(1, 2)", main=only_text),
    Row("[{1, 2}]", main=only_text),
    Row("[b'x']", main=only_text),
    Row("['\\ud800']", main=only_text),
    Row("[1j]", main=only_text),
    Row("class Dict(dict): pass\nDict(a=1)", main=only_text),
    Row("class Text(str): pass\n[Text('a')]", main=only_text),
    Row("class Whole(int): pass\n{'a': Whole(1)}", main=only_text),
    Row("around = []; around.append(around); around", main=only_text),
    Row("deep = []\nfor _i in range(49): deep = [deep]\ndeep", main=as_json(ANY)),
    Row("[deep]", main=only_text),
    Row("[0] * 32_000", main=as_json([0] * 32_000)),
    Row("[0] * 33_000", main=only_text),
    Row("['x' * 300_000]", main=only_text),
    Row("['é' * 100_000]", main=as_json(["é" * 100_000])),
    Row("['é' * 140_000]", main=only_text),
    Row("{'k' * 300_000: 1}", main=only_text),
    Row("display([1], {'a': 2})", shown=[as_json([1]), as_json({"a": 2})]),
    Row("display([1], include=['text/plain'])", shown=[{"text/plain": "[1]"}]),
    Row("import json\njson.loads('[1, {\"a\": null}]')", main=as_json([1, {"a": None}])),
    Row("{'b': 1, 'a': [1, {2}]}", main="{'b': 1, 'a': [1, {2}]}"),
    Row("list(range(40))", main=repr(list(range(40))), ipython=("its pretty printer breaks long containers", {"main": "[" + ",\n ".join(map(str, range(40))) + "]"})),
    Row("a = b = 4\na, b", main="(4, 4)"),
    Row("(n := 9)", main="9"),
    Row("n", main="9"),
    Row("del n\n'n' in globals()", main="False"),
    Row("__name__", main="'__main__'"),
    Row("import sys\nsys.modules['__main__'].__dict__ is globals()", main="True"),
    Row("sys.argv", main="['']"),
    Row("'__file__' in globals(), sys.path[0]", main="(False, '')"),
    Row("from __future__ import annotations"),
    Row("def g(x: Missing) -> None: ...\ng.__annotations__['x']", main="'Missing'"),
    Row("x: int = 5\n__annotations__", main="{'x': 'int'}", ipython=("it runs each statement as a module of its own", {"main": ANY})),
    Row("def counts():\n    yield 1\n    yield 2\nlist(counts())", main="[1, 2]"),
    Row("next(iter([]), 'nothing')", main="'nothing'"),
    Row("match 3:\n    case 3: found = 'three'\nfound", main="'three'", since=(3, 10)),
    Row("type X = int\nX.__value__", main="<class 'int'>", since=(3, 12), ipython=("its pretty printer", {"main": "int"})),
    Row("exit", main="Use exit() to end the cell"),
    Row("x = 1\r\nx\r\n", main="1"),
    Row("if True:\n\tx = 8\nx", main="8"),
    Row("'%s' % 3", main="'3'"),
    Row("x = [1,\n2\n]\nx [0]", main="1"),
    Row('"""a\n!text\n%lines\n"""', main="'a\\n!text\\n%lines\\n'"),
]

STREAMS = [
    Row("import sys, os, subprocess"),
    Row("print('out'); print('err', file=sys.stderr)", out="out\n", err="err\n"),
    Row("print('no line end', end='')", out="no line end"),
    Row("sys.stdout.write('x')", out="x", main="1"),
    Row("os.write(1, b'raw')", out="raw", main="3"),
    Row("subprocess.run(['echo', 'child']).returncode", out="child\n", main="0"),
    Row("print('1', end=''); subprocess.run('echo 2; echo 3 >&2', shell=True); print('4')", out="12\n4\n", err="3\n"),
    Row("os.system('echo system')", out="system\n", main="0"),
    Row("subprocess.run(['sh', '-c', 'exit 3'], check=True)", error=("CalledProcessError", ANY), line=1),
    Row("sys.stdout.buffer.write(bytes([0, 255, 10]))", out=b"\x00\xff\n", main="3"),
    Row("print('\\x1b[31mred\\x1b[0m')", out="\x1b[31mred\x1b[0m\n"),
    Row("print('a\\0b')", out="a\0b\n"),
    Row("print('\\udcff')", out=b"\xff\n"),
    Row("print('\\ud800')", error=("UnicodeEncodeError", ANY), line=1),
    Row("import io, contextlib\nwith contextlib.redirect_stdout(io.StringIO()) as text:\n    print('kept')\ntext.getvalue()", main="'kept\\n'"),
    Row("print('x' * 100_000_000)", out=lambda out: len(out) == 100_000_001,
        sandbox=("the record keeps what output.stdout allows and counts all", {"out": lambda out: 900_000 < len(out) < 1_100_000, "cut": 100_000_001})),
    Row("print('e' * 3_000_000, file=sys.stderr)", err=lambda err: len(err) == 3_000_001,
        sandbox=("the record keeps what output.stderr allows and counts all", {"err": lambda err: 900_000 < len(err) < 1_100_000, "cut_err": 3_000_001})),
    Row("input()", error=("EOFError", "EOF when reading a line"), line=1),
    Row("input('name? ')", out="name? ", error=("EOFError", ANY), line=1),
    Row("sys.stdin.read()", main="''"),
    Row("import ctypes\nlibc = ctypes.CDLL(None)\nlibc.printf(b'from C\\n')", out="from C\n", main="7"),
    Row("libc.puts(b'again'); print('python')", out=lambda out: sorted(out.split()) == [b"again", b"python"]),
    Row("class Loud:\n    def write(self, text): os.write(1, text.upper().encode()); return len(text)\n    def flush(self): pass\n"
        "before, sys.stdout = sys.stdout, Loud()\nprint('loud')", out="LOUD\n"),
    Row("print('still')\nsys.stdout = before", out="STILL\n"),
    Row("print('back')", out="back\n"),
    Row("class Broken:\n    def flush(self): raise ValueError('no')\n    def write(self, text): raise ValueError('no')\nsys.stdout = Broken()\nprint(1)",
        error=("ValueError", "no"), line=3),
    Row("sys.stdout = before"),
    Row("sys.stdout.close()", ipython=("its display hook flushes this stream", {"error": None})),
    Row("print('reopened')", out="reopened\n"),
    Row("sys.displayhook = print\n5", out="5\n"),
    Row("sys.displayhook = sys.__displayhook__\n6", out="6\n"),
]

RICH = [
    Row("class Rich:\n    def __init__(self, **forms): self.forms = forms\n    def __getattr__(self, name):\n"
        "        if name.startswith('_repr_') and name in self.__dict__.get('forms', {}): return lambda *a, **n: self.forms[name]\n        raise AttributeError(name)\n"
        "    def __repr__(self): return 'rich'"),
    Row("Rich(_repr_html_='<b>1</b>')", main={"text/plain": "rich", "text/html": "<b>1</b>"}),
    Row("Rich(_repr_markdown_='# 1')", main={"text/plain": "rich", "text/markdown": "# 1"}),
    Row("Rich(_repr_latex_='$x$')", main={"text/plain": "rich", "text/latex": "$x$"}),
    Row("Rich(_repr_svg_='<svg/>')", main={"text/plain": "rich", "image/svg+xml": "<svg/>"}),
    Row("Rich(_repr_png_=b'\\x89PNG\\r\\n')", main={"text/plain": "rich", "image/png": lambda text: text.strip() == "iVBORw0K"}),
    Row("Rich(_repr_jpeg_=b'\\xff\\xd8')", main={"text/plain": "rich", "image/jpeg": lambda text: text.strip() == "/9g="}),
    Row("Rich(_repr_pdf_=b'%PDF-')", main={"text/plain": "rich", "application/pdf": lambda text: text.strip() == "JVBERi0="}),
    Row("Rich(_repr_json_={'a': [1, None, 2.5]})", main={"text/plain": "rich", "application/json": {"a": [1, None, 2.5]}}),
    Row("Rich(_repr_json_={'a': float('nan'), 3: (1,)})", main={"text/plain": "rich", "application/json": {"a": None, "3": [1]}}),
    Row("Rich(_repr_javascript_='1')", main={"text/plain": "rich", "application/javascript": "1"}),
    Row("Rich(_repr_html_='<i>', _repr_latex_='$')", main={"text/plain": "rich", "text/html": "<i>", "text/latex": "$"}),
    Row("Rich(_repr_html_=None)", main="rich"),
    Row("Rich(_repr_png_=(b'\\x89PNG\\r\\n', {'width': 3}))", main={"text/plain": "rich", "image/png": ANY}),
    Row("Rich(_repr_mimebundle_={'text/plain': 'own', 'application/x.own+json': {'k': 1}})", main={"text/plain": "own", "application/x.own+json": {"k": 1}}),
    Row("Rich(_repr_mimebundle_=({'text/html': '<u>'}, {}))", main={"text/plain": "rich", "text/html": "<u>"}),
    Row("class Pretty:\n    def _repr_pretty_(self, printer, cycle): printer.text('pretty')\n    def __repr__(self): return 'plain'\nPretty()", main="pretty"),
    Row("class Tree:\n    def __init__(self, *below): self.below = below\n    def _repr_pretty_(self, p, cycle):\n        with p.group(1, 'Tree(', ')'):\n"
        "            for at, each in enumerate(self.below):\n                if at:\n                    p.text(',')\n                    p.breakable()\n                p.pretty(each)\n"
        "Tree(1, Tree('two'))", main="Tree(1, Tree('two'))"),
    Row("class Lines:\n    def _repr_pretty_(self, p, cycle):\n        if cycle: return p.text('itself')\n        with p.indent(2):\n            p.text('lines:')\n            p.break_()\n"
        "            p.pretty(self)\nLines()", main="lines:\n  itself"),
    Row("class Fails:\n    def _repr_pretty_(self, p, cycle): raise ValueError('not pretty')\n    def __repr__(self): return 'as ever'\nFails()", main="as ever",
        err=pattern("sbx: .*_repr_pretty_.*ValueError: not pretty\n"), ipython=("its shell shows the whole traceback", {"main": ANY, "err": ANY})),
    Row("Rich", main=pattern(r"<class '__main__\.Rich'>|__main__\.Rich")),
    Row("display(Rich(_repr_html_='<p>')); 3", shown=[{"text/plain": "rich", "text/html": "<p>"}], main="3"),
    Row("display(1, 'two')", shown=[{"text/plain": "1"}, {"text/plain": "'two'"}]),
    Row("display({'text/html': '<raw>'}, raw=True)", shown=[{"text/html": "<raw>"}]),
    Row("display(Rich(_repr_html_='<p>'), exclude=['text/html'])", shown=[{"text/plain": "rich"}]),
    Row("display(Rich(_repr_html_='<p>'), include=['text/html'])", shown=[{"text/html": "<p>"}]),
    Row("h = display(1, display_id=True)\nh.update(2)", shown=[{"text/plain": "1"}, {"text/plain": "2"}],
        sandbox=("an update takes the place of what it updates", {"shown": [{"text/plain": "2"}]})),
    Row("class Self:\n    def _ipython_display_(self): print('myself')\nSelf()", out="myself\n"),
    Row("from IPython.display import HTML, Markdown, Image, JSON, SVG, Latex, display as show, clear_output"),
    Row("HTML('<b>x</b>')", main={"text/plain": "<IPython.core.display.HTML object>", "text/html": "<b>x</b>"}),
    Row("Markdown('*x*')", main={"text/plain": "<IPython.core.display.Markdown object>", "text/markdown": "*x*"}),
    Row("JSON({'a': 1})", main={"text/plain": "<IPython.core.display.JSON object>", "application/json": {"a": 1}}),
    Row("SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>')", main={"text/plain": "<IPython.core.display.SVG object>", "image/svg+xml": pattern("<svg.*")}),
    Row("Latex('$y$')", main={"text/plain": "<IPython.core.display.Latex object>", "text/latex": "$y$"}),
    Row("import base64\npixel = base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==')\n"
        "Image(pixel)", main={"text/plain": "<IPython.core.display.Image object>", "image/png": is_png}),
    Row("show(HTML('<hr>')); clear_output()", shown=[{"text/plain": ANY, "text/html": "<hr>"}]),
    Row("class Raises:\n    def __repr__(self): raise ValueError('no repr')\nRaises()", main="<unprintable Raises object: ValueError: no repr>"),
    Row("[Raises()]", main="<unprintable list object: ValueError: no repr>"),
    Row("class Html:\n    def _repr_html_(self): raise KeyError('k')\n    def __repr__(self): return 'html'\nHtml()", main="html", err=pattern("sbx: .*KeyError: 'k'\n")),
    Row("class Deep:\n    def __repr__(self): return repr(self)\nDeep()", main=pattern("<unprintable Deep object: RecursionError: .*>")),
    Row("class Number:\n    def __repr__(self): return 5\nNumber()", main=pattern("<unprintable Number object: TypeError: __repr__ returned non-string.*>")),
    Row("class Everything:\n    def __getattr__(self, name): return lambda *a, **k: 'x'\n    def __repr__(self): return 'everything'\nEverything()", main="everything"),
    Row("from unittest.mock import MagicMock\nMagicMock(name='m')", main=pattern("<MagicMock name='m' id='[0-9]+'>")),
    Row("x = 'y' * 10_000_000\nx", left_out=[("text/plain", 10_000_002)]),
    Row("Rich(_repr_html_='z' * 5_000_000)", main="rich", left_out=[("text/html", 5_000_000)]),
    Row("for i in range(4): display({'text/html': 'h' * 3_000_000}, raw=True)",
        shown=[{"text/html": ANY}, {"text/html": ANY}, {}, {}], left_out=[("text/html", 3_000_000)] * 2),
    Row("x[:3]", main="'yyy'"),
    Row("import threading\nt = threading.Thread(target=lambda: display('from a thread'))\nt.start(); t.join()", shown=[{"text/plain": "'from a thread'"}]),
]

ASYNC = [
    Row("import asyncio\nasync def early(): return 'early'\nt = asyncio.ensure_future(early())"),
    Row("await t", main="'early'"),
    Row("await asyncio.sleep(0.001, 'slept')", main="'slept'"),
    Row("x = await asyncio.sleep(0, 5)\nx + 1", main="6"),
    Row("async def twice(n):\n    await asyncio.sleep(0)\n    return 2 * n\nawait twice(4)", main="8"),
    Row("await asyncio.gather(*(twice(i) for i in range(3)))", main="[0, 2, 4]"),
    Row("import contextlib\n@contextlib.asynccontextmanager\nasync def manager():\n    yield 'managed'\nasync with manager() as m:\n    print(m)", out="managed\n"),
    Row("async def numbers():\n    for i in range(3): yield i\nasync for n in numbers(): print(n, end=' ')", out="0 1 2 "),
    Row("[n async for n in numbers()]", main="[0, 1, 2]"),
    Row("first = asyncio.get_running_loop() if False else await twice(0)"),
    Row("async def current(): return asyncio.get_running_loop()\none = await current()"),
    Row("one is await current()", main="True"),
    Row("async def later():\n    await asyncio.sleep(0.01)\n    print('background')\ntask = asyncio.ensure_future(later()) if False else None\n"
        "async def begin(): return asyncio.ensure_future(later())\ntask = await begin()"),
    Row("await task", out="background\n"),
    Row("await twice(1/0)", error=("ZeroDivisionError", "division by zero"), line=1, lacks=("asyncio", "<sbx>", "interactiveshell")),
    Row("async def fails():\n    await asyncio.sleep(0)\n    raise KeyError('async')\nawait fails()", error=("KeyError", "'async'"), line=3,
        holds=("line 4, in <module>", "line 3, in fails", "raise KeyError('async')"), lacks=("asyncio/", "<sbx>")),
    Row("asyncio.run(twice(5))", main="10"),
    Row("await twice(6)", main="12"),
    Row("q = asyncio.Queue()\nawait q.put(1)\nawait q.get()", main="1"),
    Row("await asyncio.wait_for(asyncio.sleep(5), 0.01)", error=("TimeoutError", ""), line=1),
    Row("await asyncio.sleep(0); raise SystemExit(4)", exit=4),
    Row("twice(1).close()"),
    Row("t = asyncio.ensure_future(twice(7))"),
    Row("await t", main="14"),
    Row("t = asyncio.create_task(twice(8))\nt.done()", main="False"),
    Row("await t", main="16"),
    Row("import asyncio as aio\nfrom asyncio import get_running_loop\nt = aio.create_task(twice(9))\nget_running_loop() is asyncio.get_event_loop()", main="True"),
    Row("await t", main="18"),
    Row("get_running_loop() is await current()", main="True"),
    Row("get_running_loop() is one", main="True"),
    Row("asyncio.create_task(1/0)", error=("ZeroDivisionError", ANY), line=1, holds=('File "<cell @>", line 1, in <module>',), lacks=("asyncio/", "<sbx>", "interactiveshell")),
    Row("asyncio.create_task(twice(1)) and exit(3)", exit=3),
    Row("async def begins(): return await asyncio.create_task(twice(10))\nasyncio.run(begins())", main="20"),
    Row("try:\n    asyncio.get_running_loop()\nexcept RuntimeError:\n    print(asyncio.run(twice(11)))", out="22\n"),
    Row("class Calendar:\n    def create_task(self, hour): return asyncio.run(twice(hour))\nCalendar().create_task(6)", main="12"),
    Row("asyncio.get_event_loop().run_until_complete(twice(12))", main="24"),
    Row("async with asyncio.TaskGroup() as group: t = group.create_task(twice(13))\nt.result()", main="26", since=(3, 11)),
    Row("asyncio.get_event_loop().close()"),
    Row("await twice(14)", main="28"),
    Row("def plain():\n    await twice(1)", error=("SyntaxError", pattern(".*'await' outside async function.*")), line=2),
]

ERRORS = [
    Row("1/0", error=("ZeroDivisionError", "division by zero"), line=1, holds=('File "<cell @>", line 1, in <module>\n    1/0',), lacks=("<sbx>", "python.py", "interactiveshell")),
    Row("undefined", error=("NameError", "name 'undefined' is not defined"), line=1),
    Row("x = 1\ny = 2\nraise ValueError('third')", error=("ValueError", "third"), line=3),
    Row("def inner():\n    raise KeyError('k')\n\n\ninner()", error=("KeyError", "'k'"), line=2, holds=("line 5, in <module>\n    inner()", "line 2, in inner\n    raise KeyError('k')")),
    Row("print('before')\ninner()\nprint('after')", out="before\n", error=("KeyError", "'k'"), line=2, holds=('", line 2, in inner\n    raise',)),
    Row("try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise ValueError('outer') from e", error=("ValueError", "outer"), line=4,
        holds=("ZeroDivisionError: division by zero\n\nThe above exception was the direct cause", "    1/0", "ValueError: outer"), lacks=("<sbx>",)),
    Row("try:\n    1/0\nexcept ZeroDivisionError:\n    {}['k']", error=("KeyError", "'k'"), line=4, holds=("During handling of the above exception, another", "1/0")),
    Row("try:\n    1/0\nexcept ZeroDivisionError:\n    raise ValueError('alone') from None", error=("ValueError", "alone"), line=4, lacks=("ZeroDivisionError: division",)),
    Row("x = (", error=("SyntaxError", ANY), line=1, lacks=("Traceback", "ast.py", "<sbx>", "codeop")),
    Row("x = 1\nif x\n    pass", error=("SyntaxError", ANY), line=2, holds=('File "<cell @>", line 2', "if x"), lacks=("Traceback",)),
    Row("return 5", error=("SyntaxError", pattern("'return' outside function.*")), line=1, holds=("return 5",), lacks=("Traceback",)),
    Row("  x = 1\n y = 2", error=("IndentationError", ANY), line=ANY, lacks=("Traceback",)),
    Row("def f():\nreturn 1", error=("IndentationError", ANY), line=2, lacks=("Traceback",)),
    Row("'unfinished", error=("SyntaxError", ANY), line=1),
    Row("x = 1\0", error=(lambda name: name in ("ValueError", "SyntaxError"), pattern(".*null bytes.*")), line=ANY, lacks=("<sbx>",)),
    Row("print('not run')\nx = = 1", error=("SyntaxError", ANY), line=2),
    Row("exec('1/0')", error=("ZeroDivisionError", ANY), line=1, holds=('File "<string>", line 1',)),
    Row("eval('1 +')", error=("SyntaxError", ANY), line=1, holds=("Traceback", '"<cell @>", line 1')),
    Row("import json\njson.loads('{')", error=("JSONDecodeError", ANY), line=2, holds=("json/decoder.py",)),
    Row("def endless(n): return endless(n + 1)\nendless(0)", error=("RecursionError", pattern("maximum recursion depth exceeded.*")), line=1, holds=("Previous line repeated",)),
    Row("class Unprintable(Exception):\n    def __str__(self): raise ValueError\nraise Unprintable", error=("Unprintable", "<unprintable Unprintable object>"), line=3),
    Row("raise ValueError('v' * 1_000_000)", error=("ValueError", lambda value: 131_000 < len(value) < 132_000 and "left out" in value), line=1),
    Row("raise ExceptionGroup('several', [ValueError(1), KeyError(2)])", error=("ExceptionGroup", "several (2 sub-exceptions)"), line=1, holds=("ValueError: 1", "KeyError: 2"), since=(3, 11)),
    Row("e = ValueError('noted')\ne.add_note('a note')\nraise e", error=("ValueError", "noted"), line=3, holds=("a note",), since=(3, 11)),
    Row("raise BaseException('base')", error=("BaseException", "base"), line=1),
    Row("raise KeyboardInterrupt", error=("KeyboardInterrupt", ""), line=1),
    Row("raise GeneratorExit", error=("GeneratorExit", ""), line=1),
    Row("raise SystemExit", exit=0),
    Row("import sys\nsys.exit(3)", exit=3),
    Row("sys.exit('a reason')", exit=1, err="a reason\n"),
    Row("exit()", exit=0),
    Row("exit(7)", exit=7),
    Row("quit()", exit=0),
    Row("import threading\nt = threading.Thread(target=sys.exit, args=(5,))\nt.start(); t.join()"),
    Row("t = threading.Thread(target=lambda: 1/0)\nt.start(); t.join()", err=pattern("Exception in thread .*<cell @>.*ZeroDivisionError: division by zero\n")),
    Row("assert 1 == 2, 'unequal'", error=("AssertionError", "unequal"), line=1),
    Row("raise type('Späte', (Exception,), {})('é')", error=("Späte", "é"), line=1),
    Row("raise ValueError('\\ud800')", error=("ValueError", "�"), line=1),
    Row("import warnings\nwarnings.warn('careful')", err="<cell @>:2: UserWarning: careful\n  warnings.warn('careful')\n"),
    Row("for _i in range(3):\n    warnings.warn('once')", err="<cell @>:2: UserWarning: once\n  warnings.warn('once')\n"),
    Row("warnings.warn('old', DeprecationWarning)", err="<cell @>:1: DeprecationWarning: old\n  warnings.warn('old', DeprecationWarning)\n"),
    Row("x is 1", err=pattern('<cell @>:1: SyntaxWarning: "is" with (a|\'int\') literal.*\n'), main="True"),
    Row("warnings.simplefilter('error')\nwarnings.warn('raised')", error=("UserWarning", "raised"), line=2),
    Row("warnings.resetwarnings()"),
    Row("import inspect\ninspect.getsource(inner)", main=repr("def inner():\n    raise KeyError('k')\n")),
    Row("sys.last_value", main=ANY),
    Row("import traceback\ntry:\n    1/0\nexcept ZeroDivisionError:\n    traceback.print_exc()", err=pattern('Traceback .*File "<cell @>", line 3, in <module>\n.*ZeroDivisionError: division by zero\n')),
    Row("class Meta(type):\n    def __repr__(cls): raise ValueError\nclass Odd(metaclass=Meta): pass\nOdd", main=pattern("<unprintable Meta object: ValueError: >|__main__.Odd")),
]

PROCESSES = [
    Row("import os, sys, time, pickle, threading, dataclasses, multiprocessing"),
    Row("class Point:\n    def __init__(self, x): self.x = x\n    def __eq__(self, other): return self.x == other.x"),
    Row("pickle.loads(pickle.dumps(Point(3))) == Point(3)", main="True"),
    Row("pickle.loads(pickle.dumps(Point)) is Point", main="True"),
    Row("@dataclasses.dataclass\nclass Data:\n    a: int\n    b: str = 'b'\nData(1)", main="Data(a=1, b='b')"),
    Row("import copy\ncopy.deepcopy(Data(2))", main="Data(a=2, b='b')"),
    Row("import enum\nclass Color(enum.Enum):\n    RED = 1\npickle.loads(pickle.dumps(Color.RED)) is Color.RED", main="True"),
    Row("import typing\nclass Named(typing.NamedTuple):\n    n: int\nNamed(1)", main="Named(n=1)"),
    Row("def square(x): return x * x\nfork = multiprocessing.get_context('fork')\nwith fork.Pool(2) as pool: squares = pool.map(square, [1, 2, 3])\nsquares", main="[1, 4, 9]"),
    Row("p = fork.Process(target=print, args=('in a child',), kwargs={'flush': True})\np.start(); p.join(); p.exitcode", out="in a child\n", main="0"),
    Row("spawn = multiprocessing.get_context('spawn')\nwith spawn.Pool(1) as pool: squares = pool.map(square, [4, 5])\nsquares", main="[16, 25]"),
    Row("factor = 10\ndef scaled(p): return p.x * factor"),
    Row("with spawn.Pool(1) as pool: scaled_all = pool.map(scaled, [Point(2)])\nscaled_all", main="[20]"),
    Row("def here(x): return x * x\nwith multiprocessing.get_context('spawn').Pool(2) as pool: squares = pool.map(here, [1, 2, 3])\nsquares", main="[1, 4, 9]"),
    Row("def there(x): return -x\nwith multiprocessing.get_context('forkserver').Pool(2) as pool: r = pool.map(there, [1, 2])\nr", main="[-1, -2]"),
    Row("return\nfactor = 11", error=("SyntaxError", ANY), line=1),
    Row("with spawn.Pool(1) as pool: scaled_all = pool.map(scaled, [Point(3)])\nscaled_all", main="[30]"),
    Row("from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor\nwith ProcessPoolExecutor(1, mp_context=spawn) as executor: r = executor.submit(square, 6).result()\nr", main="36"),
    Row("with ThreadPoolExecutor(2) as executor: r = list(executor.map(square, range(3)))\nr", main="[0, 1, 4]"),
    Row("pid = os.fork()\nif pid == 0:\n    os._exit(3)\nos.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])", main="3", since=(3, 9),
        # Python 3.12 counts the threads that the kernel shows: those of the row before may still be ending.
        err=pattern(r"(<cell @>:1: DeprecationWarning: .* multi-threaded.*\n  pid = os.fork\(\)\n)?")),
    Row("pid = os.fork()\nif pid == 0:\n    print('child goes on')\nelse:\n    status = os.waitpid(pid, 0)[1]\n    print('parent', status)\n'value'",
        out="child goes on\nparent 0\n", main="'value'"),
    Row("pid = os.fork()\nif pid == 0:\n    raise ValueError('of the child')\nprint(os.waitpid(pid, 0)[1] >> 8)", out="1\n", err=pattern("Traceback .*ValueError: of the child\n?")),
    Row("pid = os.fork()\nif pid == 0:\n    sys.exit(9)\nprint(os.waitpid(pid, 0)[1] >> 8)", out="9\n"),
    Row("def late():\n    released.wait()\n    print('late')\n    done.set()\nreleased, done = threading.Event(), threading.Event()\nt = threading.Thread(target=late); t.start()"),
    Row("released.set()\ndone.wait()\nt.join()", out="late\n"),
    Row("def late_display():\n    again.wait()\n    display('late')\nagain = threading.Event()\nt = threading.Thread(target=late_display); t.start()"),
    Row("again.set(); t.join()", shown=[{"text/plain": "'late'"}]),
    Row("import tempfile, queue\nq = queue.Queue()\nthreading.Timer(0.01, q.put, [5]).start()\nq.get()", main="5"),
    Row("import signal\nsignal.getsignal(signal.SIGINT) is signal.default_int_handler", main="True"),
    Row("os.kill(os.getpid(), signal.SIGINT)\nfor _i in range(10 ** 7): pass", error=("KeyboardInterrupt", ""), line=ANY),
    Row("import subprocess\nsubprocess.run([sys.executable, '-c', 'print(6 * 7)']).returncode", out="42\n", main="0"),
    Row("sorted(int(n) for n in os.listdir('/proc/self/fd') if int(n) < 20)[:3]", main="[0, 1, 2]"),
    Row("subprocess.run(['ls', '/proc/self/fd'], close_fds=False, capture_output=True, text=True).stdout.split()", main="['0', '1', '2', '3']"),
    Row("import gc\nx = [Point(1)]\nx.append(x)\ndel x\ngc.collect() >= 0", main="True"),
]

MAGICS = [
    Row("!echo shell", out="shell\n"),
    Row("name = 'world'\n!echo hello $name {name.upper()}", out="hello world WORLD\n"),
    Row("lines = !printf 'a\\nb\\n'\nlist(lines)", main="['a', 'b']"),
    Row("for _i in range(2):\n    !echo $_i", out="0\n1\n"),
    Row("!exit 3\n_exit_code", main="3"),
    Row("!echo one \\\n  two", out="one two\n"),
    Row("%%bash\necho from bash\nx=3\necho $x", out="from bash\n3\n"),
    Row("%%sh\necho 'it''s'", out="its\n"),
    Row("%%bash\nexit 4", error=("CalledProcessError", ANY), line=ANY, holds=('File "<cell @>", line 1',), lacks=("IPython/", "interactiveshell")),
    Row("%matplotlib inline"),
    Row("%config InlineBackend.figure_format = 'retina'"),
    Row("%timeit -n 2 -r 2 sum(range(10))", out=pattern(r"(The slowest run .*\n)?[\d.e+]+ [nµm]?s ± [\d.e+]+ [nµm]?s per loop \(mean ± std\. dev\. of 2 runs, 2 loops each\)\n")),
    Row("%time 1 + 1", out=pattern("CPU times: .*Wall time: .*\n"), main="2"),
    Row("%%time\nx = 4\nx", out=pattern("CPU times: .*Wall time: .*\n"), main="4"),
    Row("%%time\n\n1/0", out=ANY, error=("ZeroDivisionError", ANY), line=ANY),
    Row("%%timeit -n 1 -r 1\nx = 1\nx", out=pattern(".* per loop .*\n")),
    Row("import os, tempfile\nhere, there = os.getcwd(), os.path.realpath(tempfile.mkdtemp())"),
    Row("%cd {there}", out=lambda out: out.startswith(b"/") and out.endswith(b"\n")),
    Row("os.getcwd() == there", main="True"),
    Row("%pwd", main=pattern("'/.*'")),
    Row("%%writefile made.py\nmade = 'made'\n", out="Writing made.py\n"),
    Row("import made\nmade.made", main="'made'"),
    Row("%run made.py\nmade", main="'made'"),
    Row("!ls *.py", out="made.py\n"),
    Row("%%writefile\nx = 1", error=("UsageError", pattern(".*file.*")), line=ANY),
    Row("%%script\nx", error=("UsageError", pattern(".*a program.*")), line=ANY, ipython=("its magic fails", {"error": (ANY, ANY)})),
    Row("%cd {here}", out=ANY),
    Row("import shutil\nshutil.rmtree(there)"),
    Row("%env SBX_TABLE=3", out="env: SBX_TABLE=3\n"),
    Row("os.environ['SBX_TABLE']", main="'3'"),
    Row("%pip --version", out=ANY, err=ANY),
    Row("def documented(a, b=1):\n    '''What it is for.'''"),
    Row("?documented", out=pattern(".*documented\\(a, b=1\\).*What it is for\\..*")),
    Row("documented?", out=pattern(".*documented\\(a, b=1\\).*What it is for\\..*")),
    Row("documented??", out=pattern(".*What it is for\\..*")),
    Row("?absent_name", out="Object `absent_name` not found.\n"),
    Row("%%html\n<b>x</b>", shown=[{"text/html": pattern("<b>x</b>\n?")}], ipython=("its object has a text form too", {"shown": [{"text/plain": ANY, "text/html": pattern("<b>x</b>\n?")}]})),
    Row("%%capture caught\nprint('hidden')"),
    Row("caught.stdout", main="'hidden\\n'"),
    Row("%nosuchmagic", error=("UsageError", pattern(".*%nosuchmagic.*")), line=ANY, holds=("UsageError: ",), lacks=("IPython", "<sbx>"),
        ipython=("its shell shows one line", {"lacks": ("Traceback", "IPython")})),
    Row("%%nosuchmagic\nx", error=("UsageError", pattern(".*%%nosuchmagic.*")), line=ANY, holds=("UsageError: ",), lacks=("IPython", "<sbx>"),
        ipython=("its shell shows one line", {"lacks": ("Traceback", "IPython")})),
    Row("%load_ext autoreload\n%autoreload 2"),
    Row("x = 17\nx %5", main="2"),
    Row("print('a'\n      '%s' % 3)", out="a3\n"),
    Row("x = '''\n!echo no\n'''\n!echo yes", out="yes\n"),
    Row("x = [1,\n     2,\n]\n!echo after", out="after\n"),
    Row("# it's a comment\n!echo quote", out="quote\n"),
    Row("%who", out=pattern(".*documented.*")),
    Row("1/0\n!echo never", error=("ZeroDivisionError", ANY), line=1, holds=("    1/0",)),
    Row("!echo first\n1/0", out="first\n", error=("ZeroDivisionError", ANY), line=2, holds=("    1/0",)),
]

FIGURES = [
    Row("import matplotlib.pyplot as plt"),
    Row("plt.plot([1, 2]); plt.show()", shown=[plain_and(**png)]),
    Row("plt.plot([1, 2]);", shown=[plain_and(**png)]),
    Row("plt.plot([1, 2])", main=pattern(r"\[<matplotlib\.lines\.Line2D.*"), shown=[plain_and(**png)]),
    Row("fig, ax = plt.subplots()\nax.bar(['a'], [1])\nfig", main=plain_and(**png)),
    Row("plt.get_fignums()", main="[]"),
    Row("fig, ax = plt.subplots(); display(fig)", shown=[plain_and(**png)]),
    Row("fig, ax = plt.subplots(); fig.show()", shown=[plain_and(**png)]),
    Row("for _i in range(3): plt.figure()", shown=[plain_and(**png)] * 3),
    Row("for _i in range(2):\n    plt.plot([_i]); plt.show()", shown=[plain_and(**png)] * 2),
    Row("plt.figure(); plt.close()"),
    Row("fig", main=plain_and(**png)),
    Row("import io\nplt.plot([1]); out = io.BytesIO(); plt.savefig(out); plt.close('all'); out.getvalue()[:4]", main="b'\\x89PNG'"),
    Row("plt.title(r'$\\frac{$'); 1", main="1", error=("ValueError", ANY), line=None),
    Row("plt.get_fignums()", main="[]"),
    Row("plt.plot([1]); 1/0", error=("ZeroDivisionError", ANY), line=1, shown=[plain_and(**png)]),
    Row("from matplotlib.figure import Figure\nf = Figure(); f.subplots().plot([1]); f", main=plain_and(**png)),
    Row("plt.get_backend().lower()", main="'agg'"),
    Row("import numpy as np, warnings\nx = np.linspace(0, 1, 5)\nx", main="array([0.  , 0.25, 0.5 , 0.75, 1.  ])", needs=("numpy",)),
]

DATA = [
    Row("import pandas as pd, numpy as np"),
    Row("frame = pd.DataFrame({'n': [1, 2], 't': ['a', None], 'f': [1.5, float('nan')]})\nframe", main={
        "text/plain": ANY, "text/html": pattern(".*<table.*</table>.*"),
        TABLE: {"columns": [{"name": "n", "dtype": "int64"}, {"name": "t", "dtype": "object"}, {"name": "f", "dtype": "float64"}],
                "rows": [[1, "a", 1.5], [2, None, None]], "total": 2}}),
    Row("frame.n", main={"text/plain": ANY, "text/html": ANY, TABLE: {"columns": [{"name": "n", "dtype": "int64"}], "rows": [[1], [2]], "total": 2}}),
    Row("pd.DataFrame({'x': range(5000)})", main={"text/plain": ANY, "text/html": ANY, TABLE: lambda t: t["total"] == 5000 and len(t["rows"]) == 1000 and t["rows"][999] == [999]}),
    Row("frame.set_index('n')", main={"text/plain": ANY, "text/html": ANY, TABLE: lambda t: t["columns"][0] == {"name": "n", "dtype": "int64", "index": True} and t["rows"][0] == [1, "a", 1.5]}),
    Row("pd.DataFrame({'d': pd.to_datetime(['2020-01-02', None]), 'b': [True, False], 'c': pd.Categorical(['x', 'y'])})", main={
        "text/plain": ANY, "text/html": ANY, TABLE: lambda t: t["rows"] == [["2020-01-02T00:00:00", True, "x"], [None, False, "y"]]}),
    Row("pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([('a', 'x'), ('a', 'y')]))", main={
        "text/plain": ANY, "text/html": ANY, TABLE: lambda t: [c["name"] for c in t["columns"]] == ["a.x", "a.y"]}),
    Row("pd.DataFrame({'a': [1, 1]}, index=pd.MultiIndex.from_tuples([('p', 1), ('q', 2)], names=['k', None]))", main={
        "text/plain": ANY, "text/html": ANY, TABLE: lambda t: t["rows"] == [["p", 1, 1], ["q", 2, 1]] and t["columns"][1]["name"] == ""}),
    Row("pd.DataFrame()", main={"text/plain": ANY, "text/html": ANY, TABLE: lambda t: (t["rows"], t["total"]) == ([], 0)}),
    Row("pd.DataFrame({'big': [2 ** 60, 1], 'o': [{'k': 1}, pd.Timedelta('1s')], 'u': [np.float32(0.5), np.inf]})", main={
        "text/plain": ANY, "text/html": ANY, TABLE: lambda t: t["rows"][0] == [str(2 ** 60), "{'k': 1}", 0.5] and t["rows"][1][2] is None}),
    Row("pd.DataFrame([[1, 2]], columns=['same', 'same'])", main={"text/plain": ANY, "text/html": ANY, TABLE: lambda t: t["rows"] == [[1, 2]]}),
    Row("frame.describe(); frame.groupby('n').size()", main={"text/plain": ANY, "text/html": ANY, TABLE: lambda t: t["rows"] == [[1, 1], [2, 1]]}),
    Row("display(frame, frame.n)", shown=[{"text/plain": ANY, "text/html": ANY, TABLE: ANY}] * 2),
    Row("pd.Index([1, 2])", main=pattern("(Int64)?Index.*")),
    Row("frame['absent']", error=("KeyError", "'absent'"), line=1),
    Row("np.arange(6).reshape(2, 3)", main="array([[0, 1, 2],\n       [3, 4, 5]])"),
    Row("np.float64(1.5), np.int8(3)", main=pattern(r"\(1\.5, 3\)|\(np\.float64\(1\.5\), np\.int8\(3\)\)")),
    Row("np.array([1]) / 0", main="array([inf])", err=pattern("<cell @>:1: RuntimeWarning: divide by zero.*")),
    Row("frame.plot()", main=pattern("<(matplotlib.axes.*)?(AxesSubplot|Axes).*"), shown=[plain_and(**png)]),
    Row("frame.style", main={"text/plain": ANY, "text/html": ANY}, needs=("jinja2",)),
]

OTHERS = [
    Row("from PIL import Image\nImage.new('RGB', (2, 2), 'red')", main=plain_and(**png), needs=("PIL",)),
    Row("display(Image.new('L', (1, 1)))", shown=[plain_and(**png)], needs=("PIL",)),
    Row("import sympy\nx = sympy.Symbol('x')\nsympy.Integral(x ** 2, x)", main={"text/plain": ANY, "text/latex": "$\\displaystyle \\int x^{2}\\, dx$"}, needs=("sympy",)),
    Row("sympy.expand((x + 1) ** 2)", main={"text/plain": "x**2 + 2*x + 1", "text/latex": ANY}, needs=("sympy",)),
    Row("import seaborn, pandas\nseaborn.set_theme()\nbars = seaborn.barplot(data=pandas.DataFrame({'k': ['a', 'b'], 'v': [1, 2]}), x='k', y='v')", shown=[plain_and(**png)], needs=("seaborn",)),
    Row("seaborn.heatmap([[1, 2], [3, 4]])", main=pattern(".*Axes.*"), shown=[plain_and(**png)], needs=("seaborn",)),
    Row("seaborn.relplot(data=pandas.DataFrame({'x': [1, 2], 'y': [3, 4]}), x='x', y='y')", main=pattern("<seaborn.axisgrid.FacetGrid (object )?at .*>"),
        shown=[plain_and(**png)], needs=("seaborn",)),
    Row("import scipy.stats\nround(scipy.stats.norm.cdf(0), 3)", main=ANY, needs=("scipy",)),
]

GROUPS = {"values": VALUES, "streams": STREAMS, "rich": RICH, "async": ASYNC, "errors": ERRORS, "processes": PROCESSES, "magics": MAGICS,
          "figures": FIGURES, "data": DATA, "others": OTHERS}
NEEDS = {"figures": ("matplotlib",), "data": ("pandas",)}


@functools.lru_cache(None)
def has(python, module):
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def fits(expected, actual):
    """Whether a value is as a row says: equal, matched by a pattern, or accepted by a function."""
    if callable(expected):
        return bool(expected(actual))
    if isinstance(expected, re.Pattern):
        return isinstance(actual, str) and expected.fullmatch(actual) is not None
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(fits(value, actual[key]) for key, value in expected.items())
    return expected == actual


def fits_output(expected, actual):
    if callable(expected):
        return bool(expected(actual))
    if isinstance(expected, re.Pattern):
        return expected.fullmatch(actual.decode(errors="replace")) is not None
    return actual == (expected.encode() if isinstance(expected, str) else expected)


class Rows:
    """For a test: compares what a cell gave with what its row says."""

    def check(self, row, answer, line_of_file=""):
        name = f"<cell {answer.done['count']}>"

        def named(expected):
            if isinstance(expected, re.Pattern):
                return re.compile(expected.pattern.replace("<cell @>", name), expected.flags)
            return expected.replace("<cell @>", name) if isinstance(expected, str) else expected

        about = f"{line_of_file}\n{row.code[:300]}\n{answer}"
        self.assertTrue(fits_output(named(row.out), answer.out), f"stdout, expected {row.out}: {about}")
        self.assertTrue(fits_output(named(row.err), answer.err), f"stderr, expected {row.err}: {about}")
        mains = [result["data"] for result in answer.results if result["main"] and result["data"]]
        main = row.main
        if main is not None and not isinstance(main, dict):
            main = {"text/plain": main}
            if mains and mains[0].get("text/plain", "")[:1] in ("[", "{") and "application/json" in mains[0]:
                main["application/json"] = ANY
        self.assertEqual(len(mains), 0 if main is None else 1, f"main result: {about}")
        self.assertTrue(main is None or fits(main, mains[0]), f"main, expected {main}: {about}")
        shown = answer.shown
        self.assertEqual(len(shown), len(row.shown), f"shown: {about}")
        for expected, actual in zip(row.shown, shown):
            self.assertTrue(fits(expected, actual), f"shown, expected {expected}: {about}")
        left_out = [(item["mime"], item["bytes"]) for result in answer.results for item in result.get("left_out", ())]
        self.assertEqual(left_out, row.left_out or [], about)
        self.assertEqual(len(answer.errors), 1 if row.error else 0, f"error: {about}")
        if row.error:
            error = answer.error
            self.assertTrue(fits(row.error[0], error["name"]) and fits(row.error[1], error["value"]), f"error, expected {row.error}: {about}")
            self.assertTrue(fits(row.line, error["line"]), f"line, expected {row.line}: {about}")
            for text in row.holds:
                self.assertIn(named(text), error["traceback"], about)
            for text in row.lacks:
                self.assertNotIn(text, error["traceback"], about)
        self.assertEqual(answer.done.get("exit"), row.exit, about)
        self.assertEqual(answer.done["ok"], row.exit == 0 if row.exit is not None else not row.error, about)
        self.assertEqual([each for each in answer.others if each["event"] != "clear"], [], about)

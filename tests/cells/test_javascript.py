#!/usr/bin/env python3
"""The driver of JavaScript contexts: a table of cells on every Node.js found, ends, interrupts, attacks."""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import threading

import celltest
from celltest import DRIVERS, CellTest, Died

ANY = re.compile(".*", re.DOTALL)


def matching(text):
    return re.compile(text, re.DOTALL)


def found():
    """Debian's, that of PATH, and what SBX_TEST_NODES names, separated by colons."""
    names = ["/usr/bin/node", shutil.which("node"), *os.environ.get("SBX_TEST_NODES", "").split(":")]
    return list(dict.fromkeys(os.path.realpath(name) for name in names if name and os.access(name, os.X_OK)))


@functools.lru_cache(None)
def version_of(node):
    return int(subprocess.run([node, "-p", "process.versions.node"], capture_output=True, text=True, check=True).stdout.split(".")[0])


# Code, text of the main result or all its forms, stdout, stderr, (error's name, value, line).
TABLE = [
    # First, because a command that shares the pipes would make them blocking.
    ("process.stdout.write('x'.repeat(5e6)); await 1", "1", lambda out: len(out) == 5_000_000, "", None),
    ("console.error('x'.repeat(5e6)); await 1", "1", "", lambda err: len(err) == 5_000_001, None),
    ("console.log('x'.repeat(10_000_000))", None, lambda out: len(out) == 10_000_001, "", None),
    ("1 + 1", "2", "", "", None),
    ("'text'", "'text'", "", "", None),
    ("undefined", None, "", "", None),
    ("null", "null", "", "", None),
    ("let x = 1; const y = 2; var z = 3", None, "", "", None),
    ("[x, y, z]", {"text/plain": "[ 1, 2, 3 ]", "application/json": [1, 2, 3]}, "", "", None),
    ("const y = 5; y", "5", "", "", None),
    ("let x = 'again'; x", "'again'", "", "", None),
    ("class A { b() { return 1 } }", None, "", "", None),
    ("class A { b() { return 2 } }; new A().b()", "2", "", "", None),
    ("function f(a) { return a * 2 }", None, "", "", None),
    ("f(21)", "42", "", "", None),
    ("{a: 1}", {"text/plain": "{ a: 1 }", "application/json": {"a": 1}}, "", "", None),
    ("{ let q = 1; q }", "1", "", "", None),
    ("{};", None, "", "", None),
    ("({a: {b: {c: {d: 1}}}})", {"text/plain": "{ a: { b: { c: [Object] } } }", "application/json": {"a": {"b": {"c": {"d": 1}}}}}, "", "", None),
    ("const circle = {}; circle.self = circle; circle", "<ref *1> { self: [Circular *1] }", "", "", None),
    ("10n ** 20n", "100000000000000000000n", "", "", None),
    ("[1n]", "[ 1n ]", "", "", None),
    ("NaN", "NaN", "", "", None),
    ("-0", "-0", "", "", None),
    ("Symbol('s')", "Symbol(s)", "", "", None),
    ("() => 1", "[Function (anonymous)]", "", "", None),
    ("new Map([[1, 2]])", "Map(1) { 1 => 2 }", "", "", None),
    ("new Date(0)", "1970-01-01T00:00:00.000Z", "", "", None),
    ("/a\\/b/g", "/a\\/b/g", "", "", None),
    ("new Error('as a value').message", "'as a value'", "", "", None),
    ("new Proxy({}, { get() { throw 1 } })", "{}", "", "", None),
    ("({ [Symbol.for('nodejs.util.inspect.custom')]() { throw new Error('no') } })", {"text/plain": matching("<uninspectable value: Error: no>"), "application/json": {}}, "", "", None),
    ("({ get a() { throw new Error('getter') } })", matching("{ a: \\[Getter\\] }"), "", "", None),
    ("'é中😀'", "'é中😀'", "", "", None),
    ("'\\ud800'", matching("'.*'"), "", "", None),
    ("console.log('out'); console.error('err'); console.log({a: [1]})", None, "out\n{ a: [ 1 ] }\n", "err\n", None),
    ("process.stdout.write('no end'); 1", "1", "no end", "", None),
    ("console.log('é\\0\\x1b[0m')", None, "é\0\x1b[0m\n", "", None),
    ("await 5", "5", "", "", None),
    ("const w = await new Promise(r => setTimeout(r, 1, 'later')); w", "'later'", "", "", None),
    ("w", "'later'", "", "", None),
    ("for await (const v of (async function* () { yield 1; yield 2 })()) console.log(v)", None, "1\n2\n", "", None),
    ("Promise.resolve(3)", "Promise { 3 }", "", "", None),
    ("const fs = require('fs'); typeof fs.readFileSync", "'function'", "", "", None),
    ("require('node:path').join('a', 'b')", "'a/b'", "", "", None),
    ("fs.writeFileSync('m.js', 'module.exports = {v: 1}'); fs.writeFileSync('e.mjs', 'export const v = 2; export default 3')", None, "", "", None),
    ("require('./m').v", "1", "", "", None),
    ("(await import('./e.mjs')).v", "2", "", "", None),
    ("const { default: d } = await import('./e.mjs'); d", "3", "", "", None),
    ("import fs from \"fs\"\nimport { EOL, platform as p } from 'node:os';\nimport * as path from 'path'\nimport util, { inspect } from 'util'; import whole, * as all from 'util'\n"
     "import {\n  join, // joins\n  basename as base,\n} from 'path'\nimport 'fs'\n[fs.sep, EOL, typeof p, path.sep, inspect === util.inspect, whole === all.default, join('a', base('/x/b'))]",
     matching(r"\[\s+undefined,\s+'\\n',\s+'function',\s+'/',\s+true,\s+true,\s+'a/b'\s+\]"), "", "", None),
    ("import fs from 'fs'; import v, { v as two } from './e.mjs'\n[v, two]", "[ 3, 2 ]", "", "", None),
    ("import './e.mjs'", None, "", "", None),
    ("\nimport { absent } from 'fs'", None, "", "", ("SyntaxError", "The requested module 'fs' does not provide an export named 'absent'", 2)),
    ("const text = `import x from 'y'`; ({ import: text, other: 'import a from \"b\"' }).import // import c from 'd'", "\"import x from 'y'\"", "", "", None),
    ("export const e1 = 1; export let e2 = 2\nexport function e3() { return 3 }\nexport async function e4() {}\nexport class E5 {}\n[e1, e2, e3(), typeof e4, typeof E5]", matching(r"\[ 1, 2, 3, 'function', 'function' \]"), "", "", None),
    ("export default function e6() { return 6 }\nexport {\n  e1, // one\n  e2 as two }; export { v } from './e.mjs'; export * from 'fs'; export * as all2 from 'fs'\ne6()", "6", "", "", None),
    ("export default (x) => x + 1", matching(r"\[Function.*\]"), "", "", None),
    ("export default { a: 1 }", "{ a: 1 }", "", "", None),
    ("export default class { }", matching(r"\[class.*\]"), "", "", None),
    ("const own = { export: 1, exports: 2 }; [own.export, own?.export, `export const x`, 'export const x', /export const/.source] // export const x = ;", "[ 1, 1, 'export const x', 'export const x', 'export const' ]", "", "", None),
    ("export { absent2 } from './absent.mjs'", None, "", "", ("Error", ANY, ANY)),
    ("export const e7 = 1\nnull.y", None, "", "", ("TypeError", ANY, 2)),
    ("import again from 'fs'\nnull.y", None, "", "", ("TypeError", ANY, 2)),
    ("(await import('node:os')).EOL", "'\\n'", "", "", None),
    ("(await import('fs')).default === fs", "true", "", "", None),
    ("import('./m.js').then(m => m.default.v)", matching("Promise \\{.*"), "", "", None),
    ("'import(1)' + `import(2) ${typeof import('fs')} import(3)` + /import(4)/.source // import(5)", "'import(1)import(2) object import(3)import(4)'", "", "", None),
    ("fs.mkdirSync('node_modules/pack', {recursive: true}); fs.writeFileSync('node_modules/pack/index.js', 'exports.name = \"pack\"')", None, "", "", None),
    ("require('pack').name + (await import('pack')).default.name", "'packpack'", "", "", None),
    ("fs.mkdirSync('sub'); fs.writeFileSync('sub/n.js', 'module.exports = 7'); process.chdir('sub'); require('./n')", "7", "", "", None),
    ("await import('./absent.mjs')", None, "", "", ("Error", ANY, ANY)),
    ("require('absent')", None, "", "", ("Error", matching("Cannot find module 'absent'.*"), 1)),
    ("nothing", None, "", "", ("ReferenceError", "nothing is not defined", 1)),
    ("const a1 = 1\n\nthrow new TypeError('third')", None, "", "", ("TypeError", "third", 3)),
    ("function g() {\n  throw new RangeError('inner')\n}\ng()", None, "", "", ("RangeError", "inner", 2)),
    ("await 0\ng()", None, "", "", ("RangeError", "inner", 2)),
    ("x = = 1", None, "", "", ("SyntaxError", "Unexpected token '='", 1)),
    ("let ok = 1\nlet bad = ;", None, "", "", ("SyntaxError", "Unexpected token ';'", 2)),
    ("if (1) {", None, "", "", ("SyntaxError", "Unexpected end of input", 1)),
    ("foo(", None, "", "", ("SyntaxError", "Unexpected end of input", 1)),
    ("1\nawait foo(\n\n", None, "", "", ("SyntaxError", "Unexpected end of input", 2)),
    ("`open", None, "", "", ("SyntaxError", ANY, 1)),
    ("throw 5", None, "", "", ("number", "5", None)),
    ("throw {a: 1}", None, "", "", ("object", "{ a: 1 }", None)),
    ("throw null", None, "", "", ("null", "null", None)),
    ("throw undefined", None, "", "", ("undefined", "undefined", None)),
    ("await Promise.reject(new Error('rejected'))", None, "", "", ("Error", "rejected", 1)),
    ("class Own extends Error { name = 'Own' }; throw new Own('mine')", None, "", "", ("Own", "mine", 1)),
    ("throw new Error('outer', {cause: new Error('inner')})", None, "", "", ("Error", "outer", 1)),
    ("(function deep() { deep() })()", None, "", "", ("RangeError", "Maximum call stack size exceeded", 1)),
    ("JSON.parse('{')", None, "", "", ("SyntaxError", ANY, 1)),
    ("const half; ", None, "", "", ("SyntaxError", "Missing initializer in const declaration", 1)),
    ("const fails = (() => { throw new Error('init') })()", None, "", "", ("Error", "init", 1)),
    ("const fails = 'now'; fails", "'now'", "", "", None),
    ("setTimeout(() => { throw new Error('in a timer') }, 0); await new Promise(r => setTimeout(r, 20))", None, "", matching("Uncaught Error: in a timer\n.*"), None),
    ("Promise.reject(new Error('nobody')); await new Promise(r => setTimeout(r, 5))", None, "", matching("Uncaught \\(in promise\\) Error: nobody\n.*"), None),
    ("display({a: 1}); display('two')", None, "", "", None),
    ("({ [Symbol.for('Jupyter.display')]() { return {'text/html': '<b>'} } })", {"text/plain": ANY, "text/html": "<b>", "application/json": {}}, "", "", None),
    ("require('child_process').execSync('echo child; echo e >&2').toString()", "'child\\n'", "", "e\n", None),
    ("require('child_process').spawnSync('echo', ['inherit'], {stdio: 'inherit'}).status", "0", "inherit\n", "", None),
    ("fs.readFileSync(0, 'utf8')", "''", "", "", None),
    ("process.argv.length", "1", "", "", None),
    ("typeof exports + typeof __filename", "'objectundefined'", "", "", None),
    ("this === globalThis", "true", "", "", None),
    ("new Worker", None, "", "", ("ReferenceError", "Worker is not defined", 1)),
    ("await new Promise(r => new (require('worker_threads').Worker)('console.log(6)', {eval: true}).on('exit', r))", "0", "6\n", "", None),
    ("structuredClone({a: 1}).a", "1", "", "", None),
    ("", None, "", "", None),
    ("// a comment", None, "", "", None),
    ("'use strict'; undeclared = 1", None, "", "", ("ReferenceError", ANY, 1)),
    ("`a\n${1 + 1}`", "'a\\n2'", "", "", None),
]


class JavaScript(CellTest):
    def node(self, node="/usr/bin/node", file=False, cwd=None, env=None):
        if not os.access(node, os.X_OK):
            self.skipTest("nodejs is not installed")
        program = [str(DRIVERS / "javascript.js")] if file else ["-e", (DRIVERS / "javascript.js").read_text()]
        context = self.start([node, *program], cwd=cwd or self.directory(), env=env)
        self.assertEqual((context.ready["language"], context.ready["shell"], context.start_output), ("javascript", "plain", (b"", b"")))
        return context

    def test_one_that_waits_tells_what_a_start_would_find_otherwise(self):
        place = pathlib.Path(self.directory(), "work")
        place.mkdir()
        context = self.node(cwd=place)
        context.send({"op": "wait"})
        self.assertTrue(context.is_unchanged())
        place.rmdir()
        self.assertFalse(context.is_unchanged())
        place.mkdir()
        self.assertFalse(context.is_unchanged())
        self.assertEqual(context.cell("1 + 1").text, "2")
        self.assertFalse(self.node(env={"NODE_OPTIONS": "--no-warnings"}).is_unchanged())

    def test_questions_about_code_that_does_not_run(self):
        context = self.node()
        context.is_complete([
            ("", "complete"), ("1 + 1", "complete"), ("// a comment", "complete"), ("function f() {", "incomplete", "  "), ("function f() {\n", "incomplete"),
            ("function f() {\n  return 1\n}", "complete"), ("foo(", "incomplete"), ("foo('x'", "incomplete"), ("foo(a, bar(b", "incomplete"), ("foo(a b", "invalid"),
            ("foo(x => {\n  1\n}", "incomplete"), ("`abc", "incomplete"), ("`a${b", "incomplete"), ("/* abc", "incomplete"), ("'abc", "invalid"), ("x = 1 +", "incomplete"),
            ("1 2", "invalid"), ("}", "invalid"), ("await x", "complete"), ("await f(", "incomplete"), ("if (await x) {", "incomplete", "  "),
            ("if (await x) {\n}", "complete"), ("await x }", "invalid"), ("const z = await fetch('x'", "incomplete"), ("{a: 1,", "incomplete"), ("x.", "incomplete")])
        context.cell("const hello_world = 'x'; let obj = {alpha: 1, get beta() { ran++; return {} }, 'not a name': 1}; var ran = 0; "
                     "var trap = new Proxy({}, {ownKeys() { for (;;); }, get() { for (;;); }, getPrototypeOf() { for (;;); }})")
        context.completes([
            ("hel", "hel", ["hello_world"]), ("x = hello_world.toUpp", "toUpp", ["toUpperCase"]), ("\nobj.", "", ["alpha", "beta", "toString"]), ("obj.beta.", "", []),
            ("trap.", "", []), ("cons", "cons", ["console", "const"]), ("Math.ma", "ma", ["max"]), ("f().a", "", []), ("", "", []), ("unknown.x", "", [])])
        self.assertNotIn("not a name", context.ask("completion", "obj.")["matches"])
        self.assertEqual(context.ask("nonsense", "x"), {})
        self.assertEqual(context.cell("ran").text, "0")

    def fits(self, expected, actual):
        if actual is None and isinstance(expected, re.Pattern):
            return True
        return super().fits(expected, actual)

    def table(self, node, file=False):
        context = self.node(node, file)
        context.cell("const kept = 42")
        for code, main, out, err, error in TABLE:
            answer = context.cell(code)
            about = f"{node} {code}\n{answer}"
            forms = {"text/plain": main} if main is not None and not isinstance(main, dict) else main
            if isinstance(forms, dict) and isinstance(main, (str, re.Pattern)) and answer.main and "application/json" in answer.main:
                forms["application/json"] = ANY
            self.assertTrue(self.fits(forms, answer.main), about)
            self.assertTrue(self.fits(out, answer.out.decode()), about)
            self.assertTrue(self.fits(err, answer.err.decode()), about)
            self.assertEqual(answer.done["ok"], error is None, about)
            self.assertEqual(len(answer.errors), 1 if error else 0, about)
            if error:
                actual = answer.error
                self.assertTrue(self.fits(error[0], actual["name"]) and self.fits(error[1], actual["value"]) and self.fits(error[2], actual["line"]), about)
                for foreign in ("node:inspector", "[eval]", "javascript.js", "sbx-cell"):
                    self.assertNotIn(foreign, actual["traceback"], about)
            self.assertEqual(context.cell("kept").text, "42", about)
        self.assertEqual(context.close(), 0)

    def test_table(self):
        self.table("/usr/bin/node")

    def test_table_from_a_file(self):
        self.table("/usr/bin/node", file=True)

    def test_every_version(self):
        others = [node for node in found() if node != os.path.realpath("/usr/bin/node")]
        if not others:
            self.skipTest("no Node.js besides Debian's")
        for node in others:
            with self.subTest(node, version=version_of(node)):
                self.table(node)

    def test_traceback_names_lines_of_cells(self):
        context = self.node()
        context.cell("function f() {\n  throw new Error('deep')\n}")
        answer = context.cell("\nf()")
        self.assertEqual(answer.error["traceback"], "Error: deep\n    at f (<cell 1>:2:9)\n    at <cell 2>:2:1", answer)
        self.assertEqual(answer.error["line"], 2)
        answer = context.cell("let a\nlet b = ;")
        self.assertEqual(answer.error["traceback"], "<cell 3>:2\nlet b = ;\n        ^\nSyntaxError: Unexpected token ';'", answer)
        answer = context.cell("1\nfoo(\n")
        self.assertEqual((answer.error["traceback"], answer.error["line"]), ("<cell 4>:2\nfoo(\n    ^\nSyntaxError: Unexpected end of input", 2), answer)

    def test_stacks_in_values_name_cells_and_nothing_of_the_driver(self):
        for file in (False, True):
            context = self.node(file=file)
            # It belongs to the cell, though Node.js tells of it only when the cell's code is over.
            answer = context.cell("Promise.reject(new Error('z'))")
            self.assertEqual(answer.text, "Promise {\n  <rejected> Error: z\n      at <cell 1>:1:16\n}", answer)
            self.assertEqual(bytes(answer.err), b"Uncaught (in promise) Error: z\n    at <cell 1>:1:16\n")
            self.assertEqual(context.cell("new Error('value')").text, "Error: value\n    at <cell 2>:1:1")
            # What follows a stack stays.
            self.assertEqual(context.cell("[new Error('a'), 2, Object.assign(new Error('b'), {code: 3})]").text,
                             "[\n  Error: a\n      at <cell 3>:1:2,\n  2,\n  Error: b\n      at <cell 3>:1:35 {\n    code: 3\n  }\n]")
            self.assertEqual(context.cell("display(new Error('shown'))").shown, [{"text/plain": "Error: shown\n    at <cell 4>:1:9"}])
            answer = context.cell("throw {inner: new Error('thrown')}")
            self.assertEqual(answer.error["value"], "{\n  inner: Error: thrown\n      at <cell 5>:1:15\n}", answer)
            # Text that looks like a stack is a value's own.
            lookalike = "'sbx-cell-1\\n    at run ([eval]:1:1)'"
            self.assertEqual(context.cell(lookalike).text, lookalike)
            self.assertIn("at run ([eval]:1:1)", context.cell(f"[{lookalike}, new Error('beside')]").text)

    def test_false_timers_stop_no_cell(self):
        context = self.node()
        context.cell("setImmediate = setTimeout = process.nextTick = () => {}")
        self.assertEqual(context.cell("await 1; 6 * 7", patience=20.0).text, "42")

    def test_large_values_are_left_out(self):
        context = self.node()
        answer = context.cell("'x'.repeat(5_000_000)")
        self.assertEqual([(r["data"], r["left_out"]) for r in answer.results], [({}, [{"mime": "text/plain", "bytes": 5_000_002}])])
        answer = context.cell("for (let i = 0; i < 4; i++) display('y'.repeat(3_000_000))")
        self.assertEqual([len(r["data"]) for r in answer.results], [1, 1, 0, 0])
        answer = context.cell("for (let i = 0; i < 120_000; i++) display(i)")
        self.assertEqual(sum(len(r.get("left_out", ())) for r in answer.results), 1000)
        self.assertEqual(context.cell("throw new Error('v'.repeat(1_000_000))").error["value"].count("v"), 128 << 10)

    def test_exit_is_reported_and_ends_the_context(self):
        for code, status in (("process.exit(3)", 3), ("process.exit()", 0), ("process.exitCode = 4; process.exit()", 4), ("await 1; process.exit(5)", 5),
                             ("setTimeout(() => process.exit(6), 1); await new Promise(() => {})", 6)):
            context = self.node()
            answer = context.cell("console.log('first'); " + code)
            self.assertEqual((bytes(answer.out), answer.done["exit"], answer.done["ended"], answer.done["ok"]), (b"first\n", status, True, status == 0), answer)
            with self.assertRaises(Died) as ended:
                context.cell("1")
            self.assertEqual(ended.exception.status, status)

    def test_exit_keeps_output_larger_than_the_pipe(self):
        for code in ("console.log('x'.repeat(5e5)); process.exit(0)", "console.error('x'.repeat(5e5)); process.exit(0)", "await 1; console.log('x'.repeat(5e5)); process.exit(0)"):
            context = self.node()
            answer = context.cell(code)
            self.assertEqual((len(answer.out) + len(answer.err), answer.done["exit"]), (500_001, 0), code)

    def test_several_at_once(self):
        context = self.node()
        nonces = [context.begin(f"await new Promise(r => setTimeout(r, 1)); {number}") for number in range(20)]
        for number, nonce in enumerate(nonces):
            context.count = number + 1
            self.assertEqual(context.finish(nonce).text, str(number))
        context.ping()
        self.assertEqual(context.cell("/* " + "é" * 1_000_000 + " */ 5").text, "5")

    def interrupted(self, context, code):
        """Sends SIGINT again and again, as sbx does: Node.js loses one that comes as a cell's first part ends."""
        ready, over = threading.Event(), threading.Event()

        def send():
            ready.wait()
            over.wait(0.1)  # past the cell's first part
            while not over.is_set():
                context.interrupt()
                over.wait(0.1)

        thread = threading.Thread(target=send)
        thread.start()
        try:
            answer = context.cell(code, lambda _, answer: b"ready\n" in answer.out and ready.set())
        finally:
            over.set()
            ready.set()
            thread.join()
        self.assertEqual((answer.done["ok"], answer.error["name"]), (False, "Interrupt"), answer)
        context.ping()
        context.ping()

    def test_sigint_ends_the_cell_only(self):
        context = self.node()
        context.cell("const kept = 42")
        for code in ("console.log('ready'); while (true) {}", "console.log('ready'); await new Promise(() => {})", "await 1; console.log('ready'); await new Promise(r => setTimeout(r, 1e6))"):
            self.interrupted(context, code)
            self.assertEqual(context.cell("kept").text, "42")
        for _ in range(20):
            context.interrupt()
            context.ping()
        self.assertEqual(context.cell("kept").text, "42")

    def test_what_an_interrupted_cell_waits_for_may_be_collected(self):
        for node in found() or ["/usr/bin/node"]:
            with self.subTest(node):
                context = self.node(node)
                self.interrupted(context, "console.log('ready'); await new Promise(() => {})")
                for _ in range(3):
                    self.assertEqual(context.cell("{ const many = []; for (let i = 0; i < 1e6; i++) many.push({ a: [i] }) } 1").text, "1")

    def test_values_of_an_interrupted_cell_reach_no_other_cell(self):
        context = self.node()
        context.cell("async function show(gate, value) { await gate; display(value); await 1; display(value) }; const opened = []; const gate = () => new Promise(open => opened.push(open))")
        late = "display('late'); console.log('went on')"
        for rest in (f"await gate(); {late}; 'last'", f"await show(gate(), 'late'); {late}", f"await Promise.all([show(gate(), 'late'), gate()]); {late}",
                     f"setTimeout(function again() {{ if (opened.done) {{ {late} }} else setTimeout(again, 1) }}, 1); await gate()",
                     f"setTimeout(function again() {{ if (opened.done) {{ {late} }} else setTimeout(again, 1) }}, 1); while (true) {{}}"):
            context.cell("opened.length = 0; opened.done = false; 1")
            self.interrupted(context, f"console.log('ready'); {rest}")
            dropped = b"sbx: cell %d was interrupted, and what it displays now is dropped\n" % context.count
            answer = context.cell("opened.forEach(open => open()); opened.done = true; await show(new Promise(r => setTimeout(r, 50)), 'mine'); display('mine'); Promise.resolve(7)")
            self.assertEqual((answer.shown, answer.text), ([{"text/plain": "'mine'"}] * 3, "Promise { 7 }"), f"{rest}\n{answer}")
            self.assertEqual((bytes(answer.out), bytes(answer.err)), (b"went on\n", dropped), f"{rest}\n{answer}")

    def test_a_timer_prints_after_its_cell(self):
        context = self.node()
        self.interrupted(context, "function show(value) { display(value) }; console.log('ready'); await new Promise(() => {})")
        context.cell("setTimeout(() => console.log('printed'), 50); 1")
        answer = context.cell("await new Promise(r => setTimeout(r, 200)); show(2)")
        self.assertEqual((answer.shown, bytes(answer.out), bytes(answer.err)), ([{"text/plain": "2"}], b"printed\n", b""), answer)

    def test_values_of_every_way_to_call_back_reach_their_cell(self):
        context = self.node()
        self.interrupted(context, "console.log('ready'); await new Promise(() => {})")
        context.cell("const events = new (require('events'))(); events.on('event', value => display(value)); const early = new Promise(r => setTimeout(r, 1, 'early')); 1")
        answer = context.cell("events.emit('event', 'emitted'); early.then(display); setTimeout(display, 1, 'timer'); setImmediate(display, 'immediate'); process.nextTick(display, 'tick'); "
                              "queueMicrotask(() => display('microtask')); require('fs').stat('/', () => display('file')); await { then(done) { display('thenable'); done() } }; "
                              "await new Promise(r => setTimeout(r, 100)); display('end'); ({ [Symbol.for('nodejs.util.inspect.custom')]() { display('inspected'); return 'value' } })")
        self.assertEqual({data["text/plain"].strip("'") for data in answer.shown},
                         {"emitted", "early", "timer", "immediate", "tick", "microtask", "file", "thenable", "end", "inspected"}, answer)
        self.assertEqual((answer.text, bytes(answer.err)), ("value", b""), answer)

    def test_commands_inherit_no_channel(self):
        context = self.node()
        answer = context.cell("require('child_process').execSync('for f in /proc/self/fd/*; do echo ${f##*/}; done').toString()")
        self.assertLessEqual(set(eval(answer.text).split()), {"0", "1", "2", "3", "4", "10"})
        answer = context.cell("[3, 4].map(n => { try { fs.writeSync(n, '5: no message'); return 'written' } catch (e) { return e.code } }); var fs = require('fs')")
        self.assertNotIn("written", str(answer.main))

    def test_attacks_hurt_their_own_context(self):
        other = self.node()
        for code in ("for (let i = 3; i < 100; i++) try { require('fs').closeSync(i) } catch {}", "process.abort()", "process.kill(process.pid, 9)", "process.reallyExit(4)",
                     "process.removeAllListeners(); process.exit(5)"):
            context = self.node()
            with self.assertRaises((Died, AssertionError)):
                context.cell(code, patience=2.0)
                context.cell("1", patience=2.0)
            context.process.kill()
        for code in ("JSON.stringify = JSON.parse = Buffer.from = null", "Array.prototype.map = Array.prototype.push = undefined", "process.stdout.write = console.log = () => {}",
                     "process.on('SIGINT', () => {})", "delete globalThis.require; delete globalThis.process", "globalThis.Error = undefined; Promise = undefined",
                     "require('fs').writeSync = null", "Object.prototype.then = 1"):
            context = self.node()
            context.cell("const kept = 42")
            try:
                context.cell(code, patience=5.0)
                self.assertEqual(context.cell("kept", patience=5.0).text, "42", code)
            except (Died, AssertionError) as error:
                print(f"{code}: {error}")
                context.process.kill()
        self.assertEqual(other.cell("1").text, "1")


if __name__ == "__main__":
    celltest.main()

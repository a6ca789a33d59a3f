#!/usr/bin/env python3
"""`Sandbox` of examples/python/sbx.py with real sessions: every name that it offers, and the sentence of every one that it does not."""

import ast
import asyncio
import datetime
import glob
import hashlib
import importlib.util
import inspect
import io
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import unittest
import warnings
from unittest import mock

import sessiontest
from sbxtest import SBX, SOURCE
from sessiontest import SessionTest

FILE = SOURCE / "examples/python/sbx.py"
specification = importlib.util.spec_from_file_location("sbx_example", FILE)
sbx = importlib.util.module_from_spec(specification)
sys.dont_write_bytecode = True
sys.modules["sbx_example"] = sbx  # dataclasses look for it
specification.loader.exec_module(sbx)


class SandboxTest(SessionTest):
    def setUp(self):
        super().setUp()
        patch = mock.patch.dict(os.environ, self.environment(), clear=True)
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.work)

    def sandbox(self, *arguments, **named):
        made = sbx.Sandbox(*arguments, program=SBX, **named)
        self.addCleanup(made.close)
        return made

    def out(self, execution):
        """It comes in as many pieces as it was written."""
        return "".join(execution.logs.stdout)

    def refuses(self, kind, words, function, *arguments, **named):
        with self.assertRaisesRegex(kind, words) as raised:
            function(*arguments, **named)
        self.assertIs(type(raised.exception), kind)
        return raised.exception


class Cells(SandboxTest):
    def test_a_cell_gives_its_output_and_values(self):
        sandbox = self.sandbox(envs={"NAME": "a value", "QUOTED": "it's \"x\"\n"})
        seen = []
        execution = sandbox.run_code("import os, sys\nprint('é'); print('bad', file=sys.stderr); display([1]); os.environ['NAME'] + os.environ['QUOTED']",
                                     on_stdout=seen.append, on_stderr=seen.append, on_result=seen.append)
        self.assertEqual((self.out(execution), "".join(execution.logs.stderr), execution.error, execution.execution_count), ("é\n", "bad\n", None, 1))
        self.assertEqual((execution.text, execution.results[-1].raw), ("a valueit\\'s \"x\"\\n", "'a valueit\\'s \"x\"\\n'"))
        messages = [each for each in seen if isinstance(each, sbx.OutputMessage)]
        self.assertEqual(["".join(each.line for each in messages if each.error is error) for error in (False, True)], ["é\n", "bad\n"])
        self.assertEqual([each.is_main_result for each in seen if isinstance(each, sbx.CellResult)], [False, True])
        shown = execution.results[0]
        self.assertEqual((shown.json, shown.text, shown["text"], shown.html, shown.chart, shown.formats()), ([1], "[1]", "[1]", None, None, ["text", "json"]))
        self.assertEqual(json.loads(execution.to_json())["results"][0], {"text": "[1]", "json": [1]})
        self.assertEqual(execution.record["schema"], "sbx.cell/1")
        with self.assertRaises(AttributeError):
            shown.nonsense  # noqa: B018

    def test_state_languages_and_contexts(self):
        sandbox = self.sandbox()
        sandbox.run_code("x = 41")
        self.assertEqual(sandbox.run_code("x + 1").text, "42")
        self.assertEqual(self.out(sandbox.run_code("echo $((6 * 7))", language="bash")), "42\n")
        own = sandbox.create_code_context()
        other = sandbox.create_code_context(language="bash")
        self.assertEqual(sandbox.run_code("x", context=own).error.name, "NameError")
        self.assertEqual((other.language, self.out(sandbox.run_code("y=5; echo $y", context=other))), ("bash", "5\n"))
        self.assertEqual({each.id for each in sandbox.list_code_contexts()}, {"python", "bash", own.id, other.id})
        sandbox.restart_code_context("python")
        self.assertEqual(sandbox.run_code("x").error.name, "NameError")
        sandbox.remove_code_context(own)
        self.assertNotIn(own.id, {each.id for each in sandbox.list_code_contexts()})
        self.refuses(sbx.InvalidArgumentException, "exclude each other", sandbox.run_code, "1", language="bash", context=own)
        self.refuses(sbx.InvalidArgumentException, "cobol", sandbox.run_code, "1", language="cobol")
        self.assertEqual(self.out(sandbox.run_code("echo $y", context=other.id)), "5\n")
        for function in (sandbox.remove_code_context, lambda name: sandbox.run_code("1", context=name)):
            self.refuses(sbx.NotFoundException, "no context", function, "absent")

    def test_contexts_begin_in_a_directory(self):
        sandbox = self.sandbox()
        sandbox.files.make_dir("a b")
        own = sandbox.create_code_context(cwd="a b")
        where = "import os; os.path.basename(os.getcwd())"
        self.assertEqual((own.cwd, sandbox.run_code(where, context=own).text), ("a b", "a b"))
        self.assertEqual(sandbox.list_code_contexts(), [own])
        sandbox.run_code("x = 1; os.chdir('/')", context=own)
        sandbox.restart_code_context(own)
        self.assertEqual((sandbox.run_code("x", context=own).error.name, sandbox.run_code(where, context=own).text), ("NameError", "a b"))
        sandbox.remove_code_context(own)
        self.assertEqual(sandbox.list_code_contexts(), [])
        self.assertEqual(self.refuses(sbx.FileNotFoundException, "nowhere", sandbox.create_code_context, cwd="nowhere").kind, "not-found")

    def test_names_of_the_first_version_warn(self):
        sandbox = self.sandbox()
        own = sandbox.create_code_context()
        sandbox.run_code("x = 5", context=own)
        with self.assertWarnsRegex(DeprecationWarning, "run_code"):
            notebook = sandbox.notebook
        with self.assertWarnsRegex(DeprecationWarning, "sandbox.files"):
            sandbox.filesystem.write("file", "text")
        self.assertEqual((notebook.exec_cell("6 * 7").text, notebook.exec_cell("x", kernel_id=own.id).text, sandbox.files.read("file")), ("42", "5", "text"))
        self.refuses(sbx.NotFoundException, "absent", notebook.exec_cell, "x", kernel_id="absent")

    def test_every_failure_has_one_shape(self):
        """An exception, a budget, the interpreter's death; then the next cell runs."""
        sandbox = self.sandbox()
        seen = []
        for code, name, words in (("1/0", "ZeroDivisionError", "division by zero"), ("import os; os._exit(3)", "InterpreterDied", "status 3"),
                                  ("while True: print('x' * 100_000)", "BudgetExceeded", "output")):
            if name == "BudgetExceeded":
                sandbox = self.sandbox(policy=self.narrow())
            error = sandbox.run_code(code, on_error=seen.append).error
            self.assertEqual(error.name, name)
            self.assertIn(words, error.value)
            self.assertEqual(seen[-1], error)
            self.assertEqual(sandbox.run_code("6 * 7").text, "42")
        self.assertIn("Traceback", seen[0].traceback)

    def narrow(self):
        path = self.tmp / "narrow.toml"
        path.write_text('schema = 1\nname = "narrow"\nextends = "agent"\n[filesystem.workspace]\nmode = "empty"\n[output]\nexceed = "kill"\nstdout = "1M"\npassed = "1M"\n')
        return str(path)

    def test_a_time_out_keeps_what_came(self):
        sandbox = self.sandbox()
        raised = self.refuses(sbx.TimeoutException, "wall-time budget", sandbox.run_code, "kept = 1; print('before', flush=True)\nwhile True: pass", timeout=3)
        self.assertEqual(self.out(raised.execution), "before\n")
        self.assertEqual(sandbox.run_code("kept", timeout=0).text, "1")
        self.assertEqual(sandbox.run_code("kept", timeout=10_000_000).text, "1")
        raised = self.refuses(sbx.TimeoutException, "wall-time budget", sandbox.commands.run, "echo before; sleep 60", timeout=3)
        self.assertEqual((raised.result.stdout, raised.result.exit_code), ("before\n", 137))

    def test_forms_of_a_table(self):
        if not subprocess.run(["/usr/bin/python3", "-c", "import pandas"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            self.skipTest("pandas is not installed")
        result = self.sandbox(policy="data-analysis").run_code("import pandas\npandas.DataFrame({'a': [1, 2], 'b': ['x', None]})").results[0]
        self.assertEqual(result.data, {"a": [1, 2], "b": ["x", None]})
        self.assertIn("<table", result.html)


class FilesAndCommands(SandboxTest):
    def test_files(self):
        sandbox = self.sandbox()
        files = sandbox.files
        self.assertEqual(files.write("made/on/the/way.txt", "tëxt"), sbx.WriteInfo("way.txt", "made/on/the/way.txt"))
        self.assertEqual((files.read("made/on/the/way.txt"), files.read("made/on/the/way.txt", "bytes"), b"".join(files.read("made/on/the/way.txt", "stream"))),
                         ("tëxt", bytearray("tëxt".encode()), "tëxt".encode()))
        with tempfile.TemporaryFile() as file:
            file.write(b"of a file")
            file.seek(0)
            self.assertEqual([each.name for each in files.write_files([{"path": "-odd name", "data": b"\0\xff"}, {"path": "/tmp/t", "data": file}])], ["-odd name", "t"])
        self.assertEqual((files.read("./-odd name", "bytes"), files.read("/tmp/t")), (b"\0\xff", "of a file"))
        files.write("empty", "")
        self.assertEqual(files.read("empty"), "")
        self.assertEqual(sorted((each.name, each.type, each.path) for each in files.list("made/on")), [("the", sbx.FileType.DIR, "made/on/the")])
        info = files.get_info("made/on/the/way.txt")
        self.assertEqual((info.name, info.type, info.size, info.permissions), ("way.txt", sbx.FileType.FILE, 5, "rw-r--r--"))
        self.assertEqual((info.owner, info.group), tuple(sandbox.commands.run("stat -c '%U %G' made").stdout.split()))
        self.assertEqual(info.owner, "user")
        sandbox.commands.run(["ln", "-s", "../no where", "link"])
        sandbox.run_code("import os; os.symlink(b'\\xff', 'odd')")
        links = {each.name: (each.type, each.symlink_target) for each in files.list(".")}
        self.assertEqual((links["link"], os.fsencode(links["odd"][1]), links["made"]), ((None, "../no where"), b"\xff", (sbx.FileType.DIR, None)))
        self.assertEqual((files.get_info("link").symlink_target, info.symlink_target), ("../no where", None))
        self.assertEqual([files.exists(path) for path in ("made", "made/", "/tmp/t", "/", ".", "absent", "absent/x", "empty/x")], [True] * 5 + [False] * 3)
        self.assertEqual(sandbox.run_code("open('made/on/the/way.txt').read()").text, "tëxt")

    def test_files_that_are_not_there_or_not_files(self):
        sandbox = self.sandbox()
        sandbox.commands.run("mkdir directory; mkfifo fifo; ln -s /etc/passwd link")
        for function in (sandbox.files.read, sandbox.files.get_info, sandbox.files.list):
            self.refuses(sbx.FileNotFoundException, "'absent'.*No such file", function, "absent")
        self.refuses(sbx.InvalidArgumentException, "Is a directory", sandbox.files.read, "directory")
        self.refuses(sbx.SandboxException, "FIFO", sandbox.files.read, "fifo")
        for path in ("directory", "fifo", "link"):
            self.refuses(sbx.InvalidArgumentException, f"'{path}'", sandbox.files.write, path, "x")
        for path in ("", "x/", "..", "."):
            self.refuses(sbx.InvalidArgumentException, "does not name a file", sandbox.files.write, path, "x")
        self.refuses(sbx.InvalidArgumentException, "Read-only", sandbox.files.write, "/usr/x", "x")
        self.refuses(sbx.InvalidArgumentException, "format", sandbox.files.read, "link", "json")
        sandbox.files.write("directory/directory", io.StringIO("text"))
        self.assertEqual([each.path for each in sandbox.files.list("directory")], ["directory/directory"])
        self.assertEqual(sandbox.files.read("directory/directory"), "text")
        self.refuses(sbx.InvalidArgumentException, "is a file", sandbox.files.list, "directory/directory")

    def test_files_are_written_together(self):
        files = self.sandbox().files
        entries = [{"path": "a/one", "data": "1"}, {"path": "two", "data": b"2"}]
        for write in (files.write, files.write_files):
            self.assertEqual(write(entries), [sbx.WriteInfo("one", "a/one"), sbx.WriteInfo("two", "two")])
            self.assertEqual((files.read("a/one"), files.read("two"), write([])), ("1", "2", []))
        for wrong in (5, [5], [{"path": "x"}], [{"path": 5, "data": ""}], {"path": "x", "data": ""}):
            self.refuses(sbx.InvalidArgumentException, "a list of", files.write, wrong)
        self.refuses(sbx.InvalidArgumentException, "not NoneType", files.write, "x")

    def test_a_command_that_does_not_read_holds_up_no_caller(self):
        sandbox = self.sandbox()
        handle = sandbox.commands.run("sleep 1000", background=True, stdin=True)
        self.refuses(sbx.TimeoutException, "session send took longer than 3 s", handle.send_stdin, "x" * 10_000_000, request_timeout=3)
        self.refuses(sbx.TimeoutException, "session send", sandbox.commands.send_stdin, handle.pid, "x" * 10_000_000, request_timeout=3)
        self.assertTrue(handle.kill())
        reader = sandbox.commands.run("wc -c", background=True, stdin=True)  # the twin
        reader.send_stdin("x" * 10_000_000, request_timeout=sessiontest.HANG)
        reader.close_stdin()
        self.assertEqual(reader.wait().stdout.strip(), "10000000")

    def test_values_of_another_type_are_named(self):
        sandbox = self.sandbox()
        self.refuses(sbx.InvalidArgumentException, "not int", sandbox.files.write, "x", 5)
        self.refuses(sbx.InvalidArgumentException, "not NoneType", sandbox.run_code, None)
        for background in (False, True):
            self.refuses(sbx.InvalidArgumentException, "not int", sandbox.commands.run, 5, background)
        before = [each.sandbox_id for each in sbx.Sandbox.list(program=SBX).next_items()]
        for wrong in ("5m", -1, float("nan"), True):
            self.refuses(sbx.InvalidArgumentException, "timeout is a number of seconds", sbx.Sandbox, timeout=wrong, program=SBX)
            self.refuses(sbx.InvalidArgumentException, "timeout is a number of seconds", sandbox.run_code, "1", timeout=wrong)
            self.refuses(sbx.InvalidArgumentException, "timeout is a number of seconds", sandbox.set_timeout, wrong)
        for wrong in ({"A=B": "c"}, {"": "c"}, {"A\0": "c"}, {"A": "\0"}):
            self.refuses(sbx.InvalidArgumentException, "name of a variable|NUL", sbx.Sandbox, envs=wrong, program=SBX)
            self.refuses(sbx.InvalidArgumentException, "name of a variable|NUL", sandbox.run_code, "1", envs=wrong)
            self.refuses(sbx.InvalidArgumentException, "name of a variable|NUL", sandbox.commands.run, "true", envs=wrong)
        self.assertEqual(sandbox.run_code("import os; os.environ['A']", envs={"A": "b=c"}).text, "b=c")  # the twin
        self.assertEqual([each.sandbox_id for each in sbx.Sandbox.list(program=SBX).next_items()], before)

    def test_commands(self):
        sandbox = self.sandbox(envs={"ALL": "1"})
        seen = []
        result = sandbox.commands.run("echo out $ONE $ALL; echo err >&2", envs={"ONE": "o n e"}, on_stdout=seen.append, on_stderr=seen.append)
        self.assertEqual((result, sorted("".join(seen).splitlines())), (sbx.CommandResult("out o n e 1\n", "err\n", 0, None), ["err", "out o n e 1"]))
        raised = self.refuses(sbx.CommandExitException, "status 3\nwhy", sandbox.commands.run, "echo o; echo why >&2; exit 3")
        self.assertEqual((raised.stdout, raised.stderr, raised.exit_code, raised.error), ("o\n", "why\n", 3, None))
        raised = self.refuses(sbx.CommandExitException, "SIGKILL", sandbox.commands.run, "kill -9 $$")
        self.assertEqual(raised.exit_code, 137)
        self.assertEqual(sandbox.commands.run("cat; [ -t 0 ] || echo none").stdout, "none\n")
        self.assertEqual(sandbox.commands.run("cat; echo end", stdin="").stdout, "end\n")
        self.assertEqual(len(sandbox.commands.run("head -c 3000000 /dev/zero | tr '\\0' x").stdout), 3_000_000)

    def test_a_command_of_words_with_its_input(self):
        sandbox = self.sandbox()
        hostile = "a b $HOME `id` 'x' \"y\" \\ \n*"
        self.assertEqual(sandbox.commands.run(["printf", "%s|", hostile, "", "--"]).stdout, f"{hostile}||--|")
        self.assertEqual(sandbox.commands.run(["cat"], stdin=hostile).stdout, hostile)
        self.assertEqual(sandbox.commands.run("cat > got; sha256sum < got", stdin=b"\xc3\x28\0\xff").stdout.split()[0], hashlib.sha256(b"\xc3\x28\0\xff").hexdigest())
        self.assertEqual(len(sandbox.commands.run(["printf", "%s", *["x" * 65536] * 16]).stdout), 1 << 20)
        self.assertEqual(sandbox.commands.run(["true"], stdin="x" * 1_000_000).exit_code, 0)
        # It is no file of the caller's, which could grow beyond the budget of the disk.
        self.assertEqual(sandbox.commands.run("stat -Lc %F /proc/self/fd/0; echo more >&0 || echo refused", stdin="x").stdout, "fifo\nrefused\n")
        self.assertEqual(self.refuses(sbx.InvalidArgumentException, "Permission denied", sandbox.commands.run, ["/etc/passwd"]).kind, "not-permitted")
        self.assertEqual(self.refuses(sbx.SandboxException, "no command 'absent'", sandbox.commands.run, ["absent"]).kind, "not-found")
        self.assertEqual(self.refuses(sbx.CommandExitException, "", sandbox.commands.run, "/etc/passwd").exit_code, 126)
        self.assertEqual(sandbox.commands.run(["echo", "$HOME"], background=True).wait().stdout, "$HOME\n")
        self.refuses(sbx.SandboxException, "is not offered: .*send_stdin", sandbox.commands.run, "cat", background=True, stdin="x")

    def test_commands_in_the_background(self):
        sandbox = self.sandbox()
        sandbox.commands.run("mkfifo gate")
        handle = sandbox.commands.run("echo begun; read line < gate; echo $line; echo e >&2", background=True)
        self.assertEqual([(each.pid, "read line" in each.cmd) for each in sandbox.commands.list()], [(handle.pid, True)])
        connected = sandbox.commands.connect(handle.pid)
        sandbox.commands.run("echo go > gate")
        seen = []
        self.assertEqual(connected.wait(on_stdout=seen.append), sbx.CommandResult("begun\ngo\n", "e\n", 0, None))
        self.assertEqual("".join(seen), "begun\ngo\n")
        self.assertEqual((sandbox.commands.list(), handle.kill(), handle.disconnect()), ([], False, None))
        handle = sandbox.commands.run("sleep 60", background=True)
        self.assertTrue(sandbox.commands.kill(handle.pid))
        self.assertEqual(self.refuses(sbx.CommandExitException, "SIGKILL", handle.wait).exit_code, 137)
        self.assertFalse(sandbox.commands.kill(99))
        self.refuses(sbx.NotFoundException, "99", sandbox.commands.connect, 99)


    def test_a_command_reads_what_it_is_sent(self):
        sandbox = self.sandbox()
        handle = sandbox.commands.run("while read -r line; do echo \"got $line\"; done; echo end", background=True, stdin=True)
        pieces = iter(handle)
        handle.send_stdin("one\n")
        self.assertEqual(next(pieces), ("got one\n", None, None))
        sandbox.commands.send_stdin(handle.pid, "t")
        sandbox.commands.connect(handle.pid).send_stdin(b"wo\n")
        self.assertEqual(next(pieces), ("got two\n", None, None))
        pieces.close()
        sandbox.commands.close_stdin(handle.pid)
        self.assertEqual(handle.wait().stdout, "got one\ngot two\nend\n")
        self.refuses(sbx.NotFoundException, "has ended", handle.send_stdin, "late")
        closed = sandbox.commands.run("sleep 60", background=True)
        self.refuses(sbx.InvalidArgumentException, "is not open", closed.send_stdin, "x")
        both = sandbox.commands.run("echo out; echo err >&2", background=True)
        self.assertEqual(sorted(each for piece in both for each in piece if each), ["err\n", "out\n"])


class Life(SandboxTest):
    def test_begin_and_end(self):
        with self.sandbox(timeout=600, metadata={"for": "a test"}) as sandbox:
            info = sandbox.get_info()
            self.assertEqual((info.sandbox_id, info.template_id, info.metadata), (sandbox.sandbox_id, "e2b", {"for": "a test"}))
            self.assertTrue(0 < (info.end_at - info.started_at).total_seconds() <= 601)
            sandbox.set_timeout(900)
            self.assertGreater((sandbox.get_info().end_at - info.end_at).total_seconds(), 200)
            for long in (10_000_000, float("inf")):  # the policy's session.lifetime is the most
                sandbox.set_timeout(long)
                self.assertTrue(24 * 3600 - 60 < (sandbox.get_info().end_at - datetime.datetime.now(datetime.timezone.utc)).total_seconds() <= 24 * 3600 + 1)
            sbx.Sandbox.set_timeout(sandbox.sandbox_id, 100, program=SBX)
            by_id = sbx.Sandbox.get_info(sandbox.sandbox_id, program=SBX)
            self.assertEqual((by_id.sandbox_id, by_id.end_at), (sandbox.sandbox_id, sandbox.get_info().end_at))
            self.assertLess((by_id.end_at - datetime.datetime.now(datetime.timezone.utc)).total_seconds(), 101)
            self.assertEqual(sbx.Sandbox.get_metrics(sandbox.sandbox_id, program=SBX)[0].mem_total, 1 << 30)
            pages = sbx.Sandbox.list(program=SBX)
            self.assertTrue(pages.has_next)
            self.assertEqual([each.sandbox_id for each in pages.next_items()], [sandbox.sandbox_id])
            self.assertFalse(pages.has_next)
            (metrics,) = sandbox.get_metrics()
            self.assertEqual((metrics.cpu_count, metrics.mem_total, metrics.disk_total), (2.0, 1 << 30, 512 << 20))
            sandbox.run_code("x = 5")
            self.assertEqual(sbx.Sandbox.connect(sandbox.sandbox_id, program=SBX).run_code("x").text, "5")
            self.assertTrue(sandbox.is_running())
        self.assertFalse(sandbox.is_running())
        self.assertEqual((sandbox.kill(), sbx.Sandbox.kill(sandbox.sandbox_id, program=SBX)), (False, False))
        for function in (lambda: sandbox.run_code("1"), lambda: sandbox.commands.run("true"), lambda: sandbox.files.read("x"), lambda: sandbox.files.exists("x"),
                         lambda: sbx.Sandbox.connect(sandbox.sandbox_id, program=SBX), sandbox.get_info):
            self.refuses(sbx.SandboxNotFoundException, "there is no session", function)
        other = sbx.Sandbox.create(program=SBX)
        self.assertTrue(sbx.Sandbox.kill(other.sandbox_id, program=SBX))

    def test_it_ends_with_the_process_that_made_it(self):
        code = f"import sys; sys.path.insert(0, {str(FILE.parent)!r}); import sbx; s = sbx.Sandbox(program={str(SBX)!r}); print(s.sandbox_id, flush=True); sys.stdin.read()"
        maker = sessiontest.sbxtest.start(["/usr/bin/python3", "-B", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(maker.stdin.close)
        name = maker.stdout.readline().decode().strip()
        maker.stdout.close()
        connected = sbx.Sandbox.connect(name, program=SBX)
        self.assertEqual(connected.run_code("6 * 7").text, "42")
        maker.kill()
        maker.wait()
        sessiontest.wait_until(lambda: not connected.is_running(), "it has ended with its maker")

    def test_it_works_where_standard_streams_are_closed(self):
        """Files that it opens have their numbers then, and those of a child are put over them."""
        code = f"import sys; sys.path.insert(0, {str(FILE.parent)!r}); import sbx; s = sbx.Sandbox(program={str(SBX)!r}); print(s.commands.run('cat; echo $A', envs={{'A': 'b'}}).stdout, s.kill(), file=sys.stderr)"
        for closed in ("<&-", ">&-", "<&- >&-"):
            done = subprocess.run(["sh", "-c", f'exec /usr/bin/python3 -B -c "$0" {closed}', code], capture_output=True, text=True, check=False)
            self.assertEqual(done.stderr.splitlines()[:2], ["b", " True"], (closed, done))

    def test_what_it_may_reach_is_the_policys(self):
        (self.work / "here.txt").write_text("of the host")
        self.assertEqual(self.sandbox().commands.run("ls").stdout, "")
        self.assertEqual(self.sandbox().commands.run("pwd; id -un; echo ~; echo 1 > /data/x; cat /data/x").stdout, "/home/user\nuser\n/home/user\n1\n")
        own = self.sandbox(workspace=str(self.work))
        self.assertEqual(own.files.read("here.txt"), "of the host")
        own.files.write("here.txt", "changed")
        self.assertEqual(((self.work / "here.txt").read_text(), own.files.read("here.txt")), ("of the host", "changed"))
        self.assertEqual(self.sandbox("python").get_info().template_id, "python")
        self.assertEqual(self.sandbox("base").get_info().template_id, "e2b")
        self.refuses(sbx.SandboxException, "nosuch", self.sandbox, policy="nosuch")

    def test_arguments_of_the_cloud(self):
        with self.assertRaisesRegex(TypeError, "polcy"):
            self.sandbox(polcy="strict")
        for name in ("network", "mcp", "volume_mounts"):
            for value in ({"x": 1}, {}, False):
                self.refuses(sbx.InvalidArgumentException, name, self.sandbox, **{name: value})
        self.assertTrue(self.sandbox(network=None).is_running())  # as if it were not given
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for _ in range(2):
                self.sandbox(api_key="e2b_0", secure=True, request_timeout=5, proxy=None, allow_internet_access=True)
        self.assertEqual([str(each.message) for each in told], ["api_key has no effect: the code runs on this machine, not in a cloud"])
        closed = self.sandbox(allow_internet_access=False)
        self.assertEqual(closed.run_code("1").text, "1")

    def test_files_are_made_moved_and_removed(self):
        files = self.sandbox().files
        self.assertEqual((files.make_dir("a/b"), files.make_dir("a/b")), (True, False))
        files.write("a/b/file", b"text")
        self.assertEqual([each.path for each in files.list("a", depth=2)], ["a/b", "a/b/file"])
        self.assertEqual(files.rename("a/b/file", "a/moved").path, "a/moved")
        self.assertEqual((files.exists("a/b/file"), files.exists("a/moved/x"), files.read("a/moved")), (False, False, "text"))
        for function, arguments, error, kind in ((files.read, ("nowhere",), sbx.FileNotFoundException, "not-found"), (files.read, ("a",), sbx.InvalidArgumentException, "is-directory"),
                                                 (files.write, ("a/b", ""), sbx.InvalidArgumentException, "is-directory"), (files.make_dir, ("a/moved",), sbx.InvalidArgumentException, "exists"),
                                                 (files.remove, ("nowhere",), sbx.FileNotFoundException, "not-found"), (files.list, ("nowhere",), sbx.FileNotFoundException, "not-found"),
                                                 (files.write, ("/usr/x", ""), sbx.InvalidArgumentException, "not-permitted")):
            self.assertEqual(self.refuses(error, "", function, *arguments).kind, kind)
        files.remove("a")
        self.assertFalse(files.exists("a"))

    def test_commands_have_a_directory_and_cells_variables(self):
        sandbox = self.sandbox()
        sandbox.files.make_dir("a b")
        self.assertTrue(sandbox.commands.run("pwd", cwd="a b").stdout.endswith("/a b\n"))
        self.assertEqual(self.refuses(sbx.FileNotFoundException, "no directory", sandbox.commands.run, "pwd", cwd="nowhere").kind, "not-found")
        self.assertEqual(sandbox.run_code("import os; os.environ['A']", envs={"A": "of the cell"}).text, "of the cell")
        self.assertEqual(sandbox.run_code("os.environ.get('A')").text, None)

    def test_a_published_port_has_a_host(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        path = self.tmp / "publishes.toml"
        path.write_text(f'schema = 1\nextends = "e2b"\n[network]\npublish = ["127.0.0.1:{port}:8000"]\n')
        sandbox = self.sandbox(policy=str(path))
        self.assertEqual(sandbox.get_host(8000), f"127.0.0.1:{port}")
        self.assertEqual(sbx.Sandbox.connect(sandbox.sandbox_id, program=SBX).get_host(8000), f"127.0.0.1:{port}")
        self.refuses(sbx.SandboxException, "network.publish", sandbox.get_host, 800)

    def test_what_is_not_offered_says_so(self):
        sandbox = self.sandbox()
        for function, arguments, words in (
                (sandbox.files.watch_dir, ("a",), "list"), (sandbox.pty.create, (), "session exec -i"), (sandbox.pause, (), "snapshots"), (sandbox.create_snapshot, (), "snapshots"),
                (sandbox.fork, (), "snapshots"), (sandbox.get_host, (8080,), "network.publish = ..8080:8080"),
                (lambda: sandbox.commands.run("cat", stdin=True), (), "background=True")):
            self.refuses(sbx.SandboxException, "is not offered: .*" + words, function, *arguments)
        self.refuses(sbx.InvalidArgumentException, "one user", sandbox.commands.run, "id", user="root")


class TheTable(SandboxTest):
    """docs/python.md, "If you come from E2B"."""

    def rows(self):
        text = (SOURCE / "docs/python.md").read_text()
        rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line.startswith("| ") and line.count(" | ") >= 2]
        return [row for row in rows if row[1] in ("offered", "narrower", "refused", "absent")]

    def words(self, row):
        return set(re.findall(r"\w+", " ".join(re.findall("`([^`]*)`", row[0]))))

    def test_every_name_has_a_row(self):
        told = set().union(*(self.words(row) for row in self.rows() if row[1] != "absent"))
        told |= {f"{verb}_code_context" for verb in ("list", "remove", "restart")} | {"list_code_contexts"}
        for kind in (sbx.Sandbox, sbx.AsyncSandbox, sbx.Files, sbx.Commands, sbx.CommandHandle, sbx.Execution, sbx.CellResult):
            self.assertEqual({name for name in dir(kind) if not name.startswith("_")} - told - {"raw", "is_main_result"}, set(), kind)
        self.assertEqual({field.name for field in sbx.dataclasses.fields(sbx.EntryInfo)} - told - {"name"}, set())
        self.assertEqual(set(sbx._FORMS) - told, set())
        for name in inspect.signature(sbx.Sandbox.__init__).parameters:
            self.assertIn(name, told | {"self", "program", "compatible", "policy", "workspace"})

    def test_what_has_a_row_is_there(self):
        """But for what is said to be absent."""
        for row in self.rows():
            for name in self.words(row) if row[1] == "absent" else ():
                self.assertFalse(hasattr(sbx.Sandbox, name), name)

    def test_each_refusal_says_what_stands_in_the_row(self):
        sandbox = self.sandbox()
        calls = {"AsyncSandbox": sbx.AsyncSandbox, "network": lambda: sbx.Sandbox(network={}, program=SBX), "one user": lambda: sandbox.files.read("x", user="root"), "files.watch_dir": lambda: sandbox.files.watch_dir("x"),
                 "stdin": lambda: sandbox.commands.run("cat", stdin=True), "pty": sandbox.pty.create, "get_host": lambda: sandbox.get_host(8080), "pause": sandbox.pause, "upload_url": sandbox.upload_url,
                 "download_url": sandbox.download_url, "get_mcp_url": sandbox.get_mcp_url}
        sentences = [sentence for row in self.rows() for sentence in re.findall("`([^`]*)`", row[2]) if re.search(r"^\S+( \S+)* is not offered: |^AsyncSandbox\\(\\) can't|^there is one user", sentence)]
        self.assertGreaterEqual(len(sentences), 9)
        said = []
        for function in calls.values():
            with self.assertRaises(sbx.SandboxException) as raised:
                function()
            said.append(str(raised.exception))
        for sentence in sentences:
            begin = sentence.split("…")[0].rstrip()
            self.assertTrue(any(each.startswith(begin) for each in said), (sentence, said))
        for words in said:
            self.assertTrue(any(words.startswith(sentence.split("…")[0].rstrip()) for sentence in sentences + ["AsyncSandbox() can't wait for the start: use await AsyncSandbox.create()"]), words)


class Growth(SandboxTest):
    def held(self):
        """What must not grow: memory and descriptors of this process, and what lies in the directories of the test's own."""
        with open("/proc/self/statm") as memory:
            kib = int(memory.read().split()[1]) * 4
        return kib, len(os.listdir("/proc/self/fd")), sorted(map(str, self.tmp.rglob("*")))

    def start_and_kill(self, count):
        for _ in range(count):
            sandbox = sbx.Sandbox(program=SBX)
            self.assertEqual(sandbox.run_code("6 * 7").text, "42")
            self.assertTrue(sandbox.kill())

    def does_not_grow(self, count):
        self.start_and_kill(5)
        kib, *first = self.held()
        groups = sessiontest.sbxtest.groups()
        self.start_and_kill(count)
        grown, *last = self.held()
        self.assertEqual(last, first)
        self.assertLess(grown - kib, 2048)
        self.assertEqual(sessiontest.sbxtest.dead_groups_since(groups), [])
        print(f"{count} sandboxes begun and ended: {grown - kib} KiB more, {last[0]} descriptors")

    def test_30_starts_without_growth(self):
        self.does_not_grow(30)

    def test_slow_1000_starts_without_growth(self):
        self.does_not_grow(1000)


class Async(SandboxTest):
    """AsyncSandbox: what waits is another code, the rest is the same."""

    def run_async(self, program):
        async def run():
            async with await sbx.AsyncSandbox.create(program=SBX) as sandbox:
                self.addCleanup(sbx.Sandbox.kill, sandbox.sandbox_id, program=SBX)
                await program(sandbox)
            self.assertFalse(await sandbox.is_running())
        asyncio.run(run())

    async def refuses_async(self, kind, words, awaited):
        with self.assertRaisesRegex(kind, words) as raised:
            await awaited
        self.assertIs(type(raised.exception), kind)
        return raised.exception

    def test_both_have_the_same_names(self):
        def names(kind):
            return {name for name in dir(kind) if not name.startswith("_")}
        for one, other in ((sbx.Sandbox, sbx.AsyncSandbox), (sbx.Files, sbx.AsyncFiles), (sbx.Commands, sbx.AsyncCommands), (sbx.CommandHandle, sbx.AsyncCommandHandle)):
            self.assertEqual(names(one) | {"files", "commands"}, names(other) | {"files", "commands"})
            for name in names(one) - {"pty", "get_host", "upload_url", "download_url", "get_mcp_url", "notebook", "filesystem", "kill", "get_info", "set_timeout", "get_metrics", "sandbox_id", "pid"}:
                with self.subTest(f"{one.__name__}.{name}"):
                    waits = (one, name) != (sbx.Sandbox, "list")  # it can be awaited; E2B's is not a coroutine
                    self.assertEqual([inspect.iscoroutinefunction(getattr(each, name)) for each in (one, other)], [False, waits])
                    if name != "create":
                        self.assertEqual(*(list(inspect.signature(getattr(each, name)).parameters) for each in (one, other)))

    def test_cells_and_callbacks(self):
        async def program(sandbox):
            seen = []

            async def later(each):
                await asyncio.sleep(0)
                seen.append(each)
            execution = await sandbox.run_code("import sys; print('out'); print('err', file=sys.stderr); display(1); 2", on_stdout=later, on_stderr=later, on_result=later)
            self.assertEqual((execution.text, self.out(execution)), ("2", "out\n"))
            self.assertEqual(sorted("".join(each.line for each in seen if isinstance(each, sbx.OutputMessage)).split()), ["err", "out"])
            self.assertEqual([each.text for each in seen if isinstance(each, sbx.CellResult)], ["1", "2"])
            self.assertEqual((await sandbox.run_code("1 / 0", on_error=later)).error, seen[-1])
            raised = await self.refuses_async(sbx.TimeoutException, "wall-time", sandbox.run_code("print('before', flush=True)\nwhile True: pass", timeout=3))
            self.assertEqual(self.out(raised.execution), "before\n")
            context = await sandbox.create_code_context(cwd="/tmp")
            self.assertEqual((await sandbox.run_code("import os; os.getcwd()", context=context)).text, "/tmp")
            self.assertEqual({each.id for each in await sandbox.list_code_contexts()}, {"python", context.id})
            with self.assertWarns(DeprecationWarning):
                self.assertEqual((await sandbox.notebook.exec_cell("6 * 7")).text, "42")
        self.run_async(program)

    def test_files_and_commands(self):
        async def program(sandbox):
            self.assertEqual(await sandbox.files.write("a/file", b"text"), sbx.WriteInfo("file", "a/file"))
            self.assertEqual((await sandbox.files.read("a/file"), b"".join(await sandbox.files.read("a/file", "stream"))), ("text", b"text"))
            self.assertEqual(([each.path for each in await sandbox.files.list("a")], await sandbox.files.exists("b"), await sandbox.files.make_dir("a")), (["a/file"], False, False))
            await self.refuses_async(sbx.FileNotFoundException, "absent", sandbox.files.read("absent"))
            seen = []
            self.assertEqual((await sandbox.commands.run("echo out; echo err >&2", on_stdout=seen.append)).stderr, "err\n")
            self.assertEqual("".join(seen), "out\n")
            self.assertEqual((await self.refuses_async(sbx.CommandExitException, "status 3", sandbox.commands.run("exit 3"))).exit_code, 3)
            handle = await sandbox.commands.run("while read -r line; do echo \"got $line\"; done; echo end", background=True, stdin=True)
            await handle.send_stdin("one\n")
            async for out, _, _ in handle:
                self.assertEqual(out, "got one\n")
                break
            await sandbox.commands.close_stdin(handle.pid)
            deaf = await sandbox.commands.run("sleep 1000", background=True, stdin=True)
            await self.refuses_async(sbx.TimeoutException, "session send took longer than 3 s", deaf.send_stdin("x" * 10_000_000, request_timeout=3))
            self.assertEqual(await sandbox.files.write([{"path": "b", "data": "1"}]), [sbx.WriteInfo("b", "b")])
            self.assertEqual((await sbx.AsyncSandbox.get_info(sandbox.sandbox_id, program=SBX)).sandbox_id, sandbox.sandbox_id)
            await sandbox.set_timeout(float("inf"))
            await self.refuses_async(sbx.InvalidArgumentException, "session.lifetime", sbx.AsyncSandbox.set_timeout(sandbox.sandbox_id, 10_000_000, program=SBX))
            await self.refuses_async(sbx.InvalidArgumentException, "not inf", sbx.AsyncSandbox.set_timeout(sandbox.sandbox_id, float("inf"), program=SBX))
            self.assertEqual((await sandbox.get_metrics())[0].mem_total, 1 << 30)
            self.assertEqual((await handle.wait()).stdout, "got one\nend\n")
        self.run_async(program)

    def test_a_cancelled_task_cancels_its_cell_alone(self):
        async def program(sandbox):
            await sandbox.run_code("x = 5")
            begun = asyncio.Event()
            cell = asyncio.ensure_future(sandbox.run_code("import time\nprint('begun', flush=True)\ntime.sleep(1000)", on_stdout=lambda _: begun.set()))
            await begun.wait()
            cell.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await cell
            self.assertEqual((await sandbox.run_code("x")).text, "5")

            def fails(_):
                raise KeyError("of the callback")
            with self.assertRaises(KeyError):
                await sandbox.run_code("while True: print('x' * 1000)", on_stdout=fails)
            self.assertEqual((await sandbox.run_code("x")).text, "5")
        self.run_async(program)

    def test_ten_sandboxes_from_one_loop(self):
        async def one(number):
            async with await sbx.AsyncSandbox.create(program=SBX) as sandbox:
                await sandbox.run_code(f"x = {number}")
                return (await sandbox.run_code("x * 2")).text

        async def run():
            return await asyncio.gather(*(one(number) for number in range(10)))
        self.assertEqual(asyncio.run(run()), [str(number * 2) for number in range(10)])
        self.assertEqual(sbx.Sandbox.list(program=SBX).next_items(), [])

    def test_ten_sandboxes_from_ten_processes(self):
        code = f"""if True:
            import sys; sys.path.insert(0, {str(FILE.parent)!r}); import sbx
            with sbx.Sandbox(program={str(SBX)!r}) as sandbox:
                sandbox.run_code("x = " + sys.argv[1])
                print("ready", flush=True); sys.stdin.read()
                print(sandbox.run_code("x * 2").text)"""
        makers = [sessiontest.sbxtest.start(["/usr/bin/python3", "-B", "-c", code, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for number in range(10)]
        for maker in makers:
            self.addCleanup(maker.stdout.close)
            self.assertEqual(maker.stdout.readline(), b"ready\n")
        self.assertEqual(len(sbx.Sandbox.list(program=SBX).next_items()), 10)
        for number, maker in enumerate(makers):
            maker.stdin.close()
            self.assertEqual((maker.stdout.read().decode(), maker.wait()), (f"{number * 2}\n", 0))
        self.assertEqual(sbx.Sandbox.list(program=SBX).next_items(), [])

    def test_a_list_can_be_awaited_or_not(self):
        async def run():
            async with await sbx.AsyncSandbox.create(program=SBX) as sandbox:
                for pages in (sbx.AsyncSandbox.list(program=SBX), await sbx.AsyncSandbox.list(program=SBX)):
                    self.assertTrue(pages.has_next)
                    self.assertEqual([each.sandbox_id for each in await pages.next_items()], [sandbox.sandbox_id])
                    self.assertFalse(pages.has_next)
        asyncio.run(run())

    def test_without_the_program_it_says_so(self):
        self.refuses(sbx.SandboxException, "no program 'absent' on PATH: install sbx", sbx.Sandbox, program="absent")
        with self.assertRaisesRegex(sbx.SandboxException, "no program 'absent' on PATH: install sbx"):
            asyncio.run(sbx.AsyncSandbox.create(program="absent"))
        for program, words in (("absent", "no program 'absent' on PATH\ninstall sbx, or name it with program="), ("./absent", "no program './absent'\n"),
                               ("/etc/passwd", "the program '/etc/passwd' can't be started: Permission denied\ninstall")):
            raised = self.refuses(sbx.SetupFailed, words, sbx.run, "1", program=program)
            self.assertEqual(raised.code, "no-program")
        with self.assertRaises(FileNotFoundError) as missing:
            sbx.run("1", workspace="nowhere", program=SBX)
        self.assertEqual(missing.exception.filename, "nowhere")

    def test_it_says_how_it_begins(self):
        self.refuses(sbx.InvalidArgumentException, "await AsyncSandbox.create", sbx.AsyncSandbox)


class TheFile(unittest.TestCase):
    PROGRAM = "import sbx; s = sbx.Sandbox(program={0!r}); print(s.run_code('6 * 7').text, s.commands.run('echo 1').stdout.strip()); s.files.write('f', 'x'); print(s.files.read('f'), s.kill())"

    def test_it_is_python_3_9(self):
        ast.parse(FILE.read_text(), feature_version=(3, 9))

    def test_its_types_hold(self):
        if subprocess.run(["/usr/bin/python3", "-m", "mypy", "--version"], capture_output=True, check=False).returncode != 0:
            self.skipTest("mypy is not installed")
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run(["/usr/bin/python3", "-m", "mypy", "--strict", "--python-version", "3.9", "--cache-dir", cache, FILE], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "Success: no issues found in 1 source file"), done.stderr)


class OtherPythons(SandboxTest):
    def test_every_version(self):
        found = [each for each in sorted(glob.glob(os.path.expanduser("~root/.pyenv/versions/3.*/bin/python3"))) if os.access(each, os.X_OK) and int(each.split("/versions/3.")[1].split(".")[0]) >= 9]
        if not found:
            self.skipTest("no other Python from 3.9 on")
        for python in found:
            with self.subTest(python):
                done = subprocess.run([python, "-B", "-c", TheFile.PROGRAM.format(str(SBX))], env={**os.environ, "PYTHONPATH": str(FILE.parent)}, capture_output=True, text=True, check=False)
                self.assertEqual((done.stdout, done.stderr), ("42 1\nx True\n", ""))


if __name__ == "__main__":
    sessiontest.main()

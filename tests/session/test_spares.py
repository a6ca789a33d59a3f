#!/usr/bin/env python3
"""Interpreters that a session starts ahead of their contexts: nobody sees them, and a context that gets one is as one that was started for it."""

import os
import shutil
import signal

from sessiontest import SessionTest, children, main, name_of, wait_until

PYTHON = ("import sys, site, os; place = site.getusersitepackages(); os.makedirs(place, exist_ok=True)\n"
          "open(place + '/{name}', 'w').write({text!r})")


class SpareTest(SessionTest):
    def begin(self, *options, language="python", program="python3", **rest):
        """A session with one context that was used, and its spare."""
        if shutil.which(program, path="/usr/local/bin:/usr/bin:/bin") is None:
            self.skipTest(f"{program} is not installed")
        self.pid = self.start_session(*options, **rest)["pid"]
        self.cell("1", "--context", "first", "--lang", language)
        self.program = {"python": "python", "javascript": "node", "r": "R"}[language]
        wait_until(lambda: len(self.interpreters()) == 2, "a spare was started")

    def interpreters(self):
        """The processes of interpreters, by the sandbox's PID 1 and the init of each call."""
        return {each for holder in children(self.pid)[:1] for init in children(holder) for each in children(init) if (name_of(each) or "").startswith(self.program)}

    def workers(self):
        return set(children(self.pid)[1:])

    def cell(self, code, *options):
        answer = self.sbx_session("eval", "work", "--json", *options, "-c", code)
        self.assertEqual((answer.status, answer.record["outcome"]["status"]), (0, "answered"), answer)
        return answer.record

    def value(self, code, *options):
        return next(each["data"]["text/plain"] for each in self.cell(code, *options)["answer"]["results"] if each["main"])

    def names(self):
        return [each["context"] for each in self.sbx_session("contexts", "work", "--json").json["contexts"]]

    def call_of(self, context):
        return next(each for each in self.sbx_session("calls", "work", "--json").json["calls"] if each["command"].startswith(f"context {context} ") and each["state"] == "running")


class Spares(SpareTest):
    def test_the_next_context_has_it_and_nobody_sees_it_before(self):
        self.begin()
        workers, interpreters = self.workers(), self.interpreters()
        self.assertEqual((self.names(), len(self.sbx_session("calls", "work", "--json").json["calls"])), (["first"], 1))
        self.assertEqual(self.sbx_session("show", "work", "--json").json["contexts"], 1)
        record = self.cell("x = 1", "--context", "second")
        self.assertEqual((record["state"], record["session"]["context"], record["session"]["call"], record["answer"]["count"]), ("new", "second", 2, 1))
        self.assertIn(self.call_of("second")["pid"], workers)
        wait_until(lambda: len(self.interpreters()) == 3, "there is another spare")
        self.assertLess(interpreters, self.interpreters())
        self.assertEqual(self.value("x, __import__('os').getpid()", "--context", "second"), "(1, 2)")

    def test_one_that_was_lost_says_so(self):
        self.begin()
        self.sbx_session("eval", "work", "--context", "first", "-c", "import os; os._exit(3)")
        wait_until(lambda: len(self.interpreters()) == 0, "the spare goes with the last context")
        record = self.cell("2", "--context", "first")
        self.assertEqual(record["state"], "lost")
        wait_until(lambda: len(self.interpreters()) == 2, "a spare was started")
        self.cell("1", "--context", "second")
        wait_until(lambda: len(self.interpreters()) == 3, "a spare was started")
        self.sbx_session("eval", "work", "--context", "second", "-c", "import os; os._exit(3)")
        record = self.cell("2", "--context", "second")
        self.assertEqual((record["state"], record["lost_because"]), ("lost", "the interpreter exited with status 3"))

    def test_opened_and_restarted_ones_have_it_too(self):
        self.begin()
        workers = self.workers()
        made = self.sbx_session("context", "work", "--json").json["context"]
        self.assertIn(self.call_of(made)["pid"], workers)
        wait_until(lambda: len(self.interpreters()) == 2, "both live")
        self.cell("x = 1", "--context", made)
        wait_until(lambda: len(self.interpreters()) == 3, "a spare was started")
        workers = self.workers()
        self.assertEqual(self.sbx_session("restart", "work", made).status, 0)
        self.assertEqual(self.value("'x' in globals()", "--context", made), "False")
        self.assertIn(self.call_of(made)["pid"], workers)

    def test_a_context_with_a_directory_has_one_of_its_own(self):
        self.begin()
        workers = self.workers()
        made = self.sbx_session("context", "work", "--cwd", "/tmp", "--json").json["context"]
        self.assertNotIn(self.call_of(made)["pid"], workers)
        self.assertEqual(self.value("import os; os.getcwd()", "--context", made), "'/tmp'")

    def test_the_last_place_is_for_a_context(self):
        self.begin("--set", "session.contexts=3")
        self.cell("1", "--context", "second")
        made = self.sbx_session("context", "work", "--cwd", "/tmp", "--json")
        self.assertEqual(made.status, 0, made)
        self.assertEqual(len(self.names()), 3)
        wait_until(lambda: len(self.interpreters()) == 3, "three contexts live, and no spare")

    def test_one_that_dies_is_replaced_after_another_use(self):
        self.begin()
        first = self.call_of("first")
        spare = next(each for each in self.workers() - {first["pid"]} if name_of(each))
        workers = self.workers()
        for each in self.interpreters() - {min(self.interpreters())}:
            os.kill(each, signal.SIGKILL)
        wait_until(lambda: len(self.interpreters()) == 1, "it is dead")
        self.cell("1", "--context", "first")
        wait_until(lambda: len(self.interpreters()) == 2, "another one was started")
        self.assertTrue(self.workers() - workers or spare not in self.workers())
        self.assertEqual(self.cell("1", "--context", "second")["state"], "new")

    def test_the_end_of_the_session_is_its_end(self):
        self.begin()
        self.stop_session()
        self.nothing_is_left()

    def test_javascript(self):
        self.begin(language="javascript", program="node")
        workers = self.workers()
        self.assertEqual(self.value("typeof globalThis.x", "--context", "second", "--lang", "javascript"), "'undefined'")
        self.assertIn(self.call_of("second")["pid"], workers)

    def test_r_and_its_directory(self):
        self.begin(language="r", program="Rscript")
        workers = self.workers()
        wait_until(lambda: self.value("length(list.files('/tmp', '^Rtmp'))", "--context", "first", "--lang", "r") == "[1] 1", "that of a spare is not there")
        self.assertEqual(self.value("dir.exists(tempdir())", "--context", "second", "--lang", "r"), "[1] TRUE")
        self.assertIn(self.call_of("second")["pid"], workers)


class AsOneStartedNow(SpareTest):
    """What a start finds in files may be changed by a program while a spare waits."""

    def test_user_modules(self):
        self.begin()
        self.cell(PYTHON.format(name="usercustomize.py", text="import sys; sys.customized = True"), "--context", "first")
        self.cell(PYTHON.format(name="own.py", text="value = 7"), "--context", "first")
        self.assertEqual(self.value("import sys, own; own.value, getattr(sys, 'customized', False)", "--context", "second"), "(7, True)")

    def test_a_working_directory_that_was_replaced(self):
        for language, program, code in (("python", "python3", "import os; os.listdir()"), ("javascript", "node", "require('fs').readdirSync('.')"), ("r", "Rscript", "list.files()")):
            with self.subTest(language=language):
                place = self.work / "sub"
                place.mkdir()
                self.begin("--workspace", f"{self.work}:read-write", language=language, program=program, cwd=place)
                self.sbx_session("exec", "work", "--cwd", "/tmp", "--", "sh", "-c", f"rmdir '{place}' && mkdir '{place}' && echo 1 > '{place}/seen'")
                self.assertTrue((place / "seen").exists())
                self.assertIn("seen", self.value(code, "--context", "second", "--lang", language))
                self.stop_session()
                shutil.rmtree(place)

    def test_a_module_that_goes_away(self):
        self.start_session()
        self.program = "python"
        self.pid = self.pids[-1]
        self.cell(PYTHON.format(name="usercustomize.py", text="import sys; sys.customized = True"), "--context", "first")
        wait_until(lambda: len(self.interpreters()) == 2, "a spare was started")
        self.cell("import os; os.remove(site.getusersitepackages() + '/usercustomize.py')", "--context", "first")
        self.assertEqual(self.value("import sys; hasattr(sys, 'customized')", "--context", "second"), "False")

    def test_a_module_that_shadows_one_of_the_library(self):
        self.begin()
        self.cell("open('base64.py', 'w').write('from sys import path\\nb64encode = b64decode = None\\nshadows = True')", "--context", "first")
        there = self.value("import base64; hasattr(base64, 'shadows')", "--context", "apart", "--lang", "python")
        self.sbx_session("close", "work", "apart")
        made = self.sbx_session("context", "work", "--cwd", ".", "--json").json["context"]
        self.assertEqual(self.value("import base64; hasattr(base64, 'shadows')", "--context", made), there)

    def test_one_whose_start_runs_for_ever_is_waited_for_by_nobody_else(self):
        """A hostile program makes the start of Python hang: that reaches contexts, and spares, and nothing more."""
        self.begin()
        self.cell(PYTHON.format(name="usercustomize.py", text="import os, time\nif os.path.exists('/tmp/hang'): time.sleep(1000)"), "--context", "first")
        self.cell("open('/tmp/hang', 'w').close()", "--context", "first")
        self.assertEqual(self.value("6 * 7", "--context", "first"), "42")
        self.assertEqual(self.exec_ok("--", "rm", "/tmp/hang").status, 0)
        self.assertEqual(self.value("6 * 7", "--context", "second"), "42")


if __name__ == "__main__":
    main()

"""Cells: interpreters of a session that keep their state, driven by `sbx session eval`."""

import base64
import functools
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import unittest

import sessiontest
import schemas
import sbxtest
from harness import HANG
from sbxtest import SBX, SOURCE
from sessiontest import SessionTest, wait_until

try:
    import jsonschema
except ImportError:
    jsonschema = None

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
PICTURE = f"""
import base64
class Picture:
    def _repr_png_(self): return base64.b64decode({PNG!r})
    def _repr_html_(self): return "<b>one</b>"
    def __repr__(self): return "a picture"
Picture()
"""


@functools.cache
def validator():
    return jsonschema.Draft202012Validator(json.loads((SOURCE / "schema/sbx.cell.1.json").read_text()))


class EvalTest(SessionTest):
    def start_session(self, *options, **named):
        """Root's Pythons use the drivers' own shell and the user's use IPython's, if it is there and the test doesn't say."""
        if sbxtest.IS_ROOT and not any("environment.set" in str(option) for option in options):
            options = ("--set", 'environment.set={SBX_CELL_SHELL="plain"}', *options)
        return super().start_session(*options, **named)

    def eval(self, code, *options, name="work", **rest):
        return self.sbx_session("eval", name, *options, "-c", code, **rest)

    def cell(self, code, *options, **rest):
        """The record of a cell, checked against the schema."""
        return self.checked(self.eval(code, "--json", *options, **rest))

    def checked(self, answer):
        record = answer.record
        if jsonschema is not None:
            errors = [f"{list(error.path)}: {error.message}" for error in validator().iter_errors(record)]
            self.assertEqual(errors, [], str(answer))
        record["exit_status"] = answer.status
        return record

    def refused(self, code, *words, **options):
        """What keeps a cell from running has a code, and is told in words too."""
        answer = self.sbx_session("eval", "work", "--json", *words, **options)
        self.assertEqual(answer.status, 125, answer)
        self.assertEqual((answer.record["outcome"]["status"], answer.record["outcome"]["code"]), ("setup-failed", code), answer)
        return answer

    def begin(self, code, *options, name="work"):
        """A cell whose client runs beside the test."""
        client = sbxtest.start([SBX, "session", "eval", name, *options, "-c", code], env=self.environment(), cwd=self.work,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(client.stderr.close)
        self.addCleanup(client.stdout.close)
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        return client

    def contexts(self):
        return {each["context"]: each for each in self.run_sbx("session", "contexts", "work", "--json").json["contexts"]}

    def value(self, record):
        """text/plain of the main result."""
        found = [each["data"] for each in record["answer"]["results"] if each["main"]]
        return found[0]["text/plain"] if found else None

    def ended(self, record, status, state, reason=None):
        self.assertEqual((record["outcome"]["status"], record["outcome"]["reason"], record["state"]), (status, reason, state), record)
        return record

    def answered(self, record, state="kept"):
        return self.ended(record, "answered", state)


class Cells(EvalTest):
    def test_state_is_kept_and_the_value_is_printed(self):
        self.start_session()
        first = self.eval("x = 20; print('hello')")
        self.assertEqual((first.status, first.out, first.err), (0, "hello\n", ""), first)
        second = self.eval("x += 1\nx * 2")
        self.assertEqual((second.status, second.out), (0, "42\n"), second)

    def test_the_record_says_what_came_from_where(self):
        facts = self.start_session()
        record = self.answered(self.cell("import sys; print('out'); print('err', file=sys.stderr); 6 * 7"), "new")
        self.assertEqual((record["stdout"]["text"], record["stderr"]["text"]), ("out\n", "err\n"))
        self.assertEqual(self.value(record), "42")
        self.assertEqual(record["session"], {"name": "work", "id": facts["id"], "context": "python", "language": "python", "call": 1})
        self.assertEqual((record["answer"]["ok"], record["answer"]["count"], record["exit_status"]), (True, 1, 0))
        self.answered(self.cell("1"), "kept")

    def test_an_exception_is_the_cells_and_its_state_stays(self):
        self.start_session()
        record = self.answered(self.cell("x = 1\nx / 0"), "new")
        error = record["answer"]["error"]
        self.assertEqual((error["name"], error["line"], record["answer"]["ok"], record["exit_status"]), ("ZeroDivisionError", 2, False, 1))
        self.assertEqual(self.value(self.answered(self.cell("x"))), "1")
        plain = self.eval("raise ValueError('no')")
        self.assertEqual((plain.status, plain.out), (1, ""), plain)
        self.assertIn("ValueError: no", plain.err)
        self.assertNotIn("<sbx>", plain.err)

    def test_a_file_that_is_missing_where_the_session_shows_none_is_told_with_the_way_to_it(self):
        self.write("data.csv", "a,b\n")
        self.start_session()
        said = f'sbx: perhaps it needs "data.csv", which is here but not in the sandbox: start the session with --read {self.work}/data.csv\n'
        code = "print(open('data.csv').read())"
        self.assertTrue(self.sbx_session("eval", "work", "-c", code).err.endswith(said))
        self.assertNotIn(said, self.sbx_session("eval", "-q", "work", "-c", code).err)
        self.assertNotIn(said, self.sbx_session("eval", "work", "-c", "1 / 0").err)
        self.start_session("--workspace", ".:overlay", name="other")
        self.assertEqual(self.sbx_session("eval", "other", "-c", code).out, "a,b\n\n")
        self.assertNotIn(said, self.sbx_session("eval", "other", "-c", "open('nosuch')").err)

    def test_quiet_suppresses_words_of_sbx_only(self):
        self.start_session()
        code = "import os; print('last', flush=True); os._exit(4)"
        loud, quiet, short = self.eval(code), self.eval(code, "--quiet"), self.eval(code, "-q")
        self.assertEqual([(each.status, each.out) for each in (loud, quiet, short)], [(4, "last\n")] * 3)
        self.assertIn("variables are lost", loud.err)
        self.assertEqual((quiet.err, short.err), ("", ""))

    def test_an_exit_ends_the_cell_only(self):
        self.start_session()
        record = self.answered(self.cell("x = 5; import sys; sys.exit(3)"), "new")
        self.assertEqual((record["answer"]["exit"], record["exit_status"]), (3, 3))
        self.assertEqual(self.value(self.cell("x")), "5")

    def test_code_comes_from_a_file_and_from_standard_input(self):
        self.start_session()
        self.assertEqual(self.sbx_session("eval", "work", self.write("cell.py", "y = 2\ny + 1")).out, "3\n")
        self.assertEqual(self.sbx_session("eval", "work", "-", stdin=b"y + 2").out, "4\n")
        self.assertEqual(self.sbx_session("eval", "work", stdin=b"y + 3").out, "5\n")
        self.refused("bad-code", stdin=b"\xff")

    def test_values_become_files(self):
        self.start_session()
        pictures = self.work / "pictures"
        record = self.cell(PICTURE, "--results", pictures)
        files = record["answer"]["results"][0]["file"]
        self.assertEqual(sorted(files), ["image/png", "text/html"])
        self.assertEqual((self.work / files["image/png"]).read_bytes(), base64.b64decode(PNG))
        self.assertEqual((self.work / files["text/html"]).read_text(), "<b>one</b>")
        plain = self.eval("Picture()", "--results", pictures)
        self.assertEqual(plain.out, "a picture\n")
        self.assertIn("image/png is in", plain.err)
        self.sbx_session("restart", "work")
        self.cell(PICTURE, "--results", pictures)
        self.assertEqual(len(list(pictures.iterdir())), 6, "nothing is written over")

    def test_events_come_while_the_cell_runs(self):
        self.start_session("--workspace", f"{self.work}:read-write")
        os.mkfifo(self.work / "go")
        client = self.begin("print('one', flush=True); open('go').read(); print('zwei ö'); display(7); 1 / 0", "--stream")
        lines = iter(client.stdout.readline, b"")
        events = [json.loads(next(lines)), json.loads(next(lines))]
        self.assertEqual([event["event"] for event in events], ["start", "stdout"])
        (self.work / "go").write_text("now")
        events += [json.loads(line) for line in lines]
        self.assertEqual("".join(event["text"] for event in events if event["event"] == "stdout"), "one\nzwei ö\n")
        self.assertEqual([event["data"]["text/plain"] for event in events if event["event"] == "result"], ["7"])
        self.assertEqual([event["name"] for event in events if event["event"] == "error"], ["ZeroDivisionError"])
        self.assertEqual(events[-1]["event"], "end")
        self.answered(events[-1]["record"], "new")
        self.assertEqual(client.wait(), 1)
        self.assertEqual(len(self.eval("", "--stream").out.splitlines()), 2)

    def test_contexts_are_apart_and_have_one_language(self):
        self.start_session()
        self.eval("x = 1")
        self.eval("x = 2", "--context", "other")
        self.assertEqual(self.value(self.cell("x")), "1")
        self.assertEqual(self.value(self.cell("x", "--context", "other")), "2")
        listed = self.contexts()
        self.assertEqual({name: (each["language"], each["state"], each["cells"]) for name, each in listed.items()},
                         {"python": ("python", "idle", 2), "other": ("python", "idle", 2)})
        self.refused("other-language", "--context", "other", "--lang", "r", "-c", "1")
        self.refused("bad-context-name", "--context", "Bad/Name", "-c", "1")

    def test_a_language_without_state_is_an_error_with_the_way(self):
        self.start_session()
        answer = self.eval("x = 1", "--lang", "ruby")
        self.assertEqual(answer.status, 125, answer)
        self.assertIn("no interpreter keeps its state between cells in ruby", answer.err)
        self.assertIn("it keeps state in python, javascript, r and bash", answer.err)
        self.assertIn("sbx session exec work --lang ruby - runs", answer.err)
        self.refused("no-context-language", "--lang", "ruby", "-c", "x = 1")

    def test_as_many_contexts_as_the_policy_allows(self):
        self.start_session("--set", "session.contexts=1")
        self.eval("x = 1")
        self.refused("too-many-contexts", "--context", "second", "-c", "1")
        self.assertEqual(self.sbx_session("restart", "work", "python").status, 0)
        self.answered(self.cell("1", "--context", "second"), "new")

    def test_restart_begins_anew(self):
        self.start_session()
        self.eval("x = 1")
        self.assertEqual(self.run_sbx("session", "restart", "work").status, 0)
        self.assertEqual(self.contexts(), {})
        record = self.answered(self.cell("x"), "new")
        self.assertEqual(record["answer"]["error"]["name"], "NameError")

    def test_calls_and_contexts_share_files_and_nothing_else(self):
        self.start_session()
        self.eval("open('/tmp/shared', 'w').write('from a cell')")
        self.assertEqual(self.exec_ok("--", "cat", "/tmp/shared").out, "from a cell")
        self.assertEqual(self.value(self.cell("import os; os.getpid()")), "2")
        self.assertNotIn("python", self.exec_ok("--", "sh", "-c", "cat /proc/[0-9]*/comm").out)

    def test_stop_leaves_nothing(self):
        self.start_session()
        self.eval("import subprocess; child = subprocess.Popen(['sleep', '1000'])")
        self.stop_session()
        self.nothing_is_left()

    def test_a_context_does_not_keep_a_session_awake(self):
        facts = self.start_session("--set", 'session.idle="1500ms"')
        self.eval("x = 1")
        wait_until(lambda: not sessiontest.process_lives(facts["pid"]), "the idle session ends")

    def keeps_state(self, language, program, cells, value):
        if shutil.which(program, path="/usr/local/bin:/usr/bin:/bin") is None:
            self.skipTest(f"{program} is not installed")
        self.start_session()
        self.answered(self.cell(cells[0], "--lang", language), "new")
        self.assertEqual(self.value(self.answered(self.cell(cells[1], "--lang", language))), value)

    def test_javascript_keeps_state(self):
        self.keeps_state("javascript", "node", ("const x = await Promise.resolve(40)", "x + 2"), "42")

    def test_r_keeps_state(self):
        self.keeps_state("r", "Rscript", ("x <- 40", "x + 2"), "[1] 42")

    def test_a_cell_sees_only_its_streams_and_no_channel(self):
        self.start_session()
        # close_fds=False: what a program gets that does not look after its descriptors.
        record = self.cell("import subprocess; subprocess.run(['ls', '/proc/self/fd'], close_fds=False, check=True)")
        self.assertEqual(record["stdout"]["text"], "0\n1\n2\n3\n", "3 is the directory that ls reads")

    def test_an_interpreter_has_its_channel_and_no_other_descriptor(self):
        self.start_session("--set", 'environment.set={SBX_CELL_SHELL="plain"}')  # IPython opens some of its own
        code = """
import os
held = {int(each): os.readlink('/proc/self/fd/' + each) for each in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + each)}
sorted(link.split(':')[0] for fd, link in held.items() if fd > 2)
"""
        self.assertEqual(self.value(self.cell(code)), "['pipe', 'pipe']")

    @unittest.skipIf(schemas.jsonschema is None, "python3-jsonschema is not installed")
    def test_records_have_what_their_schema_names_and_nothing_else(self):
        """self.cell() checks the others of this file too."""
        held = schemas.Held("sbx.cell/1")

        def cell(code, *options):
            return held.hold(self.eval(code, "--json", *options).record)

        odd = self.work / os.fsdecode(b"odd\xff")
        odd.mkdir()
        path = self.write("odd\udcff.toml", f'schema = 1\nextends = "agent"\n[filesystem]\nwrite = ["{self.work}"]\n'
                          '[syscalls]\ndeny = ["sched_yield"]\n', directory=odd)
        self.start_session("-p", path, "--set", "session.contexts=1", "--set", 'output.results="1K"')
        self.answered(cell("display(1); 1 / 0"), "new")
        self.answered(cell(PICTURE))
        self.answered(cell("from IPython.display import update_display; update_display(1, display_id='earlier'); 'x' * 5000"))
        cell("import ctypes, sys; libc = ctypes.CDLL(None); libc.prctl(15, b'odd\\xff'); libc.ptrace(0, 0, 0, 0); libc.sched_yield()\n"
             "sys.stdout.buffer.write(b'\\xff')")
        self.ended(cell("import time; time.sleep(1000)", "--timeout", "100ms"), "over-budget", "kept", "wall_time")
        for options, status in ((("--context", "second"), "setup-failed"), (("--lang", "ruby"), "setup-failed")):
            self.assertEqual(cell("1", *options)["outcome"]["status"], status)
        cell("1", "--cwd", "nowhere")
        held.hold(self.eval("1", "--json", name="nosuch").record)
        cell("import nosuchmodule")
        self.ended(cell("import os; os._exit(3)"), "died", "lost")
        cell("1")
        self.assertEqual(held.open_objects(), set())
        # Of a network: network/test_allow_list.py. Of thousands of results: test_hostile_messages.py. Of paths: records of runs. Of
        # output that is passed on: records in notebooks. Of limits: records of runs, whose form they have.
        rare = {*(f".limits_met.{name}" for name in ("limit", "value", "peak", "evidence", "rule")),
                *(f".network.failed.{name}" for name in ("what", "why", "count")), ".answer.left_out_more",
                *(f".denials.{name}" for name in ("options", "options_b64", "what_b64", "allow_with_b64", "during_call")),
                *(f".hints.{name}" for name in ("what_b64", "text_b64", "options_b64")), ".write_error", *(f".write_error.{name}" for name in ("stream", "error", "errno")), "stream.joined"}
        self.assertEqual(held.unseen(), rare)

    def test_why_explains_a_cell(self):
        self.start_session()
        record = self.eval("1 / 0", "--json").out
        why = self.run_sbx("why", "-", stdin=record.encode())
        self.assertEqual(why.status, 0, why)
        self.assertIn("a cell of python", why.out)
        self.assertIn("ZeroDivisionError: division by zero", why.out)
        last = self.eval("1 / 0", "--stream").out.splitlines()[-1]
        self.assertIn("ZeroDivisionError: division by zero", self.run_sbx("why", "-", stdin=last.encode()).out)
        absent = self.run_sbx("why", "-", stdin=self.eval("1", "--json", name="absent").out.encode()).out
        self.assertIn(" a cell, in the session absent\n", absent)


class Ends(EvalTest):
    def test_over_its_time_a_cell_is_interrupted_and_the_state_is_kept(self):
        self.start_session()
        self.eval("x = 7")
        record = self.ended(self.cell("import time\ntime.sleep(1000)", "--timeout", "300ms"), "over-budget", "kept", "wall_time")
        self.assertEqual((record["answer"]["error"]["name"], record["exit_status"]), ("KeyboardInterrupt", 124))
        self.assertEqual(self.value(self.answered(self.cell("x"))), "7")

    def test_one_that_does_not_listen_is_killed_and_the_state_is_lost_once(self):
        self.start_session()
        self.eval("x = 7")
        record = self.ended(self.cell("import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(1000)",
                                      "--timeout", "300ms"), "over-budget", "lost", "wall_time")
        self.assertIsNone(record["answer"])
        self.assertEqual(self.contexts()["python"]["state"], "lost")
        self.assertEqual(self.answered(self.cell("x"), "lost")["answer"]["error"]["name"], "NameError")
        self.answered(self.cell("1"), "kept")

    def test_the_time_of_a_cell_is_that_of_the_policy_and_may_only_be_less(self):
        self.start_session("--timeout", "1s")
        self.ended(self.cell("import time; time.sleep(1000)"), "over-budget", "new", "wall_time")
        answer = self.eval("1", "--timeout", "2s")
        self.assertEqual(answer.status, 125, answer)
        self.assertIn("limits.wall_time", answer.err)

    def test_an_interpreter_that_dies_takes_its_state_along(self):
        self.start_session()
        record = self.ended(self.cell("print('last', flush=True); import os; os._exit(5)"), "died", "lost")
        self.assertEqual((record["outcome"]["exit_code"], record["stdout"]["text"], record["exit_status"]), (5, "last\n", 5))
        self.answered(self.cell("1"), "lost")
        record = self.ended(self.cell("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"), "died", "lost")
        self.assertEqual((record["outcome"]["signal"], record["exit_status"]), (11, 139))
        self.ended(self.cell("import os; os._exit(0)"), "died", "lost")

    def test_memory_ends_the_context_and_not_the_session(self):
        self.start_session("--memory", "300M")
        self.eval("x = 1", "--context", "other")
        record = self.cell("held = []\nwhile True: held.append(b'x' * 10_000_000)")
        self.ended(record, "over-budget", "lost", "memory")
        self.answered(self.cell("1"), "lost")
        self.assertEqual(self.value(self.answered(self.cell("x", "--context", "other"))), "1")

    BURN = "import time\nbegan = time.process_time()\nwhile time.process_time() - began < 0.7: pass"

    def test_cpu_time_is_that_of_a_cell(self):
        self.start_session("--cpu-time", "1s", "--timeout", "60s")
        self.answered(self.cell("1"), "new")
        for _ in range(4):
            self.answered(self.cell(self.BURN))
        record = self.ended(self.cell("while True: pass"), "over-budget", "lost", "cpu_time")
        self.assertRegex(record["outcome"]["detail"], r"[12](\.\d+)? s used")
        self.answered(self.cell("1"), "lost")

    def test_cpu_time_between_cells_ends_the_context(self):
        self.start_session("--cpu-time", "1s", "--timeout", "60s")
        self.answered(self.cell("import threading\ndef burn():\n    while True: pass\nthreading.Thread(target=burn, daemon=True).start()"), "new")
        wait_until(lambda: self.contexts()["python"]["state"] == "lost", "the context ends")
        self.answered(self.cell("1"), "lost")

    def test_output_over_its_cap(self):
        self.start_session()
        record = self.answered(self.cell("print('x' * 100_000_000)", "--output", "1M"), "new")
        self.assertEqual((record["stdout"]["bytes"], record["stdout"]["truncated"]), (100_000_001, True))
        self.assertLess(len(record["stdout"]["text"]), 1_100_000)
        # Into a pipe, where nobody would notice that a part is missing.
        plain = self.eval("while True: print('x' * 1000)", "--output", "1M")
        self.assertEqual(plain.status, 153, plain)
        self.assertEqual(len(plain.out), 1 << 20)
        self.answered(self.cell("1"), "kept")

    def test_a_dict_has_its_json_beside_its_text(self):
        """As true as it came: what JSON readers would change has its text alone."""
        self.start_session()
        for code, value in (("{'a': [1, 2.5, None, True, 'é']}", {"a": [1, 2.5, None, True, "é"]}), ("[2 ** 53, -1, 1e300, 5e-324]", [2 ** 53, -1, 1e300, 5e-324]), ("[0] * 30_000", [0] * 30_000)):
            data = self.cell(code)["answer"]["results"][0]["data"]
            self.assertEqual((data["application/json"], set(data)), (value, {"text/plain", "application/json"}), code)
        for code in ("[2 ** 64]", "[float('nan')]", "{1: 2}", "[(1,)]", "['\\ud800']", "['x' * 300_000]"):
            self.assertEqual(set(self.cell(code)["answer"]["results"][0]["data"]), {"text/plain"}, code)

    def test_results_over_their_cap_are_named(self):
        self.start_session("--set", 'output.results="1K"')
        record = self.answered(self.cell("display('a'); 'b' * 5000"), "new")
        small, large = record["answer"]["results"]
        self.assertEqual(small["data"], {"text/plain": "'a'"})
        self.assertEqual((large["data"], large["left_out"]), ({}, [{"mime": "text/plain", "bytes": 5002}]))

    def test_ctrl_c_of_the_client_cancels_its_cell_only(self):
        self.start_session("--workspace", f"{self.work}:read-write")
        os.mkfifo(self.work / "begun")
        client = self.begin("x = 1\nopen('begun', 'w').close()\nimport time; time.sleep(1000)", "--json")
        (self.work / "begun").open().close()
        client.send_signal(signal.SIGINT)
        record = json.loads(client.communicate(timeout=HANG)[0])
        self.ended(record, "cancelled", "new")
        self.assertEqual((record["outcome"]["signal"], record["outcome"]["detail"], client.returncode), (2, "cancelled by SIGINT", 130))
        self.assertEqual(self.value(self.answered(self.cell("x"))), "1")

    def test_a_client_that_is_killed_cancels_its_cell_only(self):
        self.start_session("--workspace", f"{self.work}:read-write")
        os.mkfifo(self.work / "begun")
        client = self.begin("x = 1\nopen('begun', 'w').close()\nimport time; time.sleep(1000)")
        (self.work / "begun").open().close()
        client.kill()
        self.assertEqual(self.value(self.answered(self.cell("x"))), "1")

    def test_interrupt_from_elsewhere(self):
        self.start_session("--workspace", f"{self.work}:read-write")
        os.mkfifo(self.work / "begun")
        client = self.begin("x = 1\nopen('begun', 'w').close()\nimport time; time.sleep(1000)", "--json")
        (self.work / "begun").open().close()
        self.assertEqual(self.contexts()["python"]["state"], "running")
        self.assertEqual(self.run_sbx("session", "interrupt", "work", "python").status, 0)
        record = self.ended(json.loads(client.communicate(timeout=HANG)[0]), "interrupted", "new")
        self.assertEqual(record["answer"]["error"]["name"], "KeyboardInterrupt")
        self.assertEqual(record["outcome"]["detail"], "interrupted by sbx session interrupt")
        self.assertIn("no cell runs", self.sbx_session("interrupt", "work").err)
        self.assertEqual(self.value(self.answered(self.cell("x"))), "1")
        for command in ("interrupt", "restart"):
            answer = self.sbx_session(command, "work", "other")
            self.assertEqual(answer.status, 2, answer)
            self.assertIn("error[%s]" % "no-such-context", answer.err)

    def running(self):
        """A cell that has begun and does not end, and the process that supervises it."""
        self.start_session("--workspace", f"{self.work}:read-write")
        os.mkfifo(self.work / "begun")
        client = self.begin("x = 1\nopen('begun', 'w').close()\nimport time; time.sleep(1000)", "--json")
        (self.work / "begun").open().close()
        return client, self.sbx_session("calls", "--json", "work").json["calls"][0]["pid"]

    def test_a_killed_worker_is_told_and_the_state_is_lost(self):
        client, worker = self.running()
        os.kill(worker, signal.SIGKILL)
        record = json.loads(client.communicate(timeout=HANG)[0])
        self.assertEqual((record["outcome"]["code"], record["state"], client.returncode), ("call-lost", "lost", 125), record)
        self.assertEqual(self.answered(self.cell("x"), "lost")["answer"]["error"]["name"], "NameError")

    def test_a_killed_session_is_told(self):
        client, _ = self.running()
        sessiontest.kill(self.sbx_session("show", "--json", "work").json["pid"])
        record = json.loads(client.communicate(timeout=HANG)[0])
        # Its worker may live long enough to see that the interpreter was killed.
        self.assertIn(record["outcome"]["code"], ("session-gone", "init-killed"))
        self.assertEqual((record["state"], client.returncode), ("lost", 125), record)

    def test_stop_cancels_the_cell_that_runs(self):
        client, _ = self.running()
        self.stop_session()
        record = json.loads(client.communicate(timeout=HANG)[0])
        self.ended(record, "cancelled", "lost")
        self.assertEqual((record["outcome"]["signal"], client.returncode), (signal.SIGTERM, 143))
        self.assertEqual(record["outcome"]["detail"], "cancelled by SIGTERM: the session was stopped")
        self.nothing_is_left()

    def test_cells_of_one_context_wait_for_their_turn(self):
        self.start_session("--workspace", f"{self.work}:read-write")
        os.mkfifo(self.work / "begun")
        os.mkfifo(self.work / "go")
        first = self.begin("order = ['first']\nopen('begun', 'w').close()\nopen('go').read()", "--json")
        (self.work / "begun").open().close()
        waiting = []
        for i in range(15):
            waiting.append(self.begin(f"order.append({i})", "--json"))
            wait_until(lambda: self.contexts()["python"]["waiting"] == len(waiting), "the cell waits")
        self.refused("context-busy", "-c", "1")
        waiting.pop(3).kill()
        wait_until(lambda: self.contexts()["python"]["waiting"] == len(waiting), "its cell is cancelled")
        (self.work / "go").write_text("now")
        for client in (first, *waiting):
            self.assertEqual(json.loads(client.communicate(timeout=HANG)[0])["outcome"]["status"], "answered")
        self.assertEqual(self.value(self.cell("order")), str(["first", *(i for i in range(15) if i != 3)]))

    def test_restart_cancels_what_runs_and_what_waits(self):
        self.start_session("--workspace", f"{self.work}:read-write")
        os.mkfifo(self.work / "begun")
        first = self.begin("open('begun', 'w').close()\nimport time; time.sleep(1000)", "--json")
        (self.work / "begun").open().close()
        second = self.begin("1", "--json")
        wait_until(lambda: self.contexts()["python"]["waiting"] == 1, "the cell waits")
        self.assertEqual(self.sbx_session("restart", "work", "python").status, 0)
        self.ended(json.loads(first.communicate(timeout=HANG)[0]), "cancelled", "lost")
        self.ended(json.loads(second.communicate(timeout=HANG)[0]), "cancelled", "lost")
        self.answered(self.cell("1"), "new")

    def test_a_script_of_another_language_is_refused(self):
        self.start_session()
        (self.work / "tool").write_text("#!/usr/bin/env perl\nprint 4\n")
        self.refused("no-context-language", "tool")
        self.refused("no-context-language", "tool", "--context", "python")
        self.assertEqual(self.sbx_session("eval", "work", "--lang", "bash", "tool", "--json").record["outcome"]["status"], "answered")
        (self.work / "tool").write_text("#!/usr/bin/env -S python3 -u\nprint(4)\n")
        self.assertEqual(self.sbx_session("eval", "work", "tool").out, "4\n")
        if shutil.which("Rscript", path="/usr/local/bin:/usr/bin:/bin"):
            (self.work / "tool").write_text("#!/usr/bin/Rscript\ncat(nchar('four'), '\\n')\n")
            self.assertEqual(self.sbx_session("eval", "work", "tool").out, "4 \n")

    def test_r_is_interrupted_as_a_cell_begins(self):
        """R drops a signal that comes then."""
        if shutil.which("Rscript", path="/usr/local/bin:/usr/bin:/bin") is None:
            self.skipTest("r-base-core is not installed")
        self.start_session()
        self.eval("x <- 'kept'", "--lang", "r")
        for _ in range(5):
            client = self.begin("repeat {}", "--lang", "r", "--json")
            wait_until(lambda: self.contexts()["r"]["state"] == "running", "the cell runs")
            client.send_signal(signal.SIGINT)
            self.ended(json.loads(client.communicate(timeout=HANG)[0]), "cancelled", "kept")
        self.assertEqual(self.value(self.cell("x", "--lang", "r")), '[1] "kept"')

    def test_javascript_is_interrupted_too(self):
        if shutil.which("node", path="/usr/local/bin:/usr/bin:/bin") is None:
            self.skipTest("node is not installed")
        self.start_session()
        self.cell("var x = 1", "--lang", "javascript")
        for code in ("for (;;);", "await new Promise(() => setTimeout(() => {}, 1e6))"):
            self.ended(self.cell(code, "--lang", "javascript", "--timeout", "500ms"), "over-budget", "kept", "wall_time")
        self.assertEqual(self.value(self.cell("x", "--lang", "javascript")), "1")
        self.assertEqual(self.answered(self.cell("process.exit(3)", "--lang", "javascript"), "lost")["exit_status"], 3)


class Attacks(EvalTest):
    """What a hostile cell can say is about itself; each with its twin that says it rightly."""

    #: Finds the driver's end of the channel, which has another number than 4.
    CHANNEL = """
import os, stat
pipes = [int(each) for each in os.listdir('/proc/self/fd') if int(each) > 2 and os.path.exists('/proc/self/fd/' + each)]
replies = [each for each in pipes if stat.S_ISFIFO(os.fstat(each).st_mode) and os.open('/proc/self/fd/%d' % each, os.O_WRONLY | os.O_NONBLOCK) >= 0
           and open('/proc/self/fdinfo/%d' % each).read().split()[3].endswith('1')][0]
def say(text):
    os.write(replies, b'%d\\n%s' % (len(text), text))
"""

    def setUp(self):
        super().setUp()
        self.start_session()
        self.answered(self.cell(self.CHANNEL), "new")

    def test_twin_the_channel_is_found_and_a_forged_result_is_the_cells_own(self):
        code = """
import gc, json
nonce = [each.nonce for each in gc.get_objects() if type(each).__name__ == 'Cell' and hasattr(each, 'nonce')][-1]
say(json.dumps({'event': 'result', 'nonce': nonce, 'main': True, 'data': {'text/plain': 'forged'}}).encode())
"""
        record = self.answered(self.cell(code))
        self.assertEqual(self.value(record), "forged")
        self.assertEqual(self.value(self.answered(self.cell("1 + 1"))), "2")

    def test_garbage_ends_the_context(self):
        for garbage in ("b'hello\\n'", "b'12\\n'+b'x'*12", "b'2\\n[]'", "b'99999999999\\n'", "b'\\n'", "b'999999999999999'",
                        "b'%d\\n' % 2000000 + b'['*1000000 + b']'*1000000", "b'13\\n{\"event\":\"\\xff\"}'"):
            with self.subTest(garbage=garbage):
                record = self.ended(self.cell(f"import time\nos.write(replies, {garbage})\ntime.sleep(1000)"), "died", "lost")
                self.assertIn("are not messages", record["outcome"]["detail"])
                self.answered(self.cell(self.CHANNEL), "lost")

    def test_a_forged_end_is_no_answer_to_the_next_cell(self):
        """A process that outlives its cell goes on answering it."""
        code = """
import gc, json, time
nonce = [each.nonce for each in gc.get_objects() if type(each).__name__ == 'Cell' and hasattr(each, 'nonce')][-1]
copy = os.dup(replies)
reading, writing = os.pipe()
if os.fork() == 0:
    replies = copy
    os.close(writing)
    os.read(reading, 1)
    for i in range(100):
        for count in range(6):
            say(json.dumps({'event': 'done', 'nonce': nonce, 'count': count, 'ok': True}).encode())
    os._exit(0)
"""
        self.answered(self.cell(code))
        record = self.answered(self.cell("os.close(writing); os.wait(); 'mine'"))
        self.assertEqual(self.value(record), "'mine'")

    def test_a_channel_that_is_closed_ends_the_context_with_its_own_status(self):
        record = self.ended(self.cell("os.closerange(3, 1000)"), "died", "lost")
        self.assertEqual(record["outcome"]["exit_code"], 1)
        self.answered(self.cell("1"), "lost")

    def test_a_closed_channel_is_not_the_end_of_a_process(self):
        record = self.ended(self.cell("os.closerange(3, 1000)\nimport time\nwhile True: time.sleep(1000)"), "died", "lost")
        self.assertIn("closed the channel", record["outcome"]["detail"])

    def test_a_fork_answers_once(self):
        record = self.answered(self.cell("pid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('both')\n'one'"))
        self.assertEqual((record["stdout"]["text"], self.value(record)), ("both\nboth\n", "'one'"))
        self.assertEqual(self.value(self.answered(self.cell("1 + 1"))), "2")

    def test_output_that_comes_after_its_cell_is_no_other_cells(self):
        self.answered(self.cell("reading, writing = os.pipe()\ndone, told = os.pipe()\nif os.fork() == 0:\n    os.close(writing)\n    os.read(reading, 1)\n"
                                "    os.write(1, b'late' * 1000)\n    os.write(told, b'x')\n    os._exit(0)"))
        # Between two cells: written by a process that a call of its own lets go on.
        self.answered(self.cell("import threading\ndef later():\n    threading.main_thread\n    os.write(writing, b'x')\n"
                                "timer = threading.Timer(0.3, later)\ntimer.start()"))
        wait_until(lambda: self.exec_ok("--", "true").status == 0, "a call")
        record = self.answered(self.cell("os.read(done, 1)\nos.write(1, b'mine')"))
        self.assertTrue(record["stdout"]["text"].endswith("mine"), record["stdout"])
        self.assertEqual(record["late_bytes"] + record["stdout"]["bytes"], 4004)

    def test_all_that_was_written_before_the_end_belongs_to_the_cell(self):
        for i in range(5):
            record = self.answered(self.cell(f"os.write(1, b'{i}' * 60000); os.write(2, b'e' * 60000)"))
            self.assertEqual((record["stdout"]["text"], record["stderr"]["bytes"], record["late_bytes"]), (str(i) * 60000, 60000, 0))

    def test_a_flood_that_never_ends_is_not_waited_for(self):
        self.answered(self.cell("import threading\nthreading.Thread(target=lambda: [os.write(1, b'x' * 4096) for _ in iter(int, 1)], daemon=True).start()"))
        self.assertEqual(self.value(self.answered(self.cell("1 + 1", "--timeout", "30s"))), "2")

    def test_a_child_with_the_channel_keeps_nobody_waiting(self):
        record = self.ended(self.cell("os.set_inheritable(replies, True)\nimport subprocess\nsubprocess.Popen(['sleep', '1000'], close_fds=False)\nos._exit(3)"),
                            "died", "lost")
        self.assertEqual(record["outcome"]["exit_code"], 3)

    def test_refused_calls_are_those_of_their_cell(self):
        refused = self.answered(self.cell("import ctypes\nctypes.CDLL(None).ptrace(0, 0, 0, 0)"))
        self.assertTrue(any("ptrace" in each["what"] for each in refused["denials"]), refused["denials"])
        self.assertEqual(self.answered(self.cell("1"))["denials"], [])

    def beside(self, code, *options):
        """What a cell gives, and that another context still knows its own answer."""
        self.cell("x = 7", "--context", "other")
        record = self.cell(code, *options)
        self.assertEqual(self.value(self.answered(self.cell("x", "--context", "other"))), "7", record)
        return record

    def test_replaced_streams_are_those_of_their_context(self):
        self.assertEqual(self.answered(self.beside("import sys; sys.stdout.write('twin') and None"))["stdout"]["text"], "twin")
        forged = "class Forged:\n    def write(self, text): os.write(1, b'forged')\n    def flush(self): pass\nimport sys; sys.stdout = sys.stderr = Forged()\nprint('mine')"
        self.assertEqual(self.answered(self.beside(forged))["stdout"]["text"], "forged" * 2)
        self.assertEqual(self.answered(self.cell("print('x')", "--context", "other"))["stdout"]["text"], "x\n")
        for code in ("sys.stdout = sys.stderr = None", "os.close(1); os.close(2)"):
            self.answered(self.beside(code))
            self.assertEqual(self.value(self.answered(self.cell("1 + 1"))), "2", code)
        self.assertEqual(self.answered(self.cell("1 / 0"))["answer"]["error"]["name"], "ZeroDivisionError")

    def test_replaced_parts_of_python_forge_no_outcome(self):
        for code in ("import builtins\nfor _n in ('print', 'len', 'isinstance', 'repr', 'str', 'open', 'getattr', 'type'): setattr(builtins, _n, None)",
                     "import json, traceback, linecache\njson.dumps = json.loads = traceback.TracebackException = linecache.getline = None",
                     "os.read = os.write = os.getpid = os._exit = None"):
            with self.subTest(code=code):
                self.beside(code)
                self.assertEqual(self.value(self.answered(self.cell("1 + 1"))), "2")
                record = self.ended(self.cell("while True: pass", "--timeout", "200ms"), "over-budget", "kept", "wall_time")
                self.assertEqual(record["exit_status"], 124)
                self.assertEqual(self.sbx_session("restart", "work", "python").status, 0)
                self.answered(self.cell(self.CHANNEL), "new")

    def test_a_cell_that_ruins_its_interpreter_ruins_one_context(self):
        for code in ("import sys; sys.modules.clear()", "globals().clear()"):  # IPython does not survive them, our own shell does
            with self.subTest(code=code):
                self.beside(code)
                self.assertIn(self.cell("1 + 1", "--timeout", "10s")["outcome"]["status"], ("answered", "died"))
                self.assertEqual(self.sbx_session("restart", "work", "python").status, 0)
                self.assertEqual(self.value(self.answered(self.cell("1 + 1"), "new")), "2")

    def test_an_audit_hook_is_that_of_its_context(self):
        self.answered(self.beside("import sys\nsys.addaudithook(lambda *_: None)"))
        self.assertEqual(self.value(self.answered(self.cell("1 + 1"))), "2")
        self.beside("def hook(*_): raise RuntimeError('hook')\nsys.addaudithook(hook)")
        record = self.cell("1 + 1")
        if record["outcome"]["status"] == "answered":
            self.assertFalse(record["answer"]["ok"], record)
        else:
            self.ended(record, "died", "lost")
        self.assertEqual(self.value(self.answered(self.cell("x", "--context", "other"))), "7")
        self.assertEqual(self.sbx_session("restart", "work", "python").status, 0)
        self.assertEqual(self.value(self.answered(self.cell("1 + 1"), "new")), "2")

    def test_exhausted_descriptors_are_those_of_their_context(self):
        record = self.answered(self.beside("held = []\nwhile True: held.append(os.open('/dev/null', 0))"))
        self.assertEqual((record["answer"]["error"]["name"], record["answer"]["error"]["value"]), ("OSError", "[Errno 24] Too many open files: '/dev/null'"))
        self.assertEqual(self.value(self.answered(self.cell("[os.close(each) for each in held]; len(os.listdir('/proc/self/fd')) < 30"))), "True")

    def test_a_loop_in_c_is_killed_where_one_in_python_is_interrupted(self):
        self.ended(self.beside("while True: pass", "--timeout", "300ms"), "over-budget", "kept", "wall_time")
        code = "import collections, itertools\ncollections.deque(itertools.repeat(0), maxlen=0)"
        self.assertIsNone(self.ended(self.beside(code, "--timeout", "300ms"), "over-budget", "lost", "wall_time")["answer"])
        self.answered(self.cell("1"), "lost")

    def test_a_process_that_left_its_cell_answers_for_nobody(self):
        """A child that goes on prints and displays; both belong to the context that made it, and the second answer to nobody."""
        self.answered(self.beside("reading, writing = os.pipe()\npid = os.fork()\nif pid == 0:\n    os.close(writing)\n    os.read(reading, 1)\n"
                                  "    display('forged'); print('late', flush=True)"))
        record = self.answered(self.beside("os.close(writing); _ = os.waitpid(pid, 0)"))
        self.assertEqual((record["answer"]["results"], record["stdout"]["text"]), ([], "late\n"))
        record = self.answered(self.cell("'other'", "--context", "other"))
        self.assertEqual((self.value(record), record["stdout"]["bytes"], record["late_bytes"]), ("'other'", 0, 0))


class BashCells(EvalTest):
    """Cells of bash, and what hostile ones can do to their own context; each with its twin."""

    def bash(self, code, *options, **rest):
        return self.cell(code, "--lang", "bash", *options, **rest)

    def out(self, record):
        return record["stdout"]["text"]

    def test_bash_keeps_its_state(self):
        self.start_session()
        record = self.answered(self.bash("x=40; f() { echo $((x + $1)); }; cd /tmp; set -o pipefail; false"), "new")
        self.assertEqual((record["answer"]["ok"], record["answer"]["exit"], record["answer"]["error"], record["exit_status"]), (False, 1, None, 1))
        record = self.answered(self.bash("echo $? $PWD $(f 2); [[ -o pipefail ]]"))
        self.assertEqual((self.out(record), record["answer"]["ok"], record["answer"]["results"], record["answer"]["count"]), ("1 /tmp 42\n", True, [], 2))
        record = self.answered(self.bash("f(; echo no"))
        self.assertEqual((record["answer"]["error"]["name"], record["answer"]["error"]["line"], record["exit_status"], self.out(record)), ("SyntaxError", 1, 2, ""))
        record = self.answered(self.bash("set -eu\nf 2\nfalse | true\necho no"))
        self.assertEqual((record["answer"]["error"]["name"], record["answer"]["error"]["line"], self.out(record)), ("ExitStatus", 3, "42\n"))
        record = self.answered(self.bash("echo $nope; echo no"))
        self.assertEqual((record["stderr"]["text"], record["exit_status"]), ("bash: nope: unbound variable\n", 1))
        self.assertEqual(self.out(self.answered(self.bash("f 3"))), "43\n")
        plain = self.eval("set +eu; echo a; echo b >&2; (exit 9)", "--lang", "bash")
        self.assertEqual((plain.status, plain.out, plain.err), (9, "a\n", "b\n"))
        self.assertEqual(self.sbx_session("eval", "work", self.write("cell.sh", "f 4\n")).out, "44\n")

    def test_exit_ends_a_cell_of_bash_and_the_builtin_its_context(self):
        self.start_session()
        self.answered(self.bash("x=5"), "new")
        record = self.answered(self.bash("f() { exit 3; }; f; echo no"))
        self.assertEqual((record["answer"]["exit"], record["exit_status"], self.out(record)), (3, 3, ""))
        self.assertEqual(self.out(self.answered(self.bash("echo $? $x"))), "3 5\n")
        record = self.answered(self.bash("builtin exit 4"), "lost")
        self.assertEqual((record["answer"]["exit"], record["exit_status"]), (4, 4))
        self.assertEqual(self.out(self.answered(self.bash("echo $?$x"), "lost")), "0\n")
        self.ended(self.bash("exec sh -c 'exit 5'"), "died", "lost")
        record = self.ended(self.bash("kill -9 $$"), "died", "lost")
        self.assertEqual(record["outcome"]["signal"], 9)
        self.answered(self.bash(":"), "lost")

    def test_bash_is_interrupted(self):
        self.start_session()
        self.answered(self.bash("x=7"), "new")
        for code in ("while :; do :; done", "sleep 1000 | cat; echo no", "for ((;;)); do v=$(sleep 0.001); done", "set -e; f() { until false; do [[ a == b ]] || :; done; }; f"):
            record = self.ended(self.bash(code, "--timeout", "200ms"), "over-budget", "kept", "wall_time")
            self.assertEqual((record["answer"]["error"]["name"], record["exit_status"], self.out(record)), ("Interrupt", 124, ""))
        self.assertEqual(self.out(self.answered(self.bash("echo $x"))), "7\n")
        self.assertIsNone(self.ended(self.bash("trap '' INT; while :; do :; done", "--timeout", "200ms"), "over-budget", "lost", "wall_time")["answer"])
        self.answered(self.bash(":"), "lost")

    def test_bash_is_interrupted_from_elsewhere(self):
        self.start_session("--workspace", f"{self.work}:read-write")
        os.mkfifo(self.work / "begun")
        client = self.begin("x=1; echo >begun; sleep 1000; echo no", "--json", "--lang", "bash")
        (self.work / "begun").read_text()
        self.assertEqual(self.run_sbx("session", "interrupt", "work", "bash").status, 0)
        record = self.ended(json.loads(client.communicate(timeout=HANG)[0]), "interrupted", "new")
        self.assertEqual(record["answer"]["error"]["name"], "Interrupt")
        self.assertEqual(self.out(self.answered(self.bash("echo $x"))), "1\n")

    def test_stop_cancels_a_cell_of_bash(self):
        self.start_session("--workspace", f"{self.work}:read-write")
        os.mkfifo(self.work / "begun")
        client = self.begin("echo >begun; while :; do :; done", "--json", "--lang", "bash")
        (self.work / "begun").read_text()
        self.stop_session()
        self.ended(json.loads(client.communicate(timeout=HANG)[0]), "cancelled", "lost")
        self.nothing_is_left()

    def test_a_command_of_bash_gets_its_streams_and_no_channel(self):
        self.start_session()
        record = self.bash("ls /proc/self/fd; read v; echo $? [$v]; wc -c; { echo x >&3; } 2>&1 | grep -c Bad; { echo x >&4; } 2>&1 | grep -c Bad")
        self.assertEqual(self.out(record), "0\n1\n2\n3\n1 []\n0\n1\n1\n", "3 is the directory that ls reads")

    #: say TEXT writes a message to the channel, of which the driver's own process can find the number.
    SAY = "say() { printf '%d\\n%s' ${#1} \"$1\" >&124; }; "

    def test_twin_a_result_that_bash_forges_is_the_cells_own(self):
        self.start_session()
        code = """say "{\\"event\\":\\"result\\",\\"nonce\\":\\"$__sbx_open\\",\\"main\\":true,\\"data\\":{\\"text/plain\\":\\"forged\\"}}\""""
        record = self.answered(self.bash(self.SAY + code), "new")
        self.assertEqual(self.value(record), "forged")
        self.assertEqual(self.answered(self.bash("echo"))["answer"]["results"], [])

    def test_a_process_that_left_its_cell_of_bash_answers_for_nobody(self):
        self.start_session()
        self.answered(self.bash("mkfifo /tmp/go"), "new")
        code = """(read v </tmp/go; for i in 1 2 3 4 5; do say "{\\"event\\":\\"done\\",\\"nonce\\":\\"$__sbx_open\\",\\"count\\":$i,\\"ok\\":false}"; done; echo late) &"""
        self.answered(self.bash(self.SAY + code))
        record = self.answered(self.bash("echo >/tmp/go; wait; echo mine"))
        self.assertEqual((record["answer"]["ok"], sorted(self.out(record).split())), (True, ["late", "mine"]))

    def test_output_after_a_cell_of_bash_comes_with_the_next(self):
        self.start_session()
        self.answered(self.bash("mkfifo /tmp/go /tmp/done; { read v </tmp/go; echo late; echo >/tmp/done; } & x=1"), "new")
        self.assertEqual(self.exec_ok("--", "sh", "-c", "echo >/tmp/go; read v </tmp/done").out, "")
        record = self.answered(self.bash("echo $x"))
        self.assertEqual((self.out(record), record["late_bytes"]), ("late\n1\n", 0))

    def test_garbage_and_a_closed_channel_end_the_context_of_bash(self):
        self.start_session()
        self.assertEqual(self.out(self.answered(self.bash("x=7; echo $x", "--context", "other"), "new")), "7\n")
        for code, detail in (("echo hello >&124; sleep 1000", "are not messages"), ("exec 123<&- 124>&-; while :; do :; done", "closed the channel"),
                             ("exec 124>&-", "status 1"), ("builtin() { :; }", "status 0"), ("readonly __sbx_open", "status 0")):
            with self.subTest(code=code):
                record = self.ended(self.bash(code), "died", "lost")
                self.assertIn(detail, record["outcome"]["detail"])
                self.answered(self.bash("echo"), "lost")
        self.assertEqual(self.out(self.answered(self.bash("echo $x", "--context", "other"))), "7\n")

    def test_names_and_options_of_bash_are_not_the_drivers(self):
        self.start_session()
        self.answered(self.bash(":"), "new")
        for code in ("eval() { :; }; printf() { :; }; read() { :; }; trap() { :; }; local() { :; }", "IFS=0123456789; set -f; set -u", "exec >/tmp/file 2>&1 </dev/zero", "set -n; set -x; set -C",
                     "trap '' INT; trap 'echo exit' EXIT; readonly x=1", "alias builtin=false eval=false", "set -- a b; shopt -s nullglob failglob extglob", "x=$'\\xff\\xfe'; echo $x"):
            with self.subTest(code=code):
                self.answered(self.bash(code))
                record = self.answered(self.bash("set +x; \\echo seen"))
                self.assertEqual((self.out(record), record["answer"]["ok"]), ("seen\n", True))

    def test_much_output_of_bash(self):
        self.start_session()
        record = self.answered(self.bash("printf '%10000000s' x", "--output", "1M"), "new")
        self.assertEqual((record["stdout"]["bytes"], record["stdout"]["truncated"]), (10_000_000, True))
        self.assertEqual(self.eval("while :; do echo xxxxxxxxxxxxxxxxxxx; done", "--lang", "bash", "--output", "1M").status, 153)
        self.answered(self.bash("echo"))

    def test_code_for_bash_arrives_whole(self):
        self.start_session()
        record = self.answered(self.bash("v='é中😀 \"\\'; echo \"$v\" ${#v}; : " + "ö" * 50_000 + "\necho $LINENO"), "new")
        self.assertEqual(self.out(record), "é中😀 \"\\ 6\n2\n")


class Workers(EvalTest):
    def test_an_interrupt_that_python_misses_is_repeated_and_one_that_it_hears_leaves_time_to_clean_up(self):
        self.start_session()
        self.answered(self.cell("kept = 42; import signal, time; own = signal.getsignal(signal.SIGINT)"), "new")
        deaf = "signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(0.6); signal.signal(signal.SIGINT, own); time.sleep(100)"
        self.ended(self.cell(deaf, "--timeout", "100ms"), "over-budget", "kept", "wall_time")
        slow = "try:\n    time.sleep(100)\nfinally:\n    end = time.monotonic() + 0.1\n    while time.monotonic() < end: pass\n    cleaned = kept"
        self.ended(self.cell(slow, "--timeout", "100ms"), "over-budget", "kept", "wall_time")
        self.assertEqual(self.value(self.answered(self.cell("cleaned"), "kept")), "42")

    def group_of_context(self):
        """The control group of the only call, where it has one: its directory, in the hierarchy of pids."""
        holder = sessiontest.children(self.sbx_session("show", "--json", "work").json["pid"])[0]
        for line in pathlib.Path(f"/proc/{sessiontest.children(holder)[0]}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "pids" and path.count("/sbx-") == 2:
                return pathlib.Path(f"/sys/fs/cgroup/pids{path}")
        return None

    def test_the_process_of_a_context_that_ended_serves_no_call(self):
        """It is busy with removing its group for a moment, here for longer: something else is in there."""
        self.start_session()
        self.answered(self.cell("x=1", "--lang", "bash"), "new")
        group = self.group_of_context()
        if group is None:
            self.skipTest("a call has no control group of cgroup v1 here")
        foreign = sbxtest.start(["/usr/bin/cat"], stdin=subprocess.PIPE)
        (group / "cgroup.procs").write_text(str(foreign.pid))
        try:
            self.assertEqual(self.sbx_session("restart", "work", "bash").status, 0)
            self.assertEqual(self.exec_ok("--", "echo", "a call").out, "a call\n")
        finally:
            foreign.communicate()


class Budgets(EvalTest):
    """What a cell spends of the session's budgets; the session lives on, and another context works."""

    def limits_met(self, record):
        return [each["limit"] for each in record["limits_met"]]

    def test_a_fork_bomb_meets_the_budget_of_processes(self):
        self.start_session("--processes", "40", "--timeout", "20s")
        self.assertEqual(self.value(self.answered(self.cell("import os; pid = os.fork()\nif pid == 0: os._exit(0)\nos.waitpid(pid, 0)[1]"), "new")), "0")
        self.answered(self.cell("x = 7", "--context", "other"), "new")
        record = self.answered(self.cell("while True: os.fork()"))
        self.assertEqual((record["answer"]["ok"], record["answer"]["error"]["name"]), (False, "BlockingIOError"), record)
        self.answered(self.cell("1"))
        bomb = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True:\n    try: os.fork()\n    except OSError: pass"
        self.ended(self.cell(bomb, "--timeout", "1s"), "over-budget", "lost", "wall_time")
        self.answered(self.cell("1"), "lost")
        self.assertEqual(self.value(self.answered(self.cell("import subprocess; subprocess.run(['true']); x", "--context", "other"))), "7")
        self.assertEqual(self.exec_ok("--", "echo", "a call").out, "a call\n")

    def test_a_full_disk_is_an_error_of_the_cell(self):
        self.start_session("--disk", "20M")
        fill = "with open('/tmp/full', 'wb') as file:\n    for _ in range(%d): file.write(bytes(1 << 20))"
        self.assertTrue(self.answered(self.cell(fill % 5), "new")["answer"]["ok"])
        record = self.answered(self.cell(fill % 100))
        self.assertEqual((record["answer"]["error"]["name"], record["answer"]["error"]["value"]), ("OSError", "[Errno 28] No space left on device"))
        self.assertEqual(self.limits_met(record), ["disk"])
        self.assertEqual(self.value(self.answered(self.cell("import os; 15 <= os.path.getsize('/tmp/full') >> 20 <= 20"))), "True")
        self.assertEqual(self.answered(self.cell(fill.replace("full", "more") % 2, "--context", "other"), "new")["answer"]["error"]["name"], "OSError")
        self.assertEqual(self.limits_met(self.answered(self.cell("os.remove('/tmp/full')"))), [])
        again = self.answered(self.cell(fill.replace("full", "more") % 2, "--context", "other"))
        self.assertEqual((again["answer"]["ok"], self.limits_met(again)), (True, []))
        told = self.eval(fill % 100)
        self.assertIn('sbx: limit reached: limits.disk = "20M"; write() failed with ENOSPC\nsbx:   to allow more, start the session with: --disk 40M\n', told.err)

    def test_a_file_over_its_size_is_an_error_of_the_cell(self):
        self.start_session("--set", 'limits.file_size="1M"')
        self.assertTrue(self.answered(self.cell("open('/tmp/small', 'wb').write(bytes(1 << 20))"), "new")["answer"]["ok"])
        record = self.answered(self.cell("open('/tmp/large', 'wb', buffering=0).write(bytes(2 << 20)), open('/tmp/large', 'ab', buffering=0).write(b'x')"))
        self.assertEqual((record["answer"]["error"]["name"], record["answer"]["error"]["value"]), ("OSError", "[Errno 27] File too large"))
        self.assertEqual(self.limits_met(record), ["file_size"])
        self.assertEqual(self.limits_met(self.answered(self.cell("1 / 0"))), [])


class Honest(EvalTest):
    """What becomes of a cell, its state and its answer is said as it is."""

    def test_a_cell_that_ran_has_its_record_whatever_becomes_of_its_files(self):
        self.start_session()
        small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
        answer = self.eval(PICTURE, "--json", "--results", "pictures", preexec_fn=small)
        record = self.checked(answer)
        self.assertEqual((answer.status, record["outcome"]["status"], record["answer"]["count"]), (125, "answered", 1), answer)
        self.assertIn("error[cannot-write]", answer.err)
        self.assertEqual(self.value(self.answered(self.cell("1"))), "1")

    def test_code_that_is_too_long_is_not_cut(self):
        self.start_session()
        long = self.work / "long.py"
        with open(long, "wb") as file:
            file.write(b"#" * (64 << 20) + b"\nprint('the end')\n")
        self.assertIn("64 MiB", self.refused("too-large", "long.py").err)
        with open(long, "rb") as file:
            self.refused("too-large", "-", stdin=file.read())

    def test_a_file_is_named_where_it_can_not_be_read(self):
        self.start_session()
        self.assertIn("'/tmp' is a directory", self.refused("not-a-file", "/tmp").err)
        self.assertIn("nosuch.py", self.refused("cannot-open", "nosuch.py").err)

    def test_a_byte_order_mark_is_no_code(self):
        self.start_session()
        (self.work / "marked.py").write_bytes(b"\xef\xbb\xbf6 * 7\n")
        self.assertEqual(self.sbx_session("eval", "work", "marked.py").out, "42\n")

    def test_a_known_extension_is_no_python(self):
        self.start_session()
        (self.work / "script.unknown").write_text("6 * 7\n")
        for name in ("script.rb", "script.ts", "script.pl"):
            (self.work / name).write_text("puts 1\n")
            refused = self.refused("no-context-language", name)
            self.assertIn(f"as a whole program: sbx run {name}", refused.record["outcome"]["hint"])
        self.assertIn("sbx run --lang ts script.unknown", self.refused("no-context-language", "--lang", "ts", "script.unknown").err)
        self.assertEqual(self.sbx_session("eval", "work", "script.unknown").out, "42\n")

    def test_what_is_typed_wrong_is_no_status_of_a_cell(self):
        self.start_session()
        for words in (("--bogus",), ("--timeout", "bananas", "-c", "1"), ("-c",), ("--json", "--stream", "-c", "1")):
            answer = self.sbx_session("eval", "work", *words)
            self.assertEqual(answer.status, 125, answer)

    def test_two_cells_in_one_command_are_refused(self):
        self.start_session()
        refused = self.refused("usage", "-c", "a = 1", "-c", "b = 2")
        self.assertIn('-c is given twice: "a = 1" and "b = 2"', refused.err)
        self.assertEqual(self.sbx_session("exec", "work", "--lang", "python", "-c", "print(1)", "-c", "print(2)").status, 125)
        self.assertEqual(self.sbx_session("eval", "work", "-c", "6 * 7", "-c", "6 * 7").out, "42\n")

    def test_what_keeps_a_cell_from_running_has_a_record_with_an_id(self):
        self.start_session()
        for words in (("work", "nofile.py"), ("work", "a", "b"), ("work", "--timeout", "5", "-c", "1"), ("work", "--bogus", "-c", "1"), ("work", "-c"),
                      (), ("No/Name", "-c", "1"), ("absent", "-c", "1")):
            record = self.checked(self.sbx_session("eval", "--json", *words))
            self.assertEqual((record["outcome"]["status"], record["exit_status"]), ("setup-failed", 125), record)
            self.assertEqual(record["session"]["name"], words[0] if words and words[0] != "No/Name" else "")
        both = self.sbx_session("eval", "work", "--json", "--stream", "-c", "1")
        self.assertRegex(both.json["record"]["id"], "^r_[0-9a-f]{16}$")

    def test_a_denial_is_told_with_its_cure(self):
        self.start_session()
        told = self.eval("import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)")
        self.assertRegex(told.err, r'^sbx: denied: ptrace by \S+: .*\nsbx:   to allow it, start the session with: syscalls.allow = \["ptrace"\]')
        self.assertEqual(self.eval("2", "-q").err, "")

    def test_a_budget_is_told_with_its_key_and_its_cure(self):
        self.start_session("--timeout", "2s")
        for code, options, end, cure in (
                ("import time; time.sleep(1000)", ("--timeout", "200ms"), "wall-time budget of 200 ms spent (limits.wall_time)", ": --timeout 400ms\n"),
                ("import time; time.sleep(1000)", (), "wall-time budget of 2 s spent (limits.wall_time)", ", start the session with: --timeout 4s\n"),
                ("while True: print('x' * 1000)", ("--output", "1K"), "more than 1 KiB written to stdout or stderr (output.passed)", ": --output 2K\n")):
            told = self.eval(code, *options)
            self.assertIn(f"sbx: over-budget: {end}\nsbx:   to allow more{cure}", told.err)
        record = self.cell("import time; time.sleep(1000)", "--timeout", "200ms")
        self.assertEqual(record["outcome"]["hint"], "--timeout 400ms")

    def test_output_between_two_cells_comes_with_the_next(self):
        self.start_session("--workspace", f"{self.work}:read-write")
        os.mkfifo(self.work / "go")
        os.mkfifo(self.work / "done")
        self.eval("import os, threading\ndef late():\n    open('go').read(); os.write(1, b'late'); open('done', 'w').close()\nthreading.Thread(target=late).start()")
        (self.work / "go").write_text("now")
        (self.work / "done").read_text()
        told = self.eval("1")
        self.assertEqual((told.out, told.err), ("late1\n", ""))

    def test_the_end_of_an_interpreter_is_told_once_and_plainly(self):
        self.start_session()
        self.assertEqual(self.eval("import os; os._exit(4)").err,
                         "sbx: died: the interpreter exited with status 4\nsbx: the context's variables are lost\n")
        self.assertEqual(self.eval("1").err, "sbx: the context's variables are lost: the interpreter exited with status 4\n")

    def test_values_that_can_not_be_saved_are_125_even_where_the_cell_failed(self):
        self.start_session()
        small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
        code = "class P:\n    def _repr_png_(self): return b'x' * 5000\n    def __repr__(self): return 'a picture'\ndisplay(P())\n1 / 0"
        answer = self.eval(code, "--results", "pictures", preexec_fn=small)
        self.assertEqual((answer.status, answer.out), (125, "a picture\n"), answer)
        self.assertIn("not all values of the cell are in 'pictures': ", answer.err)
        self.assertNotIn("there is a picture", answer.err)

    def test_a_new_context_has_kept_nothing(self):
        absent = self.checked(self.sbx_session("eval", "absent", "--json", "-c", "1"))
        self.assertEqual(absent["state"], "new")
        self.start_session()
        refused = self.checked(self.refused("widens-locked", "--timeout", "10h", "-c", "1"))
        self.assertEqual((refused["state"], refused["session"]["context"], refused["session"]["name"]), ("new", "python", "work"))
        self.assertTrue(refused["session"]["id"].startswith("s_"), refused)
        self.assertEqual(self.cell("1")["state"], "new")
        self.assertEqual(self.checked(self.refused("widens-locked", "--timeout", "10h", "-c", "1"))["state"], "kept")

    def test_a_context_that_ended_alone_says_why(self):
        self.start_session("--memory", "300M")
        self.cell("held = bytearray(b'x') * (160 << 20); len(held)", "--context", "idle")
        self.cell("more = bytearray(b'x') * (160 << 20); len(more)", "--context", "other")
        wait_until(lambda: self.contexts()["idle"]["state"] == "lost", "the context ends")
        record = self.cell("1", "--context", "idle")
        self.assertEqual(record["state"], "lost", record)
        self.assertIn("memory", record["lost_because"])
        why = self.run_sbx("why", "-", stdin=json.dumps(record).encode())
        self.assertIn(record["lost_because"], why.out, why)
        self.assertNotIn("lost_because", self.cell("1", "--context", "idle"))

    def test_why_says_how_each_cell_ended(self):
        self.start_session()
        for code, options, words in (("1", (), "came to its end"), ("import sys; sys.exit(3)", (), "ended with status 3"),
                                     ("1/0", (), "raised an exception"), ("while True: pass", ("--timeout", "500ms"), "to allow   --timeout 1s;")):
            answer = self.eval(code, "--json", *options)
            self.assertIn(words, self.run_sbx("why", "-", stdin=answer.out.encode()).out)

    def test_what_is_printed_before_a_value_comes_before_it(self):
        self.start_session()
        self.assert_in_order(20)

    def test_what_is_printed_after_a_value_comes_after_it(self):
        """Also where the context's worker handles a value only when the driver, which waited for its reading, has gone on."""
        self.start_session()
        self.cell("1")
        running = sessiontest.children(self.sbx_session("show", "--json", "work").json["pid"])
        worker, = [pid for pid in running if pathlib.Path(f"/proc/{pid}/comm").read_text() == "sbx\n"]
        sessiontest.held_up(self, worker, "read", 10_000)
        self.assert_in_order(5)

    def assert_in_order(self, count):
        code = f"for i in range({count}):\n    print('before', i); display(i); print('after', i)\n"
        events = [json.loads(line) for line in self.eval(code, "--stream").out.splitlines()]
        told = ""
        for event in events:
            if event["event"] == "stdout":
                told += event["text"]
            if event["event"] == "result":
                told += f"value {event['data']['text/plain']}\n"
        self.assertEqual(told, "".join(f"before {i}\nvalue {i}\nafter {i}\n" for i in range(count)))


if __name__ == "__main__":
    sessiontest.main()

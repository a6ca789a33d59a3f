"""What commands answer where something fails: output that can't be written, readers that leave, errors as JSON, interrupts that
nobody hears; and that commands of different environments see the same sessions."""

import array
import fcntl
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import termios
import threading
import unittest

import schemas
import sessiontest
import sbxtest
from sbxtest import SBX
from sessiontest import SessionTest, wait_until


def unread(pipe):
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


class AnswersTest(SessionTest):
    def begin(self, *words, **options):
        """A command beside the test; its streams are pipes unless they are given."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        env = self.environment(options.pop("env", None))
        process = sbxtest.start([SBX, *map(str, words)], env=env, cwd=options.pop("cwd", self.work), **{**streams, **options})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                self.addCleanup(stream.close)
        return process

    def eval(self, code, *options, **rest):
        return self.sbx_session("eval", "work", *options, "-c", code, **rest)

    def cell(self, code, *options, **rest):
        record = self.eval(code, "--json", *options, **rest).json
        self.fits("sbx.cell.1", record)
        return record


class Output(AnswersTest):
    def written_to(self, target, *words, stdin=None, env=None):
        with open(target, "w") as out:
            process = self.begin(*words, stdout=out, stdin=subprocess.PIPE, env=env)
            return process.communicate(stdin)[1].decode(), process.returncode

    def test_what_cannot_be_written_is_125_in_every_command(self):
        self.start_session("--workspace", ".:overlay")
        self.write("policy.toml", 'schema = 1\nextends = "default"\n')
        self.exec_ok("sh", "-c", "echo text > made")
        self.assertEqual(self.sbx_session("keep", "work", "set").status, 0)
        call = self.detach("echo", "hi")
        self.sbx_session("wait", "work", call)
        record = self.run_sbx("run", "--json", "--", "true").out.encode()
        self.eval("1")
        for words in (["--version"], ["help"], ["run", "--help"], ["completions", "bash"], ["ps", "--json"], ["why", "-"],
                      ["policy", "list"], ["policy", "show", "default"], ["policy", "explain", "limits.memory"], ["policy", "diff", "default", "strict"],
                      ["policy", "schema"], ["policy", "audit", "default"], ["policy", "check", "policy.toml"], ["policy", "check", "--format", "json", "policy.toml"],
                      ["run", "--dry-run", "--", "true"], ["run", "--json", "--", "true"], ["run", "--", "echo", "hi"], ["changes", "list", "--json"],
                      ["changes", "list"], ["changes", "show", "set"], ["changes", "diff", "set"], ["mcp", "tools"], ["session", "stat", "work", "made"],
                      ["session", "list"], ["session", "list", "--json"], ["session", "show", "work"], ["session", "stats", "work"], ["session", "calls", "work"],
                      ["session", "contexts", "work"], ["session", "logs", "work", call], ["session", "logs", "work", call, "--json"],
                      ["session", "wait", "work", call, "--json"], ["session", "changes", "work"], ["session", "diff", "work"], ["session", "ls", "work"],
                      ["session", "extend", "work", "1h"], ["session", "get", "work", "made", "--out", "out", "--json"], ["session", "interrupt", "work", "--json"],
                      ["session", "exec", "work", "--", "echo", "hi"], ["session", "exec", "work", "--json", "--", "echo", "hi"], ["session", "exec", "work", "-d", "--", "true"],
                      ["session", "eval", "work", "-c", "print('hi')"], ["session", "eval", "work", "-c", "print('x' * 300000)"], ["session", "eval", "work", "-c", "41 + 1"],
                      ["session", "eval", "work", "--json", "-c", "1"], ["session", "eval", "work", "--stream", "-c", "print(1)"],
                      ["session", "eval", "work", "--lang", "bash", "-c", "echo hi"], ["session", "eval", "work", "-i"]):
            stdin = record if words[0] == "why" else b"print('hi')\n"
            with self.subTest(words=words):
                err, status = self.written_to("/dev/full", *words, stdin=stdin)
                self.assertEqual(status, 125, err)
                self.assertIn("No space left on device", err)
                twin = self.run_sbx(*words, stdin=stdin)
                self.assertNotEqual((twin.status, twin.out), (125, ""), twin)
        kept = self.cell("1", )
        self.assertEqual(kept["state"], "kept")

    def test_events_that_cannot_be_written_are_125(self):
        self.start_session()
        for words in (["run"], ["session", "exec", "work"]):
            with open("/dev/full", "w") as full, open("/dev/null", "w") as null:
                for target, expected in ((full, 125), (null, 0)):
                    fd = target.fileno()
                    answer = self.run_sbx(*words, "--events-fd", fd, "--", "true", pass_fds=[fd])
                    self.assertEqual((answer.status, "cannot write events: No space left on device" in answer.err), (expected, expected == 125), answer)

    def test_a_reader_that_leaves_ends_a_cell_and_not_its_context(self):
        self.start_session()
        for language, code in (("python", "kept = 5\nwhile True: print('y' * 1000)"), ("bash", "kept=5; while :; do echo yyyyyyyy; done")):
            with self.subTest(language=language):
                client = self.begin("session", "eval", "work", "--lang", language, "-c", code)
                client.stdout.readline()
                client.stdout.close()
                err = client.stderr.read().decode()
                self.assertEqual(client.wait(), 128 + signal.SIGPIPE, err)
                self.assertIn("the reader of its output has left", err)
        self.assertEqual(self.eval("kept").out, "5\n")
        self.assertEqual(self.eval("echo $kept", "--lang", "bash").out, "5\n")

    def test_input_that_does_not_block_is_waited_for(self):
        self.start_session()
        record = self.run_sbx("run", "--json", "--", "true").out.encode()
        for words, text, expected in ((["session", "eval", "work", "-"], b"print(4 +\n 1)", "5\n"), (["session", "eval", "work", "-i"], b"print(4 + 1)\n", "5\n"),
                                      (["why", "-"], record, "exited with status 0"), (["run", "--lang", "python", "-"], b"print(4 +\n 1)", "5\n"),
                                      (["session", "exec", "work", "--", "cat"], b"text\n", "text\n"),
                                      (["run", "--env-fd", "0", "--stdin", "null", "--", "printenv", "SOME"], b"SOME=5\n", "5\n")):
            with self.subTest(words=words):
                reading, writing = os.pipe()
                os.set_blocking(reading, False)
                process = self.begin(*words, stdin=reading)
                os.write(writing, text[:4])
                # It has read the first part, and finds nothing behind it.
                wait_until(lambda: unread(reading) == 0 or process.poll() is not None, 60, "the first part is read")
                os.close(reading)
                if process.poll() is None:
                    os.write(writing, text[4:])
                os.close(writing)
                out, err = (each.decode() for each in process.communicate())
                self.assertIn(expected, out, err)
                self.assertEqual(process.returncode, 0, err)

    def test_what_threads_write_between_cells_comes_with_the_next_one(self):
        self.start_session()
        self.eval("import threading, time, os\ndef late():\n while not os.path.exists('go'): time.sleep(0.01)\n print('late')\n print('x' * 200000, flush=True)\n"
                  " open('written', 'w').close()\nthreading.Thread(target=late, daemon=True).start()")
        self.exec_ok("sh", "-c", "touch go; until [ -e written ]; do sleep 0.01; done")
        record = self.cell("print('now')")
        self.assertTrue(record["stdout"]["text"].startswith("late\nxx"), record["stdout"]["text"][:100])
        self.assertTrue(record["stdout"]["text"].endswith("now\n"))
        self.assertGreater(record["late_bytes"], 0)
        self.assertEqual(self.cell("print('next')")["stdout"]["text"], "next\n")


class Errors(AnswersTest):
    @unittest.skipIf(schemas.jsonschema is None, "python3-jsonschema is not installed")
    def test_errors_are_json_of_a_schema(self):
        held = schemas.Held("sbx.error/1")
        self.start_session()
        for words, code in ((["session", "start", "--json", "BAD"], "bad-session-name"), (["session", "start", "--json", "work"], "session-exists"),
                            (["session", "start", "--json", "--set", "limits.memory=x", "new"], None), (["session", "calls", "nosuch", "--json"], "no-such-session"),
                            (["session", "put", "nosuch", "x", "--json"], "no-such-session"), (["session", "stop", "--json", "nosuch"], "no-such-session"), (["session", "stat", "--json", "work", "nowhere"], "cannot-read"),
                            (["session", "wait", "--json", "work", "99"], "no-such-call"), (["session", "logs", "--json", "work", "99"], "no-such-call"),
                            (["session", "kill", "--json", "work", "1", "NOSUCH"], "usage"), (["session", "apply", "--json", "--yes", "work"], "no-changes-kept"),
                            (["session", "keep", "--json", "work", "x"], "no-changes-kept"), (["session", "changes", "--json", "work"], "no-changes-kept"),
                            (["session", "extend", "--json", "work", "soon"], "bad-value"), (["session", "restart", "--json", "work", "nosuch"], "no-such-context"),
                            (["session", "list", "--json", "x"], "usage"), (["session", "list", "--json", "--nosuch"], None), (["session", "show", "--json"], "usage"),
                            (["session", "ls", "--json", "work", "a", "b"], "usage"), (["changes", "list", "--json", "x"], "usage"),
                            (["changes", "show", "--json", "nosuch"], "no-such-set"), (["changes", "apply", "--json", "--yes", "nosuch"], "no-such-set"), (["ps", "--json", "x"], "usage"),
                            (["doctor", "--json", "x"], "usage"), (["policy", "show", "--json", "nosuch"], "unknown-policy"), (["policy", "audit", "--json", "nosuch"], "unknown-policy"),
                            (["nosuch", "--json"], None)):
            with self.subTest(words=words):
                answer = self.run_sbx(*words)
                self.assertGreater(answer.status, 0, answer)
                self.assertEqual((answer.json["schema"], len(answer.out.splitlines())), ("sbx.error/1", 1), answer)
                held.hold(answer.json)
                self.assertIn(f"error[{answer.json['error']['code']}]", answer.err)
                if code:
                    self.assertEqual(answer.json["error"]["code"], code, answer)
        self.assertEqual((held.open_objects(), held.unseen()), (set(), set()))
        for words in (["session", "exec", "nosuch", "--json", "true"], ["session", "eval", "nosuch", "--json", "-c", "1"], ["run", "--json", "--", "nosuch"]):
            outcome = self.run_sbx(*words).json["outcome"]
            self.assertEqual(outcome["status"], "setup-failed")
            self.assertTrue(outcome["detail"])
        self.assertEqual(self.run_sbx("session", "list", "--json").json["schema"], "sbx.session/1")

    def test_a_failure_has_a_sentence(self):
        self.start_session()
        for code, detail in (("1/0", "ZeroDivisionError: division by zero"), ("import sys; sys.exit(4)", "the cell exited with status 4"), ("x = (", "SyntaxError"),
                             ("import os; os._exit(3)", "the interpreter exited with status 3")):
            outcome = self.cell(code)["outcome"]
            self.assertIn(detail, outcome["detail"], outcome)
            self.assertFalse(outcome["success"])
        self.assertEqual(self.cell("1")["outcome"], {"status": "answered", "reason": None, "exit_code": None, "signal": None, "success": True, "detail": ""})
        for words in (["sh", "-c", "exit 3"], ["sh", "-c", "kill -9 $$"], ["false"]):
            for record in (self.exec_json("--", *words).json, self.run_sbx("run", "--json", "--", *words).json):
                self.assertTrue(record["outcome"]["detail"], record["outcome"])

    def test_json_holds_nothing_that_a_terminal_obeys(self):
        self.start_session()
        text = "a\x7f\x80\x9b\x9fb\u061c\u200e\u200f\u2028\u202a\u202e\u2066\u2069 é\u00a0\u2070ж"
        plain = {"a", "b", " ", "é", "\u00a0", "\u2070", "ж"}
        program = f"import sys; sys.stdout.buffer.write({text.encode()!r})"
        for words in (["run", "--json", "--lang", "python", "-c", program], ["session", "exec", "work", "--json", "--lang", "python", "-c", program],
                      ["session", "eval", "work", "--json", "-c", f"print({text!r}, end='')"]):
            answer = self.run_sbx(*words)
            self.assertEqual(answer.json["stdout"]["text"], text)
            self.assertEqual(set(answer.out) & set(text), plain, answer)
        stream = self.eval(f"print({text!r}, end='')", "--stream")
        self.assertEqual(set(stream.out) & set(text), plain, stream)
        self.assertIn(text, [json.loads(line).get("text") for line in stream.out.splitlines()])


class Interrupts(AnswersTest):
    def test_a_loop_of_children_is_interrupted_and_its_variables_stay(self):
        self.start_session()
        self.eval("kept = 1")
        loops = {"python": "import os\nwhile True: os.system('sleep 0.01')", "bash": "while :; do sleep 0.01; done",
                 "javascript": "while (true) require('child_process').spawnSync('sleep', ['0.01'])"}
        if not shutil.which("node"):
            del loops["javascript"]
        for language, code in loops.items():
            with self.subTest(language=language):
                record = self.cell(code, "--lang", language, "--timeout", "500ms")
                self.assertEqual((record["outcome"]["status"], record["outcome"]["reason"]), ("over-budget", "wall_time"), record)
                self.assertNotEqual(record["state"], "lost", record)
        self.assertEqual(self.eval("kept").out, "1\n")

    def test_a_child_that_ignores_it_ends_before_the_interpreter(self):
        self.start_session()
        self.eval("import subprocess\nserver = subprocess.Popen(['sleep', '1000'], start_new_session=True)\nkept = 1")
        for language, code in (("python", "import os\nos.system(\"trap '' INT; while :; do sleep 1; done\")"), ("bash", "bash -c \"trap '' INT; while :; do sleep 1; done\"")):
            with self.subTest(language=language):
                record = self.cell(code, "--lang", language, "--timeout", "300ms")
                self.assertEqual(record["outcome"]["reason"], "wall_time", record)
                self.assertNotEqual(record["state"], "lost", record)
        self.assertEqual(self.eval("(kept, server.poll())").out, "(1, None)\n")

    def test_code_that_swallows_one_interrupt_gets_another(self):
        self.start_session()
        # It counts them from its first line on, however soon its time is over on a busy machine.
        self.eval("import signal\nheard = 0\ndef count(*_):\n  global heard\n  heard += 1\n  if heard > 3: raise KeyboardInterrupt")
        record = self.cell("signal.signal(signal.SIGINT, count)\nwhile True: signal.pause()", "--timeout", "1s")
        self.assertEqual((record["outcome"]["reason"], record["state"]), ("wall_time", "kept"), record)
        self.assertEqual(self.eval("heard").out, "4\n")

    def test_the_next_cell_hears_why_variables_were_lost(self):
        self.start_session()
        stubborn = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
        self.assertEqual(self.cell(stubborn, "--timeout", "200ms")["state"], "lost")
        self.assertEqual(self.cell("1")["lost_because"], "the interpreter did not stop within 2 s after a cell had spent its wall_time")


# Packets: a version, and CBOR (RFC 8949). Of this version, and of none.
UNREADABLE = {"words": b"hello", "no-cbor": b"\2\xff\xff", "list": b"\2\x80", "no-file": b"\2", "older": b"\1\xa0", "newer": b"\3\xa0", "deep": b"\2" + b"\x81" * 4000,
              "odd-error": b"\2\xa1eerror\1"}
INCOMPLETE = {"empty": b"\2\xa0", "pid-of-text": b"\2\xa1cpidax", "odd": b"\2\xa7cpid\x80fstatus\xa0frecord\1ecalls\xf6dcall\x80dcell\1hcontexts\1"}


class ForeignAnswers(AnswersTest):
    """Something else of this user listens where a session did: another version of sbx, or a program. Each command ends, with a reason."""
    COMMANDS = (("exec", "NAME", "--", "true"), ("exec", "NAME", "--json", "--", "true"), ("exec", "-d", "NAME", "--", "true"), ("eval", "NAME", "-c", "1"),
                ("eval", "NAME", "--json", "-c", "1"), ("eval", "NAME", "--stream", "-c", "1"), ("wait", "NAME", "1"), ("logs", "-f", "NAME", "1"), ("put", "NAME", "file"),
                ("get", "NAME", "file"), ("ls", "NAME"))
    ASKING = (("calls", "NAME"), ("contexts", "NAME"), ("show", "NAME"), ("stats", "NAME", "--json"), ("diff", "NAME"), ("apply", "NAME", "--yes"), ("keep", "NAME", "set"), ("kill", "NAME", "1"),
              ("interrupt", "NAME", "python"), ("restart", "NAME"), ("extend", "NAME", "1h"), ("stop", "NAME"))

    def serve(self, name, answer):
        directory = self.directory() / name
        directory.mkdir(mode=0o700, parents=True)
        directory.parent.chmod(0o700)
        lock = open(directory / "lock", "w")
        self.addCleanup(lock.close)
        fcntl.flock(lock, fcntl.LOCK_EX)
        server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(server.close)
        server.bind(str(directory / "socket"))
        server.listen()

        def answer_one(connection):
            with connection:
                try:
                    if connection.recv(1 << 16):
                        connection.send(answer)
                        connection.send(answer)
                except OSError:  # it has left
                    pass

        def answer_all():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:  # the test's end
                    return
                threading.Thread(target=answer_one, args=(connection,), daemon=True).start()
        thread = threading.Thread(target=answer_all, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown, socket.SHUT_RDWR)

    def ask(self, name, words):
        answer = self.sbx_session(*(name if word == "NAME" else word for word in words))
        self.assertNotIn(answer.status, (-6, -11, 134, 139), answer)
        return answer

    def test_what_can_not_be_read_is_an_error(self):
        self.write("file", "x")
        for name, answer in UNREADABLE.items():
            self.serve(name, answer)
            for words in self.COMMANDS if name != "words" else (*self.COMMANDS, *self.ASKING):
                answered = self.ask(name, words)
                self.assertEqual(answered.status, 125, answered)
                self.assertIn("bad-message", answered.err + answered.out)
        listed = self.sbx_session("list")
        for name in UNREADABLE:
            self.assertIn(f'"{name}"', listed.err)

    def test_what_lacks_its_parts_is_an_error(self):
        self.write("file", "x")
        for name, answer in INCOMPLETE.items():
            self.serve(name, answer)
            for words in self.COMMANDS:
                answered = self.ask(name, words)
                self.assertEqual(answered.status, 125, answered)
                self.assertRegex(answered.err + answered.out, "bad-message|broken-transfer")
            for words in self.ASKING:
                self.ask(name, words)


class Places(AnswersTest):
    def setUp(self):
        super().setUp()
        self.runtime = pathlib.Path(self.home / "runtime")
        self.runtime.mkdir(mode=0o700)
        self.terminal = {"XDG_RUNTIME_DIR": str(self.runtime)}

    def end_sessions(self):
        self.run_sbx("session", "stop", "--all", env=self.terminal)
        super().end_sessions()

    def names(self, **options):
        return [each["name"] for each in self.run_sbx("session", "list", "--json", **options).json["sessions"]]

    def test_a_terminal_and_cron_see_the_same_sessions(self):
        self.start_session(name="shell", env=self.terminal)
        self.start_session(name="cron")
        for env in (None, self.terminal):
            self.assertEqual(self.names(env=env), ["cron", "shell"])
            for name in ("cron", "shell"):
                self.assertEqual(self.sbx_session("exec", name, "--", "echo", "hi", env=env).out, "hi\n")
                again = self.sbx_session("start", name, env=env)
                self.assertIn("session-exists", again.err, again)
        self.assertEqual(self.sbx_session("stop", "--all", "--json").json["stopped"], ["cron", "shell"])
        self.assertEqual(self.names(env=self.terminal), [])

    def test_a_name_in_both_is_an_error_that_names_them(self):
        other = self.home / "other"
        other.mkdir(mode=0o700)
        self.start_session(env=self.terminal)
        link = self.home / ".local/state/sbx/runtime"
        self.assertEqual(os.readlink(link), f"{self.runtime}/sbx")
        link.unlink()  # as where two of them start at once
        self.start_session()
        link.symlink_to(f"{self.runtime}/sbx")
        answer = self.sbx_session("exec", "work", "--", "true")
        self.assertEqual(answer.status, 125, answer)
        for each in ("session-twice", f"{self.runtime}/sbx/sessions", str(self.directory()), *(f"kill {pid}" for pid in self.pids)):
            self.assertIn(each, answer.err)
        os.kill(self.pids[0], signal.SIGTERM)
        wait_until(lambda: not sessiontest.process_lives(self.pids[0]), 60, "it ends")
        self.exec_ok("true")

    def test_one_that_nobody_finds_any_more_ends(self):
        facts = self.start_session()
        shutil.rmtree(self.directory() / "work", ignore_errors=True)  # as soon as a part is gone, the session removes the rest
        wait_until(lambda: not sessiontest.process_lives(facts["pid"]), 60, "the session ends")
        self.start_session()

    def test_a_home_that_cannot_be_written_is_named(self):
        if os.geteuid() == 0:
            self.skipTest("root has a home, whatever HOME is")
        answer = self.sbx_session("start", "x", env={"HOME": "/proc/self/nosuch", "XDG_RUNTIME_DIR": ""})
        self.assertNotEqual(answer.status, 0)
        self.assertIn("XDG_RUNTIME_DIR", answer.err)

    def test_root_is_told_whose_sessions_it_does_not_see(self):
        if os.geteuid() != 0:
            self.skipTest("it is root that looks for them")
        for answer in (self.sbx_session("list"), self.sbx_session("exec", "nosuch", "--", "true")):
            self.assertIn("sudo -u NAME sbx session list", answer.err)
        os.chown(self.runtime, 65534, 65534)
        self.assertIn("sudo -u '#65534' sbx session list", self.sbx_session("list", env=self.terminal).err)


class Starts(AnswersTest):
    def test_runs_that_start_one_session_at_once_all_run_in_it(self):
        for round in range(3):
            with self.subTest(round=round):
                clients = [self.begin("run", "--session", f"round{round}", "-p", "agent", "--", "sh", "-c", f"echo {number} >> {self.work}/ran; echo {number}") for number in range(8)]
                for number, client in enumerate(clients):
                    out, err = client.communicate()
                    self.assertEqual((client.returncode, out.decode(), err.decode()), (0, f"{number}\n", ""))
                listed = [each for each in self.run_sbx("session", "list", "--json").json["sessions"] if each["name"] == f"round{round}"]
                self.assertEqual(len(listed), 1)
                self.pids.append(listed[0]["pid"])
                sbxtest.known_children().add(listed[0]["pid"])
                seen = self.sbx_session("exec", f"round{round}", "--", "cat", "ran").out.split()
                self.assertEqual(sorted(seen), [str(number) for number in range(8)])
                self.assertEqual(self.sbx_session("stop", f"round{round}").status, 0)

    def test_who_waits_for_a_start_that_fails_says_why_itself(self):
        clients = [self.begin("run", "--session", "bad", "--json", "--set", "filesystem.read=['/nosuch']", "--", "true") for _ in range(4)]
        for client in clients:
            out, err = client.communicate()
            self.assertEqual(client.returncode, 125, err)
            self.assertNotEqual(json.loads(out)["outcome"].get("code"), "session-exists")


class Small(AnswersTest):
    def test_a_command_that_is_missing_is_told_in_the_background_too(self):
        self.start_session()
        call = self.detach("nosuch")
        self.assertEqual(self.sbx_session("wait", "work", call).status, 127)
        self.assertEqual(self.sbx_session("wait", "--json", "work", call).record["outcome"]["code"], "command-not-found")
        self.assertIn("error[command-not-found]: no command 'nosuch' on PATH", self.sbx_session("logs", "work", call).err)

    def test_a_file_too_large_to_put_names_its_limit(self):
        self.start_session("--set", 'limits.file_size="1M"')
        (self.work / "large").write_bytes(bytes(2 << 20))
        (self.work / "small").write_bytes(bytes(1 << 19))
        put = self.sbx_session("put", "work", "large")
        self.assertEqual(put.status, 125, put)
        self.assertIn("large: cannot write: File too large; limits.file_size bounds each file: sbx session start --set", put.err)
        self.assertEqual(self.sbx_session("put", "work", "small").status, 0)

    def test_a_file_for_which_there_is_no_room_names_the_limit(self):
        self.start_session("--disk", "1M")
        (self.work / "large").write_bytes(bytes(2 << 20))
        self.write("small", "x")
        for put in (self.sbx_session("put", "work", "large", "/tmp/large"), self.sbx_session("put", "work", "-", "/tmp/large", stdin=bytes(2 << 20))):
            self.assertEqual((put.status, "No space left on device" in put.err), (125, True), put)
            self.assertRegex(put.err, r'help: perhaps limits.disk = "1M" or limits.disk_files = \d+ was met: sbx session start NAME --disk 2M starts one with more')
            self.exec_ok("--", "rm", "-f", "/tmp/large")
        self.assertEqual(self.sbx_session("put", "work", "small", "/tmp/small").status, 0)

    def test_who_reaches_the_limit_of_the_output_is_told_what_allows_more(self):
        """In a call that has a smaller one than its session the call, and never more than the session has."""
        self.start_session("--output", "10K")
        for own, cure in (((), ", start the session with: --output 20K"), (("--output", "4K"), ": --output 8K"), (("--output", "8K"), ": --output 10K")):
            with self.subTest(own=own):
                got = self.sbx_session("exec", "work", *own, "--", "seq", "1", "40000")
                self.assertEqual(got.status, 153, got)
                self.assertTrue(got.err.endswith(f"sbx:   to allow more{cure}\n"), got)
        got = self.sbx_session("exec", "work", "--output", "4K", "--", "seq", "1", "40")
        self.assertEqual((got.status, got.err), (0, ""), got)

    def test_a_new_name_for_a_copy_is_answered_with_what_works(self):
        self.start_session()
        self.exec_ok("--", "sh", "-c", "printf piped >/tmp/x")
        got = self.sbx_session("get", "work", "/tmp/x", "new/name", "--out", self.tmp / "first")
        self.assertEqual((got.status, "--out DIR says where copies go" in got.err), (1, True), got)
        self.assertEqual(self.sbx_session("get", "work", "/tmp/x", "--out", "new").status, 0)
        self.assertEqual((self.work / "new/x").read_text(), "piped")

    def test_where_nothing_is_kept_the_option_that_keeps_is_named(self):
        self.start_session()
        for words in (("diff", "work"), ("keep", "work", "set"), ("apply", "work", "--yes"), ("stop", "--keep", "set", "work")):
            answer = self.sbx_session(*words)
            self.assertEqual(answer.status, 2, answer)
            self.assertIn("not copy-on-write", answer.err)
            self.assertIn("sbx session start --workspace .:overlay", answer.err)
        self.exec_ok("--", "true")

    def test_bash_keeps_its_state_under_strict_and_its_refusal_is_named(self):
        """It allows 128 descriptors and no new process."""
        self.start_session("-p", "strict")
        self.assertEqual([self.eval(code, "--lang", "bash").out for code in ("x=41", "echo $((x + 1))")], ["", "42\n"])
        refused = self.eval("echo $(echo $x)", "--lang", "bash")
        self.assertIn("denied: clone (a new process) by bash", refused.err)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to become two users")
    def test_a_policy_has_the_same_sum_for_every_user(self):
        sums = [json.loads(subprocess.run([*become, SBX, "run", "--json", "-p", name, "--", "true"], env=self.environment({"HOME": "/nonexistent"}), cwd="/", stdin=subprocess.DEVNULL,
                                          capture_output=True, check=True).stdout)["policy"]["sha256"]
                for name in ("default", "agent") for become in ([], ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])]
        self.assertEqual((sums[0], sums[2]), (sums[1], sums[3]))
        self.assertNotEqual(sums[0], sums[2])

    def test_carets_stand_below_what_failed(self):
        self.start_session()
        for code in ("1/0", "1/0\n", "x = 1\ny = x / 0"):
            lines = self.eval(code).err.splitlines()
            at = next((i for i, line in enumerate(lines) if set(line.strip()) <= set("~^") and line.strip()), None)
            if at is None:
                self.skipTest("this Python marks no part of a line")
            failed = lines[at - 1][lines[at].index("~"): lines[at].rindex("~") + 1]
            self.assertEqual(failed, "1/0" if "y" not in code else "x / 0", lines)

    def test_what_eval_is_given_is_what_it_runs(self):
        self.start_session()
        notebook = self.write("report.ipynb", '{"cells": []}')
        answer = self.sbx_session("eval", "work", notebook)
        self.assertEqual(answer.status, 125, answer)
        self.assertIn("sbx run --cells report.ipynb", answer.err.replace(str(self.work) + "/", ""))
        script = self.write("script", "#!/bin/bash\necho ${BASH_VERSION:+bash}\n")
        self.assertEqual(self.sbx_session("eval", "work", script).out, "bash\n")
        self.assertEqual(self.sbx_session("eval", "work", self.write("other", "#!/usr/bin/env python3\nprint(5)\n")).out, "5\n")
        self.assertEqual(self.sbx_session("eval", "work", self.write("plain", "print(6)\n")).out, "6\n")

    def test_how_much_was_copied_decides_the_status(self):
        self.start_session()
        self.write("a", "text")
        self.assertEqual(self.sbx_session("put", "work", "a", "copied").status, 0)
        out = ["--out", str(self.work / "out")]
        for words, status in ((["put", "work", "nosuch"], 125), (["put", "work", "a", "nosuch", "/tmp"], 1), (["get", "work", "nosuch", *out], 125),
                              (["get", "work", "copied", "nosuch", *out], 1), (["get", "work", "copied", *out], 0), (["ls", "work", "/nosuch"], 125), (["ls", "work"], 0)):
            answer = self.sbx_session(*words)
            self.assertEqual(answer.status, status, answer)

    def test_lists_count_contexts(self):
        self.start_session()
        self.eval("1")
        self.assertEqual((self.run_sbx("session", "show", "work", "--json").json["contexts"], self.run_sbx("session", "list", "--json").json["sessions"][0]["contexts"]), (1, 1))
        self.assertIn("0 running, 1 context\n", self.sbx_session("stats", "work").out)

    def test_a_kept_set_names_its_session(self):
        facts = self.start_session("--workspace", ".:overlay")
        self.exec_ok("touch", "made")
        self.assertEqual(self.sbx_session("keep", "work", "set").status, 0)
        self.assertIn(f"of the session {facts['id']}", self.run_sbx("changes", "show", "set").out)




if __name__ == "__main__":
    sessiontest.main()

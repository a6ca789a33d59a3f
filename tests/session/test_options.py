"""Every option of `sbx session`, and every error that sessions have: each with its code."""

import json
import os
import pathlib
import pty
import signal
import socket
import subprocess
import unittest

import schemas
import sessiontest
import sbxtest
from harness import HANG
from sbxtest import PROBE
from sessiontest import SessionTest


class Start(SessionTest):
    def test_policy_set_and_grants(self):
        """`session start` with each option that a call can see."""
        self.assertIn("start", self.sbx_session("start", "--help").out)
        readable = self.write("readable", "r\n", directory=self.tmp / "grants")
        live = self.tmp / "grants/live"
        live.mkdir()
        options = ("--policy", "python", "--set", "limits.processes=20", "--timeout", "7s", "--cpu-time", "6s", "--cpus", "1",
                 "--memory", "200M", "--processes", "30", "--disk", "20M", "--output", "64K", "--workspace", f"{self.work}:overlay",
                 "--read", readable, "--write", live, "--in", f"{readable}:copied", "--env", "COLOR=blue")
        self.start_session(*options)
        record = self.exec_json("--", "sh", "-c", f"cat {readable} copied; echo x >{live}/made; echo $COLOR; pwd").record
        self.assertEqual(record["stdout"]["text"], f"r\nr\nblue\n{self.work}\n", record)
        self.assertEqual((live / "made").read_text(), "x\n")
        limits = record["limits"]
        self.assertEqual((limits["wall_time_ms"], limits["cpu_time_ms"], limits["cpus"], limits["memory_bytes"], limits["processes"],
                          limits["disk_bytes"], limits["stdout_bytes"]), (7000, 6000, 1.0, 200 << 20, 30, 20 << 20, 64 << 10))
        self.assertEqual(record["policy"]["name"], "python")

    def test_what_get_tells_is_bounded(self):
        self.start_session()
        self.exec_ok("--", "sh", "-c", "mkdir many && cd many && for n in $(seq 25); do : >$n; done")
        got = self.sbx_session("get", "--out", self.tmp / "out", "work", "many")
        self.assertEqual(len([line for line in got.err.splitlines() if "(0 byte" in line]), 20 + 1, got)
        self.assertIn("and 5 more files (0 byte", got.err)
        self.assertEqual(len(list((self.tmp / "out/many").iterdir())), 25)
        self.assertIn("follows -c", self.sbx_session("eval", "work", "x*7").err)

    def test_options_of_every_start(self):
        refused = self.sbx_session("start", "--require", "nonsense", "other")
        self.assertIn("unknown value", refused.err)
        environment = self.write("names", "FROM_FILE=1\n", directory=self.tmp)
        facts = self.start_session("--env-file", environment, "--env-fd", "0", "--net", "none", name="second",
                                   stdin=b"FROM_FD=2")
        self.assertEqual(facts["name"], "second")
        self.assertEqual(self.exec_ok("--", "sh", "-c", "echo $FROM_FILE $FROM_FD", name="second").out, "1 2\n")

    def test_start_tells_as_much_as_is_wanted(self):
        quiet = self.sbx_session("start", "--quiet", "silent")
        self.assertEqual((quiet.out, quiet.err, quiet.status), ("", "", 0))
        wordy = self.sbx_session("start", "-v", "wordy")
        self.assertEqual(wordy.out, "wordy\n")
        self.assertEqual(self.sbx_session("start", "--verbose", "-p", "default", "longer").status, 0)
        for name in ("silent", "wordy", "longer"):
            pid = self.sbx_session("show", "--json", name).json["pid"]
            self.pids.append(pid)
            sbxtest.known_children().add(pid)

    def test_venv_and_allow_host(self):
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", self.tmp / "own"], check=True)
        self.start_session("--venv", self.tmp / "own", "--allow-host", "example.org:443", "-p", "default", "--isolation", "auto", name="start")
        self.assertIn("/own/", self.exec_ok("--", "python3", "-c", "import sys; print(sys.prefix + '/')", name="start").out)
        refused = self.exec_json("--", "python3", "-c", "import socket; socket.getaddrinfo('example.net', 443)", name="start").record
        self.assertEqual([(each["what"], each.get("during_call")) for each in refused["denials"]], [("name example.net", True)])


class Exec(SessionTest):
    def setUp(self):
        super().setUp()
        self.start_session("--workspace", f"{self.work}:overlay")

    def test_environment_and_input(self):
        variables = self.write("variables", "TWO=2\n", directory=self.tmp)
        answer = self.sbx_session("exec", "work", "--env", "ONE=1", "--env-file", variables, "--env-fd", "0", "--stdin", "null", "--",
                                  "sh", "-c", "echo $ONE $TWO $THREE; cat", stdin=b"THREE=3")
        self.assertEqual(answer.out, "1 2 3\n", answer)

    def worker(self):
        """The process that waits for the session's next call: the only one."""
        pid = self.sbx_session("show", "--json", "work").json["pid"]
        sessiontest.wait_until(lambda: len(sessiontest.children(pid)) == 2, "the holder and one worker")
        return sessiontest.children(pid)[1]

    def test_a_worker_brings_nothing_from_one_call_to_the_next(self):
        self.sbx_session("exec", "work", "--env", "ONE=1", "--env-fd", "0", "--stdin", "null", "--",
                         "sh", "-c", "export MORE=1; umask 077; ulimit -n 64; cd /tmp; exec 0<&-; exit 7", stdin=b"THREE=3")
        worker = self.worker()
        answer = self.sbx_session("exec", "work", "--", "sh", "-c", "echo ${ONE-no} ${THREE-no} ${MORE-no} $(umask) $(ulimit -n) $(pwd); cat", stdin=b"mine\n")
        self.assertEqual(answer.out, f"no no no 0022 1024 {self.work}\nmine\n", answer)
        spent = self.exec_json("--", "sleep", "60", options=("--timeout", "300ms")).record
        self.assertEqual(spent["outcome"]["reason"], "wall_time")
        refused = self.exec_json("--", "python3", "-c", "import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)").record
        self.assertEqual([each["what"] for each in refused["denials"]], ["ptrace"])
        record = self.exec_json("--", "true").record
        self.assertEqual((record["outcome"]["success"], record["denials"], record["limits_met"]), (True, [], []))
        self.assertEqual(self.worker(), worker)

    def client(self, *words):
        return sbxtest.start([sbxtest.SBX, "session", "exec", "work", *words], env=self.environment(), cwd=self.work,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def worker_of(self, call):
        """That of a running call, once it runs."""
        found = []
        sessiontest.wait_until(lambda: found.extend(each["pid"] for each in self.sbx_session("calls", "--json", "work").json["calls"]
                                                    if each["call"] == call and each["state"] == "running") or found, "the call runs")
        return found[0]

    def test_a_late_signal_reaches_no_later_call(self):
        """A client that was stopped passes a signal on when its call is over and its worker has another."""
        self.exec_ok("--", "mkfifo", "gate")
        late = self.client("--timeout", "300ms", "--", "sleep", "60")
        worker = self.worker_of(2)

        sessiontest.wait_until(lambda: sessiontest.blocks(late.pid, signal.SIGTERM), "the client passes signals on")
        late.send_signal(signal.SIGSTOP)
        sessiontest.wait_until(lambda: self.sbx_session("calls", "--json", "work").json["calls"][-1]["state"] == "ended", "its call has ended")
        later = self.client("--", "sh", "-c", "read line < gate; exit 5")
        self.assertEqual(self.worker_of(3), worker)
        late.send_signal(signal.SIGTERM)
        late.send_signal(signal.SIGCONT)
        _, told = late.communicate(timeout=HANG)
        self.assertEqual(late.returncode, 124, told)
        self.exec_ok("--", "sh", "-c", "echo > gate")
        _, told = later.communicate(timeout=HANG)
        self.assertEqual(later.returncode, 5, told)

    def test_reports_and_events(self):
        report = self.tmp / "report.json"
        read_end, write_end = os.pipe()
        events, events_write = os.pipe()
        self.sbx_session("exec", "work", "--report", report, "--report-fd", write_end, "--events-fd", events_write, "--",
                         "sh", "-c", "exit 4", pass_fds=[write_end, events_write])
        os.close(write_end)
        os.close(events_write)
        with os.fdopen(read_end) as pipe:
            self.assertEqual(json.loads(pipe.read()), json.loads(report.read_text()))
        self.assertEqual(json.loads(report.read_text())["outcome"]["exit_code"], 4)
        with os.fdopen(events) as pipe:
            self.assertEqual([json.loads(line)["event"] for line in pipe], ["started", "ended"])

    def test_how_much_is_told(self):
        failing = ("--", "python3", "-c", "import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0); raise SystemExit(3)")
        self.assertIn("ptrace", self.sbx_session("exec", "work", *failing).err)
        for quiet in ("-q", "--quiet"):
            self.assertEqual(self.sbx_session("exec", "work", quiet, *failing).err, "")
        for verbose in ("-v", "--verbose"):
            self.assertIn("ptrace", self.sbx_session("exec", "work", "--json", verbose, *failing).err)

    def test_explain_and_require(self):
        secret = self.write("secret", "x", directory=self.tmp / "elsewhere")
        record = self.exec_json("--", "cat", secret, options=("--explain",)).record
        self.assertIn(str(secret), [each["what"] for each in record["denials"]], record)
        if any(each["what"] == "limits.memory" for each in record["degraded"]):
            refused = self.sbx_session("exec", "work", "--require", "memory.cgroup", "--", "true")
            self.assertEqual(refused.status, 125, refused)
        else:
            self.exec_ok("--require", "memory.cgroup", "--", "true")

    def test_a_terminal_of_its_own(self):
        for option in ("-i", "--interactive"):
            status, text = self.on_terminal([sbxtest.SBX, "session", "exec", "work", option, "--", "sh", "-c", "test -t 0 && tty; exit 6"])
            self.assertEqual(status, 6, text)
            self.assertIn("/dev/pts/", text)

    def test_long_names(self):
        call = int(self.sbx_session("exec", "work", "--detach", "--cpu-time", "5s", "--", "echo", "hello").out)
        self.assertEqual(self.sbx_session("logs", "--follow", "work", call).out, "hello\n")
        self.run_sbx("session", "put", "work", self.write("taken", "t\n"))
        got = self.sbx_session("get", "--quiet", "--out", self.tmp / "out", "work", "taken")
        self.assertEqual((got.status, got.err), (0, ""), got)
        self.assertEqual((self.tmp / "out/taken").read_text(), "t\n")

    def test_figures_of_the_session(self):
        self.exec_ok("--", "sh", "-c", "head -c 3000000 /dev/zero >/tmp/f")
        stats = self.run_sbx("session", "stats", "--json", "work").json
        self.assertGreaterEqual(stats["disk_bytes"], 3000000)
        self.assertEqual(stats["processes_limit"], 128)
        self.assertIn("memory", self.sbx_session("stats", "work").out)
        self.assertIn("policy default", self.run_sbx("session", "show", "work").out)
        extended = self.sbx_session("extend", "--json", "work", "1h").json
        self.assertGreater(extended["expires"], extended["started"])

    def test_keep_in_json(self):
        self.exec_ok("--", "sh", "-c", "echo x >new")
        kept = self.run_sbx("session", "keep", "--json", "work", "set-one").json
        self.assertEqual(kept["kept"]["name"], "set-one")


class Answers(SessionTest):
    """Every command answers programs in JSON."""

    def answer(self, *words, status=0):
        answer = self.sbx_session(*words)
        self.assertEqual((answer.status, answer.json["schema"]), (status, "sbx.session/1"), answer)
        self.fits("sbx.session.1", answer.json)
        return answer.json

    @unittest.skipIf(schemas.jsonschema is None, "python3-jsonschema is not installed")
    def test_answers_have_what_their_schema_names_and_nothing_else(self):
        held = schemas.Held("sbx.session/1")
        odd, name = self.work / os.fsdecode(b"odd\xff"), os.fsdecode(b"f\xff")
        (odd / "live").mkdir(parents=True)
        (self.tmp / name).write_text("in")
        policy = self.write("p.toml", 'schema = 1\nextends = "agent"\n[filesystem]\nwrite = ["./live"]\n', directory=odd)
        facts = self.start_session("-p", policy, "--workspace", ".:overlay", cwd=odd)
        self.exec_ok("--", "sh", "-c", r"name=$(printf 'f\377'); printf '\377\n' > $name; ln -s $name link; mkfifo /tmp/$name.fifo; mkdir $name.d")
        self.assertEqual(self.sbx_session("eval", "work", "-c", "1").status, 0)
        begun = self.answer("exec", "work", "-d", "--json", "--", "sh", "-c", r"printf '\377'; printf '\377' >&2; sleep 100")
        answers = {"show": facts, "exec": begun}
        number = str(begun["call"])
        sessiontest.wait_until(lambda: self.answer("logs", "work", number, "--json")["stderr_bytes"] == 1, "it has written")
        for words in (["show"], ["stats"], ["extend", "5m"], ["calls"], ["context", "--cwd", f"{name}.d"], ["contexts"], ["close", "python-1"], ["logs", number], ["kill", number], ["interrupt"], ["restart"],
                      ["put", self.tmp / name], ["ls"], ["ls", f"{name}.d"], ["get", name, f"/tmp/{name}.fifo", "--out", self.tmp / "out"], ["changes"], ["diff"],
                      ["diff", "--patch"], ["keep", "set"], ["apply", "--yes"]):
            at = len(words) - 2 if "--out" in words else 2 if words[0] == "diff" else len(words)
            answers[" ".join(map(str, words))] = self.answer(words[0], "work", *words[1:at], "--json", *words[at:], status=int(words[0] == "get"))
        for words in (["stat", "link"], ["stat", name], ["mkdir", f"made-{name}"], ["mv", f"made-{name}", f"moved-{name}"], ["rm", "-r", f"moved-{name}"]):
            answers[" ".join(words)] = self.answer(words[0], "work", "--json", *words[1:])
        reader = str(self.detach("--", "cat", options=("--stdin", "open")))
        answers["send"] = self.answer("send", "work", "--json", reader, "text")
        answers["ls nowhere"] = self.answer("ls", "work", "--json", "nowhere", status=125)
        answers["list"] = self.answer("list", "--json")
        self.exec_ok("--", "sh", "-c", r"touch $(printf 'lost\377')")
        answers["stop"] = self.answer("stop", "--json", "work")
        for answer in answers.values():
            held.hold(answer)
        self.assertEqual(held.open_objects(), set())
        # Of a network: network/test_allow_list.py. Of changes that can't be applied or are too many: sandbox/test_changes.py,
        # test_refusals.py; reasons are sentences of sbx, of which few name a file.
        rare = {*(f".network.{name}" for name in ("rule", "connections", "bytes_in", "bytes_out")), *(f".network_failed.{name}" for name in ("what", "why", "count")),
                ".policy.name_b64", ".sessions.policy.name_b64", *(f".applied.{part}.{name}" for part in ("left", "conflicts", "hazards") for name in ("path", "path_b64", "why", "why_b64")), ".changes_left_out", ".left.why_b64",
                ".kept.lost", *(f".kept.lost.{name}" for name in ("path", "path_b64", "why", "why_b64"))}
        self.assertEqual(held.unseen(), rare)
        for words, answer in answers.items():
            with self.subTest(words=words), self.assertRaises(AssertionError):
                self.fits("sbx.session.1", {**answer, "more": 1})

    def test_calls_answer_in_json(self):
        self.start_session()
        call = self.sbx_session("exec", "work", "-d", "--", "sh", "-c", "printf 'a\\377'; echo e >&2; sleep 100").out.strip()
        sessiontest.wait_until(lambda: self.answer("logs", "work", call, "--json")["stderr_bytes"] == 2, "it has written")
        log = self.answer("logs", "--json", "work", call)
        self.assertEqual({key: log[key] for key in ("call", "ended", "stderr", "stdout_bytes", "stdout_b64")},
                         {"call": int(call), "ended": False, "stderr": "e\n", "stdout_bytes": 2, "stdout_b64": "Yf8="})
        both = self.sbx_session("logs", "--json", "-f", "work", call)
        self.assertEqual((both.status, both.json["schema"]), (2, "sbx.error/1"), both)
        self.assertIn("exclude each other", both.err)
        killed = self.answer("kill", "--json", "work", call, "KILL")
        self.assertEqual((killed["call"], killed["signal"]), (int(call), 9))
        self.assertEqual(self.sbx_session("wait", "work", call).status, 137)
        self.assertIs(self.answer("logs", "--json", "work", call)["ended"], True)

    def test_contexts_answer_in_json(self):
        self.start_session()
        self.sbx_session("eval", "work", "-c", "1")
        self.assertEqual(self.answer("interrupt", "--json", "work")["interrupted"], [])
        self.assertEqual(self.answer("restart", "--json", "work")["restarted"], ["python"])

    def test_files_answer_in_json(self):
        self.write("a.txt", "hello\n")
        os.mkfifo(self.work / "pipe")
        self.start_session()
        put = self.answer("put", "--json", "work", "a.txt", "pipe", "/tmp/", status=1)
        self.assertEqual((put["files"], put["bytes"], [each["path"] for each in put["left"]]), (1, 6, ["pipe"]))
        got = self.answer("get", "--json", "--out", self.tmp / "out", "work", "/tmp/a.txt")
        self.assertEqual((got["files"], got["left"], got["left_out"]), ([{"path": "a.txt", "type": "file", "bytes": 6, "replaced": False}], [], 0))
        self.assertEqual((self.tmp / "out/a.txt").read_text(), "hello\n")

    def test_workspace_and_stop_answer_in_json(self):
        self.write("made", "old\n")
        self.start_session("--workspace", ".:overlay")
        self.exec_ok("--", "sh", "-c", "echo new >made")
        diff = self.answer("diff", "--json", "work")
        self.assertEqual([each["path"] for each in diff["changes"]], ["made"])
        self.assertIn("+new", diff["text"])
        patch = self.answer("diff", "--json", "--patch", "work")
        self.assertIn("+++ b/made", patch["text"], patch)
        self.start_session(name="other")
        stopped = self.answer("stop", "--json", "--keep", "set", "work")
        self.assertEqual((stopped["stopped"], stopped["kept"]["name"]), (["work"], "set"))
        self.assertEqual(self.answer("stop", "--json", "--all")["stopped"], ["other"])


class Errors(SessionTest):
    def error(self, code, *words, status=None, **options):
        answer = self.sbx_session(*words, **options)
        self.assertIn(f"error[{code}]", answer.err, answer)
        self.assertNotEqual(answer.status, 0)
        if status is not None:
            self.assertEqual(answer.status, status, answer)
        return answer

    def test_names(self):
        self.error("bad-session-name", "start", "A B")
        self.error("no-such-session", "calls", "absent", status=2)
        self.start_session()
        self.error("session-exists", "start", "work", status=125)

    def test_calls(self):
        self.start_session("--set", "session.calls=1")
        self.error("no-such-call", "wait", "work", "9", status=125)
        self.exec_ok("--", "true")
        self.error("not-in-background", "logs", "work", "1", status=2)
        self.error("call-ended", "kill", "work", "1", status=2)
        self.detach("--", "sleep", "60")
        self.error("too-many-calls", "exec", "work", "--", "true", status=125)

    def test_the_command_that_an_answer_names_works(self):
        self.start_session()
        call = str(self.answer_of_exec()["call"])
        for words, named in ((("session", "work", "ls"), "session ls work"), (("session", "work", "exec", "true"), "session exec work true"),
                             (("shell", "work"), "session exec -i work bash"), (("logs", "work", call), f"session logs work {call}"),
                             (("kill", "work"), "session stop work")):
            refused = self.run_sbx(*words)
            self.assertEqual(refused.status, 2, refused)
            self.assertEqual(refused.err.splitlines()[1], f"  help: sbx {named}")
            self.assertEqual(self.run_sbx(*named.split()).status, 0, named)
        self.assertIn("help: sbx stop r_1", self.run_sbx("kill", "r_1").err)
        for command in ("logs", "kill", "shell"):
            self.assertNotIn("{}", self.run_sbx(command).err)

    def answer_of_exec(self):
        return self.sbx_session("exec", "work", "-d", "--json", "--", "true").json

    def test_programs_that_it_does_not_show(self):
        program = self.write("program", "#!/bin/sh\necho here\n", mode=0o755, directory=self.tmp / "elsewhere")
        self.start_session()
        self.error("not-in-session", "exec", "work", "--", program, status=127)
        self.start_session("--read", program, name="twin")
        self.assertEqual(self.exec_ok("--", program, name="twin").out, "here\n")

    def test_cpu_time_of_all_calls(self):
        self.start_session("--set", "session.cpu_time=\"400ms\"")
        spent = self.exec_json("--", "sh", "-c", "while :; do :; done")
        self.assertEqual(spent.verdict, ("over-budget", "cpu_time"), spent)
        self.assertIn("session.cpu_time", spent.record["outcome"]["detail"])
        self.assertIn("to allow   a larger session.cpu_time;", self.run_sbx("why", "-", stdin=json.dumps(spent.record).encode()).out)
        self.error("session-cpu-spent", "exec", "work", "--", "true", status=125)

    def test_lifetime(self):
        self.start_session("--set", "session.lifetime=\"1h\"")
        self.error("widens-session", "extend", "work", "2h")

    def test_umask_of_calls_contexts_and_files(self):
        """A call has its client's, an interpreter that of the session's start, and a file that is got that of its command."""
        self.start_session("-p", "python", preexec_fn=lambda: os.umask(0o077))
        for umask in (0o002, 0o027):
            def with_umask(umask=umask):
                os.umask(umask)
            self.assertEqual(self.exec_ok("--", "sh", "-c", "umask; echo x > f; chmod 666 f", preexec_fn=with_umask).out, f"{umask:04o}\n")
            asked = self.sbx_session("eval", "work", "--lang", "python", "-c", "import os\nmask = os.umask(0); os.umask(mask); print(oct(mask))",
                                     preexec_fn=with_umask)
            self.assertEqual((asked.status, asked.out), (0, "0o77\n"), asked)
            got = self.sbx_session("get", "work", "f", preexec_fn=with_umask)
            self.assertEqual((got.status, (self.work / "f").stat().st_mode & 0o777), (0, 0o666 & ~umask), got)
            (self.work / "f").unlink()

    def test_another_policy(self):
        first = self.run_sbx("run", "--session", "tool", "--memory", "100M", "--", "echo", "1")
        self.assertEqual(first.out, "1\n", first)
        facts = self.sbx_session("show", "--json", "tool").json
        self.pids.append(facts["pid"])
        sbxtest.known_children().add(facts["pid"])
        self.assertEqual(self.run_sbx("run", "--session", "tool", "--memory", "100M", "--timeout", "5s", "--", "echo", "2").out, "2\n")
        self.assertEqual(self.run_sbx("run", "--session", "tool", "--", "echo", "3").out, "3\n")
        other = self.run_sbx("run", "--session", "tool", "-p", "strict", "--", "echo", "4")
        self.assertEqual((other.status, other.out), (125, ""), other)
        self.assertIn("other-policy", other.err)

    def test_something_else_has_its_name(self):
        self.directory().mkdir(parents=True)
        (self.directory() / "work").write_text("no directory")
        self.error("no-session-directory", "start", "work", status=125)

    def test_killed_worker_is_told(self):
        self.start_session()
        client = sbxtest.start([sbxtest.SBX, "session", "exec", "work", "--", "sleep", "60"], env=self.environment(), cwd=self.work,
                               stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        worker = []
        sessiontest.wait_until(lambda: worker.extend(each["pid"] for each in self.sbx_session("calls", "--json", "work").json["calls"]) or worker,
                               "the call is there")
        os.kill(worker[0], signal.SIGKILL)
        _, err = client.communicate(timeout=HANG)
        self.assertEqual(client.returncode, 125)
        self.assertIn("call-lost", err.decode())
        self.exec_ok("--", "true")

    def test_what_waits_for_a_call_may_be_killed(self):
        """The worker that waits and its init in the sandbox: the next call gets others."""
        self.start_session()
        pid = self.sbx_session("show", "--json", "work").json["pid"]
        holder = sessiontest.children(pid)[0]
        for turn in range(3):
            self.exec_ok("--", "true")
            sessiontest.wait_until(lambda: len(sessiontest.children(pid)) == 2 and len(sessiontest.children(holder)) == 1, "a worker and its init wait")
            worker, init = sessiontest.children(pid)[1], sessiontest.children(holder)[0]
            os.kill(init if turn == 0 else worker, signal.SIGKILL)
            sessiontest.wait_until(lambda: init not in sessiontest.children(holder), "the init is gone")
            self.assertEqual(self.exec_ok("--", "echo", str(turn)).out, f"{turn}\n")
        self.stop_session()
        self.nothing_is_left()

    def test_failing_or_left_out_stage_of_a_call_is_named(self):
        for fault in ({"SBX_TEST_FAIL": "held:EIO"}, {"SBX_TEST_SKIP": "held"}, {"SBX_TEST_FAIL": "seccomp:EIO"}):
            with self.subTest(fault=fault):
                self.start_session("--workspace", f"{self.work}:overlay", program=sbxtest.WITH_FAULTS, env=fault)
                answer = self.sbx_session("exec", "work", "--", "touch", "ran", program=sbxtest.WITH_FAULTS)
                self.assertEqual(answer.status, 125, answer)
                self.assertIn("'%s'" % next(iter(fault.values())).partition(":")[0], answer.err)
                self.assertNotIn("ran", self.changed_names())
                self.stop_session()
        self.nothing_is_left()

    def test_a_call_whose_directory_is_left_out_or_fails_is_noticed(self):
        for fault, status in (({}, 0), ({"SBX_TEST_SKIP": "call_directory"}, 0), ({"SBX_TEST_FAIL": "call_directory:EIO"}, 125)):
            with self.subTest(fault=fault):
                self.start_session(program=sbxtest.WITH_FAULTS, env=fault)
                answer = self.sbx_session("exec", "work", "--cwd", "/tmp", "--", "pwd", program=sbxtest.WITH_FAULTS)
                self.assertEqual((answer.status, answer.out == "/tmp\n"), (status, not fault), answer)
                self.assertEqual("'/tmp'" in answer.err, status == 125, answer)
                self.stop_session()

    def privileges(self, fault=""):
        """Of two calls of a session, whose holder empties the bounding set; the second one's init and ruleset of Landlock were made ahead."""
        look = r"""
import json, os
facts = dict(line.split(":\t") for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
try:
    os.kill(os.getppid(), 0)
    reached = True
except PermissionError:
    reached = False
print(json.dumps([[int(facts[name], 16) != 0 for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")], facts["NoNewPrivs"], facts["Seccomp"], reached]))
"""
        self.start_session(program=sbxtest.WITH_FAULTS, env={"SBX_TEST_SKIP": fault} if fault else {})
        told = [json.loads(self.sbx_session("exec", "work", "--lang", "python", "-c", look, program=sbxtest.WITH_FAULTS).out) for _ in range(2)]
        self.stop_session()
        self.nothing_is_left()
        return told

    def test_what_was_made_ahead_of_a_call_is_as_tight(self):
        doctor = self.run_sbx("doctor").out
        scoped = "Landlock             ABI " in doctor and int(doctor.split("Landlock             ABI ")[1].split()[0]) >= 6
        self.assertEqual(self.privileges(), [[[False] * 5, "1", "2", not scoped]] * 2)

    def test_twin_each_part_of_what_was_made_ahead_counts(self):
        self.assertEqual(self.privileges("bounding_set")[1][0], [False, False, False, True, False])
        self.assertTrue(self.privileges("landlock")[1][3])

    def changed_names(self):
        return [each["path"] for each in self.sbx_session("changes", "--json", "work").json["changes"]]

    def test_no_stage_of_a_call_fails_unasked(self):
        self.start_session("--workspace", f"{self.work}:overlay", program=sbxtest.WITH_FAULTS)
        self.assertEqual(self.sbx_session("exec", "work", "--", "touch", "ran", program=sbxtest.WITH_FAULTS).status, 0)
        self.assertEqual(self.changed_names(), ["ran"])

    def test_killed_session_is_told(self):
        facts = self.start_session()
        call = self.detach("--", "sleep", "60")
        client = sbxtest.start([sbxtest.SBX, "session", "wait", "work", str(call)], env=self.environment(), cwd=self.work,
                               stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        sessiontest.wait_until(lambda: sessiontest.waits_for_answer(client), "the client waits")
        sessiontest.kill(facts["pid"])
        _, err = client.communicate(timeout=HANG)
        self.assertEqual(client.returncode, 125)
        self.assertIn("session-gone", err.decode())

    def send_body(self, client, body, in_file):
        if not in_file:
            client.send(b"\x02" + body)
            return
        file = os.memfd_create("body")
        os.write(file, body)
        os.lseek(file, 0, os.SEEK_SET)
        socket.send_fds(client, [b"\x02"], [file])
        os.close(file)

    def test_hostile_clients_are_answered_and_change_nothing(self):
        self.start_session()
        directory = os.open(self.directory() / "work", os.O_PATH)
        for body in (b"", b"\x00" * 1000, b"\xa1bopbxx", b"\xa1bopdcall", b"\xff" * 4095, b"\xff" * 4096, b"\xff" * 100000):
            for in_file in (True, False):
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
                    client.connect(f"/proc/self/fd/{directory}/socket")
                    client.settimeout(HANG)
                    self.send_body(client, body, in_file)
                    answer = client.recv(10000)
                    if body != b"\xa1bopdcall":
                        self.assertIn("bad-message", answer.decode(errors="replace"))
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as newer:
            newer.connect(f"/proc/self/fd/{directory}/socket")
            newer.settimeout(HANG)
            newer.send(b"\x03\xa1bopdinfo")  # as another version would begin a packet
            self.assertIn("bad-message", newer.recv(10000).decode(errors="replace"))
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
            silent.connect(f"/proc/self/fd/{directory}/socket")
            self.exec_ok("--", "true")
        os.close(directory)


if __name__ == "__main__":
    sessiontest.main()

"""Sessions: calls that share files, each with its own verdict; background calls, the workspace, and the end."""

import json
import os
import pathlib
import pty
import select
import shutil
import signal
import socket
import subprocess
import urllib.request

import sessiontest
import sbxtest
from harness import HANG
from sessiontest import SessionTest


class Sessions(SessionTest):
    def test_start_prints_the_name_and_stop_leaves_nothing(self):
        started = self.sbx_session("start", "tidy")
        self.assertEqual((started.status, started.out, started.err), (0, "tidy\n", ""), started)
        shown = self.sbx_session("show", "--json", "tidy").json
        self.pids.append(shown["pid"])
        sbxtest.known_children().add(shown["pid"])
        self.assertEqual(shown["name"], "tidy")
        self.stop_session("tidy")
        self.nothing_is_left()

    def test_a_name_is_made_where_none_is_given(self):
        facts = self.start_session(name=None)
        self.assertRegex(facts["name"], r"^s-[0-9a-f]{8}$")
        self.assertRegex(facts["id"], r"^s_[0-9a-f]{16}$")

    def test_a_second_start_says_how_to_reach_the_first(self):
        self.start_session()
        again = self.sbx_session("start", "work")
        self.assertEqual(again.status, 125, again)
        self.assertIn("exists already", again.err)
        self.assertIn("sbx session exec work", again.err)

    def test_names_have_a_form(self):
        for name in ("Work", "a/b", "a" * 64, "a_b", "0-" + "x" * 62, ""):
            answer = self.sbx_session("exec", name, "true")
            self.assertEqual(answer.status, 125, answer)
            self.assertIn("can't be the name of a session", answer.err)

    def test_an_unknown_session_is_an_error_with_the_similar_name(self):
        self.start_session()
        answer = self.sbx_session("exec", "wrok", "true")
        self.assertEqual(answer.status, 125, answer)
        self.assertIn('there is no session "wrok"', answer.err)
        self.assertIn('did you mean "work"?', answer.err)

    def test_a_mistake_in_the_policy_is_told_and_nothing_stays(self):
        policy = self.policy("[limits]\nmemroy = \"1G\"\n")
        answer = self.sbx_session("start", "-p", policy, "work")
        self.assertEqual(answer.status, 125, answer)
        self.assertIn("memroy", answer.err)
        self.assertIn("did you mean", answer.err)
        self.nothing_is_left()

    def test_calls_share_files_and_each_has_its_own_status(self):
        self.start_session("--workspace", f"{self.work}:overlay")
        self.exec_ok("--", "sh", "-c", "echo one >a; echo two >/tmp/b; echo three >~/c")
        answer = self.exec_ok("--", "sh", "-c", "cat a /tmp/b ~/c")
        self.assertEqual(answer.out, "one\ntwo\nthree\n")
        self.assertEqual(self.sbx_session("exec", "work", "--", "sh", "-c", "exit 7").status, 7)
        self.assertEqual(list(self.work.iterdir()), [], "the host's directory is as it was")

    def test_the_record_names_the_session_and_the_call(self):
        facts = self.start_session()
        first = self.exec_json("--", "true").record
        second = self.exec_json("--", "sh", "-c", "echo hello; exit 3").record
        self.assertEqual(first["session"], {"name": "work", "id": facts["id"], "call": 1})
        self.assertEqual(second["session"]["call"], 2)
        self.assertEqual(second["outcome"]["exit_code"], 3)
        self.assertEqual(second["stdout"]["text"], "hello\n")

    def test_stdin_stdout_and_code(self):
        self.start_session()
        self.assertEqual(self.exec_ok("--", "tr", "a-z", "A-Z", stdin=b"hello").out, "HELLO")
        self.assertEqual(self.exec_ok("--lang", "python", "-", stdin=b"print(6*7)").out, "42\n")
        self.assertEqual(self.exec_ok("--lang", "bash", "-c", "echo $((6*7)) $1", "x").out, "42 x\n")

    def test_calls_leave_a_loop_its_lines(self):
        self.start_session()
        for call in ("exec work true", "eval work -c 1", "exec -d work true"):
            loop = f"seq 3 | while read -r line; do '{sbxtest.SBX}' session {call} >&2 || exit; echo $line; done"
            done = subprocess.run(["sh", "-c", loop], env=self.environment(), cwd=self.work, capture_output=True, text=True)
            self.assertEqual(done.stdout.split(), ["1", "2", "3"], (call, done))

    def test_scripts_that_a_call_made_run_by_first_line_or_extension(self):
        self.start_session("--workspace", f"{self.work}:overlay")
        self.exec_ok("--", "sh", "-c", "printf 'import sys\\nprint(sys.argv)\\n' >s.py; printf '#!/bin/bash\\necho ${BASH_VERSION:+bash}\\n' >s.sh; chmod +x s.sh; cp /bin/echo ./say")
        self.assertEqual(self.exec_ok("s.py", "x").out, "['s.py', 'x']\n")
        self.assertEqual(self.exec_ok("s.sh").out, "bash\n")
        self.assertEqual(self.exec_ok("./say", "hi").out, "hi\n")
        self.assertEqual(self.sbx_session("exec", "work", "./absent").status, 127)
        self.assertEqual(self.sbx_session("exec", "work", "absent").status, 127)

    def test_wall_time_ends_one_call_and_no_other(self):
        self.start_session()
        other = self.detach("--", "sh", "-c", "read x </dev/zero; sleep 30")
        slow = self.exec_json("--", "sleep", "30", options=("--timeout", "300ms"))
        self.assertEqual(slow.verdict, ("over-budget", "wall_time"), slow)
        self.assertEqual(slow.status, 124, slow)
        self.assertEqual(self.states()[other], "running")
        self.exec_ok("--", "true")

    def states(self):
        return {call["call"]: call["state"] for call in self.sbx_session("calls", "--json", "work").json["calls"]}

    def test_cpu_time_ends_one_call(self):
        self.start_session()
        busy = self.exec_json("--", "sh", "-c", "while :; do :; done", options=("--cpu-time", "300ms"))
        self.assertEqual(busy.verdict, ("over-budget", "cpu_time"), busy)
        self.assertEqual(busy.status, 152, busy)

    def test_memory_of_the_session_ends_the_call_that_holds_most(self):
        self.start_session("--memory", "128M", "--disk", "8M")
        small = self.detach("--", "python3", "-c", "x = b'x' * 10_000_000; import time; time.sleep(60)")
        large = self.exec_json("--", "python3", "-c", "x = []\nwhile True: x.append(b'x' * 1_000_000)")
        self.assertEqual(large.verdict, ("over-budget", "memory"), large)
        self.assertEqual(large.status, 137, large)
        self.assertIn("session's memory limit", large.record["outcome"]["detail"])
        self.assertEqual(self.states()[small], "running")
        self.exec_ok("--", "true")

    def test_a_denied_call_is_named_in_its_record_only(self):
        self.start_session()
        denied = self.exec_json("--", "python3", "-c", "import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)").record
        self.assertEqual([each["what"] for each in denied["denials"]], ["ptrace"], denied)
        self.assertEqual(self.exec_json("--", "true").record["denials"], [])

    def test_a_call_may_only_narrow(self):
        self.start_session("--timeout", "5s")
        answer = self.sbx_session("exec", "work", "--timeout", "10m", "--", "true")
        self.assertEqual(answer.status, 125, answer)
        self.assertIn("limits.wall_time", answer.err)
        self.assertIn("fixed", answer.err)

    def test_too_many_calls_at_once(self):
        self.start_session("--set", "session.calls=2")
        for _ in range(2):
            self.detach("--", "sleep", "60")
        answer = self.sbx_session("exec", "work", "--", "true")
        self.assertEqual(answer.status, 125, answer)
        self.assertIn("session.calls", answer.err)

    def test_sixteen_clients_at_once(self):
        self.start_session("--workspace", f"{self.work}:overlay")
        clients = [sbxtest.start([sbxtest.SBX, "session", "exec", "work", "--", "sh", "-c", f"echo {i} >f{i}; exit {i}"],
                                 env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL) for i in range(16)]
        self.assertEqual([client.wait(timeout=HANG) for client in clients], list(range(16)))
        self.assertEqual(self.exec_ok("--", "sh", "-c", "cat f* | sort -n | tr '\\n' ' '").out,
                         " ".join(map(str, range(16))) + " ")


class Background(SessionTest):
    def test_logs_wait_and_status(self):
        self.start_session()
        call = self.detach("--", "sh", "-c", "echo out; echo err >&2; exit 5")
        waited = self.sbx_session("wait", "work", call, "--json")
        self.assertEqual(waited.status, 5, waited)
        self.assertEqual(waited.record["outcome"]["exit_code"], 5)
        self.assertEqual(waited.record["session"]["call"], call)
        logs = self.sbx_session("logs", "work", call)
        self.assertEqual((logs.out, logs.err), ("out\n", "err\n"), logs)

    def test_follow_ends_with_the_call(self):
        self.start_session()
        call = self.detach("--", "sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.05; done")
        self.assertEqual(self.sbx_session("logs", "-f", "work", call).out, "1\n2\n3\n")

    def test_long_output_is_kept_at_both_ends(self):
        self.start_session("--set", "session.log=\"64K\"")
        call = self.detach("--", "sh", "-c", "echo first; head -c 1000000 /dev/zero | tr '\\0' x; echo; echo last")
        self.assertEqual(self.sbx_session("wait", "work", call).status, 0)
        text = self.sbx_session("logs", "work", call).out
        self.assertTrue(text.startswith("first\n"))
        self.assertTrue(text.endswith("\nlast\n"))
        self.assertIn("bytes left out", text)
        self.assertLess(len(text), 70000)

    def test_kill_cancels_or_sends_a_signal(self):
        self.start_session()
        stubborn = self.detach("--", "sh", "-c", "trap 'exit 9' USR1; echo ready; while :; do sleep 0.01; done")
        sessiontest.wait_until(lambda: self.sbx_session("logs", "work", stubborn).out == "ready\n", "the call is ready")
        self.assertEqual(self.sbx_session("kill", "work", stubborn, "USR1").status, 0)
        self.assertEqual(self.sbx_session("wait", "work", stubborn).status, 9)
        sleeper = self.detach("--", "sleep", "60")
        self.assertEqual(self.sbx_session("kill", "work", sleeper).status, 0)
        ended = self.sbx_session("wait", "work", sleeper, "--json")
        self.assertEqual(ended.verdict, ("cancelled", None), ended)

    def test_what_still_runs_when_a_command_ends_is_named_once(self):
        self.start_session("-p", "agent")
        left = "sleep 600 & (setsid sleep 600 &); while [ $(cat /proc/[0-9]*/comm | grep -cx sleep) != 2 ]; do :; done; exit 3"
        answer = self.sbx_session("exec", "work", "--", "sh", "-c", left)
        self.assertEqual((answer.status, answer.err), (3, "sbx: 2 processes still ran when the command had ended, and were ended with the call: sleep and others; "
                                                          "to keep a server, start it as a call of its own: sbx session exec work -d -- COMMAND\n"))
        named = self.run_sbx("run", "--session", "work", "--", "python3", "-c", r"""
import os, time
ready, go = os.pipe()
if os.fork() == 0:
    open('/proc/self/comm', 'w').write('a\x1b[31mb')
    os.write(go, b'.')
    time.sleep(600)
os.read(ready, 1)""")
        self.assertIn(r"1 process still ran when the command had ended, and was ended with the call: a\x1b[31mb; ", named.err)
        record = self.exec_json("--", "sh", "-c", left).record
        self.assertEqual(record["left_running"], {"count": 2, "process": "sleep"})
        self.fits("sbx.run.1", record)
        self.assertIn("2 processes still ran when the command had ended: sleep and others", self.run_sbx("why", "-", stdin=json.dumps(record).encode()).out)
        # Nothing is named that had ended, that sbx ended, or that goes on.
        zombie = "import os, signal\nfor end in (0, 9):\n  pid = os.fork()\n  if pid == 0: os._exit(0) if end == 0 else signal.pause()\n" \
                 "  if end: os.kill(pid, end)\n  os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)"
        for options, command in (([], ["true"]), ([], ["python3", "-c", zombie]), (["--timeout", "1s"], ["sh", "-c", "sleep 600 & sleep 600"])):
            with self.subTest(command=command):
                answer = self.sbx_session("exec", "work", "--report", "report", *options, "--", *command)
                self.assertNotIn("still ran", answer.err)
                self.assertNotIn("left_running", json.loads((self.work / "report").read_text()))
        call = self.detach("sh", "-c", left)
        self.assertEqual(self.sbx_session("wait", "work", call, "--json").json["left_running"]["count"], 2)
        self.assertEqual(self.sbx_session("logs", "work", call).err.count("still ran"), 1)
        for language, begin, goes_on in (("python", "import subprocess; child = subprocess.Popen(['sleep', '600'])", "child.poll()"), ("bash", "sleep 600 &", "kill -0 $!")):
            begun = self.sbx_session("eval", "work", "--lang", language, "-c", begin)
            after = self.sbx_session("eval", "work", "--lang", language, "-c", goes_on)
            self.assertEqual((begun.err, after.status, after.out, after.err), ("", 0, "", ""))
        record = self.run_sbx("run", "--json", "--", "sh", "-c", left).record
        self.assertEqual((record["left_running"], record["outcome"]["exit_code"]), ({"count": 2, "process": "sleep"}, 3))

    def test_a_server_of_one_call_answers_another(self):
        self.start_session()
        self.detach("--", "python3", "-m", "http.server", "8123", "--bind", "127.0.0.1", "--directory", "/etc/ssl")
        ask = "import time, urllib.request\nwhile True:\n  try: print(urllib.request.urlopen('http://127.0.0.1:8123/').status); break\n  except OSError: time.sleep(0.02)\n"
        self.assertEqual(self.exec_ok("--lang", "python", "-c", ask).out, "200\n")

    def test_a_published_server_answers_the_host(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.start_session("--set", f"network.publish=[\"127.0.0.1:{port}:8123\"]")
        self.detach("--", "python3", "-m", "http.server", "8123", "--directory", "/etc/ssl")

        def answers():
            try:
                return urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).status == 200
            except OSError:
                return False
        sessiontest.wait_until(answers, "the published server answers")
        self.stop_session()
        self.nothing_is_left()


class Workspace(SessionTest):
    def setUp(self):
        super().setUp()
        self.write("kept.txt", "before\n")
        self.write("gone.txt", "x\n")
        self.start_session("--workspace", f"{self.work}:overlay")
        self.exec_ok("--", "sh", "-c", "echo after >kept.txt; rm gone.txt; echo new >new.txt")

    def test_changes_and_diff_while_it_lives(self):
        changes = {each["path"]: each["change"] for each in self.sbx_session("changes", "--json", "work").json["changes"]}
        self.assertEqual(changes, {"kept.txt": "modified", "gone.txt": "deleted", "new.txt": "created"})
        diff = self.sbx_session("diff", "work")
        self.assertEqual(diff.status, 0, diff)
        self.assertIn("-before", diff.out)
        self.assertIn("+after", diff.out)
        self.exec_ok("--", "true")

    def test_an_answer_comes_after_its_beginning(self):
        """Also where the session's process goes on only when its worker has answered."""
        sessiontest.held_up(self, self.sbx_session("show", "--json", "work").json["pid"], "pidfd_open", 500_000)
        self.assertEqual(len(self.sbx_session("changes", "--json", "work").json["changes"]), 3)
        self.assertIn("+after", self.sbx_session("diff", "--patch", "work").out)

    def test_apply_takes_what_matches_and_leaves_the_rest(self):
        applied = self.sbx_session("apply", "--yes", "work", "new.txt")
        self.assertEqual(applied.status, 0, applied)
        self.assertEqual((self.work / "new.txt").read_text(), "new\n")
        self.assertEqual((self.work / "kept.txt").read_text(), "before\n")
        self.assertTrue((self.work / "gone.txt").exists())

    def test_what_apply_wrote_can_be_applied_again(self):
        """Nobody else touched it."""
        steps = ("echo 1 >made; mkdir -p d/e; echo 1 >d/e/f; echo 1 >kept.txt; ln -s 1 link; chmod 700 mode", "echo 2 >made; echo 2 >d/e/f; echo 2 >kept.txt; ln -sfn 2 link; echo 2 >mode",
                 "echo 3 >made; echo 3 >d/e/f; echo 3 >d/g; rm kept.txt link; chmod 711 d", "rm -r d; echo 4 >made", "mkdir d; echo 5 >d/g; echo 5 >kept.txt")
        self.write("mode", "")
        self.stop_session()
        self.start_session("--workspace", f"{self.work}:overlay")
        for step in steps:
            self.exec_ok("--", "sh", "-euc", step)
            inside = self.exec_ok("--", "sh", "-c", "find . -printf '%p %m %y %l\\n' | sort; cat made d/e/f d/g kept.txt mode 2>&1; true").out
            applied = self.sbx_session("apply", "--yes", "work")
            self.assertEqual(applied.status, 0, (step, applied))
            outside = subprocess.run(["sh", "-c", "find . -printf '%p %m %y %l\\n' | sort; cat made d/e/f d/g kept.txt mode 2>&1"], cwd=self.work, capture_output=True, text=True, check=False).stdout
            self.assertEqual(inside, outside, step)
            self.assertEqual(self.sbx_session("changes", "--json", "work").json["changes"], [], step)
        self.assertEqual(self.sbx_session("apply", "--yes", "work").status, 0)
        notes = self.home / ".local/state/sbx/applied/changes"
        self.assertEqual(len(list(notes.iterdir())), 1)
        self.stop_session()
        self.assertEqual(list(notes.iterdir()), [])

    def test_what_was_applied_is_a_change_again_when_either_side_changes_it(self):
        self.stop_session()
        self.start_session("--workspace", f"{self.work}:overlay")
        self.exec_ok("--", "sh", "-euc", "for name in inside outside same; do echo 1 >$name; done; ln -s 1 link; rm gone.txt; rm kept.txt; mkdir kept.txt; echo 1 >kept.txt/f")
        self.assertEqual(self.sbx_session("apply", "--yes", "work").status, 0)
        self.assertEqual(self.sbx_session("changes", "--json", "work").json["changes"], [])
        self.write("outside", "2\n")
        self.exec_ok("--", "sh", "-euc", "echo 2 >inside; ln -sfn 2 link; echo 1 >gone.txt; echo 2 >kept.txt/f; echo 1 >same")
        changes = self.sbx_session("changes", "--json", "work").json["changes"]
        self.assertEqual([each["path"] for each in changes], ["gone.txt", "inside", "kept.txt/f", "link", "outside"], changes)
        applied = self.sbx_session("apply", "--yes", "--json", "work").json["applied"]
        self.assertEqual([each["path"] for each in applied["conflicts"]], ["outside"], applied)
        self.assertEqual([(self.work / name).read_text() for name in ("inside", "outside", "gone.txt", "kept.txt/f")], ["2\n", "2\n", "1\n", "2\n"])
        self.assertTrue(self.sbx_session("stop", "work").err.startswith("sbx: changes that were not applied ended with work: outside\n"))

    def test_what_the_user_changed_after_an_apply_is_a_conflict(self):
        self.stop_session()
        self.start_session("--workspace", f"{self.work}:overlay")
        names = ("written", "same-size", "replaced", "moded", "d/inner", "removed")
        self.exec_ok("--", "sh", "-euc", "mkdir d; for name in written same-size replaced moded d/inner removed; do echo 1 >$name; done")
        self.assertEqual(self.sbx_session("apply", "--yes", "work").status, 0)
        with open(self.work / "written", "a", encoding="ascii") as file:
            file.write("mine\n")
        facts = (self.work / "same-size").stat()
        self.write("same-size", "9\n")
        os.utime(self.work / "same-size", ns=(facts.st_atime_ns, facts.st_mtime_ns))
        self.write("mine", "1\n")
        os.rename(self.work / "mine", self.work / "replaced")
        os.chmod(self.work / "moded", 0o600)
        os.rename(self.work / "d", self.work / "was")
        shutil.copytree(self.work / "was", self.work / "d")
        (self.work / "removed").unlink()
        before = {name: (self.work / name).read_text() for name in names[:-1]}
        self.exec_ok("--", "sh", "-euc", "for name in written same-size replaced moded d/inner removed; do echo 2 >$name; done; echo 2 >fine")
        applied = self.sbx_session("apply", "--yes", "--json", "work")
        self.assertEqual(applied.status, 1, applied)
        applied = applied.json["applied"]
        self.assertEqual(sorted(each["path"] for each in applied["conflicts"]), sorted(names), applied)
        self.assertEqual({name: (self.work / name).read_text() for name in names[:-1]}, before)
        self.assertFalse((self.work / "removed").exists())
        self.assertEqual((self.work / "fine").read_text(), "2\n")

    def test_names_of_one_file_stay_so_between_calls(self):
        """`get` writes a file for each."""
        self.stop_session()
        self.write("a", "old\n")
        (self.work / "d").mkdir()
        os.link(self.work / "a", self.work / "d/b")
        self.start_session("--workspace", f"{self.work}:overlay")
        self.exec_ok("--", "sh", "-c", "echo new >a; ln a c")
        self.assertEqual(self.exec_ok("--", "stat", "-c", "%h", "d/b").out, "3\n")
        out = self.tmp / "out"
        out.mkdir()
        self.assertEqual(self.sbx_session("get", "--out", out, "work", "a", "c").status, 0)
        self.assertEqual([(out / name).stat().st_nlink for name in "ac"], [1, 1])
        self.assertEqual(self.sbx_session("apply", "--yes", "work").status, 0)
        self.assertEqual({((self.work / name).stat().st_ino, (self.work / name).read_text()) for name in ("a", "c", "d/b")},
                         {((self.work / "a").stat().st_ino, "new\n")})
        self.assertEqual((self.work / "a").stat().st_nlink, 3)

    def test_a_patch_goes_through_git_apply(self):
        patch = self.sbx_session("diff", "--patch", "work")
        subprocess.run(["git", "init", "-q", "."], cwd=self.work, check=True)
        subprocess.run(["git", "apply", "-"], input=patch.out.encode(), cwd=self.work, check=True)
        self.assertEqual((self.work / "kept.txt").read_text(), "after\n")
        self.assertFalse((self.work / "gone.txt").exists())

    def test_a_patch_has_no_protected_name(self):
        self.exec_ok("--", "sh", "-c", "mkdir -p .git/hooks; echo x >.git/hooks/pre-push; echo x >.gitmodules; echo free >free.txt")
        patch = self.sbx_session("diff", "--patch", "work")
        self.assertNotIn("pre-push", patch.out)
        self.assertIn("+free", patch.out, "the twin")
        self.assertRegex(patch.err, r"sbx: not in the patch: \.git/hooks/pre-push: a protected name")
        document = self.sbx_session("diff", "--json", "--patch", "work").json
        self.assertIn(".git/hooks/pre-push", [each["path"] for each in document["left"]], document)
        subprocess.run(["git", "init", "-q", "."], cwd=self.work, check=True)
        subprocess.run(["git", "apply", "-"], input=patch.out.encode(), cwd=self.work, check=True)
        self.assertEqual([(self.work / name).exists() for name in (".git/hooks/pre-push", "free.txt")], [False, True])

    def test_keep_and_stop_keep(self):
        self.assertEqual(self.sbx_session("keep", "work", "first").status, 0)
        self.assertEqual(self.sbx_session("stop", "--keep", "second", "work").status, 0)
        sets = [each["name"] for each in self.run_sbx("changes", "list", "--json").json["sets"]]
        self.assertEqual(sorted(sets), ["first", "second"])

    def test_changes_of_calls_that_do_not_stop_are_not_read(self):
        """They go on, and so does the session. The other tests here are the twins."""
        fault = {"SBX_TEST_CALLS_DO_NOT_STOP": "1"}
        self.start_session("--workspace", ".:overlay", name="held", program=sbxtest.binary_for(fault), env=fault)
        call = self.sbx_session("exec", "held", "-d", "--", "sh", "-c", "echo half >file; mkfifo go; cat go").out.strip()
        sessiontest.wait_until(lambda: self.sbx_session("ls", "held", "go").status == 0, "the call has written")
        for words in (("changes", "held"), ("diff", "held"), ("apply", "--yes", "held"), ("keep", "held", "set")):
            refused = self.sbx_session(*words)
            self.assertEqual(refused.status, 125, refused)
            self.assertIn("calls-not-stopped", refused.err)
        self.assertFalse((self.work / "file").exists())
        self.exec_ok("--", "sh", "-c", "echo on >go", name="held")
        self.assertEqual(self.sbx_session("wait", "held", call).status, 0)

    def test_an_init_that_is_made_while_calls_are_stopped_is_stopped_too(self):
        """When a call has ended, its worker asks for the init of the next one; here it ends because its client is killed."""
        gate = self.tmp / "gate"
        os.mkfifo(gate)
        fault = {"SBX_TEST_CALLS_STAY_STOPPED": str(gate)}
        facts = self.start_session("--workspace", ".:overlay", name="held", program=sbxtest.binary_for(fault), env=fault)
        holder = sessiontest.children(facts["pid"])[0]

        def start(*words):
            return sbxtest.start([sbxtest.SBX, "session", *words], env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL)

        def are_stopped():
            inits = sessiontest.children(holder)
            return inits and all(map(sessiontest.is_stopped, inits))
        client = start("exec", "held", "--", "sleep", "100")
        sessiontest.wait_until(lambda: any(sessiontest.name_of(pid) == "sleep" for pid in sessiontest.descendants(holder)), "the call runs")
        # Its worker knows it too: until then it waits for the init and does not hear its client.
        sessiontest.wait_until(lambda: self.sbx_session("calls", "--json", "held").json["calls"][0]["pid"], "its worker says so")
        reading = start("changes", "held")
        sessiontest.wait_until(are_stopped, "the calls are stopped")
        before = sessiontest.children(holder)
        client.kill()
        client.wait()
        sessiontest.wait_until(lambda: set(sessiontest.children(holder)) - set(before), "the next init is made")
        sessiontest.wait_until(are_stopped, "it is stopped")
        gate.open().close()
        self.assertEqual(reading.wait(HANG), 0)
        gate.unlink()  # the stop reads the changes too
        self.exec_ok("--", "true", name="held")

    def test_calls_go_on_after_their_changes_were_read(self):
        call = self.detach("--", "sh", "-c", "for i in $(seq 200); do echo $i >count; sleep 0.01; done; echo done")
        for _ in range(5):
            self.assertEqual(self.sbx_session("changes", "work").status, 0)
        self.assertEqual(self.sbx_session("wait", "work", call).status, 0)
        self.assertEqual(self.sbx_session("logs", "work", call).out, "done\n")


class Asked(SessionTest):
    """`apply` asks at a terminal: the calls go on, and nobody answers for a client or a session that has ended."""

    def setUp(self):
        super().setUp()
        self.write("file", "before\n")
        self.start_session("--workspace", ".:overlay")
        self.exec_ok("--", "sh", "-c", "echo after >file")

    def ask(self, name="work", until=b"[y/N]"):
        """A client that asks, and the other end of its terminal."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.work)
            os.execve(sbxtest.SBX, [sbxtest.SBX, "session", "apply", name], self.environment())
        sbxtest.known_children().add(pid)
        self.addCleanup(os.close, terminal)
        shown = b""
        while until not in shown:
            shown += os.read(terminal, 65536)
        return pid, terminal

    def rest_of(self, terminal):
        """What it still shows until no process has it open any more."""
        shown = b""
        while select.select([terminal], [], [], 20)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:  # EIO
                return shown.decode()
        return self.fail(f"a process still reads the terminal, which shows {shown!r}")

    def content(self):
        return (self.work / "file").read_text()

    def snapshots(self):
        directory = self.home / ".local/state/sbx/applying/changes"
        return list(directory.iterdir()) if directory.exists() else []

    def no_sets(self):
        self.assertEqual(self.run_sbx("changes", "list", "--json").json["sets"], [])

    def test_quietly_nothing_is_said_of_what_is_kept_and_applied(self):
        for words in (("session", "keep", "work", "made", "--quiet"), ("session", "apply", "work", "--yes", "--quiet"), ("changes", "apply", "made", "--yes", "--quiet")):
            ended = self.run_sbx(*words)
            self.assertEqual((ended.status, ended.out, ended.err), (0, "", ""), words)
        self.assertEqual(self.content(), "after\n")

    def test_the_session_works_while_apply_asks(self):
        client, terminal = self.ask()
        self.exec_ok("--", "sh", "-c", "echo later >file")
        self.assertEqual(self.sbx_session("eval", "work", "-c", "6 * 7").out, "42\n")
        self.assertIn("file", self.sbx_session("ls", "work").out)
        self.assertEqual(len(self.sbx_session("changes", "--json", "work").json["changes"]), 1)
        self.assertEqual(len(self.snapshots()), 1)
        self.no_sets()
        os.write(terminal, b"y\n")
        self.assertIn("applied", self.rest_of(terminal))
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(client, 0)[1]), 0)
        self.assertEqual(self.content(), "after\n", "what was shown, and not what came later")
        self.assertEqual(self.snapshots(), [])

    def test_a_no_applies_nothing_and_leaves_nothing(self):
        client, terminal = self.ask()
        os.write(terminal, b"n\n")
        self.assertIn("the answer was no", self.rest_of(terminal))
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(client, 0)[1]), 1)
        self.assertEqual((self.content(), self.snapshots()), ("before\n", []))

    def test_a_killed_client_applies_nothing(self):
        client, terminal = self.ask()
        os.kill(client, signal.SIGKILL)
        os.waitpid(client, 0)
        self.rest_of(terminal)
        self.exec_ok("--", "true")
        self.no_sets()
        self.assertEqual((self.content(), len(self.snapshots())), ("before\n", 1))
        self.assertEqual(self.sbx_session("apply", "--yes", "work", "file").status, 0)
        self.assertEqual((self.content(), self.snapshots()), ("after\n", []))

    def test_what_a_killed_client_left_goes_with_a_stop_or_a_start(self):
        for sweep in ("stop", "start"):
            self.start_session("--workspace", ".:overlay", name=sweep)
            self.exec_ok("--", "sh", "-c", "echo after >file", name=sweep)
            client, _ = self.ask(sweep)
            os.kill(client, signal.SIGKILL)
            os.waitpid(client, 0)
            self.assertEqual(len(self.snapshots()), 1)
            if sweep == "stop":
                self.stop_session(sweep)
            else:
                self.start_session(name="another")
            self.assertEqual(self.snapshots(), [])

    def test_a_snapshot_in_use_is_not_swept(self):
        client, terminal = self.ask()
        self.start_session(name="another")
        self.stop_session("another")
        os.write(terminal, b"y\n")
        self.rest_of(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(client, 0)[1]), 0)
        self.assertEqual((self.content(), self.snapshots()), ("after\n", []))

    def test_ctrl_c_and_sigterm_apply_nothing_and_leave_nothing(self):
        client, terminal = self.ask()
        os.write(terminal, b"\3")
        self.assertIn("interrupted", self.rest_of(terminal))
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(client, 0)[1]), 130)
        client, terminal = self.ask()
        os.kill(client, signal.SIGTERM)
        self.assertIn("interrupted", self.rest_of(terminal))
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(client, 0)[1]), 143)
        self.assertEqual((self.content(), self.snapshots()), ("before\n", []))

    def test_the_question_ends_with_the_session(self):
        for end in ("stop", "kill"):
            facts = self.start_session("--workspace", ".:overlay", name=end)
            self.exec_ok("--", "sh", "-c", "echo after >file", name=end)
            client, terminal = self.ask(end)
            if end == "stop":
                self.stop_session(end)
            else:
                sessiontest.kill(facts["pid"])
            self.assertIn("the session has ended", self.rest_of(terminal))
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(client, 0)[1]), 125)
            self.assertEqual((self.content(), self.snapshots()), ("before\n", []))

    def test_a_session_does_not_idle_out_under_a_question(self):
        facts = self.start_session("--workspace", ".:overlay", "--set", "session.idle=\"1s\"", name="idle")
        self.exec_ok("--", "sh", "-c", "echo after >file", name="idle")
        client, terminal = self.ask("idle")
        twin = self.start_session("--set", "session.idle=\"1s\"", name="twin")
        sessiontest.wait_until(lambda: not sessiontest.process_lives(twin["pid"]), "one without a question, which began later, has idled out")
        os.write(terminal, b"y\n")
        self.rest_of(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(client, 0)[1]), 0)
        self.assertEqual(self.content(), "after\n")
        sessiontest.wait_until(lambda: not sessiontest.process_lives(facts["pid"]), "it ends when nobody uses it")

    def test_an_answer_after_the_session_is_too_late(self):
        """Also where the client comes to read it only then."""
        facts = self.start_session("--workspace", ".:overlay", name="other")
        self.exec_ok("--", "sh", "-c", "echo after >file", name="other")
        client, terminal = self.ask("other")
        os.kill(client, signal.SIGSTOP)
        os.waitpid(client, os.WUNTRACED)
        others = sessiontest.descendants(facts["pid"])
        sessiontest.kill(facts["pid"])
        # A process of the session that was forked meanwhile may hold its end of the connection a little longer.
        sessiontest.wait_until(lambda: not any(map(sessiontest.process_lives, others)), "all of the session has ended")
        os.write(terminal, b"y\n")
        os.kill(client, signal.SIGCONT)
        self.assertIn("the session has ended", self.rest_of(terminal))
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(client, 0)[1]), 125)
        self.assertEqual(self.content(), "before\n")

    def reading(self):
        """A client, and the process that has stopped the calls of a session to make its snapshot."""
        gate = self.tmp / "gate"
        if not gate.exists():
            os.mkfifo(gate)
        fault = {"SBX_TEST_CALLS_STAY_STOPPED": str(gate)}
        facts = self.start_session("--workspace", ".:overlay", name="held", program=sbxtest.binary_for(fault), env=fault)
        self.exec_ok("--", "sh", "-c", "echo after >file", name="held")
        self.detach("--", "sleep", "60", name="held")
        holder = sessiontest.children(facts["pid"])[0]
        sessiontest.wait_until(lambda: any(sessiontest.name_of(pid) == "sleep" for pid in sessiontest.descendants(holder)), "the call runs")
        before = set(sessiontest.children(facts["pid"]))

        def are_stopped():
            inits = sessiontest.children(holder)
            return inits and all(map(sessiontest.is_stopped, inits))
        client = sbxtest.start([sbxtest.SBX, "session", "apply", "--yes", "held"], env=self.environment(), cwd=self.work,
                               stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(client.stderr.close)
        sessiontest.wait_until(are_stopped, "the calls are stopped")
        reader, = set(sessiontest.children(facts["pid"])) - before
        return facts["pid"], reader, client

    def test_a_killed_reader_leaves_nothing(self):
        _, reader, client = self.reading()
        os.kill(reader, signal.SIGKILL)
        self.assertEqual(client.wait(HANG), 125)
        self.assertIn(b"call-lost", client.stderr.read())
        self.exec_ok("--", "true", name="held")
        self.no_sets()
        (self.tmp / "gate").unlink()  # the stop reads the changes too
        self.stop_session("held")
        self.assertEqual((self.content(), self.snapshots()), ("before\n", []))

    def test_a_reader_ends_with_its_session(self):
        session, reader, client = self.reading()
        sessiontest.kill(session)
        sessiontest.wait_until(lambda: not sessiontest.process_lives(reader), "the reader is gone")
        self.assertEqual(client.wait(HANG), 125)
        self.assertEqual(self.content(), "before\n")


class Files(SessionTest):
    def test_put_get_and_ls(self):
        self.write("a b.txt", "hello\n")
        self.write("tree/deep/x", "x" * 100000)
        self.start_session()
        self.assertEqual(self.sbx_session("put", "work", "a b.txt").status, 0)
        self.assertEqual(self.sbx_session("put", "work", "tree", "/tmp/").status, 0)
        self.assertEqual(self.exec_ok("--", "cat", "a b.txt").out, "hello\n")
        self.assertEqual(self.exec_ok("--", "sh", "-c", "wc -c </tmp/tree/deep/x").out.strip(), "100000")
        self.exec_ok("--", "sh", "-c", "mkdir -p r/sub; echo result >r/out; ln -s out r/link; mkfifo r/fifo")
        got = self.sbx_session("get", "--out", self.tmp / "out", "work", "r")
        self.assertEqual(got.status, 1, got)  # the FIFO was left out
        self.assertIn("fifo", got.err)
        self.assertEqual((self.tmp / "out/r/out").read_text(), "result\n")
        listed = self.sbx_session("ls", "--json", "work", "r").json["entries"]
        self.assertEqual({each["name"]: each["type"] for each in listed}, {"out": "file", "link": "link", "fifo": "fifo", "sub": "directory"})
        # What could not be put is named by its place there.
        for words, path in ((("a b.txt", "/etc/x"), "/etc/x"), (("a b.txt", "/etc/"), "/etc/a b.txt"), (("tree", "/tmp/tree/deep/x"), "/tmp/tree/deep/x/deep")):
            put = self.sbx_session("put", "--json", "work", *words)
            self.assertEqual(put.status, 125, put)
            self.assertIn(path, [each["path"] for each in put.json["left"]])

    def test_what_is_put_or_got_is_named_and_what_it_replaced(self):
        self.write("a", "new\n")
        for number in range(30):
            self.write(f"tree/{number}", "x\n")
        self.start_session("--workspace", f"{self.work}:overlay")
        self.assertEqual(self.sbx_session("put", "work", "a", "/tmp/").err, "sbx: /tmp/a (4 bytes)\n")
        self.assertEqual(self.sbx_session("put", "work", "a", "/tmp/a").err, "sbx: /tmp/a (4 bytes, replaced another)\n")
        self.assertEqual(self.sbx_session("put", "-q", "work", "a", "/tmp/a").err, "")
        self.exec_ok("--", "sh", "-c", "rm -r tree; mkdir tree; echo mine >tree/29; ln -s /nowhere tree/28")
        several = self.sbx_session("put", "work", "tree").err.splitlines()
        self.assertEqual(several[:2], ["sbx: tree/28 (2 bytes, replaced another)", "sbx: tree/29 (2 bytes, replaced another)"])
        self.assertEqual((len(several), several[-1]), (21, "sbx: and 10 more files (20 bytes); --json lists them"))
        self.assertTrue(self.sbx_session("put", "work", "tree").err.endswith("(20 bytes, 10 of them replaced another); --json lists them\n"))
        written = self.sbx_session("put", "--json", "work", "tree").json["written"]
        self.assertEqual({(each["type"], each["replaced"]) for each in written}, {("file", True)})
        for end in ("", ", replaced another"):
            self.assertEqual(self.sbx_session("get", "--out", self.tmp / "out", "work", "a").err, f"sbx: a (4 bytes{end})\n")

    def test_stop_names_the_changes_that_end_with_the_session(self):
        overlay = ("--workspace", f"{self.work}:overlay")
        self.write("old", "old\n")
        change = ("--", "sh", "-c", "echo >>old; touch .dot b c d; mkdir __pycache__; touch __pycache__/x")
        self.start_session(*overlay)
        self.exec_ok(*change)
        self.assertEqual(self.sbx_session("stop", "work").err,
                         "sbx: changes that were not applied ended with work: b, c, d and 2 more\n"
                         "  help: before the end, sbx session apply work applies them; sbx session stop --keep SET work keeps them "
                         "for sbx changes\n")
        self.start_session(*overlay)
        self.exec_ok(*change)
        stopped = self.sbx_session("stop", "--all", "--json")
        self.assertEqual((stopped.err, [each["session"] for each in stopped.json["lost"]]), ("", ["work"]))
        self.assertIn("old", [each["path"] for each in stopped.json["lost"][0]["changes"]])
        for commands in ((), (("apply", "--yes", "work"),)):
            self.start_session(*overlay)
            if commands:
                self.exec_ok(*change)
            for command in commands:
                self.assertEqual(self.sbx_session(*command).status, 0, command)
            self.assertEqual(self.sbx_session("stop", "work").err, "")
        self.start_session(*overlay)
        self.exec_ok("--", "sh", "-c", "echo kept >old")
        self.assertNotIn("ended with", self.sbx_session("stop", "--keep", "set", "work").err)
        self.start_session()
        self.exec_ok("--", "touch", "file")
        self.assertEqual(self.sbx_session("stop", "work").err, "")

    def test_what_is_far_too_much_is_refused_with_a_cure(self):
        self.start_session("--set", "filesystem.outputs.max_bytes=\"1M\"")
        for path in ("/", "//", "/tmp/.."):
            got = self.sbx_session("get", "work", path)
            self.assertEqual(got.status, 2, got)
            self.assertIn("is the whole sandbox", got.err)
        self.assertEqual(os.listdir(self.work), [])
        self.exec_ok("--", "sh", "-c", "mkdir d; for i in $(seq 80); do head -c 1000000 /dev/zero >d/$i; done")
        got = self.sbx_session("get", "work", "d")
        self.assertEqual(got.status, 125, got)
        self.assertIn("error[outputs-exceeded]", got.err)
        self.assertIn("filesystem.outputs.max_bytes", got.err)


class Ends(SessionTest):
    def test_ctrl_c_cancels_the_call_and_not_the_session(self):
        self.start_session()
        client = sbxtest.start([sbxtest.SBX, "session", "exec", "work", "--json", "--", "sh", "-c", "echo ready >&2; sleep 60"],
                               env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        sessiontest.wait_until(lambda: any(each["state"] == "running" for each in self.calls()), "the call runs")
        sessiontest.wait_until(lambda: self.sleeps(), "its command runs")
        client.send_signal(signal.SIGINT)
        out, _ = client.communicate(timeout=HANG)
        self.assertEqual(client.returncode, 130)
        self.assertEqual(json.loads(out)["outcome"]["status"], "cancelled")
        self.exec_ok("--", "true")

    def client_of_stopped_session(self):
        """Has asked for a call, and hears nothing."""
        self.start_session()
        os.kill(self.pids[0], signal.SIGSTOP)
        self.addCleanup(os.kill, self.pids[0], signal.SIGCONT)
        client = sbxtest.start([sbxtest.SBX, "session", "exec", "work", "--", "sleep", "60"], env=self.environment(), cwd=self.work,
                               stdin=subprocess.DEVNULL)
        sessiontest.wait_until(lambda: sessiontest.blocks(client.pid, signal.SIGINT), "the client keeps signals")
        client.send_signal(signal.SIGINT)
        return client

    def test_ctrl_c_before_the_call_runs_cancels_it(self):
        client = self.client_of_stopped_session()
        os.kill(self.pids[0], signal.SIGCONT)
        self.assertEqual(client.wait(HANG), 130)
        self.assertEqual([each["exit_status"] for each in self.calls()], [130])

    def test_ctrl_c_ends_the_client_of_a_session_that_hangs(self):
        client = self.client_of_stopped_session()
        self.assertEqual(client.wait(HANG), -signal.SIGINT)

    def under_a_parent(self, *words):
        """A client and the process that started it."""
        parent, pid = sbxtest.under_a_parent([sbxtest.SBX, "session", *words], env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL)
        self.addCleanup(parent.stdout.close)
        return parent, pid

    def exit_of_orphan(self, parent, pid):
        parent.kill()
        parent.wait()
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])  # this process adopts orphans

    def test_a_call_dies_with_its_parent_where_that_was_asked_for(self):
        self.start_session()
        report = self.tmp / "report.json"
        parent, client = self.under_a_parent("exec", "work", "--die-with-parent", "--report", report, "--", "sleep", "60")
        sessiontest.wait_until(self.sleeps, "its command runs")
        self.assertEqual(self.exit_of_orphan(parent, client), 129)
        self.assertEqual(json.loads(report.read_text())["outcome"]["status"], "cancelled")
        both = self.sbx_session("exec", "work", "-d", "--die-with-parent", "--", "true")
        self.assertEqual(both.status, 125)
        self.assertIn("exclude each other", both.err)

    def test_a_session_dies_with_its_parent_where_that_was_asked_for(self):
        """With everything in it; its twin outlives the process that started it."""
        for options, lives in ((("--die-with-parent",), False), ((), True)):
            command = [sbxtest.SBX, "session", "start", "--json", *options]
            parent = sbxtest.start(["sh", "-c", '"$@" && read line', "sh", *command], env=self.environment(), cwd=self.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.addCleanup(parent.stdin.close)
            started = json.loads(parent.stdout.readline())
            parent.stdout.close()
            name, process = started["name"], started["pid"]
            self.assertEqual(self.sbx_session("exec", name, "-d", "--", "sleep", "60").status, 0)
            parent.kill()
            parent.wait()
            if lives:
                self.assertEqual(self.sbx_session("exec", name, "--", "true").status, 0)
                self.assertEqual(self.sbx_session("stop", name).status, 0)
            sessiontest.wait_until(lambda: os.waitpid(process, os.WNOHANG)[0] == process, "its process has ended")  # noqa: B023; this process adopts orphans
            self.assertEqual(self.sbx_session("list", "--json").json["sessions"], [])

    def test_a_parent_that_can_not_be_watched_is_refused(self):
        """As in a container whose first process is sbx: nothing would end the session."""
        answer = subprocess.run(["unshare", "--user", "--map-root-user", "--pid", "--fork", sbxtest.SBX, "session", "start", "--die-with-parent"], env=self.environment(), cwd=self.work,
                                capture_output=True, text=True, check=False)
        self.assertEqual((answer.returncode, answer.stdout), (125, ""), answer)
        self.assertIn("no-parent", answer.stderr)
        self.assertIn("the process that started sbx can't be watched", answer.stderr)

    def test_a_call_outlives_its_parent_otherwise(self):
        self.start_session()
        self.exec_ok("--", "mkfifo", "gate")
        parent, client = self.under_a_parent("exec", "work", "--", "sh", "-c", "echo >gate; read line <gate; exit 7")
        self.exec_ok("--", "sh", "-c", "read line <gate")
        parent.kill()
        parent.wait()
        self.exec_ok("--", "sh", "-c", "echo >gate")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(client, 0)[1]), 7)

    def test_a_cell_dies_with_its_parent_where_that_was_asked_for(self):
        self.start_session()
        self.exec_ok("--", "mkfifo", "gate")
        self.assertEqual(self.sbx_session("eval", "work", "-c", "kept = 42").status, 0)
        parent, client = self.under_a_parent("eval", "work", "--die-with-parent", "-c", "open('gate', 'w').close(); import time; time.sleep(60)")
        self.exec_ok("--", "cat", "gate")
        self.assertEqual(self.exit_of_orphan(parent, client), 129)
        self.assertEqual(self.sbx_session("eval", "work", "-c", "kept").out, "42\n")
        refused = self.sbx_session("eval", "work", "-i", "--die-with-parent")
        self.assertIn("exclude each other", refused.err)

    def calls(self):
        return self.sbx_session("calls", "--json", "work").json["calls"]

    def sleeps(self):
        return any(sessiontest.name_of(pid) == "sleep" for pid in sessiontest.descendants(self.pids[0]))

    def test_killed_client_ends_its_call(self):
        self.start_session()
        client = sbxtest.start([sbxtest.SBX, "session", "exec", "work", "--", "sh", "-c", "trap '' TERM HUP; sleep 60"],
                               env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL)
        sessiontest.wait_until(self.sleeps, "its command runs")
        client.kill()
        client.wait()
        sessiontest.wait_until(lambda: not self.sleeps(), "the command is gone")
        self.exec_ok("--", "true")

    def test_killed_session_leaves_no_process_and_the_next_command_sweeps(self):
        facts = self.start_session()
        self.detach("--", "sh", "-c", "for i in 1 2 3 4; do sleep 60 & done; wait")
        sessiontest.wait_until(self.sleeps, "its command runs")
        below = sessiontest.descendants(facts["pid"])
        sessiontest.kill(facts["pid"])
        sessiontest.wait_until(lambda: not any(map(sessiontest.process_lives, below)), "everything of it is gone")
        self.assertEqual(self.sbx_session("list", "--json").json["sessions"], [])
        self.assertEqual(list(self.directory().iterdir()), [])
        self.start_session()
        self.exec_ok("--", "true")

    def test_idle_and_lifetime_end_it(self):
        idle = self.start_session("--set", "session.idle=\"300ms\"", name="idle")
        life = self.start_session("--set", "session.lifetime=\"5s\"", name="life")
        self.detach("--", "sleep", "60", name="life")
        for facts in (idle, life):
            sessiontest.wait_until(lambda: not sessiontest.process_lives(facts["pid"]), facts["name"])
        self.nothing_is_left()

    def ended(self, *options, end=lambda facts: os.kill(facts["pid"], signal.SIGTERM), script="echo more >>notes; touch new"):
        """A session that has written something and ended. No command has stopped it."""
        facts = self.start_session(*options)
        self.exec_ok("--", "sh", "-c", script)
        end(facts)
        sessiontest.wait_until(lambda: not sessiontest.process_lives(facts["pid"]), "it ends")

    def test_changes_of_a_session_that_expires_are_kept_and_the_next_command_says_where(self):
        """Twin: one that a command stops says there what it loses."""
        self.write("notes", "old\n")
        overlay = ("--workspace", ".:overlay")
        self.ended(*overlay, end=lambda facts: self.sbx_session("extend", "work", "1s"))
        asked = self.sbx_session("exec", "work", "true")
        self.assertRegex(asked.err, r'error\[no-such-session\]: the session "work" ended at [-0-9]+ [0-9:]+, at the end of its session.lifetime\n'
                                    r"  help: its 2 changes are kept: sbx changes diff work, sbx changes apply work\n  help: sbx session start work, with the options that it had, starts a new one\n")
        self.assertEqual(self.run_sbx("changes", "apply", "--yes", "work").status, 0)
        self.assertEqual(((self.work / "notes").read_text(), (self.work / "new").exists()), ("old\nmore\n", True))
        self.ended(*overlay, "--set", 'session.idle="5s"', script="touch other", end=lambda facts: None)
        joined = self.run_sbx("run", "--session", "work", "-p", "python", "--", "true")
        self.assertRegex(joined.err, r'^sbx: the session "work" ended at .*, after 5s without use \(session.idle\): its change is kept: sbx changes diff work-2, sbx changes apply work-2\n')
        self.assertEqual(self.run_sbx("run", "--session", "work", "-p", "python", "--", "true").err, "")
        self.exec_ok("--", "touch", "again")
        self.assertIn("changes that were not applied ended with work: again", self.sbx_session("stop", "work").err)
        self.assertIn('there is no session "work"', self.sbx_session("exec", "work", "true").err)
        self.nothing_is_left()

    def test_files_of_an_expired_session_that_can_not_be_kept_are_named(self):
        """In an empty workspace, and where there is no place for them: that one is told at the start too."""
        self.ended(script="touch a .hidden; mkdir d; touch d/b d/c")
        self.assertRegex(self.sbx_session("show", "work").err, r', by a signal\n  help: files are gone with it: a, d/b, d/c; a session with --workspace .:overlay keeps changes\n')
        shutil.rmtree(self.home / ".local/state/sbx")
        self.write(".local/state/sbx", "a file", directory=self.home)
        (self.tmp / "run").mkdir(0o700)
        runtime = {"XDG_RUNTIME_DIR": str(self.tmp / "run")}
        started = self.sbx_session("start", "--workspace", ".:overlay", "lost", env=runtime)
        self.assertIn("sbx: changes that are not applied before its end will be lost: cannot use", started.err)
        self.assertEqual(self.sbx_session("exec", "lost", "touch", "a", env=runtime).status, 0)
        pid = self.sbx_session("show", "--json", "lost", env=runtime).json["pid"]
        os.kill(pid, signal.SIGTERM)
        sessiontest.wait_until(lambda: not sessiontest.process_lives(pid), "it ends")
        self.assertIn("a file is gone with it: a; its changes could not be kept: cannot use", self.sbx_session("show", "lost", env=runtime).err)

    def test_what_a_session_left_is_not_told_when_it_is_no_longer_true(self):
        """Its set was dropped; or one of its name has begun elsewhere. Twin: it is told before."""
        self.ended("--workspace", ".:overlay")
        self.assertIn("its 2 changes are kept", self.sbx_session("show", "work").err)
        self.assertEqual(self.run_sbx("changes", "drop", "work").status, 0)
        self.assertRegex(self.sbx_session("show", "work").err, r'the session "work" ended at .*, by a signal\n  help: sbx session start work, with')
        (self.tmp / "run").mkdir(0o700)
        runtime = {"XDG_RUNTIME_DIR": str(self.tmp / "run")}
        self.assertEqual(self.sbx_session("start", "elsewhere", env=runtime).status, 0)
        self.assertEqual(self.sbx_session("exec", "elsewhere", "touch", "a", env=runtime).status, 0)
        pid = self.sbx_session("show", "--json", "elsewhere", env=runtime).json["pid"]
        os.kill(pid, signal.SIGTERM)
        sessiontest.wait_until(lambda: not sessiontest.process_lives(pid), "it ends")
        self.assertIn("a file is gone with it: a", self.sbx_session("show", "elsewhere").err)
        self.start_session(name="elsewhere")
        self.sbx_session("stop", "elsewhere")
        self.assertIn('there is no session "elsewhere"', self.sbx_session("show", "elsewhere").err)

    def test_the_end_of_a_session_without_files_is_told(self):
        """Its variables are gone. Twin: of one that a command stops it is not."""
        self.ended(script="true", end=lambda facts: self.sbx_session("extend", "work", "1s"))
        self.assertRegex(self.sbx_session("exec", "work", "true").err, r'the session "work" ended at .*, at the end of its session.lifetime\n  help: sbx session start work, with')
        started = self.run_sbx("run", "--session", "work", "--", "true")
        self.assertRegex(started.err, r'^sbx: the session "work" ended at .*, at the end of its session.lifetime\n$')
        self.sbx_session("stop", "work")
        self.assertIn('there is no session "work"', self.sbx_session("exec", "work", "true").err)

    def test_json_of_a_start_tells_the_end_before_it_among_its_notes(self):
        """Once: twin, the next start has none."""
        self.ended(script="true", end=lambda facts: self.sbx_session("extend", "work", "1s"))
        self.assertRegex("\n".join(self.start_session()["notes"]), r'the session "work" ended at .*, at the end of its session.lifetime$')
        self.sbx_session("stop", "work")
        self.assertNotIn("ended at", "\n".join(self.start_session()["notes"]))

    def test_a_record_of_a_call_that_starts_a_session_leaves_its_words_on_stderr(self):
        self.ended(script="true", end=lambda facts: self.sbx_session("extend", "work", "1s"))
        started = self.run_sbx("run", "--session", "work", "--json", "--", "true")
        self.assertRegex(started.err, r'^sbx: the session "work" ended at .*, at the end of its session.lifetime\n$')
        self.assertEqual(started.record["outcome"]["exit_code"], 0)

    def test_changes_that_no_set_can_hold_are_told(self):
        """Their list is not complete: a directory is too deep."""
        self.ended("--workspace", ".:overlay", script="python3 -c '\nimport os\nfor i in range(20): os.mkdir(\"d\" * 250); os.chdir(\"d\" * 250)\n'")
        self.assertRegex(self.sbx_session("show", "work").err, r'the session "work" ended at .*, by a signal\n  help: .*its changes could not be kept: ')

    def test_an_idle_session_hardly_wakes(self):
        """Without a call nothing is looked at. Looks would come 20 times a second."""
        def wakes_of(*call):
            facts = self.start_session("--set", "session.idle=\"3s\"", "--set", "session.lifetime=\"3s\"")
            if call:
                self.detach(*call)
            return os.wait4(facts["pid"], 0)[2].ru_nvcsw

        self.assertLess(wakes_of(), 30)
        self.assertGreater(wakes_of("--", "sleep", "60"), 40)

    def test_extend_prolongs_it_by_no_more_than_the_policy_says(self):
        self.start_session("--set", "session.lifetime=\"1h\"")
        self.assertEqual(self.sbx_session("extend", "work", "30m").status, 0)
        refused = self.sbx_session("extend", "work", "2h")
        self.assertNotEqual(refused.status, 0)
        self.assertIn("session.lifetime", refused.err)

    def test_sigterm_stops_it(self):
        facts = self.start_session()
        self.detach("--", "sleep", "60")
        os.kill(facts["pid"], signal.SIGTERM)
        sessiontest.wait_until(lambda: not sessiontest.process_lives(facts["pid"]), "it ends")
        self.nothing_is_left()


class OneCommand(SessionTest):
    def test_run_session_starts_it_once_and_uses_it(self):
        for number in ("1", "2", "3"):
            answer = self.run_sbx("run", "--session", "tool", "--workspace", f"{self.work}:overlay", "--", "sh", "-c", f"echo {number} >>log; cat log")
            self.assertEqual(answer.status, 0, answer)
        self.assertEqual(answer.out, "1\n2\n3\n")
        facts = self.sbx_session("show", "--json", "tool").json
        self.pids.append(facts["pid"])
        sbxtest.known_children().add(facts["pid"])


if __name__ == "__main__":
    sessiontest.main()

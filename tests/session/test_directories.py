"""Working directories of calls and cells, and what else is one cell's own: `--cwd` and `--env`."""

import json
import os
import shutil
import subprocess

import sessiontest
from sessiontest import SessionTest

# What `session eval` calls each language, a cell that prints where it is, and the one that changes that for good.
LANGUAGES = {"python": ("python3", "import os; print(os.getcwd())", "import os; os.chdir('/')", "import os; print(os.environ.get('MODE'))"),
             "javascript": ("node", "console.log(process.cwd())", "process.chdir('/')", "console.log(process.env.MODE ?? 'None')"),
             "r": ("Rscript", "cat(getwd(), '\\n', sep = '')", "setwd('/')", "cat(Sys.getenv('MODE', 'None'), '\\n', sep = '')"),
             "bash": ("bash", "pwd", "cd /", "printenv MODE || echo None")}
KINDS = {"nowhere": "not-found", "file": "not-a-directory", "closed/in": "not-permitted"}


class DirectoryTest(SessionTest):
    def begin(self):
        """A session with directories in it that its programs may enter, and places that are none."""
        self.start_session("--workspace", f"{self.work}:overlay")
        self.exec_ok("--", "sh", "-c", "mkdir -p a/b closed/in; touch file; ln -s a/b link; ln -s loop loop; ln -s /proc/self/cwd proc; chmod 0 closed")

    def refused(self, directory, *words):
        answer = self.run_sbx(*words)
        self.assertEqual((answer.status, answer.record["outcome"]["status"], answer.record["outcome"]["code"]), (125, "setup-failed", "bad-directory"), answer)
        self.assertIn(f"'{directory}'", answer.record["outcome"]["detail"])
        return answer.record["outcome"]["kind"], answer.record["outcome"]["side"]


class Calls(DirectoryTest):
    def test_a_call_begins_where_it_says(self):
        self.begin()
        for directory, place in (("a/b", "a/b"), (f"{self.work}/a", "a"), ("link", "a/b"), (".", "."), ("a/../a", "a")):
            with self.subTest(directory=directory):
                self.assertEqual(self.exec_ok("--cwd", directory, "--", "sh", "-c", "pwd -P").out, f"{os.path.normpath(self.work / place)}\n")
        self.assertEqual(self.exec_ok("--cwd", "~", "--", "sh", "-c", 'cd "$HOME"; pwd; cd "$OLDPWD"; pwd').out.split()[0:2], ["/home/sandbox"] * 2)
        self.assertEqual(self.exec_ok("--cwd", "/", "--", "pwd").out, "/\n")
        self.exec_ok("--cwd", "a/b", "--", "sh", "-c", "echo 'print(1)' >script.py; printf '#!/bin/sh\\necho 2\\n' >program; chmod +x program")
        self.assertEqual(self.exec_ok("--cwd", "a/b", "script.py").out, "1\n")
        self.assertEqual(self.exec_ok("--cwd", "a/b", "--", "./program").out, "2\n")
        self.assertEqual(self.exec_ok("--cwd", "a", "--lang", "python", "-c", "import os; print(os.listdir())").out, "['b']\n")
        self.assertEqual(self.exec_ok("--", "pwd").out, f"{self.work}\n")
        call = self.detach("--", "pwd", options=("--cwd", "a/b"))
        self.assertEqual(self.sbx_session("wait", "work", call).status, 0)
        self.assertEqual(self.sbx_session("logs", "work", call).out, f"{self.work}/a/b\n")

    def test_what_is_not_a_directory_has_a_kind(self):
        self.begin()
        for directory, kind in {**KINDS, "loop": "not-permitted", "proc": "not-permitted", "/proc/1/root": "not-permitted", "file/x": "not-a-directory"}.items():
            with self.subTest(directory=directory):
                self.assertEqual(self.refused(directory, "session", "exec", "work", "--json", "--cwd", directory, "--", "touch", f"{self.work}/ran"), (kind, "sandbox"))
        self.assertEqual(self.exec_json("--cwd", "x" * 5000, "--", "true").record["outcome"]["code"], "bad-directory")
        self.assertNotIn("ran", self.exec_ok("--", "ls").out)
        answer = self.sbx_session("exec", "--cwd", "nowhere", "work", "--", "true")
        self.assertEqual((answer.status, answer.out), (125, ""), answer)
        self.assertIn("there is no directory 'nowhere' in the session", answer.err)
        self.assertIn("sbx session ls work", answer.err)

    def test_a_directory_of_the_host_that_is_not_shown_is_not_found(self):
        secret = self.tmp / "secret"
        secret.mkdir()
        self.begin()
        self.exec_ok("--", "ln", "-s", secret, "leads-out")
        for directory in (str(secret), "leads-out"):
            self.assertEqual(self.refused(directory, "session", "exec", "work", "--json", "--cwd", directory, "--", "true"), ("not-found", "sandbox"))

    def test_bad_values_are_answered(self):
        self.begin()
        for words, code in ((["session", "exec", "work", "--cwd", "", "--", "true"], "bad-value"), (["session", "eval", "work", "--cwd", "", "-c", "1"], "bad-value"),
                            (["run", "--cwd", "a", "--", "true"], "usage"), (["run", "--cells", "x.ipynb", "--cwd", "a"], "usage"),
                            (["session", "eval", "work", "-i", "--cwd", "a"], "usage"), (["session", "eval", "work", "-i", "--env", "A=1"], "usage"),
                            (["session", "eval", "work", "--env", "A B=1", "-c", "1"], "bad-value"), (["session", "eval", "work", "--env", "HOME", "-c", "1"], "not-of-a-call"),
                            (["session", "eval", "work", "--env", b"A=\xff", "-c", "1"], "bad-value"), (["session", "eval", "work", "--env-file", "nowhere", "-c", "1"], "no-such-file")):
            with self.subTest(words=words):
                answer = self.run_sbx(*[os.fsdecode(each) for each in words])
                self.assertEqual(answer.status, 125, answer)
                self.assertIn(f"error[{code}]", answer.err)

    def test_run_in_a_session_begins_there_from_any_directory(self):
        """An agent that changed directory."""
        sub = self.work / "sub"
        sub.mkdir()
        self.assertEqual(self.run_sbx("run", "--session", "work", "-p", "agent", "--cwd", self.work, "--", "pwd").out, f"{self.work}\n")
        self.pids.append(self.sbx_session("show", "--json", "work").json["pid"])
        sessiontest.sbxtest.known_children().add(self.pids[-1])
        self.assertEqual(self.run_sbx("run", "--session", "work", "-p", "agent", "--cwd", sub, "--", "pwd", cwd=sub).out, f"{sub}\n")
        for options in ((), ("--cwd", ".")):
            answer = self.run_sbx("run", "--session", "work", "-p", "agent", *options, "--", "pwd", cwd=sub)
            self.assertIn("error[other-directory]", answer.err)
            self.assertIn("--cwd", answer.err)
        self.assertEqual(self.refused(str(self.tmp / "other"), "run", "--session", "work", "--json", "-p", "agent", "--cwd", self.tmp / "other", "--", "pwd"), ("not-found", "sandbox"))

    def test_a_call_needs_no_directory_of_the_session(self):
        self.begin()
        self.exec_ok("--cwd", "a", "--", "sh", "-c", "echo text >here")
        self.exec_ok("--", "sh", "-c", f"cd /; rm -rf {self.work}/* ; rmdir {self.work} || true")
        self.assertEqual(self.exec_ok("--cwd", "/tmp", "--", "pwd").out, "/tmp\n")

    def test_completion_offers_directories_of_the_session(self):
        self.begin()
        answer = self.run_sbx("__complete", "session", "exec", "work", "--cwd", "a")
        self.assertEqual(answer.out.splitlines(), ["nospace", "a/\t"], answer)
        self.assertEqual(self.run_sbx("__complete", "session", "exec", "work", "--cwd", "a/").out.splitlines(), ["nospace", "a/b/\t"])


class Contexts(DirectoryTest):
    """Interpreters that are opened in a directory, and closed."""

    def open(self, *options):
        answer = self.sbx_session("context", "work", "--json", *options)
        self.assertEqual(answer.status, 0, answer)
        self.fits("sbx.session.1", answer.json)
        return answer.json["context"]

    def cell(self, context, code, status=0):
        answer = self.sbx_session("eval", "work", "--context", context, "-c", code)
        self.assertEqual(answer.status, status, answer)
        return answer.out

    def contexts(self):
        return {each["context"]: each for each in self.sbx_session("contexts", "--json", "work").json["contexts"]}

    def test_each_has_a_name_and_a_directory_of_its_own(self):
        self.begin()
        for language, (program, where, moves, _) in LANGUAGES.items():
            if shutil.which(program) is None:
                continue
            with self.subTest(language=language):
                first, second = self.open("--lang", language, "--cwd", "a/b"), self.open("--lang", language)
                self.assertNotEqual(first, second)
                self.assertEqual([self.cell(each, where) for each in (first, second)], [f"{self.work}/a/b\n", f"{self.work}\n"])
                listed = self.contexts()
                self.assertEqual([(listed[each]["language"], listed[each]["directory"], listed[each]["state"]) for each in (first, second)],
                                 [(language, "a/b", "idle"), (language, "", "idle")])
                self.cell(first, moves)
                self.assertEqual(self.cell(first, where), "/\n")
                self.assertEqual(self.sbx_session("restart", "work", first).status, 0)
                self.assertEqual(self.cell(first, where), f"{self.work}/a/b\n")  # of the same language, without its being named
                for each in (first, second):
                    closed = self.sbx_session("close", "--json", "work", each)
                    self.assertEqual((closed.status, closed.json["closed"]), (0, each), closed)
                    self.fits("sbx.session.1", closed.json)
                self.assertEqual(self.contexts(), {})

    def test_one_that_was_lost_begins_again_in_its_directory(self):
        self.begin()
        context = self.open("--cwd", "a")
        self.cell(context, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", status=137)
        sessiontest.wait_until(lambda: self.contexts()[context]["state"] == "lost", "it is lost")
        self.assertEqual(self.cell(context, LANGUAGES["python"][1]), f"{self.work}/a\n")

    def test_one_whose_directory_a_program_takes_away_becomes_no_other_one(self):
        """Under a name that is forgotten, a cell would run as python, and in the session's directory."""
        self.begin()
        for kind, take_away in (("not-found", "mv a away"), ("not-a-directory", "mv a away; mkfifo a"), ("not-permitted", "mv a away; ln -s a a")):
            with self.subTest(kind=kind):
                context = self.open("--lang", "bash", "--cwd", "a")
                self.exec_ok("--", "sh", "-c", take_away)
                self.assertEqual(self.sbx_session("restart", "work", context).status, 0)
                for _ in range(2):
                    answer = self.sbx_session("eval", "work", "--context", context, "--json", "-c", "pwd")
                    self.assertEqual((answer.status, answer.json["outcome"]["code"]), (125, "bad-directory"), answer)
                    # The answer may come before the session knows of the end.
                    sessiontest.wait_until(lambda context=context: self.contexts()[context]["state"] == "lost", "it has ended")
                    listed = self.contexts()[context]
                    self.assertEqual((listed["language"], listed["directory"]), ("bash", "a"))
                self.exec_ok("--", "sh", "-c", "rm -f a; mv away a")
                self.assertEqual(self.cell(context, "pwd"), f"{self.work}/a\n")
                self.assertEqual(self.sbx_session("close", "work", context).status, 0)

    def test_two_restarts_at_once_leave_it(self):
        self.begin()
        context = self.open("--lang", "bash", "--cwd", "a")
        restarts = [sessiontest.sbxtest.start([sessiontest.sbxtest.SBX, "session", "restart", "work", context], env=self.environment(), cwd=self.work,
                                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(8)]
        for each in restarts:
            _, err = each.communicate(timeout=sessiontest.HANG)
            self.assertEqual((each.returncode, err), (0, b""))
        self.assertEqual(self.cell(context, "pwd"), f"{self.work}/a\n")

    def test_what_can_not_be_opened_leaves_no_context(self):
        self.begin()
        for directory, kind in {**KINDS, "loop": "not-permitted", "proc": "not-permitted", "/proc/1/root": "not-permitted"}.items():
            with self.subTest(directory=directory):
                answer = self.sbx_session("context", "work", "--json", "--cwd", directory)
                error = answer.json["error"]
                self.assertEqual((answer.status, error["code"], error["kind"], error["side"]), (2, "bad-directory", kind, "sandbox"), answer)
                self.fits("sbx.error.1", answer.json)
        for words, code in ((("context", "work", "--lang", "fortran"), None), (("context", "work", "x"), "usage"), (("context", "nosuch"), "no-such-session"),
                            (("close", "work"), "usage"), (("close", "work", "nosuch"), "no-such-context"), (("close", "work", "a", "b"), "usage")):
            with self.subTest(words=words):
                answer = self.sbx_session(*words, "--json")
                self.assertGreater(answer.status, 0, answer)
                self.assertIn(code, (None, answer.json["error"]["code"]))
        self.assertEqual(self.contexts(), {})

    def test_as_many_as_the_policy_allows_and_one_more_after_an_end(self):
        self.start_session("--set", "session.contexts=2")
        names = [self.open(), self.open()]
        answer = self.sbx_session("context", "work", "--json")
        self.assertEqual((answer.status, answer.json["error"]["code"], set(self.contexts())), (2, "too-many-contexts", set(names)), answer)
        self.assertEqual(self.sbx_session("close", "work", names[0]).status, 0)
        self.assertNotIn(self.open(), names)

    def test_closing_ends_what_runs_and_refuses_what_waits(self):
        self.begin()
        context = self.open()
        code = "open('begun', 'w').close(); import time; time.sleep(1000)"
        cell = sessiontest.sbxtest.start([sessiontest.sbxtest.SBX, "session", "eval", "work", "--context", context, "--json", "-c", code], env=self.environment(), cwd=self.work,
                                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        sessiontest.wait_until(lambda: "begun" in self.exec_ok("--", "ls").out, "the cell runs")
        self.assertEqual(self.sbx_session("close", "work", context).status, 0)
        out, _ = cell.communicate(timeout=sessiontest.HANG)
        self.assertEqual((json.loads(out)["outcome"]["status"], self.contexts()), ("cancelled", {}), out)

    def test_another_one_of_its_name_is_not_made_by_restarts(self):
        """The twin: what a cell has made of itself is forgotten with its end."""
        self.begin()
        self.cell("mine", "1")
        self.assertEqual(self.sbx_session("restart", "work", "mine").status, 0)
        self.assertEqual(self.contexts(), {})


class Cells(DirectoryTest):
    def each(self, check):
        """Calls it for each language that is installed."""
        for language, (program, *cells) in LANGUAGES.items():
            with self.subTest(language=language):
                if shutil.which(program) is None:
                    self.skipTest(f"{program} is not installed")
                check(language, *cells)

    def eval(self, language, code, *options):
        return self.sbx_session("eval", "work", "--lang", language, *options, "-c", code)

    def test_a_cell_has_its_directory_and_leaves_it(self):
        self.begin()

        def check(language, where, leave, _):
            self.assertEqual(self.eval(language, where).out, f"{self.work}\n")
            self.assertEqual(self.eval(language, where, "--cwd", "a/b").out, f"{self.work}/a/b\n")
            self.assertEqual(self.eval(language, where, "--cwd", "~").out, "/home/sandbox\n")
            self.assertEqual(self.eval(language, leave, "--cwd", "a").status, 0)
            self.assertEqual(self.eval(language, where).out, f"{self.work}\n")
            # Without one of its own a cell changes it for those after it.
            self.assertEqual(self.eval(language, leave).status, 0)
            self.assertEqual(self.eval(language, where).out, "/\n")

        self.each(check)

    def test_a_cell_that_can_not_begin_has_an_error_with_a_kind(self):
        self.begin()

        def check(language, where, _, mode):
            for directory, kind in KINDS.items():
                answer = self.eval(language, where, "--json", "--cwd", directory, "--env", "MODE=x")
                self.assertEqual(answer.status, 125, answer)
                self.fits("sbx.cell.1", answer.record)
                found = answer.record["answer"]["error"]
                self.assertEqual((answer.record["stdout"]["bytes"], found.get("kind")), (0, kind), answer)
                self.assertIn(directory, found["value"] + found["traceback"])
            self.assertEqual(self.eval(language, where).out, f"{self.work}\n")
            self.assertEqual(self.eval(language, mode).out, "None\n")

        self.each(check)

    def test_a_cell_has_variables_that_are_gone_after_it(self):
        odd = "a 'b' \"c\" $HOME `x` \\ é\n\tend"
        self.start_session("--set", 'environment.set={FORMER="session"}')

        def check(language, _, __, mode):
            former = mode.replace("MODE", "FORMER")
            self.assertEqual(self.eval(language, mode, "--env", "MODE=test").out, "test\n")
            self.assertEqual(self.eval(language, mode).out, "None\n")
            self.assertEqual(self.eval(language, mode, "--env", f"MODE={odd}").out, odd + "\n")
            self.assertEqual(self.eval(language, former, "--env", "FORMER=cell", "--env", "MODE=1").out, "cell\n")
            self.assertEqual(self.eval(language, former).out, "session\n")

        self.each(check)

    def test_a_variable_that_is_set_already_comes_back(self):
        self.start_session()
        kept = {"python": ("import os; os.environ['MODE'] = 'kept'", "os.environ['MODE'] = 'lost'"), "bash": ("export MODE=kept", "MODE=lost"),
                "javascript": ("process.env.MODE = 'kept'", "process.env.MODE = 'lost'"), "r": ("Sys.setenv(MODE = 'kept')", "Sys.setenv(MODE = 'lost')")}

        def check(language, _, __, mode):
            self.assertEqual(self.eval(language, kept[language][0]).status, 0)
            self.assertEqual(self.eval(language, kept[language][1], "--env", "MODE=cell").status, 0)
            self.assertEqual(self.eval(language, mode).out, "kept\n")

        self.each(check)

    def test_an_interrupted_cell_leaves_them_too(self):
        self.begin()
        sleeps = {"python": "import time; time.sleep(1000)", "javascript": "await new Promise((done) => setTimeout(done, 1e6))", "r": "Sys.sleep(1000)", "bash": "sleep 1000"}

        def check(language, where, _, mode):
            self.assertEqual(self.eval(language, where).status, 0)
            answer = self.eval(language, sleeps[language], "--json", "--timeout", "1s", "--cwd", "a", "--env", "MODE=test")
            self.assertEqual((answer.verdict, answer.record["state"]), (("over-budget", "wall_time"), "kept"), answer)
            self.assertEqual((self.eval(language, where).out, self.eval(language, mode).out), (f"{self.work}\n", "None\n"))

        self.each(check)

    def test_secrets_come_through_a_descriptor(self):
        self.start_session()
        reading, writing = os.pipe()
        os.write(writing, b"MODE=secret\0")
        os.close(writing)
        answer = self.sbx_session("eval", "work", "--env-fd", reading, "-c", LANGUAGES["python"][3], pass_fds=(reading,))
        os.close(reading)
        self.assertEqual(answer.out, "secret\n", answer)

    def test_bash_keeps_what_a_variable_was(self):
        self.start_session()
        self.assertEqual(self.eval("bash", "A=plain; declare -a B=(1 2); export C=out; readonly D=1").status, 0)
        self.assertEqual(self.eval("bash", 'set -eu; echo "$A $B $C"', *(word for name in "ABC" for word in ("--env", f"{name}=cell"))).out, "cell cell cell\n")
        self.assertEqual(self.eval("bash", 'set +eu; echo "$A ${B[*]} $C"; printenv A B; printenv C').out, "plain 1 2 out\nout\n")
        refused = self.eval("bash", "echo ran", "--env", "D=2")
        self.assertEqual((refused.status, refused.out), (1, ""), refused)
        self.assertEqual(self.eval("bash", 'echo "$D $(declare -p D)"').out, '1 declare -r D="1"\n')


if __name__ == "__main__":
    sessiontest.main()

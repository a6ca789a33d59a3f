"""The command line of the built binary: which argument goes where, and the exit status of errors."""

import json
import os
import pathlib
import re
import subprocess

import sbxtest
from harness import SOURCE
from sbxtest import IS_ROOT, SBX, SbxTest

SHOW = "import sys; print(sys.argv[1:])"


COMMANDS = ["run", "policy list", "policy show", "policy check", "policy explain", "policy diff", "policy schema", "policy init", "policy audit",
            "doctor", "why", "changes list", "changes show", "changes diff", "changes apply", "changes drop", "completions", "help"]


class Arguments(SbxTest):
    def call(self, *arguments, **options):
        return subprocess.run([SBX, *arguments], env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=120, **options)

    def test_arguments_after_the_operand_reach_the_program(self):
        ended = self.sbx("python3", "-c", SHOW, "--json", "-q", "--", "", json_record=False)
        self.assertEqual((ended.status, ended.out), (0, b"['--json', '-q', '--', '']\n"), str(ended))

    def test_code_takes_the_operands_as_arguments(self):
        ended = self.sbx("--lang", "python", "-c", SHOW, "--", "-x", "y", json_record=False)
        self.assertEqual((ended.status, ended.out), (0, b"['-x', 'y']\n"), str(ended))

    def test_mistakes_of_run_end_with_125(self):
        for arguments in (["run"], ["run", "--bogus", "true"], ["run", "--timeout", "soon", "true"]):
            done = self.call(*arguments)
            self.assertEqual((done.returncode, done.stdout), (125, b""), arguments)
            self.assertRegex(done.stderr, rb"^sbx: error\[[a-z-]+\]: ")

    def test_each_command_ends_a_mistake_with_its_status(self):
        docs = pathlib.Path(os.environ["SBX_BUILD"]) / "src/cli/sbx-docs"
        listed = subprocess.run([docs, "list"], capture_output=True, text=True, check=True).stdout.splitlines()
        commands = [line.split(" ", 1)[1] for line in listed if line.startswith("command ")]
        self.assertLess(set(COMMANDS), set(commands))
        # These exit as the program did, whose statuses are 0 to 124; the notebook's record is not the run's.
        like_programs = {"run": "sbx.run/1", "session exec": "sbx.run/1", "session eval": "sbx.cell/1", "session wait": "sbx.error/1"}
        for command in commands:
            done = self.call(*command.split(), "--bogus")
            self.assertEqual(done.returncode, 125 if command in like_programs else 2, (command, done))
            self.assertIn(b"error[unknown-option]", done.stderr, command)
        for command, schema in like_programs.items():
            self.assertEqual(json.loads(self.call(*command.split(), "--json", "--bogus").stdout)["schema"], schema, command)
        for words in (("--bogus", "--cells", "x.ipynb"), ("--cells", "x.ipynb", "--bogus"), ("--cells", "x.ipynb", "-i"), ("--cells", "x.ipynb", "y")):
            done = self.call("run", "--json", *words)
            self.assertEqual((done.returncode, json.loads(done.stdout)["schema"]), (125, "sbx.notebook/1"), words)
        for command in commands:
            if command.startswith("session ") and command not in ("session start", "session list"):
                self.assertEqual(self.call(*command.split()).returncode, 125 if command in like_programs else 2, command)

    def test_a_program_from_a_closed_input_is_a_mistake(self):
        for words, stdin, status in ((("--lang", "python", "-"), "<&-", 125), (("--lang", "python", "-"), "</dev/null", 0), (("cat",), "<&-", 0),
                                     (("--lang", "python", "--stdin", "null", "-"), "<&-", 0)):
            done = subprocess.run(["sh", "-c", f'"$@" {stdin}', "sh", SBX, "run", *words], env=self.environment(), cwd=self.work, capture_output=True)
            self.assertEqual((done.returncode, b"standard input, which is closed" in done.stderr), (status, status != 0), (words, done))

    def test_a_policy_with_a_mistake_is_shown_with_it(self):
        text = "schema = 1\n[limits]\nnosuch = 2\n"
        done = self.call("policy", "show", self.write("bad.toml", text))
        self.assertEqual((done.returncode, done.stdout), (1, text.encode()), done)
        self.assertIn(b"error[unknown-key]", done.stderr)

    def test_what_the_answer_names_works(self):
        self.write("x.ipynb", '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
        self.write("data/file", "")
        for words, status, named in ((("run", "x.ipynb"), 126, "sbx run -p python --cells x.ipynb"), (("notebook", "x.ipynb"), 2, "sbx run -p python --cells x.ipynb")):
            done = self.call(*words)
            self.assertEqual((done.returncode, done.stderr.decode().split("help: ")[1].endswith(named + "\n")), (status, True), done)
            self.assertEqual(self.call(*named.split()[1:]).returncode, 0, named)
        for mode in ("", ":ro", ":rw"):
            done = self.call("run", "-v", f"{self.work}/data:/data{mode}", "ls", "/data")
            self.assertIn(f"--read {self.work}/data:/data shows a directory there", done.stderr.decode())
        self.assertEqual(self.call("run", "--read", f"{self.work}/data:/data", "ls", "/data").stdout, b"file\n")

    def test_a_path_that_can_not_be_used_names_the_line_that_mends_it(self):
        """The line is typed, and then the same command works."""
        self.write("inner/file", "text\n")
        collect = ("--set", 'filesystem.outputs.collect=["*"]')
        cases = [(("--report", "absent/record.json"), "mkdir -p absent"), ((*collect, "--out", "gone/sub"), "mkdir -p gone")]
        if not IS_ROOT:  # whom no mode stops
            for name, mode in (("secret.txt", 0), ("secret.py", 0), ("other.txt", 0)):
                self.write(name, "", mode)
            for name, mode in (("shut", 0), ("closed", 0), ("sealed", 0o555), ("fast", 0o555)):
                self.write(f"{name}/file", "")
                (self.work / name).chmod(mode)
                self.addCleanup((self.work / name).chmod, 0o755)
            cases += [(("--read", "secret.txt"), f"chmod u+r {self.work}/secret.txt"), (("--in", "other.txt"), f"chmod u+r {self.work}/other.txt"),
                      (("--read", "shut/file"), f"chmod u+x {self.work}/shut"), (("--workspace", "closed:overlay"), f"chmod u+rx {self.work}/closed"),
                      (("--report", "sealed/record.json"), "chmod u+rwx sealed"), ((*collect, "--out", "fast/new"), "chmod u+rwx fast")]
        for words, line in cases:
            refused = self.call("run", *words, "true")
            self.assertEqual(refused.returncode, 125, refused)
            cure = refused.stderr.decode().split("help: ")[1].splitlines()[0]
            self.assertIn(cure.split(", or ")[0].split(": ")[-1], (line,), refused)
            subprocess.run(["sh", "-c", line], cwd=self.work, check=True)
            self.assertEqual(self.call("run", *words, "true").returncode, 0, words)
        if not IS_ROOT:
            self.assertIn(f"help: chmod u+r {self.work}/secret.py\n", self.call("run", "secret.py").stderr.decode())
            (self.work / "secret.txt").chmod(0)
            self.assertIn(", or leave out --read\n", self.call("run", "--read", "secret.txt", "true").stderr.decode())
        os.mkfifo(self.work / "fifo")
        for words, cure in (((*collect, "--out", "inner/file"), "name a directory; a new one is made"), ((*collect, "--out", "inner/file/x"), "name a directory"),
                            (("--report", "inner"), "name a file in it"), (("--report", "inner/file/x"), "name a directory; a part of that path is a file"),
                            (("--read", "fifo"), f"as its standard input: --stdin {self.work}/fifo"), (("--report", "/dev/full"), "make room")):
            refused = self.call("run", *words, "true")
            self.assertEqual(refused.returncode, 125, refused)
            self.assertIn(cure, refused.stderr.decode().split("help: ")[1], words)

    def test_a_limit_that_was_met_names_what_allows_more(self):
        for options, command, more in ((("--disk", "1M"), "head -c 3000000 /dev/zero >/tmp/x", "--disk 2M"),
                                       (("--processes", "4"), "for i in 1 2 3 4 5 6 7 8; do sleep 60 & done; kill $(jobs -p)", "--processes 8")):
            ended = self.sbx(*options, "--", "sh", "-c", command, json_record=False)
            self.assertIn(f"sbx:   to allow more: {more}\n", ended.err.decode(), ended)

    def test_a_number_that_is_too_large_is_no_missing_unit(self):
        for option, value in (("--memory", "99999999999999999999G"), ("--timeout", "99999999999999999999h"), ("--disk", "99999999T")):
            self.could_not(self.sbx(option, value, "true", json_record=False), f'{option}: "{value}" is too large')
        for option, value in (("--memory", "99999999999999999999"), ("--memory", "5"), ("--timeout", "9x"), ("--disk", "G")):
            self.could_not(self.sbx(option, value, "true", json_record=False), "such as")

    def test_an_option_is_blamed_only_where_it_was_typed(self):
        for words in (("check",), ("audit",), ("show",), ("show", "--effective"), ("diff", "default")):
            done = self.call("policy", *words, "nosuch")
            self.assertIn(b'there is no policy "nosuch"\n', done.stdout + done.stderr, words)
        self.assertIn(b'there is no policy "nosuch" (--policy)\n', self.call("run", "-p", "nosuch", "true").stderr)

    def test_common_slips_are_told_the_right_form(self):
        self.write("a.py", "")
        for arguments, status, words in ((("--timeout", "5s", "run", "true"), 2, "sbx run --timeout"), (("version",), 2, "sbx --version"),
                                         (("run", "--", "a.py"), 127, "write ./a.py"), (("run", ""), 127, "the command is empty"),
                                         (("completions", "pwsh"), 2, 'no completions for "pwsh"'),
                                         (("doctor", "-p", "nosuch"), 2, "unknown-policy"), (("policy", "audit", "nosuch"), 2, "unknown-policy")):
            done = self.call(*arguments)
            self.assertEqual(done.returncode, status, arguments)
            self.assertIn(words, done.stderr if isinstance(done.stderr, str) else done.stderr.decode(), arguments)

    def test_a_mistyped_name_is_told_the_one_that_was_meant(self):
        self.write("chart.py", "print(1)\n")
        self.write("book.ipynb", "{}")
        self.write("a:b.csv", "1\n")
        for arguments, words in ((("help", "rnu"), 'did you mean "sbx help run"?'), (("help", "sesion"), 'did you mean "sbx help session"?'),
                                 (("sesion", "list"), 'did you mean "sbx session list"?'), (("polcy", "shwo", "x"), 'did you mean "sbx policy show"?'),
                                 (("changs",), 'did you mean "sbx changes --help"?'), (("run", "--lang", "pyhton", "-c", "1"), "did you mean python? it knows"),
                                 (("run", "chrat.py"), "did you mean 'chart.py'?"), (("run", "./chrat.py"), "did you mean './chart.py'?"),
                                 (("run", "-p", "python", "book.ipynb"), "sbx run -p python --cells book.ipynb"),
                                 (("run", "book.ipynb"), "sbx run -p python --cells book.ipynb"),
                                 (("run", "--read", "nosuch", "true"), "name what exists, or leave out --read"),
                                 (("run", "--in", "a:b.csv", "true"), "as in --in 'a\\:b.csv'")):
            self.assertIn(words, self.call(*arguments).stderr.decode(), arguments)
        self.assertEqual(self.call("run", "--in", "a\\:b.csv", "true").returncode, 0)
        # What follows the script is the script's: said where the script fails, and only there.
        self.write("fails.py", "import sys; sys.exit(len(sys.argv) - 1)\n")
        self.assertIn('"-p data-analysis" went to fails.py', self.call("run", "fails.py", "-p", "data-analysis").stderr.decode())
        for arguments in (("run", "fails.py", "-p", "nosuch"), ("run", "chart.py", "-p", "data-analysis"), ("run", "-q", "fails.py", "-p", "data-analysis"),
                          ("run", "--", "python3", "-c", "raise SystemExit(1)", "-p", "data-analysis")):
            self.assertNotIn("went to", self.call(*arguments).stderr.decode(), arguments)
        # Any option where the script reads no words at all.
        self.write("deaf.py", "raise SystemExit(3)\n")
        self.write("good.py", "print(1)\n")
        for option in ("--out results", "--allow-host example.org", "-p nosuch", "--explain"):
            self.assertIn(f'"{option}" went to deaf.py', self.call("run", "deaf.py", *option.split()).stderr.decode())
            self.assertNotIn("went to", self.call("run", "good.py", *option.split()).stderr.decode())
        self.assertNotIn("went to", self.call("run", "deaf.py", "--nosuch", "5").stderr.decode())
        # Any other option of sbx: where the program says that it does not know it.
        self.write("knows.py", "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--memory')\nparser.add_argument('n', type=int)\nparser.parse_args()\n")
        for arguments, option, script in ((("run", "knows.py", "1", "--timeout", "5s"), "--timeout 5s", "knows.py"),
                                          (("run", "knows.py", "1", "--timeout=5s"), "--timeout=5s", "knows.py"),
                                          (("run", "sort", "--json"), "--json", "sort")):
            self.assertIn(f'"{option}" went to {script}, as every word after it; if it is meant for sbx: sbx run {option} {script}\n',
                          self.call(*arguments).stderr.decode(), arguments)
        for arguments in (("run", "knows.py", "x", "--memory", "1G"), ("run", "knows.py", "1", "--memory", "1G"), ("run", "knows.py", "1", "--nosuch", "5s"),
                          ("run", "-q", "knows.py", "1", "--timeout", "5s"), ("run", "--", "python3", "knows.py", "1", "--timeout", "5s")):
            self.assertNotIn("went to", self.call(*arguments).stderr.decode(), arguments)
        # Nothing is near these, or what is near is not a file that anybody would run.
        self.write(".hidden.py", "")
        (self.work / "direct.py").mkdir()
        for arguments in (("help", "xyzzy"), ("xyzzy", "list"), ("run", ".hiden.py"), ("run", "dierct.py")):
            self.assertNotIn("did you mean", self.call(*arguments).stderr.decode(), arguments)

    def test_mistakes_of_other_commands_end_with_2(self):
        for arguments in (["rnu"], ["policy"], ["policy", "show"], ["completions", "tcsh"], ["serve"]):
            self.assertEqual(self.call(*arguments).returncode, 2, arguments)

    def test_not_found_and_not_executable(self):
        (self.work / "plain.unknown").write_text("no program\n")
        self.assertEqual(self.sbx("nosuchcommand").status, 127)
        ended = self.sbx("plain.unknown")
        self.assertEqual((ended.status, ended.verdict), (126, ("setup-failed", "not-executable")), str(ended))

    def test_an_answer_that_can_not_be_written_is_told(self):
        path = self.policy("")
        for words in (["--version"], ["policy", "list"], ["changes", "list", "--json"], ["doctor"], ["policy", "check", path], ["run", "--dry-run", "true"]):
            command = [SBX, *map(str, words)]
            with open("/dev/full", "wb") as full:
                done = subprocess.run(command, env=self.environment(), cwd=self.work, stdout=full, stderr=subprocess.PIPE, check=False)
            self.assertEqual(done.returncode, 125, words)
            self.assertIn(b"error[cannot-write]: cannot write to stdout: No space left on device\n", done.stderr)
            read, write = os.pipe()
            os.close(read)  # a reader that leaves early
            done = subprocess.run(command, env=self.environment(), cwd=self.work, stdout=write, stderr=subprocess.PIPE, check=False)
            os.close(write)
            self.assertEqual((done.returncode, b"cannot-write" in done.stderr), (125, False), words)
            done = subprocess.run(command, env=self.environment(), cwd=self.work, capture_output=True, check=False)
            self.assertNotIn(b"cannot-write", done.stderr)
            self.assertTrue(done.stdout, words)

    def test_help_and_version(self):
        self.assertRegex(self.call("--version").stdout, rb"^sbx \d+\.\d+\.\d+\n$")
        for arguments in (["--help"], ["help"], ["run", "--help"], ["help", "run"], ["policy", "show", "--help"]):
            done = self.call(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, b""), arguments)
            self.assertIn(b"Usage:", done.stdout)
        self.assertEqual(self.call("help", "nothing").returncode, 2)
        self.assertEqual(self.call("-V").stdout, self.call("--version").stdout)

    def test_each_command_has_help_and_colours(self):
        for command in COMMANDS:
            words = command.split()
            self.assertEqual(self.call(*words, "--help").stdout, self.call(*words, "-h").stdout, command)
            self.assertIn(f"sbx {command}".encode(), self.call(*words, "--help").stdout)
            self.assertNotIn(b"\x1b[", self.call(*words, "--color", "never", "--bogus").stderr)
            self.assertIn(b"error[bad-value]", self.call(*words, "--color", "purple").stderr)
        for color, shown in (("always", True), ("never", False), ("auto", False)):
            done = self.call("run", "--color", color, "nosuchcommand")
            self.assertEqual((done.returncode, b"\x1b[" in done.stderr), (127, shown), done.stderr)

    def test_long_names_are_the_short_ones(self):
        self.assertEqual(self.sbx("--policy", "strict", "true").record["policy"]["name"], "strict")
        for option in ("--verbose", "-v"):
            self.assertRegex(self.sbx(option, "true", json_record=False).err, rb"sbx: \d+ ms wall, ")
        self.assertEqual(self.sbx("--quiet", "--timeout", "100ms", "--", "sleep", "9", json_record=False).err, b"")
        status, shown = self.on_terminal(self.command("--interactive", "--", "tty", json_record=False))
        self.assertEqual((status, shown.strip()), (0, "/dev/pts/0"))

    def test_any_name_of_the_program_works(self):
        done = subprocess.run(["", "--version"], executable=SBX, capture_output=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_policies_are_listed_shown_and_checked(self):
        names = self.call("policy", "list").stdout
        for name in (b"default", b"strict", b"data-analysis", b"python"):
            self.assertIn(name, names)
        self.assertIn(b"schema = 1", self.call("policy", "show", "strict").stdout)
        effective = self.call("policy", "show", "strict", "--effective").stdout
        path = self.work / "p.toml"
        path.write_bytes(effective)
        self.assertEqual(self.call("policy", "check", str(path)).returncode, 0)
        path.write_text("schema = 1\n[limits]\nmemroy = \"1G\"\nwall_time = 3\n")
        checked = self.call("policy", "check", str(path))
        self.assertEqual(checked.returncode, 1)
        for expected in (b"p.toml:3:", b"did you mean", b"p.toml:4:", b"2 findings"):
            self.assertIn(expected, checked.stdout)

    def test_keys_are_explained(self):
        self.assertIn(b"wall_time", self.call("policy", "explain", "limits.wall_time").stdout)
        self.assertIn(b"ptrace", self.call("policy", "explain", "@debug").stdout)
        promises = re.findall(r'X\(\w+, +"([^"]+)"\)', (SOURCE / "include/sbx/outcome.hpp").read_text())
        self.assertGreater(len(promises), 20)
        for name in [*promises, "own-uid", "same-uid"]:
            self.assertEqual(self.call("policy", "explain", name).returncode, 0, name)
        done = self.call("policy", "explain", "limits.wall_tiem")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"limits.wall_time", done.stderr)

    def test_configured_default_policy_is_used(self):
        directory = self.home / ".config" / "sbx"
        directory.mkdir(parents=True)
        (directory / "config.toml").write_text('policy = "strict"\n')
        self.assertEqual(self.exited(self.sbx("true")).record["policy"]["name"], "strict")
        self.assertEqual(self.exited(self.sbx("-p", "python", "true")).record["policy"]["name"], "python")
        (directory / "config.toml").write_text('polcy = "strict"\n')
        ended = self.sbx("true")
        self.assertEqual((ended.status, ended.verdict), (125, ("setup-failed", "policy")), str(ended))

    def test_isolation_has_a_key_an_option_and_a_setting(self):
        def shown(*words):
            done = self.call("policy", "show", "--origin", *words)
            return next(line for line in done.stdout.decode().splitlines() if line.startswith("isolation"))
        directory = self.home / ".config" / "sbx"
        directory.mkdir(parents=True)
        namespaces = {"tier": "namespaces", "form": None}
        without = "needs-namespaces"
        for words in ((), ("--isolation", "auto"), ("--set", 'isolation="auto"'), ("--require", "namespaces", "--require", "own-uid")):
            self.assertEqual(self.exited(self.sbx(*words, "true")).record["isolation"], namespaces)
        # What a caller can't have is refused, never replaced: who it works for is in sandbox.own_uid.
        (self.work / "wide.toml").write_text('isolation = "landlock"\n')
        for words in (("--isolation", "landlock"), ("-p", "./wide.toml")):
            ended = self.sbx(*words, "--explain", "true")
            self.assertEqual((ended.status, ended.record["outcome"]["code"]), (125, without), str(ended))
        cells = self.write("cells.py", "# %%\n1\n# %%\n2\n")
        ended = self.sbx("--isolation", "landlock", "--cells", cells, json_record=False)
        self.assertEqual((ended.status, b"for a session or --cells, can't be kept without namespaces" in ended.err, b'help: isolation = "namespaces"' in ended.err), (125, True, True), ended)
        self.assertEqual(self.sbx("--isolation", "namespaces", "--cells", cells, json_record=False).status, 0)
        # The setting yields to files, options and locks.
        (directory / "config.toml").write_text('isolation = "landlock"\n')
        self.assertEqual(self.sbx("--explain", "true").record["outcome"]["code"], without)
        self.assertIn("config.toml:1", shown("default"))
        (self.work / "said.toml").write_text('isolation = "namespaces"\n')
        (self.work / "locked.toml").write_text('locked = true\n')
        self.assertIn("said.toml:1", shown("./said.toml"))
        for words in (("-p", "./said.toml"), ("-p", "./locked.toml"), ("--isolation", "namespaces")):
            self.assertEqual(self.exited(self.sbx(*words, "true")).record["isolation"], namespaces)
        ended = self.sbx("-p", "./locked.toml", "--isolation", "auto", "true")
        self.assertEqual((ended.status, ended.record["outcome"]["code"]), (125, "widens-locked"), str(ended))
        for place in ("--isolation", "locked.toml:1"):
            self.assertIn(place, ended.record["outcome"]["detail"])
        (directory / "config.toml").write_text('isolation = "jail"\n')
        self.assertIn("config.toml:1", self.sbx("true").record["outcome"]["detail"])
        self.assertEqual(self.call("run", "--isolation", "jail", "true").returncode, 125)

    def test_a_foreign_config_directory_does_not_count(self):
        directory = self.tmp / "foreign" / "sbx"
        directory.mkdir(parents=True)
        (directory / "config.toml").write_text('policy = "strict"\n')
        ended = self.exited(self.sbx("true", env={"XDG_CONFIG_HOME": str(self.tmp / "foreign")}))
        self.assertEqual(ended.record["policy"]["name"], "default")
        below = self.home / "cfg" / "sbx"
        below.mkdir(parents=True)
        (below / "config.toml").write_text('policy = "strict"\n')
        ended = self.exited(self.sbx("true", env={"XDG_CONFIG_HOME": str(self.home / "cfg")}))
        self.assertEqual(ended.record["policy"]["name"], "strict")

    def test_variables_from_argument_file_and_descriptor(self):
        (self.work / "vars").write_text("FROM_FILE=f\nBOTH=file\n")
        read, write = os.pipe()
        os.write(write, b"SECRET=s 1\0BOTH=descriptor\0")
        os.close(write)
        process = self.start_sbx("--env", "SET=x", "--env", "PASSED", "--env-file", "vars", "--env-fd", str(read), "--", "env",
                                 env={"PASSED": "p", "NOT_PASSED": "n"}, pass_fds=[read])
        os.close(read)
        lines = self.exited(self.finish(process)).text.splitlines()
        for expected in ("SET=x", "PASSED=p", "FROM_FILE=f", "SECRET=s 1", "BOTH=descriptor"):
            self.assertIn(expected, lines)
        self.assertFalse([line for line in lines if line.startswith("NOT_PASSED")])

    def test_closed_standard_streams_are_survived(self):
        for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            report = self.tmp / "r.json"
            script = f'exec "$0" run --report {report} -- sh -c "cat; echo out; echo err >&2; exit 7" {closed}'
            done = subprocess.run(["sh", "-c", script, SBX], env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
            self.assertTrue(report.exists(), (closed, done))
            record = json.loads(report.read_text())
            self.assertEqual(record["schema"], "sbx.run/1")
            report.unlink()
            if closed == "<&-":
                self.assertEqual((done.returncode, done.stdout), (7, b"out\n"), done)
                continue
            lost = "stderr" if closed == "2>&-" else "stdout"
            self.assertEqual((done.returncode, record["write_error"]["stream"], record["outcome"]["exit_code"]), (125, lost, 7), done)
            if closed == ">&-":
                self.assertIn(b"cannot write stdout: it is not open for writing", done.stderr)

    def test_a_closed_stream_that_nothing_is_written_to_is_no_failure(self):
        done = subprocess.run(["sh", "-c", 'exec "$0" run -- true <&- >&-', SBX], env=self.environment(), cwd=self.work, stderr=subprocess.PIPE, timeout=120, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_a_session_whose_name_nobody_could_read_is_not_started(self):
        """Twin: with -q nothing is printed."""
        run = lambda words: subprocess.run(["sh", "-c", f'exec "$0" session {words} >&-', SBX], env=self.environment(), cwd=self.work, stderr=subprocess.PIPE, timeout=120, check=False)
        refused = run("start work")
        self.assertEqual(refused.returncode, 2, refused)
        self.assertIn(b"error[cannot-write]: standard output is closed, and the name of the session is printed there\n  help: -q", refused.stderr)
        self.assertIn(b"no-such-session", run("stop work").stderr)
        self.assertEqual((run("start -q work").returncode, run("stop work").returncode), (0, 0))

    def test_a_home_that_is_not_used_is_named(self):
        """Twin: one that is used, and another user's, as sudo leaves it."""
        for home, why in (("home/me", "it is not an absolute path"), (self.tmp / "nosuch", "it can't be found"), (self.write("file", ""), "it is not a directory")):
            ended = self.sbx("--", "true", env={"HOME": str(home)}, json_record=False)
            self.assertRegex(ended.err.decode(), rf"^sbx: HOME={home} is not used: {why}; (the home is /|there is no home)")
        for home in (self.home, "/usr" if not IS_ROOT else self.home):
            self.assertEqual(self.sbx("--", "true", env={"HOME": str(home)}, json_record=False).err, b"")


if __name__ == "__main__":
    sbxtest.main()

"""The record: valid under the shipped schema in every case, and delivered where it was requested."""

import json
import os
import resource
import shutil
import subprocess

import sbxtest
from sbxtest import PROBE, SOURCE, SbxTest

try:
    import jsonschema
except ImportError:
    jsonschema = None

TRACE_ME = "import ctypes; libc = ctypes.CDLL(None); libc.ptrace(0, 0, 0, 0)"


class Record(SbxTest):
    def check(self, ended):
        if jsonschema is None:
            self.skipTest("python3-jsonschema is not installed")
        schema = json.loads((SOURCE / "schema/sbx.run.1.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        errors = [f"{list(error.path)}: {error.message}" for error in jsonschema.Draft202012Validator(schema).iter_errors(ended.record)]
        self.assertEqual(errors, [], str(ended))
        return ended

    def test_schema_holds_for_every_verdict(self):
        self.check(self.exited(self.sbx("true")))
        self.check(self.exited(self.sbx("false"), 1))
        self.check(self.sbx("--", "sh", "-c", "kill -SEGV $$"))
        self.check(self.over_budget(self.sbx("--timeout", "200ms", "--", "sleep", "60"), "wall_time", 124))
        self.check(self.python(TRACE_ME, options=["--set", 'syscalls.denied="kill"']))
        self.check(self.sbx("--output", "1K", "--", "seq", "100000"))

    def test_schema_holds_for_every_set_up_failure(self):
        for arguments, reason in ((["nosuchcommand"], "not-found"), (["--bogus", "true"], "usage"), ([], "usage"),
                                  (["-p", "nosuchpolicy", "true"], "policy"), (["--read", "/nosuchpath", "true"], None)):
            ended = self.check(self.sbx(*arguments))
            self.assertEqual(ended.outcome["status"], "setup-failed", str(ended))
            if reason:
                self.assertEqual(ended.outcome["reason"], reason, str(ended))

    def test_schema_holds_for_what_was_brought_out(self):
        options = ["--workspace", ".:overlay", "--out", self.tmp / "out", "--apply", "--yes", "--set", 'filesystem.outputs.collect=["**"]']
        code = "import os; open('a', 'w').write('x'); os.mkfifo(b'\\xff'); os.mkdir('d'); open('.bashrc', 'w')"
        ended = self.check(self.exited(self.python(code, options=options)))
        self.assertEqual([each["path"] for each in ended.record["out"]["files"]], ["a"])
        self.assertEqual(len(ended.record["applied"]["left"]), 2)
        self.assertEqual(len(ended.record["changes"]), 4)

    def test_the_validator_notices_a_wrong_record(self):
        ended = self.exited(self.sbx("true"))
        self.check(ended)
        ended.record["outcome"]["exit_code"] = None
        with self.assertRaises(AssertionError):
            self.check(ended)

    def test_bytes_that_are_not_utf8_are_kept_exactly(self):
        ended = self.check(self.exited(self.sbx("--", "printf", r"\377\376", os.fsdecode(b"\xff"))))
        self.assertEqual((ended.record["stdout"]["encoding"], ended.record["stdout"]["text"]), ("base64", "//4="))
        self.assertEqual(ended.record["command_b64"][-1], "/w==")

    def test_denials_name_the_line_that_would_allow_them(self):
        ended = self.check(self.python(TRACE_ME))
        denial = next(each for each in ended.record["denials"] if each["what"] == "ptrace")
        allowed = self.check(self.python(TRACE_ME, options=["--set", denial["allow_with"].replace(" = ", "=")]))
        self.assertNotIn("ptrace", allowed.denied)

    def test_a_report_file_is_replaced_in_one_step(self):
        path = self.tmp / "r.json"
        path.write_text("before")
        ended = self.sbx("--report", path, "--", "sh", "-c", "exit 3", json_record=False)
        self.assertEqual(ended.status, 3)
        self.assertEqual(json.loads(path.read_text())["outcome"]["exit_code"], 3)
        self.assertEqual(sorted(each.name for each in self.tmp.iterdir()), ["home", "r.json", "work"])

    def test_a_report_is_never_written_through_a_link(self):
        victim = self.write("victim", "mine", directory=self.tmp)
        for target in (victim, self.tmp / "nowhere", "/dev/null"):
            link = self.tmp / "link"
            link.symlink_to(target)
            ended = self.sbx("--report", link, "touch", "ran", json_record=False)
            self.assertEqual((ended.status, b"symbolic link" in ended.err, link.is_symlink()), (125, True, True), ended)
            link.unlink()
        self.assertEqual((victim.read_text(), (self.tmp / "nowhere").exists()), ("mine", False))

    def test_a_report_is_never_written_to_a_pipe_that_somebody_else_put_into_a_shared_directory(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give a file away")
        shared = self.tmp / "shared"
        shared.mkdir()
        pipe = shared / "record"
        os.mkfifo(pipe, 0o666)
        os.chown(pipe, 1234, 1234)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        for mode, status in ((0o755, 0), (0o1777, 125)):
            shared.chmod(mode)
            ended = self.sbx("--report", pipe, "--", "true", json_record=False)
            self.assertEqual(ended.status, status, ended)
            if status == 0:
                self.assertIn(b'"schema"', os.read(reader, 1 << 16))
        self.assertIn(b"another user owns", ended.err)

    def test_a_report_goes_to_descriptors_by_their_names(self):
        for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            ended = self.sbx("--report", name, "true", json_record=False)
            self.assertEqual((ended.status, json.loads(ended.out)["outcome"]["exit_code"]), (0, 0), ended)
        path = self.tmp / "log"
        with open(path, "wb") as log:
            self.sbx("--report", "/dev/stdout", "echo", "said", json_record=False, stdout=log)
        said, record = path.read_text().split("\n", 1)
        self.assertEqual((said, json.loads(record)["outcome"]["exit_code"]), ("said", 0))

    def test_a_report_that_cannot_be_written_stops_the_run_before_it_starts(self):
        for path in (self.tmp / "missing" / "r.json", self.tmp):
            ended = self.sbx("--report", path, "--", "touch", "/tmp/x")
            self.assertEqual((ended.status, ended.verdict), (125, ("setup-failed", "usage")), str(ended))
        ended = self.sbx("--report-fd", 97, "true")
        self.assertEqual((ended.status, ended.verdict), (125, ("setup-failed", "usage")), str(ended))

    def test_devices_are_written_to_and_stay(self):
        ended = self.exited(self.sbx("--report", "/dev/null", "true"))
        self.assertTrue(os.path.exists("/dev/null") and not os.path.isfile("/dev/null"), str(ended))

    def test_a_report_descriptor_gets_the_record_and_the_program_does_not(self):
        read, write = os.pipe()
        process = self.start_sbx("--report-fd", write, "--", "sh", "-c", f"echo forged >&{write} || exit 9", json_record=False,
                                 pass_fds=[write])
        os.close(write)
        ended = self.finish(process, json_record=False)
        with os.fdopen(read) as pipe:
            record = json.loads(pipe.read())
        self.assertEqual((ended.status != 0, record["outcome"]["exit_code"]), (True, ended.status), str(ended))

    def test_a_full_disk_is_an_error_not_a_lost_record(self):
        with open("/dev/full", "wb") as full:
            process = self.start_sbx("true", stdout=full)
            ended = self.finish(process, json_record=False)
        self.assertEqual(ended.status, 125, str(ended))
        self.assertIn(b"cannot write the report to stdout: No space left on device", ended.err)
        ended = self.sbx("--report", "/dev/full", "true", json_record=False)
        self.assertEqual(ended.status, 125, str(ended))
        self.assertIn(b'cannot write the report to "/dev/full": No space left on device', ended.err)

    def test_a_limit_of_file_sizes_is_an_error_not_the_end_of_sbx(self):
        """sbx's files for the sandbox are below the limit, its record is not; then nothing is."""
        path = self.tmp / "r.json"
        for limit, words in ((1024, f'cannot write the report to "{path}": File too large'), (0, "File too large")):
            small = lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            ended = self.sbx("--report", path, PROBE, "exit", 3, json_record=False, preexec_fn=small)
            self.assertEqual(ended.status, 125, str(ended))
            self.assertIn(words, ended.err.decode())
            self.assertIn("raise the limit of file sizes: ulimit -f", ended.err.decode())
            self.assertFalse(path.exists())
        self.assertEqual(self.sbx("--report", path, PROBE, "exit", 3, json_record=False).status, 3)
        self.assertTrue(path.exists())

    def test_dry_run_prints_the_plan_and_runs_nothing(self):
        ended = self.sbx("--dry-run", "--workspace", ".:read-write", "--env", "TOKEN=hunter2", "--", "touch", "made")
        self.assertEqual((ended.status, ended.record["schema"]), (0, "sbx.plan/1"))
        self.assertFalse((self.work / "made").exists())
        self.assertIn("TOKEN", ended.record["environment"])
        self.assertNotIn(b"hunter2", ended.out)
        self.exited(self.sbx("--workspace", ".:read-write", "--", "touch", "made"))
        self.assertTrue((self.work / "made").exists())

    def test_stages_are_timed_in_order(self):
        ended = self.sbx("--trace-time", "true", json_record=False)
        stamps = [int(line.split()[1]) for line in ended.err.decode().splitlines() if " us  " in line]
        self.assertGreater(len(stamps), 5, ended.err)
        self.assertEqual(stamps, sorted(stamps))


class Words(SbxTest):
    def test_a_note_is_said_once(self):
        path = self.write("near.toml", 'schema = 1\nextends = "shell"\n')
        ended = self.sbx("-p", path, "true", json_record=False)
        self.assertEqual(ended.err, b"", "a copy-on-write workspace does not reach the policy")
        ended = self.sbx("-p", path, "--workspace", ".:read-write", "true", json_record=False)
        self.assertEqual(ended.err.count(b"a program could change what the next run allows"), 1, ended)

    def test_an_uneventful_run_says_nothing(self):
        ended = self.sbx("true", json_record=False)
        self.assertEqual((ended.status, ended.out, ended.err), (0, b"", b""))

    def test_the_verdict_is_told_and_quiet_is_quiet(self):
        loud = self.sbx("--timeout", "200ms", "--", "sleep", "60", json_record=False)
        self.assertEqual(loud.status, 124)
        self.assertIn(b"limits.wall_time", loud.err)
        quiet = self.sbx("-q", "--timeout", "200ms", "--", "sleep", "60", json_record=False)
        self.assertEqual((quiet.status, quiet.err), (124, b""))

    def test_a_file_that_exists_only_outside_gets_a_hint(self):
        (self.work / "data.csv").write_text("1\n")
        ended = self.sbx("--", "cat", "data.csv", json_record=False)
        self.assertNotEqual(ended.status, 0)
        self.assertIn(b"add --read data.csv", ended.err)
        shown = self.sbx("--read", "data.csv", "--", "cat", str(self.work / "data.csv"), json_record=False)
        self.assertEqual((shown.out, shown.err), (b"1\n", b""), str(shown))

    def said(self, *words):
        ended = self.sbx(*words, json_record=False)
        return [line for line in ended.err.decode().splitlines() if line.startswith("sbx: ")]

    def test_an_empty_workspace_gets_a_hint_when_something_of_it_was_looked_for(self):
        (self.work / "something").write_text("")
        share = ["sbx: the working directory inside the sandbox is empty; to share this one copy-on-write, add --workspace .:overlay"]
        self.assertEqual(self.said("--", "sh", "-c", "cd ./nosuch || cat ."), share)
        self.assertEqual(self.said("true"), [])
        for words in (("false",), ("--", "sh", "-c", "exit 42"), ("--", "sh", "-c", "exit 2"), ("--", "cat", "nosuchfile"),
                      ("--workspace", ".:overlay", "false")):
            with self.subTest(words):
                self.assertEqual(self.said(*words), [])
        looked = self.said("--explain", "--", "sh", "-c", 'name=some; cat "${name}thing"')
        self.assertIn(f"sbx: cat looked for {self.work}/something, which the policy does not grant", looked)
        self.assertEqual(looked[-1:], share)

    def test_a_program_that_looks_for_its_file_by_itself_gets_the_hint(self):
        if shutil.which("make", path=self.environment()["PATH"]) is None:
            self.skipTest("make is not installed")
        self.assertEqual(self.said("make"), [])
        (self.work / "Makefile").write_text("all:\n\techo made\n")
        self.assertIn("--workspace .:overlay", self.said("make")[0])
        self.assertEqual(self.exit_of("--workspace", ".:overlay", "make"), 0)

    def exit_of(self, *words):
        return self.sbx(*words, json_record=False).status

    def test_a_hint_stands_beside_no_known_cause(self):
        (self.work / "something").write_text("")
        for known, words in (("denied: ptrace", ("--lang", "python", "-c", TRACE_ME + "; open('something')", "something")),
                             ("limit reached", ("--processes", "4", "--", "sh", "-c", "for i in 1 2 3 4 5 6; do sleep 60 & done; cat something")),
                             ("killed by signal 11, SIGSEGV (segmentation fault)", ("--", "sh", "-c", "kill -SEGV $$"))):
            with self.subTest(known):
                said = self.said(*words)
                self.assertTrue(any(known in line for line in said), said)
                self.assertFalse([line for line in said if "exists here" in line or "working directory" in line or "note:" in line], said)

    def test_a_failed_script_gets_one_note_and_no_option(self):
        """Wherever its streams go. What failed for another reason gets none."""
        note = "sbx: note: files outside the policy look absent; rerun with --explain to see which"
        for code, told in (("open('/nosuch')", [note]), ("import os; os.listdir('/nosuch')", [note]), ("raise PermissionError(13, 'Permission denied')", [note]),
                           ("raise SystemExit(3)", []), ("1/0", []), ("int('x')", []), ("assert False", []), ("raise BrokenPipeError(32, 'Broken pipe')", [])):
            command = ("--lang", "python", "-c", code)
            self.assertEqual(self.said(*command), told, code)
            joined = subprocess.run(self.command(*command, json_record=False), env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout.decode()
            self.assertEqual([line for line in joined.splitlines() if line.startswith("sbx: ")], told, code)
        self.assertEqual(self.said("--explain", "--lang", "python", "-c", "open('/nosuch')"), [])

    def test_a_hidden_file_is_not_offered(self):
        (self.work / ".env").write_text("A=1\n")
        # The same whether it exists or not: the name may be a program's, which learns nothing.
        for name in (".env", "sub/.env"):
            [said] = self.said("--", "cat", name)
            self.assertIn(f'"{name}" is hidden in the sandbox by filesystem.deny "**/.env"', said)
            self.assertNotIn("--read", said)

    def test_a_name_outside_the_directory_is_told_to_a_person_alone(self):
        note = self.write("notes.txt", "x", directory=self.home)
        self.write(".hidden/notes.txt", "x", directory=self.home)
        for name in (note, self.home / "nothing.txt", self.home / ".hidden/notes.txt", "/etc/shadow", "/root", "../" * 20 + "etc/shadow"):
            for command in (("cat", name), ("sh", "-c", f"cat {name}")):
                self.assertEqual([line for line in self.said("--", *command) if "exists" in line or "--read" in line], [], command)
                told = "exists here" in self.on_terminal(self.command("--", *command, json_record=False))[1]
                self.assertEqual(told, name == note, command)

    def test_a_name_in_a_shell_line_is_looked_for(self):
        (self.work / "a b").mkdir()
        (self.work / "a b" / "data:1.csv").write_text("1\n")
        [said] = self.said("--", "cat", "a b/data:1.csv")
        self.assertTrue(said.endswith("add --read 'a b/data\\:1.csv'"), said)
        self.assertEqual(self.said("--read", "a b/data\\:1.csv", "--", "cat", "a b/data:1.csv"), [])
        (self.work / "build.sh").write_text("#!/bin/sh\n")
        self.assertEqual(self.said("--", "sh", "-c", "echo x; ./build.sh; exit 127"),
                         ['sbx: "./build.sh" exists here but not in the sandbox; to show it, add --read ./build.sh'])

    def test_a_name_behind_a_link_is_offered_unless_it_is_private(self):
        target = self.write("shared/file", "x\n", directory=self.tmp)
        (self.work / "link").symlink_to("../shared/file")
        (self.work / "directory").symlink_to("../shared")
        share = ["--workspace", ".:overlay"]
        for name in ("link", "directory/file"):
            shown = self.on_terminal(self.command(*share, "--", "cat", name, json_record=False))[1]
            self.assertIn(f'sbx: "{name}" leads to "{target}", which is not in the sandbox; to show it, add --read {target}', shown)
            # A program may have made the link and may read the answer.
            self.assertEqual(self.said(*share, "--", "cat", name),
                             [f'sbx: "{name}" leads outside the workspace; sbx tells where on a terminal, and so does --explain'])
            explained = self.said("--explain", *share, "--", "cat", name)
            self.assertIn(f'sbx: "{name}" leads to "{target}", which is not in the sandbox; to show it, add --read {target}', explained)
        self.assertEqual(self.said(*share, "--read", target, "--", "cat", "link"), [])
        secret = self.write("private/.env", "x", directory=self.tmp)
        for number, private in enumerate((self.home, self.home.parent, "/", secret, "/dev/null", "/nowhere")):
            (self.work / f"private{number}").symlink_to(private)
            said = self.said(*share, "--", "sh", "-c", f"cat private{number}/x private{number}; exit 1")
            self.assertFalse([line for line in said if "--read" in line or "--workspace" in line], said)

    def git(self, *words, cwd):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@example", "-c", "protocol.file.allow=always", *words], cwd=cwd, check=True, capture_output=True,
                       env=self.environment())

    def test_the_repository_of_a_directory_is_offered(self):
        top = self.tmp / "repositories"
        main, share, commit = top / "main", ["-p", "shell"], ["--", "sh", "-c", "echo 2 >>f; git -c user.name=n -c user.email=e@example commit -qam x"]
        self.write("f", "1\n", directory=main)
        for words in (["init", "-q", "."], ["add", "."], ["commit", "-qm", "x"], ["worktree", "add", "-qb", "topic", top / "tree"],
                      ["clone", "-q", "--separate-git-dir", top / "apart", ".", top / "copy"], ["clone", "-qs", ".", top / "borrows"]):
            self.git(*map(str, words), cwd=main)

        def said(directory):
            return [line for line in self.sbx(*share, *commit, json_record=False, cwd=top / directory).err.decode().splitlines()
                    if line.startswith("sbx: ") and " gone with the sandbox: f" not in line]

        def shown(directory):
            command = self.command(*share, *commit, json_record=False)
            return self.on_terminal(["/bin/sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", top / directory, *command])[1]

        elsewhere = ["sbx: git needs a part of its repository outside the workspace; sbx tells where on a terminal, and so does --explain"]
        wider = f"--workspace {top}:overlay"
        self.assertEqual(said("main"), [])
        self.assertIn(f'sbx: the repository of this directory, "{main}/.git", is read-only in the sandbox; to share all of it copy-on-write, add {wider}', shown("tree"))
        self.assertEqual(said("tree"), ["sbx: the repository of this directory is read-only in the sandbox, and outside the workspace; sbx tells more on a terminal"])
        for directory, needs in (("copy", top / "apart"), ("borrows", main / ".git/objects")):
            self.assertIn(f'sbx: git needs "{needs}", which is not in the sandbox; to show it, add --read {needs}; to share all of it copy-on-write, add {wider}', shown(directory))
            self.assertEqual(said(directory), elsewhere)
        self.assertEqual(self.sbx(*share, "--workspace", f"{top}:overlay", *commit, cwd=top / "tree").outcome["exit_code"], 0)
        self.write("evil/.git", f"gitdir: {top}/private\n", directory=top)
        self.write("private/HEAD", "x", directory=top)
        self.assertEqual(said("evil"), [])

    def test_a_budget_that_ended_the_run_is_raised_where_it_was_set(self):
        """A line of a policy changes nothing where an option was typed."""
        sleep, much = ("--", "sleep", "60"), ("--", "dd", "if=/dev/zero", "of=/tmp/f", "bs=1K", "count=100", "status=none")
        short, small = (self.policy(f"[limits]\n{line}\n", name=name) for name, line in (("short.toml", 'wall_time = "200ms"'), ("small.toml", 'file_size = "64K"')))
        spent = "sbx: stopped: wall-time budget of 200 ms spent (limits.wall_time)"
        grown = "sbx: stopped: a file would have grown over 64 KiB (limits.file_size)"
        for words, end, cure in (
                (("--timeout", "200ms", *sleep), spent, "--timeout 400ms"),
                (("--set", 'limits.wall_time="200ms"', *sleep), spent, "--set 'limits.wall_time=\"400ms\"'"),
                (("-p", short, *sleep), spent, '--timeout 400ms, or limits.wall_time = "400ms" in the policy'),
                (("-p", short, "--timeout", "100ms", *sleep), spent.replace("200", "100"), "--timeout 200ms"),
                (("--set", 'limits.file_size="64K"', *much), grown, "--set 'limits.file_size=\"128K\"'"),
                (("-p", small, *much), grown, "--set 'limits.file_size=\"128K\"', or limits.file_size = \"128K\" in the policy")):
            self.assertEqual(self.said(*words), [end, f"sbx:   to allow more: {cure}"])

    def test_what_a_denial_offers_adds_to_what_is_allowed(self):
        """--set with the line of a policy would replace the list."""
        asked = ["--allow-host", "a.invalid:443", "--", "getent", "hosts", "b.invalid"]
        said = self.said(*asked)
        [cure] = [line for line in said if "to allow it" in line]
        self.assertIn('to allow it: --allow-host b.invalid:443, or network.allow = ["b.invalid:443"] in the policy', cure)
        self.assertEqual(self.said("--allow-host", "b.invalid:443", *asked), [])

    def test_low_options_of_a_denial_are_words(self):
        [denial] = self.sbx("--allow-host", "a.invalid", "--", "bash", "-c", "exec 3<>/dev/tcp/2001:db8::1/443").record["denials"]
        self.assertEqual(denial["options"], ["--allow-host", "[2001:db8::1]:443"])

    def test_names_from_inside_cannot_steer_a_terminal(self):
        code = TRACE_ME.replace("libc.ptrace", "libc.prctl(15, b'a\\033[2Jb'); libc.ptrace")
        ended = self.sbx("--", "python3", "-c", code, json_record=False)
        self.assertIn(b"ptrace", ended.err)
        self.assertIn(rb"a\x1b[2Jb", ended.err)
        self.assertNotIn(b"\x1b", ended.err)


if __name__ == "__main__":
    sbxtest.main()

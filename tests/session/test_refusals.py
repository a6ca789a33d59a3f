"""What a call or a session can't do is refused with a sentence, and never ignored."""

import fcntl
import os
import pathlib
import shutil
import signal
import subprocess

import sessiontest
import sbxtest
from harness import HANG
from sbxtest import SBX
from sessiontest import SessionTest


class RefusalTest(SessionTest):
    def refused(self, code, *words, status=125, **options):
        answer = self.run_sbx(*words, **options)
        self.assertEqual(answer.status, status, answer)
        self.assertIn(f"error[{code}]", answer.err, answer)
        return answer


class Calls(RefusalTest):
    def test_what_is_the_sessions_is_refused_to_a_call(self):
        self.start_session()
        for setting in ('syscalls.deny=["socket"]', 'limits.memory="20M"', "limits.processes=3", 'limits.disk="1M"', "limits.cpus=0.5",
                        'network.mode="none"', "session.calls=1", 'limits={memory="20M"}', 'environment.set={A="b"}'):
            answer = self.refused("not-of-a-call", "session", "exec", "work", "--set", setting, "--", "echo", "ran")
            self.assertEqual(answer.out, "", answer)
            self.assertIn(setting.partition("=")[0], answer.err)

    def test_twin_what_is_a_calls_own_is_enforced(self):
        self.start_session()
        spent = self.exec_json("--set", 'limits.wall_time="300ms"', "--", "sleep", "60")
        self.assertEqual(spent.verdict, ("over-budget", "wall_time"), spent)
        grown = self.exec_json("--set", 'limits.file_size="1K"', "--", "sh", "-c", "trap '' XFSZ; head -c 4000 /dev/zero >big; wc -c <big")
        self.assertEqual(grown.record["stdout"]["text"].strip(), "1024", grown)
        files = self.exec_json("--set", "limits.open_files=20", "--", "sh", "-c", "ulimit -n")
        self.assertEqual(files.record["stdout"]["text"], "20\n", files)
        cut = self.exec_json("--set", 'output.stdout="1K"', "--", "head", "-c", "4000", "/dev/zero")
        self.assertTrue(cut.record["stdout"]["truncated"], cut)

    def limits_met(self, code, status=1):
        """Of a call that fails: the limits that it met."""
        record = self.exec_json("--lang", "python", "-c", code).record
        self.assertEqual(record["outcome"]["exit_code"], status, record)
        return [each["limit"] for each in record["limits_met"]]

    def test_a_file_that_became_as_large_as_it_may_be_is_told_by_its_call_alone(self):
        """Python ignores SIGXFSZ: only the file shows it. What an earlier call left shows nothing, whatever its name is now."""
        self.start_session("--workspace", f"{self.work}:overlay", "--set", 'limits.file_size="1M"')
        grow = "open({!r}, 'wb', 0).write(bytes(1 << 19)); f = open({!r}, 'ab', 0); f.write(bytes(1 << 20)); f.write(b'x')"
        for name in ("/tmp/first", "second"):
            self.assertEqual(self.limits_met(grow.format(name, name)), ["file_size"])
            self.assertEqual(self.limits_met("raise SystemExit(3)", 3), [])
        self.assertEqual(self.limits_met("import os; os.rename('second', 'third'); os.chmod('third', 0o600); raise SystemExit(3)", 3), [])
        self.assertEqual(self.limits_met(grow.format("third", "third")), ["file_size"])
        self.assertEqual(self.limits_met("raise SystemExit(3)", 3), [])

    def test_a_cell_is_told_of_the_limit_by_its_words(self):
        """In a live directory nothing else tells of it."""
        self.start_session("--workspace", f"{self.work}:read-write", "--set", 'limits.file_size="1M"')
        answer = self.sbx_session("eval", "work", "-c", "file = open('big', 'wb', buffering=0); file.write(bytes(1 << 20)); file.write(b'x')")
        self.assertEqual((answer.status, "perhaps a file met limits.file_size" in answer.err), (1, True), answer)
        fine = self.sbx_session("eval", "work", "-c", "open('fits', 'wb').write(bytes(1 << 20))")
        self.assertEqual((fine.status, "limits" in fine.err), (0, False), fine)

    def test_what_needs_a_client_that_stays_is_refused_in_the_background(self):
        self.start_session()
        for option in (("--report", self.tmp / "report"), ("--report-fd", "1"), ("-i",), ("--die-with-parent",)):
            answer = self.refused("usage", "session", "exec", "work", "-d", *option, "--", "true")
            self.assertIn("--detach", answer.err)
        self.assertEqual(self.sbx_session("calls", "--json", "work").json["calls"], [])

    def test_a_call_in_the_background_has_its_program_and_its_file(self):
        self.start_session()
        started = self.sbx_session("exec", "work", "-d", "--json", "--lang", "python", "-", stdin=b"print('from a pipe')")
        self.assertEqual((started.json["schema"], started.json["session"]), ("sbx.session/1", "work"), started)
        self.assertEqual(self.sbx_session("wait", "work", started.json["call"]).status, 0)
        self.assertEqual(self.sbx_session("logs", "work", started.json["call"]).out, "from a pipe\n")
        self.write("input", "from a file\n")
        call = self.detach("--stdin", "input", "--", "cat")
        self.assertEqual(self.sbx_session("wait", "work", call).status, 0)
        self.assertEqual(self.sbx_session("logs", "work", call).out, "from a file\n")
        call = self.detach("--", "cat")  # nothing else is read
        self.assertEqual(self.sbx_session("wait", "work", call).status, 0)

    def test_stdin_is_a_file_of_the_callers_directory(self):
        self.start_session("--workspace", f"{self.work}:overlay")
        elsewhere = self.tmp / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "input").write_text("elsewhere\n")
        self.assertEqual(self.exec_ok("--stdin", "input", "--", "cat", cwd=elsewhere).out, "elsewhere\n")
        self.refused("cannot-open", "session", "exec", "work", "--stdin", "etc/hostname", "--", "cat", cwd=elsewhere)
        self.refused("not-a-file", "session", "exec", "work", "--stdin", ".", "--", "cat", cwd=elsewhere)
        read, write = os.pipe()
        os.write(write, b"by number\n")
        os.close(write)
        os.set_inheritable(read, True)
        self.assertEqual(self.exec_ok("--stdin", f"/dev/fd/{read}", "--", "cat", pass_fds=(read,)).out, "by number\n")
        os.close(read)
        fifo = elsewhere / "fifo"
        os.mkfifo(fifo)
        waits = sbxtest.start([SBX, "session", "exec", "work", "--stdin", "fifo", "--", "cat"], env=self.environment(), cwd=elsewhere,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        fifo.write_text("through a FIFO\n")
        out, err = waits.communicate(timeout=HANG)
        self.assertEqual((out, waits.returncode), (b"through a FIFO\n", 0), err)

    def test_results_of_the_background_outlast_other_calls(self):
        self.start_session()
        call = self.detach("--", "sh", "-c", "echo kept; exit 5")
        self.assertEqual(self.sbx_session("wait", "work", call).status, 5)
        for _ in range(66):
            self.exec_ok("--", "true")
        self.assertEqual(self.sbx_session("wait", "work", call).status, 5)
        self.assertEqual(self.sbx_session("logs", "work", call).out, "kept\n")
        forgotten = self.refused("no-such-call", "session", "wait", "work", "2")
        self.assertIn("no longer kept", forgotten.err)
        self.assertNotIn("no longer", self.refused("no-such-call", "session", "wait", "work", "999").err)

    def test_wait_has_no_record_of_a_call_with_a_client(self):
        self.start_session()
        self.exec_ok("--", "true")
        self.refused("not-in-background", "session", "wait", "work", "1", "--json")
        self.assertEqual(self.sbx_session("wait", "work", "1").status, 0)

    def test_what_is_typed_wrong_is_no_status_of_a_call(self):
        self.start_session()
        self.refused("unknown-option", "session", "exec", "work", "--bogus", "true")
        self.refused("nothing-to-run", "session", "exec", "work")
        self.refused("no-such-call", "session", "wait", "work", "99")
        answer = self.run_sbx("session", "exec", "--json", "--bogus", "work", "true")
        self.assertEqual((answer.status, answer.record["outcome"]["code"]), (125, "unknown-option"), answer)

    def test_cures_name_the_session(self):
        self.start_session("--timeout", "300ms")
        spent = self.sbx_session("exec", "work", "--", "sleep", "60")
        self.assertIn("to allow more, start the session with: --timeout 600ms", spent.err)
        spent = self.sbx_session("exec", "work", "--timeout", "100ms", "--", "sleep", "60")
        self.assertIn("to allow more: --timeout 200ms\n", spent.err)
        spent = self.sbx_session("exec", "work", "--timeout", "200ms", "--", "sleep", "60")
        self.assertIn("to allow more: --timeout 300ms\n", spent.err, "a call has no more than its session")
        self.stop_session()
        self.start_session()  # what follows must have the time that it needs
        grown = self.sbx_session("exec", "work", "--set", 'limits.file_size="64K"', "--", "dd", "if=/dev/zero", "of=/tmp/f", "bs=1K", "count=100", "status=none")
        self.assertIn("over 64 KiB (limits.file_size)\nsbx:   to allow more: --set 'limits.file_size=\"128K\"'\n", grown.err)
        self.write("data.csv", "1\n")
        self.assertIn("start the session with --read data.csv", self.sbx_session("exec", "work", "--", "cat", "data.csv").err)
        got = self.sbx_session("get", "work", "data.csv")
        self.assertNotIn("--read", got.err, got)
        absent = self.sbx_session("exec", "work", "absent")
        self.assertEqual(absent.status, 127, absent)
        self.assertIn("no command 'absent' on PATH", absent.err)
        # exec has no --read: nothing tells to give it one.
        for words in (("absent",), ("--", "./absent"), ("--", "/usr/bin/absent"), ("--", "absent"), ("--", "echo hi | wc -c"), ("--stdin", ".", "--", "cat")):
            told = self.sbx_session("exec", "work", *words).err
            self.assertIn("help: ", told)
            self.assertNotRegex(told, r"(?<!start )--read", words)
            self.assertNotIn("sbx run", told)
        self.assertIn("sbx session put work FILE", absent.err)
        self.assertIn("-- sh -c 'echo hi | wc -c'", self.sbx_session("exec", "work", "--", "echo hi | wc -c").err)
        self.assertEqual(self.exec_ok("--", "sh", "-c", "echo hi | wc -c").out, "3\n")
        self.assertIn("--env NAME=VALUE", self.sbx_session("exec", "work", "--env", "HOME", "--", "true").err)

    def test_a_call_hears_who_ended_it(self):
        facts = self.start_session("--set", 'session.lifetime="5s"')
        ended = self.sbx_session("exec", "work", "--json", "--", "sleep", "60")
        self.assertEqual(ended.status, 128 + signal.SIGTERM, ended)
        self.assertEqual((ended.json["outcome"]["detail"], ended.json["outcome"].get("notes", [])), ("cancelled by SIGTERM: session.lifetime is over", []), ended)
        sessiontest.wait_until(lambda: not sessiontest.process_lives(facts["pid"]), "the session ends")


class Sessions(RefusalTest):
    def run_in(self, *words, **options):
        return self.run_sbx("run", "--session", "work", *words, **options)

    def test_what_becomes_of_a_run_at_its_end_is_refused(self):
        for option in (("--keep", "set"), ("--apply",), ("--yes",), ("--diff",), ("--out", "out"), ("--collect", "*"), ("--dry-run",),
                       ("--trace-time",), ("--github",)):
            answer = self.refused("usage", "run", "--session", "work", *option, "--", "echo", "ran")
            self.assertEqual(answer.out, "", answer)
            self.assertIn("--session exclude each other", answer.err)
        self.assertEqual(self.sbx_session("list", "--json").json["sessions"], [])

    def started(self):
        self.pids.append(self.sbx_session("show", "--json", "work").json["pid"])
        sbxtest.known_children().add(self.pids[-1])

    def test_a_session_runs_in_one_directory(self):
        first, second = self.tmp / "first", self.tmp / "second"
        for directory in (first, second):
            directory.mkdir()
            (directory / "script.py").write_text(f"print('{directory.name}')\n")
        self.assertEqual(self.run_in("-p", "agent", "script.py", cwd=first).out, "first\n")
        self.started()
        self.assertEqual(self.run_in("-p", "agent", "script.py", cwd=first).out, "first\n")
        answer = self.refused("other-directory", "run", "--session", "work", "-p", "agent", "script.py", cwd=second)
        self.assertIn(str(first), answer.err)
        self.assertIn(str(second), answer.err)
        self.assertEqual(self.exec_ok("script.py", cwd=second).out, "first\n")

    def test_twin_a_directory_that_is_named_is_that_from_anywhere(self):
        self.assertEqual(self.run_in("--workspace", f"{self.work}:overlay", "--", "pwd").out, f"{self.work}\n")
        self.started()
        self.assertEqual(self.run_in("--workspace", f"{self.work}:overlay", "--", "pwd", cwd=self.tmp).out, f"{self.work}\n")

    def test_a_policy_of_the_environment_counts(self):
        self.start_session()
        self.refused("other-policy", "run", "--session", "work", "--", "true", env={"SBX_POLICY": "strict"})
        self.assertEqual(self.run_in("--", "true").status, 0)

    def test_another_policy_is_told_by_its_first_difference(self):
        self.start_session("--memory", "200M")
        answer = self.refused("other-policy", "run", "--session", "work", "--memory", "100M", "--", "true")
        self.assertIn('its limits.memory is "200M", not "100M"', answer.err)
        self.assertIn("leave out the options that grant or limit, or", answer.err)
        self.assertIn('its name is "default", not "strict"', self.refused("other-policy", "run", "--session", "work", "-p", "strict", "--", "true").err)
        self.assertEqual(self.run_in("--memory", "200M", "--", "true").status, 0)

    def test_a_directory_that_can_not_be_the_workspace_is_named(self):
        """Where the home directory is below, as plain `sbx run` says it there."""
        said = "can't be used as the workspace (above the home directory); running in an empty /work"
        started = self.sbx_session("start", "work", cwd=self.home.parent)
        self.assertEqual((started.status, started.out), (0, "work\n"), started)
        self.assertIn(said, started.err)
        self.started()
        self.assertIn("workspace  empty\n", self.sbx_session("show", "work").out)
        self.stop_session()
        first = self.run_in("--", "pwd", cwd=self.home.parent)
        self.assertEqual(first.out, "/work\n", first)
        self.assertIn(said, first.err)
        self.started()
        second = self.run_in("--", "pwd", cwd=self.home.parent)
        self.assertEqual((second.out, second.err), ("/work\n", ""), second)
        self.stop_session()
        started = self.sbx_session("start", "--json", "work", cwd=self.home.parent)
        self.assertEqual(started.err, "")
        self.assertIn(said, started.json["notes"][0])
        self.started()
        self.stop_session()
        self.assertEqual(self.start_session("-p", "agent")["notes"], [], "the twin: a directory that can be it")

    def full_pipe(self):
        """Whoever writes to it waits until it is read."""
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        os.set_blocking(write, False)
        try:
            while os.write(write, b"." * 4096):
                pass
        except BlockingIOError:
            os.set_blocking(write, True)
        return read, write

    def all_of(self, read):
        said = b""
        while block := os.read(read, 65536):
            said += block
        return said.lstrip(b".")

    def starting(self):
        """A client whose session's process has something to say, and nobody hears it yet."""
        read, write = self.full_pipe()
        policy = self.policy("[limits]\nmemroy = 1\n")
        client = sbxtest.start([SBX, "session", "start", "-p", str(policy), "work"], env=self.environment(), cwd=self.work,
                               stdin=subprocess.DEVNULL, stderr=write)
        os.close(write)
        sessiontest.wait_until(lambda: (self.directory() / "work").exists(), "it has begun")
        process, = sessiontest.children(client.pid)
        return client, process, read

    def test_a_start_that_is_cancelled_leaves_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            client, process, read = self.starting()
            client.send_signal(number)
            sessiontest.wait_until(lambda: not sessiontest.process_lives(process), "the session's process has ended")
            said = self.all_of(read)
            self.assertEqual(client.wait(HANG), 128 + number, said)
            self.assertTrue(said.endswith(b"sbx: cancelled: no session was started\n"), said)
            self.assertEqual(list(self.directory().iterdir()), [])

    def test_twin_a_start_that_fails_by_itself(self):
        client, _, read = self.starting()
        said = self.all_of(read)
        self.assertEqual(client.wait(HANG), 125, said)
        self.assertIn(b"memroy", said)

    def test_a_start_is_not_cancelled_before_its_name_is_told(self):
        """Then a signal comes too late: the caller has the name, to stop it."""
        read, write = self.full_pipe()
        client = sbxtest.start([SBX, "session", "start", "work"], env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL, stdout=write)
        os.close(write)
        sessiontest.wait_until(lambda: self.sbx_session("show", "work").status == 0, "it takes calls")
        sessiontest.wait_until(lambda: pathlib.Path(f"/proc/{client.pid}/wchan").read_text() in ("pipe_write", "anon_pipe_write"), "it writes the name")
        client.send_signal(signal.SIGINT)
        self.assertEqual(self.all_of(read), b"work\n")
        self.assertEqual(client.wait(HANG), 0)
        self.started()

    def test_a_mistyped_name_stops_nothing_and_says_so(self):
        self.start_session()
        answer = self.refused("no-such-session", "session", "stop", "work", "nosuch", status=2)
        self.assertIn("nothing was stopped", answer.err)
        self.exec_ok("--", "true")
        self.assertNotIn("nothing was stopped", self.refused("no-such-session", "session", "stop", "nosuch", status=2).err)

    def test_one_that_is_starting_or_ending_is_not_said_to_be_another(self):
        self.start_session()
        place = self.directory() / "between"
        place.mkdir(mode=0o700)
        with open(place / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # as its process does
            answer = self.refused("no-such-session", "session", "exec", "between", "--", "true")
            self.assertIn("it is starting or ending", answer.err)
            self.assertNotIn("did you mean", answer.err)
        self.assertIn('there is no session "between"', self.refused("no-such-session", "session", "exec", "between", "--", "true").err)

    def test_reading_from_a_full_private_disk_meets_no_limit(self):
        """Twin: what writes there does."""
        self.start_session("--workspace", ".:overlay", "--disk", "2M")
        self.sbx_session("exec", "work", "--", "sh", "-c", "dd if=/dev/zero of=big bs=64k")
        for words in (("ls", "work"), ("get", "work", "big", "--out", self.tmp)):
            answer = self.sbx_session(*words)
            self.assertEqual((answer.status, "limit" in answer.err), (0, False), answer)
        self.assertEqual((self.tmp / "big").stat().st_size, 2 << 20)
        self.write("more", "x" * 100_000, directory=self.tmp)
        refused = self.sbx_session("put", "work", self.tmp / "more")
        self.assertNotEqual(refused.status, 0, refused)
        self.assertIn("limits.disk", refused.err, refused)

    def test_a_full_disk_is_named_and_ends_no_session(self):
        """Of a state directory with 256 KiB, in mounts of the test's own; runtime files have another place."""
        state = self.home / ".local/state"
        runtime = self.tmp / "runtime"
        state.mkdir(parents=True)
        runtime.mkdir(mode=0o700)
        script = f"""mount -t tmpfs -o size=256k none {state} || exit 77
sbx session start --workspace .:overlay work && sbx session exec work -- sh -c 'head -c 1000000 /dev/urandom >big' || exit 78
for words in 'keep work set' 'stop --keep set work' 'apply --yes work'; do echo "$words"; sbx session $words; echo $?; done 2>&1
sbx session exec work -- echo alive
sbx changes list --json
sbx session exec work -- sh -c 'echo small >small'
for words in 'keep work part' 'stop --keep rest work' 'apply --yes work'; do echo "$words"; sbx session $words; echo $?; done 2>&1
sbx changes drop part rest
sbx session exec work -- sh -c 'echo small >big'
sbx session stop --keep set work && echo kept
ls {state}/sbx/changes {state}/sbx/applying/changes"""
        ended = subprocess.run(["/usr/bin/unshare", *(["-Ur"] if os.geteuid() else []), "-m", "/bin/sh", "-c", f"sbx() {{ {SBX} \"$@\"; }}\n{script}"],
                               env=self.environment({"XDG_RUNTIME_DIR": str(runtime)}), cwd=self.work, stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG)
        told = ended.stdout.decode() + ended.stderr.decode()
        self.assertEqual(ended.returncode, 0, told)
        self.assertEqual(told.count(f"cannot keep the changes in '{state}/sbx"), 4, told)
        self.assertEqual(told.count("sbx: kept 1 change: 1 created: "), 2, told)
        self.assertEqual(told.count("sbx: not kept: big: "), 2, told)
        self.assertEqual(told.count("No space left on device"), 6, told)
        self.assertEqual(told.count("sbx changes drop NAME"), 6, told)
        self.assertEqual(told.count("the session lives on"), 2, told)
        self.assertEqual(told.count("\n125\n"), 6, told)
        self.assertIn("\nalive\n", told)
        self.assertIn('"sets":[]', told)
        self.assertIn("\nkept\n", told)
        self.assertTrue(ended.stdout.decode().endswith(f"{state}/sbx/applying/changes:\n\n{state}/sbx/changes:\nset\n"), told)

    def test_a_denied_name_that_the_host_makes_later_is_read_by_no_next_call(self):
        """At each moment between calls and cells; its twin is an allowed name. What is moved away is no reason any more."""
        self.write("sub/deep/x", "x")
        shown = self.tmp / "shown"
        shown.mkdir()
        (shown / "x").write_text("x")
        self.start_session("--workspace", ".:overlay", "--read", shown)
        self.assertEqual(self.sbx_session("eval", "work", "-c", "1").out, "1\n")
        moved = self.tmp / "moved"
        for place in ("sub/.env", "sub/deep/.netrc", "new/.ssh", shown / ".env"):
            denied = self.work / place
            allowed = denied.with_name("notes")
            script = f"for p in {denied} {allowed}; do [ ! -f $p ] || cat $p; [ ! -d $p ] || cat $p/*; done"
            code = f"import subprocess; print(subprocess.run(['sh', '-c', {script!r}], capture_output=True, text=True).stdout)"
            ways = (["exec", "work", "--", "sh", "-c", script], ["exec", "work", "--json", "--", "sh", "-c", script], ["eval", "work", "-c", code],
                    ["eval", "--lang", "bash", "work", "-c", script])
            denied.parent.mkdir(exist_ok=True)
            for path in (allowed, denied):
                if path.name == ".ssh":
                    path.mkdir()
                (path / "key" if path.is_dir() else path).write_text("s3cr3t")
                for words in ways:
                    with self.subTest(path=path, words=words):
                        answer = self.sbx_session(*words)
                        is_denied = path == denied
                        self.assertEqual((answer.status, "s3cr3t" in answer.out), (125, False) if is_denied else (0, True), answer)
                        self.assertEqual("denied-later" in answer.err + answer.out, is_denied, answer)
            denied.rename(moved)
            self.assertEqual(self.exec_ok("--", "echo", "on").out, "on\n")
            self.assertEqual(self.sbx_session("eval", "work", "-c", "2").out, "2\n")
            shutil.rmtree(moved) if moved.is_dir() else moved.unlink()

    def test_a_workspace_that_is_moved_away_is_read_by_no_next_call(self):
        """The session shows it wherever it is, so a denied name made in it there would be read."""
        self.write("x", "x")
        self.start_session("--workspace", f"{self.work}:overlay")
        moved = self.work.with_name("moved")
        self.work.rename(moved)
        (moved / ".env").write_text("s3cr3t")
        for make in (lambda: None, self.work.mkdir, lambda: (self.work.rmdir(), self.work.symlink_to(moved))):
            make()
            answer = self.sbx_session("exec", "work", "--", "cat", ".env", cwd=self.tmp)
            self.assertEqual((answer.status, answer.out), (125, ""), answer)
            self.assertIn("error[denied-later]", answer.err, answer)
        self.work.unlink()
        (moved / ".env").unlink()
        moved.rename(self.work)
        self.assertEqual(self.exec_ok("--", "cat", "x").out, "x")

    def test_more_names_than_are_looked_at_again_are_told(self):
        for i in range(10_001):
            (self.work / f"f{i}").touch()
        self.start_session("--workspace", ".:overlay")
        answer = self.exec_json("--", "true")
        self.assertIn("filesystem.deny", [each["what"] for each in answer.record["degraded"]])
        for i in range(100):
            (self.work / f"f{i}").unlink()
        self.assertNotIn("filesystem.deny", [each["what"] for each in self.exec_json("--", "true").record["degraded"]])

    def test_files_are_copied_when_a_session_starts(self):
        self.write("input", "x\n")
        self.start_session()
        self.refused("usage", "run", "--session", "work", "--in", "input:copied", "--", "cat", "copied")

    def test_variables_are_the_calls(self):
        read, write = os.pipe()
        os.write(write, b"SECRET=1\n")
        os.close(write)
        answer = self.run_in("--env-fd", str(read), "--env", "OTHER=2", "--", "sh", "-c", "echo $SECRET $OTHER", pass_fds=(read,))
        os.close(read)
        self.assertEqual(answer.out, "1 2\n", answer)
        self.started()
        self.assertEqual(self.exec_ok("--", "sh", "-c", "echo ${SECRET-none} ${OTHER-none}").out, "none none\n")

    def test_variables_of_a_descriptor_reach_a_session(self):
        read, write = os.pipe()
        os.write(write, b"SECRET=1\n")
        os.close(write)
        self.start_session("--env-fd", str(read), pass_fds=(read,))
        os.close(read)
        self.assertEqual(self.exec_ok("--", "sh", "-c", "echo $SECRET").out, "1\n")

    def test_each_failure_has_its_record(self):
        for code, words in (("unknown-policy", ("-p", "nosuch")), ("bad-session-name", ("--session", "No")), ("usage", ("--keep", "x"))):
            answer = self.run_in("--json", *words, "--", "true")
            self.assertEqual(answer.status, 125, answer)
            self.assertEqual((answer.record["outcome"]["status"], answer.record["outcome"]["code"]), ("setup-failed", code), answer)
            self.assertEqual(answer.err.count("error["), 1, answer)

    def test_names_and_times_that_make_no_sense(self):
        self.refused("bad-session-name", "session", "start", "", status=2)
        self.refused("bad-session-name", "session", "start", "Work", status=2)
        self.start_session()
        for time in ("0s", "1ms", "2"):
            self.assertIn(f'"{time}"', self.refused("bad-value", "session", "extend", "work", time, status=2).err)
        self.assertEqual(self.exec_ok("--", "true").out, "")

    def test_a_session_that_hangs_is_named_and_holds_up_no_other(self):
        facts = self.start_session()
        self.start_session(name="other")
        os.kill(facts["pid"], signal.SIGSTOP)
        self.addCleanup(lambda: sessiontest.process_lives(facts["pid"]) and os.kill(facts["pid"], signal.SIGCONT))
        listed = self.sbx_session("list", "--json")
        self.assertEqual([each["name"] for each in listed.json["sessions"]], ["other"], listed)
        self.assertIn("session-silent", listed.err)
        self.assertIn(f"kill -CONT {facts['pid']}", listed.err)
        os.kill(facts["pid"], signal.SIGCONT)

    def test_what_a_killed_session_left_goes_with_the_next_command(self):
        facts = self.start_session()
        self.start_session(name="other")
        sessiontest.kill(facts["pid"])
        self.assertEqual(self.sbx_session("show", "other").status, 0)
        self.assertEqual([each.name for each in self.directory().iterdir()], ["other"])

    def test_an_answer_that_nobody_gets_leaves_nothing(self):
        with open("/dev/full", "wb") as full:
            failed = sbxtest.start([SBX, "session", "start", "work"], env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL,
                                   stdout=full, stderr=subprocess.DEVNULL)
            self.assertEqual(failed.wait(timeout=HANG), 125)
            self.assertEqual(self.sbx_session("list", "--json").json["sessions"], [])
            self.start_session()
            failed = sbxtest.start([SBX, "session", "exec", "work", "-d", "--", "sleep", "60"], env=self.environment(), cwd=self.work,
                                   stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.DEVNULL)
            self.assertEqual(failed.wait(timeout=HANG), 125)
        self.assertEqual(self.sbx_session("wait", "work", "1").status, 128 + signal.SIGTERM)

    def test_a_log_that_is_followed_ends_with_its_session(self):
        self.start_session()
        # The session ends while the follower has a part of what the call says at its end, and not the rest.
        call = self.detach("--", "sh", "-c", "trap 'echo one; sleep 0.2; echo two; sleep 0.2; echo last words; exit' TERM; echo begun; while :; do sleep 0.02; done")
        follower = sbxtest.start([SBX, "session", "logs", "-f", "work", str(call)], env=self.environment(), cwd=self.work,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(follower.stdout.readline(), b"begun\n")
        sessiontest.wait_until(lambda: sessiontest.waits_for_answer(follower), "it waits for more")
        self.stop_session()
        out, err = follower.communicate(timeout=HANG)
        self.assertEqual((follower.returncode, out), (0, b"one\ntwo\nlast words\n"), err)
        self.assertNotIn(b"error[", err)
        self.assertIn(b"the session was stopped", err)  # of the call, which hears who ended it

    def test_what_is_left_out_is_in_the_json(self):
        self.start_session()
        listed = self.sbx_session("ls", "--json", "work", "nosuch")
        self.assertEqual((listed.status, listed.err, len(listed.json["left"])), (125, "", 1), listed)
        self.assertFalse(listed.json["is_cut"])

    def test_show_says_workspace_and_budgets(self):
        self.start_session("--memory", "200M", "--workspace", f"{self.work}:overlay")
        shown = self.sbx_session("show", "work").out
        self.assertIn("workspace  overlay\n", shown)
        self.assertIn("memory 200 MiB", shown)
        facts = self.sbx_session("show", "--json", "work").json
        self.assertEqual((facts["workspace"], facts["limits"]["memory_bytes"]), ("overlay", 200 << 20))


if __name__ == "__main__":
    sessiontest.main()

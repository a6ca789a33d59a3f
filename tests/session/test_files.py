"""The file service of a session: streams in and out, parts of files, and what changes files inside. Errors have kinds."""

import os
import pty
import re
import select
import subprocess

import sessiontest
import sbxtest
from sbxtest import SBX
from sessiontest import SessionTest

MANY = 3 << 20  # more bytes than a frame and a pipe hold


class FilesTest(SessionTest):
    def begin(self, *options):
        self.start_session("--workspace", f"{self.work}:overlay", *options)

    def kind(self, *words, status=125, **options):
        """The kind of the error that a command answers with, and its side."""
        answer = self.sbx_session(*words, "--json", **options)
        self.assertEqual(answer.status, status, answer)
        self.fits("sbx.error.1", answer.json)
        error = answer.json["error"]
        return error.get("kind"), error.get("side")

    def content(self, path, *options):
        process = sbxtest.start([SBX, "session", "get", "work", path, "--as", "-", *map(str, options)], env=self.environment(), cwd=self.work,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate()
        self.assertEqual((process.returncode, err), (0, b""))
        return out


class Streams(FilesTest):
    def test_standard_input_becomes_a_file_and_a_file_standard_output(self):
        self.begin()
        for data in (b"", b"text\n", bytes(range(256)), os.urandom(MANY)):
            with self.subTest(size=len(data)):
                put = self.sbx_session("put", "work", "-", "deep/er/file", "--json", stdin=data)
                self.assertEqual((put.status, put.json["bytes"], put.json["files"], put.json["left"]), (0, len(data), 1, []), put)
                self.fits("sbx.session.1", put.json)
                self.assertEqual(self.content("deep/er/file"), data)
                self.assertEqual(self.sbx_session("get", "work", "deep/er/file", "--as", self.tmp / "copy").status, 0)
                self.assertEqual((self.tmp / "copy").read_bytes(), data)
        self.assertEqual(self.exec_ok("--", "stat", "-c", "%a %s", "deep/er/file").out, f"644 {MANY}\n")
        self.assertEqual(self.sbx_session("put", "work", "-", "/tmp/x", stdin=b"1").err, "sbx: /tmp/x (1 byte)\n")

    def test_a_part_of_a_file(self):
        self.begin("--set", 'filesystem.outputs.max_bytes="1M"')
        data = os.urandom(MANY)
        self.assertEqual(self.sbx_session("put", "work", "-", "file", stdin=data).status, 0)
        for offset, limit in ((0, 10), (5, 1), (MANY - 3, 10), (MANY, 10), (MANY + 5, 1), (4095, 1 << 20)):
            self.assertEqual(self.content("file", "--offset", offset, "--limit", limit), data[offset:offset + limit])
        self.assertEqual(self.content("file", "--offset", MANY - 5), data[-5:])
        self.assertEqual(self.kind("get", "work", "file", "--as", self.tmp / "copy"), ("too-large", "sandbox"))
        self.assertFalse((self.tmp / "copy").exists())

    def test_a_sender_that_is_killed_leaves_the_old_file(self):
        self.begin()
        self.assertEqual(self.sbx_session("put", "work", "-", "file", stdin=b"old").status, 0)
        reading, writing = os.pipe()
        client = sbxtest.start([SBX, "session", "put", "work", "-", "file"], env=self.environment(), cwd=self.work, stdin=reading, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(reading)
        os.write(writing, b"new")
        sessiontest.wait_until(lambda: ".sbx-" in self.sbx_session("exec", "work", "--", "ls", "-A").out, "it has begun to write")
        client.kill()
        client.wait()
        os.close(writing)
        sessiontest.wait_until(lambda: all(each["state"] == "ended" for each in self.sbx_session("calls", "--json", "work").json["calls"]), "its call has ended")
        self.assertEqual(self.content("file"), b"old")

    def test_as_replaces_files_and_nothing_else(self):
        policy = self.write("p.toml", 'schema = 1\nextends = "agent"\n')
        self.start_session("-p", policy, "--workspace", f"{self.work}:overlay")
        self.assertEqual(self.sbx_session("put", "work", "-", "file", stdin=b"new").status, 0)
        (self.tmp / "target").write_text("host")
        (self.tmp / "link").symlink_to(self.tmp / "target")
        (self.tmp / "directory").mkdir()
        got = self.sbx_session("get", "work", "file", "--json", "--as", self.tmp / "link")
        self.assertEqual((got.status, got.json["files"][0]["replaced"]), (0, True), got)
        self.fits("sbx.session.1", got.json)
        self.assertEqual(((self.tmp / "target").read_text(), (self.tmp / "link").read_text(), (self.tmp / "link").is_symlink()), ("host", "new", False))
        for device in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            answer = self.sbx_session("get", "work", "file", "--as", device)
            self.assertEqual((answer.status, "--as - writes to standard output" in answer.err), (2, True), answer)
        self.assertEqual(self.kind("get", "work", "file", "--as", self.tmp / "directory"), ("is-directory", "host"))
        self.assertEqual(self.kind("get", "work", "file", "--as", policy), ("not-permitted", "host"))
        self.assertIn("agent", policy.read_text())
        self.assertEqual(self.sbx_session("get", "work", "nowhere", "--as", self.tmp / "absent").status, 125)
        self.assertFalse((self.tmp / "absent").exists())

    def test_get_keeps_the_time_of_the_last_modification(self):
        """The twin is what apply and --out write: sandbox/test_modes.py."""
        self.begin()
        self.exec_ok("--", "touch", "-d", "@981173106", "file")
        self.assertEqual(self.sbx_session("get", "work", "file", "--out", self.tmp / "out").status, 0)
        self.assertEqual((self.tmp / "out/file").stat().st_mtime, 981_173_106)

    def test_a_stream_leaves_a_files_mode(self):
        """As a shell's redirection does; what is new has the mode that the caller's umask leaves."""
        self.begin()
        modes = {"secret": "600", "program": "755", "both": "664", "writable": "200"}
        for name, mode in modes.items():
            self.exec_ok("--", "sh", "-c", f"echo before >{name}; chmod {mode} {name}")
            self.assertEqual(self.sbx_session("put", "work", "-", name, stdin=b"after").status, 0)
        self.exec_ok("--", "sh", "-c", "cp program suid; chmod 4755 suid")
        self.assertEqual(self.sbx_session("put", "work", "-", "suid", stdin=b"after").status, 0)
        self.assertEqual(self.sbx_session("put", "work", "-", "new", stdin=b"after").status, 0)
        for name, mode in {**modes, "suid": "755", "new": "644"}.items():
            self.assertEqual(self.exec_ok("--", "sh", "-c", f"stat -c %a {name}; chmod 600 {name}; cat {name}").out, f"{mode}\nafter", name)

    def test_what_leads_to_the_policy_is_replaced_by_nothing(self):
        """Neither by `get` nor by `apply`; other links beside it are."""
        self.write("elsewhere/real.toml", 'schema = 1\nextends = "agent"\n', directory=self.tmp)
        for name in ("policy.toml", "other.toml"):
            (self.work / name).symlink_to("../elsewhere/real.toml")
        self.start_session("-p", "./policy.toml", "--workspace", f"{self.work}:overlay")
        self.exec_ok("--", "sh", "-c", "for i in policy other; do echo 1 > new; mv -f new $i.toml; mkdir -p d; echo 1 > d/$i.toml; done; true")
        applied = self.sbx_session("apply", "work", "--yes", "*.toml")
        self.assertEqual([(self.work / f"{name}.toml").is_symlink() for name in ("policy", "other")], [True, False], applied)
        (self.work / "other.toml").unlink()
        (self.work / "other.toml").symlink_to("../elsewhere/real.toml")
        self.assertEqual(self.kind("get", "work", "d/policy.toml", "--as", self.work / "policy.toml"), ("not-permitted", "host"))
        got = self.sbx_session("get", "work", "d/.", "--out", self.work)
        self.assertIn("a policy file", got.err)
        self.assertEqual([(self.work / f"{name}.toml").is_symlink() for name in ("policy", "other")], [True, False], got)


    def test_a_file_whose_size_says_0_is_read_to_its_end(self):
        """Files of /proc."""
        self.begin()
        version = self.exec_ok("--", "cat", "/proc/version").out.encode()
        self.assertEqual(self.content("/proc/version"), version)
        self.assertEqual(self.content("/proc/version", "--offset", 3, "--limit", 5), version[3:8])
        self.assertEqual(self.content("/proc/version", "--offset", len(version)), b"")
        self.assertEqual(self.sbx_session("get", "work", "/proc/version", "--out", self.tmp / "out").status, 0)
        self.assertEqual((self.tmp / "out/version").read_bytes(), version)

    def test_a_reader_that_gives_up_says_why_and_nothing_else(self):
        """Its sender is in the middle of more than the pipe holds."""
        self.begin("--set", 'filesystem.outputs.max_bytes="1M"')
        self.assertEqual(self.sbx_session("put", "work", "-", "file", stdin=bytes(MANY)).status, 0)
        for target in (self.tmp / "copy", "-"):
            given_up = self.sbx_session("get", "work", "file", "--as", target)
            self.assertEqual((given_up.status, given_up.out, len(given_up.err.splitlines())), (125, "", 2), given_up)
            self.assertIn("has more bytes than may be brought out", given_up.err)
        sessiontest.wait_until(lambda: "running" not in self.sbx_session("calls", "work").out, "the call of the reader that left has ended")

    def test_a_long_transfer_is_told_on_a_terminal_only(self):
        """Three get the same bytes until the line is seen: no time is measured."""
        self.begin()
        screens = {"shown": pty.openpty(), "quiet": pty.openpty(), "piped": os.pipe()}
        senders = {}
        for name, (_, end) in screens.items():
            command = [SBX, "session", "put", "work", "-", name, *(["-q"] if name == "quiet" else [])]
            senders[name] = sbxtest.start(command, env=self.environment(), cwd=self.work, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=end)
            os.close(end)
        said = b""
        while not re.search(rb"sbx: \d+ bytes copied, \d+ s", said):
            self.assertIsNone(senders["shown"].poll(), said)
            for sender in senders.values():
                os.write(sender.stdin.fileno(), b"x")
            if select.select([screens["shown"][0]], [], [], 0.1)[0]:
                said += os.read(screens["shown"][0], 4096)
        for name, sender in senders.items():
            sender.stdin.close()
            self.assertEqual(sender.wait(), 0)
        told = {name: b"" for name in screens}
        for name, (screen, _) in screens.items():
            try:
                while part := os.read(screen, 4096):
                    told[name] += part
            except OSError:  # the terminal's end
                pass
            os.close(screen)
        self.assertIn(b"sbx: shown (", told["shown"])
        self.assertEqual(told["quiet"], b"")
        self.assertRegex(told["piped"], rb"^sbx: piped \(\d+ bytes\)\n$")

    def test_an_input_that_can_not_be_read_is_blamed(self):
        self.begin()
        directory = os.open(self.work, os.O_RDONLY | os.O_DIRECTORY)
        process = sbxtest.start([SBX, "session", "put", "work", "-", "file"], env=self.environment(), cwd=self.work, stdin=directory,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        _, err = process.communicate()
        os.close(directory)
        self.assertEqual(process.returncode, 125, err)
        self.assertIn(b"error[cannot-read]: cannot read standard input: Is a directory\n  help: it is a directory: sbx session put work DIR", err)
        self.assertEqual(self.sbx_session("stat", "work", "file").status, 125)


class Kinds(FilesTest):
    def test_errors_have_the_kind_that_the_kernel_gave(self):
        self.begin()
        self.exec_ok("--", "sh", "-c", "mkdir -p dir/sub closed; touch file closed/file; chmod 400 file; mkfifo fifo; chmod 0 closed; ln -s nowhere dangling")
        put = ("put", "work", "-")
        for words, kind in ((("get", "work", "nowhere", "--as", self.tmp / "x"), "not-found"), (("get", "work", "dir", "--as", self.tmp / "x"), "is-directory"),
                            (("get", "work", "file/x", "--as", self.tmp / "x"), "not-a-directory"), (("get", "work", "closed/file", "--as", self.tmp / "x"), "not-permitted"),
                            ((*put, "dir"), "is-directory"), ((*put, "new/"), "is-directory"), ((*put, "file"), "not-permitted"), ((*put, "file/x"), "not-a-directory"),
                            ((*put, "closed/x"), "not-permitted"), ((*put, "/usr/x"), "not-permitted"), ((*put, "fifo"), "exists"), (("stat", "work", "nowhere"), "not-found"),
                            (("stat", "work", "closed/file"), "not-permitted"), (("stat", "work", "file/x"), "not-a-directory"), (("mkdir", "work", "dir"), "exists"),
                            (("mkdir", "work", "file"), "exists"), (("mkdir", "work", "file/x"), "not-a-directory"), (("mkdir", "work", "/usr/x"), "not-permitted"),
                            (("mv", "work", "nowhere", "x"), "not-found"), (("mv", "work", "file", "dir"), "is-directory"), (("mv", "work", "dir", "file"), "not-a-directory"),
                            (("rm", "work", "nowhere"), "not-found"), (("rm", "work", "dir"), "is-directory"), (("rm", "work", "-r", "closed/file"), "not-permitted")):
            with self.subTest(words=words):
                options = {"stdin": b"data"} if words[0] == "put" else {}
                self.assertEqual(self.kind(*words, **options), (kind, "sandbox"))
        self.assertEqual(self.kind("stat", "nosuch", "file", status=2), ("no-session", "host"))
        self.assertEqual(self.exec_ok("--", "sh", "-c", "cat file; ls").out.split(), ["closed", "dangling", "dir", "fifo", "file"])
        listed = self.sbx_session("ls", "--json", "work", "nowhere")
        self.assertEqual([(each["kind"], each["side"]) for each in listed.json["left"]], [("not-found", "sandbox")], listed)
        missing = self.sbx_session("put", "--json", "work", "not-on-the-host", "x")
        self.assertEqual([(each["kind"], each["side"]) for each in missing.json["left"]], [("not-found", "host")], missing)

    def test_a_full_disk_has_a_kind(self):
        self.start_session("--disk", "4M", "--set", 'filesystem.workspace.mode="empty"')
        self.assertEqual(self.kind("put", "work", "-", "big", stdin=bytes(8 << 20)), ("no-space", "sandbox"))
        self.assertEqual(self.sbx_session("put", "work", "-", "small", stdin=b"fits").status, 0)

    def test_bad_words_are_answered(self):
        self.begin()
        for words, code in ((["put", "work", "-"], "usage"), (["put", "work", "-", "a", "b"], "usage"), (["get", "work", "a", "b", "--as", "x"], "usage"), (["get", "work", "a", "--as", ""], "bad-value"),
                            (["get", "work", "a", "--as", "-", "--json"], "usage"), (["get", "work", "a", "--as", "x", "--out", "y"], "usage"), (["get", "work", "a", "--as", "x/"], "bad-value"),
                            (["get", "work", "a", "--offset", "1"], "usage"), (["get", "work", "a", "--as", "x", "--offset", "-1"], "bad-value"), (["get", "work", "a", "--as", "x", "--limit", "0"], "bad-value"),
                            (["ls", "work", "--depth", "0"], "bad-value"), (["ls", "work", "--depth", "x"], "bad-value"), (["stat", "work"], "usage"), (["mkdir", "work"], "usage"),
                            (["mv", "work", "a"], "usage"), (["rm", "work", "a", "b"], "usage")):
            with self.subTest(words=words):
                answer = self.sbx_session(*words, stdin=b"")
                self.assertIn(answer.status, (2, 125), answer)
                self.assertIn(f"error[{code}]", answer.err)


class Cures(FilesTest):
    def cure(self, *words):
        """The line that an error names, without its label."""
        answer = self.sbx_session(*words)
        self.assertEqual(answer.status, 125, answer)
        return answer.err.split("  help: ")[1].rstrip("\n")

    def test_a_move_that_can_not_be_done_names_the_one_that_can(self):
        self.begin()
        self.exec_ok("--", "sh", "-c", "mkdir -p there full/x; touch file other")
        cure = self.cure("mv", "work", "file", "/tmp/moved")
        self.assertEqual(cure, "the target is on another file system, so copy: sbx session exec work -- mv file /tmp/moved")
        self.assertEqual(self.run_sbx(*cure.split("sbx ")[1].split()).status, 0)
        self.assertEqual(self.content("/tmp/moved"), b"")
        cure = self.cure("mv", "work", "other", "there")
        self.assertTrue(cure.endswith(": name the place in it, there/other"), cure)
        self.assertEqual(self.sbx_session("mv", "work", "other", "there/other").status, 0)
        self.assertIn("name the place in it, full/there", self.cure("mv", "work", "there", "full"))
        self.exec_ok("--", "touch", "plain")
        self.assertIn("a directory takes the place of no file", self.cure("mv", "work", "there", "plain"))
        self.assertIn("the directory of the target, is not there: sbx session stat work plain tells which", self.cure("mv", "work", "plain", "nowhere/x"))
        self.assertIn("can't be moved into itself", self.cure("mv", "work", "there", "there/below"))
        self.assertIn("stay", self.cure("rm", "-r", "work", "."))

    def test_the_help_is_about_the_side_that_refused(self):
        self.begin()
        inside = "sbx session ls work lists what is in the session's directory"
        self.write("here", "x")
        self.assertEqual(self.cure("put", "work", self.work / "here", "/etc/"), inside)
        self.assertIn("put takes files of this machine", self.cure("put", "work", self.work / "nosuch", "/etc/"))
        self.assertEqual(self.cure("ls", "work", "nosuch"), inside)
        self.assertIn(inside + "; --out DIR", self.cure("get", "work", "nosuch"))
        (self.work / "out/here").mkdir(parents=True)
        self.exec_ok("--", "sh", "-c", "echo >/tmp/here")
        self.assertTrue(self.cure("get", "work", "/tmp/here", "--out", self.work / "out").startswith("--out DIR"))

    def test_a_directory_is_removed_with_an_option(self):
        self.begin()
        self.exec_ok("--", "mkdir", "-p", "a b/c")
        self.assertEqual(self.cure("rm", "work", "a b"), "a directory, with all that is in it: sbx session rm -r work 'a b'")
        self.assertEqual(self.sbx_session("rm", "-r", "work", "a b").status, 0)
        self.assertIn("name a directory that is not there yet", self.cure("mkdir", "work", "/tmp"))

    def test_each_type_has_its_letter(self):
        self.begin()
        self.exec_ok("--", "sh", "-c", "mkfifo fifo; mkdir directory; touch file; ln -s file link; "
                     "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'")
        letters = {line.split()[4 if len(line.split()) > 4 else -1]: line[0] for line in self.sbx_session("ls", "work").out.splitlines()}
        self.assertEqual(letters, {"fifo": "p", "directory": "d", "file": "-", "link": "l", "socket": "s"})
        self.assertTrue(self.sbx_session("stat", "work", "/dev/null").out.startswith("c"))


class Inside(FilesTest):
    def test_make_move_stat_list_and_remove(self):
        self.begin()
        self.assertEqual(self.sbx_session("mkdir", "work", "a/b/c").status, 0)
        self.assertEqual(self.sbx_session("put", "work", "-", "a/b/file", stdin=b"text").status, 0)
        self.exec_ok("--", "sh", "-c", "ln -s b a/link; chmod 640 a/b/file")
        listed = self.sbx_session("ls", "--json", "--depth", "3", "work", "a")
        self.fits("sbx.session.1", listed.json)
        self.assertEqual({each["name"]: each["type"] for each in listed.json["entries"]}, {"b": "directory", "b/c": "directory", "b/file": "file", "link": "link"})
        self.assertEqual([each["name"] for each in self.sbx_session("ls", "--json", "work", "a").json["entries"]], ["b", "link"])
        facts = self.sbx_session("stat", "--json", "work", "a/b/file").json
        self.assertEqual((facts["path"], facts["type"], facts["bytes"], facts["mode"]), ("a/b/file", "file", 4, "0640"))
        inside = self.exec_ok("--", "stat", "-c", "%U %G", "a/b/file", "/").out.split()
        told = [self.sbx_session("stat", "--json", "work", path).json for path in ("a/b/file", "/")]
        self.assertEqual([each[name] for each in told for name in ("owner", "group")], inside)
        self.assertEqual({(each["owner"], each["group"]) for each in listed.json["entries"]}, {tuple(inside[:2])})
        self.assertEqual(self.sbx_session("stat", "--json", "work", "a/link").json["target"], "b")
        self.assertIn("a/b/file", self.sbx_session("stat", "work", "a/b/file").out)
        self.assertEqual(self.run_sbx("session", "mv", "work", "a/b/file", "a/moved").status, 0)
        self.assertEqual(self.content("a/moved"), b"text")
        self.assertEqual(self.sbx_session("rm", "work", "a/link").status, 0)
        self.assertEqual(self.exec_ok("--", "ls", "a").out.split(), ["b", "moved"])
        self.assertEqual(self.sbx_session("rm", "--recursive", "work", "a").status, 0)
        self.assertEqual(self.exec_ok("--", "ls").out, "")
        self.assertEqual(self.sbx_session("mkdir", "work", "~/made").status, 0)
        self.assertEqual(self.sbx_session("stat", "--json", "work", "/home/sandbox/made").json["type"], "directory")

    def test_nothing_of_the_host_is_changed_through_a_link(self):
        secret = self.write("secret/file", "of the host\n", directory=self.tmp)
        self.begin()
        self.exec_ok("--", "sh", "-c", f"ln -s {secret.parent} out; ln -s {secret} file; ln -s /proc/self/root/{secret.parent} root")
        for words in (("rm", "-r", "work", "out/file"), ("mv", "work", "out/file", "x"), ("put", "work", "-", "root/file"), ("mkdir", "work", "root/made"), ("get", "work", "file", "--as", self.tmp / "x")):
            with self.subTest(words=words):
                # Inside, these are places of the sandbox's own, or none.
                self.assertIn(self.sbx_session(*words, stdin=b"evil").status, (0, 125))
        for words in (("put", "work", "-", "file"), ("rm", "-r", "work", "out")):
            self.assertEqual(self.sbx_session(*words, stdin=b"mine").status, 0)
        self.assertEqual((secret.read_text(), sorted(each.name for each in secret.parent.iterdir())), ("of the host\n", ["file"]))
        self.assertFalse((self.tmp / "x").exists())

    def test_a_tree_without_an_end_is_listed_to_its_depth(self):
        self.begin()
        self.exec_ok("--", "sh", "-c", "d=deep; for i in 1 2 3 4 5 6 7 8 9; do d=$d/deep; done; mkdir -p $d; ln -s . deep/loop; mkfifo deep/fifo")
        for depth in (1, 2, 5):
            names = [each["name"] for each in self.sbx_session("ls", "--json", "--depth", depth, "work", "deep").json["entries"]]
            self.assertEqual(max(name.count("/") for name in names), depth - 1)


class Hostile(FilesTest):
    """A program inside that lies in every operation: it exchanges names, links out, makes files longer and shorter, and puts FIFOs in their place."""

    LIES = r"""
import ctypes, os, random, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def exchange(one, other):
    libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2)
os.makedirs("d/sub"); os.makedirs("k")
for name in ("d/f", "d/sub/f", "f", "g"):
    open(name, "w").write("inside")
os.symlink(sys.argv[1], "d.link"); os.symlink(sys.argv[1] + "/f", "f.link"); os.symlink("/proc/self/root" + sys.argv[1], "k.link"); os.mkfifo("f.fifo"); os.symlink("loop", "loop")
print("ready", flush=True)
while not os.path.exists("begin"):
    time.sleep(0.01)
while True:
    for one, other in (("d", "d.link"), ("f", "f.link"), ("f", "f.fifo"), ("k", "k.link"), ("d", "loop")):
        exchange(one, other)
    try: os.truncate("g", random.choice((0, 1, 100_000, 5_000_000)))
    except OSError: pass
"""

    def lies(self, rounds):
        victim = self.tmp / "victim"
        for name in ("f", "sub/f", "m/x"):
            self.write(name, "of the host\n", directory=victim)
        before = sorted((str(path), path.lstat().st_mtime_ns, path.read_text() if path.is_file() else "") for path in victim.rglob("*"))
        self.begin("--timeout", "60m", "--cpu-time", "60m")
        call = self.detach("--lang", "python", "-c", self.LIES, str(victim))
        sessiontest.wait_until(lambda: "ready" in self.sbx_session("logs", "work", call).out, "it lies")
        out = self.tmp / "out"
        out.mkdir()
        done = set()
        for turn in range(1 + rounds):
            if turn == 1:
                # The twin: while it does not lie yet, each of them works.
                self.assertEqual(done, {"stat", "ls", "get", "put", "mkdir", "mv", "rm"})
                self.assertEqual(self.sbx_session("put", "work", "-", "begin").status, 0)
            for words in (("stat", "work", "d/f"), ("ls", "--depth", "9", "work", "."), ("ls", "work", "d"), ("get", "work", "f", "--as", out / "f"), ("get", "work", "g", "--as", out / "g"),
                          ("get", "work", "f", "--as", "-", "--offset", "1", "--limit", "5"), ("get", "work", "d", out), ("put", "work", "-", "f"), ("put", "work", "-", "d/new"), ("put", "work", "-", "k/a/b"),
                          ("mkdir", "work", "d/m/n"), ("mv", "work", "d/m", "k/m"), ("rm", "-r", "work", "d/m"), ("rm", "-r", "work", "k/m"), ("rm", "-r", "work", "d/new")):
                answer = self.sbx_session(*words, stdin=b"mine")
                self.assertIn(answer.status, (0, 1, 2, 125, 126), answer)
                self.assertNotIn("of the host", answer.out)
                if answer.status == 0:
                    done.add(words[0])
        self.assertEqual(sorted((str(path), path.lstat().st_mtime_ns, path.read_text() if path.is_file() else "") for path in victim.rglob("*")), before)
        for path in out.rglob("*"):
            self.assertFalse(path.is_fifo(), path)
            if path.is_file() and not path.is_symlink():
                self.assertNotIn(b"of the host", path.read_bytes())

    def test_a_program_that_lies_in_every_operation(self):
        self.lies(10)

    def test_slow_a_program_that_lies_in_every_operation(self):
        self.lies(300)

    def test_as_many_entries_as_the_policy_allows(self):
        """They are listed to the most that a list holds, and each can be named."""
        most = 120_000
        self.begin("--set", f"limits.disk_files={most}", "--timeout", "10m", "--cpu-time", "10m", "--disk", "1G", "--memory", "3G")
        made = self.exec_ok("--lang", "python", "-c", """
import os
os.mkdir('many'); made = 0
try:
    while True:
        os.close(os.open('many/%d' % made, os.O_CREAT | os.O_WRONLY)); made += 1
except OSError: print(made)""").out
        self.assertLess(int(made), most)
        self.assertGreater(int(made), 100_000)
        listing = self.sbx_session("ls", "--json", "work", "many").json
        self.assertEqual((listing["is_cut"], len(listing["entries"])), (True, 100_000))
        self.assertEqual(self.sbx_session("stat", "--json", "work", f"many/{int(made) - 1}").json["bytes"], 0)
        self.assertEqual(self.sbx_session("rm", "-r", "work", "many").status, 0)
        self.assertEqual(self.sbx_session("put", "work", "-", "many/one", stdin=b"1").status, 0)
        self.assertEqual([each["name"] for each in self.sbx_session("ls", "--json", "work", "many").json["entries"]], ["one"])


if __name__ == "__main__":
    sessiontest.main()

"""The copy-on-write workspace: what the record and --diff show of it, and what --out and --apply bring out."""

import base64
import contextlib
import errno
import fcntl
import json
import os
import pathlib
import pty
import resource
import shutil
import subprocess

import sbxtest
from harness import wait_until
from sbxtest import SBX, SbxTest, start

CLEAN_UP = "import os, shutil\nshutil.rmtree('src'); os.remove('notes.txt'); open('README', 'a').write('cleaned\\n')"


class Workspace(SbxTest):
    def overlay(self, code, *options, ends_with=0, **rest):
        ended = self.python(code, options=["--workspace", f"{self.work}:overlay", *options], **rest)
        self.assertEqual(ended.status, ends_with, ended)
        return ended

    def changed(self, ended):
        return {each["path"]: each["change"] for each in ended.record["changes"]}

    def tree(self):
        return {str(path.relative_to(self.work)): path.read_bytes() for path in self.work.rglob("*") if path.is_file()}


class Changes(Workspace):
    def test_every_kind_of_change_is_listed(self):
        for name in ("same", "rewritten", "appended", "removed", "script", "directory/inner"):
            self.write(name, "text\n")
        ended = self.overlay(
            "import os\n"
            "open('rewritten', 'w').write('other'); open('appended', 'a').write('more'); os.remove('removed')\n"
            "os.chmod('script', 0o755); os.mkdir('new'); open('new/file', 'w').write('1234'); os.symlink('same', 'link')\n"
            "open('directory/inner', 'r+').close()")
        self.assertEqual(self.changed(ended), {"rewritten": "modified", "appended": "modified", "removed": "deleted", "script": "mode",
                                               "new": "created", "new/file": "created", "link": "created"}, ended)
        sizes = {each["path"]: (each["type"], each["bytes"]) for each in ended.record["changes"]}
        self.assertEqual((sizes["new/file"], sizes["removed"], sizes["link"]), (("file", 4), ("file", 5), ("link", 0)))
        self.assertEqual(self.tree()["rewritten"], b"text\n")

    def test_a_run_that_changes_nothing_lists_nothing(self):
        self.write("directory/file", "text")
        self.assertEqual(self.changed(self.overlay("import os; os.listdir('directory'); open('directory/file').read()")), {})

    def test_touched_files_are_no_changes_and_times_hide_none(self):
        self.write("touched", "text")
        path = self.write("hidden", "text")
        os.utime(path, ns=(0, 10**18))
        ended = self.overlay("import os\nos.utime('touched'); open('touched', 'r+').write('text')\n"
                             "open('hidden', 'w').write('evil'); os.utime('hidden', ns=(0, 10**18))")
        self.assertEqual(self.changed(ended), {"hidden": "modified"}, ended)

    def test_replaced_and_renamed_directories_are_seen_name_by_name(self):
        for name in ("a/one", "a/two", "b/deep/three"):
            self.write(name, "text\n")
        ended = self.overlay("import os, shutil\nshutil.rmtree('a'); os.mkdir('a'); open('a/two', 'w').write('text\\n')\n"
                             "shutil.move('b', 'c')")
        self.assertEqual(self.changed(ended), {"a/one": "deleted", "b": "deleted", "b/deep": "deleted", "b/deep/three": "deleted",
                                               "c": "created", "c/deep": "created", "c/deep/three": "created"}, ended)

    def test_a_file_in_place_of_a_directory_is_a_deletion_and_a_creation(self):
        self.write("x/inner", "text")
        self.write("y", "text")
        ended = self.overlay("import os, shutil\nshutil.rmtree('x'); open('x', 'w'); os.remove('y'); os.mkdir('y')")
        self.assertEqual([(each["path"], each["change"], each["type"]) for each in ended.record["changes"]],
                         [("x", "deleted", "directory"), ("x", "created", "file"), ("x/inner", "deleted", "file"),
                          ("y", "deleted", "file"), ("y", "created", "directory")], ended)

    def test_names_are_exact_whatever_they_are_made_of(self):
        names = [b"new\nline", b"esc\x1b[2J", b"\xff\xfe", "ü".encode()]
        ended = self.overlay(f"for name in {names!r}: open(name, 'w')")
        found = [base64.b64decode(each["path_b64"]) if "path_b64" in each else each["path"].encode() for each in ended.record["changes"]]
        self.assertEqual(sorted(found), sorted(names), ended)

    def test_closed_directories_and_special_files_are_listed(self):
        ended = self.overlay("import os, socket\nos.mkdir('closed'); open('closed/file', 'w'); os.mkfifo('pipe')\n"
                             "socket.socket(socket.AF_UNIX).bind('socket'); open('secret', 'w').write('x'); os.chmod('secret', 0)\n"
                             "os.chmod('closed', 0)")
        found = {each["path"]: (each["type"], each["mode"]) for each in ended.record["changes"]}
        self.assertEqual((found["closed"], found["closed/file"][0], found["pipe"][0], found["socket"][0], found["secret"]),
                         (("directory", "0000"), "file", "fifo", "socket", ("file", "0000")), ended)

    def test_a_sparse_giant_is_not_read_whole(self):
        path = self.work / "giant"
        with open(path, "wb") as giant:
            giant.truncate(50 << 30)
        limit = ["--set", 'limits.file_size="200G"']
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = self.overlay("open('other', 'w').truncate(100 << 30); f = open('giant', 'r+b'); f.seek(40 << 30); f.write(b'x')", *limit)
        self.assertEqual(self.changed(ended), {"giant": "modified", "other": "created"}, ended)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        # Who reads 150 GB takes more than 15 s of CPU time, even where nothing of it is on a disk.
        self.assertLess(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, 8)
        self.assertEqual(path.stat().st_blocks, 0)

    def test_directories_deeper_than_a_path_can_name_are_told_of(self):
        ended = self.overlay("import os\nfor _ in range(1200):\n    os.mkdir('abcdefg'); os.chdir('abcdefg')")
        self.assertIn("changes", [each["what"] for each in ended.record["degraded"]], ended.record["degraded"])
        self.assertGreater(len(ended.record["changes"]), 300)

    def test_what_sbx_mounts_on_is_no_change(self):
        data = self.write("data", "x", directory=self.tmp)
        ended = self.overlay("open('mine', 'w')", "--read", f"{data}:{self.work}/sub/data")
        self.assertEqual(self.changed(ended), {"mine": "created"}, ended)

    def test_an_empty_workspace_has_no_changes(self):
        ended = self.exited(self.python("open('x', 'w')"))
        self.assertEqual(ended.record["changes"], [])


class WayHere(Workspace):
    """A shell that came by a link calls the working directory by the link's name, and so do command lines with $PWD."""

    def setUp(self):
        super().setUp()
        self.write("sub/file", "text")
        self.link = self.tmp / "link"
        self.link.symlink_to(self.work)

    def read(self, path, pwd, *options, cwd=None):
        """What a program reads under a path; None if nothing is there."""
        ended = self.sbx("--workspace", f"{self.work}:overlay", *options, sbxtest.PROBE, "read", path, env={"PWD": pwd and str(pwd)}, cwd=cwd)
        return ended.outcome["exit_code"] == 0

    def test_names_of_the_way_here_lead_to_the_same_files(self):
        (self.work / "inner").symlink_to("sub")
        self.assertTrue(self.read(self.link / "sub/file", self.link))
        self.assertTrue(self.read(self.link / "sub/file", self.link / "sub", cwd=self.work / "sub"))
        self.assertTrue(self.read(self.link / "inner/file", self.link / "inner", cwd=self.work / "sub"))
        self.sbx("--workspace", f"{self.work}:overlay", "--apply", "--yes", "--", "sh", "-c", 'echo new >"$1/new"', "sh", self.link, env={"PWD": str(self.link)})
        self.assertEqual((self.work / "new").read_text(), "new\n")

    def test_other_names_lead_nowhere(self):
        elsewhere = self.write("elsewhere/sub/file", "secret", directory=self.tmp).parents[1]
        for pwd in (None, self.work, "link", elsewhere, self.tmp / "nowhere"):
            self.assertFalse(self.read(self.link / "sub/file", pwd), pwd)
        self.link.unlink()
        self.link.symlink_to(elsewhere)
        self.assertFalse(self.read(self.link / "sub/file", self.link))

    def test_what_is_shown_under_such_a_name_stays(self):
        other = self.write("other/sub/file", "other", directory=self.tmp).parents[1]
        ended = self.sbx("--workspace", f"{self.work}:overlay", "--read", f"{other}:{self.link}", "--", "cat", self.link / "sub/file", env={"PWD": str(self.link)})
        self.assertEqual(ended.text, "other")


class Diff(Workspace):
    def diff(self, code, *options):
        ended = self.sbx("--workspace", f"{self.work}:overlay", "--diff", *options, "--lang", "python", "-c", code, json_record=False)
        self.assertEqual(ended.status, 0, ended)
        return ended.err.decode()

    def test_deletions_come_first_and_texts_are_compared(self):
        self.write("text", "one\ntwo\nthree\n")
        self.write("gone", "x")
        self.write("binary", b"\0\1")
        said = self.diff("import os\nopen('text', 'w').write('one\\n2\\nthree\\n'); os.remove('gone'); open('binary', 'wb').write(b'\\0' * 9)\n"
                         "open('new', 'w').write('x')")
        places = [said.index(word) for word in ("deleted   gone", "modified  binary", "modified  text", "created   new")]
        self.assertEqual(places, sorted(places), said)
        self.assertIn("@@ -1,3 +1,3 @@\n     one\n    -two\n    +2\n     three\n", said)
        self.assertIn("binary  (9 bytes, was 2 bytes)", said)

    def test_escape_sequences_are_made_visible(self):
        self.write("text", "x\n")
        said = self.diff("open('text', 'w').write('\\033[2Jy\\n'); open('\\033]0;z\\007', 'w')")
        self.assertNotIn("\033", said)
        self.assertIn("+\\x1b[2Jy", said)

    def test_a_deleted_directory_is_one_line(self):
        for i in range(300):
            self.write(f"cache/{i}", "x")
        said = self.diff("import shutil; shutil.rmtree('cache')")
        self.assertIn("deleted   cache/  (300 files, 300 bytes)", said)
        self.assertLess(len(said.splitlines()), 5, said)

    def test_it_needs_a_copy_on_write_workspace(self):
        self.could_not(self.sbx("--workspace", ".:empty", "--diff", "true"), "copy-on-write")
        self.exited(self.sbx("--workspace", ".:overlay", "--diff", "true"))


class Out(Workspace):
    def setUp(self):
        super().setUp()
        self.out = self.tmp / "out"

    def collect(self, code, *options, patterns='"*.txt", "deep/**"', mode="overlay"):
        ended = self.python(code, options=["--set", f"filesystem.outputs.collect=[{patterns}]", "--out", self.out, "--workspace",
                                           f"{self.work}:{mode}", *options])
        found = {str(path.relative_to(self.out)): path.read_text() for path in self.out.rglob("*") if path.is_file()}
        return found, {each["path"]: each["why"] for each in ended.record["out"]["left"]}, ended

    MAKE = "import os; os.makedirs('deep/er'); open('a.txt', 'w').write('A'); open('b.log', 'w'); open('deep/er/c', 'w').write('C')"

    def test_what_the_patterns_mean_is_brought_out(self):
        self.write("old.txt", "was here")
        for mode in ("overlay", "empty"):
            shutil.rmtree(self.out, ignore_errors=True)
            found, left, ended = self.collect(self.MAKE, mode=mode)
            self.assertEqual((found, left), ({"a.txt": "A", "deep/er/c": "C"}, {"b.log": "matches no pattern"}), ended)
        self.assertEqual(self.tree(), {"old.txt": b"was here"})

    def test_files_of_a_failed_program_are_brought_out_too(self):
        found, _, ended = self.collect("open('a.txt', 'w').write('A'); raise SystemExit(3)")
        self.assertEqual((found, ended.status), ({"a.txt": "A"}, 3))

    def test_files_there_are_replaced_and_others_stay(self):
        self.out.mkdir()
        self.write("a.txt", "old", directory=self.out)
        self.write("mine", "mine", directory=self.out)
        found, _, _ = self.collect("open('a.txt', 'w').write('A')")
        self.assertEqual(found, {"a.txt": "A", "mine": "mine"})
        self.assertEqual(sorted(os.listdir(self.out)), ["a.txt", "mine"])

    def test_caps_leave_the_rest_behind_with_the_reason(self):
        code = "import os\nos.makedirs('deep/b/c')\nopen('deep/b/c/x', 'w')\nfor n in 'abcd': open(n + '.txt', 'w').write('x' * 100)"
        for key, value, missing in (("filesystem.outputs.max_files", "2", "c.txt"), ("filesystem.outputs.max_bytes", '"250B"', "c.txt"),
                                    ("filesystem.outputs.max_depth", "1", "deep/b/c/x")):
            shutil.rmtree(self.out, ignore_errors=True)
            found, left, ended = self.collect(code, "--set", f"{key}={value}")
            self.assertIn("a.txt", found, ended)
            self.assertNotIn(missing, found, ended)
            self.assertRegex(left[missing], key.rpartition(".")[2] + " = .*, which --set raises at the start$", ended)

    def test_a_sparse_giant_is_left_behind_and_a_small_one_stays_sparse(self):
        found, left, _ = self.collect("open('a.txt', 'w').truncate(100 << 30)", "--set", 'limits.file_size="200G"')
        self.assertEqual((found, list(left)), ({}, ["a.txt"]))
        self.collect("f = open('a.txt', 'w'); f.write('x'); f.truncate(50 << 20)")
        facts = (self.out / "a.txt").stat()
        self.assertEqual(facts.st_size, 50 << 20)
        self.assertLess(facts.st_blocks, 1000)

    def test_files_belong_to_the_owner_of_the_directory(self):
        self.collect("open('a.txt', 'w')")
        self.assertEqual((self.out / "a.txt").stat().st_uid, os.geteuid())

    def test_it_is_refused_before_the_run_where_it_cannot_work(self):
        collect = ["--set", 'filesystem.outputs.collect=["*"]']
        self.could_not(self.sbx(*collect, "--out", self.out, "--workspace", f"{self.work}:read-write", "true"), "--out")
        self.could_not(self.sbx(*collect, "--out", self.tmp / "no" / "where", "true"), "bring files out")
        self.could_not(self.sbx(*collect, "--out", self.write("file", ""), "true"), "bring files out")
        self.exited(self.sbx(*collect, "--out", self.out, "true"))

    def test_what_cannot_be_written_ends_with_125(self):
        (self.out / "a.txt").mkdir(parents=True)
        found, left, ended = self.collect("for n in 'ab': open(n + '.txt', 'w').write(n)")
        self.assertEqual((ended.status, ended.verdict, found, list(left)), (125, ("exited", None), {"b.txt": "b"}, ["a.txt"]), ended)
        self.assertEqual(sorted(os.listdir(self.out)), ["a.txt", "b.txt"])

    def test_without_it_collect_brings_nothing_out(self):
        self.exited(self.python("open('a.txt', 'w')", options=["--set", 'filesystem.outputs.collect=["*"]']))
        self.assertEqual(os.listdir(self.work), [])


class Apply(Workspace):
    def apply(self, code, *patterns, ends_with=0):
        return self.overlay(code, *([f"--apply={pattern}" for pattern in patterns] or ["--apply"]), "--yes", ends_with=ends_with)

    def test_the_directory_becomes_what_the_program_saw(self):
        for name in ("src/a", "src/b/c", "notes.txt", "README", "run", "x/inner", "y"):
            self.write(name, "text\n")
        ended = self.apply(CLEAN_UP + "\nos.chmod('run', 0o755); os.makedirs('new/deep'); open('new/deep/f', 'w').write('1')\n"
                           "os.symlink('README', 'link'); shutil.rmtree('x'); open('x', 'w').write('2'); os.remove('y'); os.mkdir('y')\n"
                           "os.chmod('new/deep', 0o500)")
        self.assertEqual(self.tree(), {"README": b"text\ncleaned\n", "run": b"text\n", "new/deep/f": b"1", "x": b"2",
                                       "link": b"text\ncleaned\n"}, ended)
        self.assertEqual((self.work / "run").stat().st_mode & 0o7777, 0o755)
        self.assertEqual((self.work / "new/deep").stat().st_mode & 0o7777, 0o500)
        self.assertTrue((self.work / "y").is_dir() and (self.work / "link").is_symlink())
        self.assertEqual((ended.record["applied"]["conflicts"], ended.record["applied"]["left"]), ([], []))
        self.assertEqual({path.lstat().st_uid for path in self.work.rglob("*")}, {os.geteuid()})

    def test_directories_that_the_program_opened_or_closed_are_written_to(self):
        for name, mode in (("opened", 0o555), ("closed", 0o755)):
            self.write(f"{name}/old", "x")
            (self.work / name).chmod(mode)
        self.addCleanup((self.work / "closed").chmod, 0o755)
        self.apply("import os\nos.chmod('opened', 0o755)\nfor n in ('opened', 'closed'): open(n + '/new', 'w')\nos.chmod('closed', 0o555)")
        self.assertEqual(sorted(self.tree()), ["closed/new", "closed/old", "opened/new", "opened/old"])
        self.assertEqual([(self.work / name).stat().st_mode & 0o777 for name in ("opened", "closed")], [0o755, 0o555])

    def test_a_pattern_applies_what_it_means(self):
        self.write("keep", "x")
        self.apply("import os\nopen('a.c', 'w'); open('b.h', 'w'); os.remove('keep')", "*.c")
        self.assertEqual(sorted(os.listdir(self.work)), ["a.c", "keep"])

    def test_other_names_of_a_file_are_no_conflict_and_stay_its_names(self):
        for name in "abcd":
            self.write("first" if name == "a" else "unused", "text\n")
            if name != "a":
                os.link(self.work / "first", self.work / name)
        ended = self.apply("import os\nopen('first', 'a').write('more'); os.remove('b'); os.chmod('c', 0o700)")
        self.assertEqual((ended.record["applied"]["conflicts"], ended.record["applied"]["left"]), ([], []))
        self.assertEqual({name: (text, (self.work / name).stat().st_mode & 0o777) for name, text in self.tree().items() if name != "unused"},
                         dict.fromkeys(("first", "c", "d"), (b"text\nmore", 0o700)))

    def test_a_file_that_the_host_changed_is_a_conflict_under_each_of_its_names(self):
        self.write("a", "text\n")
        for name in "bc":
            os.link(self.work / "a", self.work / name)
        code = "import os, sys\nopen('a', 'a').write('more'); os.remove('b')\nprint('ready', flush=True); sys.stdin.readline()"
        process = self.start_sbx("--workspace", f"{self.work}:overlay", "--apply", "--yes", "--report", self.tmp / "r.json", "--lang", "python", "-c", code,
                                 stdin=subprocess.PIPE, json_record=False)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        (self.work / "c").write_text("host")
        self.finish(process, data=b"\n", json_record=False)
        applied = json.loads((self.tmp / "r.json").read_text())["applied"]
        self.assertEqual([each["path"] for each in applied["conflicts"]], ["a", "b", "c"])
        self.assertEqual(self.tree(), dict.fromkeys("abc", b"host"))

    def test_what_a_failed_command_did_is_not_applied_unasked(self):
        ended = self.apply("open('a', 'w'); raise SystemExit(1)", ends_with=1)
        self.assertEqual(os.listdir(self.work), [], ended)
        self.assertEqual([each["path"] for each in ended.record["applied"]["left"]], ["a"])

    def test_files_that_changed_on_the_host_meanwhile_are_conflicts(self):
        for name in ("mine", "both", "gone"):
            self.write(name, "before")
        code = ("import os, sys\nfor n in ('mine', 'both'): open(n, 'w').write('inside')\nos.remove('gone'); open('new', 'w').write('inside')\n"
                "print('ready', flush=True); sys.stdin.readline()")
        process = self.start_sbx("--workspace", f"{self.work}:overlay", "--apply", "--yes", "--report", self.tmp / "r.json", "--lang",
                                 "python", "-c", code, json_record=False, stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        for name in ("both", "gone", "new"):
            (self.work / name).write_text("host")
        ended = self.finish(process, data=b"\n", json_record=False)
        self.assertEqual(self.tree(), {"mine": b"inside", "both": b"host", "gone": b"host", "new": b"host"}, ended)
        self.assertEqual(ended.err.count(b"conflict: "), 3, ended)

    def test_a_deleted_directory_with_a_hidden_file_stays(self):
        self.write("filled/.env", "host")
        (self.work / "empty").mkdir()
        ended = self.apply("import os; os.rmdir('filled'); os.rmdir('empty')")
        self.assertEqual(os.listdir(self.work), ["filled"], ended)
        self.assertEqual((self.work / "filled/.env").read_text(), "host")
        self.assertEqual([(each["path"], each["why"]) for each in ended.record["applied"]["left"]], [("filled", "the directory is not empty: '.env' stays in it")])
        self.assertEqual(ended.status, 0, "filesystem.deny keeps it there")

    def test_a_deleted_directory_that_the_host_filled_is_a_conflict(self):
        for name in ("mine/a", "both/inner/a", "rule/.vscode/a"):
            self.write(name, "text\n")
        self.overlay("import shutil\nfor name in ('mine', 'both', 'rule'): shutil.rmtree(name)", "--keep", "set")

        def apply():
            return self.finish(start([SBX, "changes", "apply", "--yes", "set"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     env=self.environment()), json_record=False)

        self.write("both/inner/new", "host")
        ended = apply()
        self.assertEqual(ended.status, 1, ended)
        self.assertEqual(self.tree(), {"both/inner/new": b"host", "rule/.vscode/a": b"text\n"}, ended)
        for words in (b"conflict: both: the directory is not empty: 'inner' is in it on the host", b"conflict: both/inner: the directory is not empty: 'new' is in it on the host",
                      b"not applied: rule: the directory is not empty: '.vscode' stays in it"):
            self.assertIn(words, ended.err)
        (self.work / "both/inner/new").unlink()
        self.assertEqual(apply().status, 0)
        self.assertEqual((self.tree(), (self.work / "both").exists()), ({"rule/.vscode/a": b"text\n"}, False))

    def test_it_asks_on_a_terminal_and_needs_yes_without_one(self):
        self.could_not(self.sbx("--workspace", ".:overlay", "--apply", "true"), "--yes")
        for answer, there in ((b"n\n", []), (b"y\n", ["made"])):
            command = [SBX, "run", "--workspace", ".:overlay", "--apply", "--", "touch", "made"]
            master, slave = pty.openpty()
            process = start(command, stdin=slave, stdout=slave, stderr=slave, cwd=self.work, env=self.environment())
            os.close(slave)
            said = b""
            while b"[y/N]" not in said:
                said += os.read(master, 4096)
            os.write(master, answer)
            self.assertEqual(self.drained(process, master), 0)
            self.assertIn(b"created   made", said)
            self.assertEqual(os.listdir(self.work), there)

    def test_without_a_place_for_sets_it_fails_only_where_something_was_to_be_applied(self):
        (self.home / ".local/state/sbx").mkdir(parents=True)
        (self.home / ".local/state/sbx/changes").write_text("not a directory")
        (self.work / ".git").mkdir()
        protected = "mkdir -p .git/hooks; echo > .git/hooks/pre-push"
        for script, status, words in ((f"{protected}; echo > made", 0, b"sbx: what was not applied is gone: cannot use "),
                                      ("rm lost; echo > lost", 125, b"error[no-state-directory]")):
            self.write("lost", "old")
            process = self.start_sbx("--workspace", ".:overlay", "--apply", "--yes", "--", "sh", "-c", f"{script}; echo; read line",
                                     stdin=subprocess.PIPE, json_record=False)
            process.stdout.readline()
            self.write("lost", "by the user")  # the second script's change conflicts with it
            ended = self.finish(process, data=b"\n", json_record=False)
            self.assertEqual((ended.status, words in ended.err, (self.work / "lost").read_text()), (status, True, "by the user"), ended)
        self.assertTrue((self.work / "made").exists())

    def test_an_interrupt_at_the_question_is_no_answer(self):
        command = [SBX, "run", "--workspace", ".:overlay", "--apply=made", "--", "touch", "made", "other"]
        for keys, status, words in ((b"\x03", 130, b"\nsbx: not applied: interrupted"), (b"n\n", 0, b"\nsbx: not applied: the answer was no"),
                                    (b"\x04", 0, b"\nsbx: not applied: the answer was no")):
            with self.subTest(keys):
                pid, master = pty.fork()
                if pid == 0:
                    os.chdir(self.work)
                    os.execve(SBX, command, self.environment())
                said = b""
                while b"[y/N]" not in said:
                    said += os.read(master, 4096)
                os.write(master, keys)
                with contextlib.suppress(OSError):  # EIO: the end
                    while more := os.read(master, 4096):
                        said += more
                os.close(master)
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), status, said)
                self.assertIn(words, said)
                self.assertEqual(os.listdir(self.work), [])
                operands = said[said.index(b'"sbx changes apply ') + 19:].split(b'"')[0].decode().split()
                again = start([SBX, "changes", "apply", "--yes", *operands], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment())
                self.assertEqual((again.wait(), os.listdir(self.work)), (0, ["made"]))
                (self.work / "made").unlink()

    def test_changes_that_are_not_all_seen_are_not_applied(self):
        """A tree deeper than the longest path: 900 directories of ten letters."""
        deep = "import os\nfor _ in range({}):\n    os.mkdir('d' * 10); os.chdir('d' * 10)\n"
        options = ["--workspace", f"{self.work}:overlay", "--apply", "--yes"]
        ended = self.python(deep.format(900), options=[*options, "--verbose"])
        self.assertEqual(ended.status, 125, ended.err)
        self.assertRegex(ended.err.decode(), r"not applied: the list of changes is not complete: d{10}/.*: File name too long")
        self.assertTrue(ended.record["applied"]["left"])
        self.assertEqual((ended.record["applied"]["done"], os.listdir(self.work)), ([], []))
        self.exited(self.python(deep.format(9), options=options))
        self.assertEqual(os.listdir(self.work), ["d" * 10])

    def drained(self, process, master):
        try:
            while os.read(master, 4096):
                pass
        except OSError as error:
            self.assertEqual(error.errno, errno.EIO)
        os.close(master)
        return process.wait(timeout=120)

    def test_files_belong_to_the_owner_of_the_workspace(self):
        self.write("old", "x")
        owner = 12345 if sbxtest.IS_ROOT else os.geteuid()
        if sbxtest.IS_ROOT:
            self.tmp.chmod(0o755)
            for path in (self.work, self.work / "old"):
                os.chown(path, owner, owner)
        self.apply("import os\nos.mkdir('new'); open('new/file', 'w'); open('old', 'w').write('y'); os.symlink('a', 'link')")
        self.assertEqual({path.name: path.lstat().st_uid for path in self.work.rglob("*")},
                         dict.fromkeys(["old", "new", "file", "link"], owner))

    def test_the_other_name_of_a_hard_link_stays_as_it_was(self):
        path = self.write("file", "before")
        os.link(path, self.tmp / "other")
        self.apply("open('file', 'w').write('after')")
        self.assertEqual((path.read_text(), (self.tmp / "other").read_text()), ("after", "before"))

    def test_it_waits_while_another_applies_to_the_same_directory(self):
        directory = os.open(self.work, os.O_RDONLY)
        fcntl.flock(directory, fcntl.LOCK_EX)
        process = self.start_sbx("--workspace", f"{self.work}:overlay", "--apply", "--yes", "--", "touch", "made")
        self.assertIn(b"waiting", process.stderr.readline())
        self.assertEqual(os.listdir(self.work), [])
        os.close(directory)
        self.exited(self.finish(process))
        self.assertEqual(os.listdir(self.work), ["made"])

    def test_killed_in_the_middle_each_file_is_old_or_new(self):
        for i in range(200):
            self.write(f"f{i}", "a" * 300_000)
        process = self.start_sbx("--workspace", f"{self.work}:overlay", "--apply", "--yes", "--lang", "python", "-c",
                                 "for i in range(200): open(f'f{i}', 'w').write('b' * 300_000)", json_record=False)
        wait_until(lambda: any((self.work / f"f{i}").read_bytes()[:1] == b"b" for i in range(200)) or process.poll() is not None, "a file is new")
        process.kill()
        self.finish(process, json_record=False)
        contents = {(self.work / f"f{i}").read_bytes() for i in range(200)}
        self.assertLessEqual(contents, {b"a" * 300_000, b"b" * 300_000})
        self.assertIn(b"b" * 300_000, contents)

    def test_five_thousand_changes_are_applied(self):
        self.apply("import os\nfor i in range(5000):\n    os.makedirs(f'd{i % 50}', exist_ok=True); open(f'd{i % 50}/f{i}', 'w').write('x')")
        self.assertEqual(len(self.tree()), 5000)

    def test_few_open_files_are_enough(self):
        for i in range(300):
            self.write(f"f{i}", "old")
        process = self.start_sbx("--workspace", f"{self.work}:overlay", "--apply", "--yes", "--lang", "python", "-c",
                                 "import os\nfor i in range(300): open(f'f{i}', 'w').write('new') if i % 3 else os.remove(f'f{i}')",
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)))
        self.exited(self.finish(process))
        self.assertEqual((len(self.tree()), set(self.tree().values())), (200, {b"new"}))


class Watched(Workspace):
    """What an observer on the host sees of a run."""

    EVENTS = 0x2 | 0x4 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400  # modify attrib moved-from moved-to create delete delete-self

    def events_of(self, *options):
        watcher = sbxtest._libc.inotify_init1(os.O_NONBLOCK)
        self.addCleanup(os.close, watcher)
        for directory in (self.work, self.work / "src", self.home, self.tmp):
            self.assertGreater(sbxtest._libc.inotify_add_watch(watcher, os.fsencode(directory), self.EVENTS), 0)
        self.overlay(CLEAN_UP + "\nopen('new', 'w'); os.chmod('run', 0o777)", "--diff", *options)
        try:
            return os.read(watcher, 65536)
        except BlockingIOError:
            return b""

    def test_a_run_writes_nothing_on_the_host_unless_asked(self):
        for name in ("src/a", "notes.txt", "README", "run"):
            self.write(name, "x")
        self.assertEqual(self.events_of(), b"")
        self.assertNotEqual(self.events_of("--apply", "--yes"), b"")

    def test_nor_do_copies_inputs_and_a_disk_in_a_directory(self):
        for name in ("src/a", "notes.txt", "README", "run"):
            self.write(name, "x")
        (self.home / ".local/state/sbx/disks").mkdir(parents=True)  # where sbx keeps its own data
        data = self.write("data", "x", directory=self.tmp)
        self.assertEqual(self.events_of("--set", 'limits.disk_on="directory"', "--in", data, "--read", f"{data}:{self.work}/other/deep/data"), b"")
        self.assertEqual(self.events_of("--in", f"{data}:src/data", "--out", self.home / ".local/out", "--set", 'filesystem.outputs.collect=["*"]'), b"")
        if sbxtest.IS_ROOT:
            os.chown(self.work / "run", -1, 70_000)
            self.assertEqual(self.events_of(), b"")


class GitRepositories(Workspace):
    """Agents work in linked worktrees and in subdirectories."""

    def setUp(self):
        super().setUp()
        if shutil.which("git") is None:
            self.skipTest("git is not installed")
        self.write("src/main.py", "print(1)\n")
        self.git("init", "-q")
        self.git("remote", "add", "origin", "https://me:sesame@example.org/x.git")
        self.git("add", "src")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
        self.tree_directory = self.tmp / "a work tree"
        self.git("worktree", "add", "-q", "-b", "topic", self.tree_directory)

    def git(self, *arguments):
        return subprocess.run(["git", *arguments], cwd=self.work, env=self.environment(), capture_output=True, check=True).stdout

    def inside(self, *arguments, cwd):
        return self.sbx("-p", "shell", "--", "git", *arguments, cwd=cwd)

    def test_a_worktree_works(self):
        self.write("src/main.py", "print(2)\n", directory=self.tree_directory)
        self.assertEqual(self.exited(self.inside("status", "--porcelain", cwd=self.tree_directory)).text, " M src/main.py\n")
        self.assertIn("topic", self.exited(self.inside("log", "--oneline", "--decorate", cwd=self.tree_directory)).text)

    def test_the_repository_of_a_worktree_is_read_only_and_without_credentials(self):
        ended = self.sbx("-p", "shell", "--", "touch", self.work / ".git" / "x", cwd=self.tree_directory)
        self.assertEqual(ended.status, 1, ended)
        self.assertIn("Read-only file system", ended.record["stderr"]["text"], ended)
        text = self.exited(self.inside("remote", "-v", cwd=self.tree_directory)).text
        self.assertIn("https://example.org/x.git", text)
        self.assertNotIn("sesame", text)

    def test_a_forged_worktree_shows_nothing(self):
        forged = self.tmp / "forged"
        forged.mkdir()
        (forged / ".git").write_text((self.tree_directory / ".git").read_text())
        ended = self.sbx("-p", "shell", "--", "ls", self.work / ".git", cwd=forged)
        self.assertNotEqual(ended.status, 0, ended)
        self.exited(self.sbx("-p", "shell", "--", "ls", self.work / ".git", cwd=self.tree_directory))

    def test_a_subdirectory_names_the_option_that_works(self):
        cwd = self.work / "src"
        told = self.sbx("-p", "shell", "--", "git", "status", cwd=cwd, json_record=False)
        self.assertIn(b"add --workspace ..:overlay", told.err, told)
        ended = self.sbx("-p", "shell", "--workspace", "..:overlay", "--", "git", "status", "--porcelain", cwd=cwd)
        self.assertEqual(self.exited(ended).text, "", ended)


class TheStory(Workspace):
    """A clean-up script from a model would delete work that is in no commit."""

    def setUp(self):
        super().setUp()
        if shutil.which("git") is None:
            self.skipTest("git is not installed")
        self.git("init", "-q")
        self.write("README", "project\n")
        self.write("src/main.py", "print(1)\n")
        self.git("add", "README", "src/main.py")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
        self.write("src/main.py", "print(2)  # in no commit\n")
        self.write("notes.txt", "weeks of work\n")

    def git(self, *arguments):
        return subprocess.run(["git", *arguments], cwd=self.work, env=self.environment(), capture_output=True, check=True).stdout

    def test_nothing_is_lost_and_the_person_decides(self):
        before = (self.git("status", "--porcelain"), self.tree())
        ended = self.overlay(CLEAN_UP)
        self.assertEqual((self.git("status", "--porcelain"), self.tree()), before)
        self.assertEqual(self.changed(ended), {"README": "modified", "notes.txt": "deleted", "src": "deleted", "src/main.py": "deleted"})
        self.overlay(CLEAN_UP, "--apply", "--yes")
        self.assertFalse((self.work / "notes.txt").exists() or (self.work / "src").exists())


if __name__ == "__main__":
    sbxtest.main()

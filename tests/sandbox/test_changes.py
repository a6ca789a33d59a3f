"""Change sets: what --keep stores, what `sbx changes` shows of it, and that applying it later does no harm."""

import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import unittest

import schemas
import sbxtest
import traced
from sbxtest import SBX, SOURCE, start
from test_workspace import CLEAN_UP, Workspace

try:
    import jsonschema
except ImportError:
    jsonschema = None

SCHEMA = "sbx.changes/1"
LEFTOVER = ".sbx-0123456789abcdef"


class Changes(Workspace):
    def setUp(self):
        super().setUp()
        self.state = self.home / ".local/state/sbx/changes"

    def keep(self, code, *options, name="set", ends_with=0):
        return self.overlay(code, "--keep", name, *options, ends_with=ends_with)

    def changes(self, *words, ends_with=0, wrapper=(), **options):
        process = start([*wrapper, SBX, "changes", *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, cwd=self.tmp, env=self.environment(), **options)
        ended = self.finish(process, words, json_record=False)
        if ends_with is not None:
            self.assertEqual(ended.status, ends_with, ended)
        return ended

    def json_of(self, *words, ends_with=0):
        answer = json.loads(self.changes(*words, "--json", ends_with=ends_with).out)
        self.assertEqual(answer["schema"], SCHEMA)
        if jsonschema is not None:
            self.assertEqual([error.message for error in self.checker().iter_errors(answer)], [], answer)
        return answer

    @staticmethod
    def checker():
        return jsonschema.Draft202012Validator(json.loads((SOURCE / "schema/sbx.changes.1.json").read_text()))

    def paths(self, changes):
        return [each["path"] for each in changes]

    def story(self):
        for name in ("src/a", "notes.txt", "README"):
            self.write(name, "text\n")
        self.keep(CLEAN_UP)


class Kept(Changes):
    def test_created_texts_are_shown_as_modified_ones_are(self):
        """Who is asked whether to apply a new program has seen it."""
        self.write("old", "1\n")
        lines = "".join(f"line {i}\n" for i in range(45))
        ended = self.keep(f"open('old', 'a').write('2\\n'); open('few.py', 'w').write('import os\\n\\x1b[31m\\n'); open('many', 'w').write({lines!r}); "
                          "open('binary', 'wb').write(b'\\0\\1secret'); open('empty', 'w'); import os; os.mkdir('sub'); open('sub/inner', 'w').write('deep\\n')", "--diff")
        for shown in (ended.err.decode(), self.changes("diff", "set").out.decode()):
            self.assertIn("  created   few.py  (16 bytes)\n    +import os\n    +\\x1b[31m\n", shown)
            self.assertIn("    +line 38\n    +line 39\n    … 5 more lines …\n", shown)
            self.assertIn("  created   sub/inner  (5 bytes)\n    +deep\n", shown)
            self.assertIn("    +2\n", shown)
            self.assertNotIn("line 40", shown)
            self.assertNotIn("secret", shown)
        self.assertNotIn("    +import os", self.changes("show", "set").out.decode())

    def test_a_set_is_listed_shown_and_applied_later(self):
        self.story()
        before = self.tree()
        listed, = self.json_of("list")["sets"]
        self.assertEqual((listed["name"], listed["count"], listed["directory"], listed["success"]), ("set", 4, str(self.work), True))
        self.assertIn(b"set ", self.changes("list").out)
        shown = self.changes("diff", "set").out.decode()
        places = [shown.index(word) for word in ("deleted   notes.txt", "deleted   src/", "modified  README", "+cleaned")]
        self.assertEqual(places, sorted(places), shown)
        words = self.changes("show", "set").out.decode()
        self.assertNotIn("+cleaned", words)
        self.assertRegex(words, r"(?m)^  kept .* of \S* -c \$'.* \(the command exited", "the command as a shell takes it")
        self.assertEqual(self.tree(), before)
        applied = self.json_of("apply", "--yes", "set")["applied"]
        self.assertEqual((len(applied["done"]), applied["conflicts"], applied["left"]), (4, [], []))
        self.assertEqual(self.tree(), {"README": b"text\ncleaned\n"})
        self.changes("drop", "set")
        self.assertEqual(self.json_of("list")["sets"], [])
        self.assertEqual(os.listdir(self.state), [])

    def test_answers_for_programs_are_json_and_nothing_else(self):
        self.keep("open('new', 'w')")
        for words in (["list"], ["show", "set"], ["apply", "--yes", "set"]):
            ended = self.changes(*words, "--json")
            self.assertEqual((json.loads(ended.out)["schema"], ended.err), (SCHEMA, b""), words)

    @unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed")
    def test_answers_have_what_their_schema_names_and_nothing_else(self):
        name = os.fsdecode(b"new\xff")
        odd = self.tmp / os.fsdecode(b"odd\xff")
        (odd / "d").mkdir(parents=True)
        code = "import os; os.mkfifo(b'pipe\\xff'); open(b'new\\xff', 'w'); open(b'fine\\xff', 'w'); os.symlink('/etc\\udcff', b'link\\xff'); os.chmod('d', 0o700); raise SystemExit(3)"
        self.sbx("--workspace", ".:overlay", "--keep", "set", "--lang", "python", "-c", code, name, cwd=odd)
        self.keep("open('other', 'w')", name="bad")
        (self.state / "bad/manifest").write_bytes(b"other")
        manifest = (self.state / "set/manifest").read_bytes()
        (self.state / "set/manifest").write_bytes(manifest.replace(b"\nlayer ", b"\nlost gone%FF no%20room%FF\nlayer ", 1))
        (odd / name).write_text("the host's")
        held = schemas.Held("sbx.changes/1")
        answers = [self.json_of("list"), self.json_of("show", "set"), self.json_of("apply", "--yes", "set", ends_with=None), self.json_of("show", "set"),
                   self.json_of("list")]
        self.assertIn("last_applied", answers[3])
        for answer in answers:
            held.hold(answer)
        self.assertEqual(held.open_objects(), set())
        # Sentences of sbx, of which few name a file.
        sentences = ("set.outcome", ".outcome", "broken.error", ".conflicts.why", ".applied.conflicts.why")
        self.assertEqual(held.unseen(), {f"{place}_b64" for place in sentences})
        for answer in answers:
            for member in set(answer) - {"last_applied", "lost", "command_b64", "directory_b64"}:
                with self.subTest(missing=member):
                    self.assertFalse(self.checker().is_valid({name: value for name, value in answer.items() if name != member}))
            self.assertFalse(self.checker().is_valid({**answer, "more": 1}))

    def test_the_record_and_a_line_name_the_set(self):
        ended = self.keep("open('a', 'w').write('1234')")
        self.assertEqual(ended.record["kept"], {"name": "set", "changes": 1, "bytes": 4})
        said = self.sbx("--workspace", f"{self.work}:overlay", "--keep", "other", "touch", "b", json_record=False).err.decode()
        self.assertIn("sbx changes apply other", said)

    def test_names_and_links_are_exact_whatever_they_are_made_of(self):
        names = [b"new\nline", b"esc\x1b[2J", b"\xff\xfe", b"a b%20c", "ü".encode(), b"-n"]
        self.keep(f"import os\nfor name in {names!r}: open(name, 'wb').write(name)\nos.symlink(b'to\\n\\xff', 'link'); os.symlink('/etc', 'abs')")
        shown = self.changes("show", "set").out
        self.assertNotIn(b"\x1b", shown)
        self.changes("apply", "--yes", "set")
        found = {name: (self.work / os.fsdecode(name)).read_bytes() for name in names}
        self.assertEqual(found, {name: name for name in names})
        self.assertEqual((os.readlink(os.fsencode(self.work / "link")), os.readlink(self.work / "abs")), (b"to\n\xff", "/etc"))

    def test_nothing_in_the_store_has_a_name_or_mode_of_the_programs_choice(self):
        self.keep("import os\nos.makedirs('.git/hooks'); open('.git/hooks/x', 'w').write('#!'); os.chmod('.git/hooks/x', 0o6755)\n"
                  "os.symlink('/etc/passwd', 'link'); os.mkfifo('pipe')")
        found = {str(path.relative_to(self.state)): path.lstat().st_mode for path in self.state.rglob("*")}
        self.assertEqual(set(found), {"set", "set/manifest", "set/contents", "set/contents/0", "set/contents/1"})
        self.assertEqual({oct(mode) for mode in found.values()}, {"0o40700", "0o100600"})
        self.assertEqual((self.state / "set/contents/1").read_bytes(), b"/etc/passwd")

    def test_what_a_failed_command_did_is_kept_with_how_it_ended(self):
        self.keep("open('a', 'w'); raise SystemExit(3)", ends_with=3)
        self.assertEqual(self.json_of("show", "set")["outcome"], "the command exited with status 3")
        self.changes("apply", "--yes", "set")
        self.assertEqual(os.listdir(self.work), ["a"])

    def test_a_run_that_changes_nothing_keeps_nothing(self):
        self.assertNotIn("kept", self.keep("pass").record)
        self.assertEqual(self.json_of("list")["sets"], [])

    def test_sparse_files_stay_sparse(self):
        self.keep("f = open('a', 'w'); f.write('x'); f.truncate(1 << 30)", "--set", 'limits.file_size="2G"')
        self.changes("apply", "--yes", "set")
        for path in (self.state / "set/contents/0", self.work / "a"):
            self.assertEqual(path.stat().st_size, 1 << 30)
            self.assertLess(path.stat().st_blocks, 1000)

    def test_a_name_that_is_taken_or_no_name_is_an_error_before_the_run(self):
        self.keep("open('a', 'w')")
        overlay = ["--workspace", f"{self.work}:overlay"]
        self.could_not(self.sbx(*overlay, "--keep", "set", "touch", "b"), "sbx changes drop set")
        for name in ("../x", ".x", "-x", "a/b", "x" * 65, "a\nb", ""):
            self.could_not(self.sbx(*overlay, f"--keep={name}", "touch", "b"))
        self.could_not(self.sbx("--workspace", ".:empty", "--keep", "x", "true"), "copy-on-write")
        self.exited(self.sbx(*overlay, "--keep", "x.Y_1-2", "touch", "b"))

    def test_two_runs_of_one_name_both_keep(self):
        code = "import sys\nopen('a', 'w'); print('ready', flush=True); sys.stdin.readline()"
        runs = [self.start_sbx("--workspace", f"{self.work}:overlay", "--keep", "set", "--lang", "python", "-c", code, json_record=False,
                               stdin=subprocess.PIPE) for _ in range(2)]
        for process in runs:
            self.assertEqual(process.stdout.readline(), b"ready\n")
        said = b"".join(self.finish(process, data=b"\n", json_record=False).err for process in runs)
        self.assertEqual({each["name"] for each in self.json_of("list")["sets"]}, {"set", "set-2"})
        self.assertIn(b"was taken meanwhile", said)

    def test_without_a_home_it_says_so_before_the_run(self):
        if not sbxtest.IS_ROOT and pathlib.Path(os.path.expanduser("~")).exists():
            self.skipTest("the home in the password file is used instead")
        ended = self.sbx("--workspace", f"{self.work}:overlay", "--keep", "x", "true", env={"HOME": None})
        if ended.status != 0:
            self.could_not(ended, "HOME")

    def test_a_store_that_is_a_link_or_open_to_others_is_not_trusted(self):
        elsewhere = self.tmp / "elsewhere"
        elsewhere.mkdir()
        self.state.parent.mkdir(parents=True)
        self.state.symlink_to(elsewhere)
        self.could_not(self.sbx("--workspace", f"{self.work}:overlay", "--keep", "x", "touch", "a"), "state")
        self.assertEqual(os.listdir(elsewhere), [])
        self.state.unlink()
        self.state.mkdir(mode=0o777)
        self.keep("open('a', 'w')")
        self.assertEqual(self.state.stat().st_mode & 0o777, 0o700)

    def test_a_store_of_somebody_else_is_not_used(self):
        if not sbxtest.IS_ROOT:
            self.skipTest("needs root to give a directory away")
        self.state.mkdir(parents=True)
        os.chown(self.state, 12345, 12345)
        self.could_not(self.sbx("--workspace", f"{self.work}:overlay", "--keep", "x", "touch", "a"), "somebody else")

    def test_state_goes_where_the_caller_says_below_the_home_only(self):
        for directory, used in ((self.home / "my state", True), (self.tmp / "outside", False)):
            ended = self.sbx("--workspace", f"{self.work}:overlay", "--keep", "x", "touch", "a", env={"XDG_STATE_HOME": str(directory)})
            self.exited(ended)
            self.assertEqual((directory / "sbx/changes/x").exists(), used)
        self.assertTrue((self.state / "x").exists())

    def test_what_a_killed_sbx_left_in_the_store_is_removed(self):
        self.keep("open('a', 'w')")
        (self.state / LEFTOVER / "contents").mkdir(parents=True)
        (self.state / LEFTOVER / "contents/0").write_text("x")
        self.changes("list")
        self.assertEqual(os.listdir(self.state), ["set"])

    def test_mistakes_end_with_2_and_a_cure(self):
        self.keep("open('a', 'w')", name="cleanup")
        self.assertIn(b'did you mean "cleanup"', self.changes("show", "clenup", ends_with=2).err)
        self.assertIn(b"list, show, diff, apply, drop", self.changes(ends_with=2).err)
        self.assertIn(b"changes show", self.changes("shw", ends_with=2).err)
        for words in (["show"], ["show", "a", "b"], ["apply", "--yes"], ["drop"], ["list", "x"], ["show", "../cleanup"], ["apply", "cleanup"]):
            self.assertRegex(self.changes(*words, ends_with=2).err, rb"^sbx: error(\[[a-z-]+\])?: ")
        self.assertIn(b"changes apply", self.changes("--help").out)
        # Nobody can be asked here, but the name comes first; what was named beside a missing name stays.
        self.assertIn(b"no-such-set", self.changes("apply", "nosuch", ends_with=2).err)
        self.assertIn(b"nothing was removed", self.changes("drop", "cleanup", "nosuch", ends_with=2).err)
        self.assertIn(b"cleanup", self.changes("list").out)
        self.changes("drop", "cleanup")
        self.assertNotIn(b"cleanup", self.changes("list").out)

    def test_many_hooks_are_one_line(self):
        self.keep("import os; os.makedirs('.git/hooks'); [open(f'.git/hooks/h{n}.sample', 'w') for n in range(13)]; open('a', 'w')")
        ended = self.changes("apply", "--yes", "set")
        self.assertIn(b".git/hooks/h0.sample and 12 more there (", ended.err)
        self.assertEqual(ended.err.count(b".sample"), 1)

    def test_sets_that_nobody_named_are_counted(self):
        for _ in range(5):
            ended = self.overlay("import os; os.makedirs('.git/hooks'); open('.git/hooks/x', 'w')", "--apply", "--yes", "--verbose")
        self.assertIn(b"5 such sets are kept", ended.err)


class Hazards(Changes):
    """What is applied, and what a program of the host may follow or run next."""

    MAKE = ("import os\nos.makedirs('web/node_modules/.bin'); os.makedirs('.venv/bin'); os.makedirs('node_modules/pkg/.bin')\n"
            "for name in ('web/node_modules/.bin/a', 'web/node_modules/.bin/b', '.venv/bin/python', 'node_modules/pkg/.bin/no', 'plain'): open(name, 'w')\n"
            "for to, name in (('../../etc', 'out'), ('/etc/passwd', 'absolute'), ('.git/hooks', 'guarded'), ('plain', 'within'), (os.getcwd() + '/plain', 'own')): os.symlink(to, name)\n")
    EXPECTED = {"out": "a symbolic link that may lead out of the directory: ../../etc", "absolute": "a symbolic link that may lead out of the directory: /etc/passwd",
                "guarded": "a symbolic link to a protected name (git runs what is in it): .git/hooks", "web/node_modules/.bin": "npm run and npx run what is in it",
                ".venv/bin": "uv, poetry and editors run what is in it"}

    def test_they_are_named_and_applied(self):
        ended = self.sbx("--workspace", f"{self.work}:overlay", "--apply", "--yes", "--report", self.tmp / "r.json", "--lang", "python", "-c", self.MAKE, json_record=False)
        self.assertEqual(ended.status, 0, ended)
        for path, why in self.EXPECTED.items():
            self.assertIn(f"sbx: look at: {path}: {why}\n", ended.err.decode())
        self.assertEqual(ended.err.count(b"look at"), len(self.EXPECTED), ended)
        record = json.loads((self.tmp / "r.json").read_text())
        self.assertEqual({each["path"]: each["why"] for each in record["applied"]["hazards"]}, self.EXPECTED)
        self.assertEqual(os.readlink(self.work / "out"), "../../etc")

    def test_a_kept_set_says_the_same_and_what_stays_inside_is_none(self):
        self.keep(self.MAKE)
        applied = self.json_of("apply", "--yes", "set", "out", "plain")["applied"]
        self.assertEqual(self.paths(applied["hazards"]), ["out"])
        self.assertEqual(self.json_of("apply", "--yes", "set", "within", "own")["applied"]["hazards"], [])


class Later(Changes):
    """The host changed between keeping and applying."""

    def test_files_that_changed_since_are_conflicts_and_stay(self):
        for name in ("content", "same-size", "mode", "gone", "replaced", "fine", "to-delete"):
            self.write(name, "text\n")
        self.keep("import os\nfor n in ('content', 'same-size', 'gone', 'replaced', 'fine'): open(n, 'w').write('inside')\n"
                  "os.chmod('mode', 0o700); os.remove('to-delete'); open('new', 'w').write('inside')")
        facts = (self.work / "same-size").stat()
        (self.work / "content").write_text("host")
        (self.work / "same-size").write_text("host\n")
        os.utime(self.work / "same-size", ns=(facts.st_atime_ns, facts.st_mtime_ns))
        (self.work / "mode").chmod(0o755)
        (self.work / "gone").unlink()
        self.write("replacement", "text\n").rename(self.work / "replaced")
        (self.work / "to-delete").write_text("host")
        (self.work / "new").write_text("host")
        before = {path.name: path.read_text() for path in self.work.iterdir()}
        applied = self.json_of("apply", "--yes", "set", ends_with=1)["applied"]
        self.assertEqual(self.paths(applied["conflicts"]), ["content", "gone", "mode", "new", "replaced", "same-size", "to-delete"])
        self.assertEqual(self.paths(applied["done"]), ["fine"])
        self.assertEqual({path.name: path.read_text() for path in self.work.iterdir()}, {**before, "fine": "inside"})
        self.assertEqual((self.work / "mode").stat().st_mode & 0o777, 0o755)

    def test_conflicts_are_named_before_anything_is_done(self):
        self.story()
        (self.work / "README").write_text("mine")
        shown = self.changes("show", "set").err
        self.assertIn(b"conflict: README", shown)
        self.assertIn(b"help: what the host has stays; sbx changes diff --patch set shows how the other differs\n", shown)
        self.assertIn(b"-mine\n", self.changes("diff", "--patch", "set").out)
        self.assertIn(b"sbx changes diff --patch set shows", self.changes("apply", "--yes", "set", ends_with=1).err)
        self.assertEqual(self.paths(self.json_of("show", "set")["conflicts"]), ["README"])

    def test_what_changed_since_is_not_compared_with(self):
        self.story()
        self.assertIn(b"modified  README  (13 bytes, was 5 bytes)\n", self.changes("show", "set").out)
        (self.work / "README").write_text("mine!!")
        for verb in ("show", "diff"):
            shown = self.changes(verb, "set").out
            self.assertIn(b"modified  README  (13 bytes; changed on the host since)\n", shown)
            self.assertNotIn(b"mine", shown)

    def test_what_was_applied_is_told(self):
        self.story()
        self.assertNotIn(b"applied", self.changes("show", "set").out)
        self.assertNotIn("last_applied", self.json_of("show", "set"))
        self.changes("apply", "--yes", "set", "README")
        self.assertRegex(self.changes("show", "set").out.decode(), r"\n  applied \d{4}-\d\d-\d\d \d\d:\d\d:\d\d: 1 of 4 changes\n")
        self.assertEqual(self.json_of("list")["sets"][0]["last_applied"]["changes"], 1)
        self.changes("apply", "--yes", "set")
        self.assertEqual(self.json_of("show", "set")["last_applied"]["changes"], 4)
        self.changes("drop", "set")
        self.assertEqual(os.listdir(self.state), [])

    def test_what_had_changed_during_the_run_stays_a_conflict(self):
        self.write("both", "before")
        code = "import sys\nopen('both', 'w').write('inside')\nprint('ready', flush=True); sys.stdin.readline()"
        process = self.start_sbx("--workspace", f"{self.work}:overlay", "--keep", "set", "--lang", "python", "-c", code, json_record=False,
                                 stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        (self.work / "both").write_text("host")
        self.finish(process, data=b"\n", json_record=False)
        self.assertEqual(self.paths(self.json_of("apply", "--yes", "set", ends_with=1)["applied"]["conflicts"]), ["both"])
        self.assertEqual((self.work / "both").read_text(), "host")

    def test_applying_again_is_no_conflict(self):
        for name in ("x/inner", "y", "README", "gone", "run"):
            self.write(name, "text\n")
        self.keep("import os, shutil\nshutil.rmtree('x'); open('x', 'w').write('2'); os.remove('y'); os.mkdir('y'); open('y/z', 'w')\n"
                  "open('README', 'a').write('more'); os.remove('gone'); os.symlink('a', 'link'); os.chmod('run', 0o755)")
        first = self.changes("apply", "--yes", "set").err.decode()
        self.assertRegex(first, rf"^sbx: applied \d+ changes to {self.work}\n")
        before = self.tree()
        again = self.changes("apply", "--yes", "set").err.decode()
        self.assertEqual(again, f"sbx: nothing was left to apply: {self.work} has all of it already\n")
        self.assertEqual(self.tree(), before)
        (self.work / "link").unlink()
        self.assertRegex(self.changes("apply", "--yes", "set").err.decode(), rf"^sbx: applied 1 change to {self.work}, which had \d+ already\n$")
        self.assertEqual(before, {"x": b"2", "y/z": b"", "README": b"text\nmore", "run": b"text\n"})

    def test_patterns_choose_and_bring_their_new_directories(self):
        self.write("old/file", "x")
        self.keep("import os, shutil\nos.makedirs('new/deep'); open('new/deep/f', 'w'); open('new/g', 'w'); open('a.c', 'w'); shutil.rmtree('old')")
        self.changes("apply", "--yes", "set", "new/deep/f", "*.c")
        self.assertEqual(sorted(self.tree()), ["a.c", "new/deep/f", "old/file"])
        self.changes("apply", "--yes", "set", "new", "old")
        self.assertEqual(sorted(self.tree()), ["a.c", "new/deep/f", "new/g"])

    def test_patterns_that_mean_no_change_are_named(self):
        for name in ("README", "kept"):
            self.write(name, "old")
        self.keep("open('README', 'w').write('new'); open('kept', 'w').write('new')")
        ended = self.changes("apply", "--yes", "set", "typo", "*.mdd", ends_with=1)
        self.assertEqual(ended.err, b"sbx: nothing to apply\nsbx: no changed file matches 'typo'\nsbx: no changed file matches '*.mdd'\n")
        ended = self.changes("apply", "--yes", "set", "READNE", "README", ends_with=1)
        self.assertIn(b"no changed file matches 'READNE'; did you mean README?\n", ended.err)
        self.assertEqual(self.tree(), {"README": b"new", "kept": b"old"})
        self.assertNotIn(b"no changed file", self.changes("apply", "--yes", "set", "./kept", "README").err)
        self.assertEqual(self.tree(), {"README": b"new", "kept": b"new"})

    def test_protected_names_are_left_out_unless_named_one_by_one(self):
        self.keep("import os\nos.makedirs('.git/hooks')\nfor n in ('.git/hooks/x', '.bashrc', 'a'): open(n, 'w')")
        applied = self.json_of("apply", "--yes", "set")["applied"]
        self.assertIn(".bashrc", self.paths(applied["left"]))
        self.changes("apply", "--yes", "set", "**")
        self.assertEqual(sorted(self.tree()), ["a"])
        self.changes("apply", "--yes", "set", ".bashrc", ".git/hooks/x")
        self.assertEqual(sorted(self.tree()), [".bashrc", ".git/hooks/x", "a"])

    def test_policy_files_of_the_run_are_never_applied(self):
        policy = self.policy('[filesystem.workspace]\nmode = "overlay"\n', name="work/p.toml")
        other = self.write("q.toml", policy.read_text())
        self.exited(self.sbx("-p", other, "--keep", "set", "--lang", "python", "-c", "open('p.toml', 'w'); open('a', 'w')"))
        manifest = self.state / "set/manifest"
        manifest.write_text(manifest.read_text().replace("q.toml", "p.toml"))
        self.assertIn("a policy file", str(self.json_of("apply", "--yes", "set")["applied"]["left"]))
        self.assertEqual((self.work / "p.toml").read_text(), policy.read_text())

    def test_a_directory_that_is_gone_or_another_one_is_an_error(self):
        self.story()
        self.work.rename(self.tmp / "moved")
        gone = self.changes("apply", "--yes", "set", ends_with=125).err
        self.assertIn(b"can't be opened", gone)
        self.assertIn(b"help: put it back, then: sbx changes apply set\n", gone)
        self.assertIn(b"deleted   notes.txt", self.changes("show", "set").out)
        self.work.mkdir()
        other = self.changes("apply", "--yes", "set", ends_with=125).err
        self.assertIn(b"not the directory", other)
        self.assertIn(b"put it back, then: sbx changes apply set\n", other)
        self.work.rmdir()
        self.work.symlink_to(self.tmp / "moved")
        self.changes("apply", "--yes", "set", ends_with=125)
        self.work.unlink()
        (self.tmp / "moved").rename(self.work)
        self.changes("apply", "--yes", "set")

    def test_links_that_came_since_are_not_followed(self):
        self.write("sub/file", "x")
        self.keep("open('sub/file', 'w').write('inside'); open('sub/new', 'w'); open('fine', 'w')")
        elsewhere = self.tmp / "elsewhere"
        (self.work / "sub").rename(elsewhere)
        (self.work / "sub").symlink_to(elsewhere)
        applied = self.json_of("apply", "--yes", "set", ends_with=1)["applied"]
        self.assertEqual(({path.name: path.read_text() for path in elsewhere.iterdir()}, self.paths(applied["done"]),
                          self.paths(applied["conflicts"]), applied["left"]), ({"file": "x"}, ["fine"], ["sub/file", "sub/new"], []))


class Repositories(Changes):
    def repository(self, name):
        """A repository with one commit; `git status` writes its index anew where the file's times say nothing."""
        top = self.work / name
        top.mkdir(exist_ok=True)
        (top / "a").write_text("one\n")
        for words in (("init", "-q"), ("add", "a"), ("commit", "-qm", "one")):
            self.git(top, *words)

    def git(self, top, *words):
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "core.fsmonitor=false", *words], cwd=top, check=True, capture_output=True,
                              env={**self.environment(), "GIT_CONFIG_NOSYSTEM": "1"}).stdout

    def test_parts_of_a_repository_are_applied_together_or_not_at_all(self):
        """Twin: another repository, and files that are no part of one."""
        for name in (".", "sub"):
            self.repository(name)
        self.keep("import subprocess\nfor top in ('.', 'sub'):\n    open(top + '/b', 'w').write('two')\n"
                  "    for words in (['add', 'b'], ['-c', 'user.name=a', '-c', 'user.email=a@example.org', 'commit', '-qm', 'two']):\n"
                  "        subprocess.run(['git', '-C', top, *words], check=True)", "--set", 'environment.pass=["PATH"]')
        os.utime(self.work / "sub/a", (1, 1))
        self.git(self.work / "sub", "status")
        ended = self.changes("apply", "--yes", "set", ends_with=1)
        self.assertIn(b"conflict: sub/.git/index: changed on the host since the run began", ended.err)
        self.assertIn(b"more changes in .git: another part of this repository is not applied", ended.err)
        said = [self.git(self.work / name, "log", "--format=%s").split() for name in (".", "sub")]
        self.assertEqual(said, [[b"two", b"one"], [b"one"]], ended)
        self.assertEqual(self.git(self.work / "sub", "status", "--short"), b"?? b\n")
        self.assertEqual(self.git(self.work / "sub", "fsck"), b"")


class Moved(Changes):
    """The workspace's path changes while the program runs: its changes are neither lost nor put elsewhere."""

    CODE = "open('old', 'w').write('new'); open('made', 'w').write('new'); print('ready', flush=True); input()"

    def run_and(self, happens, *options, ends_with=125):
        self.write("old", "before")
        process = self.start_sbx("--workspace", f"{self.work}:overlay", "--report", self.tmp / "r.json", *options, "--lang", "python",
                                 "-c", self.CODE, json_record=False, stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        happens()
        ended = self.finish(process, data=b"\n", json_record=False)
        self.assertEqual(ended.status, ends_with, ended)
        return ended

    def nothing(self):
        pass

    def renamed(self):
        self.work.rename(self.tmp / "elsewhere")

    def removed(self):
        shutil.rmtree(self.work)

    def replaced(self):
        self.renamed()
        self.work.mkdir()

    def replaced_by_a_link(self):
        self.renamed()
        (self.tmp / "target").mkdir()
        self.work.symlink_to("target")

    CASES = ((renamed, b"workspace-gone"), (removed, b"workspace-gone"), (replaced, b"workspace-replaced"),
             (replaced_by_a_link, b"workspace-replaced"))

    def each(self):
        for happens, code in self.CASES:
            with self.subTest(happens.__name__):
                yield lambda happens=happens: happens(self), code
                for path in (self.work, self.tmp / "elsewhere", self.tmp / "target"):
                    path.unlink() if path.is_symlink() else shutil.rmtree(path, ignore_errors=True)
                self.work.mkdir()

    def test_nothing_is_applied_to_another_place(self):
        for happens, code in self.each():
            self.assertIn(code, self.run_and(happens, "--apply", "--yes").err)
            for place in (self.work, self.tmp / "elsewhere", self.tmp / "target"):
                self.assertFalse((place / "made").exists(), place)

    def test_what_stays_in_place_is_applied(self):
        self.run_and(self.nothing, "--apply", "--yes", ends_with=0)
        self.assertEqual(self.tree(), {"old": b"new", "made": b"new"})

    def test_kept_changes_are_kept_all_the_same(self):
        for number, (happens, code) in enumerate(self.each()):
            ended = self.run_and(happens, "--keep", f"set-{number}")
            self.assertIn(code, ended.err)
            self.assertIn(f"sbx changes apply set-{number}".encode(), ended.err)
            self.assertIn("made", self.paths(self.json_of("show", f"set-{number}")["changes"]))

    def test_kept_changes_are_applied_when_the_directory_is_back(self):
        self.run_and(self.renamed, "--keep", "set")
        (self.tmp / "elsewhere").rename(self.work)
        self.changes("apply", "--yes", "set")
        self.assertEqual(self.tree(), {"old": b"new", "made": b"new"})

    def test_what_was_made_is_copied_out(self):
        for number, (happens, code) in enumerate(self.each()):
            self.assertIn(code, self.run_and(happens, "--out", self.tmp / f"out-{number}").err)
            self.assertEqual((self.tmp / f"out-{number}/made").read_text(), "new")

    def test_a_run_that_asked_for_nothing_is_not_concerned(self):
        self.run_and(self.renamed, ends_with=0)


class Implied(Changes):
    """--diff, --apply and --keep make an empty workspace a copy-on-write one."""

    def plain(self, *options, ends_with=0):
        ended = self.sbx(*options, "--lang", "python", "-c", "open('old', 'a').write('more')", json_record=False)
        self.assertEqual(ended.status, ends_with, ended)
        return ended

    def test_each_of_them_shows_the_files(self):
        self.write("old", "text\n")
        self.assertIn(b"modified  old", self.plain("--diff").err)
        self.plain("--keep", "set")
        self.assertEqual(self.paths(self.json_of("show", "set")["changes"]), ["old"])
        self.assertEqual(self.tree(), {"old": b"text\n"})
        self.plain("--apply", "--yes")
        self.assertEqual(self.tree(), {"old": b"text\nmore"})

    def test_an_empty_workspace_by_option_stays_empty(self):
        self.assertIn(b"no-changes-kept", self.plain("--workspace", ".:empty", "--diff", ends_with=125).err)

    def test_options_that_would_do_nothing_are_refused(self):
        self.assertIn(b"--apply", self.plain("--yes", ends_with=125).err)
        self.assertIn(b"--out", self.plain("--collect", "*", ends_with=125).err)
        self.assertIn(b"empty value", self.plain("--apply=", "--yes", ends_with=125).err)
        self.assertEqual(self.tree(), {})


class Ends(Changes):
    """The exit status of a run whose changes were not all applied."""

    CODE = "open('a', 'w').write('inside'); print('ready', flush=True); input(); raise SystemExit({})"

    def ended(self, status, *patterns, conflict=False):
        self.write("a", "before")
        process = self.start_sbx(*([f"--apply={each}" for each in patterns] or ["--apply"]), "--yes", "--lang", "python", "-c",
                                 self.CODE.format(status), json_record=False, stdin=subprocess.PIPE)
        process.stdout.readline()
        if conflict:
            self.write("a", "by hand")
        return self.finish(process, data=b"\n", json_record=False)

    def test_a_conflict_is_1(self):
        ended = self.ended(0, conflict=True)
        self.assertEqual((ended.status, self.tree()), (1, {"a": b"by hand"}), ended)
        self.assertIn(b"conflict: a: changed on the host", ended.err)
        self.assertIn(b"sbx changes diff --patch unapplied shows how the other differs\n", ended.err)

    def test_no_conflict_is_0(self):
        self.assertEqual((self.ended(0).status, self.tree()), (0, {"a": b"inside"}))

    def test_a_pattern_that_matches_nothing_is_1(self):
        ended = self.ended(0, "*.md")
        self.assertEqual(ended.status, 1, ended)
        self.assertIn(b"no changed file matches '*.md'", ended.err)

    def test_the_commands_own_status_wins(self):
        ended = self.ended(3, conflict=True)
        self.assertEqual(ended.status, 3, ended)
        self.assertIn(b"not applied: the command exited with status 3", ended.err)


class CopiedOut(Changes):
    """--out without patterns in the policy."""

    CODE = "import os; os.mkdir('sub'); open('sub/x', 'w').write('1'); open('y.txt', 'w'); os.symlink('y.txt', 'l'); os.mkdir('.git'); open('.git/config', 'w')"

    def out(self, *options):
        ended = self.exited(self.python(self.CODE, options=["--out", self.tmp / "out", "--verbose", *options]))
        return ended, sorted(str(path.relative_to(self.tmp / "out")) for path in (self.tmp / "out").rglob("*") if path.is_file())

    def test_every_created_file_of_an_empty_workspace_is_copied(self):
        self.assertEqual(self.out()[1], ["sub/x", "y.txt"])

    def test_every_created_file_of_an_overlay_is_copied(self):
        self.write("there", "before")
        self.assertEqual(self.out("--workspace", ".:overlay")[1], ["sub/x", "y.txt"])

    def test_patterns_narrow_and_what_they_leave_is_named(self):
        ended, files = self.out("--collect", "sub/*", "--collect", "*.md")
        self.assertEqual(files, ["sub/x"])
        self.assertIn(b"not copied: y.txt: matches no pattern", ended.err)
        self.assertIn(b"not matched by sub/* *.md", ended.err)
        self.assertIn(b"no new or changed file matches --collect '*.md'\n", ended.err)
        self.assertNotIn(b"matches --collect 'sub", ended.err)
        self.assertIn("y.txt", self.paths(ended.record["out"]["left"]))

    def test_a_directory_means_what_is_in_it_and_a_pattern_that_meant_a_file_in_one_is_told(self):
        self.assertEqual(self.out("--collect", "sub")[1], ["sub/x"])
        shutil.rmtree(self.tmp / "out")
        self.assertEqual(self.out("--collect", "*")[1], ["y.txt"])  # a pattern means no more than it says
        for wrong, meant in (("x", "sub/x"), ("?", "'**/?'"), (str(self.work / "sub/x"), "sub/x"), ("sub/X", "sub/x")):
            shutil.rmtree(self.tmp / "out")
            ended, files = self.out("--collect", wrong)
            self.assertEqual(files, [])
            self.assertIn(f"did you mean --collect {meant}?\n".encode(), ended.err)
            self.assertEqual(self.out("--collect", meant.strip("'"))[1], ["sub/x"])
        self.assertNotIn(b"did you mean", self.out("--collect", "y.txt", "--collect", "sub/x")[0].err)
        self.keep("import os; os.mkdir('sub'); open('sub/x', 'w').write('1')")
        self.assertIn(b"no changed file matches '?'; did you mean '**/?'?\n", self.changes("apply", "--yes", "set", "?", ends_with=1).err)

    def test_a_file_that_existed_before_is_named_and_the_option_for_it_copies_it(self):
        self.write("y.txt", "before")
        code = "open('y.txt', 'w').write('after')"

        def out(*options):
            return self.exited(self.python(code, options=["--workspace", ".:overlay", "--out", self.tmp / "out", "--verbose", *options])).err

        self.assertIn(b"1 file that existed before changed and was not copied: y.txt; --collect y.txt copies it", out())
        self.assertIn(b"did you mean --collect y.txt?", out("--collect", "y.tx"))
        ended = out("--collect", "y.txt")
        self.assertIn(b"copied 1 file", ended)
        self.assertNotIn(b"existed before", ended)
        self.assertEqual((self.tmp / "out/y.txt").read_text(), "after")

    def test_patterns_of_the_option_replace_the_policys(self):
        self.assertEqual(self.out("--set", 'filesystem.outputs.collect=["*.txt"]', "--collect", "sub/*")[1], ["sub/x"])


class Patches(Changes):
    """`sbx changes diff --patch` into `git apply`: the same tree as from `sbx changes apply`."""

    def setUp(self):
        super().setUp()
        if shutil.which("git") is None:
            self.skipTest("git is not installed")

    def applied(self, code, ends_with=0):
        """The tree that git makes from the patch, beside the directory."""
        copy = self.tmp / "copy"
        shutil.copytree(self.work, copy, symlinks=True)
        self.keep(code)
        made = self.changes("diff", "--patch", "set", ends_with=ends_with)
        done = subprocess.run(["git", "apply", "-"], input=made.out, cwd=copy, capture_output=True, check=False,
                              env=self.environment({"GIT_CEILING_DIRECTORIES": str(self.tmp)}))
        self.assertEqual(done.returncode, 0, (done.stderr, made.out))
        return {str(path.relative_to(copy)): (os.readlink(path) if path.is_symlink() else path.read_bytes(), path.lstat().st_mode & 0o100)
                for path in copy.rglob("*") if path.is_symlink() or path.is_file()}, made

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@example", *words], cwd=self.work, check=True, capture_output=True, env=self.environment())

    def test_the_record_has_one_on_request(self):
        self.write("edited", "one\n")
        code = "open('edited', 'w').write('two\\n')\nopen('binary', 'wb').write(bytes(9))"
        self.assertNotIn("patch", self.overlay(code).record)
        patch = self.overlay(code, "--diff").record["patch"]
        self.assertEqual(patch["bytes"], len(patch["text"]))
        self.assertEqual(self.paths(patch["left"]), ["binary"])
        done = subprocess.run(["git", "apply", "-"], input=patch["text"].encode(), cwd=self.work, capture_output=True, check=False,
                              env=self.environment({"GIT_CEILING_DIRECTORIES": str(self.tmp)}))
        self.assertEqual((done.returncode, (self.work / "edited").read_text()), (0, "two\n"), done.stderr)

    def test_the_records_has_no_protected_names_and_an_end(self):
        self.write(".git/config", "")
        code = ("import os\nos.makedirs('.git/hooks')\nopen('.git/hooks/pre-push', 'w').write('x')\nopen('free', 'w').write('y\\n')\n"
                "for i in range(24): open(f'long{i:02}', 'w').write('text of some length\\n' * 50000)")
        patch = self.overlay(code, "--diff").record["patch"]
        left = {each["path"]: each["why"] for each in patch["left"]}
        self.assertTrue(left[".git/hooks/pre-push"].startswith("a protected name"), left)
        self.assertEqual(left["long23"], "the patch is too long already")
        self.assertLess(patch["bytes"], 18 << 20)
        self.assertNotIn("long00", left)

    def test_the_bookkeeping_of_git_is_one_line(self):
        self.write("edited", "one\n")
        self.git("init", "-q", ".")
        self.git("add", ".")
        self.git("commit", "-qm", "first")
        ended = self.keep("import subprocess\nopen('edited', 'w').write('two\\n')\nopen('.git/hooks/pre-push', 'w').write('x')\n"
                          "subprocess.run(['git', '-c', 'user.name=n', '-c', 'user.email=e@example', 'commit', '-qam', 'second'], check=True)", "--diff")
        shown = self.changes("show", "set").out.decode()
        self.assertRegex(shown, r"\n  git       \d+ changes of objects, logs and index, ")
        for name in (".git/objects", ".git/index", ".git/logs"):
            self.assertNotIn(name, shown)
        for name in (".git/hooks/pre-push", ".git/refs/heads/", "edited"):
            self.assertIn(name, shown)  # the lines that git shows next
        self.assertTrue(any(path.startswith(".git/objects/") for path in self.paths(self.json_of("show", "set")["changes"])), ended)

    def test_files_are_made_changed_and_deleted(self):
        self.write("same", "same\n")
        self.write("edited", "".join(f"{i}\n" for i in range(100)))
        self.write("dropped/one", "1\n")
        self.write("dropped/empty", "")
        self.write("script", "#!/bin/sh\n")
        files, made = self.applied(
            "import os, shutil\nlines = open('edited').readlines(); lines[3] = 'three\\n'; del lines[50]; lines.append('end')\n"
            "open('edited', 'w').writelines(lines); shutil.rmtree('dropped'); os.chmod('script', 0o755)\n"
            "os.mkdir('new'); open('new/empty', 'w'); open('new/no-end', 'w').write('x'); open('new/text', 'w').write('a\\nb\\n')")
        edited = [f"{i}\n" for i in range(100)]
        edited[3] = "three\n"
        del edited[50]
        self.assertEqual(files, {"same": (b"same\n", 0), "edited": ("".join([*edited, "end"]).encode(), 0), "script": (b"#!/bin/sh\n", 0o100),
                                 "new/empty": (b"", 0), "new/no-end": (b"x", 0), "new/text": (b"a\nb\n", 0)}, made)

    def test_only_the_last_newline_changes(self):
        self.write("gains", "x")
        self.write("loses", "x\n")
        files, _ = self.applied("open('gains', 'w').write('x\\n'); open('loses', 'w').write('x')")
        self.assertEqual((files["gains"][0], files["loses"][0]), (b"x\n", b"x"))

    def test_any_name_is_quoted(self):
        names = ["a b", "new\nline", 'quo"te', "back\\slash", "tab\tend", "\u00fc", "-rf", "b/../c".replace("/", "|"), "diff --git a b", "\x1b[31m"]
        files, made = self.applied(f"import os\nfor n in {names!r}: open(n, 'w').write('x'); open(n + ' empty', 'w')")
        self.assertEqual(set(files), {*names, *(f"{name} empty" for name in names)}, made)

    def test_links_are_links(self):
        self.write("file", "text")
        (self.work / "moved").symlink_to("before")
        files, _ = self.applied("import os\nos.symlink('/etc/passwd', 'link'); os.remove('file'); os.symlink('x', 'file')\n"
                                "os.remove('moved'); os.symlink('after', 'moved')")
        self.assertEqual({name: content for name, (content, _) in files.items()}, {"link": "/etc/passwd", "file": "x", "moved": "after"})

    def test_what_it_can_not_hold_is_named(self):
        files, made = self.applied("import os\nopen('binary', 'wb').write(bytes(8)); open('long', 'w').write('x' * (1 << 21)); os.mkfifo('pipe')\n"
                                   "os.makedirs('.git/hooks'); open('.git/hooks/post-apply', 'w').write('x'); open('text', 'w').write('x')",
                                   ends_with=1)
        self.assertEqual(set(files), {"text"})
        for words in (b"binary: a binary file", b"long: longer than 1 MiB", b"pipe: ", b".git/hooks/post-apply: a protected name"):
            self.assertIn(b"not in the patch: " + words, made.err)


class Edited(Changes):
    """A change set edited by hand leads nowhere else."""

    def edited(self, *replacements, ends_with=125, manifest="set/manifest"):
        path = self.state / manifest
        text = path.read_text()
        for old, new in replacements:
            self.assertIn(old, text)
            path.write_text(text.replace(old, new))
            for command in (["apply", "--yes"], ["diff"], ["show"]):
                said = self.changes(*command, "set", ends_with=ends_with).err
                self.assertIn(b"can't be read, line", said)
            listed, = self.json_of("list")["sets"]
            self.assertEqual(listed["name"], "set")
        path.write_text(text)

    def test_paths_that_lead_out_are_refused(self):
        self.keep("import os\nos.mkdir('d'); open('d/victim', 'w').write('x')")
        self.edited(*((" d/victim", f" {bad}") for bad in ("../victim", "/etc/victim", "d/../../victim", "d//victim", "d/./victim", ".", "",
                                                           "d/victim/", "%2e%2e/victim", "d%00", "d%2", "d%zz")))
        self.changes("apply", "--yes", "set")

    def test_other_nonsense_is_refused(self):
        self.keep("open('a', 'w').write('x')")
        self.edited(("created file", "created door"), ("created file", "made file"), ("0644 1 0", "0644 1 ../manifest"), ("0644", "77777"),
                    ("0644 1", "0644 -1"), ("end 1", "end 2"), ("end 1", ""), ("sbx.set/1", "sbx.set/2"), ("layer ", "layer x"),
                    ("directory /", "directory x/"), ("success yes", "success maybe"))
        self.changes("apply", "--yes", "set")

    def test_content_that_is_no_plain_file_is_not_read(self):
        secret = self.write("secret", "secret", directory=self.tmp)
        for make in (lambda path: path.symlink_to(secret), os.mkfifo, os.mkdir, lambda path: None):
            self.keep("open('a', 'w').write('x')")
            content = self.state / "set/contents/0"
            content.unlink()
            make(content)
            self.changes("apply", "--yes", "set", ends_with=125)
            self.assertEqual(os.listdir(self.work), [])
            shutil.rmtree(self.state / "set")


class Interrupted(Changes):
    COUNT = 400
    OLD, NEW = b"a" * 100_000, b"b" * 100_000

    def setUp(self):
        super().setUp()
        for i in range(self.COUNT):
            self.write(f"f{i:03}", self.OLD)
        self.keep(f"for i in range({self.COUNT}): open(f'f{{i:03}}', 'wb').write(b'b' * 100_000)")

    def contents(self):
        return {path.name: path.read_bytes() for path in self.work.iterdir() if path.is_file()}

    def begun(self):
        process = start([SBX, "changes", "apply", "--yes", "set"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                        env=self.environment())
        while (self.work / "f000").read_bytes() != self.NEW:
            self.assertIsNone(process.poll())
        return process

    def test_a_signal_stops_it_after_the_file_at_hand(self):
        process = self.begun()
        process.send_signal(signal.SIGINT)
        ended = self.finish(process, json_record=False)
        found = self.contents()
        self.assertEqual(set(found), {f"f{i:03}" for i in range(self.COUNT)})
        self.assertLessEqual(set(found.values()), {self.OLD, self.NEW})
        if self.OLD in found.values():  # otherwise it was done before the signal arrived
            self.assertEqual(ended.status, 130, ended)
            self.assertIn(b"interrupted before", ended.err)
        self.changes("apply", "--yes", "set")
        self.assertEqual(set(self.contents().values()), {self.NEW})

    def test_killed_each_file_is_old_or_new_and_the_next_one_finishes(self):
        process = self.begun()
        process.kill()
        self.finish(process, json_record=False)
        found = {name: text for name, text in self.contents().items() if not name.startswith(".sbx-")}
        self.assertLessEqual(set(found.values()), {self.OLD, self.NEW})
        self.write(LEFTOVER, "left")
        self.write(".sbx-notes", "mine")
        self.changes("apply", "--yes", "set")
        self.assertEqual(set(os.listdir(self.work)), {LEFTOVER, ".sbx-notes", *(f"f{i:03}" for i in range(self.COUNT))})

    def test_names_of_its_own_temporary_files_are_never_applied(self):
        for name in ("own", "other"):
            shutil.rmtree(self.state / "set", ignore_errors=True)
            self.write("mine", "mine")
            ended = self.keep(f"import os\nos.rename('mine', '{LEFTOVER}')", "--apply", "--yes", ends_with=1)
            self.assertEqual(set(self.paths(ended.record["applied"]["left"])), {LEFTOVER, "mine"})
            self.assertEqual({"mine", LEFTOVER} & set(os.listdir(self.work)), {"mine"}, name)


class KilledAtEveryCall(Changes):
    """Many identical directories with identical changes: one application each, killed one system call later each
    time."""

    DIRECTORIES = 100
    BEFORE = {"modified": "old\n", "large": "a" * 70_000, "deleted": "old\n", "moved": "text\n", "gone/inner": "old\n", "executable": "#!/bin/sh\n"}

    def setUp(self):
        super().setUp()
        for i in range(self.DIRECTORIES):
            for name, text in self.BEFORE.items():
                self.write(f"c{i}/{name}", text)
            os.symlink("old", self.work / f"c{i}/link")
        self.before = self.seen("c0")
        self.keep(f"""import os
for i in range({self.DIRECTORIES}):
    os.chdir(f'c{{i}}')
    open('modified', 'w').write('new text\\n'); open('large', 'w').write('b' * 80_000)
    os.makedirs('made/below'); open('made/below/file', 'w').write('made\\n')
    os.remove('deleted'); os.rename('moved', 'made/moved'); os.remove('gone/inner'); os.rmdir('gone')
    os.chmod('executable', 0o755); os.remove('link'); os.symlink('new', 'link')
    os.chdir('..')
""")

    def seen(self, directory):
        """Name -> its type and contents, without directories."""
        found = {}
        for path in (self.work / directory).rglob("*"):
            if path.is_symlink():
                found[str(path.relative_to(self.work / directory))] = ("link", os.readlink(path))
            elif path.is_file():
                found[str(path.relative_to(self.work / directory))] = (path.stat().st_mode & 0o777, path.read_bytes())
        return found

    def test_each_file_is_old_or_new_and_the_next_one_finishes(self):
        last = f"c{self.DIRECTORIES - 1}"
        self.changes("apply", "--yes", "set", f"{last}/**")
        after = self.seen(last)
        self.assertEqual(set(after), {"modified", "large", "made/below/file", "made/moved", "executable", "link"})
        calls = []
        for i in range(self.DIRECTORIES - 1):
            call = traced.killed_before([SBX, "changes", "apply", "--yes", "set", f"c{i}/**"], i + 1, self.environment())
            if call is None:
                break
            calls.append(call)
            self.is_old_or_new(self.seen(f"c{i}"), after, calls)
            self.changes("apply", "--yes", "set", f"c{i}/**")  # so that the next one has nothing to remove
        else:
            self.fail(f"more calls than directories: {calls}")
        self.assertLessEqual({"renameat", "unlinkat", "mkdirat", "openat", "fchmodat"}, {call.removesuffix("2") for call in calls})
        self.changes("apply", "--yes", "set")
        for i in range(self.DIRECTORIES):
            self.assertEqual((self.seen(f"c{i}"), os.path.exists(self.work / f"c{i}/gone")), (after, False), i)

    def is_old_or_new(self, found, after, calls):
        for name in {*self.before, *after}:
            self.assertIn(found.get(name), (self.before.get(name), after.get(name)), (name, calls))
        self.assertTrue("moved" in found or "made/moved" in found, calls)
        others = [name for name in found if name not in self.before and name not in after]
        self.assertTrue(all(any(part.startswith(".sbx-") for part in name.split("/")) for name in others), (others, calls))


class Asked(Changes):
    def on_a_terminal(self, answer, *words):
        master, slave = pty.openpty()
        process = start([SBX, "changes", "apply", "set", *words], stdin=slave, stdout=slave, stderr=slave, env=self.environment(),
                        start_new_session=True)
        os.close(slave)
        said = b""
        while b"[y/N]" not in said:
            said += os.read(master, 4096)
        if isinstance(answer, bytes):
            os.write(master, answer)
        else:
            process.send_signal(answer)
        try:
            while more := os.read(master, 4096):
                said += more
        except OSError:  # EIO: the last user of the terminal has closed it
            pass
        os.close(master)
        return process.wait(timeout=120), said

    def test_it_shows_and_asks_on_a_terminal(self):
        self.story()
        before = self.tree()
        for answer, status in ((b"n\n", 1), (b"\n", 1), (signal.SIGINT, 130)):
            ended, said = self.on_a_terminal(answer)
            self.assertEqual((ended, self.tree()), (status, before), said)
            self.assertIn(b"+cleaned", said)
        ended, said = self.on_a_terminal(b" Yes\n", "README")
        self.assertEqual((ended, self.tree()["README"]), (0, b"text\ncleaned\n"), said)
        self.assertIn("notes.txt", self.tree())

    def test_who_is_asked_has_seen_what_leads_out(self):
        self.keep("import os; os.symlink('/etc', 'out')")
        ended, said = self.on_a_terminal(b"y\n")
        before, after = said.split(b"[y/N]")
        self.assertEqual((ended, os.readlink(self.work / "out")), (0, "/etc"), said)
        self.assertIn(b"sbx: look at: out: a symbolic link that may lead out of the directory: /etc", before)
        self.assertNotIn(b"look at", after)


class Hindered(Changes):
    """Full disks and read-only directories, in the test's own mount namespace."""

    def apart(self, script):
        wrapper = ["unshare", "--mount"] if sbxtest.IS_ROOT else ["unshare", "--user", "--map-root-user", "--mount"]
        if subprocess.run([*wrapper, "mount", "-t", "tmpfs", "none", str(self.work)], capture_output=True).returncode != 0:
            self.skipTest("mounts can't be made here")
        process = start([*wrapper, "sh", "-euc", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                        cwd=self.tmp, env=self.environment({"SBX": SBX, "WORK": str(self.work)}))
        ended = self.finish(process, json_record=False)
        self.assertEqual(ended.status, 0, ended)
        return ended

    RUN = '"$SBX" run -p python --workspace "$WORK:overlay" --keep set --lang python -c '

    def test_a_full_disk_changes_nothing(self):
        ended = self.apart(
            'mount -t tmpfs -o size=1m none "$WORK"; cd "$WORK"; for i in 1 2 3 4 5 6; do echo old > f$i; done\n' + self.RUN +
            '"for i in range(1, 7): open(f\'f{i}\', \'w\').write(\'n\' * 300000)"\n'
            'status=0; "$SBX" changes apply --yes set || status=$?; echo $status; find . -type f -printf "%s\\n"')
        status, *sizes = ended.out.decode().split()
        self.assertEqual((status, len(sizes), set(sizes)), ("125", 6, {"4"}), ended)
        self.assertIn(b"No space left", ended.err)

    def test_a_full_disk_is_named_by_a_quiet_run_too(self):
        make = "-p python --workspace .:overlay --lang python -c \"open('new', 'w').write('n' * {}); open('small', 'w').write('n')\" || status=$?; echo $status\n"
        for options in ("--out out", "--apply --yes"):
            run = f'status=0; "$SBX" run -q {options} {make}'
            ended = self.apart('mount -t tmpfs -o size=64k none "$WORK"; cd "$WORK"; mkdir out\n' + run.format(900000) + run.format(9000) + "ls . out\n")
            statuses = [word for word in ended.out.decode().split() if word.isdigit()]
            self.assertEqual((statuses, b"new" in ended.out.split()), (["125", "0"], True), ended)
            self.assertRegex(ended.err, rb"\Asbx: error\[not-brought-out\]: not everything could be written: 'new': .*No space left on device\n", ended)

    def test_room_for_all_that_is_new_is_enough(self):
        """Old files go after it."""
        ended = self.apart(
            'mount -t tmpfs -o size=2m none "$WORK"; cd "$WORK"; for i in 1 2 3 4 5 6; do head -c 140000 /dev/zero > f$i; done\n' + self.RUN +
            '"for i in range(1, 7): open(f\'f{i}\', \'w\').write(\'n\' * 140000)"\n'
            '"$SBX" changes apply --yes set; cat f? | tr -d n | wc -c')
        self.assertEqual(ended.out.split()[-1], b"0", ended)

    def test_a_read_only_directory_is_named_and_nothing_is_done(self):
        ended = self.apart('cd "$WORK"; echo old > f; ' + self.RUN + "\"open('f', 'w').write('new')\"\n"
                           'mount --bind "$WORK" "$WORK"; mount -o remount,bind,ro "$WORK"\n'
                           'status=0; "$SBX" changes apply --yes set || status=$?; echo $status; cat "$WORK/f"')
        self.assertEqual(ended.out, b"125\nold\n", ended)
        self.assertIn(b"Read-only file system", ended.err)

    SMALL_HOME = 'mkdir -p "$HOME/.local/state"; mount -t tmpfs -o size=256k none "$HOME/.local/state"; cd "$WORK"\n'

    def test_a_home_without_room_keeps_what_fits_and_names_the_rest(self):
        """What was moved to a file that is lost stays where it was."""
        ended = self.apart(
            self.SMALL_HOME + 'echo old > edited; echo gone > gone; head -c 300000 /dev/zero > moved; status=0\n' + self.RUN +
            '"import os; os.rename(\'moved\', \'there\'); os.remove(\'gone\'); open(\'a\', \'w\').write(\'a\');'
            'open(\'edited\', \'w\').write(\'new\'); open(\'z\', \'w\').write(\'n\' * 900000); os.symlink(\'a\', \'zz\')" || status=$?\n'
            'echo $status; "$SBX" changes list --json; status=0; "$SBX" changes apply --yes set || status=$?; echo $status; ls; cat edited; wc -c < moved')
        status, listed, *rest = ended.out.decode().splitlines()
        self.assertEqual((status, rest), ("125", ["1", "a", "edited", "moved", "zz", "new300000"]), ended)
        kept = json.loads(listed)["sets"][0]
        self.assertEqual((kept["count"], sorted(each["path"] for each in kept["lost"])), (4, ["moved", "there", "z"]), kept)
        for name in (b"there", b"z"):
            self.assertRegex(ended.err, rb"sbx: not kept: " + name + rb": .*No space left on device\n")
            self.assertRegex(ended.err, rb"sbx: not applied: " + name + rb": not in the set: .*No space left on device\n")
        self.assertIn(b"sbx: not kept: moved: its deletion would take what was moved to 'there', which is lost\n", ended.err)
        self.assertIn(b"/.local/state/sbx' is full: \"sbx changes drop NAME\" makes room there\n", ended.err)

    def test_a_list_for_which_the_files_left_no_room_takes_the_place_of_some(self):
        ended = self.apart(
            self.SMALL_HOME + 'status=0\n' + self.RUN +
            '"for i in range(300): open(f\'{i:03}\' + \'n\' * 200, \'w\').write(\'x\')" || status=$?\n'
            'echo $status; "$SBX" changes list --json; "$SBX" changes apply --yes set || :; ls | wc -l')
        status, listed, files = ended.out.decode().splitlines()
        kept = json.loads(listed)["sets"][0]
        self.assertEqual((status, kept["count"] + len(kept["lost"]), kept["count"]), ("125", 300, int(files)), kept)
        self.assertGreater(kept["count"], 0)

    def test_what_apply_left_is_kept_as_far_as_there_is_room(self):
        ended = self.apart(
            self.SMALL_HOME + 'echo old > edited; status=0\n"$SBX" run -p python --workspace "$WORK:overlay" --apply --yes --lang python -c '
            '"import os; open(\'edited\', \'w\').write(\'new\'); open(\'z\', \'w\').write(\'n\' * 900000); os.mkdir(\'.git\');'
            'os.mkdir(\'.git/hooks\'); open(\'.git/hooks/big\', \'w\').write(\'n\' * 900000); open(\'.git/hooks/small\', \'w\').write(\'n\')" || status=$?\n'
            'echo $status; "$SBX" changes list --json; ls')
        status, listed, *files = ended.out.decode().splitlines()
        self.assertEqual((status, files), ("125", ["edited", "z"]), ended)
        self.assertEqual([each["path"] for each in json.loads(listed)["sets"][0]["lost"]], [".git/hooks/big"], listed)
        self.assertIn(b"sbx: not kept: .git/hooks/big: ", ended.err)

    def test_a_full_home_keeps_nothing_and_says_so(self):
        ended = self.apart('mkdir -p "$HOME/.local/state"; mount -t tmpfs -o size=64k none "$HOME/.local/state"; cd "$WORK"; status=0\n' +
                           self.RUN + "\"open('f', 'w').write('n' * 300000)\" || status=$?\n"
                           'echo $status; "$SBX" changes list; ls -A "$HOME/.local/state/sbx/changes"')
        self.assertEqual(ended.out, b"125\n", ended)
        self.assertIn(b"nothing is kept", ended.err)
        self.assertIn(b"No space left", ended.err)


if __name__ == "__main__":
    sbxtest.main()

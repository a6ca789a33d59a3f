"""If an overlay is impossible the workspace is a copy, and if memory is unsuitable the private disk is a directory."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess

import sbxtest
from sbxtest import SBX, SbxTest

ODD = """
import os, socket
os.makedirs('sub/deep', exist_ok=True)
open('plain', 'w').write('plain'); open('sub/inner', 'w').write('inner'); open('sub/deep/er', 'w').write('er')
os.symlink('/etc/passwd', 'absolute'); os.symlink('nowhere', 'dangling'); os.symlink('loop', 'loop'); os.symlink('plain', 'link')
os.link('plain', 'second'); os.mkfifo('fifo')
s = socket.socket(socket.AF_UNIX); s.bind('socket')
open('suid', 'w').write('x'); os.chmod('suid', 0o4755)
open('attr', 'w').write('x'); os.setxattr('attr', 'user.note', b'kept')
f = open('sparse', 'w'); f.write('x'); f.truncate(100 << 30); f.close()
for name in (b'new\\nline', b'esc\\033[31m', b'\\xff\\xfe'): open(name, 'w').write('odd')
os.mkdir('closed'); open('closed/file', 'w').write('x'); os.chmod('closed', 0o000)
os.mkdir('search'); open('search/file', 'w').write('x'); os.chmod('search', 0o711)
"""
LOOK = """
import os, stat
for directory, directories, names in os.walk(b'.'):
    directories.sort()
    for name in sorted(directories + names):
        path = os.path.join(directory, name); facts = os.lstat(path); text = ''
        if stat.S_ISLNK(facts.st_mode): text = os.readlink(path)
        elif stat.S_ISREG(facts.st_mode) and facts.st_size < 1000: text = open(path, 'rb').read()
        print(path, stat.filemode(facts.st_mode), facts.st_size if stat.S_ISREG(facts.st_mode) else '', text)
"""


class Copies(SbxTest):
    def setUp(self):
        super().setUp()
        self.tmp.chmod(0o755)
        self.addCleanup(subprocess.run, ["chmod", "-R", "u+rwx", self.work], check=False)

    def disks(self):
        directory = self.home / ".local/state/sbx/disks"
        return sorted(os.listdir(directory)) if directory.exists() else []

    def told(self, ended, what):
        return [each for each in ended.record["degraded"] if each["what"] == what]

    def changes(self, ended):
        return {each["path"]: each["change"] for each in ended.record["changes"]}

    def make_foreign(self, *names):
        """Files whose group has no id inside."""
        if sbxtest.IS_ROOT:
            for name in names:
                os.chown(self.work / name, -1, 70_000)
            return
        groups = [group for group in os.getgroups() if group != os.getegid()]
        if not groups:
            self.skipTest("this user is in one group only")
        for name in names:
            os.chown(self.work / name, -1, groups[0])

    def overlay(self, code, *options, **rest):
        ended = self.sbx("--workspace", f"{self.work}:overlay", *options, "--lang", "python", "-c", code, **rest)
        self.assertEqual(ended.status, 0, ended)
        return ended


    def keeps_and_applies(self, *options):
        """`theirs` has a foreign group if the caller has one, so that it becomes a copy."""
        ended = self.overlay("import os, shutil\nopen('theirs', 'a').write('!'); shutil.move('sub', 'moved'); os.remove('mine'); open('new', 'w').write('n')\n"
                             "os.symlink('new', 'link'); os.chmod('moved/file', 0o600)", "--keep", "set", *options)
        names = set(self.changes(ended))
        self.assertEqual(names, {"theirs", "sub", "sub/file", "moved", "moved/file", "mine", "new", "link"}, ended)
        self.assertEqual(sorted(os.listdir(self.work)), ["mine", "sub", "theirs"])
        shown = json.loads(self.said("show", "set", "--json"))
        self.assertEqual({each["path"] for each in shown["changes"]}, names)
        self.assertIn(b"+2!", self.said("diff", "set"))
        self.said("apply", "--yes", "set")
        self.assertEqual(((self.work / "theirs").read_text(), (self.work / "link").read_text()), ("2!", "n"))
        self.assertEqual(sorted(os.listdir(self.work)), ["link", "moved", "new", "theirs"])
        self.assertEqual((self.work / "moved/file").stat().st_mode & 0o777, 0o600)
        self.said("drop", "set")
        self.assertEqual(json.loads(self.said("list", "--json"))["sets"], [])

    def said(self, *words):
        return subprocess.run([SBX, "changes", *words], check=True, capture_output=True, stdin=subprocess.DEVNULL, cwd=self.work,
                              env=self.environment()).stdout


class Foreign(Copies):
    def setUp(self):
        super().setUp()
        self.write("mine", "1")
        self.write("theirs", "2")
        self.write("sub/file", "3")
        self.make_foreign("theirs")

    def test_a_file_of_a_foreign_group_makes_the_workspace_a_copy(self):
        ended = self.overlay("import os\nopen('theirs', 'a').write('more'); os.rename('sub', 'moved'); os.remove('mine'); open('new', 'w')\n"
                             "os.chmod('moved/file', 0o600)")
        self.assertEqual(self.changes(ended), {"theirs": "modified", "sub": "deleted", "sub/file": "deleted", "moved": "created",
                                               "moved/file": "created", "mine": "deleted", "new": "created"}, ended)
        self.assertTrue(self.told(ended, "filesystem.workspace.mode"), ended)
        self.assertEqual(((self.work / "theirs").read_text(), sorted(os.listdir(self.work))), ("2", ["mine", "sub", "theirs"]))

    def test_without_one_it_is_an_overlay(self):
        (self.work / "theirs").unlink()
        self.assertFalse(self.told(self.overlay("pass"), "filesystem.workspace.mode"))

    def test_a_run_that_changes_nothing_lists_nothing(self):
        ended = self.overlay("open('theirs').read(); open('mine', 'r+').close()")
        self.assertEqual(self.changes(ended), {})

    def test_rewritten_with_the_same_bytes_is_no_change_and_times_hide_none(self):
        os.utime(self.work / "mine", (10**9, 10**9))
        ended = self.overlay("import os\nopen('theirs', 'w').write('2'); open('mine', 'w').write('9'); os.utime('mine', (10**9, 10**9))")
        self.assertEqual(self.changes(ended), {"mine": "modified"})

    def test_apply_and_out_work_over_a_copy(self):
        out = self.tmp / "out"
        ended = self.overlay("import os\nopen('theirs', 'a').write('!'); os.remove('mine'); open('new', 'w').write('n')", "--apply", "--yes", "--out",
                             out, "--set", 'filesystem.outputs.collect=["*"]')
        self.assertEqual((self.work / "theirs").read_text(), "2!", ended)
        self.assertEqual(sorted(os.listdir(self.work)), ["new", "sub", "theirs"])
        self.assertEqual(sorted(os.listdir(out)), ["new", "theirs"])

    def test_changes_to_a_copy_are_kept_and_applied_later(self):
        self.keeps_and_applies()

    def test_so_are_those_to_a_copy_on_a_disk_in_a_directory(self):
        self.keeps_and_applies(*Directory.DIRECTORY)
        self.assertEqual(self.disks(), [])

    def test_what_the_copy_never_had_is_not_deleted(self):
        """What the caller can't read, and what the host makes meanwhile. Twin: what the program deletes."""
        for name in ("secret", "gone"):
            self.write(name, "x")
        (self.work / "secret").chmod(0o000)
        (self.work / "shut").mkdir(mode=0o000)
        process = self.start_sbx("--workspace", ".:overlay", "--apply", "--yes", "--", "sh", "-c", "rm gone; echo; read line", stdin=subprocess.PIPE,
                                 json_record=False)
        self.assertEqual(process.stdout.readline(), b"\n")
        (self.work / "later").mkdir()
        self.write("later/file", "x")
        self.write("later-file", "x")
        ended = self.finish(process, data=b"\n", json_record=False)
        self.assertIn(b"applied 1 change", ended.err)
        self.assertEqual(sorted(os.listdir(self.work)), ["later", "later-file", "mine", "secret", "shut", "sub", "theirs"])

    def beside(self, script, meanwhile, *options):
        """Runs the shell script in a copy; at its `read` the user works on in the directory. Returns what the run says at its end."""
        process = self.start_sbx("--workspace", ".:overlay", "--report", self.tmp / "record", *options, "--", "sh", "-c", script, stdin=subprocess.PIPE,
                                 json_record=False)
        self.assertEqual(process.stdout.readline(), b"\n")
        meanwhile()
        ended = self.finish(process, data=b"\n", json_record=False)
        return ended, {each["path"]: each["change"] for each in json.loads((self.tmp / "record").read_text())["changes"]}

    def test_what_the_user_does_meanwhile_is_not_a_change_of_the_program(self):
        """Twin: what the program does to the same names is one, and where both did something it is a conflict."""
        for name in ("edited", "removed", "chmodded", "both", "gone-inside", "gone-outside"):
            self.write(name, "x")
        os.symlink("mine", self.work / "link")

        def work_on():
            for name in ("edited", "both", "gone-inside"):
                self.write(name, f"{name} by the user")
            for name in ("removed", "gone-outside", "sub/file"):
                (self.work / name).unlink()
            (self.work / "chmodded").chmod(0o600)
            self.write("new", "the user's")
            self.write("made/by-both", "the user's")
            (self.work / "link").unlink()
            os.symlink("edited", self.work / "link")

        script = "echo; read line; echo by the program > both; rm gone-inside gone-outside; mkdir made; echo x > made/by-both; echo y > mine"
        ended, changes = self.beside(script, work_on, "--apply", "--yes")
        self.assertEqual(changes, {"both": "modified", "gone-inside": "deleted", "gone-outside": "deleted", "made": "created",
                                               "made/by-both": "created", "mine": "modified"}, ended)
        self.assertEqual({line.split(": ")[2] for line in ended.err.decode().splitlines() if "conflict" in line},
                         {"both", "gone-inside", "made/by-both"}, ended)
        self.assertEqual({name: (self.work / name).read_text() for name in ("edited", "both", "gone-inside", "new", "made/by-both", "mine")},
                         {"edited": "edited by the user", "both": "both by the user", "gone-inside": "gone-inside by the user", "new": "the user's",
                          "made/by-both": "the user's", "mine": "y\n"})
        self.assertEqual(os.readlink(self.work / "link"), "edited")
        self.assertFalse((self.work / "removed").exists())

    def moved_there_meanwhile(self, script, moves, *options):
        """What is left in the directory, and the conflicts, when the user moves directories with old files while the program runs."""
        for name in ("b/old", "c/x", "g/x"):
            self.write(name, "seen by the program")
        for name in ("photos/1", "photos/in/2", "other/x"):
            self.write(name, "the user's", directory=self.home)
        def move():
            for old, new in moves:
                os.rename(old, new)
        ended, _ = self.beside(script, move, *options)
        said = ended.err
        if "--keep" in options:
            said = self.run_outside(SBX, "changes", "apply", "--yes", "set").err + self.run_outside(SBX, "changes", "drop", "set").err
        left = {str(path.relative_to(self.work)): path.read_text() for path in self.work.rglob("*") if path.is_file()}
        for name in ("mine", "theirs", "sub/file"):
            left.pop(name, None)
        for path in [self.home / "photos", self.home / "other", *(path for path in self.work.iterdir() if path.is_dir())]:
            shutil.rmtree(path, ignore_errors=True)
        return left, sorted(line.split(": ")[2] for line in said.decode().splitlines() if "conflict" in line)

    def run_outside(self, *command):
        return self.finish(sbxtest.start(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.tmp,
                                         env=self.environment()), json_record=False)

    def test_a_directory_that_the_user_moves_there_is_the_users(self):
        """rename(2) moves the times of the directory, not those of what is in it. Twin: without a move everything is done."""
        photos = [(self.home / "photos", self.work / "b/photos")]
        kept = {"b/photos/1": "the user's", "b/photos/in/2": "the user's"}
        rest = {"c/x": "seen by the program", "g/x": "seen by the program"}
        for is_copy in (True, False):
            for options in (("--apply", "--yes"), ("--keep", "set")):
                with self.subTest(is_copy=is_copy, options=options):
                    self.write("theirs", "2")
                    if is_copy:
                        self.make_foreign("theirs")
                    after = "; echo; read line"
                    self.assertEqual(self.moved_there_meanwhile("rm -r b; mkdir b" + after, photos, *options), ({**kept, **rest}, []))
                    self.assertEqual(self.moved_there_meanwhile("rm -r b" + after, photos, *options), ({**kept, **rest}, ["b"]))
                    self.assertEqual(self.moved_there_meanwhile("rm -r b" + after, [], *options), (rest, []))
                    for edit in ("echo new > c/x", "rm c/x", "chmod 600 c/x"):
                        moves = [(self.work / "c", self.home / "c.old"), (self.home / "other", self.work / "c")]
                        self.assertEqual(self.moved_there_meanwhile(edit + after, moves, *options),
                                         ({"b/old": rest["g/x"], "c/x": "the user's", "g/x": rest["g/x"]}, ["c/x"]), edit)
                        shutil.rmtree(self.home / "c.old")
                    moves = [(self.work / "g", self.home / "g.old"), (self.home / "other", self.work / "g")]
                    left, _ = self.moved_there_meanwhile("rm -r g" + after, moves, *options)
                    self.assertEqual(left, {"b/old": rest["c/x"], "c/x": rest["c/x"], "g/x": "the user's"})
                    shutil.rmtree(self.home / "g.old")
                    left, conflicts = self.moved_there_meanwhile("echo new > c/x; rm -r g" + after, [], *options)
                    self.assertEqual((left, conflicts), ({"b/old": rest["g/x"], "c/x": "new\n"}, []))

    def taken_away(self, script, does, *options, later=False):
        """What is left when the user does something to names that the program changes: while it runs, or `later`, before the kept
        changes are applied. And the conflicts, and the status."""
        for name in ("old", "d/f"):
            self.write(name, "seen by the program")
        os.symlink("old", self.work / "link")
        ended, _ = self.beside(script + "; echo; read line", (lambda: None) if later else does, *options)
        if "--keep" in options:
            if later:
                does()
            ended = self.run_outside(SBX, "changes", "apply", "--yes", "set")
            self.run_outside(SBX, "changes", "drop", "set")
        left = {}
        for path in sorted(self.work.rglob("*")):
            name = str(path.relative_to(self.work))
            if name not in ("mine", "theirs", "sub", "sub/file"):
                left[name] = os.readlink(path) if path.is_symlink() else "/" if path.is_dir() else path.read_text()
        for name in left:
            if "/" not in name:
                shutil.rmtree(self.work / name) if left[name] == "/" else (self.work / name).unlink()
        shutil.rmtree(self.home / "gone", ignore_errors=True)
        return left, sorted(line.split(": ")[2] for line in ended.err.decode().splitlines() if "conflict" in line), ended.status

    def test_what_the_user_takes_away_stays_away(self):
        """Removed, or moved elsewhere, alone or with its directory. Twins: nothing is taken away, or both take away the same."""
        seen = "seen by the program"
        whole = {"d": "/", "d/f": seen, "link": "old", "old": seen}

        def only(*names, **more):
            return {**{name: whole[name] for name in names}, **more}

        def remove(*names):
            def does():
                for name in names:
                    shutil.rmtree(self.work / name) if name == "d" else (self.work / name).unlink()
            return does

        def move(make_anew):
            def does():
                os.rename(self.work / "d", self.home / "gone")
                if make_anew:
                    (self.work / "d").mkdir()
            return does
        in_d = "echo new > d/f; echo new > d/new"
        without_d = only("link", "old")
        cases = [("echo new > old", remove("old"), only("d", "d/f", "link"), ["old"]),
                 ("ln -sfn d link", remove("link"), only("d", "d/f", "old"), ["link"]),
                 ("chmod 600 old", remove("old"), only("d", "d/f", "link"), ["old"]),
                 ("chmod 711 d", remove("d"), without_d, ["d"]),
                 (in_d, remove("d"), without_d, ["d/f", "d/new"]),
                 (in_d, move(False), without_d, ["d/f", "d/new"]),
                 (in_d, move(True), only("link", "old", d="/"), ["d/f", "d/new"]),
                 ("mkdir d/in; echo new > d/in/x", move(True), only("link", "old", d="/"), ["d/in", "d/in/x"]),
                 ("rm -r d; mkdir d; echo new > d/new", remove("d"), without_d, ["d/new"]),
                 (in_d, lambda: None, {**whole, "d/f": "new\n", "d/new": "new\n"}, []),
                 ("rm -r d; rm old", remove("d", "old"), only("link"), [])]
        for is_copy in (True, False):
            self.write("theirs", "2")
            if is_copy:
                self.make_foreign("theirs")
            for options, later in ((("--apply", "--yes"), False), (("--keep", "set"), False), (("--keep", "set"), True)):
                for script, does, left, conflicts in cases:
                    with self.subTest(is_copy=is_copy, options=options, later=later, script=script):
                        self.assertEqual(self.taken_away(script, does, *options, later=later), (left, conflicts, 1 if conflicts else 0))

    def test_a_directory_that_the_user_closes_stays_closed(self):
        """Twin: what the program does to its permissions is done, and where both did something it is a conflict."""
        sub = self.work / "sub"
        for is_copy in (True, False):
            with self.subTest(is_copy=is_copy):
                self.write("theirs", "2")
                if is_copy:
                    self.make_foreign("theirs")
                for script, mode, changes, conflicts in (("echo x > sub/new", 0o700, {"sub/new": "created"}, []),
                                                         ("chmod 711 sub", 0o755, {"sub": "mode"}, []),
                                                         ("chmod 711 sub", 0o700, {"sub": "mode"}, ["sub"])):
                    sub.chmod(0o755)
                    ended, seen = self.beside(script + "; echo; read line", lambda mode=mode: sub.chmod(mode), "--apply", "--yes")
                    self.assertEqual((seen, [line.split(": ")[2] for line in ended.err.decode().splitlines() if "conflict" in line]),
                                     (changes, conflicts), ended)
                    self.assertEqual(sub.stat().st_mode & 0o777, 0o711 if seen == {"sub": "mode"} and not conflicts else mode, ended)
                    (sub / "new").unlink(missing_ok=True)

    def test_so_it_is_in_a_session(self):
        def session(*words):
            ended = subprocess.run([SBX, "session", *words], capture_output=True, stdin=subprocess.DEVNULL, cwd=self.work, env=self.environment())
            return ended.returncode, ended.stdout, ended.stderr

        def changes():
            return {each["path"]: each["change"] for each in json.loads(session("changes", "work", "--json")[1])["changes"]}
        self.write("edited", "x")
        self.assertEqual(session("start", "work", "--workspace", ".:overlay")[0], 0)
        try:
            self.write("edited", "by the user")
            self.write("new", "the user's")
            self.assertEqual(changes(), {})
            self.assertEqual(session("exec", "work", "--", "sh", "-c", "echo y > mine; rm theirs; echo z > edited")[0], 0)
            self.assertEqual(changes(), {"mine": "modified", "theirs": "deleted", "edited": "modified"})
            status, _, err = session("apply", "work", "--yes")
            self.assertEqual((status, b"conflict: edited: changed on the host" in err), (1, True), err)
        finally:
            self.assertEqual(session("stop", "work")[0], 0)
        self.assertEqual({name: (self.work / name).read_text() for name in ("edited", "new", "mine")},
                         {"edited": "by the user", "new": "the user's", "mine": "y\n"})

    def test_files_below_directories_that_change_places_are_changes(self):
        for name, text in (("one/file", "1"), ("two/file", "2"), ("one/deep/same", "s"), ("two/deep/same", "s")):
            self.write(name, text)
        ended = self.overlay("import os; os.rename('one', 'x'); os.rename('two', 'one'); os.rename('x', 'two')", "--apply", "--yes")
        self.assertEqual(self.changes(ended), {"one/file": "modified", "two/file": "modified"}, ended)
        self.assertEqual(((self.work / "one/file").read_text(), (self.work / "two/file").read_text()), ("2", "1"))

    def test_a_name_that_could_not_be_read_is_not_replaced(self):
        if sbxtest.IS_ROOT:
            self.skipTest("root reads every file")
        self.write("secret", "the user's")
        (self.work / "secret").chmod(0o000)
        ended = self.sbx("--workspace", ".:overlay", "--apply", "--yes", "--", "sh", "-c", "echo mine > secret", json_record=False)
        self.assertIn(b"secret: there on the host already, where the run did not see it", ended.err)
        (self.work / "secret").chmod(0o600)
        self.assertEqual((self.work / "secret").read_text(), "the user's")

    def test_hidden_names_are_not_in_the_copy(self):
        self.write(".env", "s3cr3t")
        self.write(".git/config", '[remote "o"]\n\turl = https://u:pass@example.org/x\n')
        os.link(self.work / ".env", self.work / "alias")
        ended = self.overlay("import os\nprint(sorted(os.listdir('.')), 'pass' in open('.git/config').read())\nopen('.env', 'w').write('own')")
        self.assertEqual(ended.text, "['.git', 'mine', 'sub', 'theirs'] False\n")
        self.assertEqual(self.changes(ended), {})
        self.assertEqual((self.work / ".env").read_text(), "s3cr3t")

    def test_a_copy_beyond_the_disk_is_an_error_that_names_it(self):
        self.write("big", "x" * 300_000)
        self.could_not(self.sbx("--workspace", f"{self.work}:overlay", "--disk", "256K", "true"), "limits.disk")

    def test_a_copy_of_more_than_half_the_disk_lies_in_a_directory(self):
        self.write("big", "x" * 600_000)
        ended = self.overlay("open('big', 'a').write('y')", "--disk", "1M")
        self.assertEqual(self.changes(ended), {"big": "modified"}, ended)
        self.assertTrue(self.told(ended, "limits.disk"), ended)
        self.assertEqual(self.disks(), [])

    def test_everything_that_can_be_copied_looks_the_same(self):
        subprocess.run(["/usr/bin/python3", "-c", ODD], cwd=self.work, check=True)
        there = self.sbx("--workspace", f"{self.work}:read-only", "--lang", "python", "-c", LOOK).text
        (self.work / "closed").chmod(0o000)
        here = self.overlay(LOOK)
        self.assertTrue(self.told(here, "filesystem.workspace.mode"))
        expected = [line for line in there.splitlines() if "socket" not in line]
        self.assertEqual(here.text.replace("-rwxr-xr-x 1 b'x'", "-rwsr-xr-x 1 b'x'").splitlines(), expected)
        self.assertEqual(self.changes(here), {})
        lost = [each for each in self.told(here, "filesystem.workspace.mode") if "user.* attributes" in each["why"]]
        if sbxtest.tmpfs_takes_user_attributes():
            self.assertEqual(lost, [])
            self.assertEqual(self.overlay("import os; print(os.getxattr('attr', 'user.note'))").text, "b'kept'\n")
        else:
            self.assertEqual(len(lost), 1, here)
            self.assertIn("attr: ", lost[0]["why"])
        on_disk = self.overlay("import os; print(os.getxattr('attr', 'user.note'))", *Directory.DIRECTORY)
        self.assertEqual(on_disk.text, "b'kept'\n", on_disk)


class ForeignToAUser(Copies):
    def test_a_file_of_another_group_of_an_ordinary_user_makes_a_copy(self):
        if not sbxtest.IS_ROOT:
            self.skipTest("giving a file to another group of a user needs root")
        self.write("mine", "1")
        self.write("theirs", "2", mode=0o660)
        for path, group in ((self.home, 12345), (self.work, 12345), (self.work / "mine", 12345), (self.work / "theirs", 54321)):
            os.chown(path, 12345, group)
        command = ["setpriv", "--reuid", "12345", "--regid", "12345", "--groups", "54321,12345",
                   *self.command("--workspace", f"{self.work}:overlay", "--apply", "--yes", "--report", self.home / "r.json", json_record=False),
                   "--lang", "python", "-c", "open('theirs', 'a').write('!'); open('mine', 'a').write('!')"]
        ended = self.finish(sbxtest.start(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment(),
                                          cwd=self.work), json_record=False)
        self.assertEqual((ended.status, (self.work / "theirs").read_text(), (self.work / "mine").read_text()), (0, "2!", "1!"), ended)
        self.assertIn("no id inside", (self.home / "r.json").read_text())


class OverlayOnOverlay(Copies):
    """As in a container: the directory and the home are on an overlay."""

    def setUp(self):
        super().setUp()
        if not sbxtest.IS_ROOT:
            self.skipTest("mounting the overlay needs root")
        self.write("file", "text")
        self.write(".env", "s3cr3t")

    def inside_overlay(self, *options, user=None, also="pass"):
        """Runs sbx in a mount namespace where work and home are on an overlay; returns the record."""
        script = ('set -e; mount -t tmpfs t "$1"; mkdir "$1/u" "$1/w" "$1/m"; mount -t overlay o -o "lowerdir=$2,upperdir=$1/u,workdir=$1/w" "$1/m"; '
                  'chown -R "$3:$3" "$1/m"; chmod 755 "$1" "$1/m"; cd "$1/m/work"; export HOME="$1/m/home"; who="$3"; shift 3; '
                  'exec setpriv --reuid "$who" --regid "$who" --clear-groups "$@"')
        place = self.tmp / "place"
        place.mkdir(exist_ok=True)
        command = ["unshare", "--mount", "sh", "-c", script, "sh", place, self.tmp, str(user or 0), *self.command("--workspace", ".:overlay", *options),
                   "--lang", "python", "-c", f"import os\n{also}\nopen('file', 'a').write('more'); open('new', 'w'); print(sorted(os.listdir('.')))"]
        ended = self.finish(sbxtest.start([str(each) for each in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                          env=self.environment(), cwd=self.work))
        self.assertEqual((ended.status, ended.text), (0, "['file', 'new']\n"), ended)
        self.assertEqual(self.changes(ended), {"file": "modified", "new": "created"}, ended)
        return ended

    def test_root_works_on_a_copy(self):
        self.assertTrue(self.told(self.inside_overlay(), "filesystem.workspace.mode"))

    def test_an_ordinary_user_works_on_an_overlay_of_the_overlay(self):
        told = self.told(self.inside_overlay(user=12345), "filesystem.workspace.mode")
        # If the kernel's tmpfs can't hold an overlay's upper layer, nothing here can: the home is on an overlay.
        self.assertEqual(bool(told), not sbxtest.tmpfs_takes_user_attributes(), told)

    def test_a_private_disk_on_an_overlay_holds_copies(self):
        for user in (None, 12345):
            ended = self.inside_overlay("--set", 'limits.disk_on="directory"', user=user)
            self.assertTrue(self.told(ended, "filesystem.workspace.mode"), ended)

    def test_names_in_a_granted_directory_are_hidden_whatever_the_private_disk_lies_on(self):
        """Before Linux 6.7 an overlay holds no whiteouts; then the disk is in memory after all, and `degraded`
        reports it."""
        self.write("near", "shown", directory=self.tmp / "granted")
        self.write(".env", "s3cr3t", directory=self.tmp / "granted")
        for user in (None, 12345):
            ended = self.inside_overlay("--set", 'limits.disk_on="directory"', "--read", "../granted", user=user,
                                        also="assert open('../granted/near').read() == 'shown' and not os.path.exists('../granted/.env')")
            told = ["all the same" in each["instead"] for each in self.told(ended, "limits.disk")]
            self.assertIn(told, ([False], [False, True]), ended)
        explained = subprocess.run([SBX, "policy", "explain", "no-whiteouts"], check=True, capture_output=True, env=self.environment()).stdout
        self.assertIn(b"the run goes on with a disk in memory", explained)


class Directory(Copies):
    DIRECTORY = ("--set", 'limits.disk_on="directory"')

    def test_the_private_disk_is_a_directory_and_vanishes(self):
        self.write("a", "1")
        code = ("import os\nopen('/tmp/t', 'w').write('x'); open(os.environ['HOME'] + '/h', 'w').write('x'); open('/dev/shm/s', 'w').write('x')\n"
                "open('a', 'a').write('2'); os.makedirs('d/e'); os.chmod('d', 0)\nprint(open('/proc/self/mountinfo').read())")
        ended = self.overlay(code, *self.DIRECTORY)
        self.assertEqual(self.changes(ended), {"a": "modified", "d": "created", "d/e": "created"}, ended)
        self.assertTrue(self.told(ended, "limits.disk"), ended)
        self.assertEqual(self.disks(), [])
        self.assertFalse([line for line in ended.text.splitlines() if " /tmp " in line and " tmpfs " in line], ended)

    def test_changes_on_it_are_kept_and_applied_later(self):
        for name in ("mine", "theirs", "sub/file"):
            self.write(name, "2")
        self.keeps_and_applies(*self.DIRECTORY)
        self.assertEqual(self.disks(), [])

    def test_more_than_the_disk_ends_the_run(self):
        for what, disk, code in (("disk", "8M", "f = open('/tmp/big', 'wb')\nwhile True: f.write(b'x' * 100_000); f.flush()"),
                           ("disk_files", "256M", "import time\nfor i in range(10000): open(f'/tmp/f{i}', 'w')\ntime.sleep(60)")):
            ended = self.sbx("--workspace", f"{self.work}:overlay", *self.DIRECTORY, "--disk", disk, "--set", "limits.disk_files=1000", "--lang",
                             "python", "-c", code)
            self.assertEqual((ended.status, ended.verdict), (153, ("over-budget", "disk")), ended)
            self.assertEqual([each["limit"] for each in ended.record["limits_met"]], [what], ended)
            self.assertEqual(self.disks(), [])

    def test_closing_a_directory_does_not_hide_what_is_in_it(self):
        code = ("import os\nos.mkdir('/tmp/d'); f = open('/tmp/d/big', 'wb'); os.chmod('/tmp/d', 0)\n"
                "while True: f.write(b'x' * 100_000); f.flush()")
        ended = self.sbx("--workspace", f"{self.work}:overlay", *self.DIRECTORY, "--disk", "8M", "--lang", "python", "-c", code)
        self.assertEqual(ended.verdict, ("over-budget", "disk"), ended)

    def test_within_the_disk_nothing_is_said(self):
        ended = self.overlay("open('/tmp/big', 'wb').write(b'x' * 4_000_000)", *self.DIRECTORY, "--disk", "8M")
        self.assertEqual(ended.record["limits_met"], [], ended)

    def test_what_a_killed_run_left_the_next_one_removes(self):
        process = self.start_sbx("--workspace", f"{self.work}:overlay", *self.DIRECTORY, "--", "sh", "-c",
                                 "mkdir -p /tmp/a/b; chmod 0 /tmp/a; echo ready; read x", json_record=False, stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.assertEqual(len(self.disks()), 2)
        self.overlay("pass", *self.DIRECTORY)
        self.assertEqual(len(self.disks()), 2, "a living run lost its disk")
        process.send_signal(signal.SIGKILL)
        self.finish(process, json_record=False)
        self.assertEqual(len(self.disks()), 2)
        self.exited(self.sbx("true"))
        self.assertEqual(self.disks(), [])

    def test_missing_targets_are_not_made_in_a_live_grant_on_the_same_file_system(self):
        data = self.write("data", "x", directory=self.tmp)
        ended = self.sbx("--workspace", f"{self.work}:read-write", *self.DIRECTORY, "--read", f"{data}:{self.work}/made", "true")
        self.assertEqual((ended.status, os.listdir(self.work)), (125, []), ended)

    def test_builds_of_the_built_in_policies_have_their_disk_in_a_directory(self):
        for policy in ("ci-untrusted", "offline-build"):
            ended = self.sbx("-p", policy, "--workspace", f"{self.work}:overlay", "touch", "made")
            self.assertEqual((ended.status, self.changes(ended)), (0, {"made": "created"}), ended)
            self.assertTrue(self.told(ended, "limits.disk"), ended)
            self.assertFalse(self.told(ended, "limits.disk_on"), ended)


if __name__ == "__main__":
    sbxtest.main()

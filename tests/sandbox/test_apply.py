"""What --apply must never lose: a file that moved is in one of its places whatever fails, whoever is killed, and what was
not applied can be had again."""

import errno
import json
import os
import pathlib
import random
import shutil
import stat
import subprocess
import sys

import sbxtest
import traced
from sbxtest import IS_ROOT, SBX, start
from test_changes import Changes


def tree_of(top, with_links=True):
    """Name -> kind, mode, and content, target or number of links."""
    found = {}
    for path in pathlib.Path(top).rglob("*"):
        facts = path.lstat()
        kind = stat.S_IFMT(facts.st_mode)
        entry = [kind, stat.S_IMODE(facts.st_mode)]
        if kind == stat.S_IFLNK:
            entry = [kind, os.readlink(path)]
        elif kind == stat.S_IFREG:
            entry += [path.read_bytes(), facts.st_nlink if with_links else 1]
        found[str(path.relative_to(top))] = tuple(entry)
    return found


class NeverLost(Changes):
    def run_and_apply(self, *command, ends_with, options=(), env=None):
        ended = self.finish(start([SBX, "run", "-p", "shell", "--workspace", ".:overlay", "--apply", "--yes", *options, "--", *command],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.work,
                                  env=self.environment(env)), command, json_record=False)
        self.assertEqual(ended.status, ends_with, ended)
        return ended

    def test_a_name_that_is_hidden_or_protected_or_not_meant_keeps_the_old_one(self):
        for new, patterns, reason in ((".env", [], "filesystem.deny"), (".bashrc", [], "run or trust by themselves"), ("lib/new", ["src/**"], "")):
            for edit in ("", "; echo more >> {new}"):
                shutil.rmtree(self.work)
                self.work.mkdir()
                self.write("src/settings.template", "text\n")
                (self.work / "lib").mkdir()
                options = [f"--apply={pattern}" for pattern in patterns]
                ended = self.run_and_apply("sh", "-c", f"mv src/settings.template {new}" + edit.format(new=new), ends_with=1, options=options)
                self.assertEqual((self.work / "src/settings.template").read_text(), "text\n", ended)
                self.assertFalse((self.work / new).exists())
                said = ended.err.decode()
                self.assertIn(f"src/settings.template: stays, because what it holds was moved to '{new}'", said)
                self.assertIn(reason, said)

    def test_twin_where_nothing_moved_there_the_rest_is_deleted(self):
        for name in ("src/a", "src/b", "lib/old"):
            self.write(name, name)
        self.run_and_apply("sh", "-c", "rm src/a; mv lib/old lib/new; echo more >> lib/new; echo x > .env; echo x > .envrc", ends_with=0,
                           options=["--apply=src/**"])
        self.assertEqual(self.tree(), {"src/b": b"src/b", "lib/old": b"lib/old"})

    def test_twin_what_has_another_copy_is_deleted(self):
        self.write("src/a", "text\n")
        self.write("src/b", "other\n")
        self.write("src/c", "more\n")
        ended = self.run_and_apply("sh", "-c", "cp src/a .env; mv src/a src/moved; rm src/b; mkdir out; echo x > out/x", ends_with=0,
                                   options=["--apply=src/**"])
        self.assertEqual(self.tree(), {"src/moved": b"text\n", "src/c": b"more\n"}, ended)

    def test_a_kept_set_holds_the_old_name_too(self):
        self.write("template", "text\n")
        self.keep("import os\nos.rename('template', '.env')")
        said = self.changes("apply", "--yes", "set", ends_with=1).err.decode()
        self.assertIn("template: stays", said)
        self.assertEqual(self.tree(), {"template": b"text\n"})

    def test_a_conflict_deletes_nothing_and_the_rest_is_kept(self):
        for name in ("old", "gone", "edited"):
            self.write(name, name)
        self.keep("import os\nos.rename('old', 'new'); os.remove('gone'); open('edited', 'w').write('theirs'); open('made', 'w').write('x')")
        self.write("new", "mine")
        applied = self.json_of("apply", "--yes", "set", ends_with=1)["applied"]
        self.assertEqual(self.paths(applied["conflicts"]), ["new"])
        self.assertEqual(self.tree(), {"old": b"old", "gone": b"gone", "edited": b"theirs", "made": b"x", "new": b"mine"})
        (self.work / "new").unlink()
        self.changes("apply", "--yes", "set")
        self.assertEqual(self.tree(), {"new": b"old", "edited": b"theirs", "made": b"x"})

    def test_a_conflict_of_a_run_keeps_the_rest_as_a_set(self):
        for name in ("old", "edited"):
            self.write(name, name)
        process = self.start_sbx("--workspace", ".:overlay", "--apply", "--yes", "--", "sh", "-c", "mv old new; echo x > edited; echo; read line",
                                 stdin=subprocess.PIPE, json_record=False)
        self.assertEqual(process.stdout.readline(), b"\n")
        self.write("edited", "mine")
        ended = self.finish(process, data=b"\n", json_record=False)
        self.assertEqual(ended.status, 1, ended)
        self.assertIn(b'what was not applied is kept: "sbx changes apply unapplied"', ended.err)
        self.assertEqual(self.tree(), {"old": b"old", "new": b"old", "edited": b"mine"})
        self.assertEqual([(each["path"], each["change"]) for each in self.json_of("show", "unapplied")["changes"]],
                         [("edited", "modified"), ("old", "deleted")])
        self.changes("apply", "--yes", "unapplied", "old")
        self.assertEqual(self.tree(), {"new": b"old", "edited": b"mine"})

    def test_a_directory_that_is_not_the_callers_loses_nothing(self):
        """Twin: the same as whoever may write there."""
        self.write("a", "text\n")
        closed = self.work / "closed"
        closed.mkdir()
        self.addCleanup(closed.chmod, 0o755)
        if IS_ROOT:
            self.tmp.chmod(0o755)
            for path in (self.home, self.work, self.work / "a"):
                os.chown(path, 65534, 65534)
            closed.chmod(0o777)
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if IS_ROOT else []
        run = [*command, SBX, "run", "--workspace", ".:overlay", "--keep", "set", "--", "sh", "-c", "mv a closed/a; echo x > b"]
        ended = self.finish(start(run, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.work,
                                  env=self.environment()), json_record=False)
        self.assertEqual(ended.status, 0, ended)
        closed.chmod(0o755 if IS_ROOT else 0o555)
        said = self.changes("apply", "--yes", "set", ends_with=125, wrapper=command).err.decode()
        self.assertIn(f"closed/a: cannot write to '{'closed'}'", said)
        self.assertNotIn("a file'", said)
        self.assertEqual(self.tree(), {"a": b"text\n"})
        closed.chmod(0o777)
        self.changes("apply", "--yes", "set", wrapper=command)
        self.assertEqual(self.tree(), {"closed/a": b"text\n", "b": b"x\n"})

    def test_a_directory_that_is_not_the_callers_is_refused_before_anything_runs(self):
        """Twins: a pattern may choose a directory of the caller's in it, and a set can be kept."""
        own = self.work / "own"
        own.mkdir()
        if IS_ROOT:
            self.tmp.chmod(0o755)
            os.chown(self.home, 65534, 65534)
            os.chown(own, 65534, 65534)
        self.work.chmod(0o755 if IS_ROOT else 0o555)
        self.addCleanup(self.work.chmod, 0o755)
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if IS_ROOT else []
        run = lambda *options: self.finish(start([*command, SBX, "run", "--workspace", ".:overlay", *options, "--", "sh", "-c", "echo ran; touch own/a"],
                                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.work, env=self.environment()),
                                           json_record=False)
        refused = run("--apply", "--yes")
        self.assertEqual((refused.status, refused.out), (125, b""), refused)
        self.assertIn(f"error[not-applicable]: --apply can't write to '{self.work}': Permission denied\n  help: --keep NAME keeps the changes", refused.err.decode())
        self.assertEqual(run("--keep", "set").status, 0)
        self.assertFalse((own / "a").exists())
        self.assertEqual(run("--apply=own/**", "--yes").status, 0)
        self.assertTrue((own / "a").exists())

    def test_names_of_one_file_stay_so(self):
        self.write("d/old", "x")
        code = "import os\nopen('a', 'w').write('one'); os.link('a', 'b'); os.link('a', 'd/c'); os.mkdir('new'); os.link('a', 'new/e')\n"
        self.overlay(code, "--apply", "--yes", "--keep", "set")
        for _ in range(2):
            self.assertEqual(len({(self.work / name).stat().st_ino for name in ("a", "b", "d/c", "new/e")}), 1)
            self.assertEqual((self.work / "a").stat().st_nlink, 4)
            for name in ("a", "b", "d/c", "new/e"):
                (self.work / name).unlink()
            (self.work / "new").rmdir()
            self.changes("apply", "--yes", "set")


class AtOnce(Changes):
    """A program of the host and the sandboxed one write to one file at once, each the whole of it or a half."""

    SIZE = 1 << 20
    TIMES = 4, 20, 60  # that each writes; the host's program also ends long after the other one
    # Letters of the program are small, those of the host are capitals; a file of one letter, or of the first one and its half, is whole.
    WRITERS = """
import os
def in_place(path, letter, size):
    with open(path, 'r+b', 0) as file: file.write(letter * size)
def half(path, letter, size):
    with open(path, 'r+b', 0) as file: file.write(letter * (size // 2))
def renamed(path, letter, size):
    with open(path + '.' + letter.decode(), 'wb', 0) as file: file.write(letter * size)
    os.rename(path + '.' + letter.decode(), path)
def write(how, letters, times, path='file', size=1 << 20):
    for i in range(times): globals()[how](path, bytes([letters[i % len(letters)]]), size)
"""

    def writer(self, how, letters, times, *place):
        """Code that says when it is ready, waits for a line, and writes; with no `how` nothing."""
        return f"{self.WRITERS}\nimport sys\nprint('ready', flush=True)\nsys.stdin.readline()\n" + (
            f"write({how!r}, {letters!r}, {times}, *{place!r})\n" if how else "") + "print('done', flush=True)"

    def race(self, inside, outside, times, host_times, order="together"):
        """Both write, the host's at first, together, or when the other one is done and its changes are applied. Returns the letters of both
        halves afterwards, whether there was a conflict, and how it ended."""
        path = self.write("file", b"=" * self.SIZE)
        report = self.tmp / "report"
        process = self.start_sbx("--workspace", f"{self.work}:overlay", "--report", report, "--apply", "--yes", "--lang", "python", "-c",
                                 self.writer(inside, b"abcdefgh", times), json_record=False, stdin=subprocess.PIPE)
        host = start([sys.executable, "-c", self.writer(outside, b"ABCDEFGH", host_times, str(path))], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for each in (process, host):
            self.assertEqual(each.stdout.readline(), b"ready\n")
        for each in (host, process) if order != "at the end" else (process, host):
            each.stdin.write(b"\n")
            each.stdin.flush()
            if order != "together" and each == (host if order == "host first" else process):
                self.assertEqual(each.stdout.readline(), b"done\n")
        ended = self.finish(process, json_record=False)
        self.assertEqual(host.wait(), 0)
        host.stdin.close()
        host.stdout.close()
        applied = json.loads(report.read_text()).get("applied") or {"conflicts": []}
        content = path.read_bytes()
        halves = [set(content[:self.SIZE // 2]), set(content[self.SIZE // 2:])]
        self.assertEqual([len(half) for half in halves], [1, 1], ended)
        return "".join(chr(half.pop()) for half in halves), [each["path"] for each in applied["conflicts"]] == ["file"], ended

    def test_a_file_is_one_sides_whole(self):
        for inside in ("in_place", "half", "renamed"):
            for outside in ("in_place", "renamed"):
                for order in ("together", "at the end"):
                    for times in self.TIMES:
                        with self.subTest(inside=inside, outside=outside, order=order, times=times):
                            (first, second), conflict, ended = self.race(inside, outside, times, 2 * times, order)
                            one_sides = first == second or (inside == "half" and first.islower() and second == "=")
                            self.assertTrue(one_sides, f"{first}{second}: {ended}")
                            self.assertFalse(conflict and first.islower(), f"{first}{second}: {ended}")
                            self.assertEqual(ended.status, 1 if conflict else 0, ended)

    def test_each_of_many_files_is_one_sides_whole(self):
        """The host's program writes to them from the last to the first while they are applied from the first to the last."""
        size, names = 1 << 16, [f"file{number:03}" for number in range(300)]
        for outside, times in (("in_place", 20), ("renamed", 1)):
            for name in names:
                self.write(name, b"=" * size)
            self.keep(self.WRITERS + f"for name in {names!r}: in_place(name, b'a', {size})", name=outside)
            code = f"{self.WRITERS}\nimport sys\nprint('ready', flush=True)\nsys.stdin.readline()\nfor name in {names[::-1]!r}: write({outside!r}, b'A', {times}, name, {size})"
            with start([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self.work) as host:
                self.assertEqual(host.stdout.readline(), b"ready\n")
                host.stdin.write(b"\n")
                host.stdin.flush()
                ended = self.changes("apply", "--yes", outside, "--json", ends_with=None)
            conflicts = {each["path"] for each in json.loads(ended.out)["applied"]["conflicts"]}
            self.assertEqual(ended.status, 1 if conflicts else 0, ended)
            for name in names:
                letters = {chr(each) for each in (self.work / name).read_bytes()}
                self.assertIn(letters, ({"A"},) if name in conflicts else ({"a"}, {"A"}), name)

    def test_who_wrote_first_during_the_run_is_not_replaced(self):
        for inside in ("in_place", "half", "renamed"):
            for outside in ("in_place", "renamed"):
                with self.subTest(inside=inside, outside=outside):
                    halves, conflict, ended = self.race(inside, outside, 4, 4, "host first")
                    self.assertEqual((halves, conflict, ended.status), ("DD", True, 1), ended)

    def test_one_side_alone_has_its_way(self):
        for inside, outside, expected in (("in_place", None, "dd"), ("half", None, "d="), ("renamed", None, "dd"), (None, "in_place", "DD"), (None, "renamed", "DD")):
            with self.subTest(inside=inside, outside=outside):
                halves, conflict, ended = self.race(inside, outside, 4, 4)
                self.assertEqual((halves, conflict, ended.status), (expected, False, 0), ended)


class FullDisk(Changes):
    """In the test's own mount namespace."""

    def apart(self, script):
        wrapper = ["unshare", "--mount"] if IS_ROOT else ["unshare", "--user", "--map-root-user", "--mount"]
        if subprocess.run([*wrapper, "mount", "-t", "tmpfs", "none", str(self.work)], capture_output=True).returncode != 0:
            self.skipTest("mounts can't be made here")
        disk = 'mount -t tmpfs -o size=4m none "$WORK"; cd "$WORK"; mkdir w; head -c 3100000 /dev/zero > filler; cd w\n'
        process = start([*wrapper, "sh", "-euc", disk + script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                        cwd=self.tmp, env=self.environment({"SBX": SBX, "WORK": str(self.work)}))
        ended = self.finish(process, json_record=False)
        self.assertEqual(ended.status, 0, ended)
        return ended

    def test_a_file_that_moved_is_in_its_old_place(self):
        """Twins: with room for it, the same is done; and so it is later, once there is room."""
        make = "head -c 600000 /dev/zero > data; mkdir d; head -c 100000 /dev/zero > d/1; head -c 100000 /dev/zero > d/2; sum=$(cat data d/* | cksum); status=0\n"
        run = '"$SBX" run -p shell --workspace .:overlay --apply --yes -- sh -c "mv data data2; mv d e" || status=$?; echo $status\n'
        ended = self.apart(make + run + 'ls -A; test "$sum" = "$(cat data d/* | cksum)"; rm "$WORK/filler"\n'
                           '"$SBX" changes apply --yes unapplied; ls; test "$sum" = "$(cat data2 e/* | cksum)"')
        self.assertEqual(ended.out.split(), [b"125", b"d", b"data", b"data2", b"e"], ended)
        for words in (b"data2: cannot write its content: No space left on device", b"what was not applied is kept", b"applied 0 changes"):
            self.assertIn(words, ended.err)
        ended = self.apart('rm "$WORK/filler"\n' + make + run + 'ls -A; test "$sum" = "$(cat data2 e/* | cksum)"')
        self.assertEqual(ended.out.split(), [b"0", b"data2", b"e"], ended)


class Mounted(Changes):
    """A mount on a directory of the workspace, in the test's own mount namespace: it is part of the workspace, and what it hides is not."""

    TREE = ('cd "$WORK"; mkdir -p w/sub w/other elsewhere; echo hidden > w/sub/hidden; echo lower > elsewhere/file; echo gone > elsewhere/gone\n'
            'echo top > w/top; run() { "$SBX" run -p shell --workspace .:overlay "$@"; }\n')
    MOUNT = 'mount --bind elsewhere w/sub\n'
    CHANGE = "echo changed > sub/file; echo new > sub/new; rm sub/gone; mv top sub/top"
    DONE = "elsewhere/file:changed elsewhere/new:new elsewhere/top:top w/sub/hidden:hidden"
    BEFORE = "elsewhere/file:lower elsewhere/gone:gone w/sub/hidden:hidden w/top:top"
    SHOW = 'cd "$WORK"; ! mountpoint -q w/sub || umount w/sub; for f in $(find w elsewhere -type f | LC_ALL=C sort); do echo "$f:$(cat $f)"; done\n'

    def apart(self, script):
        """Runs a script where mounts can be made; returns the files afterwards, without the mount, and what was said."""
        wrapper = ["unshare", "--mount"] if IS_ROOT else ["unshare", "--user", "--map-root-user", "--mount"]
        if subprocess.run([*wrapper, "mount", "-t", "tmpfs", "none", str(self.work)], capture_output=True).returncode != 0:
            self.skipTest("mounts can't be made here")
        for path in self.work.iterdir():
            shutil.rmtree(path)
        process = start([*wrapper, "sh", "-euc", self.TREE + script + self.SHOW], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                        cwd=self.tmp, env=self.environment({"SBX": SBX, "WORK": str(self.work)}))
        ended = self.finish(process, json_record=False)
        self.assertEqual(ended.status, 0, ended)
        return " ".join(ended.out.decode().split()), ended.err.decode()

    def test_its_changes_are_applied_to_what_is_mounted(self):
        files, said = self.apart(self.MOUNT + f"cd w; run --apply --yes -- sh -c '{self.CHANGE}'\n")
        self.assertEqual(files, self.DONE, said)
        self.assertIn("applied 5 changes", said)

    def test_a_set_is_applied_where_it_was_made(self):
        """Without the mount, or with another one, the directory is another one: nothing is applied to it, nothing deleted, and the set stays."""
        keep = self.MOUNT + f"cd w; run --keep set -- sh -c '{self.CHANGE}'; cd ..\n"
        for between, expected, status in (("", self.DONE, 0), ("umount w/sub", self.BEFORE, 125),
                                          ("umount w/sub; mkdir third; mount --bind third w/sub", self.BEFORE, 125)):
            with self.subTest(between=between):
                files, said = self.apart(f'{keep}{between}\nstatus=0; "$SBX" changes apply --yes set || status=$?; echo status:$status >&2; "$SBX" changes show set >&2; "$SBX" changes drop set\n')
                self.assertEqual((files, f"status:{status}\n" in said), (expected, True), said)
                self.assertIn("created   sub/new", said)
                self.assertEqual("w/sub' is not the directory that the changes were made in" in said, status != 0, said)

    def test_a_mount_that_came_after_the_start_is_not_written_to(self):
        keep = "cd w; run --keep set -- sh -c 'echo new > sub/new; rm sub/hidden; echo x > other/x'; cd ..\n"
        files, said = self.apart(f'{keep}{self.MOUNT}status=0; "$SBX" changes apply --yes set || status=$?; echo status:$status >&2; umount w/sub; "$SBX" changes apply --yes set; "$SBX" changes drop set\n')
        self.assertEqual(files, "elsewhere/file:lower elsewhere/gone:gone w/other/x:x w/sub/new:new w/top:top", said)
        for words in ("status:125\n", "not applied: sub/new: cannot open 'sub': Invalid cross-device link\n"):
            self.assertIn(words, said)

    def test_a_file_that_is_mounted_is_read_only_and_the_cure_is_named(self):
        """An overlay consists of directories."""
        files, said = self.apart("mount --bind elsewhere/file w/top; cd w; ! run -- sh -c 'echo x > top'; echo first >&2; run --write top -- sh -c 'echo x > top'; cd ..; umount w/top\n")
        self.assertEqual(files, "elsewhere/file:x elsewhere/gone:gone w/sub/hidden:hidden w/top:top", said)
        first, second = said.split("first\n")
        self.assertIn("\"top\" is a mount of its own, of a file, and read-only", first)
        self.assertRegex(first, r"--write \S*/w/top\n")
        self.assertNotIn("read-only", second)

    def test_a_session_says_the_same(self):
        files, said = self.apart(f"{self.MOUNT}cd w; \"$SBX\" session start -q -p shell --workspace .:overlay work; \"$SBX\" session exec work -- sh -c '{self.CHANGE}'\n"
                                 '"$SBX" session changes work >&2; "$SBX" session apply --yes work >&2; "$SBX" session stop work >&2; cd ..\n')
        self.assertEqual(files, self.DONE, said)
        self.assertIn("created   sub/new", said)
        files, said = self.apart("cd w; \"$SBX\" session start -q -p shell --workspace .:overlay work; \"$SBX\" session exec work -- sh -c 'echo new > sub/new; rm sub/hidden'; cd ..\n" +
                                 self.MOUNT + 'status=0; "$SBX" session apply --yes work >&2 || status=$?; echo status:$status >&2; "$SBX" session changes work >&2; "$SBX" session stop work >&2\n')
        self.assertEqual((files, "status:125\n" in said), (self.BEFORE, True), said)
        for words in ("not applied: sub/new: cannot open 'sub'", "the session keeps what was not applied", "created   sub/new"):
            self.assertIn(words, said)


class Damaged(Changes):
    """Random changes of many equal directories: one application each, which is killed, or in which a system call fails,
    one call later each time."""

    MORE = 5  # directories than calls: one for the application that ends by itself, one that shows what an application makes

    def changes_of(self, seed, count):
        """A tree, and code that changes it."""
        dice = random.Random(seed)
        names = [f"{directory}{name}" for directory in ("", "p/", "q/", "q/r/") for name in "abc"]
        before = {name: f"{seed} {name} {'x' * dice.choice((0, 10, 5000))}\n" for name in names}
        code = ["import os"]
        left = list(names)
        dice.shuffle(left)
        for number, name in enumerate(left[:count]):
            what = dice.choice(("move", "move", "move", "write", "delete", "mode", "link", "swap", "to_directory", "create"))
            other = left[8 + number % 4]
            place = dice.choice(("", "p/", "n/", "n/m/"))
            code.append("os.makedirs('n/m', exist_ok=True)" if place.startswith("n") else "")
            code.append({
                "move": f"os.rename({name!r}, {place + f'moved{number}'!r})",
                "write": f"open({name!r}, 'a').write('more')",
                "delete": f"os.remove({name!r})",
                "mode": f"os.chmod({name!r}, 0o755)",
                "link": f"os.remove({name!r}); os.symlink('target{number}', {name!r})",
                "swap": f"os.rename({name!r}, 't'); os.rename({other!r}, {name!r}); os.rename('t', {other!r})",
                "to_directory": f"os.rename({name!r}, 't'); os.mkdir({name!r}); os.rename('t', {name + '/inner'!r})",
                "create": f"open({place + f'made{number}'!r}, 'w').write('made {number}')",
            }[what])
        return before, "\n    ".join(code)

    def make(self, seed, count, directories):
        before, code = self.changes_of(seed, count)
        shutil.rmtree(self.work)
        self.work.mkdir()
        for i in range(directories):
            for name, text in before.items():
                self.write(f"c{i}/{name}", text)
        self.keep(f"import os\nfor i in range({directories}):\n    os.chdir(f'c{{i}}')\n    {code}\n    os.chdir('..')", name=f"set-{seed}")
        last = f"c{directories - 1}"
        was = tree_of(self.work / last)
        calls = traced.changes_by([SBX, "changes", "apply", "--yes", f"set-{seed}", f"{last}/**"], self.environment())
        return was, tree_of(self.work / last), calls

    @staticmethod
    def texts(tree):
        return {entry[2] for name, entry in tree.items() if entry[0] == stat.S_IFREG and len(entry[2]) > 0 and not is_temporary(name)}

    def check(self, directory, was, will, told):
        """Each file is old or new, and no content that was there and will be is missing. What two files exchange is in the
        set too."""
        now = tree_of(self.work / directory)
        for name, entry in now.items():
            if entry[0] != stat.S_IFDIR and not is_temporary(name):
                self.assertIn(entry, (was.get(name), will.get(name)), (name, told))
        modified = {name: entry for name, entry in will.items() if name in was and was[name] != entry}
        self.assertLessEqual(self.texts(was) & self.texts(will) - self.texts(modified), self.texts(now), told)

    def damage(self, seed, how, count=8):
        _, _, most = self.make(seed, count, 1)
        self.changes("drop", f"set-{seed}")
        was, will, _ = self.make(seed, count, most + self.MORE)
        calls = []
        for i in range(most + self.MORE - 1):
            command = [SBX, "changes", "apply", "--yes", f"set-{seed}", f"c{i}/**"]
            call, status = how(command, i + 1, self.environment())
            if call is None:
                break
            calls.append(call)
            told = (seed, calls, status)
            self.check(f"c{i}", was, will, told)
            self.changes("apply", "--yes", f"set-{seed}", f"c{i}/**")
            self.assertEqual(tree_of(self.work / f"c{i}"), will, told)
        else:
            self.fail(f"more calls than directories: {calls}")
        self.assertLessEqual({"renameat2", "unlinkat", "mkdirat"}, set(calls))
        self.changes("drop", f"set-{seed}")
        return calls

    def test_any_call_fails(self):
        self.damage(2, traced.failed_at, count=4)

    def test_slow_many_sets(self):
        for seed in range(100, 100 + int(os.environ.get("SBX_TEST_SETS", "1000"))):
            if seed % 2 == 0:
                self.damage(seed, lambda *asked: (traced.killed_before(*asked), None))
            else:
                self.damage(seed, lambda *asked, error=(errno.EIO, errno.ENOSPC, errno.EACCES)[seed % 3]: traced.failed_at(*asked, error))


def is_temporary(name):
    return any(part.startswith(".sbx-") for part in name.split("/"))


class Leftovers(Changes):
    def killed(self, at):
        self.write("a", "a")
        self.write("d/b", "b")
        self.keep("open('a', 'w').write('A'); open('d/b', 'w').write('B'); open('d/new', 'w').write('N')")
        names = []
        for which in range(1, 60):
            call = traced.killed_before([SBX, "changes", "apply", "--yes", "set"], which, self.environment())
            names.append(call)
            if call == at:
                return
        self.fail(f"no {at}: {names}")

    def temporaries(self):
        return [path for path in self.work.rglob(".sbx-*")]

    def test_only_what_was_noted_is_removed(self):
        self.killed("renameat")
        kept = self.temporaries()
        self.assertEqual(len(kept), 2)
        self.write(".sbx-0123456789abcdef", "mine")
        kept[0].rename(self.tmp / "moved")
        kept[0].mkdir()
        (kept[0] / "other").touch()
        self.write("own/kept", "mine")  # no name of sbx's: not even where a note has it
        facts = (self.work / "own").stat()
        note = f"content elsewhere\0make {self.work}/own\0made {facts.st_dev} {facts.st_ino} {self.work}/own\0"
        (self.home / ".local/state/sbx/staged/0000").write_text(note)
        self.changes("apply", "--yes", "set")
        self.assertEqual((self.work / "own/kept").read_text(), "mine")
        self.assertEqual(sorted(map(str, self.temporaries())), sorted([str(self.work / ".sbx-0123456789abcdef"), str(kept[0])]))
        self.assertEqual(os.listdir(self.home / ".local/state/sbx/staged"), [])

    def test_what_a_living_application_writes_stays(self):
        """Twin: once it is dead, it goes."""
        self.killed("renameat")
        notes = self.home / ".local/state/sbx/staged"
        note, = notes.iterdir()
        other = self.tmp / "other"
        other.mkdir()
        holder = start([sys.executable, "-c", "import fcntl, sys\nf = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); sys.stdin.read()",
                        note], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        holder.stdout.readline()
        self.changes("apply", "--yes", "set")
        self.assertEqual(len(self.temporaries()), 2)
        holder.communicate()
        self.changes("apply", "--yes", "set")
        self.assertEqual((self.temporaries(), os.listdir(notes)), ([], []))


# An overlay does not rename directories of the host: EXDEV, as rename(2) between file systems.
# chmod(1) leaves the set-group-ID bit of a directory, which the system call takes away.
MOVE = """
def chmod(name, mode):
    open_to_owner = 0o700 if os.path.isdir(name) else 0
    os.chmod(name, mode | open_to_owner | os.stat(name).st_mode & 0o2000)
def move(one, other):
    try: os.rename(one, other)
    except OSError as error:
        if error.errno != 18: raise
        if os.path.lexists(other): os.rmdir(other)
        os.mkdir(other)
        for name in os.listdir(one): move(one + '/' + name, other + '/' + name)
        os.chmod(other, os.stat(one).st_mode & 0o7777)
        os.rmdir(one)
"""


class Oracle(Changes):
    """The same operations on a copy of a tree, and in an overlay of another copy: with --apply both are equal."""

    def operations(self, seed, count):
        """Code for random operations. Each may fail: then both fail."""
        dice = random.Random(seed)
        names = [f"{directory}{name}" for directory in ("", "d/", "d/e/", "f/") for name in ("a", "b", "c", "g", "h")]
        code = ["import os", "def do(call, *words):", "    try: call(*words)", "    except OSError: pass",
                "def write(name, text, how):", "    with open(name, how) as f: f.write(text)", MOVE]
        for number in range(count):
            one, other = dice.choice(names), dice.choice(names)
            directory = dice.choice(("d", "d/e", "f", "a", "f/g"))
            code.append(dice.choice((
                f"do(write, {one!r}, '{seed} {number}\\n', 'w')", f"do(write, {one!r}, '{number}\\n', 'a')", f"do(os.truncate, {one!r}, {dice.randrange(9)})",
                f"do(move, {one!r}, {other!r})", f"do(os.remove, {one!r})", f"do(os.link, {one!r}, {other!r})", f"do(os.symlink, {other!r}, {one!r})",
                f"do(chmod, {one!r}, 0o{dice.choice(('644', '600', '755', '700', '640'))})", f"do(os.mkdir, {directory!r})", f"do(os.rmdir, {directory!r})",
                f"do(move, {directory!r}, {dice.choice(names)!r})")))
        # Last, because overlayfs checks a write through one name by a mode that chmod(2) of another name did not change.
        code.extend(f"do(chmod, {name!r}, 0o444)" for name in dice.sample(names, 3))
        return "\n".join(code)

    def make(self, top, seed):
        dice = random.Random(seed)
        for name in ("a", "b", "d/a", "d/b", "d/e/a", "f/a", "f/b"):
            path = top / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{name} {'y' * dice.randrange(50)}\n")
        os.symlink("a", top / "c")
        for one, other in (("a", "d/h"), ("a", "f/h"), ("d/a", "d/g"), ("f/b", "h")):  # f/b stays untouched in some
            os.link(top / one, top / other)

    def compare(self, seed, count, bits=0o755, owner=None):
        trees = []
        for way in ("bare", "bare again", "applied"):
            top = self.tmp / "tree"
            shutil.rmtree(top, ignore_errors=True)
            top.mkdir()
            top.chmod(bits)
            self.make(top, seed)
            become = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if IS_ROOT and way != "applied" else []
            if owner is not None:  # another account's directory, its content the caller's
                subprocess.run(["chown", "-R", f"{owner}:{owner}", top], check=True)
                os.chown(top, 0, 0)
                become = ["setpriv", f"--reuid={owner}", f"--regid={owner}", "--clear-groups"]
            code = self.operations(seed, count)
            command = [sys.executable, "-c", code] if way != "applied" else [
                SBX, "run", "--workspace", ".:overlay", "--apply", "--yes", "--lang", "python", "-c", code]
            ended = self.finish(start([*become, *command], cwd=top, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      env=self.environment()), json_record=False)
            self.assertEqual(ended.status, 0, (seed, count, ended))
            trees.append(tree_of(top))
            self.assertEqual(stat.S_IMODE(top.stat().st_mode), bits)
        self.assertEqual(trees[0], trees[1], (seed, count))
        self.assertEqual(trees[0], trees[2], (seed, count, oct(bits), owner))

    def compare_all(self, seeds, counts):
        """In a directory of one's own, in one that gives its group to new files, and in one of another account."""
        places = [(0o755, None), (0o2755, None), *([(0o777, 65534)] if IS_ROOT else [])]
        if IS_ROOT:
            self.tmp.chmod(0o755)
        for seed in seeds:
            bits, owner = places[seed % len(places)]
            if IS_ROOT:
                subprocess.run(["chown", "-R", str(owner or 0), self.home], check=True)
            self.compare(seed, counts[seed % len(counts)], bits, owner)

    def test_the_same_tree_bare_and_applied(self):
        self.compare_all(range(3), [300])

    def test_slow_thousand_sequences(self):
        self.compare_all(range(100, 100 + int(os.environ.get("SBX_TEST_SEQUENCES", "1000"))), [300, 1500])


if __name__ == "__main__":
    sbxtest.main()

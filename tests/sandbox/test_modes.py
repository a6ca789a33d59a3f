"""Whose files the outputs of a run are, and which permissions they have: as if the caller had made them himself."""

import json
import os
import shutil
import stat
import struct
import subprocess

import sbxtest
from sbxtest import IS_ROOT, SBX, SbxTest, start

CALLER = 65534  # an ordinary account that root becomes
GROUP = 50
OPEN = "import os\nos.mkdir('d'); open('d/f', 'w').write('x'); open('f', 'w').write('x'); os.chmod('d', 0o777); os.chmod('d/f', 0o666); os.chmod('f', 0o777)\n"


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


class Umask(SbxTest):
    def with_umask(self, umask, *arguments, ends_with=0):
        process = start([SBX, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                        env=self.environment(), cwd=self.work, preexec_fn=lambda: os.umask(umask))
        ended = self.finish(process, arguments, json_record=False)
        self.assertEqual(ended.status, ends_with, ended)
        return ended

    def python(self, umask, code, *options):
        return self.with_umask(umask, "run", *options, "--lang", "python", "-c", code)

    def test_a_run_has_that_of_its_caller(self):
        for umask in (0o077, 0o002, 0o022):
            ended = self.with_umask(umask, "run", "--workspace", ".:read-write", "--", "sh", "-c", "umask; echo x > f; mkdir d")
            self.assertEqual((ended.out, mode(self.work / "f"), mode(self.work / "d")), (b"%04o\n" % umask, 0o666 & ~umask, 0o777 & ~umask), ended)
            (self.work / "f").unlink()
            (self.work / "d").rmdir()

    def test_one_that_takes_the_owners_rights_leaves_the_sandbox_whole(self):
        """The directories that sbx makes for the program keep their modes."""
        for isolation in ("namespaces", "landlock"):
            for umask in (0o200, 0o400, 0o777):
                ended = self.with_umask(umask, "run", "-q", "--isolation", isolation, "--workspace", ":empty", "--", "sh", "-c", "umask; >f && stat -c %a . ~ f")
                self.assertEqual(ended.out.decode().split(), ["%04o" % umask, "755", "755", "%o" % (0o666 & ~umask)], (isolation, ended))
            self.with_umask(0o777, "run", "-q", "--isolation", isolation, "--workspace", ".:overlay", "--", "ls")

    def test_what_is_new_has_no_more_than_it_leaves(self):
        out = self.tmp / "out"
        for umask in (0o077, 0o027, 0o000):
            wanted = {"d": 0o777 & ~umask, "d/f": 0o666 & ~umask, "f": 0o777 & ~umask}
            self.python(umask, OPEN, "--workspace", ".:overlay", "--apply", "--yes", "--out", out, "--keep", f"set-{umask}")
            self.assertEqual({name: mode(self.work / name) for name in wanted}, wanted)
            self.assertEqual({name: mode(out / name) for name in ("d/f", "f")}, {name: wanted[name] for name in ("d/f", "f")})
            shutil.rmtree(self.work / "d")
            (self.work / "f").unlink()
            shutil.rmtree(out)
            self.with_umask(0o022, "changes", "apply", "--yes", f"set-{umask}")
            self.assertEqual({name: mode(self.work / name) for name in wanted}, {"d": 0o755, "d/f": 0o644, "f": 0o755})
            self.with_umask(0o022, "changes", "apply", "--yes", f"set-{umask}")  # what is done already is not a conflict
            shutil.rmtree(self.work / "d")
            (self.work / "f").unlink()

    def test_what_is_replaced_keeps_what_it_had(self):
        out = self.tmp / "out"
        out.mkdir()
        for name in ("wide", "narrow"):
            self.write(name, "old", mode=0o666 if name == "wide" else 0o600)
            self.write(name, "old", mode=0o666 if name == "wide" else 0o600, directory=out)
        code = "import os\nfor n in ('wide', 'narrow'): open(n, 'w').write('new')\nos.chmod('narrow', 0o666)\n"
        self.python(0o027, code, "--workspace", ".:overlay", "--apply", "--yes", "--out", out, "--collect", "*")
        self.assertEqual((mode(self.work / "wide"), mode(self.work / "narrow")), (0o666, 0o640))
        self.assertEqual((mode(out / "wide"), mode(out / "narrow")), (0o666, 0o600))

    def test_permissions_that_are_not_given_are_told(self):
        for name in ("a", "b", "tool"):
            self.write(name, "x")
        ended = self.python(0o022, "import os\nos.chmod('a', 0o666); os.chmod('b', 0o755); os.chmod('tool', 0o6755); os.mkdir('pub'); os.chmod('pub', 0o1777)",
                            "--workspace", ".:overlay", "--apply", "--yes")
        self.assertEqual([mode(self.work / name) for name in ("a", "b", "tool", "pub")], [0o644, 0o755, 0o755, 0o755])
        self.assertEqual(sorted(ended.err.decode().splitlines()[1:]), [
            "sbx: a: applied without the permissions that the umask takes",
            "sbx: pub: applied without its set-uid, set-gid or sticky bit",
            "sbx: tool: applied without its set-uid, set-gid or sticky bit"], ended)


class Shared(SbxTest):
    """Directories of another account in which the caller may write."""

    def setUp(self):
        super().setUp()
        if not IS_ROOT:
            self.skipTest("needs root to make a directory of another account")
        self.tmp.chmod(0o755)
        for path in (self.home,):
            os.chown(path, CALLER, CALLER)
        self.mine = self.work / "mine"

    def as_caller(self, *arguments, ends_with=0):
        command = ["setpriv", f"--reuid={CALLER}", f"--regid={CALLER}", f"--groups={GROUP}", SBX, *map(str, arguments)]
        ended = self.finish(start(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment(), cwd=self.work),
                            arguments, json_record=False)
        self.assertEqual(ended.status, ends_with, ended)
        return ended

    def make(self, bits, acl=False):
        """A directory of root's with a directory and files of both accounts."""
        shutil.rmtree(self.work)
        self.work.mkdir()
        os.chown(self.work, 0, GROUP if bits & 0o2000 else 0)
        self.work.chmod(bits)
        if acl and not self.open_by_list():
            return False
        self.mine.mkdir()
        for path, owner in ((self.mine, CALLER), (self.write("own", "old\n"), CALLER), (self.write("theirs", "old\n"), 0),
                            (self.write("team", "old\n", mode=0o664), 0), (self.write("mine/inner", "old\n"), CALLER)):
            os.chown(path, owner, GROUP if path.name == "team" else owner)
        return True

    def open_by_list(self):
        """An access control list that lets the caller write: acl(5), in the form of the kernel."""
        entries = [(1, 7, 2**32 - 1), (2, 7, CALLER), (4, 5, 2**32 - 1), (16, 7, 2**32 - 1), (32, 5, 2**32 - 1)]
        try:
            os.setxattr(self.work, "system.posix_acl_access", struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries))
        except OSError:
            return False
        return True

    CHANGE = "import os\nos.makedirs('d/e'); open('d/e/f', 'w').write('x'); open('new', 'w').write('x'); os.symlink('new', 'link')\n" \
             "open('own', 'a').write('more'); open('mine/new', 'w').write('x'); os.rename('mine/inner', 'mine/moved')\n"

    def owners(self):
        return {str(path.relative_to(self.work)): (path.lstat().st_uid, path.lstat().st_gid) for path in self.work.rglob("*")}

    def test_what_is_new_is_the_callers(self):
        for bits, acl in ((0o2775, False), (0o1777, False), (0o777, False), (0o755, True)):
            for way in ("apply", "keep"):
                if not self.make(bits, acl):
                    continue  # no ACLs here
                asked = ["--apply", "--yes"] if way == "apply" else ["--keep", f"set-{bits:o}"]
                ended = self.as_caller("run", "--workspace", ".:overlay", *asked, "--lang", "python", "-c", self.CHANGE)
                if way == "keep":
                    shown = self.as_caller("changes", "show", "--json", f"set-{bits:o}").out
                    self.assertEqual([each["path"] for each in json.loads(shown)["changes"] if each["change"] == "mode"], [], (oct(bits), acl))
                    self.as_caller("changes", "apply", "--yes", f"set-{bits:o}")
                group = GROUP if bits & 0o2000 else CALLER
                found = self.owners()
                for name in ("d", "d/e", "d/e/f", "new", "link"):
                    self.assertEqual(found[name], (CALLER, group), (oct(bits), acl, name, ended))
                self.assertEqual((found["mine/new"], found["own"]), ((CALLER, CALLER), (CALLER, CALLER)), ended)
                self.assertEqual((self.work / "own").read_text(), "old\nmore")
                self.assertEqual(sorted(os.listdir(self.mine)), ["moved", "new"])
                self.assertEqual(bool(mode(self.work / "d/e") & 0o2000), bool(bits & 0o2000))
                self.assertEqual(mode(self.work), 0o775 if acl else bits)

    def test_a_file_of_another_account_is_replaced_only_by_who_may_write_to_it(self):
        self.make(0o2775)
        run = ["run", "--workspace", ".:overlay", "--apply", "--yes", "--lang", "python", "-c"]
        refused = self.as_caller(*run, "open('team', 'w').write('new'); open('theirs', 'w').write('new')", ends_with=125)
        self.assertIn(b"theirs: cannot keep the owner of 'theirs'", refused.err)
        self.assertEqual(((self.work / "team").read_text(), (self.work / "theirs").read_text()), ("old\n", "old\n"))
        done = self.as_caller(*run, "open('team', 'w').write('new')")
        self.assertIn(b"team: applied, and yours now: it belonged to another account", done.err)
        self.assertEqual(((self.work / "team").read_text(), self.owners()["team"]), ("new", (CALLER, GROUP)))

    def test_root_fills_a_directory_of_one_account_as_that_account(self):
        for bits, owner in ((0o755, CALLER), (0o1777, 0)):
            self.make(bits)
            os.chown(self.work, CALLER, CALLER)
            self.exited(self.sbx("--workspace", ".:overlay", "--apply", "--yes", "--lang", "python", "-c", self.CHANGE))
            self.assertEqual({self.owners()[name][0] for name in ("d", "d/e", "new", "link")}, {owner}, oct(bits))


class Times(SbxTest):
    OLD = 981_173_106  # of 2001

    def test_what_is_brought_out_is_as_old_as_the_moment_when_it_was_written(self):
        """Whatever times the program gave it. The twin is get: session/test_files.py."""
        self.write("there", "old")
        self.exited(self.sbx("--workspace", ".:overlay", "--apply", "--yes", "--out", self.tmp / "out", "--lang", "python", "-c",
                             f"import os\nfor name in ('there', 'new'):\n open(name, 'w').write('x'); os.utime(name, ({self.OLD}, {self.OLD}))"))
        for path in (self.work / "there", self.work / "new", self.tmp / "out/new"):
            self.assertGreater(path.stat().st_mtime, self.OLD + 1, path)


class SetGroup(SbxTest):
    def test_a_set_gid_directory_is_no_change(self):
        self.work.chmod(0o2755)
        (self.work / "d").mkdir()
        (self.work / "d").chmod(0o2755)
        ended = self.sbx("--workspace", ".:overlay", "--apply", "--yes", "--", "sh", "-c", "echo x > d/new; mkdir d/e")
        self.assertEqual([(each["path"], each["change"]) for each in ended.record["changes"]], [("d/e", "created"), ("d/new", "created")], ended)
        self.assertEqual(([mode(self.work / name) for name in (".", "d", "d/e")], ended.record["applied"]["left"]), ([0o2755] * 3, []))
        changed = self.exited(self.sbx("--workspace", ".:overlay", "--", "chmod", "700", "d"))
        self.assertEqual([each["path"] for each in changed.record["changes"]], ["d"], changed)


if __name__ == "__main__":
    sbxtest.main()

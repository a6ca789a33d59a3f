"""Hard links in a copy-on-write workspace: names of one file stay so inside and after --apply, and no name of it uncovers
what another one hides."""

import json
import os
import shutil
import stat

import sbxtest
import traced
from sbxtest import IS_ROOT
from test_changes import Changes

SHOW = "import json, os\nfacts = lambda path: (lambda s: [s.st_mode, s.st_uid, s.st_gid, s.st_mtime_ns])(os.lstat(path))\n"
SECRET = "[remote \"origin\"]\n\turl = https://me:secret@example.org/x\n"


class Links(Changes):
    def link(self, first, *names, text="old\n"):
        """Names of one file; above the workspace those that begin with ".."."""
        if not (self.work / first).exists():
            self.write(first, text)
        for name in names:
            (self.work / name).parent.mkdir(parents=True, exist_ok=True)
            os.link(self.work / first, self.work / name)

    def files(self):
        """The names below the workspace, grouped by their file, with its number of names."""
        groups = {}
        for path in sorted(self.work.rglob("*")):
            facts = path.lstat()
            if stat.S_ISREG(facts.st_mode):
                groups.setdefault((facts.st_ino, facts.st_nlink), []).append(str(path.relative_to(self.work)))
        return sorted((names, count) for (_, count), names in groups.items())

    def split(self, ended):
        """What `degraded` says about files whose names don't stay one file's."""
        return [each["why"] for each in ended.record["degraded"] if "several names" in each["why"]]


class Together(Links):
    def test_names_share_a_file_inside_and_afterwards(self):
        """Twin: two files with the same content are two inside and afterwards."""
        self.link("a", "d/b", "d/e/c")
        self.write("one", "same")
        self.write("two", "same")
        ended = self.overlay("import os\nprint(len({os.stat(n).st_ino for n in ('a', 'd/b', 'd/e/c')}), os.stat('a').st_nlink)\n"
                             "open('d/b', 'a').write('new\\n'); print(open('a').read(), end=''); os.chmod('a', 0o640); os.remove('d/e/c')\n"
                             "os.link('a', 'made'); os.rename('d/b', 'moved'); print(os.stat('moved').st_nlink); open('one', 'w').write('other')",
                             "--apply", "--yes")
        self.assertEqual(ended.text, "1 3\nold\nnew\n3\n", ended)
        self.assertEqual(self.split(ended), [])
        self.assertEqual(self.files(), [(["a", "made", "moved"], 3), (["one"], 1), (["two"], 1)])
        self.assertEqual(((self.work / "made").read_text(), (self.work / "two").read_text()), ("old\nnew\n", "same"))
        self.assertEqual(stat.S_IMODE((self.work / "moved").stat().st_mode), 0o640)

    def test_the_same_in_a_copy(self):
        """A file whose owner or group has no id inside makes the workspace a copy."""
        if not IS_ROOT:
            self.skipTest("only root has files of other accounts")
        self.link("a", "d/b")
        self.write("theirs", "text")
        os.chown(self.work / "theirs", 3_000_000_000, 3_000_000_000)
        ended = self.overlay("import os\nprint(os.path.samefile('a', 'd/b'))\nopen('a', 'w').write('new')", "--apply", "--yes")
        self.assertIn("the directory is a copy", json.dumps(ended.record["degraded"]))
        self.assertEqual(ended.text, "True\n")
        self.assertEqual(self.files(), [(["a", "d/b"], 2), (["theirs"], 1)])
        self.assertEqual((self.work / "d/b").read_text(), "new")

    def test_what_stays_untouched_is_no_change(self):
        """Directories made on the way are as the host has them. Twin: what is written is a change under each name."""
        self.link("p/q/a", "r/b", "c")
        for name, bits, when in (("p", 0o750, 10**9), ("p/q", 0o711, 2 * 10**9), ("r", 0o755, 10**8)):
            (self.work / name).chmod(bits)
            os.utime(self.work / name, (when, when))
        (self.work / "other").mkdir()
        if IS_ROOT:
            for name in ("r", "other"):
                os.chown(self.work / name, 1000, 1001)
        os.utime(self.work / "c", (5 * 10**8, 5 * 10**8))
        names = ["p", "p/q", "r", "c", "r/b", "other"]
        ended = self.overlay(SHOW + f"open('c').read(); print(json.dumps([facts(name) for name in {names!r}]))")
        self.assertEqual(self.changed(ended), {})
        owners = {}
        for name, (mode, uid, gid, when) in zip(names, json.loads(ended.text)):
            facts = (self.work / name).stat()
            self.assertEqual((mode, when), (facts.st_mode, facts.st_mtime_ns), name)
            owners[name] = (uid, gid)
        self.assertEqual(owners["r"], owners["other"])
        self.assertEqual(owners["r"] != owners["p"], IS_ROOT)
        ended = self.overlay("open('c', 'w').write('new')")
        self.assertEqual(self.changed(ended), {"c": "modified", "p/q/a": "modified", "r/b": "modified"})

    def test_names_elsewhere_keep_the_old_file(self):
        """A file with one name in the workspace is not a group, as in a store of packages; one with two becomes a file of theirs."""
        self.link("a", "b", "../outside")
        self.link("stored", "../store", text="package")
        ended = self.overlay("import os\nprint(os.stat('stored').st_nlink)\nfor name in ('a', 'stored'): open(name, 'w').write('new')", "--apply", "--yes")
        self.assertEqual(ended.text, "2\n")
        self.assertEqual(self.split(ended), [])
        self.assertEqual(self.files(), [(["a", "b"], 2), (["stored"], 1)])
        self.assertEqual([(self.work / name).read_text() for name in ("b", "../outside", "../store")], ["new", "old\n", "package"])
        self.assertEqual([(self.work / name).stat().st_nlink for name in ("../outside", "../store")], [1, 1])

    def test_a_new_name_of_a_file_that_stays(self):
        """Not where the file has a name outside, nor where it has a set-ID bit: then the new name gets a file of its own."""
        self.link("a")
        self.link("b", "../outside")
        self.write("s", "text").chmod(0o4755)
        ended = self.overlay("import os\nfor name in 'abs': os.link(name, name + '2')", "--apply", "--yes")
        self.assertEqual(self.changed(ended), {"a2": "created", "b2": "created", "s2": "created"})
        self.assertEqual(self.files(), [(["a", "a2"], 2), (["b"], 2), (["b2"], 1), (["s"], 1), (["s2"], 1)])
        self.assertEqual((self.work / "s2").stat().st_mode & 0o7777, 0o755)

    def test_a_new_name_of_a_file_whose_mode_alone_changes(self):
        """Twin: without another name the mode is set in place."""
        self.link("a")
        self.write("b", "text")
        before = (self.work / "b").stat().st_ino
        self.overlay("import os\nos.chmod('a', 0o444); os.link('a', 'a2'); os.rename('a', 'a3'); os.chmod('b', 0o600)", "--apply", "--yes")
        self.assertEqual(self.files(), [(["a2", "a3"], 2), (["b"], 1)])
        self.assertEqual([stat.S_IMODE((self.work / name).stat().st_mode) for name in ("a2", "b")], [0o444, 0o600])
        self.assertEqual((self.work / "b").stat().st_ino, before)

    def test_equal_content_under_other_names_is_a_change_of_links(self):
        """Neither "modified", nor a part of a patch. Twin: other content is both."""
        for name in ("one", "two", "other"):
            self.write(name, "same\n")
        self.link("a", "b")
        self.keep("import os, shutil\nos.remove('two'); os.link('one', 'two'); shutil.copy('b', 't'); os.rename('t', 'b'); open('other', 'w').write('new\\n')")
        shown = {each["path"]: each["change"] for each in self.json_of("show", "set")["changes"]}
        self.assertEqual(shown, {"two": "links", "b": "links", "other": "modified"})
        patch = self.changes("diff", "--patch", "set", ends_with=1)
        self.assertIn(b"+new", patch.out)
        self.assertNotIn(b"two", patch.out)
        self.assertIn(b"not in the patch: two: git keeps no hard links", patch.err)
        self.assertIn(b"links     two  (", self.changes("show", "set").out)
        self.changes("apply", "--yes", "set")
        self.assertEqual(self.files(), [(["a"], 1), (["b"], 1), (["one", "two"], 2), (["other"], 1)])

    def completed_after(self, damage):
        """An application of each directory that is damaged one call later, and then one that is not."""
        for i in range(80):
            self.link(f"c{i}/a", f"c{i}/b", f"c{i}/d/c")
            self.link(f"c{i}/x", text="x")
            self.link(f"c{i}/m", text="m")
        self.keep("import os\nfor i in range(80):\n    os.chdir(f'c{i}'); open('b', 'w').write('new'); os.link('x', 'd/y'); os.chmod('m', 0o600); os.link('m', 'd/n')\n"
                  "    os.chdir('..')")
        whole = [(["a", "b", "d/c"], 3), (["d/n", "m"], 2), (["d/y", "x"], 2)]
        calls = []
        for i in range(79):
            call, status = damage([sbxtest.SBX, "changes", "apply", "--yes", "set", f"c{i}/**"], i + 1, self.environment())
            if call is None:
                break
            calls.append(call)
            if status != 0:
                self.changes("apply", "--yes", "set", f"c{i}/**")
            below = [([name.removeprefix(f"c{i}/") for name in names], count) for names, count in self.files() if names[0].startswith(f"c{i}/")]
            self.assertEqual(below, whole, (i, call, status))
            self.assertEqual([(self.work / f"c{i}" / name).read_text() for name in ("a", "b", "d/c", "d/y")], ["new"] * 3 + ["x"])
        else:
            self.fail("more calls than directories")
        self.assertLessEqual({"linkat", "renameat2"}, set(calls))

    def test_an_application_that_was_killed_is_completed(self):
        """Whichever names had the new file already. Twin: nobody is killed."""
        self.completed_after(lambda *asked: (traced.killed_before(*asked), None))

    def test_an_application_in_which_a_call_failed_is_completed(self):
        self.completed_after(traced.failed_at)


class Apart(Links):
    """Files that are not copied up at the start."""

    def written_apart(self, ended, name, others):
        """One name was written, and the rest stays: a conflict."""
        self.assertEqual(len(self.split(ended)), 1, ended.record["degraded"])
        self.assertIn("did not stay those of one file", json.dumps(ended.record["applied"]["conflicts"]), ended)
        for each in (name, *others):
            self.assertEqual((self.work / each).read_text(), "old\n")
        self.assertEqual(len({(self.work / each).stat().st_ino for each in (name, *others)}), 1)

    def test_a_denied_name_hides_all_names(self):
        """They stay hidden though other files are copied up. Twin: where nothing is denied, the same file is seen."""
        self.link(".env", "d/settings", text="secret")
        self.link("a", "d/b")
        code = "import os\nprint(sorted(os.listdir('d')), os.path.exists('.env'))\nopen('a', 'w').write('new')\nopen('d/settings', 'w').write('mine')"
        ended = self.overlay(code, "--apply", "--yes")
        self.assertEqual(ended.text, "['b'] False\n", ended)
        self.assertEqual((self.work / "d/settings").read_text(), "secret")
        self.assertEqual(self.files(), [([".env", "d/settings"], 2), (["a", "d/b"], 2)])
        ended = self.overlay("print(open('.env').read(), open('d/settings').read())", "--set", "filesystem.deny={replace=[]}")
        self.assertEqual(ended.text, "secret secret\n")

    def test_git_settings_without_credentials_hide_their_other_names(self):
        """Twin: settings that hold none are a file as any other."""
        self.write(".git/HEAD", "ref: refs/heads/main\n")
        self.link(".git/config", "d/config", text=SECRET)
        self.link("a", "d/b")
        look = "import os\nprint('secret' in open('.git/config').read(), os.path.exists('d/config'), os.path.samefile('a', 'd/b'))"
        for mode in ("overlay", "read-write"):
            ended = self.sbx("--workspace", f"{self.work}:{mode}", "--lang", "python", "-c", look.replace("exists", "getsize" if mode != "overlay" else "exists"))
            self.assertEqual(ended.text, "False False True\n" if mode == "overlay" else "False 0 True\n", ended)
        (self.work / ".git/config").write_text("[core]\n\tbare = false\n")
        ended = self.overlay("import os\nprint(os.path.samefile('.git/config', 'd/config'))")
        self.assertEqual(ended.text, "True\n")

    def test_set_id_bits_stay_apart(self):
        """Twin: without the bit its names stay together."""
        self.link("s", "t")
        (self.work / "s").chmod(0o2755)
        ended = self.overlay("open('s', 'w').write('new')", "--apply", "--yes", ends_with=1)
        self.assertIn("'s' has several names", self.split(ended)[0])
        self.assertIn("set-ID bit", self.split(ended)[0])
        self.written_apart(ended, "s", ["t"])
        (self.work / "s").chmod(0o755)
        self.assertEqual(self.split(self.overlay("open('s', 'w').write('new')", "--apply", "--yes")), [])
        self.assertEqual(self.files(), [(["s", "t"], 2)])

    def test_unreadable_files_stay_apart(self):
        """Their names can be removed and moved, as outside."""
        if IS_ROOT:
            self.skipTest("root reads every file")
        self.link("u", "v")
        (self.work / "u").chmod(0)
        ended = self.overlay("import os\nos.rename('u', 'w'); os.remove('v')")
        self.assertIn("can't be read", self.split(ended)[0])

    def test_more_files_than_are_copied(self):
        """Those within the bound stay together."""
        for i in range(2001):
            self.link(f"f{i:04}a", f"f{i:04}b")
        options = ["--apply", "--yes", "--set", "limits.disk_files=100000"]
        ended = self.overlay("open('f0000b', 'w').write('new')", *options)
        self.assertEqual(len(self.split(ended)), 1)
        self.assertIn("'f2000a' has several names", self.split(ended)[0])
        self.assertEqual((self.work / "f0000a").read_text(), "new")
        ended = self.overlay("open('f2000b', 'w').write('new')", *options, ends_with=1)
        self.written_apart(ended, "f2000b", ["f2000a"])

    def test_more_than_an_eighth_of_the_disk(self):
        """Bytes, and names with the directories that they are in."""
        self.link("big", "big2", text="x" * (3 << 20))
        deep = "/".join("d" * 120)
        self.link(f"{deep}/a", f"{deep}/b")
        self.link("small", "small2")
        for options, what in ((["--disk", "16M"], "'big'"), (["--set", "limits.disk_files=800"], f"'{deep}/a'")):
            ended = self.overlay("import os\nprint(os.path.samefile('small', 'small2')); open('small', 'w').write('new')", *options)
            self.assertEqual(ended.text, "True\n")
            self.assertEqual(len(self.split(ended)), 1, ended)
            self.assertIn(what, self.split(ended)[0])
            self.assertEqual(self.changed(ended), {"small": "modified", "small2": "modified"})
        self.assertEqual(self.split(self.overlay("pass")), [])


if __name__ == "__main__":
    sbxtest.main()

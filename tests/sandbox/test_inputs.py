"""--in: files copied in. They belong to the program, and count as changes only if it changes them."""

import os
import pathlib

import sbxtest
from sbxtest import IS_ROOT, PROBE, SbxTest

MIB = 1 << 20


class Inputs(SbxTest):
    def setUp(self):
        super().setUp()
        self.tmp.chmod(0o755)
        self.data = self.write("data.csv", "1,2\n", directory=self.tmp)

    def run_with(self, code, *inputs, mode="overlay", options=()):
        options = [*(word for each in inputs or [self.data] for word in ("--in", each)), "--workspace", f"{self.work}:{mode}", *options]
        return self.exited(self.python(code, options=options))

    def changed(self, ended):
        return {each["path"]: each["change"] for each in ended.record["changes"]}

    def test_the_program_finds_the_copy_and_may_change_it(self):
        code = "print(open('data.csv').read()); open('data.csv', 'a').write('more'); print(open('data.csv').read())"
        for mode in ("overlay", "empty"):
            self.assertEqual(self.run_with(code, mode=mode).text, "1,2\n\n1,2\nmore\n")
        self.assertEqual((self.data.read_text(), os.listdir(self.work)), ("1,2\n", []))

    def test_one_that_is_left_alone_is_no_change(self):
        self.write("sub/mine", "x")
        for code in ("pass", "open('data.csv').read()", "open('data.csv', 'r+').write('1,2')", "import os; os.remove('data.csv')",
                     "import os; os.utime('sub/new/deep/x')"):
            ended = self.run_with(code, self.data, f"{self.data}:sub/new/deep/x", options=["--out", self.tmp / "out", "--set",
                                                                                          'filesystem.outputs.collect=["**"]'])
            self.assertEqual((self.changed(ended), (self.tmp / "out").exists()), ({}, False), code)

    def test_one_that_is_changed_is_listed_and_brought_out_with_its_directories(self):
        ended = self.run_with("open('new/deep/data.csv', 'a').write('more'); open('x', 'w'); open('other/y', 'w')", f"{self.data}:new/deep/",
                              f"{self.data}:other/kept", options=["--apply", "--yes"])
        self.assertEqual(self.changed(ended), {"new": "created", "new/deep": "created", "new/deep/data.csv": "created", "x": "created",
                                               "other": "created", "other/y": "created"}, ended)
        self.assertEqual(((self.work / "new/deep/data.csv").read_text(), os.listdir(self.work / "other")), ("1,2\nmore", ["y"]), ended)

    def test_mode_content_kind_and_name_count_as_changes(self):
        for code, changed in (("import os; os.chmod('data.csv', 0o755)", {"data.csv": "created"}),
                              ("open('data.csv', 'r+').write('9')", {"data.csv": "created"}),
                              ("import os; os.remove('data.csv'); os.symlink('x', 'data.csv')", {"data.csv": "created"}),
                              ("import os; os.remove('data.csv'); os.mkdir('data.csv')", {"data.csv": "created"}),
                              ("import os; os.rename('data.csv', 'b')", {"b": "created"})):
            self.assertEqual(self.changed(self.run_with(code)), changed, code)

    def test_every_private_place_takes_files(self):
        code = "import os\nfor n in ('/tmp/a', os.path.expanduser('~/.config/b'), '/dev/shm/c', 'd e/f'): open(n, 'a').write('x'); print(open(n).read())"
        ended = self.run_with(code, *(f"{self.data}:{place}" for place in ("/tmp/a", "~/.config/b", "/dev/shm/c", "d e/f")))
        self.assertEqual(ended.text, "1,2\nx\n" * 4)

    def test_bytes_and_mode_are_those_of_the_file(self):
        every = self.write("every", bytes(range(256)) * 1000, directory=self.tmp)
        tool = self.write("tool", "#!/bin/sh\necho works\n", mode=0o755, directory=self.tmp)
        closed = self.write("closed", "x", mode=0o400, directory=self.tmp)
        ended = self.run_with("import os, subprocess\nassert open('every', 'rb').read() == bytes(range(256)) * 1000\n"
                              "print(subprocess.run(['./tool'], capture_output=True).stdout, oct(os.stat('closed').st_mode), os.stat('tool').st_uid)",
                              every, tool, closed)
        self.assertEqual(ended.text, "b'works\\n' 0o100600 1000\n")

    def test_odd_names_are_names(self):
        for name in (b"a b", b"new\nline", b"\xff\xfe", b"-x", "ü".encode(), b"col:on"):
            path = pathlib.Path(os.fsdecode(os.fsencode(self.tmp) + b"/" + name))
            path.write_text("odd")
            ended = self.run_with("import os; print([open(n).read() for n in os.listdir('.')])", str(path).replace(":", "\\:"))
            self.assertEqual(ended.text, "['odd']\n", name)

    def test_what_is_there_already_is_an_error_and_nothing_runs(self):
        self.write("data.csv", "mine")
        (self.work / "link").symlink_to(self.tmp)
        for target in ("", ":data.csv/x", ":link/x", ":/etc/x", ":/srv/x", ":/proc/x"):
            ended = self.sbx("--workspace", f"{self.work}:overlay", "--in", f"{self.data}{target}", "true")
            self.could_not(ended, "--in: cannot copy")
        self.assertEqual(self.run_with("print(open('data.csv').read())", f"{self.data}:b").text, "mine\n")

    def test_a_live_directory_is_never_written_to(self):
        self.could_not(self.sbx("--workspace", f"{self.work}:read-write", "--in", self.data, "true"), "live directory")
        self.could_not(self.sbx("--write", self.work, "--in", f"{self.data}:{self.work}/x", "true"), "live directory")
        self.assertEqual(os.listdir(self.work), [])
        self.run_with("open('/tmp/x').read()", f"{self.data}:/tmp/x", mode="read-write")

    def test_a_link_planted_by_an_earlier_run_leads_nowhere(self):
        elsewhere = self.tmp / "elsewhere"
        elsewhere.mkdir()
        self.run_with(f"import os; os.symlink('{elsewhere}', 'in'); os.symlink('{elsewhere}/x', 'data.csv')", f"{self.data}:other",
                      options=["--apply", "--yes"])
        self.assertTrue((self.work / "in").is_symlink())
        for target in ("", ":in/x", ":in/deep/x"):
            self.could_not(self.sbx("--workspace", f"{self.work}:overlay", "--in", f"{self.data}{target}", "true"), "--in: cannot copy")
        self.assertEqual(os.listdir(elsewhere), [])

    def test_hidden_files_do_not_come_in(self):
        secret = self.write(".env", "s3cr3t", directory=self.tmp)
        self.could_not(self.sbx("--in", f"{secret}:x", "true"), "filesystem.deny")
        self.write(".env", "host")
        self.could_not(self.sbx("--workspace", f"{self.work}:overlay", "--in", f"{self.data}:.env", "true"), "of that name")

    def test_a_file_under_a_hidden_name_is_the_sandboxs_own(self):
        ended = self.run_with("print(open('.env').read()); open('.env', 'a').write('x')", f"{self.data}:.env", options=["--apply", "--yes"])
        self.assertEqual((ended.text, self.changed(ended), os.listdir(self.work)), ("1,2\n\n", {}, []))

    def test_together_they_have_a_limit_and_count_against_the_disk(self):
        big = self.write("big", "", directory=self.tmp)
        os.truncate(big, 64 * MIB + 1)
        self.could_not(self.sbx("--in", big, "true"), "64 MiB")
        os.truncate(big, 3 * MIB)
        self.could_not(self.sbx("--in", big, "--disk", "2M", "true"), "limits.disk")
        self.could_not(self.sbx("--in", big, "--in", f"{big}:b", "--disk", "6M", "--set", "limits.disk_files=6", "true"), "limits.disk")
        self.run_with("import os; assert os.path.getsize('big') == 3 << 20", big, options=["--disk", "4M"])

    def test_a_locked_policy_lets_nothing_else_in(self):
        policy = self.policy("locked = true\n")
        self.could_not(self.sbx("-p", policy, "--in", self.data, "true"), "locked")
        self.exited(self.sbx("-p", self.policy(""), "--in", self.data, "true"))

    def test_what_is_no_file_is_an_error(self):
        os.mkfifo(self.tmp / "pipe")
        for source in (self.tmp, self.tmp / "pipe", self.tmp / "missing", "/dev/null", "/proc/self/fd/0"):
            self.could_not(self.sbx("--in", source, "true"), "--in: cannot copy")
        if not IS_ROOT:
            self.could_not(self.sbx("--in", self.write("shut", "x", mode=0, directory=self.tmp), "true"), "Permission denied")

    def test_a_copied_workspace_and_a_disk_in_a_directory_take_them_too(self):
        code = "print(open('sub/data.csv').read()); open('sub/data.csv', 'a').write('x'); print(sorted(os.listdir('sub')))"
        self.write("sub/old", "x")
        for options in (["--set", 'limits.disk_on="directory"'], ["--disk", "1M"]):
            self.write("big", "x" * 600_000)
            ended = self.run_with("import os\n" + code, f"{self.data}:sub/", options=options)
            self.assertEqual((ended.text, self.changed(ended)), ("1,2\n\n['data.csv', 'old']\n", {"sub/data.csv": "created"}), ended)

    def test_the_plan_shows_them(self):
        ended = self.sbx("--in", self.data, "--dry-run", "true", json_record=False)
        self.assertIn(f"{self.work}/data.csv a copy of {self.data}".encode(), ended.out)

    def test_without_it_nothing_is_there(self):
        self.refuses(self.inside("read", self.data, options=["--workspace", f"{self.work}:overlay"]), "ENOENT")
        self.works(self.inside("read", self.work / "data.csv", options=["--workspace", f"{self.work}:overlay", "--in", self.data]))


if __name__ == "__main__":
    sbxtest.main()

"""Invariant 9: what a program may leave in a live grant as a trap for the host, and what is refused."""

import os
import stat
import time

import sbxtest
from sbxtest import SbxTest

CLOCK_REALTIME_COARSE = 5

# Each call that sets a file's mode, made without the C library. The caller sets `mode`.
CALLS = """
import ctypes, errno, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    answer = libc.syscall(*(ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments))
    return errno.errorcode[ctypes.get_errno()] if answer < 0 else 'made'
def how(flags, mode):
    return struct.pack('QQQ', flags, mode, 0)
AT, CREATE, NAMELESS = -100, os.O_CREAT | os.O_WRONLY, os.O_TMPFILE | os.O_WRONLY
open('f', 'w').close()
f = os.open('f', os.O_RDWR)
os.umask(0)
"""
# The name of a way, its call and the call's arguments.
WAYS = {way: f"call({sbxtest.SYSCALLS[name]}, {arguments})" for way, name, arguments in (
    ("chmod", "chmod", "b'f', mode"),
    ("fchmod", "fchmod", "f, mode"),
    ("fchmodat", "fchmodat", "AT, b'f', mode"),
    ("fchmodat2", "fchmodat2", "AT, b'f', mode, 0"),
    ("open", "open", "b'o', CREATE, mode"),
    ("openat", "openat", "AT, b'p', CREATE, mode"),
    ("openat (nameless)", "openat", "AT, b'.', NAMELESS, mode"),
    ("creat", "creat", "b'c', mode"),
    ("mknod", "mknod", "b'n', 0o100000 | mode, 0"),
    ("mknodat", "mknodat", "AT, b'm', 0o100000 | mode, 0"),
    ("mkdir", "mkdir", "b'd', mode"),
    ("mkdirat", "mkdirat", "AT, b'e', mode"),
    ("openat2", "openat2", "AT, b'q', how(CREATE, mode), 24"),
) if name in sbxtest.SYSCALLS}
ASK = CALLS + "for name, way in " + repr(WAYS) + ".items():\n    print(name, '=', eval(way))"


class Traps(SbxTest):
    def setUp(self):
        super().setUp()
        self.tmp.chmod(0o755)
        self.live = ["--workspace", f"{self.work}:read-write"]
        self.copy = ["--workspace", f"{self.work}:overlay"]

    def answers(self, mode, options):
        text = self.exited(self.python(f"mode = {mode:#o}{ASK}", options=options)).text
        return dict(line.split(" = ") for line in text.splitlines())

    def set_id_files(self):
        return [str(path) for path in self.work.rglob("*") if path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID)]

    def test_no_file_of_a_live_grant_gets_a_set_id_mode(self):
        expected = {name: "ENOSYS" if name == "openat2" else "EPERM" for name in WAYS}
        for mode in (0o4755, 0o2755, 0o6000):
            for options in (self.live, ["--write", str(self.work), "--workspace", f"{self.work}:read-write"]):
                got = self.answers(mode, options)
                if got["fchmodat2"] == "ENOSYS":  # before Linux 6.6
                    del got["fchmodat2"]
                self.assertEqual(got, {name: expected[name] for name in got})
                self.assertEqual(self.set_id_files(), [])

    def test_a_copy_takes_set_id_modes(self):
        got = self.answers(0o4755, self.copy)
        # Before Linux 6.6 the kernel has no fchmodat2, and overlayfs no unnamed files.
        self.assertGreaterEqual({name for name, answer in got.items() if answer == "made"}, WAYS.keys() - {"fchmodat2", "openat (nameless)"})

    def test_ordinary_modes_reach_a_live_grant(self):
        got = self.answers(0o1755, self.live)
        self.assertEqual({name for name, answer in got.items() if answer != "made"} - {"fchmodat2"}, {"openat2"})
        self.assertEqual((self.work / "p").stat().st_mode, stat.S_IFREG | 0o1755)

    def test_set_id_modes_reach_a_live_grant_where_the_policy_allows_the_call(self):
        code = "import os\nopen('f', 'w'); os.chmod('f', 0o4755)"
        refused = self.python(code, options=self.live)
        [denial] = refused.record["denials"]
        self.assertIn("(04755)", denial["what"])
        self.exited(self.python(code, options=[*self.live, "--set", denial["allow_with"].replace(" = ", "=")]))
        self.assertNotEqual(self.set_id_files(), [])

    def test_a_directory_that_passes_its_group_on_still_does(self):
        os.chmod(self.work, 0o2777)
        self.exited(self.python("import os\nos.mkdir('d'); open('d/f', 'w')", options=self.live))
        self.assertTrue((self.work / "d").stat().st_mode & stat.S_ISGID)
        self.assertFalse((self.work / "d/f").stat().st_mode & (stat.S_ISUID | stat.S_ISGID))


MAKERS = {
    "fifo": "os.mkfifo({0} + '/fifo')",
    "fifo by mknod": "os.mknod({0} + '/node', 0o010644)",
    "socket": "socket.socket(socket.AF_UNIX).bind({0} + '/socket')",
    "socket by mknod": "os.mknod({0} + '/made', 0o140644)",
    "whiteout": "os.mknod({0} + '/whiteout', 0o020000)",
    "whiteout by rename": "rename({0})",
}
MAKE = """
import ctypes, errno, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def rename(place):
    open(place + '/old', 'w').close()
    if libc.renameat2(-100, (place + '/old').encode(), -100, (place + '/new').encode(), 4) != 0:
        raise OSError(ctypes.get_errno(), 'renameat2')
for name, way in """ + repr(MAKERS) + """.items():
    try:
        eval(way.format('sys.argv[1]'))
        print(name, '= made')
    except OSError as error:
        print(name, '=', errno.errorcode[error.errno])
"""
SPECIAL_TYPES = {"fifo", "fifo by mknod", "socket", "socket by mknod"}


class SpecialFiles(SbxTest):
    def setUp(self):
        super().setUp()
        self.tmp.chmod(0o755)
        self.live = ["--workspace", f"{self.work}:read-write"]

    def made(self, place, *options):
        text = self.exited(self.python(MAKE, str(place), options=options)).text
        answers = dict(line.split(" = ") for line in text.splitlines())
        self.assertEqual(set(answers), set(MAKERS))
        self.assertLessEqual(set(answers.values()), {"made", "EACCES", "EPERM", "EINVAL"})  # EINVAL: a whiteout
        return {name for name, answer in answers.items() if answer == "made"}

    def special_files(self):
        return [path.name for path in self.work.rglob("*") if not (path.is_file() or path.is_dir())]

    def test_no_special_file_is_made_in_a_live_grant(self):
        (self.work / "below").mkdir()
        grants = (self.live, ["--write", str(self.work)], ["--set", f'filesystem.write=[{{ source = "{self.work}", target = "/data" }}]'])
        for options in grants:
            place = "/data" if "target" in options[-1] else self.work
            for directory in ("", "/below"):
                self.assertEqual(self.made(f"{place}{directory}", *options), set())
                self.assertEqual(self.special_files(), [])

    def test_a_copy_and_private_directories_take_fifos_and_sockets(self):
        self.assertGreaterEqual(self.made(self.work, "--workspace", f"{self.work}:overlay"), SPECIAL_TYPES)
        for private in ("/home/sandbox", "/dev/shm"):
            self.assertEqual(self.made(private, *self.live), SPECIAL_TYPES)

    def test_a_private_directory_that_holds_a_live_grant_makes_no_special_file(self):
        grant = f'{{ source = "{self.work}", target = "/home/sandbox/data" }}'
        self.assertEqual(self.made("/home/sandbox", "--set", f"filesystem.write=[{grant}]"), set())
        self.assertEqual(self.made("/home/sandbox/data", "--set", f"filesystem.write=[{grant}]"), set())
        for place in ("/tmp", "/var/tmp"):  # one private directory under two names
            grant = ["--set", f'filesystem.write=[{{ source = "{self.work}", target = "{place}/data" }}]']
            for asked in (f"{place}/data", "/tmp"):
                self.assertEqual(self.made(asked, *grant), set())

    def test_special_files_are_made_where_the_grant_lets_them(self):
        grant = ["--set", f'filesystem.write=[{{ source = "{self.work}", special = true }}]']
        for options in (grant, [*self.live, *grant]):
            self.assertEqual(self.made(self.work, *options), SPECIAL_TYPES)
            for path in self.work.iterdir():
                path.unlink()

    def test_a_program_still_finds_a_place_for_its_sockets(self):
        code = ("import os, socket, tempfile\nplace = tempfile.mkdtemp()\nsocket.socket(socket.AF_UNIX).bind(place + '/s')\n"
                "os.mkfifo(place + '/f'); print(os.environ['TMPDIR'])")
        for target, expected in (("/tmp/data", "/dev/shm"), ("/data", "/tmp")):
            grant = ["--set", f'filesystem.write=[{{ source = "{self.work}", target = "{target}" }}]']
            self.assertEqual(self.exited(self.python(code, options=grant)).text, f"{expected}\n")

    def test_without_landlock_the_filter_refuses_them_and_says_what_it_cannot(self):
        options = [*self.live, "--set", "filesystem.landlock=false"]
        self.assertEqual(self.made(self.work, *options), {"socket"})
        self.assertEqual(self.made("/dev/shm", *options), {"socket"})
        self.assertIn("bind(2)", str(self.exited(self.sbx(*options, "true")).record["degraded"]))
        self.assertNotIn("bind(2)", str(self.exited(self.sbx(*self.live, "true")).record["degraded"]))

    def test_no_file_of_the_host_gets_a_name_in_a_live_grant(self):
        other = self.write("secret", "x", directory=self.tmp)
        other.chmod(0o644)
        code = "import errno, os, sys\ntry:\n    os.link(sys.argv[1], 'name')\nexcept OSError as error:\n    print(errno.errorcode[error.errno])"
        ended = self.exited(self.python(code, str(other), options=[*self.live, "--read", str(other)]))
        self.assertEqual(ended.text, "EXDEV\n")
        self.write("own", "x")
        self.assertEqual(self.exited(self.python(code, str(self.work / "own"), options=self.live)).text, "")


class Hazards(SbxTest):
    def setUp(self):
        super().setUp()
        self.tmp.chmod(0o755)
        self.live = ["--workspace", f"{self.work}:read-write"]

    def wait_until_older(self, path):
        """Returns when a run that begins now began after the last change of `path`: a run counts changes of its first tick too."""
        while time.clock_gettime_ns(CLOCK_REALTIME_COARSE) <= path.lstat().st_ctime_ns:
            pass  # files are stamped by this clock, which advances by milliseconds

    def hazards(self, ended):
        return {os.path.relpath(each["path"], self.work): each["why"] for each in ended.record.get("hazards", [])}

    def told(self, code, *options):
        return self.hazards(self.exited(self.python("import os\n" + code, options=[*self.live, *options])))

    def test_links_out_are_listed(self):
        told = self.told("os.mkdir('d'); os.symlink('/etc/passwd', 'a'); os.symlink('../../x', 'd/b'); os.symlink('d', 'c'); os.symlink('../c/x', 'd/e')\n"
                         "os.symlink('gone', 'f'); os.symlink('../work/d', 'g')\nos.symlink(os.getcwd() + '/d', 'h')")
        self.assertEqual(set(told), {"a", "d/b", "g"})
        self.assertIn("symbolic link out of", told["a"])

    def test_hard_links_and_misleading_names_are_listed(self):
        told = self.told("open('f', 'w'); os.link('f', 'g'); open('a\\nb', 'w'); open('c\\u202etxt', 'w'); open('d\\x7f', 'w'); open('\\u00e4\\u00f6', 'w')")
        self.assertEqual(len(told), 4, told)
        self.assertIn("hard link", next(why for name, why in told.items() if name in ("f", "g")))

    def test_special_files_and_set_id_modes_are_listed_where_they_were_let_through(self):
        allow = 'syscalls.allow=["chmod", "fchmodat"]'
        told = self.told("open('f', 'w'); os.chmod('f', 0o4755)", "--set", allow)
        self.assertIn("set-user-ID", told["f"])
        self.wait_until_older(self.work / "f")
        # The host creates one meanwhile: the list shows what exists.
        process = self.start_sbx(*self.live, "--", "sh", "-c", "echo ready; read x", json_record=False, stdin=sbxtest.subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        os.mkfifo(self.work / "fifo")
        self.assertIn(b"FIFO", self.finish(process, data=b"\n", json_record=False).err)

    def test_links_in_a_repository_are_listed(self):
        """git writes reflogs through them, to a name that is read-only inside. Twin: the same link elsewhere."""
        for directory in (".git/logs", "logs"):
            (self.work / directory).mkdir(parents=True)
        self.write(".envrc", "trusted")
        told = self.told("os.symlink('../../.envrc', '.git/logs/HEAD'); os.symlink('../.envrc', 'logs/HEAD')")
        self.assertEqual(told, {".git/logs/HEAD": "a symbolic link in a .git: git writes where it leads"})

    def test_what_was_there_before_is_not_listed(self):
        (self.work / "a").symlink_to("/etc/passwd")
        self.write("f", "x")
        os.link(self.work / "f", self.work / "g")
        self.wait_until_older(self.work / "g")
        self.assertEqual(self.told("open('h', 'w'); os.mkdir('d'); os.symlink('h', 'd/i')"), {})
        self.assertEqual(self.sbx(*self.live, "touch", "x", json_record=False).err, b"")

    def test_a_copy_has_no_hazards(self):
        ended = self.exited(self.python("import os; os.symlink('/etc', 'a'); os.mkfifo('b')", options=["--workspace", f"{self.work}:overlay"]))
        self.assertNotIn("hazards", ended.record)

    def test_people_are_told_in_one_line(self):
        ended = self.sbx(*self.live, "--", "sh", "-c", "ln -s /etc 'a\033[2J\u202e'; ln -s / b; ln -s /usr c", json_record=False)
        self.assertEqual(len(ended.err.splitlines()), 1, ended)
        self.assertNotIn(b"\033", ended.err)
        self.assertNotIn("\u202e", ended.err.decode())
        self.assertIn(b"and 3 more", ended.err)

    def test_why_lists_them(self):
        report = self.tmp / "report.json"
        self.sbx(*self.live, "--report", report, "--", "ln", "-s", "/etc", "a", json_record=False)
        said = sbxtest.subprocess.run([sbxtest.SBX, "why", report], capture_output=True, text=True, env=self.environment(), check=True).stdout
        self.assertIn("Left in live grants", said)
        self.assertIn("a symbolic link out of the granted directory", said)


MAKE_NAMES = """
import os, sys, time
for i in range(int(sys.argv[1])):
    os.close(os.open(f'{sys.argv[2]}/{i}', os.O_CREAT | os.O_WRONLY))
if sys.argv[3:]:
    time.sleep(100)
"""
CLOSE_AND_STAY = """
import os, time
os.mkdir('d'); os.mkdir('d/e'); os.chmod('d', 0o300)
time.sleep(100 if os.environ['STAY'] == '1' else 0)
"""


class Entries(SbxTest):
    """limits.disk_files in live grants."""

    def setUp(self):
        super().setUp()
        self.tmp.chmod(0o755)
        self.limit = ["--set", "limits.disk_files=1000"]
        self.live = ["--workspace", f"{self.work}:read-write", *self.limit]
        (self.work / "sub").mkdir()

    def make(self, count, *more, options=None, place="sub"):
        return self.python(MAKE_NAMES, str(count), place, *more, options=options or self.live)

    def test_too_many_new_names_end_the_run(self):
        for options in (self.live, ["--write", self.work, *self.limit]):
            ended = self.make(3000, "stay", options=options, place=self.work / "sub")
            self.assertEqual((ended.verdict, ended.status), (("over-budget", "disk"), 153), ended)
            [met] = ended.record["limits_met"]
            self.assertEqual((met["limit"], met["value"], met["evidence"]), ("disk_files", 1000, "sampled"))
            self.assertIn("limits.disk_files", ended.outcome["detail"])
            for path in (self.work / "sub").iterdir():
                path.unlink()

    def test_too_many_names_that_nobody_saw_being_made_are_told_of(self):
        met = self.make(1200).record["limits_met"]
        self.assertEqual([each["limit"] for each in met], ["disk_files"])

    def test_as_many_names_as_allowed_pass(self):
        for count in (900, 0):
            self.assertEqual(self.exited(self.make(count)).record["limits_met"], [])

    def test_names_that_were_there_do_not_count(self):
        for i in range(1500):
            (self.work / f"old{i}").touch()
        self.assertEqual(self.exited(self.make(900)).record["limits_met"], [])
        again = "import os\nfor i in range(1500): os.rename(f'old{i}', f'new{i}')"
        self.assertEqual(self.exited(self.python(again, options=self.live)).record["limits_met"], [])

    def test_a_grant_in_a_grant_is_counted_once(self):
        self.assertEqual(self.exited(self.make(900, options=[*self.live, "--write", self.work / "sub"])).record["limits_met"], [])

    def test_a_directory_that_is_closed_to_the_count_ends_the_run(self):
        stay = [*self.live, "--set", 'environment.set={STAY="1"}']
        soon = ["--timeout", "3s"] if sbxtest.IS_ROOT else []  # users who can list it
        ended = self.python(CLOSE_AND_STAY, options=[*stay, *soon])
        self.assertEqual(ended.verdict, ("over-budget", "wall_time" if sbxtest.IS_ROOT else "disk"), ended)
        if not sbxtest.IS_ROOT:
            self.assertIn("can't be listed any more", ended.outcome["detail"])
            self.assertIn("can't be listed", str(ended.record["hazards"]))
        (self.work / "sub/../d").chmod(0o700)

    def test_a_directory_that_was_closed_before_does_not_end_the_run(self):
        closed = self.work / "closed"
        closed.mkdir(mode=0o300)
        self.addCleanup(closed.chmod, 0o700)
        self.exited(self.python("import time; time.sleep(1)", options=self.live))


if __name__ == "__main__":
    sbxtest.main()

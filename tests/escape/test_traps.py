"""Invariant 9: what a program leaves in a live grant for the host to step on, and what it is refused."""

import os
import pathlib
import stat
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sandbox"))

import sbxtest
from sbxtest import SbxTest

# Each call of x86-64 that gives a file its mode, as a program makes it without the C library. `mode` is set by the caller.
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
WAYS = {
    "chmod": "call(90, b'f', mode)", "fchmod": "call(91, f, mode)", "fchmodat": "call(268, AT, b'f', mode)",
    "fchmodat2": "call(452, AT, b'f', mode, 0)", "open": "call(2, b'o', CREATE, mode)", "openat": "call(257, AT, b'p', CREATE, mode)",
    "openat (nameless)": "call(257, AT, b'.', NAMELESS, mode)", "creat": "call(85, b'c', mode)",
    "mknod": "call(133, b'n', 0o100000 | mode, 0)", "mknodat": "call(259, AT, b'm', 0o100000 | mode, 0)",
    "mkdir": "call(83, b'd', mode)", "mkdirat": "call(258, AT, b'e', mode)", "openat2": "call(437, AT, b'q', how(CREATE, mode), 24)",
}
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
        self.assertEqual({name for name, answer in got.items() if answer != "made"} - {"fchmodat2"}, set())

    def test_ordinary_modes_reach_a_live_grant(self):
        got = self.answers(0o1755, self.live)
        self.assertEqual({name for name, answer in got.items() if answer != "made"} - {"fchmodat2"}, {"openat2"})
        self.assertEqual((self.work / "o").stat().st_mode, stat.S_IFREG | 0o1755)

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


if __name__ == "__main__":
    sbxtest.main()

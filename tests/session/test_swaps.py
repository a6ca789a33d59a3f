"""Programs and other users that exchange names on the host as fast as they can while sbx reads, gets and applies. Each test
runs a few rounds here and a thousand in its slow form, and shows beside it that the same is done when nobody exchanges names."""

import os
import signal
import stat
import subprocess
import sys

import sessiontest
import sbxtest
from sessiontest import SessionTest

FEW = 5
MANY = 1000
NOBODY = 65534

EXCHANGE = r'''
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def exchange(one, other):
    return libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2) == 0
'''

# Closed directories, and links to a directory and a file of the host in their place. SIGSTOP does not stop it for long: a
# timer of its own sends SIGCONT.
INSIDE = EXCHANGE + r'''
import struct
timer = ctypes.c_void_p()
libc.timer_create(1, struct.pack("=QiI48x", 0, 18, 0), ctypes.byref(timer))
libc.timer_settime(timer, 0, struct.pack("=qqqq", 0, 200_000, 0, 200_000), None)
for name, victim in (("d", sys.argv[1]), ("k", sys.argv[2])):
    os.symlink(victim, name + ".link")
    os.mkdir(name)
    os.mkdir(name + "/inner")
    os.chmod(name, 0)
assert exchange("d", "d.link") and exchange("d", "d.link")
print("ready", flush=True)
while True:
    exchange("d", "d.link")
    exchange("k", "k.link")
'''

# Another user, in a directory of his: whatever is made there as `made` changes places with a directory of root.
OUTSIDE = EXCHANGE + r'''
os.chdir(sys.argv[1])
print("ready", flush=True)
while True:
    exchange("made", "victim")
'''

MAKE = "mkdir made; for i in 1 2 3 4 5 6 7 8; do echo text >made/$i; done; chmod 755 made"


class Swaps(SessionTest):
    def mode_of(self, path):
        return stat.S_IMODE(os.lstat(path).st_mode)

    def looks(self, rounds):
        """Of a sandbox's changes, while a call exchanges names; root is never refused a closed directory, so this is a user's."""
        ssh = self.home / ".ssh"
        ssh.mkdir(mode=0o500)
        os.chmod(ssh, 0o700)
        (ssh / "id_rsa").write_text("secret")
        os.chmod(ssh / "id_rsa", 0o600)
        os.chmod(ssh, 0o500)
        self.addCleanup(os.chmod, ssh, 0o700)
        self.start_session("--workspace", f"{self.work}:overlay")
        call = self.detach("--lang", "python", "-c", INSIDE, str(ssh), str(ssh / "id_rsa"))
        sessiontest.wait_until(lambda: "ready" in self.sbx_session("logs", "work", call).out, "the call exchanges names")
        for _ in range(rounds):
            self.assertIn(self.sbx_session("changes", "--json", "work").status, (0, 1))
            self.assertEqual((self.mode_of(ssh), self.mode_of(ssh / "id_rsa")), (0o500, 0o600))
        self.assertIn(self.sbx_session("apply", "--yes", "work").status, (0, 1, 125))
        self.assertEqual((self.mode_of(ssh), self.mode_of(ssh / "id_rsa"), (ssh / "id_rsa").read_text()), (0o500, 0o600, "secret"))

    def test_looking_at_changes_touches_nothing_of_the_host(self):
        self.looks(FEW)

    def test_slow_looking_at_changes_touches_nothing_of_the_host(self):
        self.looks(MANY)

    def test_looking_at_changes_changes_nothing_in_the_session(self):
        self.start_session("--workspace", f"{self.work}:overlay")
        self.exec_ok("--", "sh", "-c", "mkdir -p a/b c; echo text >a/b/file; echo text >c/file; chmod 0 a/b/file; chmod 077 a/b; chmod 0 a; chmod 400 c")
        for _ in range(2):
            changes = {each["path"]: each for each in self.sbx_session("changes", "--json", "work").json["changes"]}
            self.assertEqual(sorted(changes), ["a", "a/b", "a/b/file", "c", "c/file"])
            self.assertEqual(self.exec_ok("--", "stat", "-c", "%a", "a", "c").out.split(), ["0", "400"])
        self.exec_ok("--", "sh", "-c", "chmod 700 a; stat -c %a a/b >modes; chmod 700 a/b; stat -c %a a/b/file >>modes; chmod 600 a/b/file")
        self.assertEqual(self.exec_ok("--", "cat", "modes").out.split(), ["77", "0"])
        self.assertEqual(self.sbx_session("apply", "--yes", "work").status, 0)
        self.assertEqual((self.work / "a/b/file").read_text(), "text\n")

    def theirs(self):
        """A directory of another user with a directory of root in it, which nobody else can look into."""
        if os.geteuid() != 0:
            self.skipTest("only root has another user's directories to write to")
        os.chmod(self.tmp, 0o755)
        theirs = self.tmp / "theirs"
        (theirs / "victim").mkdir(parents=True)
        (theirs / "victim/kept").write_text("of root")
        os.chmod(theirs / "victim", 0o700)
        os.chown(theirs, NOBODY, NOBODY)
        return theirs

    def attack(self, theirs):
        attacker = sbxtest.start([sys.executable, "-c", OUTSIDE, theirs], user=NOBODY, group=NOBODY, extra_groups=[], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(attacker.stdout.close)
        self.addCleanup(attacker.wait)
        self.addCleanup(attacker.kill)
        self.assertEqual(attacker.stdout.readline(), b"ready\n")
        return attacker

    def unharmed(self, theirs, victim):
        """Looks at root's directory, whatever its name is now, and removes what was brought out."""
        facts = os.fstat(victim)
        self.assertEqual((facts.st_uid, stat.S_IMODE(facts.st_mode)), (0, 0o700))
        self.assertEqual(os.listdir(victim), ["kept"])

    def clean(self, theirs, victim):
        """Not beside the attacker: what is called victim is root's again."""
        for name in ("made", "victim"):
            try:
                directory = os.open(theirs / name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except FileNotFoundError:
                continue
            if os.fstat(directory).st_ino != os.fstat(victim).st_ino:
                for each in os.listdir(directory):
                    os.unlink(each, dir_fd=directory)
                os.rmdir(theirs / name)
            os.close(directory)
        if (theirs / "made").exists():
            os.rename(theirs / "made", theirs / "victim")

    def rounds(self, theirs, rounds, bring_out):
        victim = os.open(theirs / "victim", os.O_RDONLY)
        self.addCleanup(os.close, victim)
        attacker = self.attack(theirs)
        for _ in range(rounds):
            bring_out()
            attacker.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, attacker.pid, os.WSTOPPED)
            self.unharmed(theirs, victim)
            self.clean(theirs, victim)
            attacker.send_signal(signal.SIGCONT)
        attacker.kill()
        attacker.wait()
        self.clean(theirs, victim)
        bring_out()
        self.assertEqual((self.mode_of(theirs / "made"), len(os.listdir(theirs / "made"))), (0o755, 8), "nobody exchanges names now")
        self.unharmed(theirs, victim)

    def gets(self, rounds):
        theirs = self.theirs()
        self.start_session()
        self.exec_ok("--", "sh", "-c", MAKE)
        self.rounds(theirs, rounds, lambda: self.assertIn(self.sbx_session("get", "--out", theirs, "work", "made").status, (0, 1, 125)))

    def test_get_leaves_a_swapped_directory_alone(self):
        self.gets(FEW)

    def test_slow_get_leaves_a_swapped_directory_alone(self):
        self.gets(MANY)

    def applies(self, rounds):
        theirs = self.theirs()
        run = lambda: self.assertIn(self.run_sbx("run", "--workspace", f"{theirs}:overlay", "--apply", "--yes", "--", "sh", "-c", MAKE, cwd=theirs).status, (0, 1, 125))
        self.rounds(theirs, rounds, run)

    def test_apply_leaves_a_swapped_directory_alone(self):
        self.applies(FEW)

    def test_slow_apply_leaves_a_swapped_directory_alone(self):
        self.applies(MANY)

    def applies_of_a_session(self, rounds):
        theirs = self.theirs()

        def bring_out():
            self.start_session("--workspace", f"{theirs}:overlay", cwd=theirs)
            self.exec_ok("--", "sh", "-c", MAKE, cwd=theirs)
            self.assertIn(self.sbx_session("apply", "--yes", "work").status, (0, 1, 125))
            self.stop_session()

        self.rounds(theirs, rounds, bring_out)

    def test_apply_of_a_session_leaves_a_swapped_directory_alone(self):
        self.applies_of_a_session(2)

    def test_slow_apply_of_a_session_leaves_a_swapped_directory_alone(self):
        self.applies_of_a_session(MANY)

    def test_what_a_killed_put_left_goes_with_the_next_one(self):
        self.start_session()
        put = self.write("put", "text")
        self.exec_ok("--", "sh", "-c", "mkdir /tmp/t; echo left >/tmp/t/.sbx-0123456789abcdef; echo kept >/tmp/t/.sbx-0123")
        self.assertEqual(self.sbx_session("put", "work", put, "/tmp/t/").status, 0)
        self.assertEqual(self.exec_ok("--", "ls", "-A", "/tmp/t").out.split(), [".sbx-0123", "put"])


if __name__ == "__main__":
    sessiontest.main()

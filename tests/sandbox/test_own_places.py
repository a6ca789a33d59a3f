"""The name of the user inside, the home that comes with it, and further directories of the run's own."""

import os
import pathlib
import unittest

import sbxtest
from sbxtest import SbxTest

NAMED = ("--set", 'environment.user="user"')
HOME = (*NAMED, "--set", 'filesystem.workspace.source="/home/user"', "--set", 'filesystem.workspace.mode="empty"')
WHO = "import getpass, os, pwd, grp; print(getpass.getuser(), os.path.expanduser('~'), os.path.expanduser('~{0}'), pwd.getpwnam('{0}').pw_name, grp.getgrnam('{0}').gr_name, os.environ['LOGNAME'])"
OWN = '[filesystem]\nprivate = ["/data", "/srv/cache/deep"]\n'


class PlacesTest(SbxTest):
    def out(self, *words):
        return self.exited(self.sbx(*words)).text

    def refused(self, code, *words):
        ended = self.sbx(*words)
        self.assertEqual((ended.status, ended.outcome["status"], ended.outcome["code"]), (125, "setup-failed", code), ended)
        return ended.outcome["detail"]


class User(PlacesTest):
    def test_the_user_has_a_name_and_a_home(self):
        self.assertEqual(self.out(*NAMED, "--lang", "python", "-c", WHO.format("user")), "user /home/user /home/user user user user\n")
        self.assertEqual(self.out("--lang", "python", "-c", WHO.format("sandbox")), "sandbox /home/sandbox /home/sandbox sandbox sandbox sandbox\n")
        self.assertEqual(self.out(*NAMED, "--", "sh", "-c", "ls /home; echo x > ~/made; cat /home/user/made"), "user\nx\n")

    def test_names_that_are_none(self):
        for name in ("root", "nobody", "Upper", "a b", "../etc", "a/b", "a:0:0", "-x", "1a", "x" * 33, "ä", "a\\n"):
            with self.subTest(name=name):
                self.refused("bad-user", "--set", f'environment.user="{name}"', "--", "true")
        self.refused("empty-text", "--set", 'environment.user=""', "--", "true")

    def test_what_is_copied_to_the_home_follows(self):
        self.write("in", "of the host")
        self.assertEqual(self.out(*NAMED, "--in", "in:~/", "--", "cat", "/home/user/in"), "of the host")

    def test_a_grant_can_not_cover_the_home(self):
        self.tmp.chmod(0o755)
        for home, options in (("/home/user", NAMED), ("/home/sandbox", ())):
            self.assertIn(f"home of the sandbox, '{home}'", self.refused("forbidden-grant", *options, "--read", f"{self.work}:/home", "--", "true"))

    def test_an_empty_workspace_may_be_the_home(self):
        self.assertEqual(self.out(*HOME, "--", "sh", "-c", "pwd; echo 1 > made; cat ~/made; ls -A /home/user | wc -l"), "/home/user\n1\n1\n")
        self.out(*HOME, "--out", self.tmp / "out", "--set", 'filesystem.outputs.collect=["**"]', "--", "sh", "-c", "echo result > ~/made")
        self.assertEqual((self.tmp / "out/made").read_text(), "result\n")
        self.write("in", "copied")
        self.assertEqual(self.out(*HOME, "--in", "in", "--", "cat", "/home/user/in"), "copied")

    def test_what_is_seeded_is_there_too(self):
        self.write(".tool", "settings", directory=self.home)
        seed = ("--set", 'filesystem.seed=["~/.tool"]')
        for options in (NAMED, HOME):
            self.assertEqual(self.out(*options, *seed, "--", "cat", "/home/user/.tool"), "settings")

    def test_a_directory_of_that_name_on_the_host_is_not_shown(self):
        """Without the mode "empty" it is a directory of the host, which is missing."""
        self.refused("missing-workspace", "--set", 'environment.user="no-such-account"', "--set", 'filesystem.workspace.source="/home/no-such-account"', "--set",
                     'filesystem.workspace.mode="overlay"', "--", "true")


class Private(PlacesTest):
    def test_they_are_empty_writable_and_gone(self):
        program = "ls -A /data; ls -A /srv/cache/deep; echo x > /data/file && mkdir /srv/cache/deep/made && cat /data/file; stat -c %a /data; ls /srv/cache"
        for _ in range(2):
            self.assertEqual(self.out("--policy", self.policy(OWN), "--", "sh", "-c", program), "x\n755\ndeep\n")
        self.assertFalse(pathlib.Path("/data/file").exists())

    def test_without_the_key_nothing_can_be_written_there(self):
        """The twin."""
        self.exited(self.sbx("--", "sh", "-c", "mkdir /data"), 1)

    def test_the_disk_budget_holds_there(self):
        ended = self.sbx("--policy", self.policy(OWN), "--disk", "2M", "--", "sh", "-c", "head -c 8M /dev/zero > /data/big; stat -c %s /data/big")
        self.assertLessEqual(int(ended.text.split()[-1]), 2 << 20, ended)

    def test_nothing_of_the_system_can_be_covered(self):
        for path in ("/", "/etc", "/etc/passwd", "/etc/x/..", "/etc/ssl/certs", "/usr", "/usr/lib", "/bin", "/proc/x", "/dev", "/sys", "/home", "/home/sandbox", "/tmp", "/var", "/run", self.work, f"{self.work}/below"):
            with self.subTest(path=path):
                self.refused("forbidden-grant", "--policy", self.policy(f'[filesystem]\nprivate = ["{path}"]\n'), "--workspace", f"{self.work}:overlay", "--", "true")
        self.assertEqual(os.listdir(self.work), [])
        for path in ("data", "~/data", "./data"):
            self.refused("bad-path", "--policy", self.policy(f'[filesystem]\nprivate = ["{path}"]\n'), "--", "true")

    def test_a_grant_of_the_same_place_wins(self):
        self.tmp.chmod(0o755)
        file = self.write("data/file", "of the host", directory=self.tmp)
        policy = self.policy(f'[filesystem]\nprivate = ["/data"]\nread = [{{ source = "{file.parent}", target = "/data" }}]\n')
        ended = self.exited(self.sbx("--policy", policy, "--", "sh", "-c", "cat /data/file; echo x > /data/file"), 2)
        self.assertEqual((ended.text, file.read_text()), ("of the host", "of the host"))

    def test_a_locked_policy_gets_no_further_ones(self):
        policy = self.policy("locked = true\n" + OWN)
        self.refused("widens-locked", "--policy", policy, "--set", 'filesystem.private=["/more"]', "--", "true")
        self.assertEqual(self.out("--policy", policy, "--set", "filesystem.private={ replace = [] }", "--", "sh", "-c", "[ -e /data ] || echo none"), "none\n")

    @unittest.skipUnless(os.geteuid() == 0, "the tier is for root")
    def test_without_namespaces_they_are_refused(self):
        ended = self.sbx("--policy", self.policy(OWN), "--isolation", "landlock", "--", "true")
        self.assertIn(ended.outcome["code"], ("needs-namespaces", "no-landlock-tier"), ended)


class BuiltIn(PlacesTest):
    def test_the_built_in_policy_is_laid_out_as_programs_expect(self):
        self.write("secret", "of the caller")
        program = "pwd; whoami 2>/dev/null; echo ~; ls -A; echo 1 > /data/file; cat /data/file; echo 2 > made; ls /home"
        self.assertEqual(self.out("--policy", "e2b", "--", "sh", "-c", program).replace("user\n/home/user\n1", "/home/user\n1"), "/home/user\n/home/user\n1\nuser\n")
        self.exited(self.sbx("--policy", "e2b", "--lang", "python", "-c", "import socket; socket.create_connection(('192.0.2.1', 443), 1)"), 1)
        self.assertEqual(self.out("--policy", "e2b", "--workspace", f"{self.work}:overlay", "--", "cat", "secret"), "of the caller")


if __name__ == "__main__":
    sbxtest.main()

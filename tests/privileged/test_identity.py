"""Root's runs: a uid of their own on the host, and granted files that behave as for their owner."""

import fcntl
import json
import os
import pathlib
import resource
import subprocess
import sys

import sbxtest
from sbxtest import PROBE, SbxTest

CHECKOUT_UID = 1001


def status_of(pid):
    return dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)


class Identity(SbxTest):
    def running(self):
        process = self.start_sbx(PROBE, "polite", 0, json_record=False)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def end(self, process):
        process.terminate()
        self.finish(process, json_record=False)

    def test_sandboxes_have_different_uids_that_are_locked(self):
        first, second = self.running(), self.running()
        bases = []
        for process in (first, second):
            facts = status_of(sbxtest.init_of(process))
            self.assertEqual(len(set(facts["Uid"].split())), 1)
            self.assertEqual(facts["Groups"].strip(), "")
            uid = int(facts["Uid"].split()[0])
            self.assertEqual(uid % 65536, 1000)
            bases.append(uid - 1000)
        self.assertEqual([self.is_locked(base) for base in bases], [True, True])
        self.assertNotEqual(*bases)
        self.end(first)
        self.end(second)
        self.assertEqual([self.is_locked(base) for base in bases], [False, False])

    def is_locked(self, base):
        """The lock of one byte of a file that only root can open; nothing that another user may bind or hold."""
        directory = os.stat("/run/sbx")
        self.assertEqual((directory.st_uid, directory.st_mode & 0o777), (0, 0o700))
        with open("/run/sbx/uids", "r+b") as locks:
            try:
                fcntl.lockf(locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, base // 65536)
            except OSError:
                return True
            return False

    def test_a_place_of_others_for_the_locks_is_refused(self):
        """Others may enter /run/sbx, and the state home is somebody else's. The twin is every other run."""
        script = ("mount -t tmpfs -o mode=755 sbx-test /run && mkdir -m 777 /run/sbx && mkdir -p $HOME/.local/state/sbx && "
                  'chown 65534 $HOME/.local/state/sbx && exec "$@"')
        ended = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", sbxtest.SBX, "run", "--", "true"],
                               env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 125, ended)
        self.assertIn("no-uid-locks", ended.stderr)
        for place in ("/run/sbx", f"{self.home}/.local/state/sbx"):
            self.assertIn(f"'{place}' is open to other users", ended.stderr)

    def test_a_place_for_the_locks_that_cannot_be_made_is_named_with_the_reason(self):
        """Twin: one of the two is enough."""
        script = "mount -t tmpfs -o ro sbx-test /run && mkdir -p $HOME/.local/state && {} exec \"$@\""
        for also, status in (("mount -t tmpfs -o ro sbx-test $HOME/.local/state &&", 125), ("", 0)):
            ended = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script.format(also), "sh", sbxtest.SBX, "run", "--", "true"],
                                   env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True)
            self.assertEqual(ended.returncode, status, ended)
            self.assertEqual("'/run/sbx': Read-only file system" in ended.stderr, status == 125, ended)

    def test_abstract_names_of_others_keep_no_uid_from_root(self):
        """Any user may bind all of them; some processes have enough descriptors."""
        bind = ("import resource, socket, sys\n"
                "resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)\n"
                "kept = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(4000)]\n"
                "for block, each in enumerate(kept, int(sys.argv[1])):\n"
                "    try:\n"
                "        each.bind(f'\\0sbx-uid-{block * 65536}')\n"
                "    except OSError:  # somebody else has it: as good\n"
                "        pass\n"
                "print('bound', flush=True)\n"
                "sys.stdin.read()\n")
        if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 4100:
            self.skipTest("the hard limit of open files is too low")
        holders = [sbxtest.start([sys.executable, "-c", bind, str(first)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                   for first in range(16, 32016, 4000)]
        for each in holders:
            sbxtest.known_children().add(each.pid)
            self.addCleanup(each.stdout.close)
            self.addCleanup(each.wait)
            self.addCleanup(each.stdin.close)
            self.assertEqual(each.stdout.readline(), b"bound\n")
        self.exited(self.sbx("--", "true"))

    def test_a_home_of_another_user_is_not_taken_for_roots(self):
        """As sudo -E leaves HOME: root's files are not made there, and what its owner wrote there decides nothing."""
        theirs = self.tmp / "theirs"
        passwd = self.write("passwd", f"root:x:0:0:root:{self.home}:/bin/sh\nnobody:x:65534:65534:nobody:{theirs}:/bin/sh\n", directory=self.tmp)
        for home, policy in ((theirs, "strict"), (self.home, "shell")):
            (home / ".config/sbx").mkdir(parents=True)
            (home / ".config/sbx/config.toml").write_text(f'policy = "{policy}"\n')
        for each in (theirs, *theirs.rglob("*")):
            os.chown(each, 65534, 65534)
        before = sorted((str(each), each.stat().st_mtime_ns) for each in theirs.rglob("*"))

        def sbx(*words):
            ended = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount --bind "$0" /etc/passwd && exec "$@"', str(passwd), sbxtest.SBX, *words],
                                   env=self.environment({"HOME": str(theirs), "SUDO_USER": "nobody", "SUDO_UID": "65534"}), cwd=self.work,
                                   stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            self.assertEqual(ended.returncode, 0, ended)
            return ended.stdout
        record = json.loads(sbx("run", "--json", "--keep", "set", "--", "sh", "-c", "echo made >made"))
        self.assertEqual(record["policy"]["name"], "shell", "of root's own configuration")
        self.assertTrue((self.home / ".local/state/sbx/changes/set").is_dir())
        sbx("changes", "apply", "--yes", "set")
        self.assertEqual((self.work / "made").read_text(), "made\n")
        sbx("session", "start", "sudo-test")
        try:
            self.assertEqual(sbx("session", "exec", "sudo-test", "--", "cat", "made"), "made\n")
        finally:
            sbx("session", "stop", "sudo-test")
        self.assertEqual(sorted((str(each), each.stat().st_mtime_ns) for each in theirs.rglob("*")), before)

    def test_no_group_of_the_caller_is_kept(self):
        ended = self.python("import os; print(os.getgroups(), os.getgid())")
        self.assertIn(ended.text, ("[] 1000\n", "[1000] 1000\n"))

    def test_limit_of_processes_holds_for_root_too(self):
        ended = self.sbx("--processes", "20", PROBE, "fork-bomb")
        self.assertIn("refused EAGAIN", ended.text)

    def test_sbx_takes_nothing_of_the_limit(self):
        """Without namespaces a control group holds two processes of sbx, not one."""
        forks = "import os, signal\nn = 1\ntry:\n    while os.fork(): n += 1\n    signal.pause()\nexcept OSError: print(n)"
        for options in ((), ("--isolation", "landlock")):
            with self.subTest(options):
                self.assertEqual(self.python(forks, options=[*options, "--processes", "20"]).text, "20\n")
                self.exited(self.sbx(*options, "--processes", "1", "--", "true"))

    def test_root_of_a_user_namespace_is_an_ordinary_caller(self):
        process = sbxtest.start(["unshare", "--user", "--map-root-user", *self.command("--", "id", "-u")], env=self.environment(),
                                cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        ended = self.exited(self.finish(process))
        self.assertEqual(ended.text, "1000\n")

    def test_root_with_few_capabilities_is_an_ordinary_caller(self):
        """As in a container: no CAP_SYS_ADMIN. The kernel requires CAP_SETFCAP to map uid 0 (since 5.12)."""
        process = sbxtest.start(["setpriv", "--bounding-set=-all,+setfcap", "--inh-caps=-all", *self.command("--", "id", "-u")],
                                env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        ended = self.exited(self.finish(process))
        self.assertEqual(ended.text, "1000\n")


class Checkout(SbxTest):
    """Another user's directory, as for a CI job that runs as root."""

    def setUp(self):
        super().setUp()
        self.write("own.txt", "own")
        self.write("foreign.txt", "foreign")
        os.chown(self.work, CHECKOUT_UID, CHECKOUT_UID)
        os.chown(self.work / "own.txt", CHECKOUT_UID, CHECKOUT_UID)
        os.chown(self.work / "foreign.txt", 33, 33)
        self.work.chmod(0o700)

    def shell(self, mode, script):
        return self.exited(self.sbx("--workspace", f"{self.work}:{mode}", "--", "sh", "-ec", script))

    def test_owner_is_the_sandboxs_user_inside(self):
        for mode in ("overlay", "read-only", "read-write"):
            ended = self.shell(mode, "stat -c '%u %g %a' . own.txt; stat -c %u foreign.txt")
            self.assertEqual(ended.text.splitlines()[:2], ["1000 1000 700", "1000 1000 644"], f"{mode}: {ended}")
            self.assertEqual(ended.text.splitlines()[2], "33", f"{mode}: {ended}")

    def test_new_files_belong_to_the_directories_owner(self):
        self.shell("read-write", "echo x > new; mkdir directory; echo more >> own.txt")
        for name in ("new", "directory", "own.txt"):
            facts = (self.work / name).stat()
            self.assertEqual((facts.st_uid, facts.st_gid), (CHECKOUT_UID, CHECKOUT_UID), name)

    def test_files_of_others_can_be_moved_and_copied_up(self):
        self.shell("overlay", "mv foreign.txt moved; cat moved; rm moved; chmod 600 own.txt; echo more >> own.txt")
        self.assertEqual(((self.work / "foreign.txt").read_text(), (self.work / "own.txt").read_text()), ("foreign", "own"))

    def test_files_of_others_cannot_be_written(self):
        ended = self.sbx("--workspace", f"{self.work}:read-write", PROBE, "write", self.work / "foreign.txt")
        self.assertIn("refused", ended.text)
        self.assertEqual((self.work / "foreign.txt").read_text(), "foreign")


if __name__ == "__main__":
    sbxtest.main()

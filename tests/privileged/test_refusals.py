"""Codes that only root's runs can reach: the parent itself opens and maps the grants. strace gives the kernel's
answer."""

import os

import sbxtest
from codetest import OVERLAY, Codes


class OfRoot(Codes):
    def setUp(self):
        super().setUp()
        self.granted = self.write("granted/file", "x", directory=self.tmp).parent

    def meets_granted(self, code, call, answer, *options):
        self.meets(code, call, answer, "--read", self.granted, "true", options=options)

    def test_a_grant_that_is_gone_or_another_one(self):
        """The third look-up is the one that counts: the earlier ones belong to the plan."""
        self.meets_granted("cannot-open-source", "openat2", "error=ENOENT:when=3", "-P", str(self.granted))
        self.meets_granted("changed-during-set-up", "newfstatat", "retval=0:when=2+2", "-P", str(self.granted))

    def test_a_grant_that_was_replaced_once_is_planned_with_anew(self):
        done = self.call("run", "--read", self.granted, "cat", self.granted / "file", wrapper=self.injected("newfstatat", "retval=0:when=2", "-P", str(self.granted)))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "x", ""))

    def looks_at_the_grant(self, words, *answer):
        """How often the process that mounts the grant has looked at it when it does so."""
        log = self.tmp / "calls"
        strace = self.injected("newfstatat", "")[0]
        done = self.call(*words, wrapper=[strace, "-f", "-qq", "-o", log, "-e", "trace=newfstatat,open_tree", *answer, "-P", self.granted])
        self.assertEqual((done.returncode, done.stdout), (0, "x\n"), done.stderr)
        calls = [line.split(maxsplit=1) for line in log.read_text().splitlines()]
        opener = next(process for process, call in calls if call.startswith("open_tree("))
        own = [call for process, call in calls if process == opener]
        mounted = next(number for number, call in enumerate(own) if call.startswith("open_tree("))
        return sum(call.startswith("newfstatat(") for call in own[:mounted])

    def test_a_session_is_planned_anew_too(self):
        """A notebook is the client of a session of its own, which ends with it. Nothing looks at a live grant again before a cell."""
        words = ("run", "--write", self.granted, "--cells", self.write("cells.py", f"print(open('{self.granted}/file').read())\n"))
        once = self.looks_at_the_grant(words)
        twice = self.looks_at_the_grant(words, "-e", f"inject=newfstatat:retval=0:when={once}")
        self.assertGreater(twice, once)
        self.says("changed-during-set-up", *words, wrapper=self.injected("newfstatat", f"retval=0:when={once}+{twice - once}", "-P", str(self.granted)))

    def test_a_grant_that_can_not_be_mounted_or_mapped(self):
        self.meets_granted("cannot-bind", "open_tree", "error=EINVAL:when=1", "-P", str(self.granted))
        self.meets_granted("cannot-idmap", "mount_setattr", "error=EPERM:when=2")

    def test_uids_that_are_all_taken(self):
        """Each base is represented by a byte of a file, and somebody has locked all of them: of a /run of the test's own."""
        script = ("import fcntl, os, subprocess, sys; os.mkdir('/run/sbx', 0o700); locks = open('/run/sbx/uids', 'w+b'); "
                  "fcntl.lockf(locks, fcntl.LOCK_EX) if sys.argv[1] == 'taken' else None; sys.exit(subprocess.call(sys.argv[2:]))")
        for state in ("taken", "free"):
            wrapper = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount -t tmpfs sbx-test /run && exec "$@"', "sh",
                       "/usr/bin/python3", "-c", script, state]
            if state == "taken":
                self.refuses("no-free-uid", "true", wrapper=wrapper)
            else:
                self.assertEqual(self.call("run", "true", wrapper=wrapper).returncode, 0)

    def test_a_copy_that_fails(self):
        text = "text" * 20_000  # more than one read or write transfers
        os.chown(self.write("file", text), -1, 70_000)
        self.meets("cannot-copy", "copy_file_range", "error=EIO", *OVERLAY, "true")
        self.meets("workspace-too-large", "copy_file_range", "error=ENOSPC", *OVERLAY, "true")
        self.assertEqual(self.call("run", *OVERLAY, "cat", "file").stdout, text)


if __name__ == "__main__":
    sbxtest.main()

"""Machines that refuse what a sandbox needs: each answer is exit status 125 with a code and the fix, and nothing is
left.

Runs as root in a guest, whose settings it changes; sbx itself runs as uid 1000 and, where it matters, as root. Every
refusal has its twin: the same command where nothing is refused."""

import json
import pathlib
import subprocess

import sbxtest
from harness import HANG
from refused_calls import ENOSYS, EPERM, refuse_calls
from sbxtest import SBX, SbxTest

AS_TESTER = ("setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "env", "HOME=/home/tester")
AS_ROOT = ("env", "HOME=/root")


def docker():
    """The answers of Docker's default profile to a process without CAP_SYS_ADMIN: clone3 fails with ENOSYS, so that
    libc tries clone."""
    refused = ("unshare", "setns", "mount", "umount2", "pivot_root", "fsopen", "fsconfig", "fsmount", "open_tree", "move_mount", "mount_setattr")
    refuse_calls({"clone3": ENOSYS, **{name: EPERM for name in refused}}, namespaces_by_clone=EPERM)


def ubuntu():
    """Simulates AppArmor's restriction: namespaces can be created, but no capability is effective in them."""
    refuse_calls({name: EPERM for name in ("mount", "umount2", "pivot_root", "fsopen", "open_tree", "move_mount", "mount_setattr",
                                            "sethostname", "setdomainname")})


class Refusals(SbxTest):
    def ask(self, *before, words=("run", "--json", "--", "true"), command=AS_TESTER, preexec_fn=None):
        """Runs `true`, or other words, under sbx; returns the status, the messages and the JSON."""
        process = sbxtest.start([*before, *command, SBX, *words], cwd="/tmp", preexec_fn=preexec_fn,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"PATH": "/usr/bin:/usr/sbin"})
        out, err = process.communicate(timeout=HANG)
        self.assertEqual(sbxtest.orphans_after(sbxtest.GONE_WITHIN_SECONDS), [])
        try:
            record = json.loads(out)
        except ValueError:
            record = None
        return process.returncode, err.decode(), record

    def refused(self, code, *cure, **how):
        status, said, record = self.ask(**how)
        self.assertEqual(status, 125, said)
        for words in cure:
            self.assertIn(words, said)
        self.assertIsNotNone(record, said)
        self.assertEqual((record["outcome"]["status"], record["outcome"]["success"]), ("setup-failed", False))
        self.assertEqual(record["outcome"]["code"], code)
        predicted = self.predicted(**how)
        self.assertEqual((predicted["state"], predicted["code"], predicted.get("cure")), ("missing", code, (record["outcome"].get("hint") or "").split("\n")[0] or None), said)
        return said

    def predicted(self, *before, **how):
        """doctor's prediction for the same policy on the same machine."""
        _, said, answer = self.ask(*before, words=("doctor", "--json", "-p", "default"), **how)
        self.assertIsNotNone(answer, said)
        policy, = answer["policies"]
        return policy

    def works(self, *before, **how):
        # Long enough to reach every part of a run: a shorter one may not report that CPU time is summed.
        status, said, record = self.ask(*before, words=("run", "--json", "--", "sleep", "0.2"), **how)
        self.assertEqual((status, record and record["outcome"]["status"]), (0, "exited"), said)
        policy = self.predicted(*before, **how)
        self.assertIn(policy["state"], ("ok", "weaker"), policy)
        self.assertEqual(sorted(policy.get("degraded", [])), sorted({entry["what"] for entry in record["degraded"]}), policy)

    def setting(self, name, value):
        path = pathlib.Path("/proc/sys") / name.replace(".", "/")
        before = path.read_text()
        self.addCleanup(path.write_text, before)
        path.write_text(value)

    def test_nothing_is_refused(self):
        for command in (AS_TESTER, AS_ROOT):
            self.works(command=command)

    def test_unprivileged_namespaces_switched_off(self):
        self.setting("kernel.unprivileged_userns_clone", "0")
        self.refused("no-user-namespace", "sysctl kernel.unprivileged_userns_clone=1")
        self.works(command=AS_ROOT)

    def test_no_user_namespaces_left(self):
        self.setting("user.max_user_namespaces", "0")
        for command in (AS_TESTER, AS_ROOT):
            self.refused("no-user-namespace", "sysctl user.max_user_namespaces=", command=command)

    def test_a_chroot(self):
        root = self.tmp / "root"
        root.mkdir()
        subprocess.run(["mount", "--rbind", "/", root], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", root], check=True)
        # A directory below the mount, like most chroots, with what sbx itself needs.
        subprocess.run(["mkdir", "-p", root / "tmp/jail"], check=True)
        for name in ("usr", "t", "dev", "proc", "tmp"):
            subprocess.run(["mkdir", "-p", root / "tmp/jail" / name], check=True)
            if name != "tmp":
                subprocess.run(["mount", "--rbind", f"/{name}", root / "tmp/jail" / name], check=True)
        for name in ("lib", "lib64", "bin"):
            (root / "tmp/jail" / name).symlink_to(f"usr/{name}")
        for command in (AS_TESTER, AS_ROOT):
            self.refused("no-user-namespace", "chroot", command=("chroot", str(root / "tmp/jail"), *command))

    def test_dockers_profile(self):
        for command in (AS_TESTER, AS_ROOT):
            self.refused("no-user-namespace", "--security-opt seccomp=unconfined", command=command, preexec_fn=docker)

    def test_a_masked_proc(self):
        masked = ("unshare", "--mount", "sh", "-c", 'mount --bind /dev/null /proc/kallsyms && exec "$@"', "sh")
        shown = ("run", "--json", "--set", "filesystem.landlock=false", "--", "true")
        for command in (AS_TESTER, AS_ROOT):
            status, said, record = self.ask(words=shown, command=(*masked, *command))
            self.assertEqual((status, record["outcome"]["code"]), (125, "setup-proc"), said)
            self.assertIn("--security-opt systempaths=unconfined", said)
            self.assertEqual(self.ask(words=shown, command=command)[0], 0)
            # Behind Landlock a few files of it can be shown.
            status, said, record = self.ask(command=(*masked, *command))
            self.assertEqual(status, 0, said)
            self.assertIn("proc", [each["what"] for each in record["degraded"]])
            self.works("unshare", "--mount", command=command)

    def test_apparmors_way_imitated(self):
        self.refused("no-rights-in-namespace", "AppArmor", preexec_fn=ubuntu)


if __name__ == "__main__":
    sbxtest.main()

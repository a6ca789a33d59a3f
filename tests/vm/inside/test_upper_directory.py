"""Kernels before 6.6, whose tmpfs can't be an overlay's upper layer: it is in the state home instead."""

import json
import os
import signal
import subprocess

import sbxtest
from sbxtest import SbxTest

REPLACE = "import os, shutil\nshutil.rmtree('a'); os.mkdir('a'); open('a/new', 'w').write('x')\nos.remove('b')"
OLD = tuple(map(int, os.uname().release.split(".")[:2])) < (6, 6)


class UpperDirectory(SbxTest):
    def setUp(self):
        super().setUp()
        self.write("a/old", "1")
        self.write("b", "2")
        self.state = self.home / ".local/state/sbx"

    def overlay(self, *options, **rest):
        return self.sbx("--workspace", f"{self.work}:overlay", *options, "--lang", "python", "-c", REPLACE, **rest)

    def directories(self):
        return sorted(path.name for path in (self.state / "disks").glob("*") if not path.name.endswith(".lock"))

    def test_changes_are_seen_and_the_directory_goes(self):
        ended = self.exited(self.overlay("--diff"))
        changes = {change["path"]: change["change"] for change in ended.record["changes"]}
        self.assertEqual((changes.get("a/new"), changes.get("b")), ("created", "deleted"), ended)
        self.assertEqual(sorted(os.listdir(self.work)), ["a", "b"])
        self.assertEqual(self.directories(), [])
        told = [entry for entry in ended.record["degraded"] if entry["what"] == "limits.disk" and "state home" in entry["why"]]
        self.assertEqual(len(told), 1 if OLD else 0, ended)

    def test_changes_are_applied(self):
        self.exited(self.overlay("--apply", "--yes"))
        self.assertEqual((sorted(os.listdir(self.work)), os.listdir(self.work / "a")), (["a"], ["new"]))
        self.assertEqual(self.directories(), [])

    def test_directory_of_a_killed_run_goes_with_the_next(self):
        process = self.start_sbx("--workspace", f"{self.work}:overlay", "--", "sh", "-c", "rm -r a; echo ready; exec sleep 100", json_record=False)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.assertEqual(len(self.directories()), 1 if OLD else 0)
        self.exited(self.overlay())
        self.assertEqual(len(self.directories()), 1 if OLD else 0, "that of the run that lives stays")
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.assertEqual(sbxtest.orphans_after(1.0), [])
        self.exited(self.overlay())
        self.assertEqual(self.directories(), [])

    def test_no_home_is_an_error_with_the_cure(self):
        process = subprocess.run([sbxtest.SBX, "run", "--json", "--workspace", f"{self.work}:overlay", "--", "true"], capture_output=True,
                                 check=False, cwd=self.work, env={"PATH": "/usr/bin", "HOME": "/proc/nowhere"})
        record = json.loads(process.stdout)
        # Then the home directory of /etc/passwd applies; root's is writable, nobody's is not.
        expected = {"setup-failed", "exited"} if OLD else {"exited"}
        self.assertIn(record["outcome"]["status"], expected)
        if record["outcome"]["status"] == "setup-failed":
            self.assertEqual(process.returncode, 125)
            self.assertIn(b"set HOME", process.stderr)


if __name__ == "__main__":
    sbxtest.main()

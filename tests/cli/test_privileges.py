"""Tests that need root: sbx with more privileges than its caller."""

import shutil
import subprocess

import sbxtest
from sbxtest import SBX, SbxTest


class Privileges(SbxTest):
    def test_a_set_user_id_binary_is_refused(self):
        copy = self.tmp / "sbx-setuid"
        shutil.copy(SBX, copy)
        command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", str(copy), "--version"]
        self.tmp.chmod(0o755)
        copy.chmod(0o755)
        self.assertEqual(subprocess.run(command, capture_output=True, timeout=120).returncode, 0)
        copy.chmod(0o4755)
        done = subprocess.run(command, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"raised privileges", done.stderr)


if __name__ == "__main__":
    sbxtest.main()

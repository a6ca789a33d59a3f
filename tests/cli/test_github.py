"""Inside a GitHub workflow: the fence, the action and the hooks."""

import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.environ["SBX_SOURCE"], "tests", "sandbox"))
import sbxtest
from sbxtest import SBX, SOURCE, SbxTest

try:
    import yaml
except ImportError:
    yaml = None

FENCE = re.compile(r"\A::stop-commands::([0-9a-f]{32})\n(.*)\n::\1::\n(.*)\Z", re.DOTALL)


class Github(SbxTest):
    def fenced(self, *arguments, status=0):
        """(token, what stands within the fence, what stands after it); both streams as the runner reads them."""
        ended = self.sbx("--github", *arguments, json_record=False)
        self.assertEqual(ended.status, status, ended)
        self.assertEqual(ended.err, b"", "the runner reads stderr apart: nothing may stand there")
        match = FENCE.match(ended.out.decode())
        self.assertIsNotNone(match, ended.out)
        return match.groups()

    def test_nothing_that_a_program_prints_is_a_command(self):
        forged = "::error::forged\\n##[error]forged\\n::stop-commands::x\\n::x::"
        token, inside, after = self.fenced("--", "sh", "-c", f"printf '{forged}'; printf '{forged}' >&2; exit 3", status=3)
        self.assertEqual(inside.count("forged"), 4)
        self.assertNotIn("forged", after)
        self.assertTrue(after.startswith("::error title=sbx::"), after)
        self.assertNotIn(token, inside)
        self.assertNotEqual(self.fenced("true")[0], token)
        self.assertEqual(self.fenced("true")[2], "")

    def test_names_that_a_program_chose_stay_within(self):
        code = "import ctypes; libc = ctypes.CDLL(None); libc.prctl(15, b'##[error]x'); libc.ptrace(0, 0, 0, 0)"
        _, inside, after = self.fenced("--lang", "python", "-c", code)
        self.assertIn("##[error]x", inside)
        self.assertEqual(after, "")

    def test_mistakes_are_annotations_of_one_line(self):
        _, inside, after = self.fenced("-p", "nosuchpolicy", "true", status=125)
        self.assertIn("unknown-policy", inside)
        self.assertRegex(after, r"\A::error title=sbx::[^\n]+\n\Z")
        ended = self.sbx("--github", "true")
        self.assertEqual((ended.status, ended.verdict), (125, ("setup-failed", "usage")), str(ended))

    def test_the_steps_of_the_action(self):
        output = self.write("output", "")
        environment = self.environment({"GITHUB_OUTPUT": str(output), "RUNNER_TEMP": str(self.tmp), "SBX_PROGRAM": SBX, "SBX_POLICY": "strict",
                                        "SBX_OPTIONS": "--timeout 10s", "SBX_RUN": "echo '::warning::x'; exit 4", "SBX_SHELL": "sh"})
        done = subprocess.run([SOURCE / "share/github/program"], env=environment, cwd=self.work, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"program={SBX}\n", output.read_text())
        done = subprocess.run([SOURCE / "share/github/run"], env=environment, cwd=self.work, capture_output=True, text=True)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("::warning::x", FENCE.match(done.stdout).group(2))
        record = re.search(r"^record=(.*)$", output.read_text(), re.MULTILINE).group(1)
        self.assertTrue(os.path.getsize(record) > 0)
        other = shutil.which("true")
        done = subprocess.run([SOURCE / "share/github/program"], env={**environment, "SBX_PROGRAM": "/bin/false"}, cwd=self.work,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, other)
        self.assertIn("is not this sbx", done.stdout)

    @unittest.skipIf(yaml is None, "python3-yaml is not installed")
    def test_definitions_name_what_there_is(self):
        action = yaml.safe_load((SOURCE / "action.yml").read_text())
        self.assertEqual(action["runs"]["using"], "composite")
        for step in action["runs"]["steps"]:
            # An input within a script is text that a stranger may have written.
            self.assertNotIn("${{", step["run"])
            path = re.search(r"GITHUB_ACTION_PATH/([^\"]+)", step["run"]).group(1)
            self.assertTrue(os.access(SOURCE / path, os.X_OK), path)
            for value in step["env"].values():
                name = re.search(r"(inputs|outputs)\.(\w+)", value).group(2)
                self.assertTrue(name in action["inputs"] or name == "program", value)
        for hook in yaml.safe_load((SOURCE / ".pre-commit-hooks.yaml").read_text()):
            command = hook["entry"].split()
            done = subprocess.run([SBX, *command[1:], "--help"], capture_output=True)
            self.assertEqual((command[0], done.returncode), ("sbx", 0), hook["id"])


if __name__ == "__main__":
    sbxtest.main()

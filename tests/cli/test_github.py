"""Inside a GitHub workflow: the fence, the action and the hooks."""

import json
import os
import pathlib
import re
import signal
import subprocess
import unittest

import sbxtest
from sbxtest import SBX, SOURCE, SbxTest

try:
    import yaml
except ImportError:
    yaml = None

FENCE = re.compile(r"\A::stop-commands::([0-9a-f]{32})\n(.*)\n::\1::\n(.*)\Z", re.DOTALL)


class Github(SbxTest):
    def fenced(self, *arguments, status=0):
        """(token, text within the fence, text after it); both streams as the runner reads them."""
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

    def step(self, script, **inputs):
        """(exit status, stdout, outputs, summary) of one step of the action."""
        files = {name: self.write(name, "") for name in ("output", "summary")}
        environment = self.environment({"GITHUB_OUTPUT": str(files["output"]), "GITHUB_STEP_SUMMARY": str(files["summary"]),
                                        "RUNNER_TEMP": str(self.tmp), "SBX_PROGRAM": SBX, "SBX_POLICY_NAME": "strict", **inputs})
        done = subprocess.run([SOURCE / "share/github" / script], env=environment, cwd=self.work, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.stderr, "")
        outputs = dict(line.split("=", 1) for line in files["output"].read_text().splitlines())
        return done.returncode, done.stdout, outputs, files["summary"].read_text()

    def test_steps_of_the_action(self):
        self.assertEqual(self.step("program")[2], {"program": os.path.realpath(SBX)})
        status, out, outputs, summary = self.step("run", SBX_OPTIONS="--timeout\n10s", SBX_RUN="echo '::warning::x'; exit 4", SBX_SHELL="sh")
        self.assertEqual(status, 4, out)
        self.assertIn("::warning::x", FENCE.match(out).group(2))
        self.assertEqual((outputs["status"], outputs["exit-code"]), ("exited", "4"))
        self.assertEqual(json.loads(pathlib.Path(outputs["record"]).read_text())["outcome"]["exit_code"], 4)
        self.assertTrue(summary.startswith("### sbx: exited, exit status 4\n\n    r_"), summary)

    def test_action_wants_this_sbx(self):
        for other in ("/bin/false", "/nonexistent/sbx"):
            status, out, outputs, _ = self.step("program", SBX_PROGRAM=other)
            self.assertEqual((status, outputs), (1, {}), other)
            self.assertIn("does not name this sbx", out)

    def test_action_finds_what_an_earlier_step_built(self):
        """Another vendor's program called sbx is not used."""
        (self.tmp / "sbx-build").mkdir()
        (self.tmp / "sbx-build/sbx").symlink_to(os.path.abspath(SBX))
        self.write("bin/sbx", "#!/bin/sh\nexit 1\n", mode=0o755)
        path = f"{self.work}/bin:/usr/bin:/bin"
        self.assertEqual(self.step("program", SBX_PROGRAM="", PATH=path)[2], {"program": str(self.tmp / "sbx-build/sbx")})
        (self.work / "bin/sbx").unlink()
        (self.work / "bin/sbx").symlink_to(os.path.abspath(SBX))
        self.assertEqual(self.step("program", SBX_PROGRAM="", PATH=path)[2], {"program": str(self.work / "bin/sbx")})

    def test_action_stops_at_the_first_failure(self):
        """The shells of GitHub's run steps stop at the first failure; so must a step that forgets `set -e`."""
        for shell, line, expected in (("bash", "false\necho after", 1), ("sh", "false\necho after", 1), ("bash", "false | true\necho after", 1),
                                      ("bash", "true\necho after", 0), ("sh", "false | true\necho after", 0)):
            status, out, outputs, _ = self.step("run", SBX_RUN=line, SBX_SHELL=shell, SBX_POLICY_NAME="default")
            self.assertEqual((status, "after" in out), (expected, expected == 0), (shell, line, out))
            self.assertEqual(outputs["exit-code"], str(expected))
        status, out, outputs, _ = self.step("run", SBX_RUN="false", SBX_SHELL="fish")
        failed = {"status": "setup-failed", "exit-code": "125"}
        self.assertEqual((status, outputs), (125, failed))
        self.assertIn("::error title=sbx::unknown shell", out)
        for empty in ("", " \n\t"):
            status, out, outputs, _ = self.step("run", SBX_RUN=empty, SBX_SHELL="bash")
            self.assertEqual((status, outputs), (125, failed))
            self.assertIn("::error title=sbx::there is nothing to run", out)
        status, out, outputs, _ = self.step("run", SBX_RUN="true", SBX_OPTIONS="--nosuch")
        self.assertEqual((status, outputs["status"], outputs["exit-code"]), (125, "setup-failed", "125"))
        self.assertRegex(out, "::error title=sbx::.*--nosuch")

    def test_python_is_found_and_the_summary_has_lines(self):
        status, out, _, summary = self.step("run", SBX_RUN="import sys\nsys.exit(3)", SBX_SHELL="python", SBX_POLICY_NAME="default", PATH="/usr/bin:/bin")
        self.assertEqual(status, 3, out)
        self.assertIn("import sys sys.exit(3)", summary)
        self.assertNotIn("x0a", summary)

    def test_action_options_are_words(self):
        """A star is a word: the action must not expand it to a matching policy file."""
        self.write("work/a.toml", "schema = 1\n")
        status, out, outputs, summary = self.step("run", SBX_RUN="true", SBX_OPTIONS="--policy *.toml")
        self.assertEqual((status, outputs["status"]), (125, "setup-failed"))
        self.assertIn("*.toml", out)
        self.assertTrue(summary.startswith("### sbx: setup-failed, exit status 125\n"), summary)

    def test_action_summary_holds_what_a_program_chose_as_text(self):
        """Each line belongs to an indented block, which no content can close."""
        name = "```\\r</pre>"
        code = f"import ctypes; libc = ctypes.CDLL(None); libc.prctl(15, b'{name}'); libc.ptrace(0, 0, 0, 0)"
        _, _, _, summary = self.step("run", SBX_RUN=code, SBX_SHELL="python3")
        self.assertIn("ptrace", summary)
        self.assertNotIn("\r", summary)
        for line in summary.splitlines()[1:]:
            self.assertTrue(not line.strip() or line.startswith("    "), line)

    def test_cancelled_action_leaves_its_record(self):
        output = self.write("output", "")
        environment = self.environment({"GITHUB_OUTPUT": str(output), "RUNNER_TEMP": str(self.tmp), "SBX_PROGRAM": SBX, "SBX_POLICY_NAME": "default",
                                        "SBX_RUN": "echo started; sleep 30"})
        step = sbxtest.start([SOURCE / "share/github/run"], env=environment, cwd=self.work, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        while b"started" not in (line := step.stdout.readline()):
            self.assertNotEqual(line, b"", "it ended before it was cancelled")
        os.kill(step.pid, signal.SIGINT)
        step.communicate(timeout=120)
        self.assertEqual(step.returncode, 143)
        self.assertIn("status=cancelled\nexit-code=143\n", output.read_text())

    @unittest.skipIf(yaml is None, "python3-yaml is not installed")
    def test_definitions_name_what_there_is(self):
        action = yaml.safe_load((SOURCE / "action.yml").read_text())
        self.assertEqual(action["runs"]["using"], "composite")
        for step in action["runs"]["steps"]:
            # An input within a script may be text from a stranger.
            self.assertNotIn("${{", step["run"])
            self.assertTrue(step["shell"] and step["env"], step)
            path = re.search(r"GITHUB_ACTION_PATH/([^\"]+)", step["run"]).group(1)
            self.assertTrue(os.access(SOURCE / path, os.X_OK), path)
            for value in step["env"].values():
                name = re.search(r"(inputs|outputs)\.(\w+)", value).group(2)
                self.assertTrue(name in action["inputs"] or name == "program", value)
        outputs = set(re.findall(r'echo "([a-z-]+)=', "".join((SOURCE / "share/github" / name).read_text() for name in ("program", "run"))))
        self.assertEqual(outputs, set(action["outputs"]))
        hooks = yaml.safe_load((SOURCE / ".pre-commit-hooks.yaml").read_text())
        for hook in hooks:
            command = hook["entry"].split()
            done = subprocess.run([SBX, *command[1:], "--help"], capture_output=True)
            self.assertEqual((command[0], done.returncode), ("sbx", 0), hook["id"])
        checked = next(hook["files"] for hook in hooks if hook["id"] == "sbx-policy-check")
        for name, is_policy in (("policies/a.toml", True), ("a/.sbx/b.toml", True), ("sbx.toml", True), ("x/sbx-ci.toml", True),
                                ("ci.sbx.toml", True), ("pyproject.toml", False), ("asbx.toml", False), ("policies/a/b.toml", False)):
            self.assertEqual(bool(re.search(checked, name)), is_policy, name)


if __name__ == "__main__":
    sbxtest.main()

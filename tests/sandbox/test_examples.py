"""The examples do what their texts claim."""

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import unittest
from unittest import mock

import sbxtest
from harness import HANG
from sbxtest import SBX, SOURCE, SbxTest
from sessiontest import SessionTest

try:
    import yaml
except ImportError:
    yaml = None

EXAMPLES = SOURCE / "examples"


class AgentLoop(SessionTest):
    """A canned model's programs are run, judged, and retried where that helps."""

    def test_agent_loop_in_python(self):
        done = subprocess.run(["/usr/bin/python3", EXAMPLES / "agent-loop/loop.py"], cwd=self.work, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=self.environment({"SBX": os.path.abspath(SBX), "PYTHONDONTWRITEBYTECODE": "1"}), timeout=HANG)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        lines = done.stdout.splitlines()
        self.assertIn("  attempt 1: It failed: NameError: name 'length' is not defined", lines)
        self.assertIn("  attempt 2: 6.0", lines)
        self.assertIn("  attempt 2: 102334155", lines)
        (slow,) = (line for line in lines if "CPU-time budget of 5 s spent" in line)
        self.assertIn("needs less", slow)
        # After a refusal nothing is invented and nothing is retried.
        self.assertEqual(sum("This is policy, retrying can't help" in line for line in lines), 2, done.stdout)
        self.assertNotIn("hello", done.stdout)
        self.assertEqual(lines[-1], "solved 2 of 4")
        self.assertEqual(self.run_sbx("session", "list", "--json").json["sessions"], [])

    def test_outcome_says_when_retrying_cannot_help(self):
        refused = self.python("import ctypes, sys; ctypes.CDLL(None).ptrace(0, 0, 0, 0); sys.exit(3)")
        self.assertEqual(refused.outcome["detail"], "the command exited with status 3; refused: ptrace: this is policy, retrying can't help")
        self.assertNotIn("policy", self.python("import sys; sys.exit(3)").outcome["detail"])
        unharmed = self.python("import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)")
        self.assertNotIn("policy", unharmed.outcome["detail"], "it did not fail")


def loaded(path):
    specification = importlib.util.spec_from_file_location("example", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


class PythonFile(SbxTest):
    """examples/python/sbx.py, used by a program that copied it."""

    def setUp(self):
        super().setUp()
        self.module = loaded(EXAMPLES / "python/sbx.py")
        patch = mock.patch.dict(os.environ, self.environment(), clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def run_code(self, code, **settings):
        return self.module.run(code, workspace=self.work, program=SBX, **settings)

    def test_python_file_gives_a_verdict(self):
        run = self.run_code("import sys; print(6 * 7); print('x', sys.argv[1:], file=sys.stderr)", arguments=("a b",))
        self.assertEqual((run.status, run.exit_code, run.success, run.text, run.error_text), ("exited", 0, True, "42\n", "x ['a b']\n"))
        run = self.run_code("raise SystemExit(3)")
        self.assertEqual((run.status, run.exit_code, run.success), ("exited", 3, False))
        run = self.run_code("import os; os.kill(os.getpid(), 6)")
        self.assertEqual((run.status, run.signal, run.success), ("signaled", run.record["outcome"]["signal"], False))
        run = self.run_code("while True: pass", timeout=0.5)
        self.assertEqual((run.status, run.reason), ("over-budget", "wall_time"))
        run = self.run_code("x = bytearray(200 << 20)", memory=100 << 20)
        self.assertEqual((run.status, run.reason), ("over-budget", "memory"))

    def test_python_file_names_what_was_refused(self):
        run = self.run_code("import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)")
        (denial,) = run.denials
        self.assertEqual((denial.what, denial.count), ("ptrace", 1))
        self.assertIn("syscalls.base", denial.rule)
        self.assertIn('["ptrace"]', denial.allow_with)

    def test_python_file_raises_when_nothing_ran(self):
        with self.assertRaises(self.module.SetupFailed) as raised:
            self.run_code("print(1)", policy="nosuch")
        self.assertEqual(raised.exception.code, "unknown-policy")
        with self.assertRaisesRegex(self.module.SetupFailed, "there is no program '.*absent'\ninstall sbx") as raised:
            self.module.run("print(1)", program=self.tmp / "absent")
        self.assertEqual(raised.exception.code, "no-program")
        with self.assertRaisesRegex(RuntimeError, "wrote no record .exit status 1."):
            self.module.run("print(1)", program="false")

    def test_python_file_runs_commands(self):
        self.write("a.txt", "text\n")
        run = self.module.run_command(["sh", "-c", "cat - a.txt; printf \"$NAME\"; printf '\\377'"], input=b"in\n", workspace=self.work, program=SBX,
                                      environment={"NAME": "a value"})
        self.assertEqual((run.stdout, run.success), (b"in\ntext\na value\xff", True))

    def test_python_example(self):
        (self.tmp / "sbx").symlink_to(os.path.abspath(SBX))
        done = subprocess.run(["/usr/bin/python3", EXAMPLES / "python/example.py"], cwd=self.work, capture_output=True, text=True, timeout=120,
                              env=self.environment({"PATH": f"{self.tmp}:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}))
        self.assertEqual(done.stderr, "")
        first, second, third, refused = done.stdout.splitlines()
        self.assertEqual(first, "42")
        self.assertIn("limits.wall_time", second)
        self.assertIn("exited with status 1", third)
        self.assertTrue(refused.startswith("  refused: ptrace - "), refused)


class Hook(SessionTest):
    """The hooks for shell tools: the command that each gives its client runs in a session, in the project, for real."""

    SHELLS = {"claude-code": ("PreToolUse", "Bash"), "codex": ("PreToolUse", "Bash"), "gemini": ("BeforeTool", "run_shell_command")}

    def setUp(self):
        super().setUp()
        (self.tmp / "sbx").symlink_to(os.path.abspath(SBX))
        self.path = {"PATH": f"{self.tmp}:/usr/bin:/bin", "SECRET": "key"}

    def hook(self, client, call, status=0, python=("/usr/bin/python3", "-I"), **environment):
        done = subprocess.run([*python, EXAMPLES / "hooks/sandbox-shell.py", client], input=call if isinstance(call, str) else json.dumps(call),
                              capture_output=True, text=True, env=self.environment({**self.path, **environment}))
        self.assertEqual(done.returncode, status, done)
        return json.loads(done.stdout) if status == 0 else done.stderr

    def call(self, client, command, cwd=None, **more):
        """What the client writes to its hook."""
        event, tool = self.SHELLS[client]
        return {"session_id": f"{client}_Conversation 1", "transcript_path": "/dev/null", "cwd": str(cwd or self.work), "hook_event_name": event,
                "tool_name": tool, "tool_input": {"command": command, **more}}

    def changed(self, client, answer):
        return answer["tool_input"] if client == "gemini" else answer["updatedInput"]

    def ran(self, client, command, cwd=None, **environment):
        answer = self.hook(client, self.call(client, command, cwd), **environment)["hookSpecificOutput"]
        # Codex has a login shell run it, of which the profile sets PATH anew.
        return subprocess.run(["bash", "-c", self.changed(client, answer)["command"]], cwd=cwd or self.work, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, env=self.environment({"SECRET": "key"}), timeout=HANG)

    def test_each_client_gets_the_answer_that_it_takes(self):
        for client, (event, _) in self.SHELLS.items():
            answer = self.hook(client, self.call(client, "true", timeout=120000, description="x"))["hookSpecificOutput"]
            changed = self.changed(client, answer)
            self.assertEqual((answer["hookEventName"], changed["timeout"], changed["description"]), (event, 120000, "x"))
            self.assertEqual(shlex.split(changed["command"])[-3:], ["bash", "-c", "true"])
            self.assertEqual(answer.get("permissionDecision"), {"claude-code": "ask", "codex": "allow"}.get(client))
        allowed = self.hook("claude-code", self.call("claude-code", "true"), SBX_HOOK_DECISION="allow")
        self.assertEqual(allowed["hookSpecificOutput"]["permissionDecision"], "allow")

    def test_the_command_runs_inside_in_the_project_and_a_later_one_finds_what_it_left(self):
        self.write(".ssh/id", "KEY\n", directory=self.home)
        (self.work / ".git").mkdir()
        (self.work / "below").mkdir()
        for client in self.SHELLS:
            self.write("a.txt", "text\n")
            done = self.ran(client, "cat 'a.txt' | tr a-z A-Z; echo \"it's $0\" >made; cat ~/.ssh/id; echo \"[$SECRET]\"; echo left >/tmp/left")
            self.assertEqual(done.stdout, "TEXT\n[]\n", done)
            self.assertTrue((self.work / "made").read_text().startswith("it's "))
            self.assertNotIn("KEY", done.stdout + done.stderr)
            below = self.ran(client, "pwd; cat ../a.txt /tmp/left; exit 7", cwd=self.work / "below")
            self.assertEqual((below.returncode, below.stdout), (7, f"{self.work}/below\ntext\nleft\n"), below)
        self.assertEqual(len(self.run_sbx("session", "list", "--json").json["sessions"]), 3)

    def test_what_programs_of_the_host_would_run_is_put_aside(self):
        for client in self.SHELLS:
            for name in (".envrc", ".mcp.json"):
                done = self.ran(client, f": >{name}; : >other")
                self.assertIn(f"it is now {name}.sbx-refused", done.stderr)
                self.assertEqual(sorted(os.listdir(self.work)), sorted((f"{name}.sbx-refused", "other")))
                (self.work / f"{name}.sbx-refused").unlink()

    def test_the_directory_that_the_model_names_is_the_commands(self):
        """Gemini's shell tool has it beside the command."""
        (self.work / ".git").mkdir()
        (self.work / "below").mkdir()
        for cwd, named in ((self.work, "below"), (self.work / "below", "../below"), (self.work, str(self.work / "below"))):
            changed = self.hook("gemini", self.call("gemini", "pwd", cwd, dir_path=named))["hookSpecificOutput"]["tool_input"]
            words = shlex.split(changed["command"])
            self.assertEqual((words[words.index("--cwd") + 1], words[words.index("--workspace") + 1]), (f"{self.work}/below", f"{self.work}:read-write"))
        self.assertIn("ValueError", self.hook("gemini", self.call("gemini", "pwd", dir_path="../.."), status=2))

    def test_the_client_must_be_named(self):
        for arguments in ((), ("claude",), ("codex", "gemini")):
            done = subprocess.run(["/usr/bin/python3", EXAMPLES / "hooks/sandbox-shell.py", *arguments], input="{}", capture_output=True, text=True, env=self.environment(self.path))
            self.assertEqual((done.returncode, done.stderr), (2, "sandbox-shell.py: name the client: /usr/bin/python3 -I sandbox-shell.py claude-code|codex|gemini\n"))

    def test_other_tools_are_left_alone(self):
        for client in self.SHELLS:
            self.assertEqual(self.hook(client, {"tool_name": "Read", "tool_input": {"file_path": "/x"}}), {})

    def test_what_it_can_not_read_or_run_is_blocked(self):
        """Exit status 2 blocks the call; after any other status the client would run the command outside."""
        for client in (*self.SHELLS, "unknown"):
            tool = self.SHELLS.get(client, ("", "Bash"))[1]
            for call in ("", "{", "[]", {}, {"tool_name": tool}, {"tool_name": tool, "tool_input": {"command": 3}}):
                self.assertIn("sandbox-shell.py: ", self.hook(client, call, status=2), call)
        call = self.call("gemini", "true")
        self.assertIn("sbx is not on PATH", self.hook("gemini", call, status=2, PATH="/usr/bin:/bin"))
        self.assertIn("ValueError", self.hook("gemini", call, status=2, GEMINI_PROJECT_DIR=str(self.home)))

    def test_the_settings_name_the_hook_as_installed(self):
        for client, (event, tool) in self.SHELLS.items():
            [entry] = json.loads((EXAMPLES / f"hooks/{client}.json").read_text())["hooks"][event]
            [hook] = entry["hooks"]
            self.assertEqual(entry["matcher"], tool)
            self.assertEqual(shlex.split(hook["command"]), ["/usr/bin/python3", "-I", "/usr/share/sbx/hooks/sandbox-shell.py", client])

    def test_nothing_of_the_project_runs_in_the_hook(self):
        """What an earlier command left there would run on the host. The twins: both would be taken."""
        ran = self.tmp / "ran"
        self.write("json.py", f"open({str(ran)!r}, 'w').close()\nraise SystemExit\n")
        call = self.call("codex", "true")
        self.hook("codex", call, PYTHONPATH=str(self.work))
        self.assertFalse(ran.exists())
        self.assertEqual(subprocess.run(["/usr/bin/python3", "-c", "import json"], env=self.environment({"PYTHONPATH": str(self.work)})).returncode, 0)
        self.assertTrue(ran.exists())
        self.assertIn("python3 needs -I", self.hook("codex", call, status=2, python=["/usr/bin/python3"]))
        for name in ("copy", "link"):
            bin_directory = self.work / name
            bin_directory.mkdir()
            self.write(f"{name}/sbx", "#!/bin/sh\n", mode=0o755)
            if name == "link":
                self.write("real", "#!/bin/sh\n", mode=0o755)
                bin_directory = self.tmp / "outside"
                bin_directory.mkdir()
                (bin_directory / "sbx").symlink_to(self.work / "real")
            path = f"{bin_directory}:{self.path['PATH']}"
            self.assertEqual(shutil.which("sbx", path=path), str(bin_directory / "sbx"))
            self.assertIn("is in the project", self.hook("codex", call, status=2, PATH=path))

    def test_the_project_is_around_a_git_directory_of_the_callers_own(self):
        """In /tmp, say, another user could make a larger directory look like the project."""
        (self.work / "below").mkdir()
        (self.work / ".git").mkdir()
        call = self.call("codex", "true", cwd=self.work / "below")

        def root():
            words = shlex.split(self.hook("codex", call)["hookSpecificOutput"]["updatedInput"]["command"])
            return words[words.index("--workspace") + 1]

        self.assertEqual(root(), f"{self.work}:read-write")
        (self.work / ".git").rmdir()
        self.assertEqual(root(), f"{self.work}/below:read-write")
        if os.getuid() == 0:
            (self.work / ".git").mkdir()
            os.chown(self.work / ".git", 12345, 12345)
            self.assertEqual(root(), f"{self.work}/below:read-write")
        else:
            # A link of the caller's own is, wherever it leads: nobody but root can make one of another user.
            (self.work / ".git").symlink_to("/usr")
            self.assertEqual(root(), f"{self.work}:read-write")

    def test_a_projects_name_has_any_characters(self):
        for name in ("a b", "it's", "a:overlay", "a\\:b", "end\\", "new\nline", "-rf", "a;id", "*"):
            directory = self.work / name
            directory.mkdir()
            done = self.ran("codex", "pwd; echo x >made", cwd=directory)
            self.assertEqual((done.returncode, done.stdout, (directory / "made").exists()), (0, f"{directory}\n", True), done)


class Mcp(SessionTest):
    """A host of agents in one file drives sbx mcp."""

    def test_mcp_host_runs_what_its_model_asks_for(self):
        done = subprocess.run(["/usr/bin/python3", EXAMPLES / "mcp/host.py", "-p", "agent"], cwd=self.work, capture_output=True, text=True,
                              env=self.environment({"SBX": os.path.abspath(SBX)}), timeout=HANG)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        lines = done.stdout.splitlines()
        self.assertIn("run_command", lines[0].split())
        kept = lines.index("result:", 2)
        self.assertEqual(lines[kept + 1], "6.0", "the second cell finds the variable of the first")
        (command,) = (line for line in lines if line.startswith("run_command: "))
        self.assertTrue(command.startswith("run_command: exit 2 · "), command)
        (read,) = (line for line in lines if line.startswith("read_file: "))
        self.assertIn("/etc/shadow", read)
        self.assertNotIn("root:", done.stdout)
        self.assertEqual(self.run_sbx("session", "list", "--json").json["sessions"], [])


@unittest.skipIf(yaml is None, "python3-yaml is not installed")
class Ci(SbxTest):
    """The options, inputs and hooks named in the texts to copy exist."""

    def job(self):
        (job,) = yaml.safe_load((EXAMPLES / "ci/github-workflow.yml").read_text())["jobs"].values()
        return job

    def test_ci_texts_name_what_there_is(self):
        action = yaml.safe_load((SOURCE / "action.yml").read_text())
        job = self.job()
        step = next(step for step in job["steps"] if step.get("id") == "sandbox")
        self.assertLessEqual(set(step["with"]), set(action["inputs"]))
        (cached,) = (step["with"]["path"] for step in job["steps"] if step.get("uses", "").startswith("actions/cache@"))
        self.assertIn(cached.replace("${{ runner.temp }}", "$RUNNER_TEMP"), (SOURCE / "share/github/program").read_text())
        used = set(re.findall(r"steps\.sandbox\.outputs\.([a-z-]+)", json.dumps(job)))
        self.assertTrue(used and used <= set(action["outputs"]), used)
        hooks = {hook["id"] for hook in yaml.safe_load((SOURCE / ".pre-commit-hooks.yaml").read_text())}
        ours, local = yaml.safe_load((EXAMPLES / "ci/pre-commit-config.yaml").read_text())["repos"]
        self.assertLessEqual({hook["id"] for hook in ours["hooks"]}, hooks)
        gitlab = yaml.safe_load((EXAMPLES / "ci/gitlab-ci.yml").read_text())["generated-code"]
        for line in (local["hooks"][0]["entry"], *gitlab["script"], f"sbx run {step['with']['options']} --policy {step['with']['policy']} -- true"):
            words = shlex.split(line)
            self.assertEqual(words[:2], ["sbx", "run"])
            done = subprocess.run([SBX, "run", "--dry-run", *words[2 : words.index("--") + 1], "true"], cwd=self.work, env=self.environment(),
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, (line, done.stderr))

    def test_ci_step_of_the_readme(self):
        block = re.search(r"^    - id: sandbox\n(?:    .*\n)+", (SOURCE / "docs/ci.md").read_text(), re.MULTILINE).group()
        (step,) = yaml.safe_load("\n".join(line[4:] for line in block.splitlines()) + "\n")
        self.assertIn(step, self.job()["steps"])


if __name__ == "__main__":
    sbxtest.main()

"""The examples do what their texts claim."""

import importlib.util
import json
import math
import os
import re
import resource
import shlex
import shutil
import subprocess
import unittest
from unittest import mock

import sbxtest
from sbxtest import SBX, SOURCE, SbxTest

try:
    import yaml
except ImportError:
    yaml = None

EXAMPLES = SOURCE / "examples"
LOOP = SOURCE / "examples" / "agent-loop"


def seconds_for_a_program():
    """Eight times the CPU time of an honest program here: one second, except on emulated machines."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["/usr/bin/python3", "-c", "import socket, ctypes"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return min(8, math.ceil(8 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)))


class AgentLoop(SbxTest):
    """A canned model's programs are run, judged, and retried where that helps."""

    def setUp(self):
        super().setUp()
        self.seconds = seconds_for_a_program()

    def loop(self, *command):
        process = sbxtest.start([*command], cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self.environment({"SBX": os.path.abspath(SBX), "CPU_TIME": f"{self.seconds}s"}))
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, (out, err))
        return out.decode()

    def judges(self, text):
        lines = text.splitlines()
        self.assertIn("  attempt 1: It failed: NameError: name 'length' is not defined", lines)
        self.assertIn("  attempt 2: 6.0", lines)
        self.assertIn("  attempt 2: 102334155", lines)
        (slow,) = (line for line in lines if f"CPU-time budget of {self.seconds} s spent" in line)
        self.assertIn("needs less", slow)
        # After a refusal nothing is invented and nothing is retried.
        self.assertEqual(sum("This is policy, retrying can't help" in line for line in lines), 2, text)
        self.assertNotIn("hello", text)
        self.assertEqual(lines[-1], "solved 2 of 4")

    def test_agent_loop_in_python(self):
        self.judges(self.loop("/usr/bin/python3", LOOP / "loop.py"))

    def test_agent_loop_in_shell(self):
        if shutil.which("jq", path="/usr/local/bin:/usr/bin:/bin") is None:
            self.skipTest("jq is not installed")
        self.judges(self.loop("sh", LOOP / "loop.sh"))

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
        with self.assertRaises(FileNotFoundError):
            self.module.run("print(1)", program=self.tmp / "absent")
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


class Hook(SbxTest):
    """The PreToolUse hook: the command that it returns runs in a sandbox, in the project, for real."""

    def hook(self, call, status=0, **environment):
        done = subprocess.run(["/usr/bin/python3", EXAMPLES / "hooks/sandbox-bash.py"], input=call if isinstance(call, str) else json.dumps(call),
                              capture_output=True, text=True, env=self.environment(environment))
        self.assertEqual(done.returncode, status, done)
        return json.loads(done.stdout) if status == 0 else done.stderr

    def ran(self, command, **more):
        answer = self.hook({"tool_name": "Bash", "tool_input": {"command": command, **more}})["hookSpecificOutput"]
        self.assertEqual((answer["hookEventName"], answer["permissionDecision"]), ("PreToolUse", "ask"))
        self.assertEqual({key: value for key, value in answer["updatedInput"].items() if key != "command"}, more)
        (self.tmp / "sbx").unlink(missing_ok=True)
        (self.tmp / "sbx").symlink_to(os.path.abspath(SBX))
        return subprocess.run(["bash", "-c", answer["updatedInput"]["command"]], cwd=self.work, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, env=self.environment({"PATH": f"{self.tmp}:/usr/bin:/bin", "SECRET": "key"}), timeout=120)

    def test_hook_runs_the_command_inside(self):
        self.write("a.txt", "text\n")
        self.write(".ssh/id", "KEY\n", directory=self.home)
        done = self.ran("cat 'a.txt' | tr a-z A-Z; echo \"it's $0\" > made; cat ~/.ssh/id; echo \"[$SECRET]\"", timeout=120000, description="x")
        self.assertEqual(done.stdout, "TEXT\n[]\n", done)
        self.assertTrue((self.work / "made").read_text().startswith("it's "))
        self.assertNotIn("KEY", done.stdout + done.stderr)
        self.assertEqual(self.ran("exit 7").returncode, 7)

    def test_hook_leaves_other_tools_alone(self):
        self.assertEqual(self.hook({"tool_name": "Read", "tool_input": {"file_path": "/x"}}), {})
        allowed = self.hook({"tool_name": "Bash", "tool_input": {"command": "true"}}, SBX_HOOK_DECISION="allow")
        self.assertEqual(allowed["hookSpecificOutput"]["permissionDecision"], "allow")

    def test_hook_blocks_what_it_cannot_read(self):
        """Exit status 2 blocks the call; after any other status the agent would run the command outside."""
        for call in ("", "{", "[]", {}, {"tool_name": "Bash"}, {"tool_name": "Bash", "tool_input": {"command": 3}}):
            self.assertIn("sandbox-bash.py: ", self.hook(call, status=2), call)

    def test_hook_settings(self):
        settings = json.loads((EXAMPLES / "hooks/settings.json").read_text())
        (entry,) = settings["hooks"]["PreToolUse"]
        self.assertEqual(entry["matcher"], "Bash")
        (hook,) = entry["hooks"]
        name = os.path.basename(shlex.split(hook["command"])[1])
        self.assertTrue((EXAMPLES / "hooks" / name).exists(), hook)


class Mcp(SbxTest):
    """The MCP server answers through sbx, and reads only files of the project."""

    def test_mcp_server_in_a_sandbox(self):
        self.write("text", "three short words\n")
        secret = self.write("secret", "KEY", directory=self.home)
        directory = self.tmp / "mcp"
        shutil.copytree(EXAMPLES / "mcp", directory)
        configured = json.loads((directory / "mcp.json").read_text())["mcpServers"]["words"]
        words = [word.replace("/path/to", str(directory)) for word in configured["args"]]
        server = sbxtest.start([SBX, *words], cwd=self.work, env=self.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)

        def ask(number, method, **parameters):
            # Each answer arrives while the server runs: it must not wait for the end of input.
            server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}) + "\n")
            server.stdin.flush()
            answer = json.loads(server.stdout.readline())
            self.assertEqual(answer["id"], number)
            return answer["result"]

        self.assertEqual(ask(1, "initialize", protocolVersion="2025-06-18")["protocolVersion"], "2025-06-18")
        self.assertEqual([tool["name"] for tool in ask(2, "tools/list")["tools"]], ["count_words"])
        counted = ask(3, "tools/call", name="count_words", arguments={"path": "text"})
        self.assertEqual((counted["isError"], counted["content"][0]["text"]), (False, "3"))
        refused = ask(4, "tools/call", name="count_words", arguments={"path": str(secret)})
        self.assertTrue(refused["isError"], refused)
        _, err = server.communicate(timeout=120)
        self.assertEqual((server.returncode, err), (0, ""))


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

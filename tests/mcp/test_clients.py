#!/usr/bin/env python3
"""Claude Code, Codex, Gemini CLI and OpenCode with `sbx mcp`, as `sbx mcp install` registers it: npm's packages, which are kept in the
build directory, and models that follow a script. A visible skip without npm. Nothing leaves the machine."""

import os
import pathlib
import shutil
import signal
import subprocess
import unittest

import sbxtest
from harness import HANG, wait_until
from mcptest import McpTest
from models import Anthropic, Gemini, Responses
from sbxtest import SBX
from sessiontest import descendants

PACKAGES = ("node@22", "@anthropic-ai/claude-code@2.1.332", "@openai/codex@0.169.0", "@google/gemini-cli@0.61.0", "opencode-ai@1.18.33")
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
CODE = f"""
import base64
class Picture:
    def _repr_png_(self): return base64.b64decode("{PICTURE}")
print("x" * 15_000 + str(6 * 7))
Picture()
"""
CODEX = """model = "m"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "MODEL_KEY"
"""
OPENCODE = """{{"model": "anthropic/m", "share": "disabled", "autoupdate": false,
  "provider": {{"anthropic": {{"options": {{"baseURL": "{url}/v1", "apiKey": "x"}}, "models": {{"m": {{"name": "m", "attachment": true, "tool_call": true,
    "modalities": {{"input": ["text", "image"], "output": ["text"]}}, "limit": {{"context": 200000, "output": 8000}}}}}}}}}}}}
"""


def programs():
    """The directory of the clients' commands; they are installed once."""
    place = pathlib.Path(os.environ.get("SBX_BUILD", "/nowhere")) / "mcp-clients"
    commands = place / "node_modules/.bin"
    npm = shutil.which("npm")
    if not all((commands / name).exists() for name in ("node", "claude", "codex", "gemini", "opencode")):
        if npm is None or not os.access(place.parent, os.W_OK):
            raise unittest.SkipTest("npm is not there, or this user may not install into the build directory")
        done = subprocess.run([npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", place, *PACKAGES], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise unittest.SkipTest(f"npm can't install the clients: {done.stderr.strip()[-200:]}")
    return commands


def exe_of(pid):
    """None where it has ended, or is not to be looked at."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return None


class Clients(McpTest):
    """Each client: how it is started, what it is told before, and what its tools are called."""

    def setUp(self):
        super().setUp()
        self.commands = programs()
        self.write("kept", "kept\n")

    def model(self, kind, *steps):
        model = kind(steps)
        self.addCleanup(model.close)
        return model

    def settings(self, name, text):
        return self.write(name, text, directory=self.home)

    def install(self, client, *words):
        done = self.run_sbx("mcp", "install", client, *words)
        self.assertEqual(done.status, 0, done)

    def start(self, words, **env):
        path = f"{self.commands}:/usr/local/bin:/usr/bin:/bin"
        log = open(self.tmp / f"client-{len(os.listdir(self.tmp))}", "w+b")
        self.addCleanup(log.close)
        process = sbxtest.start(words, env=self.environment({"PATH": path, **env}), cwd=self.work, stdin=subprocess.DEVNULL, stdout=log,
                                stderr=subprocess.STDOUT, start_new_session=True)
        self.addCleanup(self.end, process)
        process.log = log
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
            process.wait()

    def said(self, process):
        process.log.flush()
        process.log.seek(0)
        return process.log.read().decode(errors="replace")[-4000:]

    def finish(self, process):
        process.wait(timeout=HANG)
        self.assertEqual(process.returncode, 0, self.said(process))

    # The three things that each must show.

    def runs_code_and_shows_the_picture(self, client, kind, tool, start):
        model = self.model(kind, (tool, {"code": CODE}))
        self.prepare(client, model)
        self.install(client)
        process = start(model)
        self.finish(process)
        told = model.told(1)
        for words in ("ok · ", "context_id c-", "x42", PICTURE[:32]):
            self.assertIn(words, told)
        self.nothing_is_left()

    def has_no_shell(self, client, kind, shell, command, tool, start):
        """The twin comes first: without --replace-shell the same step runs on the host."""
        for options, runs in (((), True), (("--replace-shell",), False)):
            model = self.model(kind, (shell, command(f"echo x >{self.tmp}/by-shell")), (tool, {"command": "cat kept; echo x >by-sbx"}))
            self.prepare(client, model)
            self.install(client, *options)
            self.finish(start(model))
            self.assertEqual(shell in model.offered(), runs, model.offered())
            self.assertEqual((self.tmp / "by-shell").exists(), runs)
            self.assertIn("kept", model.told(2))
            self.assertEqual((self.work / "by-sbx").exists(), not runs, "the files of run_command are the client's")
            (self.tmp / "by-shell").unlink(missing_ok=True)
        self.nothing_is_left()

    def leaves_nothing(self, client, kind, tool, start):
        model = self.model(kind, (tool, {"command": "touch begun; sleep 1000"}))
        self.prepare(client, model)
        self.install(client, "--", "--workspace", ".:read-write")
        process = start(model)
        wait_until(lambda: (self.work / "begun").exists() or process.poll() is not None, "the command runs")
        self.assertIsNone(process.poll(), self.said(process))
        for pid in self.processes_of(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait()
        self.nothing_is_left()

    def processes_of(self, pid):
        """A client's own: some are a script that starts the program. The server that it has started is not among them."""
        own = os.path.realpath(SBX)
        all_of_them = [pid, *descendants(pid)]
        servers = [each for each in all_of_them if exe_of(each) in (own, None)]
        return set(all_of_them) - set(servers) - {each for server in servers for each in descendants(server)}

    def prepare(self, client, model):
        if client == "codex":
            self.settings(".codex/config.toml", CODEX.format(url=model.url))
        if client == "gemini":
            self.settings(".gemini/settings.json", '{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
        if client == "opencode":
            self.settings(".config/opencode/opencode.json", OPENCODE.format(url=model.url))

    # How each is started.

    def claude(self, model, *words):
        return self.start(["claude", "-p", "go", *words], ANTHROPIC_BASE_URL=model.url, ANTHROPIC_API_KEY="x",
                          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", DISABLE_AUTOUPDATER="1")

    def codex(self, model, *words):
        return self.start(["codex", "exec", "--strict-config", "--skip-git-repo-check", *words, "go"], MODEL_KEY="x")

    def gemini(self, model):
        return self.start(["gemini", "-y", "-m", "gemini-2.5-flash", "-p", "go"], GOOGLE_GEMINI_BASE_URL=model.url, GEMINI_API_KEY="x",
                          GEMINI_CLI_TRUST_WORKSPACE="true")

    def opencode(self, model):
        return self.start(["opencode", "run", "--model", "anthropic/m", "go"], OPENCODE_DISABLE_MODELS_FETCH="1", OPENCODE_DISABLE_AUTOUPDATE="1")

    def test_slow_claude_code_runs_code_and_shows_the_picture(self):
        self.runs_code_and_shows_the_picture("claude", Anthropic, "mcp__sbx__run_code", self.claude)

    def test_slow_claude_code_has_no_shell_of_its_own(self):
        self.has_no_shell("claude", Anthropic, "Bash", lambda line: {"command": line, "description": "x"}, "mcp__sbx__run_command",
                          lambda model: self.claude(model, "--allowedTools", "Bash", "mcp__sbx__run_command"))

    def test_slow_claude_code_leaves_nothing_when_it_is_killed(self):
        self.leaves_nothing("claude", Anthropic, "mcp__sbx__run_command", lambda model: self.claude(model, "--allowedTools", "mcp__sbx__run_command"))

    def test_slow_codex_runs_code_and_shows_the_picture(self):
        self.runs_code_and_shows_the_picture("codex", Responses, "mcp__sbx/run_code", self.codex)

    def test_slow_codex_has_no_shell_of_its_own(self):
        self.has_no_shell("codex", Responses, "exec_command", lambda line: {"cmd": line}, "mcp__sbx/run_command",
                          lambda model: self.codex(model, "--dangerously-bypass-approvals-and-sandbox"))

    def test_slow_codex_leaves_nothing_when_it_is_killed(self):
        self.leaves_nothing("codex", Responses, "mcp__sbx/run_command", lambda model: self.codex(model, "--dangerously-bypass-approvals-and-sandbox"))

    def test_slow_gemini_cli_runs_code_and_shows_the_picture(self):
        self.runs_code_and_shows_the_picture("gemini", Gemini, "mcp_sbx_run_code", self.gemini)

    def test_slow_gemini_cli_has_no_shell_of_its_own(self):
        self.has_no_shell("gemini", Gemini, "run_shell_command", lambda line: {"command": line}, "mcp_sbx_run_command", self.gemini)

    def test_slow_gemini_cli_leaves_nothing_when_it_is_killed(self):
        self.leaves_nothing("gemini", Gemini, "mcp_sbx_run_command", self.gemini)

    def test_slow_opencode_runs_code_and_shows_the_picture(self):
        self.runs_code_and_shows_the_picture("opencode", Anthropic, "sbx_run_code", self.opencode)

    def test_slow_opencode_has_no_shell_of_its_own(self):
        self.has_no_shell("opencode", Anthropic, "bash", lambda line: {"command": line, "description": "x"}, "sbx_run_command", self.opencode)

    def test_slow_opencode_leaves_nothing_when_it_is_killed(self):
        self.leaves_nothing("opencode", Anthropic, "sbx_run_command", self.opencode)


if __name__ == "__main__":
    sbxtest.main()

#!/usr/bin/env python3
"""A hook for the shell tool of an agent: each command line runs in one sandbox that the whole conversation keeps.

    python3 sandbox-shell.py claude-code|codex|gemini

reads the client's call as JSON from standard input and writes the answer with which the client runs another command line: the same
one in a session of sbx. It sees the project, which it changes for real, and the system's programs; it sees no home, no credentials
and no network. The JSON files beside this one register it.

This is a convenience, and it fails open: where python3 is missing, or the hook takes too long, the client runs the command outside.
What fails closed is to deny the client its own shell and to give it `sbx mcp`: README.md says how. An error of the hook itself blocks
the call: exit status 2 does so, and with any other one the client would run the command outside.
"""

import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import sys

POLICY = os.environ.get("SBX_HOOK_POLICY", "agent")
# "ask" shows the command to the user first; "allow" runs it without a question. Codex is known to take "allow" only.
DECISION = os.environ.get("SBX_HOOK_DECISION", "ask")
TOOLS = {"claude-code": "Bash", "codex": "Bash", "gemini": "run_shell_command"}


def root_of(directory):
    """The project: what the client says, else the repository around the directory."""
    for name in ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"):
        if os.environ.get(name):
            return pathlib.Path(os.environ[name]).resolve()
    return next((each for each in (directory, *directory.parents) if (each / ".git").exists()), directory)


def session_of(conversation, root):
    """A name as sbx takes it, which another conversation or project has not."""
    slug = re.sub("[^a-z0-9]+", "-", conversation.lower()).strip("-")[:40]
    return f"agent-{slug}-{hashlib.sha256(f'{conversation} {root}'.encode()).hexdigest()[:8]}"


def command_for(call):
    sbx = shutil.which("sbx")
    if sbx is None:
        raise FileNotFoundError("sbx is not on PATH")
    directory = pathlib.Path(call["cwd"]).resolve()
    root = root_of(directory)
    directory.relative_to(root)  # an error where the agent stands outside of its project
    # The absolute path: a login shell, as Codex starts one, has a PATH of its own.
    words = [sbx, "run", "--session", session_of(call["session_id"], root), "--policy", POLICY, "--workspace", f"{root}:read-write",
             "--set", "session.put_aside=true", "--cwd", str(directory), "--", "bash", "-c", call["tool_input"]["command"]]
    return shlex.join(words)


def answer(client, call):
    if call["tool_name"] != TOOLS[client]:
        return {}
    changed = {**call["tool_input"], "command": command_for(call)}
    if client == "gemini":
        return {"hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": changed}}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow" if client == "codex" else DECISION,
                                   "permissionDecisionReason": f"runs in a sandbox (sbx, policy {POLICY})", "updatedInput": changed}}


try:
    print(json.dumps(answer(sys.argv[1], json.load(sys.stdin))))
except Exception as error:  # whatever it is, the command must not run
    print(f"sandbox-shell.py: {type(error).__name__}: {error}", file=sys.stderr)
    sys.exit(2)

#!/usr/bin/python3 -I
"""A hook for the shell tool of an agent: each command line runs in one sandbox that the whole conversation keeps.

    /usr/bin/python3 -I sandbox-shell.py claude-code|codex|gemini

reads the client's call as JSON from standard input and writes the answer with which the client runs another command line: the same
one in a session of sbx. It sees the project, which it changes for real, and the system's programs; it sees no home, no credentials
and no network. The JSON files beside this one register it.

The hook itself runs on the host, after the agent has written to the project. So nothing of the project may run in it: -I has python
leave PYTHONPATH alone, and an sbx that lies in the project is refused.

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
    return next((each for each in (directory, *directory.parents) if is_own_repository(each)), directory)


def is_own_repository(directory):
    """As git asks: in /tmp, say, another user could make a larger directory look like the project."""
    place = directory / ".git"
    return place.exists() and place.lstat().st_uid == os.getuid()


def workspace_of(root):
    """As sbx takes it: a colon of the name has a backslash, and a backslash before a colon is doubled."""
    return re.sub(r"(\\*)(:|\Z)", lambda found: found[1] * 2 + found[2].replace(":", r"\:"), str(root)) + ":read-write"


def session_of(conversation, root):
    """A name as sbx takes it, which another conversation or project has not."""
    slug = re.sub("[^a-z0-9]+", "-", conversation.lower()).strip("-")[:40]
    return f"agent-{slug}-{hashlib.sha256(f'{conversation} {root}'.encode()).hexdigest()[:8]}"


def sbx_for(root):
    """The absolute path: a login shell, as Codex starts one, has a PATH of its own."""
    found = shutil.which("sbx")
    if found is None:
        raise FileNotFoundError("sbx is not on PATH")
    sbx = pathlib.Path(os.path.abspath(found))
    if root in sbx.parents or root in sbx.resolve().parents:
        raise PermissionError(f"{sbx} is in the project, where the agent can replace it")
    return str(sbx)


def command_for(call):
    if not sys.flags.isolated:
        raise PermissionError("python3 needs -I: without it modules of the project could run here")
    directory = pathlib.Path(call["cwd"]).resolve()
    root = root_of(directory)
    directory = (directory / call["tool_input"].get("dir_path", "")).resolve()  # where Gemini's model wants it to run
    directory.relative_to(root)  # an error where the agent stands outside of its project
    words = [sbx_for(root), "run", "--session", session_of(call["session_id"], root), "--policy", POLICY, "--workspace", workspace_of(root),
             "--set", "session.put_aside=true", "--cwd", str(directory), "--", "bash", "-c", call["tool_input"]["command"]]
    return shlex.join(words)


def refuse(why):
    """Exit status 2 blocks the call, and the client shows the line."""
    print(f"sandbox-shell.py: {why}", file=sys.stderr)
    return 2


def answer(client, call):
    if call["tool_name"] != TOOLS[client]:
        return {}
    changed = {**call["tool_input"], "command": command_for(call)}
    if client == "gemini":
        return {"hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": changed}}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow" if client == "codex" else DECISION,
                                   "permissionDecisionReason": f"runs in a sandbox (sbx, policy {POLICY})", "updatedInput": changed}}


if len(sys.argv) != 2 or sys.argv[1] not in TOOLS:
    sys.exit(refuse(f"name the client: /usr/bin/python3 -I sandbox-shell.py {'|'.join(TOOLS)}"))
try:
    print(json.dumps(answer(sys.argv[1], json.load(sys.stdin))))
except Exception as error:  # whatever it is, the command must not run
    sys.exit(refuse(f"{type(error).__name__}: {error}"))

#!/usr/bin/env python3
"""A PreToolUse hook for Claude Code, and for agents with the same hooks: each command line of the Bash tool runs in a sandbox.

The command sees the project, which it changes for real, and the system's programs; it sees no home, no credentials and no
network. settings.json shows how to register the hook; keep both out of the project, where the agent can't change them. To see that
it works, let the agent run `ls -A ~`: it prints nothing.

An error blocks the call: exit status 2 does so, and with any other one the agent would run the command outside.
"""

import json
import os
import shlex
import sys

# What the commands get: see sbx-run(1). Name hosts with "--allow-host", directories with "--read".
SANDBOX = ["sbx", "run", "--policy", "shell", "--workspace", ".:read-write", "--timeout", "10m", "--die-with-parent"]
# "ask" shows the command to the user first; "allow" runs it without a question.
DECISION = os.environ.get("SBX_HOOK_DECISION", "ask")


def answer(call):
    if call["tool_name"] != "Bash":
        return {}
    command = shlex.join([*SANDBOX, "--lang", "bash", "-c", call["tool_input"]["command"]])
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": DECISION,
                                   "permissionDecisionReason": "runs in a sandbox (sbx, policy shell)",
                                   "updatedInput": {**call["tool_input"], "command": command}}}


try:
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
except Exception as error:  # whatever it is, the command must not run
    print(f"sandbox-bash.py: {type(error).__name__}: {error}", file=sys.stderr)
    sys.exit(2)

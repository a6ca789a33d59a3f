#!/usr/bin/env python3
"""An agent's loop around Sandbox: write a program, run it, read the verdict, tell the model, try again.

The model is canned here: programs.json has for each task the programs that it writes, one after the other. What matters is
feedback(): it turns what a program did into words that a model can act on, and says when trying again can't help.
"""

import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "python"))  # a program of yours has a copy of sbx.py beside it
from sbx import Sandbox, SandboxNotFoundException  # noqa: E402


def feedback(execution):
    """What to tell the model, and whether it may try again."""
    if execution.error is None:
        return (execution.text or "".join(execution.logs.stdout)).strip(), False
    refused = [f"{denial['what']}: {denial['rule']}" for denial in execution.record["denials"] if denial["kind"] != "path"]
    if refused:
        return "This is policy, retrying can't help. Refused: " + "; ".join(refused), False
    if execution.error.name == "BudgetExceeded":
        return f"Stopped, and its variables are lost: {execution.error.value}. Write a program that needs less.", True
    return f"It failed: {execution.error.name}: {execution.error.value}", True


def solve(task, programs):
    print(f"task: {task}")
    with Sandbox(policy=str(HERE / "agent-loop.toml"), program=os.environ.get("SBX", "sbx")) as sandbox:
        for attempt, program in enumerate(programs, start=1):
            try:
                execution = sandbox.run_code(program, timeout=None)  # the policy's limits hold
            except SandboxNotFoundException as gone:  # somebody stopped it, or its time is over
                print(f"  attempt {attempt}: the sandbox has ended: {gone}")
                return False
            words, again = feedback(execution)
            print(f"  attempt {attempt}: {words}")
            if not again:
                return execution.error is None
    return False


def main():
    tasks = json.loads((HERE / "programs.json").read_text())
    solved = [solve(task["task"], task["programs"]) for task in tasks]
    print(f"solved {sum(solved)} of {len(solved)}")
    return 0 if solved == [True, True, False, False] else 1


if __name__ == "__main__":
    sys.exit(main())

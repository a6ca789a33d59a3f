#!/usr/bin/env python3
"""An agent's loop around sbx: write a program, run it, read the verdict, tell the model, try again.

The model is canned here: programs.json has for each task the programs that it writes, one after the other. What matters is
feedback(): it turns a record into words that a model can act on, and says when trying again can't help.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

SBX = os.environ.get("SBX", "sbx")
CPU_TIME = os.environ.get("CPU_TIME", "1s")  # more on a slow machine
LIMITS = ["-p", "python", "--timeout", "30s", "--cpu-time", CPU_TIME, "--memory", "256M", "--output", "64K"]


def run(program, directory):
    """The record of one run. sbx's exit status is not needed: the record says what happened."""
    (pathlib.Path(directory) / "program.py").write_text(program)
    done = subprocess.run([SBX, "run", "--json", *LIMITS, "program.py"], cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout)


def feedback(record):
    """What to tell the model, and whether it may try again."""
    outcome = record["outcome"]
    if outcome["success"]:
        return record["stdout"]["text"].strip(), False
    refused = [denial for denial in record["denials"] if denial["kind"] != "path"]
    if refused:
        lines = [f"{denial['what']}: {denial['rule']}" for denial in refused]
        return "This is policy, retrying can't help. Refused: " + "; ".join(lines), False
    if outcome["status"] == "over-budget":
        return f"Stopped: {outcome['detail']}. Write a program that needs less.", True
    if outcome["status"] == "lost":
        return f"It was ended from outside, and what it did until then is done: {outcome['detail']}", False
    if outcome["status"] == "setup-failed":
        return f"sbx could not run it, which is not the program's fault: {outcome['detail']}", False
    last = record["stderr"]["text"].strip().splitlines()[-1:] or [outcome["detail"]]
    return f"It failed: {last[0]}", True


def network_is_off(record):
    """No network is granted: what failed to reach a name or an address fails again."""
    return any(word in record["stderr"]["text"] for word in ("Name or service not known", "Temporary failure in name resolution", "Network is unreachable"))


def solve(task, programs):
    print(f"task: {task}")
    with tempfile.TemporaryDirectory() as directory:
        for attempt, program in enumerate(programs, start=1):
            record = run(program, directory)
            words, again = feedback(record)
            if again and network_is_off(record):
                words, again = "This is policy, retrying can't help: the program has no network.", False
            print(f"  attempt {attempt}: {words}")
            if not again:
                return record["outcome"]["success"]
    return False


def main():
    tasks = json.loads((pathlib.Path(__file__).parent / "programs.json").read_text())
    solved = [solve(task["task"], task["programs"]) for task in tasks]
    print(f"solved {sum(solved)} of {len(solved)}")
    return 0 if solved == [True, True, False, False] else 1


if __name__ == "__main__":
    sys.exit(main())

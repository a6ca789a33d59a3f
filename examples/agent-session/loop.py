#!/usr/bin/python3
"""Edits, tests and commits a project in one session, then decides by what changed. Run it in a git repository."""

import json
import os
import subprocess
import sys

SESSION = f"agent-{os.getpid()}"
EXPECTED = {"calculator.py"}


def session(*words, check=True, **options):
    return subprocess.run(["sbx", "session", *words], check=check, text=True, **options)


def call(*command, code=None):
    """One call: its record, whatever became of it."""
    words = ["exec", SESSION, "--json", *(["--lang", "python", "-"] if code else ["--", *command])]
    return json.loads(session(*words, check=False, input=code, stdout=subprocess.PIPE).stdout)


def work():
    tests = ("python3", "-m", "unittest", "-q")
    # What a model would do, step by step: look, edit, test again, commit.
    if not call(*tests)["outcome"]["success"]:
        call(code='import pathlib\nf = pathlib.Path("calculator.py")\nf.write_text(f.read_text().replace(" + 1", ""))')
    record = call(*tests)
    if not record["outcome"]["success"]:
        sys.exit(f"the tests still fail: {record['outcome']['detail']}\n{record['stderr']['text']}")
    call("git", "-c", "user.name=Agent", "-c", "user.email=agent@example.org", "commit", "-qam", "Give the mean without adding one")


def decide():
    """Applies the changes if nothing but the expected files and git's own records changed."""
    session("diff", SESSION)
    changes = json.loads(session("changes", "--json", SESSION, stdout=subprocess.PIPE).stdout)["changes"]
    paths = {change["path"] for change in changes}
    others = {path for path in paths - EXPECTED if not path.startswith((".git/", "__pycache__"))}
    if others:
        sys.exit(f"not applied: also changed: {', '.join(sorted(others))}")
    session("apply", "--yes", SESSION, *EXPECTED, ".git/**")


def main():
    session("start", SESSION, "--policy", "agent", stdout=subprocess.DEVNULL)
    try:
        work()
        decide()
    finally:
        session("stop", SESSION)


if __name__ == "__main__":
    main()

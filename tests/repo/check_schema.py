#!/usr/bin/env python3
"""check_schema.py SOURCE CACHE: the shipped policies and the examples are valid under the JSON Schema that they name.

The linter is npm's @taplo/cli, which is kept in CACHE; 77 (a visible skip) if it is unavailable."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

VERSION = "0.7.0"


def skip(words):
    print(f"skipped: {words}")
    sys.exit(1 if os.environ.get("SBX_NO_SKIPS") else 77)


def taplo(cache):
    program = cache / "node_modules/.bin/taplo"
    if shutil.which("node") is None:
        skip("node is not installed")
    if program.exists():
        return program
    npm = shutil.which("npm")
    if npm is None:
        skip("npm is not installed")
    cache.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", cache, f"@taplo/cli@{VERSION}"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        skip(f"npm can't install @taplo/cli: {done.stderr.strip()[-200:]}")
    return program


def lint(program, files):
    # Uses only the schema that a file names: fetches no catalogue.
    return subprocess.run([program, "lint", "--no-auto-config", *map(str, files)], capture_output=True, text=True, timeout=120)


def main():
    source, cache = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    policies = sorted((source / "policies").glob("*.toml"))
    for path in policies:
        if not path.read_text().startswith("#:schema ../schema/sbx.policy.1.json\n"):
            sys.exit(f"{path} does not begin with its #:schema line")
    program = taplo(cache)
    done = lint(program, policies)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    # The twin: the linter finds a mistake that only the schema knows.
    with tempfile.TemporaryDirectory() as directory:
        wrong = pathlib.Path(directory) / "wrong.toml"
        wrong.write_text(f"#:schema {source}/schema/sbx.policy.1.json\nschema = 1\n[limits]\nmemry = \"1G\"\n")
        done = lint(program, [wrong])
        if done.returncode == 0:
            sys.exit(f"a misspelt key is not found:\n{done.stdout}{done.stderr}")
    print(f"{len(policies)} policies hold under the schema")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""check_sarif.py SBX CACHE: the output of `policy check --format sarif` is valid under the official schema of SARIF
2.1.0.

The schema comes from npm's @microsoft/jest-sarif, which is kept in CACHE; 77 (a visible skip) if it is unavailable."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PACKAGE = "@microsoft/jest-sarif@1.0.0-beta.0"

MISTAKES = {
    "many": 'schema = 1\nmemry = 3\n[limits]\nmemory = "512X"\nwall_time = 30\n[filesystem]\nread = ["/proc", 3]\n',
    "syntax": "schema = 1\n[limits\n",
    "none": "schema = 1\n",
    "odd name \u00e9 %": "schema = 2\n",
}


def skip(words):
    print(f"skipped: {words}")
    sys.exit(1 if os.environ.get("SBX_NO_SKIPS") else 77)


def schema(cache):
    found = lambda: sorted(cache.glob("node_modules/@microsoft/jest-sarif/lib/schemas/sarif-2.1.0*.json"))  # noqa: E731
    if not found():
        npm = shutil.which("npm")
        if npm is None:
            skip("npm is not installed")
        cache.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--legacy-peer-deps", "--prefix", cache,
                               PACKAGE], capture_output=True, text=True, check=False)
        if done.returncode != 0 or not found():
            skip(f"npm can't install {PACKAGE}: {done.stderr.strip()[-200:]}")
    return json.loads(found()[0].read_text())


def main():
    sbx, cache = sys.argv[1], pathlib.Path(sys.argv[2])
    try:
        import jsonschema
    except ImportError:
        skip("python3-jsonschema is not installed")
    rules = schema(cache)
    validator = jsonschema.validators.validator_for(rules)(rules)
    problems = []
    with tempfile.TemporaryDirectory() as directory:
        for name, text in MISTAKES.items():
            path = pathlib.Path(directory) / f"{name}.toml"
            path.write_text(text)
            done = subprocess.run([sbx, "policy", "check", "--format", "sarif", path], capture_output=True, text=True, check=False)
            log = json.loads(done.stdout)
            problems += [f"{name}: {'/'.join(map(str, error.path))}: {error.message}" for error in validator.iter_errors(log)]
            if (name == "none") != (log["runs"][0]["results"] == []):
                problems.append(f"{name}: {log['runs'][0]['results']}")
    # The twin: the schema rejects invalid output.
    log["runs"][0]["results"].append({"ruleId": "x"})
    if not list(validator.iter_errors(log)):
        problems.append("a result without a message is not found")
    print("\n".join(problems) or "SARIF 2.1.0: good")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""check_documents.py SOURCE SBX: nothing that a user can type or read is missing from the documents."""

import json
import pathlib
import re
import subprocess
import sys
import tomllib

problems = []


def expect(condition, words):
    if not condition:
        problems.append(words)


def options_of(sbx):
    text = subprocess.run([sbx, "run", "--help"], check=True, capture_output=True, text=True).stdout
    names = set()
    for line in text.splitlines():
        if re.match(r"^  (    --|-\w)", line):
            names.update(re.findall(r"(?<![\w-])(--[a-z][a-z-]*|-[A-Za-z])(?=[, =\[]|$)", line[:30] if line[30:31].isalpha() else line))
    return names


def check_options(source, sbx):
    names = options_of(sbx)
    expect(len(names) > 30, f"only {len(names)} options were found in the help")
    page = (source / "man/sbx-run.1").read_text().replace("\\-", "-")
    page_names = {"-" + name for name in re.findall(r"Fl (-?[A-Za-z][a-z-]*)", page)}
    bash = set(re.findall(r"(?<![\w-])--?[A-Za-z][a-z-]*", (source / "completions/sbx.bash").read_text()))
    zsh = set(re.findall(r"'\*(--?[A-Za-z][a-z-]*?)=?-?\[", (source / "completions/_sbx").read_text()))
    fish = (source / "completions/sbx.fish").read_text()
    fish_names = {"--" + name for name in re.findall(r" -l ([a-z-]+)", fish)} | {"-" + name for name in re.findall(r" -s (\w)", fish)}
    for place, known in (("man/sbx-run.1", page_names), ("sbx.bash", bash), ("_sbx", zsh), ("sbx.fish", fish_names)):
        for name in sorted(names - known):
            problems.append(f"{place} lacks the option {name}")


def flat(table, prefix=""):
    for name, value in table.items():
        yield prefix + name
        if isinstance(value, dict):
            yield from flat(value, prefix + name + ".")


def check_keys(source):
    keys = re.findall(r'\{"([a-z_.]+)",\s*Type::', (source / "src/policy/keys.cpp").read_text())
    expect(len(keys) > 40, f"only {len(keys)} keys were found")
    page = (source / "man/sbx-policy.5").read_text()
    tests = "".join(path.read_text() for path in (source / "tests/unit").glob("policy_*"))
    shipped = set()
    for path in (source / "policies").glob("*.toml"):
        shipped.update(flat(tomllib.loads(path.read_text())))
    for key in keys:
        expect(f".It Ic {key}\n" in page, f"sbx-policy(5) lacks the key {key}")
        expect(re.search(rf"\b{re.escape(key.rpartition('.')[2])}\b", tests), f"no unit test of policies names {key}")
        expect(key in shipped, f"no shipped policy sets {key}")


def check_record(source):
    schema = json.loads((source / "schema/sbx.run.1.json").read_text())
    page = (source / "man/sbx-record.5").read_text()
    names = [name for name in (*schema["properties"], *schema["properties"]["outcome"]["properties"]) if not name.endswith("_b64")]
    for name in names:
        expect(re.search(rf"^\.(It Ic|Ic)(.*[ ,])?{name}\b", page, re.MULTILINE), f"sbx-record(5) lacks the field {name}")
    for status in schema["properties"]["outcome"]["properties"]["status"]["enum"]:
        expect(f".It Cm {status}" in page, f"sbx-record(5) lacks the status {status}")


def check_exit_statuses(source):
    header = (source / "include/sbx/outcome.hpp").read_text()
    page = (source / "man/sbx-run.1").read_text()
    found = re.findall(r"inline constexpr int (\w+) = (\d+);", header)
    expect(len(found) >= 8, f"only {len(found)} exit statuses were found")
    for name, number in found:
        expect(f".It {number}\n" in page, f"sbx-run(1) lacks the exit status {number} ({name})")


CODE = r'"([a-z0-9]+(?:-[a-z0-9]+)+)"'
CODE_PLACES = [
    r"\bcode = (?:\w+ \? \"[^\"]*\" : )?" + CODE,
    r"\b(?:problem|refuse|usage|wrong|fail_errno)\(\s*(?:[^\"();]*?,\s*)?(?:[^\"();]*\? )?" + CODE,
    r"\? " + CODE + " : " + CODE + ",",
    r"constexpr const char\* k\w+ = " + CODE,
]
POLICY_PLACES = CODE_PLACES + [r"\{(?:\w+ \? )?" + CODE + "(?: : " + CODE + ")?,"]


def codes_in(source):
    codes = {}
    for path in (source / "src").rglob("*.[ch]pp"):
        name = path.relative_to(source / "src")
        if name.name in ("keys.cpp", "codes.cpp") or name.parts[0] == "lib":
            continue
        text = path.read_text()
        for pattern in POLICY_PLACES if name.parts[0] == "policy" else CODE_PLACES:
            for match in re.finditer(pattern, text):
                codes.update({code: name for code in match.groups() if code})
    return codes


def check_codes(source):
    """Each code that an error can carry is explained, in its page, and each that is explained exists."""
    table = re.findall(r'\{"([A-Za-z0-9-]+)", CodeOf::', (source / "src/cli/codes.cpp").read_text())
    page = (source / "man/sbx-record.5").read_text()
    found = codes_in(source)
    expect(len(found) > 100, f"only {len(found)} error codes were found")
    for code, name in sorted(found.items()):
        known = code in table or code.startswith("setup-")
        expect(known, f"src/cli/codes.cpp lacks the code {code} of src/{name}: sbx policy explain and SARIF read it there")
    for code in table:
        expect(code in found or code in ("setup-STAGE", "usage"), f"no error carries the code {code} of src/cli/codes.cpp")
        expect(f".It Cm {code}\n" in page, f"sbx-record(5) lacks the code {code}")


def check_groups(source):
    groups = re.findall(r'\{"(@[a-z-]+)"', (source / "src/plan/filter/table.cpp").read_text())
    expect(len(groups) > 20, f"only {len(groups)} groups were found")
    page = (source / "man/sbx-policy.5").read_text()
    completion = (source / "completions/sbx.bash").read_text()
    for group in groups:
        expect(f".It Cm {group}\n" in page, f"sbx-policy(5) lacks the group {group}")
        expect(group in completion, f"the completions lack the group {group}")


def check_lint(source):
    try:
        lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *sorted(map(str, (source / "man").glob("*.[0-9]")))],
                              capture_output=True, text=True)
    except FileNotFoundError:
        print("mandoc is not installed: pages not linted")
        return
    problems.extend(lint.stdout.splitlines())


def main():
    source, sbx = pathlib.Path(sys.argv[1]), sys.argv[2]
    check_options(source, sbx)
    check_keys(source)
    check_record(source)
    check_exit_statuses(source)
    check_codes(source)
    check_groups(source)
    check_lint(source)
    print("\n".join(problems) or "every option, key, field and status is documented")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()

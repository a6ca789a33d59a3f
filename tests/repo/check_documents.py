#!/usr/bin/env python3
"""check_documents.py SOURCE SBX: checks that help, pages, completions and the record's schema agree. See
check_tested.py."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

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


def offered(sbx, *words):
    """What completion offers after these words."""
    text = subprocess.run([sbx, "__complete", *words], check=True, capture_output=True, text=True).stdout
    return {line.split("\t")[0] for line in text.splitlines()[1:]}


def check_options(source, sbx):
    names = options_of(sbx)
    expect(len(names) > 30, f"only {len(names)} options were found in the help")
    page = (source / "man/sbx-run.1").read_text().replace("\\-", "-")
    page_names = {"-" + name for name in re.findall(r"Fl (-?[A-Za-z][a-z-]*)", page)}
    for place, known in (("man/sbx-run.1", page_names), ("completion", offered(sbx, "run", "-"))):
        for name in sorted(names - known):
            problems.append(f"{place} lacks the option {name}")


def check_record(source):
    schema = json.loads((source / "schema/sbx.run.1.json").read_text())
    page = (source / "man/sbx-record.5").read_text()
    names = [name for name in (*schema["properties"], *schema["properties"]["outcome"]["properties"]) if not name.endswith("_b64")]
    for name in names:
        expect(re.search(rf"^\.(It Ic|Ic)(.*[ ,])?{name}\b", page, re.MULTILINE), f"sbx-record(5) lacks the field {name}")
    for status in schema["properties"]["outcome"]["properties"]["status"]["enum"]:
        expect(f".It Cm {status}" in page, f"sbx-record(5) lacks the status {status}")


# The manifest of a change set is not JSON; and a policy is a file of the user, which no command prints.
NO_SCHEMA = {"sbx.set/1"}
NO_DOCUMENT = {"sbx.policy.1.json"}


def check_schemas(source):
    """A document that names its format has a schema of that name, and the other way round; and a test holds each both ways."""
    texts = [path.read_text() for path in (source / "src").rglob("*") if path.suffix in (".cpp", ".hpp")]
    named = {f"sbx.{name}/{number}" for text in texts for name, number in re.findall(r'"sbx\.([a-z]+)/(\d+)"', text)}
    files = {path.name for path in (source / "schema").glob("*.json")}
    expect(len(named) > 8, f"only {len(named)} names of documents were found")
    for name in sorted(named - NO_SCHEMA):
        expect(name.replace("/", ".") + ".json" in files, f"the document {name} has no schema")
    for name in sorted(NO_SCHEMA):
        expect(name in named and name.replace("/", ".") + ".json" not in files, f"{name} need not be excepted")
    tests = "".join(path.read_text() for path in (source / "tests").rglob("test_*.py"))
    for name in sorted(named - NO_SCHEMA):
        expect(f'schemas.Held("{name}"' in tests, f"no test holds documents against the schema of {name}: tests/harness/schemas.py")
    for name in sorted(files):
        document = re.sub(r"\.(\d+)\.json$", r"/\1", name)
        expect((document in named) != (name in NO_DOCUMENT), f"{document}: a document has this name, or the schema is excepted")


def check_groups(source, sbx):
    groups = re.findall(r'\{"(@[a-z-]+)"', (source / "src/plan/filter/table.cpp").read_text())
    expect(len(groups) > 20, f"only {len(groups)} groups were found")
    for group in sorted(set(groups) - offered(sbx, "policy", "explain", "@")):
        problems.append(f"completion lacks the group {group}")


# Errors of a generator or an author that no linter reports.
MALFORMED = [
    (r"^\.It .*\bOp\b.*\bOp\b", "Op takes the rest of the line: write Oo ... Oc"),
    (r"^(Sbx\b|(?!Node\.js)[A-Z][a-z]+(-[a-z]+)?(\.[a-z_]+|\([1-9]\)))", "a name that must be typed so begins with a capital letter"),
    (r"[?!.]\.$(?<!\.\.\.)", "two marks at the end of a sentence"),
    (r"^\.[PDB]?q Ql .* No ", "the closing quotation mark comes too late: write Po ... Pc"),
]


def check_form(source):
    for page in sorted((source / "man").glob("*.[0-9]")):
        for number, line in enumerate(page.read_text().splitlines(), 1):
            for pattern, words in MALFORMED:
                expect(not re.search(pattern, line), f"{page.name}:{number}: {words}: {line}")


def check_lint(source):
    try:
        lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *sorted(map(str, (source / "man").glob("*.[0-9]")))],
                              capture_output=True, text=True)
    except FileNotFoundError:
        print("mandoc is not installed: pages not linted")
        return
    problems.extend(lint.stdout.splitlines())


def check_width(source):
    """At 80 columns no line of a page is cut or runs over: code and tables are narrow enough."""
    if shutil.which("man") is None:
        print("man is not installed: the width of the pages is not looked at")
        return
    narrow = {**os.environ, "MANWIDTH": "80", "MAN_KEEP_FORMATTING": "", "LC_ALL": "C.UTF-8", "GROFF_NO_SGR": "1"}
    for page in sorted((source / "man").glob("*.[0-9]")):
        shown = subprocess.run(["man", "-l", page], env=narrow, capture_output=True, text=True, check=True)
        for line in re.sub(".\b", "", shown.stdout).expandtabs().splitlines():
            expect(len(line) <= 80, f"{page.name}: wider than 80 columns: {line}")
        expect("break line" not in shown.stderr, f"{page.name}: {shown.stderr.splitlines()[:1]}")


def main():
    source, sbx = pathlib.Path(sys.argv[1]), sys.argv[2]
    check_options(source, sbx)
    check_record(source)
    check_schemas(source)
    check_groups(source, sbx)
    check_form(source)
    check_lint(source)
    check_width(source)
    print("\n".join(problems) or "every option, field and group is documented and completed")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""check_tested.py SOURCE DOCS: everything that a user can type or read (`sbx-docs list`) is in its page, in a shipped
policy if it belongs in one, and in a test. A test names a thing by a literal of its own, never by a comment or a
longer word."""

import ast
import pathlib
import re
import subprocess
import sys
import tomllib

problems = []


def expect(condition, words):
    if not condition:
        problems.append(words)


def python_literals(text):
    """(literal, the words of the function around it) for each text of a Python file except docstrings."""
    tree = ast.parse(text)
    explaining = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)}

    def words_of(node):
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.value
            elif isinstance(part, ast.Call):
                yield getattr(part.func, "attr", getattr(part.func, "id", ""))

    def visit(node, words):
        if isinstance(node, ast.FunctionDef):
            words = frozenset(words_of(node))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in explaining:
            yield node.value, words
        for child in ast.iter_child_nodes(node):
            yield from visit(child, words)

    yield from visit(tree, frozenset())


def other_literals(text):
    """The same for C++ and shell scripts: quoted text, and the words of shell lines."""
    for line in text.splitlines():
        code = re.sub(r"(^|\s)(//|#).*", "", line) if not line.lstrip().startswith(("R\"", "\"")) else line
        words = frozenset(re.findall(r'"((?:[^"\\]|\\.)*)"', code)) | frozenset(code.split())
        for word in words:
            yield word, words


class Tests:
    def __init__(self, source):
        self.found = []
        for path in sorted((source / "tests").rglob("*")):
            if path.suffix == ".py" and path.parent.name != "repo":
                self.found += python_literals(path.read_text())
            elif path.suffix in (".cpp", ".hpp", ".sh") or path.is_file() and path.name in ("walk", "session"):
                self.found += other_literals(path.read_text())
        self.literals = {literal for literal, _ in self.found}
        self.joined = "\n".join(self.literals)

    def say(self, word):
        """A literal that equals the word."""
        return word in self.literals

    def mention(self, word):
        """A literal that contains the word as a whole."""
        return re.search(rf"(?<![\w.@-]){re.escape(word)}(?![\w.-]|-\w)", self.joined) is not None

    def give(self, option, command):
        """The option, alone or with its value, in a function that also contains the last word of its command."""
        own = command.rpartition(" ")[2]
        return any((literal == option or literal.startswith(option + "=") or (len(option) == 2 and literal.startswith(option)
                    and not literal.startswith("--"))) and (own in ("run", "") or own in words) for literal, words in self.found)


def listed(docs):
    text = subprocess.run([docs, "list"], check=True, capture_output=True, text=True).stdout
    things = {}
    for line in text.splitlines():
        kind, _, name = line.partition(" ")
        things.setdefault(kind, []).append(name)
    for kind, least in (("code", 140), ("command", 18), ("group", 39), ("key", 50), ("option", 130), ("status", 14)):
        expect(len(things.get(kind, [])) >= least, f"only {len(things.get(kind, []))} of kind {kind} are listed")
    return things


def page(source, name):
    return (source / "man" / name).read_text().replace("\\-", "-")


def flat(table, prefix=""):
    for name, value in table.items():
        yield prefix + name
        if isinstance(value, dict):
            yield from flat(value, prefix + name + ".")


def statuses_of(source):
    """The keys of STATUSES in the test that causes each status."""
    for node in ast.parse((source / "tests/cli/test_statuses.py").read_text()).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "STATUSES":
            return {ast.literal_eval(key) for key in node.value.keys}
    return set()


def check_commands(source, tests, names):
    text = page(source, "sbx.1") + page(source, "sbx-run.1") + page(source, "sbx-session.1")
    for name in names:
        expect(f"Nm sbx Cm {name}" in text, f"sbx(1) lacks the command {name}")
        expect(any(set(name.split()) <= words for literal, words in tests.found if literal == name.split()[0]) or tests.say(name),
               f"no test gives the command {name}")


def check_options(source, tests, names):
    pages = {"run": page(source, "sbx-run.1"), "": page(source, "sbx.1")}
    for name in names:
        command, _, option = name.rpartition(" ")
        if option in ("--help", "-h", "--color"):  # the same everywhere; one test covers every command
            continue
        text = page(source, "sbx-session.1") if command.startswith("session ") else pages.get(command, pages[""])
        expect(re.search(rf"\bFl {re.escape(option[1:])}(?![\w-])", text), f"the page of sbx {command} lacks {option}")
        expect(tests.give(option, command), f"no test gives {option} to sbx {command}")


def check_keys(source, tests, names):
    shipped, text = set(), page(source, "sbx-policy.5")
    for path in (source / "policies").glob("*.toml"):
        shipped.update(flat(tomllib.loads(path.read_text())))
    for name in names:
        expect(f".It Ic {name}\n" in text, f"sbx-policy(5) lacks the key {name}")
        expect(name in shipped, f"no shipped policy sets {name}")
        expect(tests.mention(name), f"no test names the key {name}")


def check_groups(source, tests, names):
    text, policies = page(source, "sbx-policy.5"), "".join(path.read_text() for path in (source / "policies").glob("*.toml"))
    for name in names:
        expect(f".It Cm {name}\n" in text, f"sbx-policy(5) lacks the group {name}")
        expect(re.search(rf"{name}(?![\w-])", policies), f"no shipped policy names the group {name}")
        expect(tests.say(name), f"no test names the group {name}")


# Texts that look like a code but are something else.
NOT_CODES = {
    "apt-get", "bring-out", "built-in", "close-context", "open-context", "cargo-clippy", "cargo-fmt", "cargo-miri", "cgroup-v1", "cgroup-v2", "clippy-driver", "command-line", "copy-on-write", "dictionaries-common", "docker-default",
    "inactive-or-failed", "injected-parameters", "kernel-counter", "mask-file", "mask-directory", "masked-eq", "my-policy", "os-release", "outer-proc", "output-cut", "over-budget", "own-uid", "same-uid", "packed-refs", "raises-exception", "read-only", "read-write", "rebase-apply", "rebase-merge", "rm-r",
    "rust-analyzer", "rust-gdb", "rust-toolchain", "sbx-attach", "sbx-init", "sbx-inside", "sbx-pictures", "sbx-probe", "shell-session", "skip-execution", "task-clock", "trusted-policy", "ts-node", "utf-8",
    "volta-shim", "x86-64",
    "default-jdk-headless", "golang-go", "php-cli", "r-base-core",  # packages of interpreters
    "is-directory", "no-session", "no-space", "not-a-directory", "not-permitted", "time-out",  # kinds, src/base/obstacle.hpp
}


def codes_in(source):
    """Every text of the program that looks like a code, by file."""
    found = {}
    for path in sorted((source / "src").rglob("*.[ch]pp")):
        # line_editor.cpp names functions of libedit.
        if path.name not in ("codes.cpp", "options.cpp", "commands.cpp", "mcp_options.cpp", "session_options.cpp", "line_editor.cpp") and path.parts[-2] not in ("lib", "completions"):
            for code in re.findall(r'"([a-z][a-z0-9]*(?:-[a-z0-9]+)+)"', re.sub(r"//.*", "", path.read_text())):
                found.setdefault(code, path.relative_to(source))
    return {code: path for code, path in found.items() if code not in NOT_CODES}


def check_codes(source, tests, names):
    text, found = page(source, "sbx-record.5"), codes_in(source)
    for code, path in found.items():
        expect(code in names or code.startswith("setup-"),
               f"src/record/codes.cpp lacks {code} of {path}: sbx policy explain and SARIF read it there")
    for name in names:
        expect(f".It Cm {name}\n" in text, f"sbx-record(5) lacks the code {name}")
        if name == "setup-STAGE":
            expect(any(literal.startswith("setup-") for literal in tests.literals), "no test names a set-up stage")
            continue
        expect(name in found or "-" not in name, f"no error carries the code {name}")
        expect(tests.say(name), f"no test names the code {name}")


def check_statuses(source, names):
    text, tested = page(source, "sbx-run.1"), statuses_of(source)
    for name in names:
        expect(f".It {name}\n" in text, f"sbx-run(1) lacks the exit status {name}")
        expect((int(name) if name.isdigit() else name) in tested, f"tests/cli/test_statuses.py does not bring about {name}")


def main():
    source, docs = pathlib.Path(sys.argv[1]), sys.argv[2]
    tests, things = Tests(source), listed(docs)
    check_commands(source, tests, things["command"])
    check_options(source, tests, things["option"])
    check_keys(source, tests, things["key"])
    check_groups(source, tests, things["group"])
    check_codes(source, tests, things["code"])
    check_statuses(source, things["status"])
    print("\n".join(problems) or "each command, option, key, group, code and status has its page and a test")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()

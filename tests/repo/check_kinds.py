#!/usr/bin/env python3
"""check_kinds.py SOURCE: a second kind of a thing is a value chosen once, not a condition in many places.

A call differs from a run in supervise/tree and in the child's tables; a tier differs from another in plan/tier and in the
table of stages."""

import pathlib
import re
import sys

# What only asks for the kind, and where that may be asked.
KINDS = [
    (re.compile(r"\b(is_call|in_session|holds_calls)\b"), ("plan/tier/", "supervise/tree.")),
    (re.compile(r"\bTierKind::\w+|\btier\s*[!=]=|[!=]=\s*[\w.>-]*\btier\b"), ("plan/tier/", "spawn/child_stages.")),
    (re.compile(r"\bRole::(run|holder|call)\b"), ("spawn/", "run/call.cpp", "run/held_sandbox.cpp")),
]
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def without_comments(text):
    return COMMENT.sub(lambda comment: "\n" * comment.group().count("\n"), text)


def problems_of(name, text):
    for number, line in enumerate(without_comments(text).splitlines(), 1):
        for pattern, places in KINDS:
            found = pattern.search(line)
            if found and not name.startswith(places):
                yield f"src/{name}:{number}: {found.group()}: ask what differs, not which kind it is; the kinds are known in {', '.join(places)}"


def main():
    # The test can fail.
    if not list(problems_of("run/x.cpp", "if (tier == TierKind::namespaces) f();\nif (is_call) g();\n")):
        sys.exit("check_kinds.py finds nothing in an example that has two")
    source = pathlib.Path(sys.argv[1]) / "src"
    problems = [problem for path in sorted(source.rglob("*.?pp")) for problem in problems_of(path.relative_to(source).as_posix(), path.read_text())]
    print("\n".join(problems))
    sys.exit(1 if problems else 0)


main()

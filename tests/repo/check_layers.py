#!/usr/bin/env python3
"""check_layers.py SOURCE: which directory of src may include which, and where third-party headers may appear."""

import pathlib
import re
import sys

# A directory may include itself, base, include/sbx and those listed here. Peers of one layer do not know each other.
VALUES = {"policy", "host", "plan"}
MECHANISMS = {"spawn", "supervise", "workspace", "network", "cgroup"}
BELOW_FRONT_ENDS = {"run", "record", "changes", "worker"}
MAY_INCLUDE = {
    "base": set(),
    "policy": set(),
    "host": set(),
    "plan": {"policy", "host"},
    "protocol": {"policy", "plan", "lib"},  # lib/members.hpp
    "spawn": VALUES,
    "supervise": set(),  # it gets values and descriptors
    "workspace": VALUES,
    "network": VALUES,
    "cgroup": VALUES,
    "hints": VALUES,
    "changes": VALUES | {"protocol", "workspace"},
    "transfer": VALUES | {"workspace"},
    "run": VALUES | MECHANISMS | {"changes", "hints"},
    "record": VALUES | {"run", "changes", "workspace", "protocol", "lib"},
    "worker": VALUES | {"run", "record", "changes"},
    "session": VALUES | {"protocol", "run", "record", "changes", "worker", "workspace", "cgroup"},
    # What front ends use of sessions.
    "client": VALUES | {"protocol", "run", "record", "changes", "session", "transfer"},
    "agent": VALUES | {"run", "record", "session", "client", "transfer"},
    "mcp": VALUES | {"protocol", "run", "record", "session", "client", "agent"},
    # Front ends: run/launch.hpp starts a sandbox, and they use no mechanism directly.
    "doctor": VALUES | BELOW_FRONT_ENDS,
    "cli": VALUES | BELOW_FRONT_ENDS | {"protocol", "session", "client", "doctor", "agent", "mcp", "transfer"},
    "lib": set(),
    "main.cpp": {"cli", "worker", "transfer"},
}

# Header pattern, where it may appear, why.
FENCES = [
    (r"^CLI/", {"cli/app.cpp"}, "the command line has one definition"),
    (r"^toml\+\+/", {"policy/syntax.cpp"}, "nothing else knows TOML"),
    (r"^nlohmann/", {"base/json.hpp", "lib/fields.hpp", "plan/program/proxies.cpp"}, "JSON is written in one place, and read from what volta keeps"),
    (r"^(iostream|regex|fstream|sstream)$", set(), "static constructors and locales cost time at every start"),
    (r"^linux/", {"base/", "plan/filter/", "plan/landlock", "spawn/", "supervise/", "workspace/", "host/", "doctor/", "network/", "cgroup/", "changes/",
                   "policy/symbols.cpp"},
     "kernel headers stay with the mechanism"),
]

# The child between clone and exec: libc, the kernel and its own flat headers, nothing that owns or allocates.
CHILD_SOURCES = re.compile(r"^spawn/(child\w*|payload)\.(cpp|hpp)$")
CHILD_STANDARD = {"array", "cerrno", "climits", "csignal", "cstddef", "cstdint", "cstring", "algorithm", "initializer_list", "iterator",
                  "type_traits"}
CHILD_OWN = re.compile(r"^(spawn/(child\w*|payload|landlock|handshake|relative|faults)\.hpp|base/(control|mount_kind|private_disk|resident|socket_request)\.hpp|plan/tier/kind\.hpp)$")

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)


def problems_of(path, source):
    name = path.relative_to(source / "src").as_posix()
    directory = name.split("/")[0]
    if directory not in MAY_INCLUDE:
        yield f"src/{name}: check_layers.py does not know the directory {directory}"
        return
    for bracket, header in INCLUDE.findall(path.read_text()):
        other = header.split("/")[0]
        if bracket == '"' and other != directory and other != "base" and other not in MAY_INCLUDE[directory]:
            yield f"src/{name}: {directory} may not include {header}"
        if bracket == '"' and directory == "lib" and other != "lib":
            yield f"src/{name}: the public library includes nothing of this tree but its own headers and include/sbx"
        for pattern, places, why in FENCES:
            if re.search(pattern, header) and not any(name.startswith(place) for place in places):
                yield f"src/{name}: <{header}>: {why}"
        if CHILD_SOURCES.match(name):
            is_c = bracket == "<" and (header.endswith(".h") or header in CHILD_STANDARD)
            if not is_c and not CHILD_OWN.match(header):
                yield f"src/{name}: the child may not include {header}"


def public_problems(source):
    for path in sorted((source / "include" / "sbx").glob("*.hpp")):
        for bracket, header in INCLUDE.findall(path.read_text()):
            if bracket == '"' or ("/" in header and not header.startswith("sbx/")):
                yield f"{path.relative_to(source)}: a public header may not include {header}"


def main():
    source = pathlib.Path(sys.argv[1])
    files = sorted(path for path in (source / "src").rglob("*") if path.suffix in (".cpp", ".hpp"))
    if len(files) < 20:
        sys.exit(f"only {len(files)} files below {source}/src")
    problems = [problem for path in files for problem in problems_of(path, source)]
    problems += public_problems(source)
    print("\n".join(problems) or f"{len(files)} files, all arrows point down")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""check_by_name.py SOURCE: system calls that change files by name, or their modes, owners and times, stand in one place."""

import pathlib
import re
import sys

# The program and other users can swap a name between two calls: src/base/held.hpp says how sbx acts instead.
CALLS = ["chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown", "fchownat", "utime", "utimes", "lutimes", "futimes", "futimens",
         "futimesat", "utimensat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "remove", "mkdir", "mkdirat", "mkdtemp",
         "symlink", "symlinkat", "link", "linkat", "mknod", "mknodat", "mkfifo", "mkfifoat"]
# The child acts in the new root before any program starts.
PLACES = re.compile(r"^src/(base/held\.cpp|spawn/child\w*\.(cpp|hpp))$")
CALL = re.compile(r"(?:::|\bsyscall\(\s*(?:SYS_|__NR_))(%s)\b" % "|".join(CALLS))
# Of the C library without "::", and of the C++ library.
OTHER = re.compile(r"(?<![\w.>:])(?:(?:%s)\s*\(\s*[a-z_]+(?:\.get\(\)|\.c_str\(\)))|std::(?:remove|rename)\s*\(\s*\"|std::filesystem" %
                   "|".join(call for call in CALLS if call not in ("remove", "link", "rename")))


def problems_of(name, text):
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("//")[0]
        found = [match for match in CALL.finditer(code) if not re.search(r"\w$", code[:match.start()])] or OTHER.findall(code)
        if found and not PLACES.match(name):
            yield f"{name}:{number}: changes a file by its name: use src/base/held.hpp: {line.strip()}"


def main():
    source = pathlib.Path(sys.argv[1])
    files = sorted(path for path in (source / "src").rglob("*") if path.suffix in (".cpp", ".hpp"))
    problems = [problem for path in files for problem in problems_of(path.relative_to(source).as_posix(), path.read_text())]
    # The twin: the pattern finds what stands in the one place.
    held = (source / "src/base/held.cpp").read_text()
    missed = [call for call in ("fchmod", "fchownat", "futimens", "renameat2", "unlinkat", "mkdirat", "symlinkat", "linkat", "mknodat")
              if not any(call == match.group(1) for match in CALL.finditer(held))]
    if len(files) < 20 or missed:
        sys.exit(f"{len(files)} files below {source}/src; not found in src/base/held.cpp: {missed}")
    print("\n".join(problems) or f"{len(files)} files")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()

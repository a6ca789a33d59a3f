#!/usr/bin/env python3
"""check_child_symbols.py NM ALLOWED OBJECT...: compares the undefined symbols of the child's objects with the reviewed
list."""

import pathlib
import subprocess
import sys

INSTRUMENTATION = ("__asan_", "__ubsan_", "__sanitizer_", "__gcov_")


def symbols(nm, objects, *flags):
    lines = subprocess.run([nm, "--format=posix", *flags, *objects], check=True, capture_output=True, text=True).stdout
    return {line.split()[0] for line in lines.splitlines() if len(line.split()) >= 2}


def main():
    nm, allowed_file, *objects = sys.argv[1:]
    lines = pathlib.Path(allowed_file).read_text().splitlines()
    allowed = {line.split()[0] for line in lines if line.strip() and not line.startswith("#")}
    if not objects:
        sys.exit("no objects were given")
    outside = symbols(nm, objects, "--undefined-only") - symbols(nm, objects, "--defined-only")
    instrumented = {name for name in outside if name.startswith(INSTRUMENTATION)}
    for name in sorted(instrumented):
        print(f"the child is instrumented: {name}")
    for name in sorted(outside - allowed - instrumented):
        print(f"not in child_symbols.txt: {name}")
    if not outside & allowed:
        print("no known symbol at all: are these the child's objects?")
        sys.exit(1)
    sys.exit(1 if outside - allowed else 0)


if __name__ == "__main__":
    main()

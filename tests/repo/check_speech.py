#!/usr/bin/env python3
"""check_speech.py SOURCE: front ends speak to people. Nothing below them writes to stdout or stderr, or reads answers from stdin."""

import pathlib
import re
import sys

WRITES = (r"\bwrite_stderr\(|\bwrite_all\([^;]*STD(?:OUT|ERR)_FILENO|\bwrite_all\(\s*[12]\b|::write\(\s*(?:STD(?:OUT|ERR)_FILENO|[12]\b)"
          r"|(?<![\w.])(?:v?d?f?printf|f?puts|fputc|putchar|perror)\(|std::(?:cout|cerr|clog|print|println)\b")
# Of a person, or of a terminal.
READS = (r"|::read\(\s*(?:STDIN_FILENO|0\b)|(?<![\w.])(?:getchar|readline|fgets|scanf)\(|std::cin\b|\bProgress \w+\(STD(?:OUT|ERR)_FILENO")
SPEAKS = re.compile(WRITES + READS)
# What all but front ends are held to; in the command line, which has a console, only the console writes.
OTHERS = {"mcp/": None, "main.cpp": None, "cli/": re.compile(WRITES)}
# Where else, how often, and why.
PLACES = {
    "base/error.cpp": (1, "the program ends: a mistake of ours has no other way out"),
    "base/tell.cpp": (1, "what a front end without a console calls"),
    "cli/console.cpp": (2, "the console"),
    "cli/github.cpp": (2, "a fence around all that is said"),
}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def found_in(name, text):
    pattern = next((pattern for start, pattern in OTHERS.items() if name.startswith(start)), SPEAKS)
    code = COMMENT.sub("", text).replace("void write_stderr(", "")
    return [match.group() for match in pattern.finditer(code)] if pattern else []


def problems_of(name, text):
    found = found_in(name, text)
    most, why = PLACES.get(name, (0, "nowhere"))
    if len(found) > most:
        yield f"src/{name}: {', '.join(found)}: return it or tell a Person (base/person.hpp), in src/cli the console; {most} here: {why}"


def main():
    # The test can fail.
    for example in ('write_stderr("x");', "(void)sys::write_all(STDERR_FILENO, text);", "write_all(fds[STDERR_FILENO].get(), text);", "(void)!::write(2, text, 1);", 'fprintf(stderr, "x");',
                    "const auto got = ::read(STDIN_FILENO, &byte, 1);", "std::cerr << 1;"):
        if not list(problems_of("changes/x.cpp", example)) or "read" not in example and not list(problems_of("cli/x.cpp", example)):
            sys.exit(f"check_speech.py finds nothing in {example}")
    source = pathlib.Path(sys.argv[1]) / "src"
    files = sorted(path for path in source.rglob("*") if path.suffix in (".cpp", ".hpp"))
    problems = [problem for path in files for problem in problems_of(path.relative_to(source).as_posix(), path.read_text())]
    idle = [name for name, (most, _) in PLACES.items() if len(found_in(name, (source / name).read_text())) < most]
    problems += [f"src/{name} speaks less often than check_speech.py allows" for name in idle]
    print("\n".join(problems) or f"{len(files)} files")
    sys.exit(1 if problems else 0)


main()

#!/usr/bin/env python3
"""check_unity.py SOURCE: what ships is compiled many files at a time, so an unnamed namespace is one for a whole library: a name in it
must not be declared by two files. Overloads count too: a call could silently reach the other file's function. Which files are compiled
together changes with each new file, so that the compiler finds only some of these clashes. A function that a header declares counts
as well, in the same namespace and in those around it: a better match in another file would take its calls, or hide it.
"""

import collections
import pathlib
import re
import sys

NAMESPACE = re.compile(r"namespace ?([\w:]*) ?\{$")
ALIAS = re.compile(r"using ([\w:]+::(\w+));")
TYPE = re.compile(r"(?:struct|class|enum class|enum|union|using) (\w+)\b(?!;)")
OTHER = re.compile(r"(?P<front>[\w:<>,&* \[\]]*?)[ *&](\w+)(?:\[[^\]]*\])*(?:\(|\{| =|;)")


def declared(text):
    """(namespace, name, number of the line, what it stands for) of what belongs to one file only. Relies on clang-format: a declaration
    begins in the first column, and what closes a namespace says so."""
    opened = []
    for number, line in enumerate(text.splitlines(), 1):
        if found := NAMESPACE.match(line):
            opened.append(found[1])
        elif line.startswith("}  // namespace"):
            opened.pop()
        elif opened and line[:1].isalpha() and not line.startswith("using namespace "):
            place = "::".join(name for name in opened if name)
            own = "" in opened
            if found := ALIAS.match(line):
                if own:
                    yield place, found[2], number, found[1]
            elif found := TYPE.match(line):
                if own:
                    yield place, found[1], number, None
            elif (found := OTHER.match(line)) and (own or re.match("static |constexpr |const ", line)):
                yield place, found[2], number, None


FUNCTION = re.compile(r"(?:\[\[nodiscard\]\] )?(?!return |using |typedef |#|struct |class |enum |template)[\w:<>,&* ]+[ *&](\w+)\(")


def public_functions(text):
    """(namespace, name, number of the line) of the functions that a header declares."""
    opened = []
    for number, line in enumerate(text.splitlines(), 1):
        if found := NAMESPACE.match(line):
            opened.append(found[1])
        elif line.startswith("}  // namespace"):
            opened.pop()
        elif opened and line[:1] in "[abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" and (found := FUNCTION.match(line)):
            yield "::".join(name for name in opened if name), found[1], number


def around(place):
    """The namespace and those that it is in."""
    names = place.split("::")
    return ["::".join(names[:count]) for count in range(len(names), 0, -1)]


def defines_own(file, number):
    """Whether that line is in an unnamed namespace, or static: a function that returns `const T*` is neither."""
    opened = []
    for line in file.read_text().splitlines()[:number]:
        if found := NAMESPACE.match(line):
            opened.append(found[1])
        elif line.startswith("}  // namespace"):
            opened.pop()
    return ("" in opened or line.startswith("static ")) and "{{" not in line  # a text that becomes a source


def library_of(file):
    return next(directory for directory in file.parents if (directory / "CMakeLists.txt").exists())


def main():
    source = pathlib.Path(sys.argv[1])
    places = collections.defaultdict(dict)
    clashes = 0
    public = {}
    for header in sorted((source / "src").rglob("*.hpp")):
        for place, name, number in public_functions(header.read_text()):
            public.setdefault((place, name), f"{header.relative_to(source)}:{number}")
    for file in sorted((source / "src").rglob("*.cpp")):
        for place, name, number, meaning in declared(file.read_text()):
            for outer in around(place):
                if meaning is None and (outer, name) in public and defines_own(file, number):
                    clashes += 1
                    print(f"{file.relative_to(source)}:{number}: {place}::{name} is declared by {public[outer, name]} too")
                    break
            known = places[library_of(file), place, name]
            for other, (line, meant) in known.items():
                if other != file and (meaning is None or meant != meaning):
                    clashes += 1
                    print(f"{file.relative_to(source)}:{number}: {place}::{name} is also in {other.relative_to(source)}:{line}")
                    break
            known.setdefault(file, (number, meaning))
    if len(places) < 1000 or len(public) < 500:
        sys.exit(f"only {len(places)} and {len(public)} names were found: is this still the form of the sources?")
    if clashes:
        sys.exit("give one of them another name, or both one place that they share")


main()

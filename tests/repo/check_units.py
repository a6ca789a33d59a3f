#!/usr/bin/env python3
"""check_units.py SOURCE: no two units of src need each other, directly or through others.

A unit is NAME.hpp with NAME.cpp. A unit that includes another's header needs it; in a cycle one of them contains
something that belongs into another unit, or into a new one."""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def unit_of(path):
    return path.with_suffix("").as_posix()


def needs(source):
    graph = {}
    for path in sorted(source.rglob("*")):
        if path.suffix not in (".hpp", ".cpp"):
            continue
        unit = unit_of(path.relative_to(source))
        others = graph.setdefault(unit, set())
        others.update(unit_of(pathlib.PurePosixPath(name)) for name in INCLUDE.findall(path.read_text()) if (source / name).exists())
    return {unit: others - {unit} for unit, others in graph.items()}


def cycles(graph):
    """The strongly connected sets of more than one unit, by Tarjan's algorithm."""
    number, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(unit):
        number[unit] = low[unit] = len(number)
        stack.append(unit)
        on_stack.add(unit)
        for other in sorted(graph.get(unit, ())):
            if other not in number:
                visit(other)
                low[unit] = min(low[unit], low[other])
            elif other in on_stack:
                low[unit] = min(low[unit], number[other])
        if low[unit] != number[unit]:
            return
        together = []
        while not together or together[-1] != unit:
            together.append(stack.pop())
            on_stack.discard(together[-1])
        if len(together) > 1:
            found.append(sorted(together))

    sys.setrecursionlimit(10_000)
    for unit in sorted(graph):
        if unit not in number:
            visit(unit)
    return sorted(found)


def main():
    graph = needs(pathlib.Path(sys.argv[1]) / "src")
    if len(graph) < 100:
        sys.exit(f"only {len(graph)} units were found")
    found = cycles(graph)
    for units in found:
        print("these units need each other:", ", ".join(units))
        for unit in units:
            print(f"  {unit} -> {', '.join(sorted(graph[unit] & set(units)))}")
    print(f"{len(graph)} units, {len(found)} cycles")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()

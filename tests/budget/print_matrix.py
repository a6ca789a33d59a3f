#!/usr/bin/env python3
"""print_matrix.py DIRECTORY FILE: writes the cells that the tests kept as one table."""

import json
import pathlib
import sys

HEAD = ("cause", "means", "caller", "verdict", "limits_met", "over by", "ended after", "outside late by")


def rows(cells):
    for cell in cells:
        yield (cell["cause"], cell["means"], cell["caller"], cell["verdict"], cell["met"] or "–", cell["over"] or "–", f"{cell['ms']} ms",
               f"{cell['late']} ms")


def main():
    cells = [json.loads(path.read_text()) for path in sorted(pathlib.Path(sys.argv[1]).glob("*.json"))]
    if not cells:
        print("skipped: no test of the matrix has run yet")
        return 77
    cells.sort(key=lambda cell: (cell["order"], cell["means"], cell["caller"]))
    table = [HEAD, *rows(cells)]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEAD))]
    lines = ["  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip() for row in table]
    weaker = sorted({(cell["means"], cell["cause"], cell["weaker"]) for cell in cells if cell["weaker"]})
    if weaker:
        lines += ["", "Not enforced by these means, and what `degraded` says of it:", ""]
        lines += [f"{means}, {cause}: {text}" for means, cause, text in weaker]
    text = "\n".join(lines) + "\n"
    pathlib.Path(sys.argv[2]).write_text(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())

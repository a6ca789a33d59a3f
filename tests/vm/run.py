#!/usr/bin/env python3
"""run.py SUITE KERNEL CACHE SECONDS: runs suites/SUITE.sh in a guest with that kernel, as ctest does, for at most
that many seconds (or SBX_VM_TIMEOUT).

SBX, SBX_PROBE and SBX_SOURCE are as for the other tests. Exits with 77 and the reason if no guest is available."""

import json
import os
import pathlib
import sys
import time

import kernels
import machine


def keep_cells(lines, kernel):
    """Adds this guest's results for the matrix of budgets (tests/budget) to those of this machine."""
    directory = pathlib.Path(os.environ.get("SBX_BUILD", ".")) / "budget-matrix"
    for line in lines if directory.is_dir() else []:
        if "@@CELL " in line:
            cell = json.loads(line.partition("@@CELL ")[2])
            cell["means"] += f" ({kernel})"
            name = f"{cell['means']}-{cell['caller']}-{cell['cause']}".replace("/", "-").replace(" ", "_")
            (directory / f"{name}.json").write_text(json.dumps(cell))


def main():
    suite, name, cache = sys.argv[1:4]
    seconds = int(os.environ.get("SBX_VM_TIMEOUT") or sys.argv[4])
    began = time.monotonic()
    programs = {"SBX": "sbx", "SBX_WITH_FAULTS": "sbx_with_faults", "SBX_PROBE": "probe"}
    files = {pathlib.Path(os.environ[variable]): f"t/{inside}" for variable, inside in programs.items()}
    job = (machine.HERE / "suites" / f"{suite}.sh").read_text()

    def boot():
        left = seconds - (time.monotonic() - began)
        return machine.boot(name, cache, job, files, pathlib.Path(os.environ["SBX_SOURCE"]), left,
                            echo=lambda line: print(f"{time.monotonic() - began:6.1f} {line}", flush=True))

    try:
        guest = boot()
        if not guest.release and time.monotonic() - began < seconds / 2:
            print("the guest's kernel ended before its first process began, as emulated ones do at times: once more", flush=True)
            guest = boot()
    except kernels.Missing as missing:
        print(f"skipped: no guest with kernel {name}: {missing}")
        return 1 if os.environ.get("SBX_NO_SKIPS") else 77
    keep_cells(guest.lines, name)
    if guest.status is None:
        print("the guest ended without a word, or took too long")
        return 1
    if not any(line.startswith("@@PASS") for line in guest.lines):
        print("nothing was tested")
        return 1
    return guest.status


if __name__ == "__main__":
    sys.exit(main())

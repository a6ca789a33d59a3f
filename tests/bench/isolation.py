#!/usr/bin/env python3
"""isolation.py SBX [ROUNDS]: a start without namespaces relative to one with them, as a ratio of medians.

Both kinds take turns. As root the program has a uid of its own, as an ordinary user (tests/run-as user) the caller's. The private
directory of a start without namespaces lies in /tmp: its file system counts. A start waits for several processes of its own, one after
the other, so a busy machine shows its own load."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def start(sbx, isolation):
    began = time.perf_counter()
    subprocess.run([sbx, "run", "-q", "--isolation", isolation, "--", "true"], check=True, stdin=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1000


def main():
    sbx, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100
    place = tempfile.TemporaryDirectory(prefix="sbx-bench-")
    os.chdir(place.name)
    record = json.loads(subprocess.run([sbx, "run", "--isolation", "landlock", "--json", "--", "true"], check=True, capture_output=True).stdout)
    times = {"namespaces": [], "landlock": []}
    for turn in range(rounds):
        for isolation in sorted(times, reverse=turn % 2 == 1):
            times[isolation].append(start(sbx, isolation))
    plain, walled = statistics.median(times["namespaces"]), statistics.median(times["landlock"])
    print(f"{record['isolation']['form']}: {walled:.2f} ms, with namespaces {plain:.2f} ms, ratio {walled / plain:.2f}")


if __name__ == "__main__":
    main()

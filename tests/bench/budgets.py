#!/usr/bin/env python3
"""budgets.py SBX [ROUNDS]: the cost of a start with cgroup budgets relative to one without, as ratios of medians.

Both kinds take turns; back to back, and after 200 ms of idling, when moving another process in cgroup v1 would wait
for a grace period. SBX is a test build, which obeys SBX_TEST_MEANS=polled to run without groups."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def start(sbx, means):
    environment = {**os.environ, **({"SBX_TEST_MEANS": means} if means else {})}
    began = time.perf_counter()
    subprocess.run([sbx, "run", "-q", "--", "true"], check=True, env=environment, stdin=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1000


def compare(sbx, rounds, idle):
    times = {None: [], "polled": []}
    for turn in range(rounds):
        for means in (None, "polled") if turn % 2 else ("polled", None):
            time.sleep(idle)
            times[means].append(start(sbx, means))
    return [statistics.median(values) for values in times.values()]


def main():
    sbx, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100
    place = tempfile.TemporaryDirectory(prefix="sbx-bench-")
    os.chdir(place.name)
    record = json.loads(subprocess.run([sbx, "run", "--json", "--", "true"], check=True, capture_output=True).stdout)
    means = record["enforced"]["memory"]
    if means == "polled":
        print("there are no groups here to compare with")
        return 1
    for name, idle in (("back to back", 0), ("after 200 ms", 0.2)):
        with_budget, without = compare(sbx, rounds if idle == 0 else max(rounds // 5, 5), idle)
        print(f"{means}, {name}: {with_budget:.2f} ms with budgets, {without:.2f} ms without, ratio {with_budget / without:.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

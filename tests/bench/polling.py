#!/usr/bin/env python3
"""polling.py SBX PROBE [ROUNDS]: how far a program exceeds its memory budget where memory is polled, and the cost of
polling.

A program touches new memory as fast as it can, with budgets of several sizes. Measured: the peak beyond the budget,
the program's speed, and the supervisor's CPU time as a share of the run: for polling alone, from 100 ms after the
start until nine tenths of the run are over, and including the end, where the kernel counts each page once for the
final decision. SBX is a test build (SBX_TEST_MEANS=polled), if this caller has cgroups. Then a program rests at a
part of its budget for three seconds: the cost of polling, and how often the supervisor wakes up for it."""

import json
import os
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20


def scheduled(pid):
    """CPU seconds and wake-ups of one process, from the scheduler's count; None if it has ended."""
    try:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
            nanoseconds, _, turns = file.read().split()
            return int(nanoseconds) / 1e9, int(turns)
    except OSError:
        return None


def polled(sbx, budget, *arguments):
    return subprocess.Popen([sbx, "run", "-q", "--memory", f"{budget}M", *arguments], env={**os.environ, "SBX_TEST_MEANS": "polled"},
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measure(sbx, probe, budget, report):
    process = polled(sbx, budget, "--timeout", "60s", "--report", report, "--", probe, "hold-anonymous", str(budget * 2))
    time.sleep(0.1)
    samples = []
    while process.poll() is None:
        if (spent := scheduled(process.pid)) is not None:
            samples.append((time.monotonic(), spent[0]))
        time.sleep(0.01)
    with open(report, encoding="utf-8") as file:
        return json.load(file), samples


def share(samples):
    """In percent; None if there was no time to measure."""
    if len(samples) < 3:
        return None
    return 100 * (samples[-1][1] - samples[0][1]) / (samples[-1][0] - samples[0][0])


def at_rest(sbx, budget, part):
    """CPU in percent and wake-ups per second, for a program that holds that percentage of the budget and sleeps."""
    hold = f"import time; held = b'x' * ({budget * part // 100 - 9} << 20); time.sleep(60)"  # 9 MiB: python's own
    process = polled(sbx, budget, "--", "/usr/bin/python3", "-c", hold)
    time.sleep(1.5)
    began, (cpu, turns) = time.monotonic(), scheduled(process.pid)
    time.sleep(3)
    (cpu_after, turns_after), passed = scheduled(process.pid), time.monotonic() - began
    process.terminate()
    process.wait()
    return 100 * (cpu_after - cpu) / passed, (turns_after - turns) / passed


def main():
    sbx, probe, rounds = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 5
    with tempfile.TemporaryDirectory(prefix="sbx-bench-") as directory:
        os.chdir(directory)
        for budget in (256, 512, 1024, 4096):
            for _ in range(rounds):
                record, samples = measure(sbx, probe, budget, f"{directory}/record")
                peak = next(limit["peak"] for limit in record["limits_met"] if limit["limit"] == "memory")
                over = peak - budget * MIB
                print(f"{budget} MiB: {record['outcome']['reason']}, {over / MIB:+.1f} MiB ({100 * over / (budget * MIB):+.1f} %) at "
                      f"{peak / 1e6 / max(record['usage']['wall_ms'], 1):.2f} GB/s, supervisor {share(samples[: len(samples) * 9 // 10]) or 0:.2f} % of a CPU, "
                      f"{share(samples) or 0:.2f} % with the end", flush=True)
        for budget, part in ((256, 10), (256, 80), (256, 90), (256, 95), (512, 90), (1024, 90)):
            for _ in range(rounds):
                cpu, turns = at_rest(sbx, budget, part)
                print(f"{budget} MiB, at rest at {part} %: supervisor {cpu:.2f} % of a CPU, {turns:.0f} turns a second", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

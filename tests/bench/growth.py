#!/usr/bin/env python3
"""growth.py SBX [DIRECTORY], with PYTHONPATH=tests/harness: how the cost of a start, the throughput and the supervisor's
memory grow; as a table.

A start with 1, 100, 1,000 and 10,000 grants, denied names, network rules and variables, and with as many argument
rules as fit into the kernel's filter; runs per second with 1 to 64 in parallel; the supervisor's memory after much
output, many denials, many changed files and with many connections; and what 10,000 runs leave on the machine. The
connections need root; otherwise they are skipped."""

import concurrent.futures
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

import internet
from call_numbers import SYSCALLS

SIZES = (1, 100, 1000, 10_000)
RULES = (1, 10, 100, 1500)  # of 4,096 instructions
ROUNDS = 7
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def listed(entries):
    return "[" + ", ".join(f'"{each}"' for each in entries) + "]"


def shapes(directory):
    files = directory / "files"
    files.mkdir()
    for i in range(max(SIZES)):
        (files / f"f{i}").touch()
    return {
        "grants": lambda n: f"[filesystem]\nread = {listed(files / f'f{i}' for i in range(n))}\n",
        "denied names": lambda n: f"[filesystem]\ndeny = {listed(f'/srv/secret/{i}' for i in range(n))}\n",
        "network rules": lambda n: f"[network]\nmode = \"allow-list\"\nallow = {listed(f'h{i}.example.org:443' for i in range(n))}\n",
        "argument rules": lambda n: "".join(f'[[syscalls.rule]]\nname = "personality"\nwhen = {{ arg = 0, op = "eq", value = {i} }}\naction = "allow"\n'
                                            for i in range(0x100, 0x100 + n)),
        "variables": lambda n: "[environment]\nset = { " + ", ".join(f'V{i} = "1"' for i in range(n)) + " }\n",
    }


def start(sbx, policy, directory):
    began = time.perf_counter()
    subprocess.run([sbx, "run", "-q", "-p", policy, "--workspace", f"{directory / 'work'}:empty", "--", "true"], check=True, **QUIET)
    return (time.perf_counter() - began) * 1000


def starts(sbx, directory):
    for name, text in shapes(directory).items():
        cells = []
        for size in RULES if name == "argument rules" else SIZES:
            policy = directory / f"{name.replace(' ', '-')}-{size}.toml"
            policy.write_text('extends = "default"\n' + text(size))
            cells.append(f"{statistics.median(start(sbx, policy, directory) for _ in range(ROUNDS)):.1f}")
        sizes = " (1, 10, 100, 1,500)" if name == "argument rules" else ""
        print(f"| start with N {name}{sizes}, ms | " + " | ".join(cells) + " |", flush=True)


def side_by_side(sbx, directory):
    cells = []
    for width in (1, 2, 4, 16, 64):
        count = max(100, width * 4)
        with concurrent.futures.ThreadPoolExecutor(width) as pool:
            began = time.perf_counter()
            list(pool.map(lambda _: start(sbx, "default", directory), range(count)))
            cells.append(f"{count / (time.perf_counter() - began):.0f}")
    print("| runs per second, 1, 2, 4, 16, 64 at once | " + " | ".join(cells) + " |", flush=True)


def peak_of(sbx, arguments, code):
    """The supervisor's own peak, VmHWM, read just before its program ends."""
    process = subprocess.Popen([sbx, "run", "-q", *arguments, "--lang", "python", "-c", code + "\nimport sys; sys.stdin.read()"],
                               stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    # The program writes a line to stderr just before it waits for the end of its input.
    process.stderr.readline()
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    process.stdin.close()
    process.stderr.read()
    process.wait()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1])


READY = "\nimport sys; sys.stderr.write('ready\\n'); sys.stderr.flush()"


def memory(sbx, directory):
    output = "import os\nblock = b'x' * 65536\nfor _ in range({n} * 16): os.write(1, block)" + READY
    denials = "import ctypes\nlibc = ctypes.CDLL(None)\nfor i in range({n}): libc.syscall(BPF, i)".replace("BPF", str(SYSCALLS["bpf"])) + READY
    files = "for i in range({n}): open(f'c{{i}}', 'w').close()" + READY
    for name, code, sizes, arguments in (
            ("output of N MiB", output, (1, 100, 1000, 10240), ["--output", "20G"]),
            ("N denied calls", denials, (1, 100, 1000, 10000), []),
            ("N changed files", files, (1, 100, 1000, 10000), ["--workspace", f"{directory / 'work'}:overlay"])):
        cells = [f"{peak_of(sbx, arguments, code.format(n=size))}" for size in sizes]
        print(f"| supervisor's peak with {name}, KiB | " + " | ".join(cells) + " |", flush=True)


HOLD = """
import socket
held = []
for i in range({n}):
    s = socket.create_connection(('web.example.org', 7), 60)
    s.sendall(b'x')
    assert s.recv(1) == b'x'
    held.append(s)
""" + READY


def connections(sbx, directory):
    """Connections to servers in a network namespace, which this process joins permanently."""
    try:
        internet.Internet()
    except unittest.SkipTest as why:
        return print(f"no connections: {why}")
    internet.use_files(directory)
    rule = ["--allow-host", "web.example.org:7", "--set", "limits.open_files=4096"]
    cells = [f"{peak_of(sbx, rule, HOLD.format(n=size))}" for size in (1, 100, 1000, 2500)]
    print("| supervisor's peak with N connections (1, 100, 1,000, 2,500), KiB | " + " | ".join(cells) + " |", flush=True)


def leftovers():
    mounts = len(pathlib.Path("/proc/self/mountinfo").read_text().splitlines())
    return mounts, len([name for name in os.listdir("/tmp") if "sbx" in name])


def leaks(sbx, directory, runs=10_000):
    before = leftovers()
    began = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: start(sbx, "default", directory), range(runs)))
    after = leftovers()
    print(f"\n{runs} runs in {time.perf_counter() - began:.0f} s; mounts before and after {before[0]}, {after[0]}; "
          f"files of sbx in /tmp {before[1]}, {after[1]}")


def main():
    sbx = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as name:
        directory = pathlib.Path(name)
        (directory / "work").mkdir()
        os.chmod(directory, 0o755)
        print("| | 1 | 100 | 1,000 | 10,000 |\n|---|---|---|---|---|")
        starts(sbx, directory)
        memory(sbx, directory)
        side_by_side(sbx, directory)
        leaks(sbx, directory)
        connections(sbx, directory)


main()

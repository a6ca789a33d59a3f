#!/usr/bin/env python3
"""workspace.py SBX [ROUNDS]: what a copy-on-write workspace costs, by the stamps of --trace-time and by the clock.

    changes     of 5,000 files: the list of changes is read, and applied to the host; of 10,000: listed, shown, applied
    start       an overlay over a directory of ten files, the same directory read-only, and no directory, taking turns
    scan        for denied names, hard links and foreign groups, per entry: a tree of 20,000 compared with an empty one

Root measures as root and then as an ordinary user. Needs a quiet machine; the files are in SBX_BENCH_DIR. Exits with 1 if
a promise of sbx is missed. Next to the figures for applying are those of a program without sbx that writes, renames and
deletes the same files one by one: a disk on which that is slow can't keep any promise.
"""

import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

FILES = 5000
ENTRIES = 20_000
PATIENCE = 10.0
EDITS = {
    "modified": "find . -type f -exec sed -i '1s/$/ changed/' {} +",
    "created": "for d in d*; do for i in $(seq 100); do echo text $i > $d/new-$i; done; done",
    "deleted": "rm d*/*",
}
PROMISED = {"changes read": 100.0, "changes applied": 1000.0, "overlay adds": 0.3, "scan per entry": 3.0}


def stages(text):
    """Stage of the run -> microseconds since the previous one."""
    spent, last = {}, 0
    for at, name in re.findall(r"^sbx: +(\d+) us  (.*)$", text, re.M):
        spent[name] = int(at) - last
        last = int(at)
    return spent


class Bench:
    def __init__(self, sbx, rounds):
        self.sbx, self.rounds = sbx, rounds
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="sbx-bench-", dir=os.environ.get("SBX_BENCH_DIR")))
        self.directory.chmod(0o755)
        self.missed = False

    def make(self, name, count, per_directory=100):
        root = self.directory / name
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        for i in range(count):
            if i % per_directory == 0:
                (root / f"d{i // per_directory}").mkdir()
            (root / f"d{i // per_directory}" / f"file-{i}.txt").write_text(f"{i}\n" * 50)
        return root

    def run(self, directory, *options, mode="overlay", command=("true",), report=True):
        words = [self.sbx, "run", "--trace-time", "--workspace", f"{directory}:{mode}", *(["--report", self.directory / "r.json"] if report else []),
                 *options, "--", *command]
        ended = subprocess.run(words, check=True, capture_output=True, stdin=subprocess.DEVNULL, cwd=directory)
        return stages(ended.stderr.decode())

    def say(self, name, value, unit, what):
        most = PROMISED[name]
        self.missed |= value > most
        print(f"{name:16} {value:8.2f} {unit:3} of at most {most:g}{'' if value <= most else '  NOT MET'}   {what}", flush=True)

    def changes(self):
        """Each tree is new and stays to the end: an ext4 without a journal is slow to allocate an inode where others
        were freed in the last five minutes. There, applying is slow in every round but the first, whoever writes."""
        times = {}
        for turn in range(max(self.rounds // 60, 3)):
            for kind, command in EDITS.items():
                for what, options in {"read": [], "applied": ["--apply", "--yes"]}.items():
                    directory = self.make(f"{kind}-{what}-{turn}", FILES)
                    os.sync()  # otherwise the measurement would wait for earlier writes
                    spent = self.run(directory, "-q", *options, command=["sh", "-c", command])["changes"] / 1000
                    times.setdefault((what, kind), []).append(spent)
                times.setdefault(("plain", kind), []).append(self.plain(kind, f"{kind}-plain-{turn}"))
        for (what, kind), spent in sorted(times.items()):
            if what == "plain":
                continue
            what_else = f"{FILES} {kind} files"
            if what == "applied":
                what_else += f", read and applied; without sbx, one by one: {statistics.median(times['plain', kind]):.0f} ms"
            self.say(f"changes {what}", statistics.median(spent), "ms", what_else)

    def plain(self, kind, name):
        """Milliseconds for the same without sbx, as most programs do it: a temporary file, renamed. At most
        PATIENCE."""
        directory = self.make(name, FILES)
        os.sync()
        began = time.perf_counter()
        for path in sorted(directory.glob("d*/*")):
            if kind == "deleted":
                path.unlink()
            else:
                temporary = path.with_name(f".{path.name}.new")
                temporary.write_text(f"{path.name} changed\n" * 10)
                temporary.rename(path if kind == "modified" else path.with_name(f"new-{path.name}"))
            if time.perf_counter() - began > PATIENCE:
                break
        return (time.perf_counter() - began) * 1000

    def many(self):
        """How long the run takes after its command has ended, with twice as many changes; no promise."""
        for name, options in {"listed": [], "shown": ["--diff"], "shown and applied": ["--diff", "--apply", "--yes"]}.items():
            directory = self.make(f"many {name}", 2 * FILES)
            os.sync()
            spent = self.run(directory, *options, command=["sh", "-c", EDITS["modified"]])
            print(f"{2 * FILES} changes {name}: {spent['changes'] / 1000:.0f} ms", flush=True)

    def start(self):
        directory = self.make("ten", 10)
        times = {"empty": [], "read-only": [], "overlay": []}
        modes = list(times)
        for turn in range(self.rounds):
            for mode in modes[turn % 3:] + modes[:turn % 3]:
                began = time.perf_counter()
                subprocess.run([self.sbx, "run", "-q", "--workspace", f"{directory}:{mode}", "--", "true"], check=True, stdin=subprocess.DEVNULL)
                times[mode].append((time.perf_counter() - began) * 1000)
        empty, read_only, overlay = (statistics.median(times[mode]) for mode in modes)
        self.say("overlay adds", overlay - read_only, "ms", f"{overlay:.2f} ms beside {read_only:.2f} ms read-only; {empty:.2f} ms without the directory")

    def scan(self):
        tree, nothing = self.make("tree", ENTRIES), self.make("nothing", 0)
        count = sum(len(directories) + len(files) for _, directories, files in os.walk(tree))
        plans = {tree: [], nothing: []}
        for _ in range(max(self.rounds // 10, 5)):
            for directory, found in plans.items():
                found.append(self.run(directory, report=False)["plan"])
        spent = statistics.median(plans[tree]) - statistics.median(plans[nothing])
        self.say("scan per entry", spent / count, "us", f"{count} entries in {spent / 1000:.1f} ms")


def main():
    callers = ["root", "user"] if os.geteuid() == 0 and "SBX_BENCH_CALLER" not in os.environ else []
    run_as = pathlib.Path(__file__).resolve().parents[1] / "run-as"
    ends = [subprocess.run([run_as, who, "/usr/bin/python3", __file__, *sys.argv[1:]], env={**os.environ, "SBX_BENCH_CALLER": who}).returncode
            for who in callers]
    if ends:
        return max(ends)
    print(f"as {'root' if os.geteuid() == 0 else 'an ordinary user'}:", flush=True)
    bench = Bench(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200)
    try:
        bench.start()
        bench.scan()
        bench.changes()
        bench.many()
    finally:
        shutil.rmtree(bench.directory, ignore_errors=True)
    return int(bench.missed)


if __name__ == "__main__":
    sys.exit(main())

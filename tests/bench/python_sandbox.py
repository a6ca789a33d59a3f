#!/usr/bin/env python3
"""python_sandbox.py SBX [ROUNDS]: what `Sandbox` of examples/python/sbx.py costs, beside the commands that it runs; as a table.

    first answer   `Sandbox()` and run_code("1+1"), beside `session start`, `extend` and `eval`
    1+1            run_code in a live sandbox, beside `session eval`
    next context   create_code_context(), beside `session context`
    in, out        a file of SBX_BENCH_MIB (100): files.write and files.read, beside `session put` and `get` with streams

One by one, taking turns. Needs a quiet machine: the load is printed."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parents[2] / "examples/python"))
import sbx  # noqa: E402

FILES = 10  # rounds with the large file


class Bench:
    def __init__(self, program, rounds):
        self.program, self.rounds = os.path.abspath(program), rounds
        self.times = {}

    def timed(self, name, function):
        began = time.perf_counter_ns()
        result = function()
        self.times.setdefault(name, []).append((time.perf_counter_ns() - began) / 1e6)
        return result

    def session(self, *words, **streams):
        return subprocess.run([self.program, "session", *words], check=True, **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, **streams}).stdout

    def by_commands(self):
        name = json.loads(self.session("start", "--json", "--policy", "e2b", "--die-with-parent"))["name"]
        self.session("extend", "--json", name, "300s")
        self.session("eval", "--stream", "--quiet", name, "-c", "1+1")
        return name

    def by_class(self):
        sandbox = sbx.Sandbox(program=self.program)
        assert sandbox.run_code("1+1").text == "2"
        return sandbox

    def starts(self):
        for _ in range(self.rounds):
            self.session("stop", self.timed("first answer: commands", self.by_commands))
            self.timed("first answer: Sandbox", self.by_class).kill()

    def cells(self):
        with self.by_class() as sandbox:
            for _ in range(self.rounds):
                self.timed("1+1: commands", lambda: self.session("eval", "--stream", "--quiet", sandbox.sandbox_id, "-c", "1+1"))
                self.timed("1+1: Sandbox", lambda: sandbox.run_code("1+1"))

    def contexts(self):
        with self.by_class() as sandbox:
            for _ in range(self.rounds):
                time.sleep(0.3)  # an interpreter is started ahead
                name = self.timed("next context: commands", lambda: json.loads(self.session("context", "--json", sandbox.sandbox_id)))["context"]
                sandbox.remove_code_context(name)
                sandbox.run_code("1+1")
                time.sleep(0.3)
                sandbox.remove_code_context(self.timed("next context: Sandbox", sandbox.create_code_context))
                sandbox.run_code("1+1")

    def files(self):
        data = os.urandom(int(os.environ.get("SBX_BENCH_MIB", "100")) << 20)
        with tempfile.TemporaryFile() as source, self.by_class() as sandbox:
            source.write(data)
            for _ in range(min(FILES, self.rounds)):
                source.seek(0)
                self.timed("in: commands", lambda: self.session("put", "--quiet", sandbox.sandbox_id, "-", "file", stdin=source))
                self.timed("in: Sandbox", lambda: sandbox.files.write("file", data))
                with tempfile.TemporaryFile() as copy:
                    self.timed("out: commands", lambda: self.session("get", "--quiet", sandbox.sandbox_id, "file", "--as", "-", stdout=copy))
                if self.timed("out: Sandbox", lambda: sandbox.files.read("file", "bytes")) != data:
                    raise SystemExit("python_sandbox.py: what came back is something else")

    def table(self):
        print("| what | n | median | p95 | least | × commands |\n|---|---|---|---|---|---|")
        for name, values in self.times.items():
            middle, base = statistics.median(values), statistics.median(self.times[name.split(":")[0] + ": commands"])
            print(f"| {name} | {len(values)} | {middle:.2f} ms | {sorted(values)[int(0.95 * (len(values) - 1))]:.2f} | {min(values):.2f} | {middle / base:.2f} |")


def main():
    print(f"# Linux {os.uname().release}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.2f}", flush=True)
    bench = Bench(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100)
    for part in (bench.starts, bench.cells, bench.contexts, bench.files):
        part()
    bench.table()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""mcp.py SBX [ROUNDS]: how long a model waits for `sbx mcp`, through the official SDK of the protocol (npm's package, which is kept
in the build directory); as a table.

    run_code of 1+1   in a context that lives, one after the other
    the first         after connect: the session, an interpreter and the cell, where Python has IPython and where not
    a second context  the spare: a fresh context after the first one

Exits with 1 if a promise of the issue is missed. Needs a quiet machine: the load is printed."""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest

from mcptest import SDK
from npm import installed

PATH = "/usr/local/bin:/usr/bin:/bin"  # a shim of a version manager takes longer than the interpreter behind it
SPARE_IS_THERE = 2000  # ms: the interpreter of the spare starts beside what is measured
SCRIPT = """
import {Client} from '@modelcontextprotocol/sdk/client/index.js'
import {StdioClientTransport} from '@modelcontextprotocol/sdk/client/stdio.js'
const [sbx, cwd, home, path, rounds, rest] = process.argv.slice(2)
const client = new Client({name: 'bench', version: '1'})
await client.connect(new StdioClientTransport({command: sbx, args: ['mcp'], cwd, env: {HOME: home, PATH: path}}))
const timed = async args => {
  const began = process.hrtime.bigint()
  const text = (await client.callTool({name: 'run_code', arguments: args})).content[0].text
  const took = Number(process.hrtime.bigint() - began) / 1e6
  if (!text.includes('result:\\n2\\n')) throw new Error(text)
  return [took, text]
}
const pause = () => new Promise(done => setTimeout(done, Number(rest)))
const [first, text] = await timed({code: '1+1'})
const context_id = text.match(/context_id (\\S+)/)[1]
await pause()
const [second] = await timed({code: '1+1'})
await pause()
const live = []
for (let i = 0; i < Number(rounds); i++) live.push((await timed({code: '1+1', context_id}))[0])
await client.close()
console.log(JSON.stringify({first, second, live}))
"""


def p95(values):
    return sorted(values)[int(0.95 * (len(values) - 1))]


class Bench:
    def __init__(self, sbx, rounds):
        self.sbx, self.rounds = os.path.abspath(sbx), rounds
        os.environ.setdefault("SBX_BUILD", str(pathlib.Path(self.sbx).parents[1]))
        self.modules = installed("mcp-sdk", SDK) / "node_modules"
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="sbx-bench-"))
        self.missed = False
        for name in ("home", "work"):
            (self.directory / name).mkdir()
        (self.directory / "node_modules").symlink_to(self.modules)
        (self.directory / "client.mjs").write_text(SCRIPT)

    def servers(self, path, count, rounds):
        """What `count` servers took, one after the other."""
        command = [shutil.which("node"), "--preserve-symlinks-main", "client.mjs", self.sbx, self.directory / "work", self.directory / "home", path,
                   str(rounds), str(SPARE_IS_THERE)]
        return [json.loads(subprocess.run(command, cwd=self.directory, check=True, stdout=subprocess.PIPE).stdout) for _ in range(count)]

    def plain_python(self):
        """A PATH whose Python has no IPython."""
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", self.directory / "venv"], check=True)
        return f"{self.directory}/venv/bin:{PATH}"

    def row(self, name, values, most, most_p95=None):
        middle, late = statistics.median(values), p95(values)
        missed = middle > most or (most_p95 is not None and late > most_p95)
        self.missed |= missed
        aim = f"{most:g}" + (f", p95 {most_p95:g}" if most_p95 else "")
        print(f"| {name} | {len(values)} | {middle:.2f} | {late:.2f} | {min(values):.2f} | {aim}{' NOT MET' if missed else ''} |", flush=True)

    def run(self):
        print(f"\n# Linux {os.uname().release}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.2f}")
        print("\n| run_code through the SDK, ms | n | median | p95 | least | at most |\n|---|---|---|---|---|---|", flush=True)
        for python, path in (("IPython", PATH), ("no IPython", self.plain_python())):
            servers = self.servers(path, 7, self.rounds)
            self.row(f"1+1 in a live context, {python}", [each for server in servers for each in server["live"]], 5, 10)
            self.row(f"the first after connect, {python}", [server["first"] for server in servers], 150)
            self.row(f"a second fresh context, {python}", [server["second"] for server in servers], 30)
        print(f"load at the end {os.getloadavg()[0]:.2f}")


def main():
    try:
        bench = Bench(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100)
    except unittest.SkipTest as missing:
        print(f"mcp.py: {missing}")
        return 0
    try:
        bench.run()
    finally:
        shutil.rmtree(bench.directory, ignore_errors=True)
    return int(bench.missed)


if __name__ == "__main__":
    sys.exit(main())

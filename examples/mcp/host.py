#!/usr/bin/env python3
"""A host of agents in one file: starts `sbx mcp`, lists the tools for its model, and calls the one that the model chooses.

    python3 host.py [OPTION OF sbx mcp]...

It speaks the Model Context Protocol, a message of JSON a line, without an SDK. The model is canned: CALLS has what it asks for.
"""

import json
import os
import re
import subprocess
import sys

CALLS = [("run_code", {"code": "numbers = [3, 5, 10]"}),
         ("run_code", {"code": "sum(numbers) / len(numbers)"}),
         ("run_command", {"command": "ls nowhere"}),
         ("read_file", {"path": "/etc/shadow"})]


class Server:
    """`sbx mcp` as a child; it ends when this program closes its standard input, or ends."""

    def __init__(self, *options):
        self.process = subprocess.Popen([os.environ.get("SBX", "sbx"), "mcp", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.asked = 0

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method, **parameters):
        self.asked += 1
        self.send(id=self.asked, method=method, params=parameters)
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.asked:
                return message["result"]
        raise EOFError(f"sbx mcp ended with status {self.process.wait()}")

    def __enter__(self):
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "host", "version": "1"})
        self.send(method="notifications/initialized")
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def main():
    with Server(*sys.argv[1:]) as server:
        print("tools:", " ".join(tool["name"] for tool in server.ask("tools/list")["tools"]))
        context = {}
        for name, arguments in CALLS:
            answer = server.ask("tools/call", name=name, arguments={**arguments, **context} if name == "run_code" else arguments)
            # The first line is sbx's own; below "--- from the program ---" stands what the program wrote.
            text = answer["content"][0]["text"]
            print(f"{name}: {text.strip()}")
            if found := re.search(r"context_id (c-[a-z2-7]{8})", text.partition("\n")[0]):
                context = {"context_id": found[1]}  # a later cell in it finds the variables


if __name__ == "__main__":
    main()

"""A plain client of `sbx mcp`: lines of JSON over pipes, in both eras of the protocol."""

import json
import os
import select
import subprocess

import sbxtest
from harness import HANG, wait_until
from sbxtest import SBX
from sessiontest import SessionTest

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
BELOW = "--- from the program ---"
SDK = "@modelcontextprotocol/sdk@1.32.2"  # of npm


class Client:
    def __init__(self, test, *options, era=MODERN, cwd=None, env=None, program=SBX, fds=()):
        self.test, self.era, self.number, self.unread = test, era, 0, b""
        self.err = open(test.tmp / f"stderr-{len(os.listdir(test.tmp))}", "w+b")
        self.process = sbxtest.start([program, "mcp", *map(str, options)], env=test.environment(env), cwd=cwd or test.work, stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=self.err, pass_fds=fds)
        test.addCleanup(self.close)
        self.answers = {}
        self.notifications = []
        if era == LEGACY:
            self.hello = self.result(self.ask("initialize", protocolVersion=LEGACY, capabilities={}, clientInfo={"name": "test", "version": "1"}))
            self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    # Words.

    def send(self, line):
        """One line as it stands."""
        self.process.stdin.write(line if isinstance(line, bytes) else line.encode())
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def say(self, message):
        self.send(json.dumps(message))

    def ask(self, method, *, id=None, meta=None, **params):
        """Sends a request and returns its id."""
        self.number += 1
        id = self.number if id is None else id
        extra = dict(meta or {})
        if self.era == MODERN:
            extra.update({META + "protocolVersion": MODERN, META + "clientCapabilities": {}})
        if extra:
            params["_meta"] = extra
        self.say({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return id

    def call(self, tool, *, id=None, meta=None, **arguments):
        return self.ask("tools/call", id=id, meta=meta, name=tool, arguments=arguments)

    def cancel(self, id):
        self.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "the user"}})

    # Answers.

    def receive(self):
        """The next message; None at the end."""
        while b"\n" not in self.unread:
            ready, _, _ = select.select([self.process.stdout], [], [], HANG)
            self.test.assertTrue(ready, "the server said nothing")
            block = os.read(self.process.stdout.fileno(), 1 << 16)
            if not block:
                return None
            self.unread += block
        line, _, self.unread = self.unread.partition(b"\n")
        return json.loads(line)

    def answer(self, id):
        """The answer to a request, as it came; what comes before it is kept."""
        while id not in self.answers:
            message = self.receive()
            self.test.assertIsNotNone(message, f"the server ended without an answer to {id}: {self.said()}")
            if "method" in message:
                self.notifications.append(message)
            else:
                self.answers[message["id"]] = message
        return self.answers.pop(id)

    def result(self, id):
        answer = self.answer(id)
        self.test.assertIn("result", answer)
        return answer["result"]

    def error(self, id):
        answer = self.answer(id)
        self.test.assertIn("error", answer)
        return answer["error"]

    def run(self, tool, **arguments):
        """A call and its result."""
        return self.result(self.call(tool, **arguments))

    def text(self, tool, **arguments):
        return text_of(self.run(tool, **arguments))

    def text_of_answer(self, id):
        return text_of(self.result(id))

    def refused(self, tool, **arguments):
        """The sentence of a call that ran nothing."""
        result = self.run(tool, **arguments)
        self.test.assertTrue(result.get("isError"), result)
        return text_of(result)

    # The end.

    def said(self):
        self.err.flush()
        self.err.seek(0)
        return self.err.read().decode(errors="replace")

    def end(self):
        """Closes standard input and returns the exit status."""
        self.process.stdin.close()
        self.process.stdout.read()
        return self.process.wait(HANG)

    def close(self):
        for stream in (self.process.stdin, self.process.stdout, self.err):
            stream.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def text_of(result):
    return result["content"][0]["text"]


def first_line(text):
    return text.split("\n", 1)[0]


def own(text):
    """What stands above the line that a program's output follows."""
    return text.split(BELOW, 1)[0]


def of_program(text):
    return text.split(BELOW + "\n", 1)[1] if BELOW + "\n" in text else ""


def context_of(text):
    return first_line(text).split("context_id ")[1].split()[0]


def job_of(text):
    return first_line(text).split("job_id ")[1].split()[0]


class McpTest(SessionTest):
    def client(self, *options, **how):
        return Client(self, *options, **how)

    def sessions(self):
        return [each["name"] for each in self.run_sbx("session", "list", "--json").json["sessions"]]

    def nothing_is_left(self):
        wait_until(lambda: not self.sessions(), "the server's session has ended")
        self.assertEqual(sbxtest.orphans_after(sbxtest.GONE_WITHIN_SECONDS), [])

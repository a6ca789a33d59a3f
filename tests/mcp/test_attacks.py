#!/usr/bin/env python3
"""What a hostile model, a hostile program and hostile lines get of `sbx mcp`: for each row the first line that is expected."""

import json

import sbxtest
from mcptest import BELOW, MODERN, META, McpTest, context_of, first_line, job_of, own, text_of

LONG = "a" * (1 << 20)
POLICY = '[network]\nmode = "host"\n'
# What a model puts into an argument, and what a path of that kind leads to.
TRICKS = {
    "up": "../../../../etc/shadow",
    "absolute": "/etc/shadow",
    "nul": "a\0b",
    "newline": "a\nb",
    "link": "link-out",
    "inside": "link-made-inside",
    "long": LONG,
    "policy": POLICY,
    "json": '{"network": {"mode": "host"}, "filesystem": {"write": ["/"]}}',
    "foreign": "c-aaaaaaaa",
    "job": "j-aaaaaaaa",
    "escapes": "\x1b[2J\x1b]0;title\x07",
    "tags": "\U000e0041\U000e0042",
    "host": "file:///proc/1/root/etc/passwd",
    "flag": "--policy=host",
    "empty": "",
}
RAN = r"^(ok|exit \d+) · "
NOT_THERE = r"^'.*' in the session: cannot read: (No such file or directory|File name too long|Permission denied|Not a directory)"
NUL = r'^argument "\w+" must be without NUL characters: correct it and call again$'
LONGER = r'^argument "\w+" must be of at most 4096 bytes: correct it and call again$'
NO_CONTEXT = r"^this server has no context of that context_id: call run_code without context_id$"
NO_CHANGE = r"^ok · 0 names are changed in '.*'$"
NO_JOB = r"^this server has no job of that job_id: "
# By tool and argument: the first line for each trick, "*" for the others. What is applied comes before what is written.
EXPECTED = {
    ("apply_changes", "paths"): {"nul": r'^argument "paths" must be a list', "empty": r'^argument "paths" must be a list', "long": r'^argument "paths" must be a list',
                                 "link": r"^nothing was applied: 'link-out': it was not changed",
                                 "inside": r"^nothing was applied: 'link-made-inside': it is a symbolic link that may lead out of the directory", "*": r"^nothing was applied: '.*': it was not changed"},
    ("run_code", "code"): {"nul": r"^(error|stopped|nothing ran|exit|ok)", "*": r"^(error \w+, line 1|ok) · "},
    ("run_code", "context_id"): {"empty": r"^ok · ", "*": NO_CONTEXT},
    ("run_code", "language"): {"*": r'^argument "language" must be one of '},
    ("run_command", "command"): {"nul": NUL, "long": r"^(exit \d+ · |nothing ran: )", "empty": r"^ok · ", "*": RAN},
    ("run_command", "cwd"): {"nul": NUL, "empty": r"^ok · ", "long": LONGER, "*": r"^nothing ran: "},
    ("wait", "job_id"): {"*": NO_JOB},
    ("read_file", "path"): {"nul": NUL, "empty": r"^the path is empty", "link": r"^(ok · |')",
                            "inside": NOT_THERE, "long": LONGER, "*": NOT_THERE},
    ("write_file", "path"): {"nul": NUL, "empty": r"^the path is empty", "up": r"^'.*' can't be written: ", "absolute": r"^'.*' can't be written: ",
                             "long": LONGER, "host": r"^(ok · |'.*' can't be written: )", "*": r"^(ok · '|'.*' can't be written: )"},
    ("write_file", "content"): {"*": r"^ok · 'made' · \d+ bytes$"},
    ("write_file", "encoding"): {"*": r'^argument "encoding" must be utf-8 or base64'},
    ("changes", "path"): {"nul": NUL, "long": LONGER, "empty": r"^ok · \d+ names are changed in the working directory$",
                          "inside": r"^ok · 1 name is changed in 'link-made-inside'$", "up": NO_CHANGE, "absolute": NO_CHANGE, "link": NO_CHANGE, "*": r"^ok · \d+ names? (is|are) changed in '.*'$"},
    ("get_policy", "policy"): {"*": r'^unknown argument "policy": the arguments of get_policy are none$'},
}
OTHERS = {"run_code": {"code": "1"}, "run_command": {"command": "true"}, "write_file": {"path": "made", "content": "x"}}


class Model(McpTest):
    def test_each_row_of_the_table_has_its_first_line(self):
        (self.work / "link-out").symlink_to("/etc/passwd")
        secret = self.write("secret", "TOP-SECRET\n", directory=self.tmp)
        client = self.client("--allow-apply")
        client.text("run_command", command="touch changed; ln -s /etc/shadow link-made-inside")
        rows = 0
        for (tool, argument), lines in EXPECTED.items():
            for trick, value in TRICKS.items():
                value = [value] if argument == "paths" else value
                result = client.run(tool, **{**OTHERS.get(tool, {}), argument: value})
                with self.subTest(tool=tool, argument=argument, trick=trick):
                    text = text_of(result)
                    self.assertRegex(first_line(text), lines.get(trick, lines["*"]))
                    self.assertNotRegex(text, "[\x00-\x08\x0b-\x1f\U000e0041]")
                    self.assertNotIn("TOP-SECRET", text)
                    self.assertLess(len(first_line(text)), 700)
                rows += 1
        self.assertGreaterEqual(rows, 120)
        self.assertEqual(secret.read_text(), "TOP-SECRET\n")
        self.assertEqual(sorted(each.name for each in self.work.iterdir()), ["link-out"])
        self.assertIn("network: none", client.text("get_policy"))

    def test_no_id_stands_anywhere_that_a_program_can_read(self):
        client = self.client()
        text = client.text("run_code", code="1")
        context = context_of(text)
        job = job_of(client.text("run_command", command="sleep 1000", wait_s=0))
        search = ("import os, sys\nfound = []\nfor root in ('/proc', '/tmp', os.path.expanduser('~'), os.getcwd(), '/dev/shm'):\n"
                  " for at, names, files in os.walk(root):\n"
                  "  if at.count('/') > 3: names.clear()\n"
                  "  for each in names + files:\n"
                  "   found.append(each)\n"
                  "   if each in ('environ', 'cmdline', 'comm'):\n"
                  "    try: found.append(open(os.path.join(at, each), errors='replace').read())\n"
                  "    except OSError: pass\n"
                  "print(len(found)); print([word for word in sys.argv[1:] if any(word in each for each in found)])")
        client.text("write_file", path="search.py", content=search)
        # The names are only put together inside: else the command line of the search has them.
        parts = f"{context[:5]} {context[5:]} {job[:5]} {job[5:]}"
        found = client.text("run_command", command=f"set -- {parts}; python3 -c \"import sys; sys.argv[1:] = ['$1' '$2', '$3' '$4']; exec(open('search.py').read())\"")
        self.assertIn("\n[]\n", found)

    def test_two_conversations_see_nothing_of_each_other(self):
        client = self.client()
        first = context_of(client.text("run_code", code="mine = 'FIRST'"))
        second = context_of(client.text("run_code", code="print(globals().get('mine'))"))
        self.assertNotEqual(first, second)
        self.assertIn("error NameError", first_line(client.text("run_code", code="mine", context_id=second)))
        self.assertIn("'FIRST'", client.text("run_code", code="mine", context_id=first))
        job = job_of(client.text("run_code", code="while True: pass", context_id=first, wait_s=0))
        told = "".join(client.text(tool, **arguments) for tool, arguments in
                       (("get_policy", {}), ("run_code", {"code": "globals(), dir()", "context_id": second}), ("run_command", {"command": "ps -ef; ls -aR ~ /tmp"}),
                        ("read_file", {"path": "/tmp"}), ("changes", {}), ("run_code", {"code": "1"})))
        for word in (first, job, "FIRST"):
            self.assertNotIn(word, told)
        for guess in (first, second, job[:-1] + ("a" if job[-1] != "a" else "b"), job.upper(), job + " "):
            self.assertIn("this server has no job of that job_id", client.refused("wait", job_id=guess, kill=True))
        self.assertTrue(client.text("wait", job_id=job, wait_s=0).startswith("running · "))

    def test_many_jobs_are_refused_in_a_sentence(self):
        client = self.client("--set", "session.calls=4")
        lines = [first_line(client.text("run_command", command="sleep 1000", wait_s=0)) for _ in range(12)]
        lines += [first_line(client.text("wait", job_id=job_of(line))) if line.startswith("running") else line for line in lines[4:]]
        self.assertTrue(any("calls" in line for line in lines), lines)


class Lines(McpTest):
    def code_of(self, client, line):
        client.send(line)
        return client.receive()["error"]["code"]

    def test_hostile_lines_are_errors_and_the_server_goes_on(self):
        client = self.client()
        for line, code in (("{", -32700), ("[" * 10000, -32700), ("[" * 10000 + "]" * 10000, -32700), (b'{"\xff": 1}', -32700), ('{"a":' * 70 + "1" + "}" * 70, -32700),
                           ("[]", -32600), ('[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600), ("1", -32600), ("null", -32600), ('"ping"', -32600), ("{}", -32600),
                           ('{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600), ('{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
                           ('{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600), ('{"jsonrpc":"2.0","id":1,"method":7}', -32600),
                           ('{"jsonrpc":"2.0","id":1,"method":"no/such"}', -32601), ('{"jsonrpc":"2.0","id":1,"method":"ping","method":"x","params":[]}', -32602),
                           ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code\\u0000"}}', -32602)):
            with self.subTest(line=line[:60]):
                self.assertEqual(self.code_of(client, line), code)
        for silent in ("", "  ", '{"jsonrpc":"2.0","method":"notifications/unknown"}', '{"jsonrpc":"2.0","method":"tools/list","params":7}',
                       '{"jsonrpc":"2.0","id":9,"result":{}}', '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}'):
            client.send(silent)
        self.assertIn("tools", client.result(client.ask("tools/list")))
        self.assertEqual(self.sessions(), [])

    def test_a_line_that_is_too_long_is_skipped_and_memory_stays_flat(self):
        client = self.client()
        client.result(client.ask("tools/list"))
        for _ in range(68):
            client.process.stdin.write(b"x" * (1 << 20))
        client.send("")
        self.assertEqual(client.receive()["error"]["code"], -32700)
        self.assertIn("tools", client.result(client.ask("tools/list")))
        self.assertLess(self.kilobytes(client, "VmRSS"), 64 << 10)

    def kilobytes(self, client, what):
        with open(f"/proc/{client.process.pid}/status") as status:
            return int(next(line for line in status if line.startswith(what + ":")).split()[1])

    def test_slow_a_gibibyte_of_hostile_lines_leaves_memory_flat(self):
        """Several times all of them: the memory of the first round is enough for the others."""
        client = self.client()
        client.result(client.ask("tools/list"))
        megabyte = 1 << 20
        call = '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"run_code","arguments":{"code":%s}}}'
        hostile = [b"x" * (70 * megabyte), b"[" * (40 * megabyte), b'{"a":' * megabyte, b"[" + b"0," * (20 * megabyte) + b"0]", b'{"\xff":1}' * megabyte,
                   b'"' + b"\\u0041" * (8 * megabyte) + b'"', b'{"jsonrpc":"2.0","id":"' + b"i" * (30 * megabyte) + b'","method":"none"}',
                   (call % (1, 0)).encode().ljust(10 * megabyte), *[b"{}"] * 10000, *[(call % (n, "{}")).encode() for n in range(10000)]]
        sent, peaks = 0, []
        while sent < 1 << 30:
            for line in hostile:
                client.send(line)
                self.assertIsNotNone(client.receive())
                sent += len(line) + 1
            peaks.append(self.kilobytes(client, "VmHWM"))
        self.assertIn("tools", client.result(client.ask("tools/list")))
        self.assertLess(self.kilobytes(client, "VmRSS"), 64 << 10)
        self.assertLess(peaks[-1], peaks[0] + (8 << 10), peaks)
        self.assertEqual(self.sessions(), [])

    def test_too_many_requests_under_way_are_refused(self):
        client = self.client("--set", "session.calls=200")
        ids = [client.call("run_command", command="sleep 1000") for _ in range(64)]
        self.assertEqual(client.error(client.call("get_policy"))["message"], "too many requests under way")
        client.cancel(ids[0])
        self.assertIn("policy: agent", client.text("get_policy"))
        client.call("run_command", id="twice", command="sleep 1000")
        client.call("get_policy", id="twice")
        self.assertEqual(client.error("twice")["code"], -32600)

    def test_the_end_in_the_middle_of_a_line_runs_nothing(self):
        client = self.client()
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "run_command", "arguments": {"command": "true"},
                   "_meta": {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}}}
        client.process.stdin.write(json.dumps(request).encode())
        client.process.stdin.flush()
        self.assertEqual(client.end(), 0)
        self.nothing_is_left()


if __name__ == "__main__":
    sbxtest.main()

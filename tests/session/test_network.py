"""Refusals of a session's network: each call and cell hears of its own, each time."""

import json
import socket

import sessiontest
from sessiontest import SessionTest

ASK = "import socket\ntry: socket.getaddrinfo({name!r}, 80)\nexcept OSError: pass\n"
CONNECT = "import socket\ntry: socket.create_connection((\"192.0.2.1\", 80), 5)\nexcept OSError: pass\n"


def names(record):
    return {each["what"]: each["count"] for each in record["denials"] if each["kind"] == "network"}


class Refusals(SessionTest):
    def called(self, code):
        return names(self.exec_json("--", "/usr/bin/python3", "-c", code).record)

    def cell(self, code, context="python"):
        return names(self.sbx_session("eval", "work", "--context", context, "--lang", "python", "--json", "-c", code).record)

    def hears_each_time(self):
        for name in ("one.example.org", "one.example.org", "two.example.org"):
            with self.subTest(name=name):
                self.assertEqual(self.called(ASK.format(name=name)), {f"name {name}": 1})
                self.assertEqual(self.cell(ASK.format(name=name)), {f"name {name}": 1})
        for _ in range(2):
            self.assertEqual(self.called(CONNECT), {"tcp 192.0.2.1:80": 1})
            self.assertEqual(self.cell(CONNECT), {"tcp 192.0.2.1:80": 1})
        self.assertEqual(self.cell("1"), {})
        self.assertEqual(self.called("1"), {})

    def test_without_a_network(self):
        self.start_session()
        self.hears_each_time()

    def test_with_an_allow_list(self):
        self.start_session("--allow-host", "allowed.example.org:443")
        self.hears_each_time()

    def test_a_context_that_waits_has_no_part_in_it(self):
        self.start_session("--allow-host", "allowed.example.org:443")
        self.assertEqual(self.cell("1", "idle"), {})
        self.called(ASK.format(name="calls.example.org"))
        self.assertEqual(self.cell("1", "idle"), {})

    def test_an_allowed_destination_that_fails_is_told_as_a_run_tells_it(self):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))  # it does not listen: whoever connects is refused
            allowed = f"host.sbx.internal:{server.getsockname()[1]}"
            def connects(then):
                return f"import socket\ntry:\n  with socket.create_connection(('host.sbx.internal', {server.getsockname()[1]}), 60) as to: {then}\nexcept OSError: pass\n"
            code = connects("to.recv(1)")  # waits for its end, because sbx accepts it before it knows that it is refused
            run = self.finish(self.start_sbx("--json", "--allow-host", allowed, "--lang", "python", "-c", code, json_record=False), json_record=False)
            failed = json.loads(run.out)["network"]["failed"]
            self.assertEqual([(each["what"], each["count"]) for each in failed], [(allowed, 1)], run)
            self.start_session("--allow-host", allowed)

            def called(*options):
                return self.sbx_session("exec", "work", *options, "--", "/usr/bin/python3", "-c", code)

            def cell(*options):
                return self.sbx_session("eval", "work", *options, "-c", code)
            self.sbx_session("eval", "work", "--context", "idle", "-c", "1")
            for ask in (called, cell, called, cell):
                self.assertEqual(ask("--json").record["network"]["failed"], failed)
                self.assertIn(f"network: {allowed}: refused by ", ask().err)
            # It is told once, and to whom it failed.
            self.assertEqual(self.exec_json("--", "true").record["network"]["failed"], [])
            for context in ("python", "idle"):
                self.assertEqual(self.sbx_session("eval", "work", "--context", context, "--json", "-c", "1").record["network"]["failed"], [])
            server.listen()
            code = connects("pass")
            for ask in (called, cell):
                self.assertEqual(ask("--json").record["network"]["failed"], [])
                self.assertNotIn("network:", ask().err)

    def test_what_a_cell_left_behind_asks_is_told_by_the_next(self):
        self.start_session("--allow-host", "allowed.example.org:443")
        self.cell("import os, threading\ngo, wakes = os.pipe()\ndone, says = os.pipe()\n"
                  "def late():\n    os.read(go, 1)\n    import socket\n    try: socket.getaddrinfo('late.example.org', 80)\n    except OSError: pass\n    os.write(says, b'x')\n"
                  "threading.Thread(target=late).start()\n"
                  "def wake():\n    import time\n    time.sleep(0.2)\n    os.write(wakes, b'x')\nthreading.Thread(target=wake).start()")
        self.assertEqual(self.cell("_ = os.read(done, 1)"), {"name late.example.org": 1})

    def test_one_entry_counts_all_beyond_a_number(self):
        self.start_session("--allow-host", "allowed.example.org:443")
        heard = self.called("import socket\nfor i in range(300):\n    try: socket.getaddrinfo(f'n{i}.example.org', 80)\n    except OSError: pass\n")
        self.assertEqual((len(heard), heard["others"]), (257, 44))

    def test_words_name_it_too(self):
        self.start_session()
        for words in (("exec", "work", "--", "/usr/bin/python3", "-c"), ("eval", "work", "-c")):
            self.assertIn("denied: name words.example.org", self.sbx_session(*words, ASK.format(name="words.example.org")).err)


if __name__ == "__main__":
    sessiontest.main()

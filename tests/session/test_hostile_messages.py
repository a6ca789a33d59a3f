"""What a cell sends through its driver's channel, and what a process of the same user sends to a session's socket: neither
stops budgets, ends the session, or costs the host what no budget counts."""

import os
import pathlib
import resource
import socket
import struct
import time

import sessiontest
from harness import HANG
from sessiontest import SessionTest

PEER = pathlib.Path(__file__).parent / "channel_peer.py"
HUGE = 0x7FFFFFFFFFFFFFFF


def head(major, size):
    return bytes([major << 5 | 27]) + struct.pack(">Q", size)


def cbor(value):
    """The value in CBOR, RFC 8949, each size in eight bytes."""
    if value is None:
        return b"\xf6"
    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    return head(5, len(value)) + b"".join(cbor(name) + cbor(each) for name, each in value.items())


class Channel(SessionTest):
    def begin(self, *options):
        self.start_session(*options)
        self.assertEqual(self.sbx_session("put", "work", PEER, "/tmp/").status, 0)

    def cell(self, code, *options, context="python", timeout=HANG):
        peer = "exec(open('/tmp/channel_peer.py').read())\n"
        answer = self.sbx_session("eval", "work", "--context", context, "--lang", "python", "--json", *options, "-c", peer + code, timeout=timeout)
        return {**answer.record, "exit_status": answer.status}

    def worker(self):
        """The process that supervises the only context."""
        return next(each["pid"] for each in self.sbx_session("calls", "--json", "work").json["calls"] if each["command"].startswith("context "))

    @staticmethod
    def peak_mib(pid):
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024

    def test_messages_do_not_hold_up_the_wall_time(self):
        self.begin()
        for body in ("b'{\"event\":\"x\",\"a\":[' + b'{},' * 490_000 + b'0]}'",
                     "b'{\"event\":\"x\",' + b','.join(b'\"k%d\":0' % i for i in range(300_000)) + b'}'"):
            self.cell("1")
            session, worker = self.pids[0], self.worker()

            def used():
                """By the workers: when one has ended, its session's process has reaped it."""
                try:
                    alive = sessiontest.cpu_seconds(worker)
                except FileNotFoundError:
                    alive = 0
                return alive + sessiontest.cpu_seconds(session, of_children=True)
            before = used()
            record = self.cell(f"send({body})\nwhile True: pass", "--timeout", "1s")
            self.assertEqual((record["outcome"]["status"], record["exit_status"]), ("over-budget", 124), record)
            self.assertLess(used() - before, 5, "reading them costs little")

    def test_honest_values_with_many_parts_are_shown(self):
        self.begin("--timeout", "10m")
        for value in ("[{'a': 1}] * 100_000", "{'k%d' % i: 0 for i in range(50_000)}"):
            record = self.cell(f"class Data:\n    def _repr_mimebundle_(self, include=None, exclude=None): return {{'text/plain': 'd', 'application/json': {value}}}\n"
                               "Data()")
            self.assertEqual(record["outcome"]["status"], "answered", record["outcome"])
            data = record["answer"]["results"][0]["data"]
            self.assertIn(len(data["application/json"]), (100_000, 50_000))

    def test_names_and_parts_without_content_take_of_the_room_for_values(self):
        self.begin("--timeout", "10m")
        for data in ("{'%03d' % i + 'x' * 190: '' for i in range(100)}", "{'application/json': [[] for _ in range(3000)]}"):
            # sbx reads them with a tenth of a CPU.
            record = self.cell(f"message = result({data})\nfor _ in range(1500): send(message)", timeout=5 * HANG)
            self.assertEqual(record["outcome"]["status"], "answered", record["outcome"])
            self.assertGreater(record["answer"]["left_out_more"], 300)
        self.assertLess(self.peak_mib(self.worker()), 300)

    def test_messages_between_cells_get_a_part_of_a_cpu(self):
        self.begin("--cpu-time", "60s")
        # Not while the driver speaks: two that write at once break the channel, and the context ends.
        self.cell("import threading\nmessage = b'{\"event\":\"x\",\"a\":[' + b','.join([b'[]'] * 20_000) + b']}'\nos.mkfifo('/tmp/go')\n"
                  "def flood():\n    open('/tmp/go').close()\n    while not os.path.exists('/tmp/enough'): send(message)\n"
                  "flooding = threading.Thread(target=flood, daemon=True); flooding.start()")
        worker = self.worker()
        idle = sessiontest.cpu_seconds(worker)
        used = lambda: sessiontest.cpu_seconds(worker) - idle
        self.exec_ok("--", "sh", "-c", ": >/tmp/go")
        # The first half second is free, so that a large answer is read at once.
        sessiontest.wait_until(lambda: used() > 0.6, "it has read more than it may at once")
        began, before = time.monotonic(), used()
        sessiontest.wait_until(lambda: used() - before > 0.2, "it reads on")
        spent = used() - before
        self.assertGreater(time.monotonic() - began, 2 * spent)
        self.exec_ok("--", "touch", "/tmp/enough")
        self.assertEqual(self.cell("flooding.join()\n'alive'")["answer"]["ok"], True)

    def test_a_cell_that_is_not_well_has_no_status_0(self):
        self.begin()
        record = self.cell("send(done(False, 256)); 1")
        self.assertEqual((record["answer"]["ok"], record["answer"]["exit"], record["exit_status"]), (False, 256, 1))


class Socket(SessionTest):
    def connect(self):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(client.close)
        directory = os.open(self.directory() / "work", os.O_PATH)  # the path may be longer than an address
        try:
            client.connect(f"/proc/self/fd/{directory}/socket")
        finally:
            os.close(directory)
        client.settimeout(HANG)
        return client

    def say(self, packet, descriptors=()):
        client = self.connect()
        socket.send_fds(client, [packet], descriptors)
        return client

    def lives(self, what=""):
        self.assertEqual(self.exec_ok("--", "echo", "here").out, "here\n", what)

    def test_members_of_wrong_types_are_no_members(self):
        self.start_session()
        for request in ({"op": 5}, {"op": []}, {"op": "kill", "call": "1"}, {"op": "kill", "call": 1, "signal": "x"}, {"op": "logs", "call": 1, "out": "x"},
                        {"op": "logs", "call": 1, "follow": 3}, {"op": "wait", "call": -1, "record": "x"}, {"op": "extend", "milliseconds": "x" * 10}, {"op": "extend"},
                        {"op": "extend", "milliseconds": -1}, {"op": "extend", "milliseconds": -(1 << 63)}, {"op": "extend", "milliseconds": (1 << 64) - 1},
                        {"op": "interrupt", "context": 1}, {"op": "restart", "context": 1}, {"op": "eval", "language": 1}, {"op": "eval", "context": 1},
                        {"op": "call", "own": "x"}, {"op": "files", "title": 7}, {"op": "call", "background": "x"},
                        {"op": "changes", "view": 5, "paths": "x"}, {"op": "inspect", "question": 5, "code": 7},
                        {"op": "inspect", "language": "", "context": "", "question": "all", "code": ""}, {"op": "keep", "set": 1}, {"op": "bring-out"}):
            with self.subTest(request=request):
                self.say(b"\x02" + cbor(request)).recv(65536)
                self.lives(request)

    def test_bytes_that_are_no_request_end_no_session(self):
        self.start_session()
        deep = os.memfd_create("deep")
        self.addCleanup(os.close, deep)
        os.write(deep, b"\x81" * 2_000_000 + b"\x00")
        os.lseek(deep, 0, os.SEEK_SET)
        for packet, descriptors in ((b"\x02" + head(5, HUGE), ()), (b"\x02" + head(4, HUGE), ()), (b"\x02" + head(3, HUGE), ()), (b"\x02" + b"\x81" * 4000, ()),
                                    (b"\x02" + b"\xa1\x61a" * 1300, ()), (b"\x03abc", ()), (b"\x02", ()), (b"\x02", (deep,))):
            with self.subTest(packet=packet[:12], descriptors=descriptors):
                self.say(packet, descriptors).recv(65536)
                self.lives()

    def test_a_body_that_somebody_else_writes_is_not_waited_for(self):
        self.start_session()
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        self.addCleanup(os.close, writing)
        self.say(b"\x02", (reading,))
        self.lives()

    def test_silent_connections_keep_nobody_out(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
        self.start_session(preexec_fn=limit)
        for _ in range(500):
            self.connect()
        self.lives()
        self.stop_session()
        self.nothing_is_left()


if __name__ == "__main__":
    sessiontest.main()

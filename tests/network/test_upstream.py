"""Misbehaviour of DNS servers and servers outside: too long or incomplete answers, no answer, one half closed."""

import json
import pathlib
import socketserver
import time

import internet
import sbxtest
from harness import wait_until
from internet import ECHO, HTTP, PUBLIC, UDP_ECHO
from sbxtest import SbxTest

NAME = "web.example.org"
DEAF, TALKER = 9001, 9002
MIB = 1 << 20

PAGE = """
import socket, sys
try:
    s = socket.create_connection((sys.argv[1], 80), 20)
    s.sendall(b'GET / HTTP/1.0\\r\\nHost: me\\r\\n\\r\\n')
    print(s.makefile('rb').read().splitlines()[-1].decode())
except OSError as error:
    print(type(error).__name__)
"""
# Shuts down its half; waits; another connection works meanwhile.
SILENCE = """
import socket, sys
host, deaf, echo = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
s = socket.create_connection((host, deaf), 20)
s.sendall(b'anybody?')
s.shutdown(socket.SHUT_WR)
other = socket.create_connection((host, echo), 20)
other.sendall(b'x')
print(other.recv(1).decode())
s.setblocking(False)
try:
    print('got', s.recv(1))
except BlockingIOError:
    print('silent')
"""
# Reads until the server has shut down its half, then sends.
LISTEN_FIRST = """
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 20)
got = b''
while data := s.recv(100):
    got += data
s.sendall(bytes(int(sys.argv[3])))
print(got.decode())
"""
RESET = """
import socket, struct, sys
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
held = [socket.create_connection((host, port), 20) for _ in range(count)]
for s in held:
    s.sendall(b'x')
    s.shutdown(socket.SHUT_WR)
print('held', flush=True)
sys.stdin.readline()
for s in held:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    s.close()
print('reset', flush=True)
sys.stdin.readline()
"""
TWO_QUESTIONS = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
s.connect((sys.argv[1], int(sys.argv[2])))
for word in (b'one', b'two'):
    s.send(word)
    assert s.recv(100) == word
    print(word.decode(), flush=True)
    if 'wait' in sys.argv:
        sys.stdin.readline()
"""


def connected_sockets(kind, port):
    lines = pathlib.Path(f"/proc/net/{kind}").read_text().splitlines()[1:]
    return sum(line.split()[2].endswith(f":{port:04X}") for line in lines)


class Deaf(socketserver.BaseRequestHandler):
    """Neither reads nor writes nor leaves."""

    def handle(self):
        time.sleep(3600)


class Talker(socketserver.BaseRequestHandler):
    """Sends something, shuts down its half, then reads."""

    def handle(self):
        self.request.sendall(b"hello")
        self.request.shutdown(1)
        while self.request.recv(65536):
            pass


def serve(names):
    internet.serve_everything(names)
    internet.serve_tcp(PUBLIC, DEAF, Deaf)
    internet.serve_tcp(PUBLIC, TALKER, Talker)


class Upstream(SbxTest):
    def setUp(self):
        super().setUp()
        sbxtest.known_children().add(internet.shared(serve).pid)
        internet.use_files(self.tmp)

    def allowed(self, *rules):
        return [word for rule in rules for word in ("--allow-host", rule)]

    def run_python(self, code, *arguments, rules, **rest):
        return self.python(code, *arguments, options=self.allowed(*rules), **rest)

    def start_python(self, code, *arguments, rules, env=None):
        process = self.start_sbx("--report", self.tmp / "record", *self.allowed(*rules), "--stdin", "inherit", "--lang", "python", "-c", code, *arguments,
                                 json_record=False, stdin=-1, env=env)
        self.addCleanup(process.stdin.close)
        return process

    def go_on(self, process):
        process.stdin.write(b"go\n")
        process.stdin.flush()

    def wait_for_sockets(self, kind, port, count):
        """The host's sockets that sbx has connected to a port outside."""
        wait_until(lambda: connected_sockets(kind, port) == count, f"{count} {kind} sockets to port {port}")

    # ---- DNS

    def test_name_with_hundreds_of_addresses_is_reached(self):
        """Only the last address is reachable; it doesn't fit into a datagram, so the answer is marked as truncated."""
        ended = self.run_python(PAGE, "hundreds.example.org", rules=[f"hundreds.example.org:{HTTP}"])
        self.assertEqual(ended.text, "page of me\n", ended)

    def test_dns_answer_of_64_kib_is_taken(self):
        ended = self.run_python(PAGE, "thousands.example.org", rules=[f"thousands.example.org:{HTTP}"])
        self.assertEqual(ended.text, "page of me\n", ended)

    def test_half_a_dns_answer_is_none(self):
        ended = self.run_python(PAGE, "torn.example.org", rules=[f"torn.example.org:{HTTP}"])
        self.assertEqual(ended.text, "ConnectionResetError\n", ended)
        failed = [(one["what"], one["why"]) for one in ended.record["network"]["failed"]]
        self.assertEqual(failed, [(f"torn.example.org:{HTTP}", "no DNS server of this machine answers")], ended)

    # ---- halves

    def test_server_that_never_answers_keeps_nobody_else_waiting(self):
        ended = self.run_python(SILENCE, NAME, DEAF, ECHO, rules=[f"{NAME}:{DEAF},{ECHO}"])
        self.assertEqual(ended.text, "x\nsilent\n", ended)
        self.assertEqual([(one["connections"], one["bytes_out"]) for one in ended.record["network"]["used"]], [(2, 9)], ended)

    def test_server_that_has_ended_its_half_takes_the_rest(self):
        ended = self.run_python(LISTEN_FIRST, NAME, TALKER, 3 * MIB, rules=[f"{NAME}:{TALKER}"])
        self.assertEqual(ended.text, "hello\n", ended)
        self.assertEqual([(one["bytes_in"], one["bytes_out"]) for one in ended.record["network"]["used"]], [(5, 3 * MIB)], ended)

    def test_connection_that_breaks_after_its_half_ended_is_let_go(self):
        """The server sends nothing, so its side causes no event."""
        count = 20
        process = self.start_python(RESET, NAME, DEAF, count, rules=[f"{NAME}:{DEAF}"])
        self.assertEqual(process.stdout.readline(), b"held\n")
        self.wait_for_sockets("tcp", DEAF, count)
        self.go_on(process)
        self.assertEqual(process.stdout.readline(), b"reset\n")
        self.wait_for_sockets("tcp", DEAF, 0)
        self.go_on(process)
        self.finish(process, json_record=False)

    # ---- datagrams

    def flow(self, *how, env=None):
        process = self.start_python(TWO_QUESTIONS, NAME, UDP_ECHO, *how, rules=[f"udp://{NAME}:{UDP_ECHO}"], env=env)
        self.assertEqual(process.stdout.readline(), b"one\n")
        return process

    def flows_of(self, process):
        self.finish(process, json_record=False)
        record = json.loads((self.tmp / "record").read_text())
        return [(one["connections"], one["bytes_in"], one["bytes_out"]) for one in record["network"]["used"]]

    def test_idle_flow_ends_and_another_one_begins(self):
        process = self.flow("wait", env={"SBX_TEST_UDP_IDLE_MS": "200"})
        self.wait_for_sockets("udp", UDP_ECHO, 0)
        self.go_on(process)
        self.assertEqual(process.stdout.readline(), b"two\n")
        self.go_on(process)
        self.assertEqual(self.flows_of(process), [(2, 6, 6)])

    def test_flow_that_is_not_idle_stays(self):
        process = self.flow()
        self.assertEqual(process.stdout.readline(), b"two\n")
        self.assertEqual(self.flows_of(process), [(1, 6, 6)])


if __name__ == "__main__":
    sbxtest.main()

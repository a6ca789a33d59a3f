"""network.mode = "none": nothing is reached, and attempts are reported."""

import pathlib
import socket

import sbxtest
from sbxtest import SbxTest

TRY = """
import errno, socket, sys
for place in sys.argv[1:]:
    host, port = place.rsplit(',', 1)
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    s = socket.socket(family, socket.SOCK_STREAM)
    try:
        s.connect((host, int(port)))
        print(place, 'connected')
    except socket.gaierror as error:
        print(place, socket.EAI_NONAME == error.errno and 'no name' or error)
    except OSError as error:
        print(place, errno.errorcode[error.errno])
"""
OWN_SERVER = """
import socket, threading
for family, address in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):
    server = socket.create_server((address, 0), family=family)
    thread = threading.Thread(target=lambda: server.accept()[0].sendall(b'hello'))
    thread.start()
    print(socket.create_connection(server.getsockname()[:2]).recv(5).decode())
    thread.join()
a = socket.socket(socket.AF_UNIX)
a.bind('/tmp/s'); a.listen()
b = socket.socket(socket.AF_UNIX); b.connect('/tmp/s')
print(socket.gethostbyname('localhost'), socket.gethostbyname('sandbox'))
"""
ASK = """
import socket, struct, sys
name, kind, transport = sys.argv[1], int(sys.argv[2]), sys.argv[3]
labels = b''.join(bytes([len(l)]) + l for l in name.encode().split(b'.'))
question = struct.pack('>HHHHHH', 7, 0x100, 1, 0, 0, 0) + labels + b'\\0' + struct.pack('>HH', kind, 1)
if transport == 'udp':
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('127.0.0.1', 53)); s.settimeout(20)
    s.send(question)
    answer = s.recv(512)
else:
    s = socket.create_connection(('127.0.0.1', 53), 20)
    s.sendall(struct.pack('>H', len(question)) + question)
    answer = s.makefile('rb').read(2 + len(question))[2:]
print('rcode', answer[3] & 15, 'id', struct.unpack('>H', answer[:2])[0], 'answers', answer[7])
"""
FLOOD = """
import socket, sys
count = int(sys.argv[1])
for i in range(count):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        s.connect(('192.0.2.1', 80))
    except OSError:
        pass
    s.close()
"""


class NetworkNaming(SbxTest):
    def named(self, ended):
        return {denial["what"]: denial for denial in ended.record["denials"] if denial["kind"] == "network"}

    def tried(self, *places, options=()):
        ended = self.exited(self.python(TRY, *places, options=options))
        answers = dict(line.split(" ", 1) for line in ended.text.splitlines())
        return answers, self.named(ended), ended

    def test_addresses_are_refused_at_once_and_named(self):
        answers, named, ended = self.tried("192.0.2.1,443", "192.0.2.1,443", "10.1.2.3,22", "2001:db8::1,80")
        self.assertEqual(set(answers.values()), {"ENETUNREACH"}, ended)
        self.assertEqual({what: denial["count"] for what, denial in named.items()},
                         {"tcp 192.0.2.1:443": 2, "tcp 10.1.2.3:22": 1, "tcp [2001:db8::1]:80": 1}, ended)
        one = named["tcp 192.0.2.1:443"]
        self.assertIn("python", one["process"])
        self.assertIn('network.mode = "none" (default.toml:', one["rule"])
        self.assertEqual(one["allow_with"], 'network = { mode = "allow-list", allow = ["192.0.2.1:443"] }')
        self.assertTrue(one["risk"])

    def test_names_are_answered_and_named(self):
        answers, named, ended = self.tried("example.org,443", "EXAMPLE.org,80")
        self.assertEqual(set(answers.values()), {"no name"}, ended)
        self.assertEqual(list(named), ["name example.org"], ended)
        one = named["name example.org"]
        self.assertEqual(one["count"], 2)
        self.assertEqual(one["allow_with"], 'network = { mode = "allow-list", allow = ["example.org:443"] }')
        self.assertIn("python", one["process"])
        self.assertIn("plain http needs :80", one["risk"])

    def test_a_script_that_the_program_has_replaced_tells_no_port(self):
        secret, script = self.tmp / "secret", self.work / "s.py"
        secret.write_text("https://alice:31337@example.org\n")
        text = "import os, socket, sys\nif sys.argv[1:]: os.remove('s.py'); os.symlink(sys.argv[1], 's.py')\ntry: socket.getaddrinfo('alice', None)\nexcept OSError: pass\n"
        for more, mode, words, port in (("", "read-write", (secret,), 443), ("# alice:8080\n", "overlay", (), 8080),
                                        ("# it is at alice:8080.\n", "overlay", (), 8080), ("# alice:8080.5\n", "overlay", (), 443)):
            script.unlink(missing_ok=True)
            script.write_text(text + more)
            one = self.named(self.exited(self.sbx("--workspace", f".:{mode}", "s.py", *words)))["name alice"]
            self.assertEqual(one["allow_with"], f'network = {{ mode = "allow-list", allow = ["alice:{port}"] }}')

    def test_datagrams_are_named_as_such(self):
        ended = self.exited(self.python(FLOOD, "1"))
        one = self.named(ended)["udp 192.0.2.1:80"]
        self.assertEqual(one["allow_with"], 'network = { mode = "allow-list", allow = ["udp://192.0.2.1:80"] }')

    def test_a_thread_is_named_too(self):
        ended = self.exited(self.python("import sys, threading\n" f"code = {TRY!r}\n"
                                        "thread = threading.Thread(target=exec, args=(code,))\nthread.start(); thread.join()\n", "192.0.2.1,443"))
        self.assertEqual(list(self.named(ended)), ["tcp 192.0.2.1:443"], ended)

    def test_what_stays_inside_works_and_is_not_named(self):
        ended = self.exited(self.python(OWN_SERVER))
        self.assertEqual(ended.text, "hello\nhello\n127.0.0.1 127.0.0.1\n")
        self.assertEqual(ended.record["denials"], [])

    def test_low_ports_are_the_programs_in_a_network_of_its_own_only(self):
        setting = pathlib.Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
        before = setting.read_text()
        bind = "import socket\nfor family, address in ((2, '0.0.0.0'), (10, '::1')):\n  with socket.socket(family) as s: s.bind((address, 80)); s.listen()"
        for options in ((), ("--set", 'network.mode="allow-list"')):
            self.exited(self.python(bind, options=options))
        self.assertEqual(setting.read_text(), before)
        if int(before) <= 80:
            self.skipTest("the host gives everybody these ports")
        ended = self.python(bind, options=("--net", "host"))
        self.assertIn("PermissionError", ended.record["stderr"]["text"], ended)

    def test_a_refusal_of_the_own_loopback_is_not_named(self):
        answers, named, ended = self.tried("127.0.0.1,9", "::1,9", "0.0.0.0,9", "::ffff:127.0.0.1,9")
        self.assertEqual(set(answers.values()), {"ECONNREFUSED"}, ended)
        self.assertEqual(named, {}, ended)

    def test_questions_get_no_such_name_over_udp_and_tcp(self):
        for transport in ("udp", "tcp"):
            for kind in (1, 28, 16, 10, 255, 65):
                ended = self.exited(self.python(ASK, "secret.tunnel.example", str(kind), transport))
                self.assertEqual(ended.text, "rcode 3 id 7 answers 0\n", ended)
                self.assertEqual(list(self.named(ended)), ["name secret.tunnel.example"], ended)

    def test_a_name_that_no_rule_can_have_has_no_line_that_allows_it(self):
        ended = self.exited(self.python(ASK, "a b.example", "1", "udp"))
        one = self.named(ended)["name a\\032b.example"]
        self.assertFalse(one["allow_with"])
        answers, named, ended = self.tried("192.0.2.1,53", "224.0.0.251,5353")
        self.assertEqual(len(named), 2, ended)
        self.assertFalse(any(denial["allow_with"] for denial in named.values()), ended)

    def test_what_allows_a_name_is_taken_by_the_command_line(self):
        _, named, _ = self.tried("example.org,443")
        line = named["name example.org"]["allow_with"]
        # The suggested line, in a policy: then the name resolves.
        policy = self.policy(f"{line}\n")
        for options in (["--set", line], ["-p", policy]):
            answers, named, ended = self.tried("example.org,443", options=options)
            self.assertNotEqual(list(answers.values()), ["no name"], ended)
            self.assertNotIn("name example.org", named, ended)

    def test_naming_can_be_left_out(self):
        answers, named, ended = self.tried("192.0.2.1,443", "example.org,80", options=["--set", "network.named=false"])
        self.assertEqual(answers["192.0.2.1,443"], "ENETUNREACH", ended)
        self.assertEqual(named, {}, ended)

    def test_naming_can_be_required(self):
        self.exited(self.sbx("--require", "network.named", "--", "true"))

    def test_the_host_is_not_reached_at_an_address_that_is_named(self):
        # The twin: outside the same address answers.
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            answers, named, ended = self.tried(f"127.0.0.1,{port}")
            self.assertEqual(list(answers.values()), ["ECONNREFUSED"], ended)
            with socket.create_connection(("127.0.0.1", port), 5):
                pass

    def test_a_connect_that_the_policy_denies_stays_denied(self):
        answers, named, ended = self.tried("192.0.2.1,443", options=["--set", 'syscalls.deny=["connect"]'])
        self.assertEqual(answers["192.0.2.1,443"], "EPERM", ended)
        self.assertIn("connect", ended.denied, ended)
        self.assertEqual(named, {}, ended)

    def test_a_flood_is_counted_exactly_and_bounded(self):
        ended = self.exited(self.python(FLOOD, "3000"))
        self.assertEqual(self.named(ended)["udp 192.0.2.1:80"]["count"], 3000, ended)

    def test_many_destinations_are_bounded_and_nothing_is_lost(self):
        places = [f"192.0.2.{i},{port}" for i in range(100) for port in (80, 443, 8080)]
        _, named, ended = self.tried(*places)
        self.assertEqual(len(named), 257, ended)
        self.assertEqual(sum(denial["count"] for denial in named.values()), 300)
        self.assertEqual(named["others"]["count"], 44)

    def test_bad_arguments_get_the_kernels_answer_and_no_name(self):
        code = ("import ctypes, os, socket\n"
                "libc = ctypes.CDLL(None, use_errno=True)\n"
                "fd = socket.socket().detach()\n"
                "for address, length in ((None, 16), (1, 16), (b'\\2\\0', 2), (b'\\2\\0' + bytes(14), -1), (b'', 0)):\n"
                "    libc.connect(fd, ctypes.c_void_p(address) if not isinstance(address, bytes) else address, length)\n"
                "    print(ctypes.get_errno())\n")
        ended = self.exited(self.python(code))
        self.assertEqual(ended.text.split(), ["14", "14", "22", "22", "22"], ended)
        self.assertEqual(self.named(ended), {}, ended)


if __name__ == "__main__":
    sbxtest.main()

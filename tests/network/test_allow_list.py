"""network.mode = "allow-list": programs reach what is allowed and nothing else, and the record reports both."""

import json
import pathlib
import socket
import subprocess
import tempfile

import internet
import sbxtest
from internet import ECHO, HTTP, METADATA, OTHER_PUBLIC, PRIVATE, PUBLIC, PUBLIC6, UDP_ECHO
from sbxtest import SbxTest
from sessiontest import held_up

TALK = """
import socket, sys
host, port, text = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()
s = socket.create_connection((host, port), 10)
s.sendall(text)
s.shutdown(socket.SHUT_WR)
got = b''
while data := s.recv(65536):
    got += data
print(got.decode())
"""
CONNECT = """
import errno, socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 10).close()
    print('connected')
except socket.gaierror as error:
    print('no name')
except OSError as error:
    print(errno.errorcode.get(error.errno, error))
"""
ASK = """
import socket, sys
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
s = socket.socket(family, socket.SOCK_DGRAM)
if 'connected' in sys.argv:
    s.connect(address)
s.settimeout(10)
try:
    for i in range(count):
        s.sendto(b'%d' % i, address) if 'connected' not in sys.argv else s.send(b'%d' % i)
        data, sender = s.recvfrom(100)
        assert (data, sender[:2]) == (b'%d' % i, address[:2]), (data, sender, address)
    print('answered')
except OSError as error:
    print(type(error).__name__)
"""
TLS = """
import socket, ssl, sys
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
try:
    s = socket.create_connection((sys.argv[1], 443), 10)
    t = context.wrap_socket(s, server_hostname=sys.argv[2] or None)
    t.sendall(b'hello')
    print(t.recv(100).decode())
except OSError as error:
    print(type(error).__name__)
"""
PLAIN = """
import socket, sys
s = socket.create_connection((sys.argv[1], 443), 10)
try:
    s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
    print(s.recv(100) or 'closed')
except OSError as error:
    print(type(error).__name__)
"""
SERVE = """
import socket
s = socket.create_server(('127.0.0.1', 8000))
print('ready', flush=True)
c, _ = s.accept()
c.sendall(b'from inside: ' + c.recv(100))
c.close()
"""
BURST = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(10)
for i in range(int(sys.argv[3])):
    s.sendto(b'%d' % i, (sys.argv[1], int(sys.argv[2])))
print(len({s.recv(100) for _ in range(int(sys.argv[3]))}))
"""
UNTIL_ANSWERED = """
import socket, sys
sys.stdin.readline()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
to, sent, got = (sys.argv[1], int(sys.argv[2])), 0, []
s.settimeout(0.001)  # so many that the gateway's queue holds them
while not got:
    s.sendto(b'%d' % sent, to)
    sent += 1
    try:
        got.append(s.recv(100))
    except TimeoutError:
        pass
s.settimeout(10)
s.sendto(b'last', to)
while got[-1] != b'last':
    got.append(s.recv(100))
print('more than one' if sent > 1 else 'one', 'doubled' if len(got) > len(set(got)) else 'once each')
"""
SCAN = """
import socket, sys
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def echo(s):
    s.sendall(b'x')
    return s.recv(1) == b'x'
held = socket.create_connection((host, port), 10)
for other in range(20000, 20000 + count):  # the server's side refuses them: a reset, now or later
    with socket.socket() as s:
        s.settimeout(10)
        try:
            s.connect((host, other))
        except OSError:
            pass
print('old one answers' if echo(held) else 'broken')
print('new one answers' if echo(socket.create_connection((host, port), 10)) else 'broken')
"""
# Ends at once, as soon as the kernel has taken what it sends.
SEND_AND_END = """
import os, socket, sys
kind, size = getattr(socket, sys.argv[3]), int(sys.argv[4])
family, _, _, _, address = socket.getaddrinfo(sys.argv[1], int(sys.argv[2]), type=kind)[0]
s = socket.socket(family, kind)
s.connect(address)
s.sendall(b'x' * size)
os._exit(0)
"""
MANY = """
import socket, sys
count = int(sys.argv[1])
held = [socket.create_connection(('web.example.org', 7), 30) for _ in range(count)]
for i, s in enumerate(held):
    s.sendall(b'%d\\n' % i)
for i, s in enumerate(held):
    assert s.makefile('rb').readline() == b'%d\\n' % i, i
print('all', count)
"""

RESET = (7, 55, 56)  # curl: the connection ended before it was established, while curl wrote, or while it read


class AllowList(SbxTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        internet.make_certificate(cls.enterClassContext(tempfile.TemporaryDirectory()))

    def setUp(self):
        super().setUp()
        sbxtest.known_children().add(internet.shared().pid)
        internet.use_files(self.tmp)

    def allowed(self, *rules):
        return [word for rule in rules for word in ("--allow-host", rule)]

    def connect(self, host, port, *rules, options=()):
        return self.python(CONNECT, host, port, options=[*self.allowed(*rules), *options])

    def fetch(self, url, *options):
        return self.sbx(*options, "--", "curl", "-sS", "-m", "20", url)

    def used(self, ended):
        return {use["rule"]: (use["connections"], use["bytes_in"], use["bytes_out"]) for use in ended.record["network"]["used"]}

    def failed(self, ended):
        return {failure["what"]: failure["why"] for failure in ended.record["network"]["failed"]}

    def test_allowed_name_is_reached_and_counted(self):
        ended = self.exited(self.fetch("http://web.example.org/", *self.allowed("web.example.org:80")))
        self.assertEqual(ended.text, "page of web.example.org\n")
        self.assertEqual(ended.record["denials"], [])
        self.assertEqual(ended.record["enforced"]["network"], "gateway")
        connections, received, sent = self.used(ended)["web.example.org:80"]
        self.assertEqual(connections, 1)
        self.assertGreater(received, 24)
        self.assertGreater(sent, 40)

    def test_other_name_does_not_resolve_and_is_named(self):
        ended = self.connect("other.example.org", HTTP, "web.example.org:80")
        self.assertEqual(ended.text, "no name\n")
        self.assertEqual(ended.denied, {"name other.example.org": 1})
        denial = ended.record["denials"][0]
        self.assertEqual((denial["kind"], denial["allow_with"]), ("network", 'network.allow = ["other.example.org:80"]'))

    def test_other_port_is_refused_at_once_and_named(self):
        ended = self.connect("web.example.org", 7, "web.example.org:80")
        self.assertEqual(ended.text, "ECONNREFUSED\n")
        self.assertEqual(ended.denied, {"tcp web.example.org:7": 1})
        self.assertEqual(ended.record["denials"][0]["allow_with"], 'network.allow = ["web.example.org:7"]')

    def test_bare_address_is_refused_and_named(self):
        for address, text in ((PUBLIC, PUBLIC), (PUBLIC6, f"[{PUBLIC6}]")):
            ended = self.connect(address, HTTP, "web.example.org:80")
            self.assertEqual(ended.text, "ECONNREFUSED\n")
            self.assertEqual(ended.denied, {f"tcp {text}:80": 1})
            self.assertEqual(ended.record["denials"][0]["allow_with"], f'network.allow = ["{text}:80"]')

    def test_line_that_a_denial_suggests_allows_it(self):
        for address in (PUBLIC, PUBLIC6, METADATA, PRIVATE):
            refused = self.connect(address, HTTP, options=["--set", 'network.mode="allow-list"'])
            self.assertEqual(refused.text, "ECONNREFUSED\n")
            allowed = self.connect(address, HTTP, options=["--set", 'network.mode="allow-list"', "--set", refused.record["denials"][0]["allow_with"]])
            self.assertEqual(allowed.text, "connected\n")

    def test_prefix_allows_its_addresses_on_its_ports(self):
        rules = ["--allow-host", "93.184.216.0/24:80", "--allow-host", "[2606:2800::/32]:7"]
        for host, port, answer in ((PUBLIC, HTTP, "connected"), (OTHER_PUBLIC, HTTP, "connected"), (PUBLIC6, ECHO, "connected"),
                                   (PUBLIC, ECHO, "ECONNREFUSED"), (PUBLIC6, HTTP, "ECONNREFUSED")):
            with self.subTest(host=host, port=port):
                self.assertEqual(self.connect(host, port, options=rules).text, answer + "\n")

    def test_address_outside_a_prefix_is_reset_and_named(self):
        ended = self.python(TALK, PRIVATE, HTTP, "x", options=self.allowed("93.184.216.0/24:80"))
        self.assertNotEqual(ended.outcome["exit_code"], 0)
        self.assertEqual(ended.denied, {f"tcp {PRIVATE}:80": 1})

    def test_every_address_does_not_mean_special_ones(self):
        for address in (PRIVATE, METADATA, "127.0.0.1", internet.HOST4):
            ended = self.python(TALK, address, HTTP, "x", options=self.allowed("0.0.0.0/0:80"))
            self.assertNotEqual(ended.outcome["exit_code"], 0, ended)
        self.assertEqual(self.connect(PUBLIC, HTTP, "0.0.0.0/0:80").text, "connected\n")

    def test_name_keeps_its_ports_beside_a_prefix(self):
        rules = ["0.0.0.0/0:7", "web.example.org:80"]
        ended = self.python(TALK, "web.example.org", ECHO, "x", options=self.allowed(*rules))
        self.assertNotEqual(ended.outcome["exit_code"], 0, ended)
        self.assertEqual(self.connect("web.example.org", HTTP, *rules).text, "connected\n")

    def test_datagrams_reach_an_allowed_name_and_come_back(self):
        for how in ("connected", "unconnected"):
            ended = self.python(ASK, "web.example.org", UDP_ECHO, 100, how, options=self.allowed("udp://web.example.org:7"))
            self.assertEqual(ended.text, "answered\n", ended)
            self.assertEqual(self.used(ended), {"udp://web.example.org:7": (1, 190, 190)})
            self.assertEqual(ended.denied, {})

    def test_datagrams_reach_addresses_of_a_prefix(self):
        for address, rule in ((PUBLIC, "udp://93.184.216.0/24:7"), (PUBLIC6, f"udp://[{PUBLIC6}]:7"), (PUBLIC6, "udp://[2606:2800::/32]:7")):
            ended = self.python(ASK, address, UDP_ECHO, 3, options=self.allowed(rule))
            self.assertEqual(ended.text, "answered\n", ended)

    def test_other_datagrams_are_refused_and_named(self):
        ended = self.python(ASK, PUBLIC, UDP_ECHO, 1, "connected", options=self.allowed("web.example.org:7"))
        self.assertEqual(ended.text, "ConnectionRefusedError\n")
        self.assertEqual(ended.denied, {f"udp {PUBLIC}:7": 1})
        self.assertEqual(ended.record["denials"][0]["allow_with"], f'network.allow = ["udp://{PUBLIC}:7"]')

    def test_datagrams_that_are_refused_there_fail_at_once(self):
        nobody = UDP_ECHO + 1
        for host, rule, failed in (("web.example.org", f"udp://web.example.org:{nobody}", f"udp://web.example.org:{nobody}"),
                                   (PUBLIC, f"udp://{PUBLIC}:{nobody}", f"udp://{PUBLIC}:{nobody}"),
                                   (PUBLIC6, f"udp://[{PUBLIC6}]:{nobody}", f"udp://[{PUBLIC6}]:{nobody}"),
                                   (PUBLIC, "udp://93.184.216.0/24:*", f"udp://{PUBLIC}:{nobody}")):
            with self.subTest(host=host, rule=rule):
                ended = self.python(ASK, host, nobody, 1, "connected", options=self.allowed(rule))
                self.assertEqual(ended.text, "ConnectionRefusedError\n", ended)
                self.assertEqual(self.failed(ended), {failed: "refused there"}, ended)
        self.assertEqual(self.python(ASK, PUBLIC, UDP_ECHO, 1, "connected", options=self.allowed(f"udp://{PUBLIC}:7")).text, "answered\n")

    def test_datagrams_to_a_name_that_leads_nowhere_fail_at_once(self):
        for name in ("private.example.org", "missing.example.org"):
            ended = self.python(ASK, name, UDP_ECHO, 1, "connected", options=self.allowed(f"udp://{name}:7"))
            self.assertEqual(ended.text, "ConnectionRefusedError\n", ended)

    def test_tls_name_must_be_the_dialled_one(self):
        allowed = self.python(TLS, "web.example.org", "web.example.org", options=self.allowed("web.example.org"))
        self.assertEqual(allowed.text, "secret\n", allowed)
        other = self.python(TLS, "web.example.org", "other.example.org", options=self.allowed("web.example.org"))
        self.assertIn("Error", other.text)
        self.assertEqual(other.denied, {"TLS name other.example.org at web.example.org:443": 1})
        nameless = self.python(TLS, "web.example.org", "", options=self.allowed("web.example.org"))
        self.assertEqual(nameless.denied, {"TLS without a name at web.example.org:443": 1})
        unmatched = self.python(TLS, "web.example.org", "other.example.org",
                                options=[*self.allowed("web.example.org"), "--set", "network.match_sni=false"])
        self.assertEqual(unmatched.text, "secret\n", unmatched)

    def test_what_is_no_tls_does_not_pass_on_443(self):
        ended = self.python(PLAIN, "web.example.org", options=self.allowed("web.example.org"))
        self.assertEqual(ended.text, "ConnectionResetError\n")
        self.assertEqual(ended.denied, {"no TLS at web.example.org:443": 1})

    def test_published_port_leads_into_the_sandbox(self):
        for mode in ("none", "allow-list"):
            process = self.start_sbx("--set", f'network.mode="{mode}"', "--set", 'network.publish=["127.0.0.1:8081:8000"]',
                                     "--report", self.tmp / "record", "--lang", "python", "-c", SERVE, json_record=False)
            self.assertEqual(process.stdout.readline(), b"ready\n")
            with socket.create_connection(("127.0.0.1", 8081), 10) as client:
                client.sendall(b"hello")
                client.shutdown(socket.SHUT_WR)
                self.assertEqual(client.makefile("rb").read(), b"from inside: hello")
            self.finish(process, json_record=False)
            record = json.loads((self.tmp / "record").read_text())
            self.assertEqual(record["network"]["used"], [{"rule": "127.0.0.1:8081:8000", "connections": 1, "bytes_in": 5, "bytes_out": 18}])

    def test_published_port_may_be_a_low_one_inside(self):
        process = self.start_sbx("--set", 'network.publish=["127.0.0.1:8081:80"]', "--lang", "python", "-c", SERVE.replace("8000", "80"),
                                 json_record=False)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        with socket.create_connection(("127.0.0.1", 8081), 10) as client:
            client.sendall(b"hello")
            client.shutdown(socket.SHUT_WR)
            self.assertEqual(client.makefile("rb").read(), b"from inside: hello")
        self.finish(process, json_record=False)

    def test_published_port_that_is_taken_is_an_error(self):
        with socket.create_server(("127.0.0.1", 8081)):
            ended = self.sbx("--set", 'network.publish=["127.0.0.1:8081:8000"]', "--", "true")
        self.could_not(ended, "127.0.0.1:8081:8000", "--set")

    def test_host_loopback_is_reached_by_its_own_name_only(self):
        with socket.create_server(("127.0.0.1", 8082)) as server:
            process = self.start_sbx(*self.allowed("host.sbx.internal:8082"), "--lang", "python", "-c", TALK, "host.sbx.internal", "8082", "x")
            client, _ = server.accept()
            with client:  # closing with unread data would send a reset, which may overtake the sent data
                self.assertEqual(client.makefile("rb").read(), b"x")
                client.sendall(b"host says hello")
            self.assertEqual(self.finish(process).text, "host says hello\n")
        ended = self.connect("127.0.0.1", 8082, "host.sbx.internal:8082")
        self.assertEqual(ended.text, "ECONNREFUSED\n")

    def test_what_a_program_sent_before_it_ended_arrives(self):
        options = self.allowed("host.sbx.internal:8085", "udp://host.sbx.internal:8085")
        for size in (0, 1, 50_000):
            with socket.create_server(("127.0.0.1", 8085)) as server:
                ended = self.exited(self.python(SEND_AND_END, "host.sbx.internal", 8085, "SOCK_STREAM", size, options=options))
                client, _ = server.accept()
                with client:
                    self.assertEqual(len(client.makefile("rb").read()), size)
            self.assertEqual(self.used(ended), {"host.sbx.internal:8085": (1, 0, size)})
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
            server.bind(("127.0.0.1", 8085))
            self.exited(self.python(SEND_AND_END, "host.sbx.internal", 8085, "SOCK_DGRAM", 7, options=options))
            self.assertEqual(server.recv(100, socket.MSG_DONTWAIT), b"x" * 7)

    def test_server_that_does_not_read_does_not_hold_up_the_end(self):
        with socket.create_server(("127.0.0.1", 8085)):
            code = SEND_AND_END.replace("sendall", "setblocking(False) or s.send")
            self.exited(self.python(code, "host.sbx.internal", 8085, "SOCK_STREAM", 1 << 20, options=self.allowed("host.sbx.internal:8085")))

    def test_address_that_stands_for_a_name_is_an_error(self):
        self.could_not(self.sbx(*self.allowed("198.18.0.1:80"), "--", "true"), "198.18.0.1", "--allow-host")

    # ---- rules with more ports than are listened on at first

    def test_every_port_of_a_name_is_reached(self):
        for port in (HTTP, ECHO, internet.LINGER):
            ended = self.connect("web.example.org", port, "web.example.org:*")
            self.assertEqual(ended.text, "connected\n", ended)
            self.assertEqual(ended.denied, {})
        ended = self.python(TALK, "web.example.org", ECHO, "hello", options=self.allowed("web.example.org:1-52,54-20000"))
        self.assertEqual(ended.text, "hellobye\n", ended)
        self.assertEqual(self.used(ended), {"web.example.org:1-52,54-20000": (1, 8, 5)})

    def test_port_outside_of_many_is_refused_and_named(self):
        for host, what in (("web.example.org", "web.example.org"), (PUBLIC, PUBLIC)):
            ended = self.connect(host, HTTP, f"{host}:1000-60000")
            self.assertEqual(ended.text, "ECONNREFUSED\n")
            self.assertEqual(ended.denied, {f"tcp {what}:80": 1})

    def test_every_port_of_a_prefix_is_reached(self):
        rules = ["93.184.216.0/24:*", "[2606:2800::/32]:54-1000"]
        for host, port, answer in ((PUBLIC, HTTP, "connected"), (OTHER_PUBLIC, ECHO, "connected"), (PUBLIC6, HTTP, "connected"),
                                   (PUBLIC6, 1001, "ECONNREFUSED"), (PRIVATE, HTTP, "ECONNREFUSED")):
            with self.subTest(host=host, port=port):
                ended = self.connect(host, port, *rules)
                self.assertEqual(ended.text, answer + "\n", ended)
                self.assertEqual(bool(ended.denied), answer != "connected", ended)

    def test_datagrams_reach_every_port(self):
        """Announced by connect(2) or not."""
        for how in ("connected", "unconnected"):
            for host, rule in (("web.example.org", "udp://web.example.org:*"), (PUBLIC, "udp://93.184.216.0/24:1-52,54-1000"), (PUBLIC6, f"udp://[{PUBLIC6}]:*")):
                with self.subTest(how=how, host=host):
                    ended = self.python(ASK, host, UDP_ECHO, 3, how, options=self.allowed(rule))
                    self.assertEqual(ended.text, "answered\n", ended)
                    self.assertEqual([(one["connections"], one["bytes_in"], one["bytes_out"]) for one in ended.record["network"]["used"]], [(1, 3, 3)])
                    self.assertEqual(ended.denied, {})

    def test_datagrams_sent_at_once_all_come_through(self):
        ended = self.python(BURST, PUBLIC, UDP_ECHO, 20, options=self.allowed("udp://93.184.216.0/24:*"))
        self.assertEqual(ended.text, "20\n", ended)

    def test_datagrams_that_come_while_their_port_is_opened_come_once(self):
        arguments = ["--allow-host", "udp://93.184.216.0/24:*", "--lang", "python", "-c", UNTIL_ANSWERED, PUBLIC, UDP_ECHO]
        process = self.start_sbx(*arguments, stdin=subprocess.PIPE)
        held_up(self, process.pid, "bind", 20_000)
        self.assertEqual(self.finish(process, arguments, data=b"go\n").text, "more than one once each\n")

    def test_more_ports_than_are_open_at_a_time(self):
        """Connections outlive the listeners that accepted them, and a closed listener is reopened."""
        ended = self.python(SCAN, PUBLIC, ECHO, 2000, options=self.allowed(f"{PUBLIC}:*"))
        self.assertEqual(ended.text, "old one answers\nnew one answers\n", ended)
        self.assertEqual(ended.denied, {})

    def test_half_closed_connection_gets_the_rest(self):
        ended = self.exited(self.python(TALK, "web.example.org", 7, "hello", options=self.allowed("web.example.org:7")))
        self.assertEqual(ended.text, "hellobye\n")
        self.assertEqual(self.used(ended), {"web.example.org:7": (1, 8, 5)})

    def test_wildcard_allows_every_name_below(self):
        ended = self.connect("b.wild.example.org", HTTP, "*.wild.example.org:80")
        self.assertEqual(ended.text, "connected\n")
        self.assertEqual(self.connect("wild.example.org", HTTP, "*.wild.example.org:80").text, "no name\n")

    def test_name_that_leads_to_a_private_address_is_refused(self):
        ended = self.fetch("http://private.example.org/", *self.allowed("private.example.org:80"))
        self.assertIn(ended.outcome["exit_code"], RESET, ended)
        self.assertIn("leads only to private addresses", ended.record["denials"][0]["rule"])
        allowed = self.fetch("http://private.example.org/", *self.allowed("private.example.org:80"), "--set", "network.private=true")
        self.assertEqual(self.exited(allowed).text, "page of private.example.org\n")

    def test_address_of_the_host_is_refused_to_a_name(self):
        for name in ("loop.example.org", "host.example.org"):
            ended = self.fetch(f"http://{name}/", *self.allowed(f"{name}:80"), "--set", "network.private=true")
            self.assertIn(ended.outcome["exit_code"], RESET, ended)
            self.assertEqual([denial["what"] for denial in ended.record["denials"]], [f"tcp {name}:80"])

    def test_what_is_offered_for_a_name_of_the_host_helps(self):
        for name, address in (("loop.example.org", "127.0.0.1"), ("host.example.org", internet.HOST4)):
            with self.subTest(name=name), socket.create_server((address, 8083)):
                refused = self.python(TALK, name, 8083, "x", options=self.allowed(f"{name}:8083"))
                self.assertEqual((refused.denied, self.used(refused)), ({f"tcp {name}:8083": 1}, {}), refused)
                cure = refused.record["denials"][0]["options"]
                allowed = self.connect(name, 8083, f"{name}:8083", options=cure)
                self.assertEqual((allowed.denied, self.used(allowed)[f"{name}:8083"][0]), ({}, 1), allowed)
                other = self.python(TALK, name, 8084, "x", options=[*self.allowed(f"{name}:8084"), *cure])
                self.assertEqual(other.denied, {f"tcp {name}:8084": 1}, other)

    def test_missing_name_is_a_named_failure(self):
        ended = self.fetch("http://missing.example.org/", *self.allowed("missing.example.org:80"))
        self.assertIn(ended.outcome["exit_code"], RESET, ended)
        self.assertEqual(self.failed(ended), {"missing.example.org:80": "no such name"})
        said = self.sbx(*self.allowed("missing.example.org:80"), "--", "bash", "-c", "exec 3<>/dev/tcp/missing.example.org/80; read -u 3",
                        json_record=False).err.decode()
        self.assertEqual([line for line in said.splitlines() if line.startswith("sbx:")],
                         ["sbx: network: missing.example.org:80: no such name"])

    def test_server_that_refuses_is_a_named_failure(self):
        ended = self.fetch("http://web.example.org:81/", *self.allowed("web.example.org:81"))
        self.assertEqual(self.failed(ended), {"web.example.org:81": f"refused by {PUBLIC}"})

    def test_server_over_ipv6_is_reached(self):
        ended = self.exited(self.fetch("http://six.example.org/", *self.allowed("six.example.org:80")))
        self.assertEqual(ended.text, "page of six.example.org\n")

    def test_server_that_does_not_answer_is_a_named_failure(self):
        ended = self.fetch("http://dead.example.org/", *self.allowed("dead.example.org:80"))
        self.assertEqual(list(self.failed(ended)), ["dead.example.org:80"])

    def test_many_connections_at_a_time(self):
        options = [*self.allowed("web.example.org:7"), "--set", "limits.open_files=4096"]
        ended = self.exited(self.python(MANY, 500, options=options))
        self.assertEqual(ended.text, "all 500\n")
        self.assertEqual(self.used(ended)["web.example.org:7"][0], 500)

    def test_large_transfer_is_complete(self):
        ended = self.sbx(*self.allowed("web.example.org:80"), "--", "sh", "-c", "curl -sS http://web.example.org/200000000 | wc -c")
        self.assertEqual(self.exited(ended).text, "200000000\n")

    def test_empty_list_allows_nothing(self):
        ended = self.connect("web.example.org", HTTP, options=["--policy", "web-fetch"])
        self.assertEqual(ended.text, "no name\n")
        self.assertNotIn("network.mode", [entry["what"] for entry in ended.record["degraded"]])

    def test_nothing_of_it_is_left_on_the_host(self):
        links = pathlib.Path("/proc/net/dev").read_text()
        self.exited(self.fetch("http://web.example.org/", *self.allowed("web.example.org:80")))
        self.assertEqual([line.split(":")[0] for line in pathlib.Path("/proc/net/dev").read_text().splitlines()],
                         [line.split(":")[0] for line in links.splitlines()])


if __name__ == "__main__":
    sbxtest.main()

"""network.mode = "allow-list": programs reach what is named and nothing else, and the record tells both."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "sandbox")]

import internet
import sbxtest
from internet import HTTP, PUBLIC, Internet
from sbxtest import SbxTest

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

RESET = (7, 56)  # curl: the connection ended before it knew of it, or after


class AllowList(SbxTest):
    def setUp(self):
        super().setUp()
        sbxtest.known_children().add(Internet().pid)
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
        self.assertEqual((denial["kind"], denial["allow_with"]), ("network", 'network.allow = ["other.example.org:443"]'))

    def test_other_port_is_refused_at_once_and_named(self):
        ended = self.connect("web.example.org", 7, "web.example.org:80")
        self.assertEqual(ended.text, "ECONNREFUSED\n")

    def test_bare_address_is_refused(self):
        ended = self.connect(PUBLIC, HTTP, "web.example.org:80")
        self.assertEqual(ended.text, "ECONNREFUSED\n")

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

    def test_missing_name_is_a_named_failure(self):
        ended = self.fetch("http://missing.example.org/", *self.allowed("missing.example.org:80"))
        self.assertIn(ended.outcome["exit_code"], RESET, ended)
        self.assertEqual(self.failed(ended), {"missing.example.org:80": "no such name"})

    def test_server_that_refuses_is_a_named_failure(self):
        ended = self.fetch("http://web.example.org:81/", *self.allowed("web.example.org:81"))
        self.assertEqual(self.failed(ended), {"web.example.org:81": f"refused by {PUBLIC}"})

    def test_server_over_ipv6_is_reached(self):
        ended = self.exited(self.fetch("http://six.example.org/", *self.allowed("six.example.org:80")))
        self.assertEqual(ended.text, "page of six.example.org\n")

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

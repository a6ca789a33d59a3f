"""Ways around an allow-list that must not work, each with a twin that works where it is allowed."""

import functools
import os
import socket
import threading

import internet
import sbxtest
from internet import ECHO, HOST4, HTTP, METADATA, PRIVATE, PUBLIC, UDP_ECHO, Internet
from sbxtest import SbxTest

NAMES = {
    **internet.NAMES,
    "mapped.example.org": ["::ffff:7f00:1"],
    "nat64.example.org": ["64:ff9b::7f00:1"],
    "unspecified.example.org": ["0.0.0.0"],
    "unique-local.example.org": ["fd00:53::1"],
}

# One question to the network in Python; prints the result, or the errno's name.
ASK = """
import errno, socket, struct, sys
def question(name, kind):
    labels = b''.join(bytes([len(l)]) + l.encode() for l in name.split('.')) + b'\\0'
    return struct.pack('!HHHHHH', 77, 0x100, 1, 0, 0, 0) + labels + struct.pack('!HH', kind, 1)
def told(answer):
    head = struct.unpack('!HHHHHH', answer[:12])
    return f'rcode {head[1] & 15} answers {head[3]}'
def tcp(host, port, text='x'):
    with socket.create_connection((host, int(port)), 10) as s:
        s.sendall(text.encode()); s.shutdown(socket.SHUT_WR)
        return b''.join(iter(lambda: s.recv(65536), b'')).decode()
def udp(host, port, text='x'):
    family, _, _, _, address = socket.getaddrinfo(host, int(port), type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(10); s.connect(address); s.send(text.encode())
        return s.recv(65536).decode()
def dns_udp(server, name, kind):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(10); s.connect((server, 53)); s.send(question(name, int(kind)))
        return told(s.recv(4096))
def dns_tcp(server, name, kind):
    with socket.create_connection((server, 53), 10) as s:
        asked = question(name, int(kind)); s.sendall(struct.pack('!H', len(asked)) + asked)
        return told(s.makefile('rb').read(2 + 12)[2:])
def make(family, kind, protocol):
    with socket.socket(int(family), int(kind), int(protocol)): return 'made'
def abstract(name, _):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect('\\0' + name); return 'connected'
def abstract_inside(name, _):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind('\\0' + name); s.listen(); return abstract(name, _)
def links(_, __): return ' '.join(sorted(name for _, name in socket.if_nameindex()))
def serve(port, text):
    with socket.create_server(('', int(port))) as s:
        print('listening', flush=True)
        peer, _ = s.accept(); peer.sendall(text.encode()); peer.close()
        return 'served'
try:
    print(globals()[sys.argv[1]](*sys.argv[2:]))
except socket.gaierror:
    print('no name')
except OSError as error:
    print(errno.errorcode.get(error.errno, error))
"""

TXT, NULL, ANY, A = 16, 10, 255, 1


class Changing(dict):
    """A name whose answer changes: public at the first query, the metadata service from then on."""

    def __init__(self, names, name, later):
        super().__init__(names)
        self.name, self.later, self.asked = name, later, 0

    def get(self, name, default=None):
        if name == self.name:
            self.asked += 1
            if self.asked > 1:
                return [self.later]
        return super().get(name, default)


class AllowListed(SbxTest):
    names = NAMES

    def setUp(self):
        super().setUp()
        self.asked_read = self.listening_internet()
        self.asked_upstream()  # by the test before
        internet.use_files(self.tmp)

    @classmethod
    @functools.cache
    def listening_internet(cls):
        """One for all tests of the class; returns the pipe that has the names its servers are asked for."""
        asked_read, asked = os.pipe()
        os.set_blocking(asked_read, False)
        sbxtest.known_children().add(Internet(names=Listened(cls.names, asked)).pid)
        os.close(asked)
        return asked_read

    def asked_upstream(self):
        """The names that any server of the internet was asked for."""
        try:
            return os.read(self.asked_read, 65536).decode().split()
        except BlockingIOError:
            return []

    def ask(self, *question, allow=(), options=()):
        words = [word for rule in allow for word in ("--allow-host", rule)]
        return self.python(ASK, *question, options=[*words, *options])

    def says(self, ended, text):
        self.assertEqual(ended.text, text + "\n", ended)
        return ended

    def named(self, ended, what):
        self.assertIn(what, ended.denied, ended)
        return ended


class Leaks(AllowListed):
    # ---- addresses and ports

    def test_raw_address(self):
        ended = self.says(self.ask("tcp", PUBLIC, ECHO, allow=["web.example.org:7"]), "ECONNREFUSED")
        self.named(ended, f"tcp {PUBLIC}:{ECHO}")
        self.says(self.ask("tcp", PUBLIC, ECHO, allow=[f"{PUBLIC}:7"]), "xbye")

    def test_address_that_no_name_was_given(self):
        """The addresses that represent names can be guessed: one that represents none leads nowhere."""
        for address in ("198.18.0.1", "198.18.200.200"):
            self.says(self.ask("tcp", address, ECHO, allow=["web.example.org:7"]), "ECONNREFUSED")
        self.says(self.ask("tcp", "web.example.org", ECHO, allow=["web.example.org:7"]), "xbye")

    def test_other_port(self):
        self.says(self.ask("tcp", "web.example.org", ECHO, allow=["web.example.org:80"]), "ECONNREFUSED")
        self.says(self.ask("tcp", "web.example.org", ECHO, allow=["web.example.org:80", "web.example.org:7"]), "xbye")

    def test_other_name_on_the_same_address(self):
        ended = self.says(self.ask("tcp", "same.example.org", ECHO, allow=["web.example.org:7"]), "no name")
        self.named(ended, "name same.example.org")
        self.says(self.ask("tcp", "same.example.org", ECHO, allow=["same.example.org:7"]), "xbye")

    def test_datagrams_are_not_allowed_by_a_tcp_rule(self):
        ended = self.says(self.ask("udp", "web.example.org", UDP_ECHO, allow=["tcp://web.example.org:7"]), "ECONNREFUSED")
        self.named(ended, f"udp web.example.org:{UDP_ECHO}")
        self.says(self.ask("udp", "web.example.org", UDP_ECHO, allow=["udp://web.example.org:7"]), "x")

    def test_quic(self):
        """HTTP/3 would bypass the checks on TLS: a rule for TCP doesn't open UDP 443."""
        ended = self.says(self.ask("udp", "web.example.org", 443, allow=["tcp://web.example.org:443"]), "ECONNREFUSED")
        self.named(ended, "udp web.example.org:443")

    # ---- where allowed names may lead

    def leads_nowhere(self, name, *options):
        ended = self.ask("tcp", name, ECHO, allow=[f"{name}:7"], options=options)
        self.assertNotIn("bye", ended.text, ended)
        self.named(ended, f"tcp {name}:7")
        return ended.record["denials"][0]

    def test_names_that_lead_to_loopback(self):
        for name in ("loop.example.org", "mapped.example.org", "nat64.example.org", "unspecified.example.org"):
            for options in ((), ("--set", "network.private=true")):
                with self.subTest(name=name, options=options):
                    self.leads_nowhere(name, *options)
        self.says(self.ask("tcp", "web.example.org", ECHO, allow=["web.example.org:7"]), "xbye")

    def test_name_that_leads_to_the_metadata_service(self):
        self.leads_nowhere("metadata.example.org")
        self.leads_nowhere("metadata.example.org", "--set", "network.private=true")
        self.says(self.ask("tcp", METADATA, ECHO, allow=[f"{METADATA}:7"]), "xbye")

    def test_name_that_leads_to_this_machine(self):
        self.leads_nowhere("host.example.org", "--set", "network.private=true")
        self.leads_nowhere("unique-local.example.org", "--set", "network.private=true")

    def test_name_that_leads_to_a_private_address(self):
        self.assertIn("leads only to private addresses", self.leads_nowhere("private.example.org")["rule"])
        self.says(self.ask("tcp", "private.example.org", ECHO, allow=["private.example.org:7"],
                           options=["--set", "network.private=true"]), "xbye")

    def test_everything_is_not_the_metadata_service(self):
        for address in (METADATA, PRIVATE, HOST4):
            with self.subTest(address=address):
                ended = self.ask("tcp", address, ECHO, allow=["0.0.0.0/0:7"])
                self.assertNotIn("bye", ended.text, ended)
                self.assertTrue(ended.record["denials"], ended)
        self.says(self.ask("tcp", PUBLIC, ECHO, allow=["0.0.0.0/0:7"]), "xbye")
        self.says(self.ask("tcp", PRIVATE, ECHO, allow=["10.0.0.0/8:7"]), "xbye")

    # ---- DNS

    def test_dns_tunnel(self):
        """Text encoded into names or queries never leaves: no server is asked."""
        for kind in (TXT, NULL, ANY, A):
            for ask in ("dns_udp", "dns_tcp"):
                with self.subTest(kind=kind, ask=ask):
                    ended = self.says(self.ask(ask, "8.8.8.8", "c2VjcmV0.example.org", kind, allow=["web.example.org:7"]),
                                      "rcode 3 answers 0")
                    self.named(ended, "name c2vjcmv0.example.org")
        for kind in (TXT, NULL, ANY):  # a name below an allowed wildcard has only an address
            ended = self.ask("dns_udp", "8.8.8.8", "c2VjcmV0.wild.example.org", kind, allow=["*.wild.example.org:7"])
            self.assertIn(ended.text, ("rcode 0 answers 0\n", "rcode 0 answers 1\n"), ended)
        self.assertEqual(self.asked_upstream(), [])
        self.says(self.ask("dns_udp", "8.8.8.8", "web.example.org", A, allow=["web.example.org:7"]), "rcode 0 answers 1")

    def test_dns_of_another_server(self):
        """Whichever server is asked, the gateway answers; no rule opens port 53."""
        for ask in ("dns_udp", "dns_tcp"):
            self.says(self.ask(ask, internet.DNS_SERVER, "other.example.org", A, allow=["0.0.0.0/0:7"]), "rcode 3 answers 0")
        self.assertEqual(self.asked_upstream(), [])
        self.could_not(self.sbx("--allow-host", f"{internet.DNS_SERVER}:53", "--", "true"), "port 53")

    def test_asking_is_not_enough_to_be_looked_up(self):
        """An allowed name is resolved on the host only when it is dialled: a query alone reveals nothing to others."""
        self.says(self.ask("dns_udp", "8.8.8.8", "web.example.org", A, allow=["web.example.org:7"]), "rcode 0 answers 1")
        self.assertEqual(self.asked_upstream(), [])
        self.says(self.ask("tcp", "web.example.org", ECHO, allow=["web.example.org:7"]), "xbye")
        self.assertIn("web.example.org", self.asked_upstream())

    # ---- other kinds of sockets

    def test_other_sockets_are_not_made(self):
        raw, datagram, stream = socket.SOCK_RAW, socket.SOCK_DGRAM, socket.SOCK_STREAM
        for what, family, kind, protocol in (("ping", socket.AF_INET, datagram, socket.IPPROTO_ICMP),
                                             ("raw", socket.AF_INET, raw, socket.IPPROTO_TCP),
                                             ("packet", socket.AF_PACKET, raw, 0),
                                             ("vsock", socket.AF_VSOCK, stream, 0),
                                             ("netfilter", socket.AF_NETLINK, raw, 12),
                                             ("sctp", socket.AF_INET, stream, socket.IPPROTO_SCTP)):
            with self.subTest(what=what):
                ended = self.ask("make", int(family), int(kind), int(protocol), allow=["0.0.0.0/0:7"])
                self.assertNotEqual(ended.text, "made\n", ended)
                self.assertIn("socket", " ".join(ended.denied), ended)
        # Run-times try MPTCP before TCP: it is refused without a denial.
        ended = self.ask("make", int(socket.AF_INET), int(stream), 262, allow=["0.0.0.0/0:7"])
        self.assertNotEqual(ended.text, "made\n", ended)
        self.says(self.ask("make", int(socket.AF_INET), int(stream), int(socket.IPPROTO_TCP), allow=["0.0.0.0/0:7"]), "made")

    def test_netlink_shows_the_sandbox_only(self):
        ended = self.ask("links", "", "", allow=["web.example.org:7"])
        self.assertNotIn("up0", ended.text, ended)
        self.assertIn("lo", ended.text.split(), ended)

    def test_abstract_socket_of_the_host(self):
        name = f"sbx-test-{os.getpid()}"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("\0" + name)
            server.listen()
            self.assertIn(self.ask("abstract", name, "", allow=["web.example.org:7"]).text, ("ECONNREFUSED\n", "EPERM\n"))
        self.says(self.ask("abstract_inside", name, "", allow=["web.example.org:7"]), "connected")

    # ---- the host's side

    def listen_on_host(self, address):
        server = socket.create_server((address, 0))
        self.addCleanup(server.close)

        def loop():
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                with peer:
                    peer.sendall(b"host's own")

        threading.Thread(target=loop, daemon=True).start()
        return server.getsockname()[1]

    def test_services_of_the_host(self):
        port = self.listen_on_host("127.0.0.1")
        for target in ("127.0.0.1", HOST4):
            self.says(self.ask("tcp", target, port, "", allow=["web.example.org:7"]), "ECONNREFUSED")
        self.says(self.ask("tcp", "host.sbx.internal", port, "", allow=["web.example.org:7"]), "no name")
        self.says(self.ask("tcp", "host.sbx.internal", port, "", allow=[f"host.sbx.internal:{port}"]), "host's own")

    def test_server_inside_is_not_reached_from_outside(self):
        for options, reached in (((), False), (("--set", 'network.publish=["127.0.0.1:8123:8080"]'), True)):
            with self.subTest(options=options):
                process = self.start_sbx("--allow-host", "web.example.org:7", "--timeout", "5s", *options, "--lang", "python", "-c", ASK,
                                         "serve", 8080, "inside", json_record=False)
                self.assertEqual(process.stdout.readline(), b"listening\n")
                for port in (8080, 8123):
                    got = self.try_read("127.0.0.1", port)
                    self.assertEqual(got == b"inside", reached and port == 8123, (options, port, got))
                if not reached:
                    process.terminate()
                self.finish(process, json_record=False)

    def try_read(self, host, port):
        try:
            with socket.create_connection((host, port), 5) as peer:
                return peer.recv(100)
        except OSError:
            return None


class Rebinding(AllowListed):
    """The name's answer changes between two look-ups."""

    names = Changing(NAMES, "web.example.org", METADATA)

    def test_rebinding(self):
        twice = ASK.replace("print(globals()", "print(*[globals()").replace("(*sys.argv[2:]))", "(*sys.argv[2:]) for _ in '12'])")
        ended = self.python(twice, "tcp", "web.example.org", ECHO, options=["--allow-host", "web.example.org:7"])
        self.assertNotEqual(ended.text, "xbye xbye\n", ended)
        self.named(ended, "tcp web.example.org:7")
        self.assertEqual([use["connections"] for use in ended.record["network"]["used"]], [1], ended)


class Listened(dict):
    """Names for a server that reports its queries through a pipe."""

    def __init__(self, names, pipe):
        super().__init__(names)
        self.names, self.pipe = names, os.dup(pipe)

    def get(self, name, default=None):
        os.write(self.pipe, name.encode() + b"\n")
        return self.names.get(name, default)


if __name__ == "__main__":
    sbxtest.main()

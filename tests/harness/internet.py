"""A small internet for the test: a network namespace with servers, connected to another one that represents the host.

The test process itself moves into the host's namespace, so that every sbx it starts runs there; the machine's real
network is neither seen nor used. Root and an ordinary user do the same: the user first creates a user namespace, in
which it keeps its uid and loses all privileges when it executes something."""

import contextlib
import ctypes
import functools
import http.server
import os
import pathlib
import select
import signal
import socket
import socketserver
import ssl
import struct
import subprocess
import threading
import unittest

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 4096, 16384, 1 << 18, 2
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 47, 2
CAP_NET_ADMIN, CAP_SYS_ADMIN = 12, 21
CAPABILITY_VERSION_3 = 0x20080522

# Addresses. All of them exist only inside the test's namespaces.
HOST4, HOST6 = "192.0.2.1", "fd00:53::1"  # the host's own addresses
ROUTER4, ROUTER6 = "192.0.2.2", "fd00:53::2"
DNS_SERVER = "192.0.2.53"
PUBLIC, OTHER_PUBLIC, PUBLIC6 = "93.184.216.34", "93.184.216.35", "2606:2800:220:1::34"
PRIVATE, METADATA = "10.9.9.9", "169.254.169.254"
ADDRESSES = (DNS_SERVER, PUBLIC, OTHER_PUBLIC, PUBLIC6, PRIVATE, METADATA)

DNS_DATAGRAM = 512  # bytes

HTTP, TLS, ECHO, UDP_ECHO, SINK, LINGER = 80, 443, 7, 7, 9, 9999

NAMES = {
    "web.example.org": [PUBLIC],
    "other.example.org": [OTHER_PUBLIC],
    "same.example.org": [PUBLIC],
    "six.example.org": [PUBLIC6],
    "both.example.org": [PUBLIC, PUBLIC6],
    "a.wild.example.org": [PUBLIC],
    "b.wild.example.org": [OTHER_PUBLIC],
    "private.example.org": [PRIVATE],
    "metadata.example.org": [METADATA],
    "loop.example.org": ["127.0.0.1"],
    "host.example.org": [HOST4],
    "mixed.example.org": [PRIVATE, PUBLIC],
    "dead.example.org": ["93.184.216.99"],
    "hundreds.example.org": [f"10.1.1.{i}" for i in range(1, 255)] + [f"10.1.2.{i}" for i in range(1, 255)] + [PUBLIC],
    "thousands.example.org": [f"10.2.{i // 250}.{i % 250}" for i in range(4000)] + [PUBLIC],
    "torn.example.org": [PUBLIC] * 300,
}
TORN = ("torn.example.org",)  # over TCP

CERTIFICATE = ("", "")  # paths of certificate and key, set by make_certificate()

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result):
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def _keep_capabilities():
    """In a child, before it executes: the capabilities of the user namespace survive execve."""
    header = struct.pack("Ii", CAPABILITY_VERSION_3, 0)
    sets = ctypes.create_string_buffer(24)
    _check(_libc.capget(header, sets))
    effective, permitted, _, high_effective, high_permitted, _ = struct.unpack("6I", sets.raw)
    _check(_libc.capset(header, struct.pack("6I", effective, permitted, permitted, high_effective, high_permitted, high_permitted)))
    for capability in (CAP_NET_ADMIN, CAP_SYS_ADMIN):
        _check(_libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0))


def ip(*arguments):
    done = subprocess.run(["ip", *map(str, arguments)], capture_output=True, check=False,
                          preexec_fn=None if os.geteuid() == 0 else _keep_capabilities)
    if done.returncode != 0:
        raise RuntimeError(f"ip {arguments}: {done.stderr.decode()}")


def _enter_namespaces():
    uid, gid = os.geteuid(), os.getegid()
    if uid != 0:
        _check(_libc.unshare(CLONE_NEWUSER))
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1\n")
        pathlib.Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1\n")
    _check(_libc.unshare(CLONE_NEWNET | CLONE_NEWNS))
    _check(_libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))


class Echo(socketserver.BaseRequestHandler):
    """Echoes until the client has shut down its half, then says good-bye."""

    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)
        self.request.sendall(b"bye")


class Sink(socketserver.BaseRequestHandler):
    """Counts the bytes received, and sends the number."""

    def handle(self):
        total = 0
        while data := self.request.recv(1 << 20):
            total += len(data)
        self.request.sendall(b"%d" % total)


class Linger(socketserver.BaseRequestHandler):
    """Sends nothing and waits for the client to leave."""

    def handle(self):
        self.request.recv(1)


class Secret(socketserver.BaseRequestHandler):
    """TLS with the test's certificate; sends one word."""

    def handle(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*CERTIFICATE)
        with contextlib.suppress(OSError), context.wrap_socket(self.request, server_side=True) as secret:
            secret.recv(100)
            secret.sendall(b"secret")


class Page(http.server.BaseHTTPRequestHandler):
    """/ returns the requested name; /N returns N bytes."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):  # the library's name for it
        number = self.path.lstrip("/")
        body = b"x" * int(number) if number.isdigit() else f"page of {self.headers['Host']}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 4096


class _Server6(_Server):
    address_family = socket.AF_INET6


def serve_tcp(address, port, handler):
    server = (_Server6 if ":" in address else _Server)((address, port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def serve_udp(address, port):
    """Echoes datagrams."""
    server = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((address, port))

    def loop():
        while True:
            data, client = server.recvfrom(65536)
            server.sendto(data, client)

    threading.Thread(target=loop, daemon=True).start()


def _dns_answer(question, names):
    """A, AAAA or an empty answer for a name in `names`; NXDOMAIN for others."""
    labels, at = [], 12
    while question[at]:
        labels.append(question[at + 1:at + 1 + question[at]].decode("latin-1").lower())
        at += 1 + question[at]
    kind = struct.unpack_from("!H", question, at + 1)[0]
    addresses = names.get(".".join(labels))
    wanted = {1: ".", 28: ":"}.get(kind)
    records = [address for address in addresses or [] if wanted and wanted in address]
    head = question[:2] + struct.pack("!HHHHH", 0x8180 if addresses is not None else 0x8183, 1, len(records), 0, 0)
    answer = head + question[12:at + 5]
    for address in records:
        data = socket.inet_pton(socket.AF_INET if kind == 1 else socket.AF_INET6, address)
        answer += struct.pack("!HHHIH", 0xC00C, kind, 1, 1, len(data)) + data
    return answer


def _cut(answer):
    """The part that fits into a datagram, with the truncation flag (TC)."""
    if len(answer) <= DNS_DATAGRAM:
        return answer
    flags, questions, records = struct.unpack_from("!HHH", answer, 2)
    size = 16  # of an A record; no other record is that small
    head = len(answer) - records * size
    fitting = (DNS_DATAGRAM - head) // size
    return answer[:2] + struct.pack("!HHHHH", flags | 0x0200, questions, fitting, 0, 0) + answer[12:head + fitting * size]


def serve_dns(names):
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((DNS_SERVER, 53))

    def loop():
        while True:
            question, client = server.recvfrom(4096)
            with contextlib.suppress(IndexError, struct.error):
                server.sendto(_cut(_dns_answer(question, names)), client)

    class Stream(socketserver.StreamRequestHandler):
        """One question; the answer for a name in TORN ends in its middle."""

        def handle(self):
            question = self.rfile.read(struct.unpack("!H", self.rfile.read(2))[0])
            answer = _dns_answer(question, names)
            whole = struct.pack("!H", len(answer)) + answer
            self.wfile.write(whole[:len(whole) // 2] if any(name.split(".")[0].encode() in question for name in TORN) else whole)

    threading.Thread(target=loop, daemon=True).start()
    serve_tcp(DNS_SERVER, 53, Stream)


def make_certificate(directory):
    """For every name below example.org; call it before the servers start."""
    global CERTIFICATE
    CERTIFICATE = (f"{directory}/certificate.pem", f"{directory}/key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=example.org", "-addext", "subjectAltName=DNS:example.org,DNS:*.example.org",
                    "-out", CERTIFICATE[0], "-keyout", CERTIFICATE[1]], check=True, capture_output=True)


def serve_everything(names):
    """The servers of every test: run in the internet's namespace."""
    serve_dns(names)
    if CERTIFICATE[0]:
        for address in (PUBLIC, OTHER_PUBLIC, PUBLIC6):
            serve_tcp(address, TLS, Secret)
    for address in (PUBLIC, OTHER_PUBLIC, PUBLIC6, PRIVATE, METADATA):
        serve_tcp(address, HTTP, Page)
        serve_tcp(address, ECHO, Echo)
        serve_tcp(address, SINK, Sink)
        serve_tcp(address, LINGER, Linger)
        serve_udp(address, UDP_ECHO)


class Internet:
    """Ends with the test process. `serve` is called in the internet's namespace."""

    def __init__(self, names=None, serve=serve_everything):
        try:
            _enter_namespaces()
        except OSError as error:
            raise unittest.SkipTest(f"no network namespaces here: {error}") from error
        ready, tell = os.pipe()
        hold, release = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._be_the_internet(names if names is not None else NAMES, serve, hold, tell)
        os.close(tell)
        os.close(hold)
        assert os.read(ready, 1) == b"n"
        ip("link", "set", "lo", "up")
        ip("link", "add", "up0", "type", "veth", "peer", "name", "down0", "netns", self.pid)
        ip("address", "add", f"{HOST4}/24", "dev", "up0")
        ip("address", "add", f"{HOST6}/64", "dev", "up0", "nodad")
        ip("link", "set", "up0", "up")
        ip("route", "add", "default", "via", ROUTER4)
        ip("-6", "route", "add", "default", "via", ROUTER6)
        os.write(release, b"g")
        if os.read(ready, 1) != b"r":
            raise RuntimeError("the servers did not start")
        os.close(ready)
        os.close(release)

    def _be_the_internet(self, names, serve, hold, tell):
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            _check(_libc.prctl(1, signal.SIGKILL, 0, 0, 0))  # PR_SET_PDEATHSIG
            _check(_libc.unshare(CLONE_NEWNET))
            os.write(tell, b"n")
            os.read(hold, 1)
            ip("link", "set", "lo", "up")
            ip("address", "add", f"{ROUTER4}/24", "dev", "down0")
            ip("address", "add", f"{ROUTER6}/64", "dev", "down0", "nodad")
            ip("link", "set", "down0", "up")
            for address in ADDRESSES:
                ip("address", "add", address, "dev", "lo", *(["nodad"] if ":" in address else []))
            serve(names)
            os.write(tell, b"r")
            while True:
                signal.pause()
        finally:
            os._exit(1)


@functools.cache
def shared(serve=serve_everything):
    """The one internet for all tests of this process."""
    return Internet(serve=serve)


_replaced = set()


def use_files(directory, resolv_conf=f"nameserver {DNS_SERVER}\n", hosts="127.0.0.1 localhost\n"):
    """Replaces the host's /etc/resolv.conf and /etc/hosts for this process and its children."""
    for name, text in (("resolv.conf", resolv_conf), ("hosts", hosts)):
        if name in _replaced:  # the file of the test before is gone, and nothing can be mounted on that
            _check(_libc.umount2(f"/etc/{name}".encode(), MNT_DETACH))
        _replaced.add(name)
        path = pathlib.Path(directory) / f"etc-{name}"
        path.write_text(text)
        path.chmod(0o644)
        _check(_libc.mount(os.fsencode(path), f"/etc/{name}".encode(), None, MS_BIND, None))


def readable(sockets, seconds):
    return select.select(sockets, [], [], seconds)[0]

"""Unix sockets without namespaces: Landlock does not see where they are connected to, so sbx makes, connects and binds them. What leads out is
refused, and the same attempts reach a socket that is granted. All of it runs in containers of runc."""

import json
import os

import containers
from containers import FilteredTest
from sbxtest import main

OWN_UID, SAME_UID = (0, "docker"), (1000, "docker")
SOCKET = "/host/stream"

# PID 1 of the container: servers of the machine that everybody may connect to, then sbx with a program. Prints what that printed, the uids
# of who connected, and what is in the directory of the servers.
AROUND = r"""
import os, socket, struct, subprocess, sys, threading
os.umask(0)
servers, peers = [], []
def accept(server):
    while True:
        peer, _ = server.accept()
        peers.append(struct.unpack("iii", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1])
        peer.close()
for kind, name in ((socket.SOCK_STREAM, "/host/stream"), (socket.SOCK_SEQPACKET, "/host/packets"), (socket.SOCK_STREAM, b"\0sbx-test")):
    servers.append(socket.socket(socket.AF_UNIX, kind))
    servers[-1].bind(name)
    servers[-1].listen(64)
    threading.Thread(target=accept, args=(servers[-1],), daemon=True).start()
datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
datagrams.bind("/host/datagram")
open("/host/file", "w").close()
done = subprocess.run(["sbx", "run", "--isolation", "landlock", "-q", "--timeout", "110s", *sys.argv[2:], "--", "python3", "-c", sys.argv[1]], stdout=subprocess.PIPE)
print(done.stdout.decode().strip())
datagrams.setblocking(False)
try:
    peers.append(datagrams.recv(64).decode())
except BlockingIOError:
    pass
print(sorted(set(map(str, peers))), sorted(os.listdir("/host")))
sys.exit(done.returncode)
"""
BEGIN = r"""
import ctypes, fcntl, json, os, resource, socket, stat, struct, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
STREAM, PACKETS = socket.SOCK_STREAM, socket.SOCK_SEQPACKET
os.chdir(os.environ["HOME"])
answers = {}
def attempt(name, act):
    try:
        act()
        answers[name] = "open"
    except OSError as error:
        answers[name] = error.strerror
def new(kind=STREAM):
    return socket.socket(socket.AF_UNIX, kind)
def server(path, kind=STREAM, backlog=64):
    made = new(kind)
    made.bind(path)
    made.listen(backlog)
    return made
def connected(path, kind=STREAM):
    made = new(kind)
    made.connect(path)
    return made
def address(path):
    return struct.pack("H108s", socket.AF_UNIX, path.encode())
def swapping(act):
    # Until `act` is done another thread makes "swapped" lead to the machine's socket or directory, and back.
    done = threading.Event()
    def swap():
        while not done.is_set():
            for target in act.targets:
                os.symlink(target, "next")
                os.rename("next", "swapped")
    os.symlink(act.targets[0], "swapped")
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        act()
    finally:
        done.set()
        thread.join()
        os.unlink("swapped")
"""
# Each way to the same socket, which succeeds where that is granted.
WAYS = BEGIN + r"""
place, above = os.open("/host/stream", os.O_PATH), os.open("/host", os.O_PATH)
os.symlink("/host/stream", "link")
def from_there(path):
    os.chdir("/host")
    try:
        connected(path)
    finally:
        os.chdir(os.environ["HOME"])
def without_waiting():
    made = new()
    made.setblocking(False)
    made.connect("/host/stream")
def in_a_child():
    made = new()
    child = os.fork()
    if child == 0:
        try:
            made.connect("/host/stream")
            os._exit(0)
        except OSError:
            os._exit(1)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise OSError(1, "refused")
def received():
    one, other = socket.socketpair()
    made = new()
    socket.send_fds(one, [b"x"], [made.fileno()])
    made.close()
    socket.socket(fileno=socket.recv_fds(other, 1, 1)[1][0]).connect("/host/stream")
def of_another_number():
    made = new()
    copy = socket.socket(fileno=os.dup(made.fileno()))
    made.close()
    copy.connect("/host/stream")
attempt("its path", lambda: connected("/host/stream"))
attempt("slashes", lambda: connected("//host/./stream"))
attempt("through its home", lambda: connected(os.environ["HOME"] + "/../../../../host/stream"))
attempt("a relative path", lambda: from_there("stream"))
attempt("a relative path upwards", lambda: from_there("../host/stream"))
attempt("a descriptor's name", lambda: connected(f"/proc/self/fd/{place}"))
attempt("another name of it", lambda: connected(f"/dev/fd/{place}"))
attempt("below a descriptor", lambda: connected(f"/proc/self/fd/{above}/stream"))
attempt("a copy of the descriptor", of_another_number)
attempt("without waiting", without_waiting)
attempt("in a child", in_a_child)
attempt("a socket that was sent", received)
print(json.dumps(answers))
"""
# What no grant opens.
NEVER = BEGIN + r"""
os.mkdir("d")
server("own")
attempt("packets", lambda: connected("/host/packets", PACKETS))
attempt("a link of its own", lambda: (os.symlink("/host/stream", "l"), connected("l")))
attempt("a directory's link", lambda: (os.symlink("/host", "m"), connected("m/stream")))
attempt("its root", lambda: connected("/proc/self/root/host/packets", PACKETS))
attempt("another's root", lambda: connected(f"/proc/{os.getppid()}/root/host/packets", PACKETS))
attempt("its directory", lambda: (os.chdir("/host"), connected("/proc/self/cwd/packets", PACKETS)))
os.chdir(os.environ["HOME"])
attempt("the machine's abstract name", lambda: connected("\0sbx-test"))
attempt("datagrams", lambda: new(socket.SOCK_DGRAM).sendto(b"datagram", "/host/datagram"))
attempt("raw datagrams", lambda: new(socket.SOCK_RAW).sendto(b"raw", "/host/datagram"))
attempt("datagrams of a pair", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"pair", "/host/datagram"))
attempt("raw datagrams of a pair", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)[0].sendto(b"pair", "/host/datagram"))
attempt("a second name", lambda: os.link("/host/stream", "second"))
def of_another_family():
    made = new()
    if libc.connect(made.fileno(), struct.pack("H14x", socket.AF_INET), 16):
        raise OSError(ctypes.get_errno(), "connect")
attempt("an address of another family", of_another_family)
attempt("bind an abstract name", lambda: server("\0own"))
attempt("bind a name of the kernel's choice", lambda: server(""))
attempt("bind there", lambda: server("/host/made"))
attempt("bind in a temporary directory of the machine's", lambda: server("/tmp/made"))
attempt("bind by a relative path", lambda: (os.chdir("/host"), server("made")))
os.chdir(os.environ["HOME"])
attempt("bind through its home", lambda: server(os.environ["HOME"] + "/../../../../host/made"))
attempt("bind through a link", lambda: (os.symlink("/host", "n"), server("n/made")))
attempt("bind below a descriptor", lambda: server(f"/proc/self/fd/{os.open('/host', os.O_PATH)}/made"))
attempt("bind below its root", lambda: server("/proc/self/root/host/made"))
attempt("bind over a file", lambda: (open("file", "w").close(), server("file")))
attempt("bind where it may only read", lambda: server("/read/made"))
attempt("bind another's file away", lambda: server("/host/file"))
attempt("move what was bound out", lambda: (server("d/own"), os.rename("d", "/host/d")))
attempt("move the socket out", lambda: (server("moved"), os.rename("moved", "/host/made")))
print(json.dumps({name: answer for name, answer in answers.items() if answer == "open"}), len(answers))
# The address changes in memory while the call waits, a link is swapped, the number of the descriptor becomes another socket.
listener = server("target", backlog=4096)
room = ctypes.create_string_buffer(address("target"), 110)
ROUNDS = 800
seen = set()
def in_memory():
    done = threading.Event()
    def swap():
        while not done.is_set():
            for path in ("/host/stream", "target"):
                ctypes.memmove(room, address(path), 110)
    thread = threading.Thread(target=swap)
    thread.start()
    for _ in range(ROUNDS):
        made = new()
        seen.add(libc.connect(made.fileno(), room, 110))
        made.close()
    done.set()
    thread.join()
in_memory()
def by_a_link():
    for _ in range(ROUNDS):
        try:
            connected("swapped").close()
            seen.add("linked")
        except OSError:
            pass
by_a_link.targets = ("/host/stream", "target")
swapping(by_a_link)
os.mkdir("e")
def bind_in_a_link():
    for i in range(ROUNDS):
        made = new()
        try:
            made.bind(f"swapped/made{i}")
            seen.add("bound")
        except OSError:
            pass
        made.close()
bind_in_a_link.targets = ("/host", "e")
swapping(bind_in_a_link)
def by_a_number():
    done = threading.Event()
    fixed = 200
    one, other = socket.socketpair()
    def swap():
        while not done.is_set():
            made = new()
            os.dup2(made.fileno(), fixed)
            os.dup2(one.fileno(), fixed)
            made.close()
    thread = threading.Thread(target=swap)
    thread.start()
    there, own = address("/host/stream"), address("target")
    for _ in range(ROUNDS):
        libc.connect(fixed, there, 110)
        seen.add(libc.connect(fixed, own, 110))
    done.set()
    thread.join()
    one.send(b"x")
    seen.add(other.recv(1).decode())
by_a_number()
print(json.dumps(sorted(map(str, seen))))
"""
# What works, in both forms alike.
OWN = BEGIN + r"""
def flags(made):
    return fcntl.fcntl(made, fcntl.F_GETFL), fcntl.fcntl(made, fcntl.F_GETFD)
def credentials(made):
    return struct.unpack("iii", made.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1:]
for kind in (STREAM, PACKETS):
    for path in (f"s{kind}", f"./t{kind}", f"{os.environ['TMPDIR']}/u{kind}"):
        listener = server(path, kind)
        client = new(kind)
        before = flags(client)
        client.connect(path)
        name = client.getsockname()
        peer, _ = listener.accept()
        client.send(b"x")
        same = (flags(client) == before, listener.getsockname() == path, client.getpeername() == path, name, peer.recv(2),
                credentials(peer) == credentials(client) == (os.getuid(), os.getgid()))
        client.close()
        ended = peer.recv(1)  # nobody else holds the client
        listener.close()
        attempt(f"{kind}", lambda: connected(path, kind))  # nor the listener
        print(same, ended, answers.pop(f"{kind}"))
listener = server("n")
waits, not_waiting = new(), new()
not_waiting.setblocking(False)
before = flags(waits), flags(not_waiting)
waits.connect("n"), not_waiting.connect("n")
print((flags(waits), flags(not_waiting)) == before, os.get_inheritable(waits.fileno()))
for mask, name in ((0o077, "m1"), (0, "m2")):
    os.umask(mask)
    new().bind(name)
print([oct(stat.S_IMODE(os.stat(name).st_mode)) for name in ("m1", "m2")], os.stat("m1").st_uid == os.getuid())
os.umask(0o022)
# A socket that came from another process, one that an elder had made, a directory that was moved, one name for what was bound by another.
one, other = socket.socketpair()
if os.fork() == 0:
    made = new()
    socket.send_fds(one, [b"x"], [made.fileno()])
    os._exit(0)
received = socket.socket(fileno=socket.recv_fds(other, 1, 1)[1][0])
received.connect("n")
os.mkdir("many")
threads = [threading.Thread(target=server, args=(f"many/{i}",)) for i in range(100)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(len(os.listdir("many")))
os.mkdir("d")
inside = server("d/s")
os.rename("d", "f")
connected("f/s"), connected(f"/proc/self/fd/{os.open('f', os.O_PATH)}/s"), connected(f"/proc/self/fd/{os.open('f/s', os.O_PATH)}")
attempt("twice", lambda: received.connect("n"))
attempt("bound twice", lambda: inside.bind("g"))
attempt("no socket", lambda: socket.socket(fileno=os.open(".", os.O_RDONLY)).connect("n"))
attempt("to a file", lambda: (open("h", "w").close(), connected("h")))
attempt("to nothing", lambda: connected("nothing"))
attempt("over a socket", lambda: server("n"))
print(answers)
"""
MANY = BEGIN + r"""
for _ in range(10_000):
    new().close()
listener = server("s")
for _ in range(1000):
    client = connected("s")
    peer, _ = listener.accept()
    client.close()
    assert peer.recv(1) == b""
held = []
try:
    while len(held) < 2000:
        held.append(new())
    print("no end")
except OSError as error:
    print(error.strerror)
held[-1].connect("s")
for each in held:
    each.close()
print(len([new() for _ in range(100)]), len(held) > 100)
"""
# A full queue: who waits there keeps nobody else waiting.
FULL = BEGIN + r"""
full, other = server("full", backlog=0), server("other")
def fill():
    made = new()
    made.setblocking(False)
    made.connect("full")
    return made
clients = []
try:
    while True:
        clients.append(fill())
except BlockingIOError:
    pass
late = new()
late.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("qq", 0, 1000))
attempt("for a while", lambda: late.connect("full"))
came = []
def wait():
    made = new()
    before = fcntl.fcntl(made, fcntl.F_GETFL)
    made.connect("full")
    came.append(fcntl.fcntl(made, fcntl.F_GETFL) == before)
waiting = threading.Thread(target=wait)
waiting.start()
killed = os.fork()
if killed == 0:
    new().connect("full")
    os._exit(1)
for _ in range(200):
    connected("other").close()
    other.accept()[0].close()
print(answers, came, len(clients))
os.kill(killed, 9)
print(os.waitstatus_to_exitcode(os.waitpid(killed, 0)[1]))
for _ in range(len(clients)):
    full.accept()[0].close()
waiting.join()
print(came)
"""
# The same where the program makes its calls wait again, at the moment in which sbx has taken care that its own doesn't.
TOGGLED = BEGIN + r"""
full, other = server("full", backlog=0), server("other")
try:
    while True:
        client = new()
        client.setblocking(False)
        answers[len(answers)] = client
        client.connect("full")
except BlockingIOError:
    pass
victim = new()
flags = fcntl.fcntl(victim, fcntl.F_GETFL)
def toggle():
    while True:
        fcntl.fcntl(victim, fcntl.F_SETFL, flags | os.O_NONBLOCK)
        fcntl.fcntl(victim, fcntl.F_SETFL, flags)
def wait():
    while True:
        libc.connect(victim.fileno(), address("full"), 110)
children = []
for act in (toggle, wait, wait, wait):
    children.append(os.fork())
    if children[-1] == 0:
        act()
for _ in range(4000):
    connected("other").close()
    other.accept()[0].close()
for child in children:
    os.kill(child, 9)
print("done")
"""
PROGRAMS = r"""
import asyncio, multiprocessing, multiprocessing.connection, multiprocessing.managers, os, subprocess, tempfile, threading
async def serve(path):
    async def answer(reader, writer):
        writer.write((await reader.readline()).upper())
        await writer.drain()
        writer.close()
    server = await asyncio.start_unix_server(answer, path)
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"asyncio\n")
    print((await reader.readline()).decode().strip())
    writer.close()
    server.close()
asyncio.run(serve(tempfile.mkdtemp() + "/socket"))
listener = multiprocessing.connection.Listener(family="AF_UNIX")
thread = threading.Thread(target=lambda: multiprocessing.connection.Client(listener.address).send("connection"))
thread.start()
print(listener.accept().recv())
with multiprocessing.managers.SyncManager() as manager:
    made = manager.list(["manager"])
    print(*made)
script = "const n = require('net'), p = require('os').tmpdir() + '/n'; const s = n.createServer(c => c.end('node')).listen(p, () => n.connect(p).on('data', d => { console.log(String(d)); s.close() }))"
print(subprocess.run(["node", "-e", script], capture_output=True, text=True).stdout.strip())
"""
# Becomes sbx under a listener of its own, as under a container manager that watches system calls.
UNDER_A_LISTENER = r"""
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
everything = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(everything)))
libc.prctl(38, 1, 0, 0, 0)
os.set_inheritable(libc.syscall(int(sys.argv[1]), 1, 1 << 3, program), True)
os.execvp("sbx", ["sbx", "run", "--isolation", "landlock", "-q", "--json", *sys.argv[2:]])
"""


class UnixSockets(FilteredTest):
    def forms(self):
        return [caller for caller, way in ((OWN_UID, "own-uid"), (SAME_UID, "same-uid")) if containers.why_not(way) is None]

    def around(self, caller, program, *options):
        """The lines that a program printed, and the line about the machine."""
        container = self.container(*caller)
        for name in ("host", "read"):
            (self.root / name).mkdir()
            os.chown(self.root / name, caller[0], caller[0])
        done = container.run("python3", "-c", AROUND, program, *options)
        self.assertEqual(done.returncode, 0, done)
        *lines, last = done.stdout.splitlines()
        self.assertTrue(lines and lines[0], done)
        return lines, last

    def test_no_way_leads_to_a_socket_of_the_machine(self):
        for caller in self.forms():
            (line,), last = self.around(caller, WAYS)
            answers = json.loads(line)
            self.assertEqual((set(answers.values()) & {"open"}, len(answers)), (set(), 12), answers)
            self.assertEqual(last, "[] ['datagram', 'file', 'packets', 'stream']", caller)

    def test_each_leads_to_one_that_is_granted(self):
        for caller in self.forms():
            (line,), last = self.around(caller, WAYS, "--set", f'filesystem.sockets=["{SOCKET}"]')
            self.assertEqual(set(json.loads(line).values()), {"open"}, line)
            uids = json.loads(last.partition("]")[0].replace("'", '"') + "]")
            self.assertEqual(len(uids), 1, last)  # who connected is the program, in its own form
            self.assertEqual(uids[0] == str(caller[0]), caller == SAME_UID, last)

    def test_nothing_else_leads_out(self):
        for caller in self.forms():
            (left, seen), last = self.around(caller, NEVER, "--read", "/read")
            self.assertEqual(left, "{} 27", caller)
            self.assertLessEqual({"0", "-1", "linked", "bound", "x"}, set(json.loads(seen)), seen)
            self.assertEqual(last, "[] ['datagram', 'file', 'packets', 'stream']", caller)

    def test_named_sockets_of_its_own_work(self):
        for caller in self.forms():
            lines, _ = self.around(caller, OWN)
            self.assertEqual(set(lines[:6]), {"(True, True, True, '', b'x', True) b'' Connection refused"}, caller)
            self.assertEqual(lines[6:], ["True False", "['0o700', '0o777'] True", "100", str({
                "twice": "Transport endpoint is already connected", "bound twice": "Invalid argument", "no socket": "Socket operation on non-socket",
                "to a file": "Connection refused", "to nothing": "No such file or directory", "over a socket": "Address already in use"})])

    def test_as_many_as_one_likes_one_after_another(self):
        for caller in self.forms():
            lines, _ = self.around(caller, MANY, "--set", "limits.open_files=4096")
            self.assertEqual(lines, ["Too many open files", "100 True"], caller)

    def test_who_waits_for_a_full_queue_keeps_nobody_waiting(self):
        for caller in self.forms():
            lines, _ = self.around(caller, FULL)
            self.assertEqual(lines[0].rsplit(" ", 1)[0], "{'for a while': 'Resource temporarily unavailable'} []", lines)
            self.assertEqual(lines[1:], ["-9", "[True]"], lines)

    def test_nor_does_one_that_makes_it_wait_again(self):
        for caller in self.forms():
            lines, _ = self.around(caller, TOGGLED)
            self.assertEqual(lines, ["done"], caller)

    def test_servers_of_programs_work(self):
        for caller in self.forms():
            lines, _ = self.around(caller, PROGRAMS)
            self.assertEqual(lines, ["ASYNCIO", "connection", "manager", "node"], caller)

    def test_a_socket_that_others_may_not_use_is_no_grant_for_another_uid(self):
        script = "import os, socket, subprocess, sys\nos.umask(int(sys.argv[1], 8))\ns = socket.socket(socket.AF_UNIX); s.bind('/host/s'); s.listen(8)\n" \
                 "sys.exit(subprocess.run(['sbx', 'run', '--isolation', 'landlock', '-q', '--set', 'filesystem.sockets=[\"/host/s\"]', '--', 'python3', '-c', " \
                 "'import socket; socket.socket(socket.AF_UNIX).connect(\"/host/s\")']).returncode)"
        for umask, status in (("0077", 125), ("0", 0)):
            container = self.container(*OWN_UID)
            (self.root / "host").mkdir()
            done = container.run("python3", "-c", script, umask)
            self.assertEqual((done.returncode, "chmod o+w" in done.stderr), (status, status == 125), done)

    def test_no_socket_gets_an_abstract_name_by_passing_credentials(self):
        """connect(2) gives it one, also where it fails: the program could listen there. Twin: other options can be set."""
        look = "import socket\ns = socket.socket(socket.AF_UNIX)\nfor option in (socket.SO_SNDBUF, socket.SO_PASSCRED, 76):\n" \
               "    try: s.setsockopt(socket.SOL_SOCKET, option, 1 << 16)\n    except OSError as e: print(option, e.errno)\nprint(s.getsockname())"
        for caller in self.forms():
            done = self.container(*caller).run("sbx", "run", "--isolation", "landlock", "-q", "--", "python3", "-c", look)
            self.assertEqual(done.stdout, "16 92\n76 92\n\n", done)

    def test_without_a_listener_there_are_pairs_only_and_the_record_says_so(self):
        look = "import socket\na, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))\ntry: socket.socket(socket.AF_UNIX)\nexcept OSError as e: print(e.strerror)\nelse: print('made')"
        for under, answer, told in (([], "made", "datagram and abstract"), (["--"], "Address family not supported by protocol", "unix sockets other than")):
            words = ["sbx", "run", "--isolation", "landlock", "-q", "--json"] if not under else ["python3", "-c", UNDER_A_LISTENER, str(containers.SYSCALLS["seccomp"])]
            container = containers.Container(self.tmp / f"under{len(under)}", 0, None, "docker", True)
            done = container.run(*words, "--", "python3", "-c", look)
            record = json.loads(done.stdout)
            self.assertEqual(record["stdout"]["text"], f"b'x'\n{answer}\n", done)
            lost, = [each["instead"] for each in record["degraded"] if each["what"] == "ipc" and "/dev/shm" not in each["instead"]]
            self.assertTrue(lost.startswith(told), lost)
            self.assertEqual("syscalls.named" in {each["what"] for each in record["degraded"]}, bool(under))

    def test_with_the_hosts_network_there_are_pairs_only(self):
        """Nobody may answer for connections of the internet, and none may go on that could be one of these."""
        look = "import socket\ntry: socket.socket(socket.AF_UNIX)\nexcept OSError as e: print(e.strerror)\nsocket.create_server(('127.0.0.1', 0)); print('made')"
        for caller in self.forms():
            lines, _ = self.around(caller, look, "--net", "host")
            self.assertEqual(lines, ["Address family not supported by protocol", "made"])


if __name__ == "__main__":
    main()

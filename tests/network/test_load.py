"""Many connections, floods and half-finished connections: the gateway responds, uses little memory and counts
everything."""

import pathlib
import resource
import time

import internet
import sbxtest
from harness import wait_until
from internet import ECHO, HTTP, LINGER, OTHER_PUBLIC, PUBLIC, UDP_ECHO
from sbxtest import SbxTest

NAME = "web.example.org"
MIB = 1 << 20

# Holds some connections, then more; all of them answer each time.
HOLD = """
import socket, sys
host, port, counts = sys.argv[1], int(sys.argv[2]), map(int, sys.argv[3:])
held = []
for count in counts:
    held += [socket.create_connection((host, port), 60) for _ in range(count)]
    for i, s in enumerate(held):
        s.sendall(b'%d\\n' % i)
    for i, s in enumerate(held):
        assert s.makefile('rb').readline() == b'%d\\n' % i, i
    print(len(held), flush=True)
    sys.stdin.readline()
"""
# Opens as many connections as possible; prints the number, and how the first failing one fails.
AS_MANY = """
import errno, socket, sys
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
held = []
for i in range(count):
    try:
        s = socket.create_connection((host, port), 20)
        s.sendall(b'x')
        if s.recv(1) != b'x':
            raise ConnectionResetError(errno.ECONNRESET, 'closed')
        held.append(s)
    except OSError as error:
        print(len(held), errno.errorcode[error.errno])
        break
else:
    print(len(held), 'no failure')
"""
# Does not read what arrives.
GREEDY = """
import socket, sys
host, count = sys.argv[1], int(sys.argv[2])
held = []
for _ in range(count):
    s = socket.create_connection((host, 80), 60)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.sendall(b'GET /50000000 HTTP/1.0\\r\\n\\r\\n')
    held.append(s)
print('held', flush=True)
sys.stdin.readline()
"""
# Uses up the supervisor's descriptors with flows, and lets a process created later allocate memory.
BLINDING = """
import mmap, os, socket, sys, time
host, port, flows, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]) << 20
def flow():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(b'x', (host, port))
    return s
def some(count):
    if os.fork() == 0:
        held = [flow() for _ in range(count)]
        time.sleep(60)
for _ in range(flows // 50):
    some(50)
time.sleep(1)  # until the flows are there: nobody is told
if os.fork() == 0:
    if os.fork() == 0:
        held = []
        for _ in range(size >> 22):
            held.append(mmap.mmap(-1, 1 << 22, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x8000))
            time.sleep(0.001)
    else:
        os.wait()
    os._exit(0)
os.wait()
print('held')
"""
QUESTION = """
import socket, struct, sys, time
def question(name):
    labels = b''.join(bytes([len(l)]) + l.encode() for l in name.split('.')) + b'\\0'
    return struct.pack('!HHHHHH', 77, 0x100, 1, 0, 0, 0) + labels + struct.pack('!HH', 1, 1)
def framed(text):
    return struct.pack('!H', len(text)) + text
"""
DNS_FLOOD = QUESTION + """
name, seconds = sys.argv[1], float(sys.argv[2])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(('198.19.255.1', 53))
s.setblocking(False)
end, sent = time.monotonic() + seconds, 0
while time.monotonic() < end:
    for i in range(100):
        try:
            s.send(question(f'n{sent % 1000}.flood.example.org'))
            sent += 1
        except OSError:
            pass
s = socket.create_connection((name, 7), 20)
s.sendall(b'x')
print(sent > 1000, s.recv(1).decode())
"""
SLOW_STREAMS = QUESTION + """
held = []
for _ in range(64):
    s = socket.create_connection(('198.19.255.1', 53), 20)
    s.sendall(b'\\0')
    held.append(s)
s = socket.create_connection(('198.19.255.1', 53), 20)
s.sendall(framed(question(sys.argv[1])))
size = struct.unpack('!H', s.recv(2, socket.MSG_WAITALL))[0]
answer = s.recv(size, socket.MSG_WAITALL)
print('rcode', answer[3] & 15, 'answers', answer[7])
"""
ATTEMPTS = """
import errno, socket, sys
host, first, last, rounds = sys.argv[1], *map(int, sys.argv[2:5])
seen = {}
for _ in range(rounds):
    for port in range(first, last):
        with socket.socket() as s:
            error = errno.errorcode.get(s.connect_ex((host, port)), 'connected')
        seen[error] = seen.get(error, 0) + 1
print(*sorted(seen.items()))
"""
FLOWS = """
import socket, sys
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
held, answered, refused = [], 0, 0
for i in range(count):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(20)
    s.connect((host, port))
    held.append(s)
    try:
        s.send(b'%d' % i)
        answered += s.recv(100) == b'%d' % i
    except ConnectionRefusedError:
        refused += 1
print(answered, refused)
"""
RESOLVE = """
import socket, sys
addresses = [socket.gethostbyname(f'n{i}.wild.example.org') for i in range(int(sys.argv[1]))]
print(len(set(addresses)))
s = socket.create_connection((socket.gethostbyname('a.wild.example.org'), 80), 20)
s.sendall(b'GET / HTTP/1.0\\r\\nHost: a\\r\\n\\r\\n')
print(s.makefile('rb').read().splitlines()[-1].decode())
"""


def spent_nanoseconds(pid):
    """CPU time of a process."""
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def status_of(pid):
    """What any user may read about a process."""
    return dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())


def own_memory(pid):
    """Resident bytes that belong to no file."""
    return int(status_of(pid)["RssAnon"].split()[0]) * 1024


def waiting_bytes(port):
    """The host kernel's buffers of answers that sbx has not read, one number per connection."""
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    return [int(field[4].split(":")[1], 16) for field in fields if field[2].endswith(f":{port:04X}")]


class Load(SbxTest):
    def setUp(self):
        super().setUp()
        sbxtest.known_children().add(internet.shared().pid)
        internet.use_files(self.tmp)

    def run_python(self, code, *arguments, rules=(), options=(), **rest):
        words = [word for rule in rules for word in ("--allow-host", rule)]
        return self.python(code, *arguments, options=[*words, *options], **rest)

    def start_python(self, code, *arguments, rules=(), options=()):
        words = [word for rule in rules for word in ("--allow-host", rule)]
        process = self.start_sbx("--report", self.tmp / "record", *words, *options, "--stdin", "inherit", "--lang", "python", "-c", code, *arguments,
                                 json_record=False, stdin=-1)
        self.addCleanup(process.stdin.close)
        return process

    def go_on(self, process):
        process.stdin.write(b"go\n")
        process.stdin.flush()

    def counted(self, ended):
        return sum(denial["count"] for denial in ended.record["denials"])

    # ---- connections

    def held(self, *counts):
        """A program that holds that many connections, then more; returns it each time it has them."""
        process = self.start_python(HOLD, NAME, ECHO, *counts, rules=[f"{NAME}:{ECHO}"],
                                    options=["--set", "limits.open_files=4096", "--timeout", "300s"])
        for i, count in enumerate(counts):
            self.assertEqual(process.stdout.readline(), b"%d\n" % sum(counts[:i + 1]))
            yield process
            self.go_on(process)
        self.finish(process, json_record=False)

    def blinded(self, size):
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        return self.sbx("--policy", "default", "--memory", "200M", "--timeout", "30s", "--allow-host", f"udp://{PUBLIC}:{UDP_ECHO}", "--",
                        "/usr/bin/python3", "-c", BLINDING, PUBLIC, UDP_ECHO, 600, size, preexec_fn=few, env={"SBX_TEST_MEANS": "polled"})

    def test_memory_is_watched_when_flows_have_taken_all_descriptors(self):
        self.assertEqual(self.blinded(600).verdict, ("over-budget", "memory"))

    def test_memory_within_the_budget_is_had_beside_many_flows(self):
        self.assertEqual(self.blinded(8).verdict, ("exited", None))

    def test_slow_2500_connections_cost_nothing_while_they_are_idle(self):
        spent = []
        for process in self.held(10, 2490):
            before = spent_nanoseconds(process.pid)
            time.sleep(2)  # idle: measures that nothing happens
            spent.append(spent_nanoseconds(process.pid) - before)
        few, many = spent
        self.assertLessEqual(many, 2 * few + 5_000_000)

    def test_idle_connections_take_little_of_the_supervisors_memory(self):
        few, many = (own_memory(process.pid) for process in self.held(10, 400))
        self.assertGreater(few, 0)
        self.assertLessEqual(many - few, 400 * 2048)

    def test_more_connections_than_descriptors_are_refused_and_named(self):
        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
        ended = self.run_python(AS_MANY, NAME, ECHO, 100, rules=[f"{NAME}:{ECHO}"], preexec_fn=few)
        held, how = ended.text.split()
        self.assertIn(how, ("ECONNRESET", "EPIPE"), ended)
        self.assertGreaterEqual(int(held), 4, ended)
        self.assertIn(f"tcp connections over {held} at a time", ended.denied, ended)
        self.assertEqual(self.run_python(AS_MANY, NAME, ECHO, 100, rules=[f"{NAME}:{ECHO}"]).text, "100 no failure\n")

    def test_low_soft_limit_of_descriptors_does_not_matter(self):
        def low():
            _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (32, hard))
        self.assertEqual(self.run_python(AS_MANY, NAME, ECHO, 100, rules=[f"{NAME}:{ECHO}"], preexec_fn=low).text, "100 no failure\n")

    def test_hardly_any_descriptors_are_enough_or_a_clear_error(self):
        for limit in (24, 32, 40, 48, 64):
            def few(limit=limit):
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
            ended = self.sbx("--allow-host", f"{NAME}:{ECHO}", "--lang", "python", "-c", AS_MANY, NAME, ECHO, 1, preexec_fn=few)
            with self.subTest(limit=limit):
                if ended.status == 0:
                    self.assertEqual(ended.text, "1 no failure\n", ended)
                else:
                    self.assertEqual(ended.status, 125, ended)
                    self.assertIn("open files", ended.err.decode(), ended)
        self.assertEqual(ended.status, 0, ended)  # the largest of them is enough

    def test_what_is_not_read_is_not_taken(self):
        """With many connections each may hold little in the kernel, whose memory no budget of the sandbox counts."""
        count = 40
        process = self.start_python(GREEDY, NAME, count, rules=[f"{NAME}:{HTTP}"], options=["--set", "limits.wall_time=\"120s\""])
        self.assertEqual(process.stdout.readline(), b"held\n")
        # Held inside; each is dialled outside now, and answers fill the kernel's windows: no event shows when they
        # are full. On a busy machine they stay empty for a while.
        seen = [[]]

        def stays_the_same():
            time.sleep(0.5)
            seen.append(sorted(waiting_bytes(HTTP)))
            return len(seen[-1]) >= count and seen[-1] == seen[-2] and sum(seen[-1]) > 0
        wait_until(stays_the_same, "the windows are full")
        last = seen[-1]
        self.go_on(process)
        self.finish(process, json_record=False)
        self.assertGreaterEqual(len(last), count)
        self.assertGreater(sum(last), 0)
        # The first ones may fill the kernel's default; the others 256 KiB, which the kernel doubles.
        self.assertLessEqual(max(last[:count - 16]), 512 * 1024, last)

    # ---- DNS

    def test_dns_flood_keeps_nobody_else_waiting(self):
        process = self.start_sbx("--allow-host", f"{NAME}:{ECHO}", "--lang", "python", "-c", DNS_FLOOD, NAME, 2)
        ended = self.finish(process)
        self.assertEqual(ended.text, "True x\n", ended)
        self.assertLessEqual(len(ended.record["denials"]), 257)
        # 10,000 answers a second are counted one by one; what the kernel dropped never became a question.
        self.assertGreater(self.counted(ended), 256)

    def test_half_questions_keep_nobody_else_from_asking(self):
        ended = self.run_python(SLOW_STREAMS, NAME, rules=[f"{NAME}:{ECHO}"])
        self.assertEqual(ended.text, "rcode 0 answers 1\n", ended)

    def test_addresses_of_names_are_not_used_twice(self):
        ended = self.run_python(RESOLVE, 300, rules=[f"*.wild.example.org:{HTTP}"])
        self.assertEqual(ended.text, "300\npage of a\n", ended)

    # ---- attempts

    def test_every_refused_attempt_of_a_flood_is_counted(self):
        ended = self.run_python(ATTEMPTS, PUBLIC, 2000, 3000, 5, rules=[f"{NAME}:{ECHO}"])
        self.assertEqual(ended.text, "('ECONNREFUSED', 5000)\n", ended)
        self.assertEqual(self.counted(ended), 5000, [(one["what"], one["count"]) for one in ended.record["denials"]])
        self.assertLessEqual(len(ended.record["denials"]), 257)

    def test_slow_every_port_of_the_gateway_is_closed(self):
        """Its own address, and one that anybody may have: port 53 answers, nothing else does."""
        for host in ("198.19.255.1", OTHER_PUBLIC):
            ended = self.run_python(ATTEMPTS, host, 1, 65536, 1, rules=[f"{NAME}:{ECHO}"], options=["--timeout", "300s", "--cpu-time", "300s"], timeout=320)
            self.assertEqual(ended.text, "('ECONNREFUSED', 65534) ('connected', 1)\n", ended)
            self.assertEqual(self.counted(ended), 65534, ended)

    def test_slow_every_port_that_a_rule_has_is_tried(self):
        """A scan of a wide rule's ports opens no more listeners than the limit."""
        process = self.start_python(ATTEMPTS, PUBLIC, 20000, 23000, 1, rules=[f"{PUBLIC}:*"], options=["--timeout", "300s", "--cpu-time", "300s"])
        most = 0
        while process.poll() is None:
            try:
                most = max(most, int(status_of(process.pid)["FDSize"]))
            except (OSError, KeyError):
                break  # it has just ended
            time.sleep(0.05)  # sampling
        self.finish(process, json_record=False)
        self.assertGreater(most, 0)
        self.assertLessEqual(most, 1024)

    # ---- datagrams

    def test_slow_more_flows_than_there_may_be(self):
        ended = self.run_python(FLOWS, NAME, UDP_ECHO, 1500, rules=[f"udp://{NAME}:{UDP_ECHO}"], options=["--set", "limits.open_files=4096", "--timeout", "120s"],
                                timeout=150)
        answered, refused = map(int, ended.text.split())
        self.assertEqual(answered + refused, 1500, ended)
        self.assertGreaterEqual(answered, 1024, ended)
        if refused:
            self.assertIn("udp flows over 1024 at a time", ended.denied, ended)


if __name__ == "__main__":
    sbxtest.main()

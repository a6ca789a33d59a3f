"""Attacks of one call on another, on the session and on the host, each with what must go on working beside it."""

import json
import os
import pathlib
import pty
import subprocess
import time

import sessiontest
import sbxtest
from harness import HANG
from sessiontest import SessionTest

# What the programs inside begin with.
INSIDE = f"SYSCALLS = {sbxtest.SYSCALLS!r}" + r'''
import array, ctypes, errno, json, os, resource, signal, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)

def name_of(number):
    return errno.errorcode.get(number, str(number))

def tried(act, *arguments):
    """None, or how the kernel refused it."""
    try:
        act(*arguments)
    except OSError as error:
        return name_of(error.errno)

def syscall(number, *arguments):
    ctypes.set_errno(0)
    return None if libc.syscall(number, *arguments) >= 0 else name_of(ctypes.get_errno())

def connected(path):
    for _ in range(2000):
        client = socket.socket(socket.AF_UNIX)
        if tried(client.connect, path) is None:
            return client
        time.sleep(0.005)

def listening(path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(path + ".new")
    server.listen(8)
    os.rename(path + ".new", path)
    print("ready", flush=True)
    return server
'''

# A request of the session's protocol, {"op": "info"}: prints what answers at the socket named first.
ASK = r'''
import socket, sys
client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
try:
    client.settimeout(120)
    client.connect(sys.argv[1])
    print("connected", end=" ")
    client.send(b"\x02\xa1\x62op\x64info")
    words = client.recv(1 << 16)
    print("answered " + ("expires" if b"expires" in words else "with nothing") if words else "closed")
except OSError as error:
    print("refused " + str(error))
'''


def marked(marker):
    """Pids on the host whose command line has a word."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                line = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in line and b"session" not in line.split(b"\0")[1:2] and sessiontest.process_lives(int(entry)):
                found.append(int(entry))
    return found


def resident_kib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


# Other tests compete for the CPUs meanwhile: test_load.py, which runs alone, holds sbx to the second that it promises.


class AttackTest(SessionTest):
    """Programs inside are Python's; a call that serves another says "ready"."""

    runtime = {}
    extra = {}

    def use_runtime_directory(self, directory):
        """From here on, to the end of the test."""
        directory.mkdir(mode=0o700)
        self.runtime = {"XDG_RUNTIME_DIR": str(directory)}
        self.extra = self.runtime

    def end_sessions(self):
        self.extra = {}
        self.sbx_session("stop", "--all")
        self.extra = self.runtime
        super().end_sessions()

    def environment(self, extra=None):
        return super().environment({**self.extra, **(extra or {})})

    def inside(self, code, *arguments, name="work", options=(), **rest):
        """A foreground call with its record."""
        return self.exec_json(*options, "--lang", "python", "-c", INSIDE + code, *map(str, arguments), name=name, **rest)

    def told(self, code, *arguments, **rest):
        """What a program printed as JSON."""
        answer = self.inside(code, *arguments, **rest)
        self.assertEqual(answer.verdict, ("exited", None), answer)
        self.assertEqual(answer.status, 0, answer)
        return json.loads(answer.record["stdout"]["text"])

    def serve(self, code, *arguments, name="work"):
        """A background call that is ready."""
        call = self.detach("--lang", "python", "-c", INSIDE + code, *map(str, arguments), name=name)
        self.ready(call, name=name)
        return call

    def ready(self, call, name="work", word="ready"):
        sessiontest.wait_until(lambda: word in self.sbx_session("logs", name, call).out or self.state(call, name)["state"] != "running",
                               f"call {call} says {word}")
        self.assertEqual(self.state(call, name)["state"], "running", self.sbx_session("logs", name, call))

    def state(self, call, name="work"):
        calls = self.sbx_session("calls", "--json", name).json["calls"]
        return next(each for each in calls if each["call"] == call)

    def unharmed(self, call, name="work"):
        """It runs, and still answers its own signal."""
        self.assertEqual(self.state(call, name)["state"], "running")
        self.assertEqual(self.sbx_session("kill", name, call, "USR1").status, 0)
        self.assertEqual(self.sbx_session("wait", name, call).status, 9)


# Waits for its own signal; the children give its PID namespace numbers that the attacker has not.
VICTIM = r'''
signal.signal(signal.SIGUSR1, lambda *_: os._exit(9))
for _ in range(12):
    if os.fork() == 0:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        while True: signal.pause()
print("ready", flush=True)
while True: signal.pause()
'''


class OtherCalls(AttackTest):
    def test_another_call_is_not_seen(self):
        self.start_session()
        self.serve(VICTIM, "victim-marker")
        seen = self.told(r'''
child = os.fork()
if child == 0:
    while True: signal.pause()
lines = [open(f"/proc/{each}/cmdline").read() for each in os.listdir("/proc") if each.isdigit()]
print(json.dumps({"lines": lines, "numbers": [int(each) for each in os.listdir("/proc") if each.isdigit()], "child": child, "own": os.getpid()}))
os.kill(child, 9)
''')
        self.assertFalse([line for line in seen["lines"] if "victim-marker" in line], seen)
        self.assertEqual(sorted(set(seen["numbers"]) - {1}), sorted([seen["own"], seen["child"]]))

    def test_another_call_is_not_signalled_traced_or_rescheduled(self):
        facts = self.start_session()
        victim = self.serve(VICTIM, "victim-marker")
        pids = marked("victim-marker")
        pids = [pid for pid in pids if pid in sessiontest.descendants(facts["pid"])]
        self.assertGreaterEqual(len(pids), 13)
        before = {pid: (os.getpriority(os.PRIO_PROCESS, pid), os.sched_getaffinity(pid)) for pid in pids}
        told = self.told(r'''
child = os.fork()
if child == 0:
    while True: signal.pause()
one = {0}
def all_of(pid):
    vector = (ctypes.c_size_t * 2)()
    return {"signal": tried(os.kill, pid, 0), "group": tried(os.killpg, pid, 0), "affinity": tried(os.sched_setaffinity, pid, one),
            "nice": tried(os.setpriority, os.PRIO_PROCESS, pid, 5), "limits": tried(lambda: resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))),
            "pidfd": tried(os.pidfd_open, pid), "trace": syscall(SYSCALLS["ptrace"], 0x4206, pid, 0, 0), "read": syscall(SYSCALLS["process_vm_readv"], pid, vector, 0, vector, 0, 0),
            "directory": tried(os.listdir, f"/proc/{pid}")}
others = [int(each) for each in sys.argv[1:]]
own = {1, os.getpid(), child}
numbers = [each for each in [*range(2, 40), *others] if each not in own]
told = {"others": {each: all_of(each) for each in numbers}, "child": all_of(child)}
told["user"] = tried(os.setpriority, os.PRIO_USER, os.getuid(), 10)
told["nice of child"] = os.getpriority(os.PRIO_PROCESS, child)
told["all"] = tried(os.kill, -1, signal.SIGKILL)
told["child ended by"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps(told))
''', *pids)
        for number, done in told["others"].items():
            self.assertEqual({what for what, refusal in done.items() if refusal is None}, set(), f"reached {number}: {done}")
        own = told["child"]
        self.assertEqual([own[what] for what in ("signal", "nice", "pidfd", "directory")], [None] * 4, own)
        self.assertEqual((told["nice of child"], told["all"], told["child ended by"]), (10, None, -9), told)
        self.assertEqual({pid: (os.getpriority(os.PRIO_PROCESS, pid), os.sched_getaffinity(pid)) for pid in pids}, before)
        self.unharmed(victim)

    def test_a_pidfd_of_another_call_signals_nothing(self):
        self.start_session()
        victim = self.serve(r'''
signal.signal(signal.SIGUSR1, lambda *_: os._exit(9))
server = listening("/tmp/meet")
peer, _ = server.accept()
socket.send_fds(peer, [b"x"], [os.pidfd_open(os.getpid())])
while True: signal.pause()
''')
        told = self.told(r'''
client = connected("/tmp/meet")
word, fds, _, _ = socket.recv_fds(client, 1, 1)
told = {"given": [syscall(SYSCALLS["pidfd_send_signal"], fds[0], number, None, 0) for number in (0, 15, 9, 19)]}
SO_PEERPIDFD = 77
try:
    peer = client.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD)
    told["of the peer"] = [syscall(SYSCALLS["pidfd_send_signal"], peer, number, None, 0) for number in (0, 9)]
except OSError as error:
    told["of the peer"] = [name_of(error.errno)]
told["descriptor"] = syscall(SYSCALLS["pidfd_getfd"], fds[0], 1, 0)
told["release"] = syscall(SYSCALLS["process_mrelease"], fds[0], 0)
told["namespace"] = syscall(SYSCALLS["setns"], fds[0], 0x20000000)
child = os.fork()
if child == 0:
    while True: signal.pause()
own = os.pidfd_open(child)
told["own"] = syscall(SYSCALLS["pidfd_send_signal"], own, 9, None, 0)
told["ended by"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps(told))
''')
        self.assertEqual(told["given"], ["EINVAL"] * 4)
        self.assertNotIn(None, [*told["of the peer"], told["descriptor"], told["release"], told["namespace"]], told)
        self.assertEqual((told["own"], told["ended by"]), (None, -9))
        self.unharmed(victim)

    def test_a_directory_of_its_proc_shows_nothing(self):
        self.start_session()
        victim = self.serve(r'''
signal.signal(signal.SIGUSR1, lambda *_: os._exit(9))
server = listening("/tmp/meet")
print([each for each in os.listdir("/proc") if each.isdigit()], flush=True)
peer, _ = server.accept()
socket.send_fds(peer, [str(os.getpid()).encode()], [os.open("/proc", os.O_RDONLY), os.open("/proc/self", os.O_RDONLY)])
while True: signal.pause()
''')
        told = self.told(r'''
client = connected("/tmp/meet")
word, (proc, own), _, _ = socket.recv_fds(client, 20, 2)
number = word.decode()
told = {"numbers": [each for each in os.listdir(proc) if each.isdigit()]}
for base, path in ((proc, number + "/"), (own, "")):
    for name in ("environ", "mem", "maps", "fd/1", "root/etc/passwd", "cwd/.", "oom_score_adj"):
        told[path + name] = tried(lambda: os.read(os.open(path + name, os.O_RDONLY, dir_fd=base), 1))
print(json.dumps(told))
''')
        self.assertEqual(told.pop("numbers"), [])
        self.assertEqual([what for what, refusal in told.items() if refusal is None], [], told)
        self.unharmed(victim)

    def test_terminals_are_those_of_the_call(self):
        self.start_session()
        victim = self.serve(r'''
import pty
signal.signal(signal.SIGUSR1, lambda *_: os._exit(9))
ends = [os.openpty() for _ in range(3)]
print(sorted(os.listdir("/dev/pts")), flush=True)
print("ready", flush=True)
while True: signal.pause()
''')
        self.assertIn("['0', '1', '2', 'ptmx']", self.sbx_session("logs", "work", victim).out)
        told = self.told(r'''
told = {"listed": sorted(os.listdir("/dev/pts")), "opened": [tried(os.open, f"/dev/pts/{number}", os.O_RDWR | os.O_NOCTTY) for number in range(3)]}
ends = os.openpty()
told["own"] = [os.ttyname(ends[1]), sorted(os.listdir("/dev/pts"))]
print(json.dumps(told))
''')
        self.assertEqual((told["listed"], told["opened"]), (["ptmx"], ["ENOENT"] * 3))
        self.assertEqual(told["own"], ["/dev/pts/0", ["0", "ptmx"]])
        self.unharmed(victim)

    def test_what_was_handed_over_stays_open_but_nothing_of_the_call_runs(self):
        self.start_session()
        keeper = self.serve(r'''
signal.signal(signal.SIGUSR1, lambda *_: os._exit(9))
server = listening("/tmp/meet")
peer, _ = server.accept()
word, fds, _, _ = socket.recv_fds(peer, 1, 3)
while os.read(peer.fileno(), 1): pass
os.lseek(fds[0], 0, 0)
print("it held " + os.read(fds[0], 100).decode(), flush=True)
while True: signal.pause()
''')
        ended = self.inside(r'''
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        while True: time.sleep(0.01)
client = connected("/tmp/meet")
file = os.open("/tmp/of-the-first", os.O_RDWR | os.O_CREAT)
os.write(file, b"secret")
socket.send_fds(client, [b"x"], [file, os.open("/proc/self", os.O_RDONLY), os.pidfd_open(os.getpid())])
''', "ended-marker")
        self.assertEqual(ended.verdict, ("exited", None), ended)
        sessiontest.wait_until(lambda: not marked("ended-marker"), "its processes are gone")
        self.ready(keeper, word="it held secret")
        self.unharmed(keeper)

    def hold_streams(self):
        return self.serve(r'''
signal.signal(signal.SIGUSR1, lambda *_: os._exit(9))
server = listening("/tmp/meet")
kept = []
while True:
    try:
        peer, _ = server.accept()
        kept.append(socket.recv_fds(peer, 1, 3))
        peer.close()
    except OSError: pass
''')

    HANDS_STREAMS_OVER = r'''
print("said", flush=True)
client = connected("/tmp/meet")
socket.send_fds(client, [b"x"], [1, 2])
client.recv(1)
os._exit(3)
'''

    def test_streams_that_another_call_holds_delay_no_verdict(self):
        self.start_session()
        keeper = self.hold_streams()
        ended = self.inside(self.HANDS_STREAMS_OVER)
        self.assertEqual((ended.verdict, ended.status, ended.record["stdout"]["text"]), (("exited", None), 3, "said\n"), ended)
        plain = self.sbx_session("exec", "work", "--lang", "python", "-c", INSIDE + self.HANDS_STREAMS_OVER)
        self.assertEqual((plain.status, plain.out), (3, "said\n"), plain)
        self.unharmed(keeper)  # it holds the streams still

    def test_a_log_that_another_call_holds_open_ends_with_its_call(self):
        self.start_session()
        keeper = self.hold_streams()
        call = self.detach("--lang", "python", "-c", INSIDE + self.HANDS_STREAMS_OVER)
        self.assertEqual(self.sbx_session("wait", "work", call).status, 3)
        followed = self.sbx_session("logs", "-f", "work", call)
        self.assertEqual(followed.out, "said\n")
        self.unharmed(keeper)


class TheSession(AttackTest):
    def test_the_init_of_a_call_and_the_holder_survive(self):
        facts = self.start_session()
        bystander = self.serve(VICTIM)
        ended = self.inside(r'''
told = {"ptrace": syscall(SYSCALLS["ptrace"], 0x4206, 1, 0, 0), "affinity": tried(os.sched_setaffinity, 1, {0}), "nice": tried(os.setpriority, os.PRIO_PROCESS, 1, 19),
        "cpu": tried(lambda: resource.prlimit(1, resource.RLIMIT_CPU, (1, 1))), "files": tried(lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))),
        "memory": tried(os.open, "/proc/1/mem", os.O_RDWR), "descriptors": tried(os.listdir, "/proc/1/fd"),
        "score": tried(lambda: os.write(os.open("/proc/1/oom_score_adj", os.O_WRONLY), b"1000")), "read": syscall(SYSCALLS["process_vm_readv"], 1, None, 0, None, 0, 0)}
for number in range(1, 65):
    tried(os.kill, 1, number)
for number in range(1, 65):
    if number not in (signal.SIGKILL, signal.SIGSTOP): tried(signal.signal, number, signal.SIG_IGN) if number not in (32, 33) else None
    tried(os.kill, -1, number)
print(json.dumps(told), flush=True)
os._exit(7)
''')
        self.assertEqual((ended.verdict, ended.status, ended.record["outcome"]["exit_code"]), (("exited", None), 7, 7), ended)
        told = json.loads(ended.record["stdout"]["text"])
        self.assertEqual([what for what, refusal in told.items() if refusal is None], [], told)
        self.assertTrue(sessiontest.process_lives(facts["pid"]))
        self.unharmed(bystander)
        self.exec_ok("--", "true")

    def unreachable(self, directory, name="work"):
        """Inside, neither the session's directory nor its socket is there; beside them a file is."""
        self.assertTrue((directory / name / "socket").is_socket())
        told = self.told(r'''
directory = sys.argv[1]
path = directory + "/" + sys.argv[2]
client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
print(json.dumps({"listed": os.listdir(directory) if os.path.isdir(directory) else [], "socket": tried(client.connect, path + "/socket"), "lock": tried(os.open, path + "/lock", os.O_RDONLY),
                  "moved": tried(os.rename, path, path + "-2"), "file": open(sys.argv[3]).read()}))
''', directory, name, self.beside, name=name)
        self.assertEqual(told["listed"], [], told)
        self.assertNotIn(None, (told["socket"], told["lock"], told["moved"]), told)
        self.assertEqual(told["file"], "beside\n")
        self.assertEqual(self.sbx_session("show", "--json", name).json["name"], name)

    def test_a_granted_state_home_does_not_show_the_session(self):
        self.beside = self.write(".local/state/note", "beside\n", directory=self.home)
        for way in ("--read", "--write"):
            name = "s" + way.strip("-")
            self.start_session(way, self.home / ".local", name=name)
            self.unreachable(self.directory(), name)

    def test_a_granted_runtime_directory_does_not_show_the_session(self):
        runtime = self.tmp / "runtime"
        self.use_runtime_directory(runtime)
        self.beside = self.write("note", "beside\n", directory=runtime)
        self.start_session("--write", runtime)
        self.assertFalse(self.directory().exists())
        self.unreachable(runtime / "sbx/sessions")
        self.stop_session()
        self.assertEqual(list((runtime / "sbx/sessions").iterdir()), [])

    def ask_on_host(self, path, *before):
        process = sbxtest.start([*before, "/usr/bin/python3", "-c", ASK, str(path)], cwd="/", env={"PATH": "/usr/bin:/bin"}, stdout=subprocess.PIPE)
        return process.communicate(timeout=HANG)[0].decode().strip()

    def test_a_sandbox_of_the_same_user_can_not_use_the_socket(self):
        """Not where a hard link of it lies in a granted directory, nor where the sandbox knows nothing of the place."""
        runtime = self.tmp / "runtime"
        self.use_runtime_directory(runtime)
        self.start_session()
        socket = runtime / "sbx/sessions/work/socket"
        shared = self.tmp / "shared"
        shared.mkdir()
        os.link(socket, shared / "link")
        self.assertEqual(self.ask_on_host(shared / "link"), "connected answered expires")
        self.extra = {}
        for granted, path in ((shared, shared / "link"), (runtime, socket)):
            for way in ("--read", "--write"):
                ended = self.sbx(way, granted, "--lang", "python", "-c", ASK, path)
                self.assertEqual(ended.verdict, ("exited", None), ended)
                self.assertRegex(ended.text, "^(connected )?(refused|closed)", f"{way} {granted}")
        self.extra = self.runtime
        self.start_session("--write", shared, name="other")
        asked = self.exec_ok("--lang", "python", "-c", ASK, shared / "link", name="other")
        self.assertRegex(asked.out, "^(connected )?(refused|closed)")
        self.exec_ok("--", "true")

    def test_a_sandbox_that_was_there_first_can_not_use_the_socket(self):
        """A live grant shows the sockets that are made in it later: then only the check of the peer stands."""
        runtime = self.tmp / "runtime"
        self.use_runtime_directory(runtime)
        self.extra = {}
        for way in ("--read", "--write"):
            self.start_session(way, runtime, name="first" + way.strip("-"))
        self.extra = self.runtime
        self.start_session()
        path = runtime / "sbx/sessions/work/socket"
        self.extra = {}
        for name in ("firstread", "firstwrite"):
            asked = self.exec_ok("--lang", "python", "-c", ASK, path, name=name)
            self.assertRegex(asked.out, "^(connected )?(refused|closed)", name)
        self.extra = self.runtime
        self.assertEqual(self.ask_on_host(path), "connected answered expires")

    def test_a_session_that_a_sandbox_made_up_gets_no_descriptors(self):
        """Of the caller: whoever listens where a session is looked for must be a process of the host's."""
        runtime = self.tmp / "runtime"
        self.use_runtime_directory(runtime)
        self.extra = {}
        self.start_session("--set", f'filesystem.write=[{{ source = "{runtime}", special = true }}]', name="hostile")
        listens = self.serve(r'''
import fcntl
directory = sys.argv[1]
os.makedirs(directory, mode=0o700, exist_ok=True)
lock = open(directory + "/lock", "w"); fcntl.flock(lock, fcntl.LOCK_EX)
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
refusal = tried(server.bind, directory + "/socket")
if refusal is None: server.listen(8)
print("ready", refusal, flush=True)
while refusal is None:
    peer, _ = server.accept()
    word, fds, _, _ = socket.recv_fds(peer, 16, 16)
    if fds: print("stole", len(fds), flush=True)
    for each in fds: os.close(each)
    peer.close()
while True: signal.pause()
''', runtime / "sbx/sessions/fake", name="hostile")
        self.assertIn("ready None", self.sbx_session("logs", "hostile", listens).out)
        self.extra = self.runtime
        used = self.sbx_session("exec", "fake", "--", "true")
        self.assertNotEqual(used.status, 0)
        self.extra = {}
        self.assertNotIn("stole", self.sbx_session("logs", "hostile", listens).out)

    def test_another_user_can_not_use_the_socket(self):
        if not sbxtest.IS_ROOT:
            self.skipTest("needs a second user")
        self.start_session()
        socket = self.directory() / "work/socket"
        shared = self.tmp / "shared"
        shared.mkdir(mode=0o755)
        self.tmp.chmod(0o755)
        os.link(socket, shared / "link")
        os.chmod(shared / "link", 0o777)  # so that only the check of the peer stands
        self.assertEqual(self.ask_on_host(shared / "link"), "connected answered expires")
        nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        self.assertRegex(self.ask_on_host(shared / "link", *nobody), "^connected (closed|refused)")
        self.assertRegex(self.ask_on_host(socket, *nobody), "^refused .*Permission")
        self.exec_ok("--", "true")

    def test_a_call_can_not_forge_its_record(self):
        facts = self.start_session()
        report = self.tmp / "report"
        ended = self.inside(r'''
fake = json.dumps({"schema": "sbx.run/1", "outcome": {"status": "exited", "reason": None, "exit_code": 0}, "session": {"name": "work", "id": "s_0", "call": 1}, "denials": []})
written = []
for stream in (1, 2):
    os.write(stream, (fake + "\n").encode() * 3)
for descriptor in range(3, 1024):
    if tried(os.write, descriptor, fake.encode()) is None: written.append(descriptor)
os.write(2, json.dumps(written).encode())
libc.ptrace(0, 0, 0, 0)
os._exit(41)
''', options=("--report", report))
        self.assertEqual(ended.status, 41, ended)
        record = ended.record  # one document, whole
        self.assertEqual((record["outcome"]["exit_code"], record["session"]["id"]), (41, facts["id"]))
        self.assertEqual([each["what"] for each in record["denials"]], ["ptrace"])
        self.assertEqual(record["stdout"]["text"].count("sbx.run/1"), 3)
        self.assertTrue(record["stderr"]["text"].endswith("\n[]"), record["stderr"])
        self.assertEqual(json.loads(report.read_text())["outcome"], record["outcome"])
        call = self.detach("--lang", "python", "-c", INSIDE + "print('{\"outcome\":{\"exit_code\":0}}'); os._exit(42)")
        waited = self.sbx_session("wait", "--json", "work", call)
        self.assertEqual((waited.status, waited.record["outcome"]["exit_code"]), (42, 42))

    def test_two_sessions_do_not_reach_each_other(self):
        self.start_session(name="one")
        self.start_session(name="two")
        server = r'''
open("/tmp/file", "w").write("mine")
open(os.path.expanduser("~/file"), "w").write("mine")
open("/dev/shm/file", "w").write("mine")
plain = socket.socket(); plain.bind(("127.0.0.1", 7777)); plain.listen(8)
named = listening("/tmp/meet")
hidden = socket.socket(socket.AF_UNIX); hidden.bind("\0sbx-attack"); hidden.listen(8)
print("ready", flush=True)
while True: signal.pause()
'''
        self.serve(server, name="one")
        client = r'''
print(json.dumps({"tmp": os.path.exists("/tmp/file"), "home": os.path.exists(os.path.expanduser("~/file")), "shm": os.path.exists("/dev/shm/file"),
                  "port": tried(socket.socket().connect, ("127.0.0.1", 7777)), "path": tried(socket.socket(socket.AF_UNIX).connect, "/tmp/meet"),
                  "abstract": tried(socket.socket(socket.AF_UNIX).connect, "\0sbx-attack")}))
'''
        same = self.told(client, name="one")
        abstract = same.pop("abstract")
        self.assertEqual(same, {"tmp": True, "home": True, "shm": True, "port": None, "path": None})
        # From Linux 6.12 on it is refused; before that, the record says that it is not.
        degraded = self.exec_json("--", "true", name="one").record["degraded"]
        self.assertEqual(abstract, None if any("abstract sockets" in each["instead"] for each in degraded) else "EPERM")
        other = self.told(client, name="two")
        self.assertEqual([other[where] for where in ("tmp", "home", "shm")], [False] * 3)
        self.assertNotIn(None, [other[where] for where in ("port", "path", "abstract")], other)

    def test_an_abstract_socket_of_another_call_is_refused(self):
        doctor = self.run_sbx("doctor").out
        abi = int(doctor.split("Landlock             ABI ")[1].split()[0]) if "Landlock             ABI " in doctor else 0
        if abi < 6:
            self.skipTest("Landlock has no scopes here")
        self.start_session()
        self.serve('hidden = socket.socket(socket.AF_UNIX); hidden.bind("\\0sbx-attack"); hidden.listen(8); print("ready", flush=True)\nwhile True: signal.pause()')
        told = self.told(r'''
own = socket.socket(socket.AF_UNIX); own.bind("\0sbx-own"); own.listen(1)
print(json.dumps([tried(socket.socket(socket.AF_UNIX).connect, "\0sbx-attack"), tried(socket.socket(socket.AF_UNIX).connect, "\0sbx-own")]))
''')
        self.assertEqual(told, ["EPERM", None])

    def test_a_call_can_not_widen_the_policy(self):
        self.start_session("--memory", "256M")
        for key, value in (("limits.memory", '"1G"'), ("limits.processes", "1000"), ("limits.disk", '"1G"'), ("network.mode", '"host"'),
                           ("network.allow", '["example.org"]'), ("filesystem.read", '["/root"]'), ("filesystem.write", '["/etc"]'),
                           ("syscalls.allow", '["@debug"]'), ("session.calls", "100"), ("filesystem.landlock", "false"), ("output.stdout", '"1G"')):
            answer = self.sbx_session("exec", "work", "--set", f"{key}={value}", "--", "true")
            self.assertEqual(answer.status, 125, answer)
            self.assertIn(key, answer.err)
        for option in (("--read", "/root"), ("--write", "/etc"), ("--memory", "1G"), ("--net", "host"), ("-p", "agent")):
            self.assertNotEqual(self.sbx_session("exec", "work", *option, "--", "true").status, 0, option)
        told = self.exec_json("--", "true", options=("--require", "memory.cgroup"))
        expected = {each["what"] for each in self.sbx_session("show", "--json", "work").json["degraded"]}
        self.assertEqual(told.status, 125 if "limits.memory" in expected else 0, told)
        self.exec_ok("--set", 'limits.wall_time="5s"', "--", "true")


class Exhaustion(AttackTest):
    def test_a_call_that_floods_its_log_harms_nobody(self):
        facts = self.start_session("--timeout", "10m", "--cpu-time", "10m", "--set", 'session.log="1M"')
        call = self.detach("--", "sh", "-c", "yes flood-of-stderr >&2 & exec yes flood-of-stdout")
        largest = []

        def has_flooded():
            self.exec_ok("--", "true")
            now = self.state(call)
            self.assertEqual(now["state"], "running", "others go on beside it")
            largest.append(resident_kib(facts["pid"]))
            return now["stdout_bytes"] + now["stderr_bytes"] > 200_000_000
        sessiontest.wait_until(has_flooded, "it has flooded")
        self.assertLess(max(largest), 64 * 1024)
        self.assertEqual(self.sbx_session("kill", "work", call, "KILL").status, 0)
        self.assertEqual(self.sbx_session("wait", "work", call).status, 137)
        logs = self.sbx_session("logs", "work", call)
        for text in (logs.out, logs.err):
            self.assertIn("bytes left out", text)
            self.assertLess(len(text), (1 << 20) + 200)

    def test_the_default_log_bounds_memory_too(self):
        facts = self.start_session()
        call = self.detach("--", "sh", "-c", "head -c 30000000 /dev/zero; head -c 30000000 /dev/zero >&2")
        self.assertEqual(self.sbx_session("wait", "work", call).status, 0)
        for _ in range(2):
            self.assertLess(len(self.sbx_session("logs", "work", call).out), (8 << 20) + 200)
        self.assertLess(resident_kib(facts["pid"]), 64 * 1024)

    def test_a_call_that_floods_its_stdout_ends_alone(self):
        facts = self.start_session()
        bystander = self.serve(VICTIM)
        captured = self.exec_json("--", "yes", options=("--timeout", "700ms", "--output", "64K"))
        self.assertEqual(captured.verdict[0], "over-budget", captured)
        self.assertLess(len(captured.record["stdout"]["text"]), 66000)
        passed = self.sbx_session("exec", "work", "--output", "1M", "--", "yes")
        self.assertNotEqual(passed.status, 0)
        self.assertLess(len(passed.out), (1 << 20) + 200)
        self.assertLess(resident_kib(facts["pid"]), 64 * 1024)
        self.unharmed(bystander)

    FORKS = 'while True:\n  try: os.fork()\n  except OSError: pass\n'

    def test_a_fork_bomb_is_gone_within_a_second(self):
        self.start_session("--processes", "60")
        bystander = self.serve(VICTIM)

        def gone(marker):
            sessiontest.wait_until(lambda: not marked(marker), f"{marker} is gone")
            self.exec_ok("--", "true")

        call = self.detach("--lang", "python", "-c", INSIDE + self.FORKS, "bomb-killed")
        sessiontest.wait_until(lambda: len(marked("bomb-killed")) > 20, "it forks")
        self.assertEqual(self.sbx_session("kill", "work", call, "KILL").status, 0)
        gone("bomb-killed")
        self.assertEqual(self.sbx_session("wait", "work", call).status, 137)

        late = self.inside(self.FORKS, "bomb-late", options=("--timeout", "500ms"))
        self.assertEqual(late.verdict, ("over-budget", "wall_time"), late)
        gone("bomb-late")

        client = sbxtest.start([sbxtest.SBX, "session", "exec", "work", "--lang", "python", "-c", INSIDE + self.FORKS, "bomb-client"],
                               env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL)
        sessiontest.wait_until(lambda: len([pid for pid in marked("bomb-client") if pid != client.pid]) > 20, "it forks")
        client.kill()
        client.wait()
        gone("bomb-client")
        self.unharmed(bystander)

    def test_stop_ends_a_fork_bomb(self):
        facts = self.start_session("--processes", "60")
        self.detach("--lang", "python", "-c", INSIDE + "for number in range(1, 32):\n  if number not in (9, 19): signal.signal(number, signal.SIG_IGN)\n" + self.FORKS, "bomb-stopped")
        sessiontest.wait_until(lambda: len(marked("bomb-stopped")) > 20, "it forks")
        self.stop_session()
        sessiontest.wait_until(lambda: not marked("bomb-stopped") and not sessiontest.process_lives(facts["pid"]), "it is gone")
        self.nothing_is_left()

    def test_a_fork_bomb_holds_up_neither_commands_nor_their_errors(self):
        self.start_session("--processes", "40")
        call = self.detach("--lang", "python", "-c", INSIDE + self.FORKS, "bomb-full")
        sessiontest.wait_until(lambda: len(marked("bomb-full")) > 20, "it forks")
        self.assertIn(self.sbx_session("exec", "work", "--", "true").status, (0, 125))
        self.assertIn(self.sbx_session("ls", "work").status, (0, 1, 125))
        self.assertEqual(self.state(call)["state"], "running", "they were answered while it forked")
        self.assertEqual(self.sbx_session("kill", "work", call, "KILL").status, 0)
        self.assertEqual(self.sbx_session("wait", "work", call).status, 137)
        self.exec_ok("--", "true")

    def test_memory_in_many_processes_ends_their_call_only(self):
        facts = self.start_session("--memory", "128M", "--disk", "8M")
        bystander = self.serve(VICTIM)
        ended = self.inside(r'''
for _ in range(12):
    if os.fork() == 0: break
kept = []
while True: kept.append(b"x" * 500_000)
''', "memory-marker", options=("--timeout", "30s"))
        self.assertEqual(ended.verdict, ("over-budget", "memory"), ended)
        sessiontest.wait_until(lambda: not marked("memory-marker"), "all of it is gone")
        self.assertTrue(sessiontest.process_lives(facts["pid"]))
        self.unharmed(bystander)
        self.exec_ok("--", "true")

    FILLS = 'try: open("/proc/self/oom_score_adj", "w").write("0")\nexcept OSError: pass\nwith open("/tmp/full", "ab", 0) as f:\n  while True: f.write(bytes(65536))'

    def test_files_that_fill_the_memory_end_no_session(self):
        # Much more disk than memory: where memory is looked at from time to time, the disk must not be full before a look.
        facts = self.start_session("--memory", "64M", "--disk", "1G")
        for _ in range(6):
            ended = self.sbx_session("exec", "work", "--lang", "python", "-c", self.FILLS)
            if ended.status != 137:
                self.assertEqual(ended.status, 125, ended)
                self.assertIn("session-memory-full", ended.err)
        self.assertTrue(sessiontest.process_lives(facts["pid"]))
        self.assertEqual(self.sbx_session("stop", "work").status, 0)

    def test_files_that_fill_the_disk_leave_memory_for_calls(self):
        self.start_session("--memory", "64M", "--disk", "16M")
        self.assertEqual(self.sbx_session("exec", "work", "--lang", "python", "-c", self.FILLS).status, 1)
        self.exec_ok("--", "rm", "/tmp/full")

    def test_logs_of_ended_calls_are_bounded_together(self):
        facts = self.start_session()
        for _ in range(4):
            call = self.detach("--", "sh", "-c", "head -c 13000000 /dev/zero; head -c 13000000 /dev/zero >&2")
            self.assertEqual(self.sbx_session("wait", "work", call).status, 0)
        # Twice session.log for each: not more than what was promised to be kept.
        self.assertLess(resident_kib(facts["pid"]), (4 * 2 * 8 + 24) * 1024)

    def test_a_full_disk_can_be_emptied_by_the_next_call(self):
        self.start_session("--disk", "4M")
        full = self.inside(r'''
file = os.open("/tmp/full", os.O_WRONLY | os.O_CREAT)
refusal = None
while refusal is None: refusal = tried(os.write, file, b"x" * 65536)
print(refusal)
''')
        self.assertEqual((full.verdict, full.record["stdout"]["text"]), (("exited", None), "ENOSPC\n"), full)
        self.assertIn("disk", json.dumps(full.record["limits_met"]))
        listed = self.sbx_session("ls", "--json", "work", "/tmp")
        self.assertIn("full", [each["name"] for each in listed.json["entries"]])
        self.write("small", "x" * 100_000)
        put = self.sbx_session("put", "work", "small", "/tmp/")
        self.assertNotEqual(put.status, 0, put)
        self.assertIn("small", put.err)
        again = self.exec_json("--", "sh", "-c", "rm /tmp/full && head -c 1000000 /dev/zero >/tmp/next && wc -c </tmp/next")
        self.assertEqual((again.status, again.record["stdout"]["text"].strip(), again.record["limits_met"]), (0, "1000000", []), again)
        self.assertEqual(self.sbx_session("put", "work", "small", "/tmp/").status, 0)

    def test_a_disk_that_was_full_before_a_call_counts_unless_the_call_makes_room(self):
        self.start_session("--disk", "4M")
        fill = "head -c 8000000 /dev/zero >/tmp/full 2>/dev/null;"
        long_enough = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done;"  # the supervisor looks every 50 ms
        for script, is_met in ((fill, True), (long_enough, True), (f"{long_enough} rm /tmp/full", False),
                               (f"{fill} {long_enough}", True), (f"{long_enough} rm /tmp/full; {fill} {long_enough} true", True)):
            call = self.exec_json("--", "sh", "-c", script)
            self.assertEqual([each["limit"] for each in call.record["limits_met"]], ["disk"] if is_met else [], (script, call))


class Traps(AttackTest):
    def test_a_start_file_of_python_is_a_trap_and_is_documented(self):
        self.start_session()
        self.exec_ok("--lang", "python", "-c", r"""
import os, site
place = site.getusersitepackages()
os.makedirs(place)
for name in ("sitecustomize.py", "usercustomize.py"):  # a distribution may have one of the first name
    open(place + "/" + name, "w").write("import builtins\nif not hasattr(builtins, 'trapped'): print('trapped')\nbuiltins.trapped = 1\n")
""")
        self.assertEqual(self.exec_ok("--lang", "python", "-c", "print('called')").out, "trapped\ncalled\n")
        self.assertEqual(self.exec_ok("--", "python3", "-I", "-c", "print('called')").out, "called\n")
        self.assertEqual(self.exec_ok("--", "echo", "untouched").out, "untouched\n")
        self.assertIn("sitecustomize", (sbxtest.SOURCE / "man/sbx-security.7").read_text())

    def test_plain_names_never_come_from_what_a_call_wrote(self):
        self.start_session("--workspace", f"{self.work}:overlay")
        self.exec_ok("--", "sh", "-c", """for directory in . ~/bin ~/.local/bin /tmp; do mkdir -p $directory
for name in python3 ls sh bash sbx sbx-inside env true; do printf '#!/bin/sh\\necho trapped\\n' >$directory/$name; chmod +x $directory/$name; done; done""")
        self.assertNotIn("trapped", self.exec_ok("--", "ls", "/").out)
        self.assertEqual(self.exec_ok("--lang", "python", "-c", "print('python')").out, "python\n")
        self.assertEqual(self.exec_ok("--lang", "bash", "-c", "echo bash").out, "bash\n")
        self.assertEqual(self.exec_ok("--", "true").out, "")
        self.assertEqual(self.sbx_session("ls", "work").status, 0)
        self.assertEqual(self.exec_ok("--", "./ls").out, "trapped\n")  # asked for by its path

    def test_start_files_of_shells_are_not_read(self):
        self.start_session("--workspace", f"{self.work}:overlay")
        self.exec_ok("--", "sh", "-c", "for name in .bashrc .profile .bash_profile .shrc .env; do echo 'echo trapped' >~/$name; echo 'echo trapped' >$name; done; export BASH_ENV=~/.bashrc ENV=~/.bashrc")
        self.assertEqual(self.exec_ok("--", "bash", "-c", "echo called $BASH_ENV $ENV").out, "called\n")
        self.assertEqual(self.exec_ok("--lang", "bash", "-c", "echo called").out, "called\n")
        self.assertEqual(self.exec_ok("--", "sh", "-c", "echo called").out, "called\n")
        self.assertEqual(self.exec_ok("--", "bash", "-lc", "echo called").out, "trapped\ncalled\n")  # asked for

    def test_a_fifo_in_the_place_of_a_script_holds_nobody(self):
        self.start_session("--workspace", f"{self.work}:overlay")
        self.exec_ok("--", "sh", "-c", "mkfifo tool tool.py tool.sh; chmod +x tool tool.py tool.sh")
        plain = self.sbx_session("exec", "work", "--timeout", "1s", "--", "./tool")
        self.assertIn(plain.status, (124, 126), plain)
        for name in ("tool.py", "tool.sh"):
            self.assertIn(self.sbx_session("exec", "work", "--timeout", "1s", name).status, (124, 126, 127))
        self.exec_ok("--", "true")

    def test_get_ls_and_put_step_into_no_trap(self):
        secret = self.write("secret/file", "of the host\n", directory=self.tmp)
        self.start_session()
        self.exec_ok("--", "sh", "-c", f"""mkdir /tmp/t; cd /tmp/t; mkfifo fifo; ln -s fifo to-fifo; ln -s /etc etc; ln -s {secret.parent} directory; ln -s {secret} file
ln -s loop loop; ln -s /proc/self/fd fds; ln -s /dev/zero zero; echo fine >fine; mkdir dir; echo fine >dir/fine""")
        out = self.tmp / "out"
        got = self.sbx_session("get", "--out", out, "work", "/tmp/t")
        self.assertEqual(got.status, 1, got)
        self.assertEqual(sorted(str(each.relative_to(out)) for each in out.rglob("*")), ["t", "t/dir", "t/dir/fine", "t/fine"])
        for name in ("fifo", "to-fifo", "zero", "loop", "directory", "file"):
            answer = self.sbx_session("get", "--out", self.tmp / f"out-{name}", "work", f"/tmp/t/{name}")
            self.assertNotEqual(answer.status, 0, answer)
            self.assertEqual([each for each in (self.tmp / f"out-{name}").rglob("*") if each.is_file()], [], answer)
        for name in ("", "fifo", "to-fifo", "zero", "loop"):
            self.assertIn(self.sbx_session("ls", "work", f"/tmp/t/{name}").status, (0, 1))
        self.write("fine", "from the host\n")
        for name in ("fifo", "to-fifo", "zero", "loop", "file", "fds"):
            self.assertIn(self.sbx_session("put", "work", "fine", f"/tmp/t/{name}").status, (0, 1, 125))
        self.assertEqual(self.sbx_session("put", "work", "fine", "/tmp/t/dir/fine").status, 0)
        self.assertEqual(self.exec_ok("--", "cat", "/tmp/t/dir/fine").out, "from the host\n")
        self.assertEqual(secret.read_text(), "of the host\n")

    def test_a_call_in_a_live_grant_is_no_writer(self):
        granted = self.tmp / "granted"
        granted.mkdir()
        self.start_session("--write", granted)
        ended = self.exec_json("--lang", "python", "-c", "import time; time.sleep(0.4); open(%r, 'w').write('x')" % str(granted / "x"))
        self.assertEqual(ended.verdict, ("exited", None), ended)
        self.assertEqual((granted / "x").read_text(), "x")

    def test_put_replaces_a_link_and_does_not_write_through_it(self):
        self.start_session()
        self.exec_ok("--", "sh", "-c", "echo old >/tmp/target; ln -s target /tmp/name")
        self.write("new", "new\n")
        put = self.sbx_session("put", "work", "new", "/tmp/name")
        self.assertEqual(put.status, 0, put)
        self.assertEqual(self.exec_ok("--", "cat", "/tmp/target", "/tmp/name").out, "old\nnew\n")

    def test_a_directory_that_turns_into_a_link_leads_get_nowhere(self):
        secret = self.write("secret/file", "of the host\n", directory=self.tmp)
        self.start_session()
        flips = self.serve(rf'''
os.makedirs("/tmp/t/real"); open("/tmp/t/real/file", "w").write("of the session\n")
os.symlink({str(secret.parent)!r}, "/tmp/t/link"); os.rename("/tmp/t/real", "/tmp/t/dir")
print("ready", flush=True)
while True: syscall(SYSCALLS["renameat2"], -100, b"/tmp/t/dir", -100, b"/tmp/t/link", 2)
''')
        whole = 0
        for turn in range(6):
            out = self.tmp / f"out{turn}"
            listed = self.sbx_session("ls", "work", "/tmp/t/dir")
            self.assertNotIn("of the host", listed.out)
            got = self.sbx_session("get", "--out", out, "work", "/tmp/t")
            self.assertIn(got.status, (0, 1, 125), got)
            files = [each for each in out.rglob("*") if each.is_file()]
            self.assertEqual([each.read_text() for each in files], ["of the session\n"] * len(files))
            for each in out.rglob("*"):
                if each.is_symlink():
                    self.assertTrue(each.resolve().is_relative_to(out), each)
            whole += bool(files)
        self.assertEqual(self.state(flips)["state"], "running")
        self.assertEqual(self.sbx_session("kill", "work", flips, "KILL").status, 0)
        self.assertEqual(secret.read_text(), "of the host\n")
        self.assertGreater(whole, 0)

    def test_a_directory_that_turns_into_a_link_leads_a_call_nowhere(self):
        """The links lead to a directory of the host, to what PID 1 holds, and in a circle. A call begins in the directory or not at all."""
        secret = self.write("secret/file", "of the host\n", directory=self.tmp)
        self.start_session()
        for number, victim in enumerate((secret.parent, "/proc/1/root", "/proc/self/fd", "link")):
            place = f"/tmp/t{number}"
            flips = self.serve(rf'''
os.makedirs("{place}/real"); open("{place}/real/file", "w").write("of the session\n")
os.symlink({str(victim)!r}, "{place}/link"); os.rename("{place}/real", "{place}/dir")
print("ready", flush=True)
while True: syscall(SYSCALLS["renameat2"], -100, b"{place}/dir", -100, b"{place}/link", 2)
''')
            ends = set()
            for _ in range(20):
                answer = self.exec_json("--cwd", f"{place}/dir", "--", "cat", "file")
                outcome = answer.record["outcome"]
                ends.add(outcome["status"])
                if outcome["status"] == "setup-failed":
                    self.assertIn((outcome["code"], outcome["kind"], outcome["side"]),
                                  [("bad-directory", kind, "sandbox") for kind in ("not-found", "not-permitted", "not-a-directory")], answer)
                elif outcome["exit_code"] == 0:
                    self.assertEqual(answer.record["stdout"]["text"], "of the session\n", answer)
                else:  # /proc/self/fd is a directory, and holds no such name
                    self.assertEqual(victim, "/proc/self/fd", answer)
            self.assertEqual(self.state(flips)["state"], "running")
            self.assertEqual(self.sbx_session("kill", "work", flips, "KILL").status, 0)
            self.assertEqual(self.sbx_session("wait", "work", flips).status, 128 + 9)
            # The twin: nobody exchanges the names, and each leads where it leads.
            names = json.loads(self.exec_ok("--lang", "python", "-c", f"import json, os; print(json.dumps(sorted(os.listdir('{place}'), key=lambda n: os.path.islink('{place}/' + n))))").out)
            self.assertEqual(self.exec_ok("--cwd", f"{place}/{names[0]}", "--", "cat", "file").out, "of the session\n")
        self.assertEqual(secret.read_text(), "of the host\n")

    PICTURE = "from base64 import b64decode\nclass P:\n    def _repr_png_(self): return b64decode('iVBORw0KGgo=')\n    def __repr__(self): return 'a picture'\nP()"

    def test_values_of_cells_go_through_no_link(self):
        """A program may write the directory that the caller names, and turns it into a link."""
        outside = self.tmp / "outside"
        outside.mkdir()
        self.start_session("--workspace", f"{self.work}:read-write")
        self.exec_ok("--", "sh", "-c", f"ln -s {outside} res; ln -s {outside} sbx-pictures; ln -s {outside}/made dangling; mkdir real")
        for name in ("res", "res/", "dangling"):
            refused = self.sbx_session("eval", "work", "--results", name, "-c", self.PICTURE)
            self.assertEqual(refused.status, 125, refused)
            self.assertIn("error[out-unusable]", refused.err)
            self.assertIn("it is a symbolic link", refused.err)
            self.assertNotIn("a picture", refused.out, "the cell did not run")
        status, text = self.on_terminal([sbxtest.SBX, "session", "eval", "work", "-c", self.PICTURE])
        self.assertEqual(status, 0, text)
        self.assertIn("--results DIR saves it", text)
        self.assertEqual(list(outside.iterdir()), [])
        # The twins: a directory of their own.
        self.assertEqual(self.sbx_session("eval", "work", "--results", "real", "-c", self.PICTURE).status, 0)
        self.assertEqual(len(list((self.work / "real").iterdir())), 1)
        (self.work / "sbx-pictures").unlink()
        status, text = self.on_terminal([sbxtest.SBX, "session", "eval", "work", "-c", self.PICTURE])
        self.assertEqual(status, 0, text)
        self.assertEqual(len(list((self.work / "sbx-pictures").iterdir())), 1)

    def test_a_cell_is_given_so_many_files_and_no_more(self):
        many = self.PICTURE[:-len("P()")] + "for i in range(%d): display(P())"
        self.start_session()
        answer = self.sbx_session("eval", "work", "--results", self.tmp / "fits", "-c", many % 1000)
        self.assertEqual(answer.status, 0, answer)
        self.assertEqual(len(list((self.tmp / "fits").iterdir())), 1000)
        answer = self.sbx_session("eval", "work", "--results", self.tmp / "res", "-c", many % 1500)
        self.assertEqual(answer.status, 125, answer)
        self.assertEqual(len(list((self.tmp / "res").iterdir())), 1000)
        self.assertIn("a cell is given 1000 files, and it showed 500 values more", answer.err)

    def test_names_are_safe_on_a_terminal(self):
        self.start_session("--workspace", f"{self.work}:overlay")
        self.exec_ok("--lang", "python", "-c", r'''
import os
for name in ("two\nlines", "red\x1b[31m", "title\x1b]0;x\x07", "back\x08", "bad\xff".encode("latin-1"), "right\u202eleft", "return\rx"):
    open(name, "w").write("text \x1b[31m red \x07\n")
    os.symlink(b"to\x1b[2J\n", (name if isinstance(name, bytes) else name.encode()) + b".link")
''')
        for words in (("ls", "work"), ("changes", "work"), ("diff", "work"), ("get", "--out", self.tmp / "out", "work", ".")):
            status, text = self.on_terminal([sbxtest.SBX, "session", *words])
            self.assertIn(status, (0, 1), words)
            self.assertIn("red", text + str(words) if words[0] == "get" else text)
            text = text.replace("\r\n", "\n")
            for bad in ("\x1b[31m red", "\x1b[31m.", "\x1b]0", "\x1b[2J", "\x07", "\x08", "\r", "\u202e", "two\nlines"):
                self.assertNotIn(bad, text, words)
        names = [each["name"] for each in self.sbx_session("ls", "--json", "work").json["entries"]]
        self.assertIn("two\nlines", names)

    def test_working_directory_home_and_tmp_that_a_call_spoilt(self):
        self.start_session("--workspace", f"{self.work}:overlay")
        answer = self.exec_json("--", "sh", "-c", "rm -rf ~ /tmp/x; ln -s /etc ~; chmod 0 . /tmp /dev/shm; cd /; rmdir \"$OLDPWD\"; true")
        self.assertEqual(answer.verdict, ("exited", None), answer)
        # Whatever it is, it is an answer, and the session can be mended and stopped.
        self.assertIn(self.sbx_session("exec", "work", "--", "true").status, (0, 125, 126))
        self.assertIn(self.sbx_session("ls", "work", "/").status, (0, 1, 125))
        self.assertIn(self.sbx_session("changes", "work").status, (0, 1, 125))
        self.stop_session()
        self.nothing_is_left()

    def test_get_leaves_protected_names_out(self):
        self.start_session()
        self.exec_ok("--", "sh", "-c", "mkdir -p p/.git/hooks p/.vscode p/src; echo evil >p/.git/hooks/pre-commit; echo evil >p/.git/config; echo ../../x >p/.git/commondir; echo evil >p/.vscode/tasks.json; echo evil >p/.bashrc; echo fine >p/src/a")
        out = self.tmp / "out"
        got = self.sbx_session("get", "--out", out, "work", "p")
        self.assertEqual(got.status, 1, got)
        self.assertEqual(sorted(str(each.relative_to(out)) for each in out.rglob("*") if each.is_file()), ["p/src/a"])
        for name in (".git", ".vscode", ".bashrc"):
            self.assertIn(name, got.err)
        hooks = self.sbx_session("get", "--out", self.tmp / "hooks-out", "work", "p/.git/hooks")
        self.assertEqual([each for each in (self.tmp / "hooks-out").rglob("*") if each.is_file()], [], hooks)

    def test_put_goes_only_where_a_call_may_write(self):
        self.write(".env", "host's\n")
        secret = self.write("secret", "of the host\n", directory=self.tmp)
        self.write("file", "put\n")
        self.start_session("--workspace", f"{self.work}:overlay", "--read", secret)
        self.exec_ok("--", "sh", "-c", f"ln -s /etc to-etc; ln -s {secret} to-secret; mkdir -p d/.ssh")
        for target in ("/etc/x", "/usr/bin/x", "to-etc/", "/proc/sys/x", str(secret), "/nowhere/x"):
            put = self.sbx_session("put", "work", "file", target)
            if target != "/nowhere/x":
                self.assertNotEqual(put.status, 0, put)
                self.assertIn("left out", put.err)
            self.assertFalse(pathlib.Path(target, "file").exists() or (target not in (str(secret),) and pathlib.Path(target).is_file()))
        self.assertEqual(secret.read_text(), "of the host\n")
        put = self.sbx_session("put", "work", "file", ".env")
        self.assertEqual((self.work / ".env").read_text(), "host's\n")
        self.assertEqual(self.sbx_session("put", "work", "file", "in/the/overlay").status, 0)
        self.assertEqual(self.exec_ok("--", "cat", "in/the/overlay").out, "put\n")
        self.assertFalse((self.work / "in").exists())


class WhileItIsRead(AttackTest):
    def test_a_call_can_not_change_what_is_being_judged(self):
        """What was shown is what is applied, although a timer wakes a stopped process."""
        self.write("judged", "before\n")
        self.start_session("--workspace", f"{self.work}:overlay")
        call = self.serve(r'''
open("judged", "w").write("harmless\n")
def woken(*_):
    file = os.open("judged", os.O_WRONLY | os.O_TRUNC)
    os.write(file, b"harmful\n")
    os.close(file)
signal.signal(signal.SIGCONT, woken)
class Event(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("number", ctypes.c_int), ("notify", ctypes.c_int), ("rest", ctypes.c_int * 12)]
timer = ctypes.c_int()
event = Event(None, signal.SIGCONT, 0)
refusal = syscall(SYSCALLS["timer_create"], 1, ctypes.byref(event), ctypes.byref(timer))
print("ready", refusal, flush=True)
# Put off as long as nobody stops this program.
while True:
    syscall(SYSCALLS["timer_settime"], timer, 0, (ctypes.c_long * 4)(0, 0, 0, 300_000_000), None)
    time.sleep(0.005)
''')
        pid, master = pty.fork()
        if pid == 0:
            os.chdir(self.work)
            os.execve(sbxtest.SBX, [sbxtest.SBX, "session", "apply", "work"], self.environment())
        sbxtest.known_children().add(pid)
        shown = b""
        while b"?" not in shown:
            shown += os.read(master, 65536)
        self.assertIn(b"harmless", shown)
        time.sleep(0.5)  # the timer goes off meanwhile; where that wakes nobody, nothing tells of it
        os.write(master, b"y\n")
        try:
            while os.read(master, 65536):
                pass
        except OSError:
            pass
        _, status = os.waitpid(pid, 0)
        self.assertIn((self.work / "judged").read_text(), ("harmless\n", "before\n"), f"exit {os.waitstatus_to_exitcode(status)}")
        self.assertEqual(self.state(call)["state"], "running")


if __name__ == "__main__":
    sessiontest.main()

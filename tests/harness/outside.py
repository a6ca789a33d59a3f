"""What programs try to reach, and what they have of their own, with and without a sandbox: test_own_uid.py, test_same_uid.py, test_kept.py."""

import json
import re

from call_numbers import SYSCALLS

# Tries what leads out, and prints for each attempt whether it was refused. A line "# Row: NAME | DEGRADED" begins the attempts of one row of
# the table in sbx-security(7), and says as what the record names it where they are not refused.
ATTEMPTS = r"""
import ctypes, json, os, resource, signal, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = {}
other, keeper = int(sys.argv[1]), os.getppid()
seen = os.open("/dev/null", os.O_RDONLY)
answers = {}
def checked(result):
    if result is None or result < 0 or result == 2**64 - 1:
        raise OSError(ctypes.get_errno(), "call")
    return result
def call(name, *words):
    libc.syscall.restype = ctypes.c_long
    return checked(libc.syscall(NUMBERS[name], *[ctypes.c_long(word) if isinstance(word, int) else word for word in words]))
def attempt(name, act):
    try:
        act()
        answers[name] = "open"
    except OSError:
        answers[name] = "refused"
def opened(path, flags):
    os.close(os.open(path, flags))
def read(path):
    with open(path, "rb") as file:
        file.read(64)
def unix(kind, pair=False):
    if pair:
        return socket.socketpair(socket.AF_UNIX, kind)[0]
    return socket.socket(socket.AF_UNIX, kind)
def to_server(kind, protocol=0):
    s = socket.socket(socket.AF_INET, kind, protocol)
    s.connect(("127.0.0.1", 4100))
    s.send(b"x")
    if kind == socket.SOCK_DGRAM:
        s.recv(1)  # its answer, or the error that nobody takes it
def forked(act):
    child = os.fork()
    if child == 0:
        try:
            act()
            os._exit(0)
        except OSError:
            os._exit(1)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise OSError(1, "refused")
def attached():
    libc.shmat.restype = ctypes.c_void_p
    at = libc.shmat(checked(libc.shmget(0x6b33, 4096, 0o600)), None, 0)
    if at in (None, 2**64 - 1):
        raise OSError(1, "shmat")
def memory_of(name):
    here = ctypes.create_string_buffer(8)
    local, remote = struct.pack("QQ", ctypes.addressof(here), 8), struct.pack("QQ", 0x400000, 8)
    try:
        call(name, other, local, 1, remote, 1, 0)
    except OSError as error:
        if error.errno != 14:  # EFAULT: it was allowed, and nothing is mapped there
            raise
# Row: contents of files
attempt("read a file that others may read", lambda: read("/host/open"))
attempt("read a file of the caller's", lambda: read("/host/dir/file"))
attempt("list a directory", lambda: os.listdir("/host"))
attempt("read /dev/shm", lambda: read("/dev/shm/others"))
attempt("have a handle of a file", lambda: call("name_to_handle_at", -100, b"/host/open", struct.pack("Ii128x", 128, 0), ctypes.byref(ctypes.c_int()), 0))
# Row: changes of files
attempt("write a file that others may write", lambda: open("/host/wide", "a").write("x"))
attempt("empty it by truncate", lambda: os.truncate("/host/wide", 0))
attempt("empty it by an open for reading", lambda: opened("/host/wide", os.O_RDONLY | os.O_TRUNC))
attempt("empty it by an open for neither", lambda: opened("/host/wide", 3 | os.O_TRUNC))
attempt("empty it by openat2", lambda: os.close(call("openat2", -100, b"/host/wide", struct.pack("QQQ", os.O_TRUNC, 0, 0), 24)))
attempt("make a file", lambda: opened("/host/made%d" % os.getpid(), os.O_CREAT | os.O_WRONLY))
attempt("make a directory", lambda: os.mkdir("/host/dir%d" % os.getpid()))
attempt("make a FIFO", lambda: os.mkfifo("/host/fifo%d" % os.getpid()))
attempt("make a link", lambda: os.symlink("/", "/host/link%d" % os.getpid()))
attempt("give another's file a name", lambda: os.link("/host/open", "named%d" % os.getpid()))
attempt("rename", lambda: os.rename("/host/wide", "/host/wide"))
attempt("remove a file", lambda: os.unlink("/host/gone"))
# Row: modes, times, attributes
attempt("change a mode", lambda: os.chmod("/host/wide", 0o666))
attempt("change a mode by a descriptor", lambda: call("fchmodat2", os.open("/host/wide", os.O_PATH), b"", 0o666, 0x1000))
attempt("change times", lambda: os.utime("/host/open"))
attempt("set an attribute", lambda: os.setxattr("/host/wide", "user.sbx", b"1"))
attempt("read an attribute", lambda: os.getxattr("/host/wide", "user.sbx"))
attempt("remove an attribute", lambda: os.removexattr("/host/wide", "user.sbx"))
attempt("list attributes", lambda: os.listxattr("/host"))
# Row: events of files
attempt("watch a directory", lambda: checked(libc.inotify_add_watch(checked(libc.inotify_init1(0)), b"/host", 0xfff)))
# Row: unix sockets with a path
attempt("connect to a path", lambda: unix(socket.SOCK_STREAM).connect("/host/stream"))
attempt("send to a path", lambda: unix(socket.SOCK_DGRAM).sendto(b"x", "/host/datagram"))
attempt("send to a path from a pair", lambda: unix(socket.SOCK_DGRAM, True).sendto(b"x", "/host/datagram"))
attempt("send to a path from a raw pair", lambda: unix(socket.SOCK_RAW, True).sendto(b"x", "/host/datagram"))
# Row: abstract unix sockets
attempt("connect to an abstract name", lambda: unix(socket.SOCK_STREAM).connect(b"\0sbx-test"))
# Row: TCP, UDP, netlink, vsock
attempt("connect by TCP", lambda: to_server(socket.SOCK_STREAM))
attempt("connect by TCP fast open", lambda: socket.socket().sendto(b"x", 0x20000000, ("127.0.0.1", 4100)))
attempt("connect by MPTCP", lambda: to_server(socket.SOCK_STREAM, 262))
attempt("connect by SCTP", lambda: to_server(socket.SOCK_STREAM, 132))
attempt("send by UDP", lambda: to_server(socket.SOCK_DGRAM))
attempt("send by ICMP", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP))
attempt("take the server's port", lambda: forked(lambda: socket.create_server(("127.0.0.1", 4101))))
attempt("listen on any port", lambda: forked(lambda: socket.socket().listen()))
attempt("ask netlink", lambda: forked(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)))
attempt("list sockets by netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4))
attempt("make a socket of virtual machines", lambda: socket.socket(40, socket.SOCK_STREAM))
attempt("make a socket of the kernel's ciphers", lambda: socket.socket(38, socket.SOCK_SEQPACKET))
# Row: signals
attempt("kill another", lambda: os.kill(other, 0))
attempt("kill the keeper", lambda: os.kill(keeper, 0))
attempt("queue a signal", lambda: checked(libc.sigqueue(other, 0, None)))
attempt("signal by a descriptor", lambda: call("pidfd_send_signal", os.pidfd_open(other), 0, None, 0))
# Row: memory, tracing
attempt("trace another", lambda: checked(libc.ptrace(0x4206, other, None, None)))
attempt("read another's memory", lambda: memory_of("process_vm_readv"))
attempt("write another's memory", lambda: memory_of("process_vm_writev"))
attempt("take another's descriptor", lambda: call("pidfd_getfd", os.pidfd_open(other), 0, 0))
attempt("compare with another", lambda: call("kcmp", other, os.getpid(), 0, 0, 0))
attempt("advise on another's memory", lambda: call("process_madvise", os.pidfd_open(other), struct.pack("QQ", 0, 0), 1, 20, 0))
attempt("move another's pages", lambda: call("move_pages", other, 0, None, None, None, 0))
attempt("have another's list of locks", lambda: call("get_robust_list", other, ctypes.byref(ctypes.c_void_p()), ctypes.byref(ctypes.c_size_t())))
# Row: arguments, environment
attempt("read another's cmdline", lambda: opened(f"/proc/{other}/cmdline", os.O_RDONLY))
attempt("read another's environ", lambda: opened(f"/proc/{other}/environ", os.O_RDONLY))
attempt("read another's status", lambda: opened(f"/proc/{other}/status", os.O_RDONLY))
attempt("read another's stat", lambda: opened(f"/proc/{other}/stat", os.O_RDONLY))
attempt("read another's maps", lambda: opened(f"/proc/{other}/maps", os.O_RDONLY))
attempt("read another's mem", lambda: opened(f"/proc/{other}/mem", os.O_RDONLY))
attempt("read another's limits", lambda: opened(f"/proc/{other}/limits", os.O_RDONLY))
attempt("read another's cgroup", lambda: opened(f"/proc/{other}/cgroup", os.O_RDONLY))
attempt("read another's mountinfo", lambda: opened(f"/proc/{other}/mountinfo", os.O_RDONLY))
attempt("read another's io", lambda: opened(f"/proc/{other}/io", os.O_RDONLY))
attempt("read another's comm", lambda: opened(f"/proc/{other}/comm", os.O_RDONLY))
attempt("read the environment of PID 1", lambda: read("/proc/1/environ"))
attempt("list another's descriptors", lambda: os.listdir(f"/proc/{other}/fd"))
# Row: limits, priorities
attempt("read the limits of another", lambda: resource.prlimit(other, resource.RLIMIT_CORE))
attempt("limit another", lambda: resource.prlimit(other, resource.RLIMIT_CORE, (0, 0)))
attempt("slow another down", lambda: os.setpriority(os.PRIO_PROCESS, other, 19))
attempt("slow a group down", lambda: os.setpriority(os.PRIO_PGRP, os.getpgid(other), 19))
attempt("set the priority of all that the user has", lambda: os.setpriority(os.PRIO_USER, 0, os.getpriority(os.PRIO_PROCESS, 0)))
attempt("move another to a CPU", lambda: os.sched_setaffinity(other, {min(os.sched_getaffinity(0))}))
attempt("make another idle", lambda: os.sched_setscheduler(other, os.SCHED_IDLE, os.sched_param(0)))
attempt("make another's disk idle", lambda: call("ioprio_set", 1, other, 3 << 13))
attempt("set the disk's priority for all that the user has", lambda: call("ioprio_set", 3, 0, 2 << 13 | 4))
# Row: System V IPC, queues
attempt("shared memory", attached)
attempt("remove shared memory", lambda: checked(libc.shmctl(checked(libc.shmget(0x6b34, 4096, 0o600)), 0, None)))
attempt("list shared memory", lambda: checked(libc.shmctl(0, 14, ctypes.create_string_buffer(512))))
attempt("message queue of System V", lambda: checked(libc.msgget(0x6b33, 0o600)))
attempt("send to a message queue of System V", lambda: checked(libc.msgsnd(checked(libc.msgget(0x6b33, 0o600)), struct.pack("qc", 1, b"x"), 1, 0)))
attempt("message queue", lambda: checked(libc.mq_open(b"/sbx-test", os.O_RDWR)))
attempt("remove a message queue", lambda: checked(libc.mq_unlink(b"/sbx-gone")))
# Row: keyrings, kernel
attempt("add a key", lambda: call("add_key", b"user", b"sbx", b"v", 1, -3))
attempt("have a keyring", lambda: call("keyctl", 0, -3, 0))
attempt("make a ring", lambda: call("io_uring_setup", 4, bytes(120)))
attempt("count events", lambda: call("perf_event_open", struct.pack("IIQ104x", 1, 112, 0), 0, -1, -1, 0))
attempt("handle page faults", lambda: call("userfaultfd", 1))
attempt("ask bpf", lambda: call("bpf", 11, bytes(72), 72))  # BPF_PROG_GET_NEXT_ID
attempt("make secret memory", lambda: call("memfd_secret", 0))
attempt("read the kernel's log", lambda: call("syslog", 10, None, 0))
# Row: namespaces, mounts, root
attempt("make a user namespace", lambda: forked(lambda: call("unshare", 0x10000000)))
attempt("make another by clone", lambda: forked(lambda: call("clone", 0x10000000 | 17, None, None, None, None) or os._exit(0)))
attempt("make another by clone3", lambda: forked(lambda: call("clone3", struct.pack("QQQQQ24x", 0x10000000, 0, 0, 0, 17), 64) or os._exit(0)))
attempt("change the root", lambda: forked(lambda: os.chroot(".")))
attempt("clone a mount", lambda: call("open_tree", -100, b".", 1))
attempt("list mounts", lambda: call("listmount", struct.pack("QQQ", 24, 2**64 - 1, 0), bytes(64), 8, 0))
attempt("write its own score", lambda: open("/proc/self/oom_score_adj", "w").write("100"))
# Row: names of files | names
attempt("ask for a file's size and times", lambda: os.stat("/host/open"))
attempt("ask whether a file is there", lambda: os.stat("/host/open") and os.access("/host/open", os.F_OK))
attempt("ask for a link's target", lambda: os.readlink("/host/link"))
attempt("ask for its file system", lambda: os.statvfs("/host/open"))
attempt("have a place of a file", lambda: opened("/host/open", os.O_PATH))
attempt("go to a directory", lambda: forked(lambda: os.chdir("/host")))
# Row: which processes exist | names proc
attempt("ask for a process", lambda: os.stat(f"/proc/{other}"))
attempt("ask for its session", lambda: os.getsid(other))
attempt("ask for its scheduling", lambda: call("sched_getattr", other, ctypes.create_string_buffer(56), 56, 0))
attempt("have its descriptor", lambda: os.close(os.pidfd_open(other)))
print(json.dumps(answers))
""".replace("NUMBERS = {}", f"NUMBERS = {json.dumps(SYSCALLS)}")


# What a program has of its own, with rows as above.
USES = r"""
import ctypes, json, mmap, multiprocessing, os, signal, socket, subprocess, sys
from multiprocessing import shared_memory
libc = ctypes.CDLL(None, use_errno=True)
answers = {}
def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "call")
    return result
def attempt(name, act):
    try:
        act()
        answers[name] = "open"
    except OSError:
        answers[name] = "refused"
def made(path, mode=0o644):
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
def talked(family, kind, name):
    server = socket.socket(family, kind)
    server.bind(name)
    if kind == socket.SOCK_STREAM:
        server.listen()
    socket.socket(family, kind).connect(server.getsockname())
def talked_through(one, other):
    one.sendall(b"x")
    other.recv(1)
def ran(*words):
    if subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        raise OSError(1, words[0])
def became(mode, act):
    act()
    if os.stat("own").st_mode & 0o7777 != mode:
        raise OSError(1, "mode")
def renamed():
    os.mkdir("a")
    made("a/file")
    os.rename("a/file", "moved")
    os.link("moved", "linked")
os.chdir(os.environ["HOME"])
made("own")
# Row: HOME, TMPDIR
attempt("make, rename and link in its home", renamed)
attempt("make a file in TMPDIR", lambda: made(os.environ.get("TMPDIR", "/tmp") + "/own"))
# Row: /tmp | tmp
attempt("make a file in /tmp", lambda: made("/tmp/own-too"))
# Row: /dev/shm | ipc
attempt("make a file in /dev/shm", lambda: made("/dev/shm/own"))
attempt("make a semaphore with a name", multiprocessing.Lock)
attempt("map shared memory with a name", lambda: shared_memory.SharedMemory(create=True, size=4096).unlink())
# Row: modes, times
attempt("change a mode", lambda: became(0o750, lambda: os.chmod("own", 0o750)))
attempt("change times", lambda: os.utime("own", (5, 7)))
# Row: extended attributes | isolation
attempt("set an attribute", lambda: os.setxattr("own", "user.sbx", b"1"))
# Row: set-ID bits | isolation
attempt("set a set-ID bit", lambda: became(0o4750, lambda: os.chmod("own", 0o4750)))
# Row: pairs of unix sockets
attempt("talk through a pair", lambda: talked_through(*socket.socketpair()))
# Row: named unix sockets
attempt("talk by a path", lambda: talked(socket.AF_UNIX, socket.SOCK_STREAM, "./socket"))
# Row: abstract, datagram sockets | ipc
attempt("talk by an abstract name", lambda: talked(socket.AF_UNIX, socket.SOCK_STREAM, b"\0own"))
attempt("send datagrams", lambda: talked(socket.AF_UNIX, socket.SOCK_DGRAM, "./datagrams"))
# Row: loopback | network.mode
attempt("talk by TCP", lambda: talked(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)))
attempt("talk by UDP", lambda: talked(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)))
# Row: System V IPC | ipc
attempt("make semaphores of System V", lambda: checked(libc.semget(0, 1, 0o600)))
attempt("make a queue of System V", lambda: checked(libc.msgget(0, 0o600)))
# Row: inotify | ipc proc
attempt("watch a directory", lambda: checked(libc.inotify_add_watch(checked(libc.inotify_init1(0)), b".", 0xfff)))
# Row: ps, /proc/self | proc
attempt("list processes", lambda: ran("ps"))
attempt("read its own maps", lambda: open("/proc/self/maps").read(64))
# Row: /proc/self/fd/N
attempt("open a descriptor by its name", lambda: os.close(os.open("/proc/self/fd/0", os.O_RDONLY)))
# Row: /proc/meminfo, cpuinfo
attempt("read what the machine has", lambda: open("/proc/meminfo").read() and open("/proc/cpuinfo").read())
# Row: a list of / | names proc
attempt("list /", lambda: os.listdir("/"))
# Row: signals to children
attempt("end a child", lambda: os.kill(subprocess.Popen(["sleep", "1000"]).pid, signal.SIGKILL))
# Row: ptrace of a child | syscalls.allow
attempt("trace a child", lambda: checked(libc.ptrace(0x4206, subprocess.Popen(["sleep", "1000"]).pid, None, None)))
# Row: own limits, priority
attempt("set its own limit and priority", lambda: (os.nice(1), libc.setrlimit(7, (ctypes.c_ulong * 2)(64, 64))))
# Row: a host name of its own | hostname
attempt("have another host name", lambda: checked(-(socket.gethostname() == sys.argv[1])))
print(json.dumps(answers))
"""


def rows(program):
    """{name of a row: (what the record calls its loss, attempts)}"""
    found = {}
    for line in program.splitlines():
        if match := re.match(r"# Row: ([^|]*[^| ])(?: \| (.*))?$", line):
            found[match[1]] = ((match[2] or "").split(), [])
        elif match := re.match(r' *attempt\("([^"]+)",', line):
            list(found.values())[-1][1].append(match[1])
    return found


def opened(answers):
    """The attempts that were not refused."""
    return {attempt for attempt, answer in answers.items() if answer == "open"}


# Without namespaces these are not refused: sbx-security(7) says so.
SEEN = {attempt for degraded, attempts in rows(ATTEMPTS).values() if degraded for attempt in attempts}
# Nor these, under --read /host/open --net host.
REACHED_WHERE_GRANTED = {"read a file that others may read", "connect by TCP", "connect by TCP fast open", "send by UDP",
                         "take the server's port", "listen on any port", "ask netlink"}
# Also refused outside: by a container's filter, for want of a capability, or because the kernel has no such thing.
NOT_EVERYWHERE = {"add a key", "advise on another's memory", "ask bpf", "change a mode by a descriptor", "change the root", "clone a mount", "compare with another",
                  "connect by MPTCP", "connect by SCTP", "count events", "handle page faults", "have a keyring", "list mounts", "make a ring",
                  "make a socket of the kernel's ciphers", "make a socket of virtual machines", "make a user namespace", "make another by clone",
                  "make another by clone3", "make secret memory", "move another's pages", "read the kernel's log", "send by ICMP",
                  "set the disk's priority for all that the user has", "take another's descriptor"}
# Root's part of it in the container, with something for each attempt to reach; then the attempts, with and without a sandbox.
AROUND = r"""
import ctypes, os, socket, subprocess, sys, threading
libc = ctypes.CDLL(None)
os.umask(0)
os.makedirs("/host/dir", 0o755, exist_ok=True)
for name, mode in (("open", 0o644), ("wide", 0o666), ("dir/file", 0o600), ("/dev/shm/others", 0o644)):
    path = os.path.join("/host", name)
    open(path, "w").write("SECRET")
    os.chmod(path, mode)
os.symlink("open", "/host/link")
kept = []
for kind, name in ((socket.SOCK_STREAM, "/host/stream"), (socket.SOCK_DGRAM, "/host/datagram"), (socket.SOCK_STREAM, b"\0sbx-test")):
    kept.append(socket.socket(socket.AF_UNIX, kind))
    kept[-1].bind(name)
    if kind == socket.SOCK_STREAM:
        kept[-1].listen(8)
kept.append(socket.create_server(("127.0.0.1", 4100)))
echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
echo.bind(("127.0.0.1", 4100))
def answer():
    while True:
        echo.sendto(*echo.recvfrom(1))
threading.Thread(target=answer, daemon=True).start()
libc.msgget(0x6b33, 0o1666)
libc.mq_open(b"/sbx-test", os.O_CREAT | os.O_RDWR, 0o666, None)
# A number that no process of a sandbox with numbers of its own has.
for _ in range(200):
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
victim = subprocess.Popen(["sleep", "1000"], env={"TOKEN": "SECRET"})
attempts = ["python3", "-c", sys.argv[1], str(victim.pid)]
def answers(before):
    # What the attempts before removed is there again.
    open("/host/gone", "w").close()
    for key in (0x6b33, 0x6b34):
        libc.shmget(key, 4096, 0o1666)
    libc.mq_open(b"/sbx-gone", os.O_CREAT | os.O_RDWR, 0o666, None)
    done = subprocess.run([*before, *attempts], stdout=subprocess.PIPE)
    print(done.stdout.decode().strip(), flush=True)
    return done.returncode
status = answers([]) or answers(["sbx", "run", *sys.argv[2:], "--"])
victim.kill()
sys.exit(status)
"""
# Processes that fork, leave their group and session, and wait for nobody.
HOPPING = r"""
import os, signal, sys, time
print(os.getuid(), os.getppid(), flush=True)
for signals in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(signals, signal.SIG_IGN)
def forked():
    try:
        return os.fork()
    except OSError:  # those before have taken all that limits.processes allows
        return 1
for _ in range(20):
    if forked() == 0:
        os.setsid()
        while True:
            try:
                if os.fork():
                    os._exit(0)
            except OSError:
                pass
time.sleep(1000)
"""

# For a script that is PID 1 of a container, where a run of HOPPING has lost some of its watchers (sbx, its keeper, the keeper's second):
# waits until the last of them has ended. From then on nobody can end anything but the script, which ends nothing. What is left of the
# program, which never ends by itself, was killed before that: its end is waited for, however long that takes.
LAST = r"""
import os, select
class Last:
    def __init__(self, *watchers):
        self.watchers = [os.pidfd_open(each) for each in watchers]
    def wait(self):
        for each in self.watchers:
            events = select.poll()
            events.register(each, select.POLLIN)
            events.poll()
def wait_for_all():
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass
"""

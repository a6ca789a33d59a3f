"""What programs without namespaces try."""

# Tries what leads out, and prints for each attempt whether it was refused.
ATTEMPTS = r"""
import ctypes, json, os, resource, signal, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
other = os.getppid()
answers = {}
def checked(result):
    if result is None or result < 0 or result == 2**64 - 1:
        raise OSError(ctypes.get_errno(), "call")
    return result
def call(number, *words):
    libc.syscall.restype = ctypes.c_long
    return checked(libc.syscall(number, *words))
def attempt(name, act):
    try:
        act()
        answers[name] = "open"
    except OSError:
        answers[name] = "refused"
def opened(path, flags):
    os.close(os.open(path, flags))
def unix(kind, pair=False):
    if pair:
        return socket.socketpair(socket.AF_UNIX, kind)[0]
    return socket.socket(socket.AF_UNIX, kind)
def fast_open():
    s = socket.socket()
    s.sendto(b"x", 0x20000000, ("127.0.0.1", 4100))
def shm():
    libc.shmat.restype = ctypes.c_void_p
    at = libc.shmat(checked(libc.shmget(0x6b33, 4096, 0o666)), None, 0)
    if at in (None, 2**64 - 1):
        raise OSError(1, "shmat")
attempt("read a file that others may read", lambda: open("/host/open").read())
attempt("list a directory", lambda: os.listdir("/host"))
attempt("write a file that others may write", lambda: open("/host/wide", "a").write("x"))
attempt("empty it by truncate", lambda: os.truncate("/host/wide", 0))
attempt("empty it by an open for reading", lambda: opened("/host/wide", os.O_RDONLY | os.O_TRUNC))
attempt("make a file in /tmp", lambda: opened("/tmp/made%d" % os.getpid(), os.O_CREAT | os.O_WRONLY))
attempt("make a directory in /tmp", lambda: os.mkdir("/tmp/dir%d" % os.getpid()))
attempt("make a FIFO in /tmp", lambda: os.mkfifo("/tmp/fifo%d" % os.getpid()))
attempt("make a link in /tmp", lambda: os.symlink("/", "/tmp/link%d" % os.getpid()))
attempt("give another's file a name", lambda: os.link("/host/open", "named%d" % os.getpid()))
attempt("rename in /host", lambda: os.rename("/host/wide", "/host/wide"))
attempt("list /tmp", lambda: os.listdir("/tmp"))
attempt("read /proc of another", lambda: open("/proc/%d/cmdline" % other).read())
attempt("read the environment of another", lambda: open("/proc/1/environ").read())
attempt("read its own maps", lambda: open("/proc/self/maps").read())
attempt("list /proc", lambda: os.listdir("/proc"))
attempt("write its own score", lambda: open("/proc/self/oom_score_adj", "w").write("100"))
attempt("read /dev/shm", lambda: open("/dev/shm/others").read())
attempt("make a file in /dev/shm", lambda: opened("/dev/shm/mine%d" % os.getpid(), os.O_CREAT | os.O_RDWR))
attempt("connect to a path", lambda: unix(socket.SOCK_STREAM).connect("/host/stream"))
attempt("send to a path", lambda: unix(socket.SOCK_DGRAM).sendto(b"x", "/host/datagram"))
attempt("send to a path from a pair", lambda: unix(socket.SOCK_DGRAM, True).sendto(b"x", "/host/datagram"))
attempt("send to a path from a raw pair", lambda: unix(socket.SOCK_RAW, True).sendto(b"x", "/host/datagram"))
attempt("connect to an abstract name", lambda: unix(socket.SOCK_STREAM).connect(b"\0sbx-test"))
attempt("connect by TCP", lambda: socket.socket().connect(("127.0.0.1", 4100)))
attempt("connect by TCP fast open", fast_open)
attempt("send by UDP", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 4100)))
attempt("listen on TCP", lambda: socket.socket().listen())
attempt("ask netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
attempt("kill another", lambda: os.kill(other, 0))
attempt("read the limits of another", lambda: resource.prlimit(other, resource.RLIMIT_CORE))
attempt("set the priority of all that the user has", lambda: os.setpriority(os.PRIO_USER, 0, os.getpriority(os.PRIO_PROCESS, 0)))
attempt("set the disk's priority for all that the user has", lambda: call({"x86_64": 251, "aarch64": 30}[os.uname().machine], 3, 0, 2 << 13 | 4))
attempt("change a mode", lambda: os.chmod("/host/wide", 0o666))
attempt("change times", lambda: os.utime("/host/open"))
attempt("limit another", lambda: resource.prlimit(other, resource.RLIMIT_CORE, (0, 0)))
attempt("slow another down", lambda: os.setpriority(os.PRIO_PROCESS, other, 19))
attempt("slow a group down", lambda: os.setpriority(os.PRIO_PGRP, os.getpgid(other), 19))
attempt("move another to a CPU", lambda: os.sched_setaffinity(other, {min(os.sched_getaffinity(0))}))
attempt("make another idle", lambda: os.sched_setscheduler(other, os.SCHED_IDLE, os.sched_param(0)))
attempt("make another's disk idle", lambda: call({"x86_64": 251, "aarch64": 30}[os.uname().machine], 1, other, 3 << 13))
attempt("trace another", lambda: checked(libc.ptrace(0x4206, other, None, None)))
attempt("shared memory", shm)
attempt("message queue of System V", lambda: checked(libc.msgget(0x6b33, 0o666)))
attempt("message queue", lambda: checked(libc.mq_open(b"/sbx-test", os.O_RDWR)))
attempt("inotify", lambda: checked(libc.inotify_add_watch(checked(libc.inotify_init1(0)), b"/host", 0xfff)))
attempt("extended attributes", lambda: os.listxattr("/etc"))
attempt("become undumpable", lambda: checked(libc.prctl(4, 0, 0, 0, 0)))
print(json.dumps(answers))
"""
# Root's part of it in the container, with something for each attempt to reach; then the attempts, with and without a sandbox.
AROUND = r"""
import ctypes, os, socket, subprocess, sys
libc = ctypes.CDLL(None)
os.umask(0)
os.makedirs("/host", 0o755, exist_ok=True)
for name, mode in (("open", 0o644), ("wide", 0o666), ("/dev/shm/others", 0o644)):
    path = os.path.join("/host", name)
    open(path, "w").write("SECRET")
    os.chmod(path, mode)
kept = []
for kind, name in ((socket.SOCK_STREAM, "/host/stream"), (socket.SOCK_DGRAM, "/host/datagram"), (socket.SOCK_STREAM, b"\0sbx-test")):
    kept.append(socket.socket(socket.AF_UNIX, kind))
    kept[-1].bind(name)
    if kind == socket.SOCK_STREAM:
        kept[-1].listen(8)
kept.append(socket.create_server(("127.0.0.1", 4100)))
libc.shmget(0x6b33, 4096, 0o1666)
libc.msgget(0x6b33, 0o1666)
libc.mq_open(b"/sbx-test", os.O_CREAT | os.O_RDWR, 0o666, None)
attempts = ["python3", "-c", sys.argv[1]]
outside = subprocess.Popen(attempts, stdout=subprocess.PIPE)
print(outside.communicate()[0].decode().strip())
inside = subprocess.run(["sbx", "run", *sys.argv[2:], "--", *attempts], stdout=subprocess.PIPE)
print(inside.stdout.decode().strip())
sys.exit(inside.returncode)
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

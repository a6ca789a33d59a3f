"""Without namespaces: what a program with a uid of its own reaches in a container of Docker's filter, how it ends, and what is refused.
All of it runs in containers of runc: what goes wrong ends with them."""

import json

import containers
from sbxtest import SbxTest, main

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
os.mkdir("/host", 0o755)
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
# Kills by name of what is killed: "sbx", "keeper" or "program"; prints the status of sbx, and how many processes of the uid are left.
ENDS = r"""
import os, signal, subprocess, sys, time
def of(uid):
    found = []
    for name in os.listdir("/proc"):
        try:
            lines = open(f"/proc/{name}/status").read().split("\n") if name.isdigit() else []
        except OSError:
            continue
        fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        if fields.get("Uid", "").split("\t")[0] == uid and fields["State"][0] not in "ZX":
            found.append(int(name))
    return found
sbx = subprocess.Popen(["sbx", "run", "--isolation", "landlock", "--timeout", sys.argv[3], "--", "python3", "-c", sys.argv[2]], stdout=subprocess.PIPE)
uid, keeper = sbx.stdout.readline().decode().split()
while len(of(uid)) < 5:
    pass
if sys.argv[1] == "sbx":
    sbx.kill()
elif sys.argv[1] == "keeper":
    os.kill(int(keeper), signal.SIGKILL)
elif sys.argv[1] == "interrupt":
    sbx.send_signal(signal.SIGINT)
status = sbx.wait()
until = time.monotonic() + 60
while (left := of(uid) + of(str(int(uid) + 1))) and time.monotonic() < until:
    pass
print(status, len(left), sorted(name for name in os.listdir("/tmp") if name.startswith("sbx-")) if sys.argv[1] != "sbx" else [])
subprocess.run(["sbx", "run", "--isolation", "landlock", "-q", "--", "true"])
print(sorted(name for name in os.listdir("/tmp") if name.startswith("sbx-")))
"""


class OwnUid(SbxTest):
    def setUp(self):
        super().setUp()
        if why := containers.why_not():
            self.skipTest(why)
        if not containers.DOCKER_FILTER.exists():
            self.skipTest(f"the filter of docker is not here ({containers.DOCKER_FILTER})")

    def container(self, uid=0, capabilities="docker"):
        self.count = getattr(self, "count", 0) + 1
        made = containers.Container(self.tmp / f"container{self.count}", uid, "docker", capabilities, True)
        self.root = made.directory / "rootfs"
        return made

    def record(self, *words, container=None, status=0):
        done = (container or self.container()).run("sbx", "run", "--isolation", "landlock", "--json", *words)
        self.assertEqual(done.returncode, status, done)
        return json.loads(done.stdout)

    def attempts(self, *options):
        done = self.container().run("python3", "-c", AROUND, ATTEMPTS, "--isolation", "landlock", *options)
        self.assertEqual(done.returncode, 0, done)
        outside, inside = done.stdout.splitlines()
        return json.loads(outside), json.loads(inside)

    def test_what_leads_out_is_refused(self):
        outside, inside = self.attempts()
        self.assertEqual({name for name, answer in inside.items() if answer == "open"}, set())
        # The twin: without a sandbox each of them is there to be reached.
        self.assertEqual({name for name, answer in outside.items() if answer != "open"} - {"trace another"}, set())

    def test_a_policy_cannot_allow_it(self):
        allowed = 'syscalls.allow=["@ipc", "@debug", "@keyring", "@io-uring", "@handle", "socket", "socketpair", "prctl", "inotify_init1", "setpriority", "sched_setaffinity"]'
        _, inside = self.attempts("--set", allowed)
        self.assertEqual({name for name, answer in inside.items() if answer == "open"}, set())

    def test_what_is_granted_can_be_reached(self):
        _, inside = self.attempts("--read", "/host/open", "--net", "host")
        self.assertEqual({name for name, answer in inside.items() if answer == "open"},
                         {"read a file that others may read", "connect by TCP", "connect by TCP fast open", "send by UDP", "listen on TCP", "ask netlink"})

    def test_the_program_is_somebody_of_its_own(self):
        look = "import os; print(os.getresuid(), os.getresgid(), os.getgroups(), [l for l in open('/proc/self/status') if l[:4] in ('CapP', 'CapB', 'NoNe')] if os.access('/proc/self/status', 4) and 0 else '')"
        record = self.record("--", "python3", "-c", look)
        self.assertEqual(record["isolation"], {"tier": "landlock", "form": "own-uid"})
        uids, gids = record["stdout"]["text"].split(") (")
        self.assertEqual(len(set(uids.strip("(").split(", "))), 1, record["stdout"])
        self.assertGreater(int(uids.strip("(").split(", ")[0]), 2000)
        self.assertTrue(gids.startswith(uids.strip("(")), record["stdout"])
        self.assertTrue(gids.strip().endswith("[]"), record["stdout"])
        self.assertEqual({each["what"] for each in record["degraded"]} - {"limits.memory", "limits.cpu_time"},
                         {"isolation", "names", "tmp", "network.mode", "ipc", "proc", "hostname", "limits.disk", "end"})
        self.assertNotEqual(self.record("--", "id", "-u")["stdout"]["text"], record["stdout"]["text"].split(",")[0].strip("("))

    def test_the_end_of_sbx_of_its_keeper_and_of_the_time_takes_everything_along(self):
        for killed, timeout, status in (("sbx", "60s", "-9"), ("keeper", "60s", "125"), ("interrupt", "60s", "130"), ("nothing", "2s", "124")):
            done = self.container().run("python3", "-c", ENDS, killed, HOPPING, timeout)
            self.assertEqual(done.stdout.splitlines(), [f"{status} 0 []", "[]"], (killed, done))

    def test_processes_are_counted_exactly(self):
        forks = "import os\nn = 0\ntry:\n    while True:\n        if os.fork() == 0:\n            import signal; signal.pause()\n        n += 1\nexcept OSError as e:\n    print(n, e.errno)"
        record = self.record("--processes", "20", "--", "python3", "-c", forks)
        self.assertEqual(record["stdout"]["text"], "19 11\n")
        self.assertEqual([each["limit"] for each in record["limits_met"]], ["processes"])

    def test_budgets_end_the_run(self):
        record = self.record("--memory", "100M", "--", "python3", "-c", "x = []\nwhile True: x.append(bytearray(2**20))", status=137)
        self.assertEqual(record["outcome"]["reason"], "memory")
        record = self.record("--disk", "20M", "--", "python3", "-c", "f = open('big', 'wb')\nwhile True: f.write(bytes(2**20)); f.flush()", status=153)
        self.assertEqual(record["outcome"]["reason"], "disk")

    def test_a_workspace_is_copied_and_brought_back(self):
        container = self.container()
        work = self.root / "work"
        (work / "a").mkdir(parents=True)
        (work / "old.txt").write_text("old\n")
        (work / ".env").write_text("TOKEN=x\n")
        (work / "a" / ".env").write_text("TOKEN=x\n")
        look = "cat old.txt; ls -A . a; echo new > new.txt; echo more >> old.txt; pwd; echo $HOME $TMPDIR; touch $TMPDIR/t $HOME/h"
        done = container.run("sh", "-c", f"cd /work && sbx run --isolation landlock --workspace .:overlay --apply --yes -- sh -c '{look}'; echo $?")
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "old", done)
        self.assertEqual(lines[-1], "0", done)
        self.assertNotIn(".env", lines, done)
        self.assertIn("weaker isolation", done.stderr)
        self.assertEqual(((work / "new.txt").read_text(), (work / "old.txt").read_text()), ("new\n", "old\nmore\n"))
        self.assertEqual(((work / ".env").read_text(), (work / "a" / ".env").read_text()), ("TOKEN=x\n", "TOKEN=x\n"))
        self.assertEqual(sorted(path.name for path in (self.root / "tmp").iterdir()), [])

    def test_a_workspace_that_may_be_read_has_no_contents_of_what_is_hidden(self):
        container = self.container()
        work = self.root / "work"
        (work / "a").mkdir(parents=True)
        for name in ("old.txt", "a/old.txt", ".env", "a/.env"):
            (work / name).write_text("x\n")
        script = "for f in old.txt a/old.txt .env a/.env; do cat $f; done; echo y > old.txt; ls -A"
        done = container.run("sh", "-c", f"cd /work && sbx run --isolation landlock --workspace .:read-only -- sh -c '{script}' 2>&1")
        self.assertEqual(done.stdout.count("Permission denied"), 3, done)
        self.assertEqual(done.stdout.splitlines().count("x"), 2, done)
        self.assertIn(".env", done.stdout)

    def test_scripts_and_files_run_where_they_are(self):
        container = self.container()
        for place in ("srv", "root/own"):
            (self.root / place).mkdir(parents=True)
            (self.root / place / "hello.py").write_text("import sys; print('hello', open(sys.argv[1]).read())")
            (self.root / place / "data").write_text("data")
        for place in ("/srv", "/root/own"):
            done = container.run("sh", "-c", f"cd {place} && sbx run --isolation landlock -q --read data hello.py data; exit $?")
            self.assertEqual((done.stdout, done.stderr), ("hello data\n", ""), done)

    def test_what_cannot_be_kept_is_refused(self):
        refusals = {("--write", "/srv"): "needs-namespaces", ("--workspace", "/srv:read-write"): "needs-namespaces",
                    ("--allow-host", "example.org:443"): "needs-namespaces", ("--explain",): "needs-namespaces",
                    ("--set", "filesystem.landlock=false"): "needs-namespaces", ("--require", "namespaces"): "requirement-not-met"}
        container = self.container()
        (self.root / "srv").mkdir()
        for options, code in refusals.items():
            outcome = self.record(*options, "--", "true", container=container, status=125)["outcome"]
            self.assertEqual(outcome["code"], code, outcome)
            self.assertTrue(outcome["hint"], outcome)
        for uid, capabilities in ((1000, "docker"), (0, "none")):
            outcome = self.record("--", "true", container=self.container(uid, capabilities), status=125)["outcome"]
            self.assertEqual(outcome["code"], "no-landlock-tier", outcome)

    def test_a_place_where_others_could_move_it_is_refused(self):
        container = self.container()
        (self.root / "tmp").chmod(0o777)
        self.assertEqual(self.record("--", "true", container=container, status=125)["outcome"]["code"], "no-private-directory")
        (self.root / "tmp").chmod(0o1777)
        self.record("--", "true", container=container)

    def test_the_weaker_wall_is_told_unless_it_was_asked_for_just_now(self):
        container = self.container()
        for options, is_told in ((("--isolation", "auto"), True), (("--isolation", "auto", "-q"), True), (("--isolation", "landlock"), True), (("--isolation", "landlock", "-q"), False)):
            done = container.run("sbx", "run", *options, "--", "true")
            self.assertEqual((done.returncode, "weaker isolation" in done.stderr), (0, is_told), done)


if __name__ == "__main__":
    main()

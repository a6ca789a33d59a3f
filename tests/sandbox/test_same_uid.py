"""Without namespaces and without the right to change ids: a program with the caller's own uid, walled off by Landlock, the filter
and what sbx does in its place. All of it runs in containers of runc, for an ordinary user and for root without capabilities."""

import json
import os

from call_numbers import SYSCALLS
from containers import FilteredTest
from outside import AROUND, ATTEMPTS, HOPPING, LAST, NOT_EVERYWHERE, REACHED_WHERE_GRANTED, SEEN, opened
from sbxtest import main

CALLERS = ((1000, "docker"), (0, "none"))

# Kills by name, then prints the status of sbx and how many processes are left when the last of the watchers has ended; there are no
# others in the container. Where sbx itself was
# killed, the second ends the keeper too, which reaps no more then, and can't reap itself.
ENDS = LAST + r"""
import os, signal, subprocess, sys, time
def others():
    found = []
    for name in os.listdir("/proc"):
        try:
            fields = open(f"/proc/{name}/stat").read().rsplit(")", 1)[1].split() if name.isdigit() else []
        except OSError:
            continue
        if fields and fields[0] not in "ZX" and int(name) not in (os.getpid(), sbx.pid):
            found.append((int(name), int(fields[1])))
    return found
sbx = subprocess.Popen(["sbx", "run", "--isolation", "landlock", "--timeout", sys.argv[3], "--", "python3", "-c", sys.argv[2]], stdout=subprocess.PIPE)
keeper = int(sbx.stdout.readline().split()[1])
while len(others()) < 8:
    pass
second = next(number for number, parent in others() if parent == sbx.pid and number != keeper)
last = Last(keeper, second)
for name in sys.argv[1].split():
    if name == "interrupt":
        sbx.send_signal(signal.SIGINT)
    elif name == "stop":
        os.kill(keeper, signal.SIGSTOP)
    elif name != "nothing":
        os.kill({"sbx": sbx.pid, "keeper": keeper, "second": second}[name], signal.SIGKILL)
status = sbx.wait()
last.wait()
if status < 0:
    wait_for_all()
print(status, len(others()))
subprocess.run(["sbx", "run", "--isolation", "landlock", "-q", "--", "true"])
print(sorted(name for name in os.listdir("/tmp") if name.startswith("sbx-")))
"""
# What only the owner of a file may do: of one that may be read, by each way that leads to it. Prints what was not refused.
OWNERS = r"""
import array, ctypes, fcntl, os, struct, sys, threading
path = "/host/open"
before = os.stat(path)
file = os.open(path, os.O_RDONLY)
place = os.open(path, os.O_PATH)
os.symlink(path, "link")
os.mkdir("d")
answers = {}
def attempt(name, act):
    try:
        act()
        answers[name] = "open"
    except OSError as error:
        answers[name] = error.strerror
attempt("chmod", lambda: os.chmod(path, 0o600))
attempt("chmod by a link", lambda: os.chmod("link", 0o600))
attempt("chmod beside it", lambda: os.chmod("../../../../../.." + path, 0o600))
attempt("chmod from a directory", lambda: os.chmod("open", 0o600, dir_fd=os.open("/host", os.O_PATH)))
attempt("fchmod", lambda: os.fchmod(file, 0o600))
attempt("chmod by a descriptor's name", lambda: os.chmod(f"/proc/self/fd/{place}", 0o600))
attempt("utime", lambda: os.utime(path, (1, 1)))
attempt("utime of a descriptor", lambda: os.utime(file, (1, 1)))
attempt("utime now", lambda: os.utime(path))
attempt("utime of the directory", lambda: os.utime("/host"))
attempt("chown to another group", lambda: os.chown(path, -1, 12))
attempt("setxattr", lambda: os.setxattr(path, "user.x", b"x"))
attempt("setxattr of a descriptor", lambda: os.setxattr(file, "user.x", b"x"))
attempt("flags", lambda: fcntl.ioctl(file, 0x40086602, array.array("l", [0x80])))
attempt("a second name", lambda: os.link(path, "named"))
attempt("a lease", lambda: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK))
attempt("a watched directory", lambda: fcntl.fcntl(os.open("/host", os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_MODIFY))
os.umask(0)
attempt("chmod of its own with a set-ID bit", lambda: os.chmod("d", 0o4755))
attempt("a new file with a set-ID bit", lambda: os.open("set", os.O_CREAT | os.O_WRONLY, 0o4755))
attempt("a nameless file with a set-ID bit", lambda: os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o2755))
attempt("a node with a set-ID bit", lambda: os.mknod("node", 0o104755))
def hidden_mode():
    how = struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, 0o4755, 0)
    if ctypes.CDLL(None, use_errno=True).syscall(int(sys.argv[1]), -100, b"hidden", how, 24) < 0:
        raise OSError(ctypes.get_errno(), "openat2")
attempt("a file of a hidden mode", hidden_mode)
# A name that another thread makes lead there and back.
open("own", "w").close()
done = threading.Event()
def swap():
    while not done.is_set():
        for target in (path, "own"):
            os.symlink(target, "next")
            os.rename("next", "swapped")
thread = threading.Thread(target=swap)
thread.start()
for _ in range(3000):
    try:
        os.chmod("swapped", 0o600)
    except OSError:
        pass
done.set()
thread.join()
after = os.stat(path)
same = all(getattr(before, name) == getattr(after, name) for name in ("st_mode", "st_uid", "st_gid", "st_mtime_ns", "st_atime_ns", "st_nlink"))
print(sorted(name for name, answer in answers.items() if answer == "open"), same)
# The twin: all of it works in a directory of its own.
os.close(os.open("sticky", os.O_CREAT | os.O_WRONLY, 0o1750))
os.chmod("own", 0o640)
os.fchmod(os.open("own", os.O_RDONLY), 0o750)
os.utime("own", (5, 7))
os.chown("own", os.getuid(), -1)
os.chmod("own", 0o751, dir_fd=os.open(".", os.O_PATH))
os.utime("link", (3, 3), follow_symlinks=False)
facts = os.stat("own")
print(oct(facts.st_mode & 0o7777), facts.st_atime, facts.st_mtime, os.lstat("link").st_mtime, oct(os.stat("sticky").st_mode & 0o7777))
"""

# Processes that run only where no other wants to, and fork at the same moment; then one forks as often as it can. Prints the number of
# processes after each.
# Each child has made a process, and computes since, before the parent makes the next.
COMPUTING = r"""
import os, sys, time
begun, write = os.pipe()
for _ in range(6):
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(0)
        os.wait()
        until = time.process_time() + 0.1
        while time.process_time() < until:
            pass
        os.write(write, b"x")
        while True:
            pass
    os.read(begun, 1)
for _ in range(4):
    if os.fork() == 0:
        time.sleep(3600)
print("made")
"""
IDLE = r"""
import os, signal, sys
MANY = int(sys.argv[1])
ready, go, told = os.pipe(), os.pipe(), os.pipe()
for _ in range(MANY):
    if os.fork() == 0:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        os.write(ready[1], b"r")
        os.read(go[0], 1)
        try:
            answer = b"+" if os.fork() else b""
        except OSError:
            answer = b"-"
        os.write(told[1], answer)
        signal.pause()
for _ in range(MANY):
    os.read(ready[0], 1)
os.write(go[1], b"g" * MANY)
there = 1 + MANY + b"".join(os.read(told[0], 1) for _ in range(MANY)).count(b"+")
print(there)
try:
    while os.fork():
        there += 1
    signal.pause()
except OSError:
    print(there)
"""


class SameUid(FilteredTest):
    WAY = "same-uid"

    def container(self, uid=1000, capabilities="docker"):
        made = super().container(uid, capabilities)
        self.make("host", uid)
        return made

    def make(self, name, uid, text=None):
        path = self.root / name
        if text is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        os.chown(path, uid, uid)
        return path

    def record(self, *words, container=None, status=0):
        done = (container or self.container()).run("sbx", "run", "--isolation", "landlock", "--json", *words)
        self.assertEqual(done.returncode, status, done)
        return json.loads(done.stdout)

    def attempts(self, caller, *options):
        done = self.container(*caller).run("python3", "-c", AROUND, ATTEMPTS, "--isolation", "landlock", *options)
        self.assertEqual(done.returncode, 0, done)
        outside, inside = done.stdout.splitlines()
        return json.loads(outside), json.loads(inside)

    def test_what_leads_out_is_refused(self):
        for caller in CALLERS:
            outside, inside = self.attempts(caller)
            self.assertEqual(opened(inside), SEEN, caller)
            # The twin: without a sandbox each of them is there to be reached.
            self.assertEqual(set(outside) - opened(outside) - NOT_EVERYWHERE, set(), caller)

    def test_a_policy_cannot_allow_it(self):
        allowed = 'syscalls.allow=["@ipc", "@debug", "@keyring", "@io-uring", "@handle", "socket", "socketpair", "prctl", "inotify_init1", "setpriority", "sched_setaffinity", "prlimit64", "ioctl", "chmod", "fchmodat", "utimensat"]'
        _, inside = self.attempts(CALLERS[0], "--set", allowed)
        self.assertEqual(opened(inside), SEEN)

    def test_what_is_granted_can_be_reached(self):
        _, inside = self.attempts(CALLERS[0], "--read", "/host/open", "--net", "host")
        self.assertEqual(opened(inside) - SEEN, REACHED_WHERE_GRANTED)

    def test_what_only_an_owner_may_do_is_done_in_its_own_directories_only(self):
        for uid, capabilities in CALLERS:
            container = self.container(uid, capabilities)
            self.make("host/open", uid, "text")
            done = container.run("sbx", "run", "--isolation", "landlock", "-q", "--timeout", "110s", "--read", "/host/open", "--", "python3", "-c", OWNERS,
                                 str(SYSCALLS["openat2"]))
            self.assertEqual(done.stdout.splitlines(), ["[] True", "0o751 5.0 7.0 3.0 0o1750"], done)

    def test_the_record_says_what_it_is(self):
        for caller in CALLERS:
            record = self.record("--", "id", "-u", container=self.container(*caller))
            self.assertEqual((record["isolation"], record["stdout"]["text"]), ({"tier": "landlock", "form": "same-uid"}, f"{caller[0]}\n"))
            self.assertEqual({each["what"] for each in record["degraded"]} - {"limits.memory", "limits.cpu_time"},
                             {"isolation", "names", "tmp", "network.mode", "ipc", "proc", "hostname", "limits.disk", "limits.processes", "end"})

    def test_the_end_of_sbx_of_its_keeper_and_of_the_time_takes_everything_along(self):
        for killed, timeout, status in (("sbx", "60s", "-9"), ("keeper", "60s", "125"), ("second", "2s", "124"), ("sbx keeper", "60s", "-9"), ("stop sbx", "60s", "-9"),
                                        ("second keeper", "60s", "125"), ("interrupt", "60s", "130"), ("nothing", "2s", "124")):
            done = self.container().run("python3", "-c", ENDS, killed, HOPPING, timeout)
            self.assertEqual(done.stdout.splitlines(), [f"{status} 0", "[]"], (killed, done))

    def test_the_callers_own_processes_live_on(self):
        """One in the background of the shell that sbx takes the place of is its child."""
        script = "sleep 1000 > /dev/null 2>&1 & echo $!; exec sbx run --isolation landlock -q -- python3 -c 'import os, signal; os.kill(os.getppid(), 0)' 2> /dev/null"
        look = "import os, subprocess, sys; p = subprocess.run(['sh', '-c', sys.argv[1]], stdout=subprocess.PIPE); os.kill(int(p.stdout.split()[0]), 0); print('lives', p.returncode)"
        done = self.container().run("python3", "-c", look, script)
        self.assertEqual(done.stdout, "lives 1\n", done)  # the program could not signal its keeper

    def test_processes_are_counted(self):
        forks = "import os\nn = 0\ntry:\n    while True:\n        if os.fork() == 0:\n            import signal; signal.pause()\n        n += 1\nexcept OSError as e:\n    print(n, e.errno)"
        for caller in CALLERS:
            record = self.record("--processes", "20", "--", "python3", "-c", forks, container=self.container(*caller))
            self.assertEqual(record["stdout"]["text"], "19 11\n")
            self.assertEqual([each["limit"] for each in record["limits_met"]], ["processes"])

    def test_who_computes_does_not_count_twice(self):
        record = self.record("--processes", "12", "--lang", "python", "-c", COMPUTING)
        self.assertEqual((record["outcome"]["exit_code"], record["stdout"]["text"], record["limits_met"]), (0, "made\n", []), record)

    def test_processes_that_have_not_begun_count(self):
        record = self.record("--processes", "40", "--lang", "python", "-c", IDLE, "30")
        first, last = map(int, record["stdout"]["text"].split())
        self.assertLessEqual(first, 40)
        self.assertEqual(last, 40)
        record = self.record("--processes", "100", "--lang", "python", "-c", IDLE, "30")
        self.assertEqual(record["stdout"]["text"], "61\n100\n")

    def test_budgets_end_the_run(self):
        record = self.record("--memory", "100M", "--", "python3", "-c", "x = []\nwhile True: x.append(bytearray(2**20))", status=137)
        self.assertEqual(record["outcome"]["reason"], "memory")
        record = self.record("--disk", "20M", "--", "python3", "-c", "f = open('big', 'wb')\nwhile True: f.write(bytes(2**20)); f.flush()", status=153)
        self.assertEqual(record["outcome"]["reason"], "disk")

    def test_a_workspace_is_copied_and_brought_back(self):
        container = self.container()
        work = self.make("home/u/work", 1000)
        for name, text in (("old.txt", "old\n"), (".env", "TOKEN=x\n")):
            self.make(f"home/u/work/{name}", 1000, text)
        look = "cat old.txt; ls -A; echo new > new.txt; chmod 755 new.txt; echo more >> old.txt"
        done = container.run("sh", "-c", f"cd /home/u/work && sbx run --isolation landlock --workspace .:overlay --apply --yes -- sh -c '{look}'; echo $?")
        lines = done.stdout.splitlines()
        self.assertEqual((lines[0], lines[-1]), ("old", "0"), done)
        self.assertNotIn(".env", lines, done)
        self.assertIn("weaker isolation (landlock, same uid)", done.stderr)
        self.assertEqual(((work / "new.txt").read_text(), (work / "old.txt").read_text(), (work / "new.txt").stat().st_mode & 0o777), ("new\n", "old\nmore\n", 0o755))
        self.assertEqual((work / ".env").read_text(), "TOKEN=x\n")
        self.assertEqual(sorted(path.name for path in (self.root / "tmp").iterdir()), [])

    def test_a_workspace_that_may_be_read_has_no_contents_of_what_is_hidden(self):
        container = self.container()
        for name in ("old.txt", "a/old.txt", ".env", "a/.env"):
            self.make(f"home/u/work/{name}", 1000, "x\n")
        script = "for f in old.txt a/old.txt .env a/.env; do cat $f; done; echo y > old.txt; chmod 600 old.txt; ls -A"
        done = container.run("sh", "-c", f"cd /home/u/work && sbx run --isolation landlock --workspace .:read-only -- sh -c '{script}' 2>&1")
        self.assertEqual(done.stdout.count("Permission denied"), 3, done)
        self.assertEqual(done.stdout.count("not permitted"), 1, done)
        self.assertEqual(done.stdout.splitlines().count("x"), 2, done)

    def test_what_cannot_be_kept_is_refused(self):
        refusals = {("--allow-host", "example.org:443"): "needs-namespaces", ("--explain",): "needs-namespaces",
                    ("--set", "filesystem.landlock=false"): "needs-namespaces", ("--require", "namespaces"): "requirement-not-met",
                    ("--require", "own-uid"): "requirement-not-met"}
        container = self.container()
        for options, code in refusals.items():
            outcome = self.record(*options, "--", "true", container=container, status=125)["outcome"]
            self.assertEqual(outcome["code"], code, outcome)
            self.assertTrue(outcome["hint"], outcome)


if __name__ == "__main__":
    main()

"""/dev/shm without namespaces: who gets it, what may be made in it, what counts, and what is left. In containers of runc, for root with a uid
for the program and for callers whose own uid it has."""

import json
import subprocess

from containers import FilteredTest, why_not
from sbxtest import SBX, main

# Locks, queues, pools and shared memory of Python, by two ways to start processes.
MULTIPROCESSING = """
import multiprocessing as mp, multiprocessing.shared_memory as shm
def square(n): return n * n
def add(counter, lock, name):
    block = shm.SharedMemory(name)
    for _ in range(100):
        with lock: counter.value += 1; block.buf[0] = (block.buf[0] + 1) % 256
    block.close()
def put(queue): queue.put([1, 2, 3])
if __name__ == "__main__":
    for method in ("fork", "spawn"):
        context = mp.get_context(method)
        with context.Pool(2) as pool: print(method, pool.map(square, range(4)))
        block = shm.SharedMemory(create=True, size=1 << 20); counter = context.Value("i", 0); lock = context.Lock()
        workers = [context.Process(target=add, args=(counter, lock, block.name)) for _ in range(3)]
        [w.start() for w in workers]; [w.join() for w in workers]
        print(counter.value, block.buf[0]); block.close(); block.unlink()
        queue = context.Queue(); child = context.Process(target=put, args=(queue,)); child.start()
        print(queue.get(), context.BoundedSemaphore(2).acquire()); child.join()
"""
DONE = "fork [0, 1, 4, 9]\n300 44\n[1, 2, 3] True\nspawn [0, 1, 4, 9]\n300 44\n[1, 2, 3] True\n"
# Prints what is refused in /dev/shm.
RIGHTS = """
import ctypes, fcntl, os, socket, subprocess
libc = ctypes.CDLL(None, use_errno=True)
os.chdir("/dev/shm")
refused = []
def attempt(name, act):
    try:
        act()
    except OSError:
        refused.append(name)
def made(path, flags=os.O_CREAT | os.O_EXCL | os.O_RDWR, mode=0o700):
    os.close(os.open(path, flags, mode))
def node(path):
    if libc.mknod(path, 0o100644, 0): raise OSError(ctypes.get_errno(), "mknod")
def bound():
    socket.socket(socket.AF_UNIX).bind("socket")
home = os.environ["HOME"]
open(home + "/here", "w").write("x")
attempt("file", lambda: made("a"))
attempt("write", lambda: open("a", "w").write("#!/bin/sh\\n"))
attempt("truncate", lambda: os.truncate("a", 10))
attempt("link", lambda: os.link("a", "b"))
attempt("rename", lambda: os.rename("b", "c"))
attempt("replace", lambda: (made("d"), os.rename("c", "d")))
attempt("list", lambda: os.listdir("."))
attempt("remove", lambda: os.unlink("d"))
attempt("no name", lambda: made(".", os.O_TMPFILE | os.O_RDWR))
attempt("mode", lambda: os.chmod("a", 0o755))
attempt("node of a file", lambda: node(b"e"))
print(refused)
refused = []
attempt("directory", lambda: os.mkdir("directory"))
attempt("symlink", lambda: os.symlink("/etc", "symlink"))
attempt("fifo", lambda: os.mkfifo("fifo"))
attempt("socket", bound)
attempt("execute", lambda: subprocess.run(["/dev/shm/a"]))
attempt("link from outside", lambda: os.link(home + "/here", "here"))
attempt("rename from outside", lambda: os.rename(home + "/here", "here"))
attempt("link to outside", lambda: os.link("a", home + "/there"))
attempt("rename to outside", lambda: os.rename("a", home + "/there"))
attempt("lock", lambda: fcntl.flock(os.open(".", os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB))
print(refused)
"""
# For scripts that are PID 1 of a container: `start` a run whose program makes a file and waits, `why` another run has no /dev/shm.
RUNS = """
import fcntl, json, mmap, os, signal, subprocess, sys, time
PROGRAM = "import os, sys; open('/dev/shm/own', 'w').write('x'); print(os.getuid(), os.getppid(), flush=True); sys.stdin.read()"
SBX = ["sbx", "run", "--isolation", "landlock", "-q"]
def start():
    run = subprocess.Popen([*SBX, "--report", "report", "--", "python3", "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    run.uid, run.keeper = map(int, run.stdout.readline().split())
    return run
def end(run):
    run.communicate()
    return run.returncode
def record(program="import os; print(os.access('/dev/shm', os.R_OK) and sorted(os.listdir('/dev/shm')))"):
    done = subprocess.run([*SBX, "--json", "--", "python3", "-c", program], stdout=subprocess.PIPE)
    return json.loads(done.stdout)
def why():
    return next((each["why"] for each in record()["degraded"] if "/dev/shm is refused" in each["instead"]), None)
def names():
    return sorted(os.listdir("/dev/shm"))
"""
AT_ONCE = RUNS + """
first = start()
print(why())
print(end(first), names(), why())
"""
NOT_EMPTY = RUNS + """
open("/dev/shm/others", "w").write("SECRET")
print(why())
print(record("print(open('/dev/shm/others').read())")["outcome"]["exit_code"])
os.unlink("/dev/shm/others")
print(why())
"""
# sbx is killed while the keeper and its second are stopped: the program lives, and with it the lock.
KILLED = RUNS + """
def ended(number):
    done = os.pidfd_open(number)
    return lambda: select.select([done], [], [])
import select
first = start()
second = next(int(pid) for pid in os.listdir("/proc") if pid.isdigit() and int(pid) not in (os.getpid(), first.pid, first.keeper)
              and open(f"/proc/{pid}/comm").read() == "sbx-init\\n")
ends = [ended(first.keeper), ended(second)]
for each in (first.keeper, second):
    os.kill(each, signal.SIGSTOP)
first.kill()
first.wait()
print(why())
for each in (first.keeper, second):
    os.kill(each, signal.SIGCONT)
for each in ends:
    each()
print(names(), why(), names())
"""
# A file that a process of the caller's has made meanwhile, in each of the ways to use it; what nobody uses; another user's.
MEANWHILE = RUNS + """
first = start()
for name in ("open", "mapped", "unused"):
    open("/dev/shm/" + name, "w").write("text")
kept = open("/dev/shm/open")
with open("/dev/shm/mapped", "r+") as file:
    memory = mmap.mmap(file.fileno(), 0)
# One that keeps secrets is passed over, and keeps nothing there.
secretive = subprocess.Popen(["python3", "-c", "import ctypes, time; ctypes.CDLL(None).prctl(4, 0); print(flush=True); time.sleep(3600)"], stdout=subprocess.PIPE)
secretive.stdout.readline()
other = subprocess.run(["setpriv", "--reuid=1234", "--clear-groups", "touch", "/dev/shm/others"], stderr=subprocess.DEVNULL).returncode == 0
end(first)
told = [each["why"] for each in json.load(open("report"))["degraded"] if each["instead"] in ("removed", "not removed")]
print([name for name in names() if name != "others"], other == os.path.exists("/dev/shm/others"), told)
"""
# In a file without a name.
FILL = """
import os, sys, time
f = os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR)
for _ in range(int(sys.argv[1])): os.write(f, bytes(2**20))
time.sleep(1000 * (sys.argv[1:] == ["40"]))
"""


class Lent(FilteredTest):
    def containers(self):
        """For each caller, and whether its programs have a uid to themselves."""
        for way, uid, capabilities in (("own-uid", 0, "docker"), ("same-uid", 1000, "docker")):
            if why_not(way) is None:
                yield self.container(uid, capabilities), way == "own-uid"

    def lines(self, script, container):
        done = container.run("python3", "-c", script)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout.splitlines()

    def record(self, container, *words, status=0):
        done = container.run("sbx", "run", "--isolation", "landlock", "--json", *words)
        self.assertEqual(done.returncode, status, done)
        return json.loads(done.stdout)

    def test_a_program_that_would_own_the_directory_has_none_of_it(self):
        """The owner of a sticky directory may rename and remove what others have there."""
        if why_not("same-uid") is not None:
            self.skipTest(why_not("same-uid"))
        look = "import os\nfor act in (lambda: os.chmod('/dev/shm', 0o777), lambda: open('/dev/shm/x', 'w'), lambda: os.utime('/dev/shm')):\n" \
               "    try: act()\n    except OSError as e: print(e.errno)"
        script = f"import os, subprocess\nprint(subprocess.run(['sbx', 'run', '--isolation', 'landlock', '-q', '--', 'python3', '-c', {look!r}], " \
                 "stdout=subprocess.PIPE, text=True).stdout.split(), oct(os.stat('/dev/shm').st_mode), os.listdir('/dev/shm'))"
        self.assertEqual(self.lines(script, self.container(0, "none")), ["['1', '13', '1'] 0o41777 []"])

    def test_multiprocessing_works(self):
        for container, _ in self.containers():
            script = container.directory / "rootfs/srv/work.py"
            script.parent.mkdir()
            script.write_text(MULTIPROCESSING)
            self.assertEqual(self.record(container, "/srv/work.py")["stdout"]["text"], DONE)

    def test_plain_files_can_be_made_and_nothing_else(self):
        for container, _ in self.containers():
            record = self.record(container, "--", "python3", "-c", RIGHTS)
            self.assertEqual(record["stdout"]["text"].splitlines(), ["[]", str(
                ["directory", "symlink", "fifo", "socket", "execute", "link from outside", "rename from outside", "link to outside", "rename to outside", "lock"])], record)

    def test_one_run_at_a_time_has_it(self):
        for container, _ in self.containers():
            self.assertEqual(self.lines(AT_ONCE, container), ["another run of sbx has '/dev/shm', or a process holds its lock", "0 [] None"])

    def test_where_it_is_not_empty_nothing_in_it_is_reached(self):
        for container, _ in self.containers():
            self.assertEqual(self.lines(NOT_EMPTY, container), ["'/dev/shm' is not empty: '/dev/shm/others'", "1", "None"])
        self.assertIn("/dev/shm", subprocess.run([SBX, "policy", "explain", "no-shared-memory"], check=True, capture_output=True, text=True).stdout)

    def test_the_lock_lives_as_long_as_the_program_does(self):
        """The next run removes what a program with a uid of its own has left; of the caller's uid nobody knows whose it is."""
        for container, is_own in self.containers():
            left = "['own'] None []" if is_own else "['own'] '/dev/shm' is not empty: '/dev/shm/own' ['own']"
            self.assertEqual(self.lines(KILLED, container), ["another run of sbx has '/dev/shm', or a process holds its lock", left])

    def test_what_others_use_stays(self):
        told = ["'/dev/shm/mapped' and 1 more were made while the program ran, and a process that is none of its own uses them",
                "'/dev/shm/own' and 1 more were made while the program ran, and no process uses them"]
        for container, is_own in self.containers():
            others = "'/dev/shm/mapped' and 3 more were made while the program ran, and another user owns them"
            mine = f"['mapped', 'open', 'unused'] True {[others]}" if is_own else f"['mapped', 'open'] True {told}"
            self.assertEqual(self.lines(MEANWHILE, container), [mine])

    def test_what_it_holds_counts_without_a_name_too(self):
        for container, _ in self.containers():
            self.record(container, "--disk", "20M", "--", "python3", "-c", FILL, "10")
            outcome = self.record(container, "--disk", "20M", "--", "python3", "-c", FILL, "40", status=153)["outcome"]
            self.assertEqual(outcome["reason"], "disk", outcome)
            self.assertIn("written to /dev/shm, by the growth of a file system in memory", outcome["detail"])


if __name__ == "__main__":
    main()

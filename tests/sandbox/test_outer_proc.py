"""In a container that hides parts of /proc the kernel refuses a fresh procfs (mount_namespaces(7)). There the container's
own /proc is shown behind Landlock: a few files about the machine, and nothing of its processes. Each test has its twin,
where /proc is the sandbox's own."""

import json
import os
import subprocess
import sys

import sbxtest
from harness import HANG
from refused_calls import EPERM, refuse_calls
from sbxtest import IS_ROOT, SBX
from sessiontest import Answer, SessionTest, main

# An ordinary user gets the right to mount from a user namespace, as in a container without root.
UNSHARE = ("unshare", "--mount", "--propagation", "private", *(() if IS_ROOT else ("--user", "--map-root-user")))
MASKED = (*UNSHARE, "sh", "-c", 'mount --bind /dev/null /proc/uptime && exec "$@"', "sh")
WHOLE = (*UNSHARE, "sh", "-c", 'exec "$@"', "sh")

# What a program tries with the processes of others, or with its own: {what: None or the errno}.
TRIED = r'''
import ctypes, errno, json, os, sys
outer = sys.argv[1:]
def tried(act, *arguments):
    try:
        act(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
def read(path):
    with open(path, "rb") as file: file.read(1)
def write(path):
    os.close(os.open(path, os.O_WRONLY))
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    given = getattr(libc, name)(*arguments)
    if given < 0: raise OSError(ctypes.get_errno(), name)
    return given
def watch(path, descriptor=None):
    call("inotify_add_watch", call("inotify_init1", 0) if descriptor is None else descriptor, path.encode(), 0xfff)
def mark(path):
    call("fanotify_mark", call("fanotify_init", 0x200, 0), 1, ctypes.c_uint64(0x20), -100, path.encode())
said = {"list /proc": tried(os.listdir, "/proc"), "list /proc/sys": tried(os.listdir, "/proc/sys"),
        "change a setting": tried(write, "/proc/sys/kernel/core_pattern"), "own maps": tried(read, "/proc/self/maps"),
        "own environment": tried(read, "/proc/self/environ"), "own mem": tried(write, "/proc/self/mem"),
        "mounts": tried(read, "/proc/self/mountinfo"), "own fds": tried(os.listdir, "/proc/self/fd"), "watch": tried(watch, "/etc")}
for pid in outer:
    place = f"/proc/{pid}/"
    for name in ("cmdline", "environ", "status", "stat", "maps", "mem", "comm", "mountinfo", "cgroup", "root/etc/hostname", "cwd/secret", "fd/0"):
        said[f"{name} of {pid}"] = tried(read, place + name)
    for name in ("root", "cwd", "exe", "ns/mnt"):
        said[f"link {name} of {pid}"] = tried(os.readlink, place + name)
    for name in ("fd", "task", "map_files", "root", "cwd"):
        said[f"list {name} of {pid}"] = tried(os.listdir, place + name)
    for name in ("oom_score_adj", "mem", "comm"):
        said[f"write {name} of {pid}"] = tried(write, place + name)
    said[f"times of {pid}"] = tried(os.utime, place)
    said[f"mode of {pid}"] = tried(os.chmod, place, 0o777)
    said[f"attribute of {pid}"] = tried(os.setxattr, place, "user.sbx", b"")
    said[f"handle of {pid}"] = tried(lambda: call("name_to_handle_at", -100, place.encode(), bytes(136), ctypes.byref(ctypes.c_int()), 0))
    said[f"watch {pid}"] = tried(watch, place)
    said[f"watch {pid} by a descriptor from elsewhere"] = tried(watch, place, 0)
    said[f"mark {pid}"] = tried(mark, place)
    said[f"into {pid}"] = tried(os.chdir, place + "root")
    said[f"namespace of {pid}"] = tried(lambda: ctypes.CDLL(None).setns(os.open(place + "ns/user", os.O_RDONLY), 0))
    said[f"kill {pid}"] = tried(os.kill, os.getpid() if pid == "self" else int(pid), 0)
print(json.dumps(said))
'''
# Open to everybody in both.
OPEN = r'''
import json, multiprocessing, os, subprocess
def double(x): return 2 * x
if __name__ == "__main__":
    said = {path: len(open(path).read()) > 0 for path in ("/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/loadavg", "/proc/version",
            "/proc/filesystems", "/proc/sys/kernel/osrelease", "/proc/sys/kernel/pid_max", "/proc/sys/kernel/random/boot_id", "/proc/sys/vm/max_map_count", "/proc/sys/fs/nr_open")}
    said["exe"] = os.path.exists(os.readlink("/proc/self/exe"))
    said["stdin"] = open("/dev/stdin").read() == "typed"
    said["substitution"] = subprocess.run(["bash", "-c", "cat <(echo hi)"], capture_output=True, text=True).stdout == "hi\n"
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            said[method] = pool.map(double, [1, 2]) == [2, 4]
    said["usr"] = "bin" in os.listdir("/usr")
    said["etc"] = "passwd" in os.listdir("/etc")
    print(json.dumps(said))
'''


class OuterProc(SessionTest):
    wrapper = MASKED

    def run_sbx(self, *words, stdin=None, cwd=None, env=None, timeout=HANG, program=SBX, preexec_fn=None, **options):
        process = sbxtest.start([*self.wrapper, program, *map(str, words)], env=self.environment(env), cwd=cwd or self.work, preexec_fn=preexec_fn,
                                stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        out, err = process.communicate(stdin, timeout=timeout)
        return Answer(words, process.returncode, out, err)

    def whole(self):
        """From here on nothing of /proc is hidden."""
        self.wrapper = WHOLE

    def run_json(self, *words, **rest):
        answer = self.run_sbx("run", "--json", *words, **rest)
        self.assertEqual(answer.verdict, ("exited", None), answer)
        return answer

    def weaker(self, answer):
        return {each["what"] for each in answer.record["degraded"]} & {"proc", "hostname"}

    def outer_processes(self):
        """The first process of all, and one of this account that holds a secret and can be traced."""
        (self.work / "secret").write_text("of the host")
        other = sbxtest.start([sys.executable, "-c", "print('ready', flush=True); input()"], cwd=self.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(other.communicate)
        self.assertEqual(other.stdout.readline(), b"ready\n")
        return [1, os.getpid(), other.pid]

    def expect_refused(self, said, outer):
        """Only that a process exists can be seen."""
        let_through = {what for what, error in said.items() if error is None}
        self.assertEqual(let_through, set(), said)
        for pid in outer:
            self.assertIn(said[f"kill {pid}"], ("ESRCH", "EPERM"), said)

    def test_nothing_of_other_processes_is_seen(self):
        outer = self.outer_processes()
        answer = self.run_json("--lang", "python", "-c", TRIED, *map(str, outer))
        self.assertEqual(self.weaker(answer), {"proc"}, answer)
        said = json.loads(answer.record["stdout"]["text"])
        # PID 1 of the sandbox has number 1 too: a signal reaches that one or nobody.
        said["kill 1"] = said["kill 1"] or "EPERM"
        self.expect_refused(said, outer)
        self.whole()
        answer = self.run_json("--lang", "python", "-c", TRIED)
        self.assertEqual(self.weaker(answer), set(), answer)
        said = json.loads(answer.record["stdout"]["text"])
        self.assertEqual([said[what] for what in ("list /proc", "own maps", "own environment", "own fds", "watch")], [None] * 5, said)

    def test_no_policy_admits_a_watch_on_it(self):
        """Landlock restricts none: events would tell who opens which file of another process's directory."""
        outer = self.outer_processes()
        granted = ("--set", 'syscalls.allow = ["@fanotify", "inotify_init1", "inotify_add_watch"]')
        watched = ("watch", *(f"watch {pid}{by}" for pid in outer for by in ("", " by a descriptor from elsewhere")), *(f"mark {pid}" for pid in outer))
        answer = self.run_json(*granted, "--lang", "python", "-c", TRIED, *map(str, outer))
        said = json.loads(answer.record["stdout"]["text"])
        self.assertEqual({said[what] for what in watched}, {"ENOSYS"}, said)
        self.assertIn("inotify and fanotify don't work", json.dumps(answer.record["degraded"]))
        self.whole()
        said = json.loads(self.run_json(*granted, "--lang", "python", "-c", TRIED, "self").record["stdout"]["text"])
        self.assertEqual((said["watch"], said["watch self"]), (None, None), said)
        self.assertNotEqual(said["mark self"], "ENOSYS", said)

    def test_what_programs_need_is_there(self):
        self.write("open.py", OPEN)
        for wrapper in (MASKED, WHOLE):
            self.wrapper = wrapper
            answer = self.run_json("open.py", stdin=b"typed")
            said = json.loads(answer.record["stdout"]["text"])
            self.assertEqual({what for what, works in said.items() if not works}, set(), answer)

    def test_budgets_are_counted(self):
        hungry = "b = bytearray(400 * 2**20); print(len(b))"
        for wrapper in (MASKED, WHOLE):
            self.wrapper = wrapper
            for words, verdict in ((("--memory", "100M", "--lang", "python", "-c", hungry), ("over-budget", "memory")),
                                   (("--cpu-time", "300ms", "--", "sh", "-c", "sh -c 'while :; do :; done'; true"), ("over-budget", "cpu_time")),
                                   (("--memory", "600M", "--lang", "python", "-c", hungry), ("exited", None))):
                answer = self.run_sbx("run", "--json", *words)
                self.assertEqual(answer.verdict, verdict, answer)

    def test_sessions_and_cells(self):
        outer = self.outer_processes()
        self.start_session()
        self.expect_refused({**json.loads(self.exec_json("--lang", "python", "-c", TRIED, *map(str, outer)).record["stdout"]["text"]), "kill 1": "EPERM"}, outer)
        for words, told in ((("exec", "work", "--", "cat", "/proc/version"), "Linux version"), (("eval", "work", "-c", "open('/proc/version').read()"), "Linux version")):
            answer = self.sbx_session(*words)
            self.assertEqual(answer.status, 0, answer)
            self.assertIn(told, answer.out)
        # A number inside is another process's outside: no name is better than that one's.
        left = self.exec_ok("--", "sh", "-c", "sleep 1000 & true").err
        self.assertIn("still ran", left)
        self.assertNotIn("(", left)
        for words in (("exec", "work", "--", "ls", "/proc"), ("eval", "work", "-c", "import os; os.listdir('/proc')")):
            answer = self.sbx_session(*words)
            self.assertNotEqual(answer.status, 0, answer)
            self.assertIn("Permission denied", answer.err)
        self.stop_session()

    def test_it_is_refused_where_landlock_may_not_shield_it(self):
        for words, told in ((("--set", "filesystem.landlock=false"), "filesystem.landlock = false"), (("--require", "proc"), "--require proc")):
            answer = self.run_sbx("run", *words, "--", "true")
            self.assertEqual(answer.status, 125, answer)
            self.assertIn(told, answer.err)
            self.whole()
            self.assertEqual(self.run_sbx("run", *words, "--", "true").status, 0)
            self.wrapper = MASKED

    def test_a_host_name_that_can_not_be_set_is_the_callers(self):
        self.whole()
        def refuse():
            refuse_calls({"sethostname": EPERM, "setdomainname": EPERM})
        answer = self.run_json("--", "uname", "-n", preexec_fn=refuse)
        self.assertEqual((self.weaker(answer), answer.record["stdout"]["text"].strip()), ({"hostname"}, os.uname().nodename), answer)
        self.assertEqual(self.run_sbx("run", "--require", "all", "--", "true", preexec_fn=refuse).status, 125)
        self.wrapper = MASKED
        self.assertEqual(self.weaker(self.run_json("--", "true", preexec_fn=refuse)), {"proc", "hostname"})
        self.whole()
        answer = self.run_json("--", "uname", "-n")
        self.assertEqual((self.weaker(answer), answer.record["stdout"]["text"]), (set(), "sandbox\n"), answer)


if __name__ == "__main__":
    main()

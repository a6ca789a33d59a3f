"""What containers of Docker and podman leave of isolation, made by runc with their filters: which way is taken, what is said of
it, and that it is the way which sbx doctor foretells."""

import json

import containers
from sbxtest import SbxTest, main

# (filter and capabilities, whether parts of /proc are hidden): the way, and what is weaker; or the error's code, and a word of its cure.
SHIELDED, WHOLE = ("namespaces", {"proc"}), ("namespaces", set())
REFUSED = ("no-user-namespace", "seccomp=unconfined")
LADDER = {
    ("docker", "docker", True): REFUSED,
    ("docker", "none", True): REFUSED,
    ("docker", "sysadmin", True): ("setup-pivot", "seccomp=unconfined"),
    ("podman", "podman", True): ("namespaces", {"proc", "hostname"}),
    (None, "docker", True): SHIELDED,
    (None, "docker", False): WHOLE,
}
# Others' processes can't be looked into by any call with a path: the shell that waits is PID 1 of the container.
PROBE = """
import ctypes, errno, json, os
libc = ctypes.CDLL(None, use_errno=True)
def tried(act, *words):
    try:
        act(*words)
    except OSError as error:
        return errno.errorcode[error.errno]
def watch(path):
    if libc.inotify_add_watch(libc.inotify_init1(0), path, 0xfff) < 0:
        raise OSError(ctypes.get_errno(), "inotify")
print(json.dumps([tried(open, "/proc/1/cmdline"), tried(open, "/proc/1/environ"), tried(os.listdir, "/proc"), tried(watch, b"/proc/1"), tried(open, "/proc/meminfo")]))
"""


class Containers(SbxTest):
    def setUp(self):
        super().setUp()
        if why := containers.why_not():
            self.skipTest(why)

    def container(self, uid, manager, capabilities, hides):
        if (needed := containers.FILTERS[manager]) and not needed.exists():
            self.skipTest(f"the filter of {manager} is not here ({needed})")
        self.count = getattr(self, "count", 0) + 1
        return containers.Container(self.tmp / f"container{self.count}", uid, manager, capabilities, hides)

    def way(self, container, *options):
        done = container.run("sbx", "run", "--json", *options, "--", "true")
        record = json.loads(done.stdout)
        if done.returncode == 125:
            return record["outcome"]["code"], record["outcome"]["hint"]
        self.assertEqual(done.returncode, 0, done)
        return record["isolation"]["form"] or record["isolation"]["tier"], {each["what"] for each in record["degraded"]} & {"proc", "hostname"}

    def foretold(self, container, expected, is_there):
        """The ladder of sbx doctor ends with the way that runs take, or says that there is none."""
        done = container.run("sbx", "doctor", "--json", "-p", "default")
        steps = [(step["name"], step["state"]) for step in json.loads(done.stdout)["isolation"]]
        if expected[0] != "namespaces":
            self.assertEqual(steps[-1], ("landlock", "weaker" if is_there else "missing"), done)
            self.assertEqual({state for _, state in steps[:-1]}, {"missing"}, done)
        else:
            self.assertEqual(steps[-1], ("shielded /proc", "weaker") if "proc" in expected[1] else ("namespaces", "ok"), done)
        printed = container.run("sbx", "doctor", "-p", "default").stdout
        ladder = printed[printed.index("Isolation,"):].split("\n\n")[0]
        self.assertLessEqual(len(ladder.splitlines()), 12, printed)

    def ladder_of(self, *machine):
        expected = LADDER[machine]
        for uid in (0, 1000):
            container = self.container(uid, *machine)
            form = "own-uid" if uid == 0 and machine[1] != "none" else "same-uid"
            is_there = containers.why_not(form) is None
            for options in ((), ("--isolation", "auto"), ("--isolation", "auto", "--require", "namespaces")):
                way, rest = self.way(container, *options)
                if expected[0] != "namespaces" and len(options) == 2:
                    taken = (way, rest) if is_there else way
                    self.assertEqual(taken, (form, {"proc", "hostname"}) if is_there else expected[0], (uid, options, rest))
                    continue
                self.assertEqual(way, expected[0], (uid, options, rest))
                if way == "namespaces":
                    self.assertEqual(rest, expected[1], (uid, options))
                else:
                    self.assertIn(expected[1], rest)
                    # The way below is told where it works.
                    self.assertEqual("--isolation landlock" in rest, not options and is_there, (uid, options, rest))
            self.foretold(container, expected, is_there)
            way, rest = self.way(container, "--isolation", "auto")
            print(f"uid {uid}, filter {machine[0]}, capabilities {machine[1]}, hidden paths {machine[2]}: {way} {'' if isinstance(rest, str) else sorted(rest)}")

    def test_docker_refuses_namespaces(self):
        self.ladder_of("docker", "docker", True)
        self.ladder_of("docker", "none", True)

    def test_docker_refuses_a_root_of_its_own_even_with_the_capability(self):
        self.ladder_of("docker", "sysadmin", True)

    def test_podman_leaves_a_shielded_proc_and_its_host_name(self):
        self.ladder_of("podman", "podman", True)

    def test_a_container_without_a_filter_leaves_a_shielded_proc(self):
        self.ladder_of(None, "docker", True)

    def test_a_container_that_hides_nothing_leaves_everything(self):
        self.ladder_of(None, "docker", False)

    def is_not_seen(self, *machine):
        for uid in (0, 1000):
            done = self.container(uid, *machine).run("sh", "-c", 'sbx run --lang python -c "$0"; exit $?', PROBE)
            self.assertEqual(json.loads(done.stdout), ["EACCES", "EACCES", "EACCES", "ENOSYS", None], done)

    def test_a_container_without_a_filter_is_not_seen_through_its_proc(self):
        self.is_not_seen(None, "docker", True)

    def test_podmans_container_is_not_seen_through_its_proc(self):
        self.is_not_seen("podman", "podman", True)

    def tasks(self, container, *options):
        """The record, and how many children a program could have at once that makes up to 30."""
        code = "import os, sys\nfor i in range(30):\n try: p = os.fork()\n except OSError as e: print(i, e.errno); sys.exit()\n if not p: os.pause()\nprint(30)"
        code = code.replace("os.pause()", "__import__('signal').pause()")
        done = container.run("sbx", "run", "--json", *options, "--lang", "python", "-c", code)
        record = json.loads(done.stdout)
        return record, record["stdout"]["text"].strip()

    def test_root_of_a_container_has_no_more_processes_than_allowed(self):
        # The kernel holds root to no such limit, and no cgroup can be made here.
        for machine in ((None, "docker", False), ("podman", "podman", True)):
            container = self.container(0, *machine)
            record, made = self.tasks(container, "--processes", "8")
            self.assertEqual(made, "7 11", record)
            self.assertEqual([met["limit"] for met in record["limits_met"]], ["processes"], record)
            self.assertIn("limits.processes", {each["what"] for each in record["degraded"]})
            _, made = self.tasks(container, "--processes", "64")
            self.assertEqual(made, "30")

    def test_the_calls_and_cells_of_a_session_have_no_more_processes_than_allowed(self):
        # One call has five; what is left is for the others.
        sleeps = "import os, signal; [os.fork() or signal.pause() for _ in range(4)]; print('there', flush=True); signal.pause()"
        script = """
            sbx session start s -q -p python --processes "$0"
            mkfifo there && { sbx session exec s --lang python -c "$1" > there & }
            read said < there && echo $said
            sbx session exec s --lang python -c "$2"
            sbx session eval s --lang python -c "$2"
            sbx session stop s > /dev/null"""
        forks = "import os, signal\nmade, n = [], 0\ntry:\n for n in range(30):\n  made.append(os.fork())\n  if not made[-1]: signal.pause()\n n = 30\nexcept OSError as e: print(e.errno)\nfor p in made: os.kill(p, 9), os.wait()\nprint(n)"
        for machine in ((None, "docker", False), ("podman", "podman", True)):
            for limit, lines in (("12", ["11", "6", "11", "6"]), ("64", ["30", "30"])):
                done = self.container(0, *machine).run("sh", "-c", script, limit, sleeps, forks)
                self.assertEqual(done.stdout.splitlines(), ["there", *lines], (machine, limit, done))

    def test_a_user_of_a_container_is_held_by_the_kernel(self):
        record, made = self.tasks(self.container(1000, None, "docker", False), "--processes", "8")
        self.assertEqual(made, "7 11", record)
        self.assertNotIn("limits.processes", {each["what"] for each in record["degraded"]})


if __name__ == "__main__":
    main()

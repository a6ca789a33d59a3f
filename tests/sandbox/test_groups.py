"""Control groups of sandboxes: one each, with its limits in force, and nothing left of them. Skipped if none can be
created."""

import ctypes
import json
import os
import pathlib
import random
import re
import subprocess
import time

import sbxtest
from harness import wait_until
from sbxtest import PROBE, SBX, SbxTest

NAME = re.compile(r"/(sbx-[0-9a-f]{16})$")
SHOW = ["--", "cat", "/proc/self/cgroup"]
UNTIL_A_LINE = "cat /proc/self/cgroup; echo .; read -r line; "
SPIN_WIDE = """
import os, time
for _ in range(3):
    if os.fork() == 0: break
try: os.sched_setaffinity(0, range(os.cpu_count()))
except OSError: pass
end = time.monotonic() + 2
while time.monotonic() < end: pass
"""


def names_in(text):
    return {match.group(1) for line in text.splitlines() if (match := NAME.search(line))}


def own_places():
    """The directories of this process's groups and their parents: where sbx creates its own."""
    mounts = {}
    for line in sbxtest.mounts().splitlines():
        head, _, tail = line.partition(" - ")
        fields, (kind, _, options) = head.split(), tail.split(maxsplit=2)
        if kind == "cgroup2":
            mounts.setdefault("", fields[4])
        if kind == "cgroup":
            for controller in options.split(","):
                mounts.setdefault(controller, fields[4])
    places = set()
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            if controller in mounts:
                directory = pathlib.Path(mounts[controller] + path)
                places.update({directory, directory.parent} if controller == "" and path != "/" else {directory})
    return [place for place in places if place.is_dir()]


def left(names):
    return [place / name for place in own_places() for name in names if (place / name).exists()]


def groups_here():
    return [directory for place in own_places() for directory in place.glob("sbx-*") if NAME.search(str(directory))]


def is_marked(directory):
    try:
        return bool({"user.sbx.owner", "trusted.sbx.owner"} & set(os.listxattr(directory)))
    except OSError:
        return False


def is_dead(directory):
    """Marked as sbx's, and held by no supervisor."""
    return is_marked(directory) and sbxtest.is_unlocked(directory)


def show_groups_only():
    """Enters a mount namespace where control groups can't be created, like root's in a container."""
    new_mounts, of_this_mount, everywhere = 0x20000, 4096 | 32 | 1, 16384 | 1 << 18  # CLONE_NEWNS; MS_BIND, _REMOUNT, _RDONLY; MS_REC, _PRIVATE
    libc = ctypes.CDLL(None, use_errno=True)
    asked = [libc.unshare(new_mounts), libc.mount(None, b"/", None, everywhere, None)]
    for line in sbxtest.mounts().splitlines():
        head, _, tail = line.partition(" - ")
        if tail.startswith("cgroup"):
            asked.append(libc.mount(None, head.split()[4].encode(), None, of_this_mount, None))
    if any(asked):
        raise OSError(ctypes.get_errno(), "a read-only view of control groups")


class Groups(SbxTest):
    def setUp(self):
        super().setUp()
        record = self.sbx(*SHOW).record
        self.enforced = record["enforced"]
        if self.enforced["memory"] == "polled":
            self.skipTest("no cgroup can be made here: " + next(item["why"] for item in record["degraded"] if item["what"] == "limits.memory"))

    def waiting(self, *options, then="exec sleep 60", seen=()):
        """A run that waits for a line, then does something; and the names of its groups, none of them in `seen`."""
        process = self.start_sbx(*options, "--", "sh", "-c", f"{UNTIL_A_LINE}{then}", json_record=False, stdin=subprocess.PIPE)
        text = b""
        while not text.endswith(b".\n"):
            block = process.stdout.readline()
            self.assertTrue(block, process.stderr.read() if not block else "")
            text += block
        names = names_in(text.decode())
        if not names:  # inside, a cgroup v2 group appears as the root
            names = names_in(pathlib.Path(f"/proc/{sbxtest.init_of(process)}/cgroup").read_text())
        self.assertTrue(names, text)
        self.assertFalse(names & set(seen), "two runs had one group")
        self.assertTrue(left(names))
        return process, names

    def end(self, process):
        process.terminate()
        self.finish(process, json_record=False)


class Directories(Groups):
    def test_group_is_gone_after_each_kind_of_end(self):
        spin = "exec python3 -c 'while True: pass'"
        for options, then, status in (([], "true", 0), (["--memory", "32M"], "exec python3 -c 'x = bytearray(1 << 30)'", 137), (["--timeout", "2s"], "exec sleep 60", 124),
                                      (["--cpu-time", "300ms"], spin, 152), ([], "kill -SEGV $$", 139)):
            process, names = self.waiting(*options, then=then)
            ended = self.finish(process, data=b"\n", json_record=False)
            self.assertEqual(ended.status, status, ended)
            self.assertEqual(left(names), [], ended)

    def test_sixty_four_side_by_side_leave_nothing(self):
        running, names = [], set()
        for _ in range(64):
            process, found = self.waiting("--timeout", "10m", then="true", seen=names)  # a slow machine needs a minute for 64
            running.append(process)
            names |= found
        for process in running:
            process.stdin.write(b"\n")
            process.stdin.flush()
        for process in running:
            self.assertEqual(self.finish_one(process), 0)
        self.assertEqual(sbxtest.orphans_after(sbxtest.GONE_WITHIN_SECONDS), [])
        self.assertEqual(left(names), [])

    def finish_one(self, process):
        process.communicate(timeout=120)
        return process.returncode

    def test_group_of_a_killed_sbx_is_removed_by_the_next_run(self):
        process, names = self.waiting()
        process.kill()
        process.communicate()
        self.assertEqual(sbxtest.orphans_after(sbxtest.GONE_WITHIN_SECONDS), [])
        self.exited(self.sbx("--", "true"))
        self.assertEqual(left(names), [])

    def test_sbx_killed_at_any_moment_leaves_no_group_without_its_mark(self):
        of_others = set(groups_here())
        for turn in range(200):
            process = self.start_sbx("--", "true", json_record=False)
            time.sleep(random.Random(turn).uniform(0, 0.008))
            process.kill()
            process.communicate()
        self.assertEqual(sbxtest.orphans_after(sbxtest.GONE_WITHIN_SECONDS), [])
        # Those of concurrent runs exist only for a moment.
        unmarked = [directory for directory in set(groups_here()) - of_others if not is_marked(directory)]
        wait_until(lambda: all(not directory.exists() or is_marked(directory) for directory in unmarked), f"no group without its mark of {unmarked}")

    def test_sbx_killed_while_it_starts_leaves_nothing_for_long(self):
        for milliseconds in (1, 2, 3, 5, 8, 13, 21):
            process = self.start_sbx("--", "sleep", "60", json_record=False)
            time.sleep(milliseconds / 1000)  # any moment will do: each kills another stage
            process.kill()
            process.communicate()
            self.assertEqual(sbxtest.orphans_after(sbxtest.GONE_WITHIN_SECONDS), [])
        self.exited(self.sbx("--", "true"))
        dead = [directory for directory in groups_here() if is_dead(directory)]

        def another_run_has_removed_them():  # those of concurrent tests end by themselves
            self.exited(self.sbx("--", "true"))
            return not any(directory.exists() and is_dead(directory) for directory in dead)
        wait_until(lambda: not dead or another_run_has_removed_them(), f"no dead group of {dead}")

    def test_group_of_a_living_sbx_stays(self):
        process, names = self.waiting()
        before = left(names)
        self.exited(self.sbx("--", "true"))
        self.assertEqual(left(names), before)
        self.end(process)
        self.assertEqual(left(names), [])

    def test_foreign_group_of_such_a_name_stays(self):
        process, names = self.waiting()
        beside = [directory.parent / "sbx-0123456789abcdef" for directory in left(names)]
        self.end(process)
        for directory in beside:
            directory.mkdir()
            self.addCleanup(directory.rmdir)
        self.exited(self.sbx("--", "true"))
        self.assertTrue(beside and all(directory.is_dir() for directory in beside))

    def test_foreign_process_is_never_in_a_group_of_sbx(self):
        process, names = self.waiting()
        for directory in left(names):
            pids = {int(line) for line in (directory / "cgroup.procs").read_text().split()}
            self.assertNotIn(os.getpid(), pids)
            self.assertNotIn(process.pid, pids)
        self.end(process)


class Limits(Groups):
    def test_refused_forks_are_counted_by_the_kernel(self):
        ended = self.sbx("--processes", "20", PROBE, "fork-bomb")
        met = {limit["limit"]: limit for limit in ended.record["limits_met"]}
        self.assertEqual((met["processes"]["value"], met["processes"]["evidence"]), (20, "kernel-counter"), ended)
        self.assertEqual(ended.record["usage"]["processes_peak"], 20, ended)

    def test_forks_below_the_limit_are_no_limit_met(self):
        ended = self.exited(self.python("import os\nif os.fork(): os.wait()"))
        self.assertEqual(ended.record["limits_met"], [])
        self.assertEqual(ended.record["usage"]["processes_peak"], 2)

    def test_share_of_the_cpus_holds_on_whatever_cpus(self):
        if not self.enforced["cpus"].startswith("cgroup"):
            self.skipTest("the cpu controller is not to be had")
        usage = self.python(SPIN_WIDE, options=["--cpus", "0.5"]).record["usage"]
        self.assertLess(usage["user_ms"] + usage["system_ms"], 0.65 * usage["wall_ms"], usage)

    def test_time_of_children_for_whom_nobody_waits_counts(self):
        code = "import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n" \
               "for _ in range(100):\n if os.fork() == 0:\n  end = time.process_time() + 0.1\n  while time.process_time() < end: pass\n" \
               "  os._exit(0)\n try: os.wait()\n except ChildProcessError: pass"
        ended = self.over_budget(self.python(code, options=["--cpu-time", "1s", "--timeout", "30s"]), "cpu_time", 152)
        self.assertLess(ended.record["usage"]["user_ms"] + ended.record["usage"]["system_ms"], 1300, ended)

    def test_budget_too_small_for_the_sandbox_itself_is_said(self):
        ended = self.sbx("--memory", "1M", "--disk", "64K", "--lang", "python", "-c", "pass")
        self.assertIn((ended.status, ended.outcome.get("code")), ((125, "memory-too-small"), (137, None)), ended)

    def test_required_groups_are_there(self):
        self.exited(self.sbx("--require", "memory.cgroup", "--require", "processes.cgroup", "--", "true"))

    def test_kill_of_a_child_ends_the_run(self):
        code = "import os, time\nif os.fork() == 0: x = bytearray(1 << 30)\ntime.sleep(30)"
        self.over_budget(self.python(code, options=["--memory", "64M"]), "memory", 137)


class Nested(Groups):
    def setUp(self):
        super().setUp()
        if self.enforced["memory"] != "cgroup-v1":
            self.skipTest("made for cgroup v1")
        own = next(place for place in own_places() if (place / "memory.limit_in_bytes").exists())
        self.around = own / f"around-sbx-{os.getpid()}"
        self.around.mkdir()
        self.addCleanup(self.remove_around)
        (self.around / "memory.limit_in_bytes").write_text(str(64 << 20))

    def remove_around(self):
        def is_gone():
            try:
                self.around.rmdir()
            except OSError:
                return False
            return True
        wait_until(is_gone, f"the group {self.around} is empty")

    def hog_inside(self, size, enter=lambda: None):
        def prepare():
            (self.around / "cgroup.procs").write_text("0")
            enter()
        ended = self.finish(self.start_sbx("--memory", "512M", "--lang", "python", "-c", f"x = b'x' * {size}", preexec_fn=prepare))
        self.assertEqual(ended.record["limits"]["memory_bytes"], 64 << 20)
        self.assertIn("limits.memory", [item["what"] for item in ended.record["degraded"]])
        return ended

    def test_smaller_limit_of_the_group_around_holds(self):
        ended = self.over_budget(self.hog_inside(1 << 30), "memory", 137)
        self.assertIn("cgroup", ended.outcome["detail"])

    def test_a_call_that_the_group_around_ends_is_not_told_of_an_earlier_ones_limit(self):
        """The peak of the session's group, which met its limit in the first call, does not fall by itself."""
        def session(*words, **options):
            return subprocess.run([SBX, "session", *words], env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=sbxtest.HANG, check=False, **options)

        def detail():
            ended = session("exec", "--json", "work", "--", "python3", "-c", "x = b'x' * (1 << 30)")
            outcome = json.loads(ended.stdout)["outcome"]
            self.assertEqual((outcome["status"], outcome["reason"]), ("over-budget", "memory"), ended)
            return outcome["detail"]
        started = session("start", "--memory", "40M", "--disk", "8M", "work", preexec_fn=lambda: (self.around / "cgroup.procs").write_text("0"))
        self.addCleanup(session, "stop", "work")
        self.assertEqual(started.returncode, 0, started)
        self.assertIn("the session's memory limit of 40 MiB reached", detail())
        (self.around / "memory.limit_in_bytes").write_text(str(28 << 20))
        self.assertIn("for want of memory before the limit of 40 MiB was reached", detail())
        (self.around / "memory.limit_in_bytes").write_text(str(64 << 20))
        self.assertIn("the session's memory limit of 40 MiB reached", detail())

    def test_kill_by_a_container_that_shows_its_groups_only_is_named(self):
        ended = self.over_budget(self.hog_inside(1 << 30, enter=show_groups_only), "memory", 137)
        self.assertEqual(ended.record["enforced"]["memory"], "polled")
        self.assertIn("want of memory", ended.outcome["detail"])
        self.exited(self.hog_inside(1 << 20, enter=show_groups_only))


if __name__ == "__main__":
    sbxtest.main()

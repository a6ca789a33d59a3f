"""Sessions under load: SIGKILL at any moment, many sessions, many calls, many clients; every verdict is right and nothing
is left."""

import json
import os
import pathlib
import random
import signal
import subprocess
import time
import types

import sessiontest
import sbxtest
from harness import HANG, turns
from sbxtest import SBX
from sessiontest import SessionTest, descendants, process_lives, wait_until

KIB = 1 << 10
MAY_GROW_KIB = 1024

# A call that can't be asked to end, with processes of its own; half of them end by themselves.
STUBBORN = "trap '' TERM HUP INT; sleep {mark} & sleep {mark} & {rest}; exit 7"


def marked(mark):
    """Live processes of a sandbox that have this word in their command line."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) not in sbxtest.known_children():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as line:
                    if mark.encode() in line.read() and process_lives(entry):
                        found.append(int(entry))
            except OSError:
                continue
    return found


def children_of(pid):
    """Live or not: {pid: state}."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as stat:
                    fields = stat.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found[int(entry)] = fields[0].decode()
    return found


def only_waiting(pid, init):
    """How many workers wait for a call, each with an init in the sandbox; None while something else lives."""
    workers, inits = len(children_of(pid)) - 1, len(children_of(init))
    return workers if workers == inits and "Z" not in children_of(pid).values() else None


def status_field(pid, name):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise AssertionError(f"process {pid} has no {name}")


def descriptors(pid):
    """How many are open; for a user, to whom that directory is closed, how many have a place in the kernel's table."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except PermissionError:
        return status_field(pid, "FDSize")


class Load(SessionTest):
    def setUp(self):
        super().setUp()
        self.before = (sbxtest.host_state(), sbxtest.groups())
        self.facts = {}
        self.mark = 0

    def nothing_is_left(self):
        super().nothing_is_left()
        self.assertEqual(sbxtest.left_since(self.before[0]), {})
        disks = self.home / ".local/state/sbx/disks"
        self.assertEqual(os.listdir(disks) if disks.is_dir() else [], [])
        wait_until(lambda: not sbxtest.dead_groups_since(self.before[1]), "the control groups are removed")

    def end_and_check(self):
        stopped = self.sbx_session("stop", "--all")
        self.assertEqual(stopped.status, 0, stopped)
        self.forget_dead()
        self.nothing_is_left()

    def forget_dead(self):
        """Reaps sessions' processes, which are this process's children once their starter has exited."""
        for pid in self.pids:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass
        self.pids = [pid for pid in self.pids if process_lives(pid)]

    def client(self, name, *words, options=()):
        return sbxtest.start([SBX, "session", "exec", name, "--json", *options, "--", *words], env=self.environment(), cwd=self.work,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def ended(self, process, timeout=HANG):
        """(exit status, verdict, text, everything for a message)"""
        out, err = process.communicate(timeout=timeout)
        told = (process.returncode, out[-3000:], err[-3000:])
        if not out:
            return process.returncode, None, None, told
        record = json.loads(out)
        return process.returncode, (record["outcome"]["status"], record["outcome"]["exit_code"]), record["stdout"]["text"], told

    def calls(self, name):
        return {each["call"]: each for each in self.sbx_session("calls", "--json", name).json["calls"]}

    def init_of_session(self, name):
        return sbxtest.init_of(types.SimpleNamespace(pid=self.facts[name]["pid"]))

    def started(self, name, *options):
        self.facts[name] = self.start_session(*options, name=name)
        return self.facts[name]["pid"]

    # ---- SIGKILL ----

    def start_watched(self, name):
        """A session with a call that has ended and one that runs."""
        self.started(name)
        self.finish_one(name)
        running = self.detach("--", "sh", "-c", "echo runs; exec sleep 100000", name=name)
        wait_until(lambda: self.sbx_session("logs", name, running).out == "runs\n", "the background call runs")
        return running

    def finish_one(self, name):
        self.finished = self.detach("--", "sh", "-c", "echo kept; exit 7", name=name)
        self.assertEqual(self.sbx_session("wait", name, self.finished).status, 7)

    def next_mark(self):
        self.mark += 1
        return f"60.{os.getpid():07}{self.mark:05}"

    def stubborn(self, mark, ends):
        return self.client("victim", "sh", "-c", STUBBORN.format(mark=mark, rest="sleep 0.01" if ends else f"sleep {mark}"))

    def other_is_unharmed(self, running):
        answer = self.exec_ok("--", "sh", "-c", "echo answers", name="other")
        self.assertEqual(answer.out, "answers\n")
        self.assertEqual(self.calls("other")[running]["state"], "running")

    def no_false_verdict(self, process, what):
        """The call's own end, if it came before; otherwise nobody knows, and sbx says so."""
        status, verdict, _, told = self.ended(process)
        if verdict == ("exited", 7):
            self.assertEqual(status, 7, (what, told))
            return
        self.assertEqual(status, 125, (what, told))
        if verdict is not None:
            self.assertIn(verdict[0], ("lost", "setup-failed"), (what, told))
            self.assertIsNone(verdict[1], (what, told))

    def is_gone(self, mark, pids, what):
        for _ in turns(sbxtest.GONE_WITHIN_SECONDS):
            left = {*marked(mark), *filter(process_lives, pids)}
            if not left:
                return
        tree = subprocess.run(["ps", "-e", "-o", "pid,ppid,stat,wchan:20,args"], capture_output=True, text=True).stdout.splitlines()
        lines = [line for line in tree if {*map(int, line.split()[:2] if line.split()[0].isdigit() else [])} & left]
        self.fail(f"something of it is left; {what}\n" + "\n".join(lines))

    def session_lives(self, what):
        """Answers, has no call left that runs but the one that nobody killed, and still knows what had ended."""
        self.assertEqual(self.exec_ok("--", "echo", "lives", name="victim").out, "lives\n", what)
        self.assertEqual(self.sbx_session("wait", "victim", self.finished).status, 7, what)
        self.assertEqual(self.sbx_session("logs", "victim", self.finished).out, "kept\n", what)
        self.finish_one("victim")  # a session knows the last 64 that ended

    def is_swept(self, what):
        listed = self.sbx_session("list", "--json")
        self.assertEqual([each["name"] for each in listed.json["sessions"]], ["other"], what)
        self.assertEqual([each.name for each in self.directory().iterdir()], ["other"], what)
        self.assertEqual(sbxtest.dead_groups_since(self.before[1]), [], f"control groups after the next command; {what}")
        self.forget_dead()
        self.assertEqual(sbxtest.orphans_after(sbxtest.GONE_WITHIN_SECONDS), [], what)

    def kill_client(self, moment, ends, what):
        mark = self.next_mark()
        earlier = self.calls("victim")
        process = self.stubborn(mark, ends)
        time.sleep(moment)
        process.kill()
        process.communicate()
        # The session may not have seen the connection yet: this answer comes after it has.
        self.assertEqual(self.sbx_session("show", "victim").status, 0)
        self.is_gone(mark, [], what)
        wait_until(lambda: sum(each["state"] == "running" for each in self.calls("victim").values()) == 1,
                   f"the call of a dead client has ended; {what}")
        for number, call in self.calls("victim").items():
            self.assertTrue(number in earlier or call["exit_status"] != 0, (what, call))
        self.session_lives(what)

    def kill_worker(self, moment, ends, what):
        mark = self.next_mark()
        process = self.stubborn(mark, ends)
        pid, init = self.facts["victim"]["pid"], self.init_of_session("victim")
        time.sleep(moment)
        below = [each for each in descendants(pid) if each not in self.steady]
        workers = [each for each in children_of(pid) if each not in self.steady]
        for each in workers:
            try:
                os.kill(each, signal.SIGKILL)
            except ProcessLookupError:  # it has just ended by itself
                continue

        def goes_on():
            """What was killed waited for a call; this one begins, or has begun, with another."""
            return any(each["state"] == "running" and each["pid"] not in workers for each in self.calls("victim").values())
        if not ends:
            wait_until(lambda: process.poll() is not None or goes_on(), f"the call ends or goes on; {what}")
        if not ends and process.poll() is None:
            process.kill()
            process.communicate()
        else:
            self.no_false_verdict(process, what)
        self.is_gone(mark, below, what)
        self.assertTrue(process_lives(pid) and process_lives(init), what)
        self.session_lives(what)

    def kill_session(self, moment, ends, what, of_holder=False):
        mark = self.next_mark()
        pid, init = self.facts["victim"]["pid"], self.init_of_session("victim")
        process = self.stubborn(mark, ends)
        time.sleep(moment)
        below = descendants(pid)
        os.kill(init if of_holder else pid, signal.SIGKILL)
        self.no_false_verdict(process, what)
        self.is_gone(mark, [pid, init, *below], what)
        self.is_swept(what)
        self.start_victim()

    def kill_starter(self, moment, what):
        """`session start` itself: a session that lives is whole, or there is none."""
        starter = sbxtest.start([SBX, "session", "start", "third"], env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moment)
        starter.kill()
        starter.wait()
        self.third_is_whole_or_absent(what)

    def kill_starting(self, moment, what):
        """The session's process before it takes calls."""
        starter = sbxtest.start([SBX, "session", "start", "third"], env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(moment)
        below = descendants(starter.pid)
        if not below:  # it has none yet, or has left it
            starter.communicate()
            return self.third_is_whole_or_absent(what)
        sbxtest.known_children().add(below[0])
        self.pids.append(below[0])
        os.kill(below[0], signal.SIGKILL)
        _, err = starter.communicate(timeout=HANG)
        self.assertIn(starter.returncode, (0, 125), (what, err))
        if starter.returncode == 125:
            self.assertIn(b"was killed", err, what)
        self.is_gone("no mark", below, what)
        self.third_is_whole_or_absent(what)

    def third_is_whole_or_absent(self, what):
        """A start that nobody waits for any more goes on: it ends soon, one way or the other."""
        answers = []

        def has_ended():
            answers.append(self.sbx_session("show", "--json", "third"))
            return answers[-1].status == 0 or not [each for each in sbxtest.children() if each not in sbxtest.known_children() and process_lives(each)]
        wait_until(has_ended, f"the start has come to its end; {what}")
        answer = answers[-1]
        if answer.status == 0:
            self.pids.append(answer.json["pid"])
            sbxtest.known_children().add(answer.json["pid"])
            self.assertEqual(self.exec_ok("--", "echo", "whole", name="third").out, "whole\n", what)
            self.stop_session("third")
        names = [each["name"] for each in self.sbx_session("list", "--json").json["sessions"]]
        self.assertEqual(names, ["other", "victim"], what)
        self.assertEqual(sorted(each.name for each in self.directory().iterdir()), ["other", "victim"], what)
        self.assertEqual(sbxtest.dead_groups_since(self.before[1]), [], f"control groups after the next command; {what}")
        self.forget_dead()
        self.assertEqual(sbxtest.orphans_after(sbxtest.GONE_WITHIN_SECONDS), [], what)

    def start_victim(self):
        self.start_watched("victim")
        self.steady = set(descendants(self.facts["victim"]["pid"]))

    def kill_at_random_moments(self, times, *victims):
        """Of each of the victims; none: of all kinds in turn."""
        running = self.start_watched("other")
        began = time.monotonic()
        self.start_victim()
        start_takes = time.monotonic() - began
        began = time.monotonic()
        self.exec_ok("--", "true", name="victim")
        call_takes = time.monotonic() - began + 0.02
        moments = random.Random(19)
        kills = {
            "client": lambda moment, ends, what: self.kill_client(moment * call_takes, ends, what),
            "session": lambda moment, ends, what: self.kill_session(moment * call_takes, ends, what),
            "holder": lambda moment, ends, what: self.kill_session(moment * call_takes, ends, what, of_holder=True),
            "worker": lambda moment, ends, what: self.kill_worker(moment * call_takes, ends, what),
            "starter": lambda moment, _, what: self.kill_starter(moment * start_takes, what),
            "starting": lambda moment, _, what: self.kill_starting(moment * start_takes, what),
        }
        for turn in range(times):
            moment, ends = moments.uniform(0, 1.5), moments.random() < 0.5
            victim = (victims or tuple(kills))[turn % len(victims or kills)]
            kills[victim](moment, ends, f"{victim} killed at {moment:.3f} of a {'short' if ends else 'long'} one, turn {turn}")
            self.other_is_unharmed(running)
        self.end_and_check()

    def test_killed_at_30_moments(self):
        self.kill_at_random_moments(30)

    def test_slow_killed_at_1000_moments_each(self):
        self.kill_at_random_moments(3000, "client", "session", "holder")

    def test_slow_other_processes_killed_at_1000_moments(self):
        self.kill_at_random_moments(1000, "worker", "starter", "starting")

    # ---- many ----

    def many_sessions_at_once(self, count):
        starts = [sbxtest.start([SBX, "session", "start", "--json", f"s{number}"], env=self.environment(), cwd=self.work,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for number in range(count)]
        for number, process in enumerate(starts):
            out, err = process.communicate(timeout=HANG)
            self.assertEqual(process.returncode, 0, (number, out, err))
            pid = json.loads(out)["pid"]
            self.pids.append(pid)
            sbxtest.known_children().add(pid)
        clients = [self.client(f"s{number}", "sh", "-c", f"echo {number} | tee mine; exit {number}") for number in range(count)]
        for number, process in enumerate(clients):
            status, verdict, text, told = self.ended(process, timeout=HANG)
            self.assertEqual((status, verdict, text), (number, ("exited", number), f"{number}\n"), told)
        self.assertEqual(len(self.sbx_session("list", "--json").json["sessions"]), count)
        # None sees the files of another.
        for number in (0, count - 1):
            self.assertEqual(self.exec_ok("--", "cat", "mine", name=f"s{number}").out, f"{number}\n")
        self.end_and_check()

    def test_16_sessions_at_once(self):
        self.many_sessions_at_once(16)

    def test_64_sessions_at_once(self):
        self.many_sessions_at_once(64)

    # ---- growth ----

    def held(self, pid, init):
        """What must not grow: of the session's process and of the sandbox's PID 1."""
        return {"session": status_field(pid, "VmRSS"), "holder": status_field(init, "VmRSS"),
                "descriptors": descriptors(pid), "holder's descriptors": descriptors(init),
                "children": len(children_of(pid)), "holder's children": len(children_of(init)), "groups": self.groups_of(init)}

    def groups_of(self, init):
        """Control groups inside the session's: there is one for each call that runs."""
        names = {word.rpartition("/")[2] for word in pathlib.Path(f"/proc/{init}/cgroup").read_text().split() if "/sbx-" in word}
        return sum(any(f"/{name}/sbx-" in group for name in names) for group in sbxtest.groups())

    def quick_call(self, number):
        """As a client would, without Python's own cost of a process."""
        pid = os.posix_spawn(SBX, [SBX, "session", "exec", "work", "--", "sh", "-c", f"exit {number % 50}"], self.environment(),
                             file_actions=[(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)])
        sbxtest.known_children().add(pid)
        _, status = os.waitpid(pid, 0)
        sbxtest.known_children().discard(pid)
        self.assertEqual(os.waitstatus_to_exitcode(status), number % 50, f"call {number}")

    def does_not_grow(self, count):
        pid = self.started("work")
        init = self.init_of_session("work")
        for number in range(100):  # more than the session remembers, so that its lists are full
            self.quick_call(number)

        wait_until(lambda: only_waiting(pid, init) == 1, "one worker waits for the next call")
        first = self.held(pid, init)
        for number in range(count):
            self.quick_call(number)
        wait_until(lambda: only_waiting(pid, init) == 1, "one worker waits for the next call")
        last = self.held(pid, init)
        for what in ("session", "holder"):
            self.assertLessEqual(last.pop(what), first.pop(what) + MAY_GROW_KIB, (what, first, last))
        self.assertEqual(last, first)
        self.assertLessEqual(len(self.calls("work")), 66)
        self.end_and_check()

    def test_300_calls_without_growth(self):
        self.does_not_grow(300)

    def test_slow_10000_calls_without_growth(self):
        self.does_not_grow(10_000)

    def test_300_background_calls_without_growth(self):
        """Their logs and records are kept, of the last ones."""
        pid = self.started("work", "--set", 'session.log="4K"')
        init = self.init_of_session("work")

        def calls(count):
            for number in range(count):
                call = self.detach("--", "sh", "-c", f"head -c 20000 /dev/zero | tr '\\0' x; exit {number % 50}")
                self.assertEqual(self.sbx_session("wait", "work", call).status, number % 50)
        calls(100)
        wait_until(lambda: only_waiting(pid, init) == 1, "one worker waits for the next call")
        first = self.held(pid, init)
        calls(200)
        wait_until(lambda: only_waiting(pid, init) == 1, "one worker waits for the next call")
        last = self.held(pid, init)
        self.assertLessEqual(last.pop("session"), first.pop("session") + MAY_GROW_KIB, (first, last))
        self.assertLessEqual(last.pop("holder"), first.pop("holder") + MAY_GROW_KIB, (first, last))
        self.assertLessEqual(last["descriptors"], first["descriptors"] + 4)
        self.assertEqual(last["groups"], first["groups"])
        self.end_and_check()

    # ---- many clients ----

    def four_clients_in_a_loop(self, rounds):
        self.started("work")
        for turn in range(rounds):
            clients = [(number, self.client("work", "sh", "-c", f"echo {number}; exit {number % 100}")) for number in range(turn * 4, turn * 4 + 4)]
            for number, process in clients:
                status, verdict, text, told = self.ended(process)
                self.assertEqual((status, verdict, text), (number % 100, ("exited", number % 100), f"{number}\n"), told)
        self.end_and_check()

    def test_four_clients_in_a_loop(self):
        self.four_clients_in_a_loop(40)

    def test_slow_four_clients_in_a_long_loop(self):
        self.four_clients_in_a_loop(1000)

    def test_calls_that_end_at_once_have_their_own_status(self):
        """What can't start answers before its client knows whom to send signals to."""
        self.started("work")
        for turn in range(20):
            clients = [(status, self.client("work", word)) for word, status in (("absent", 127), ("/etc/passwd", 126), ("true", 0), ("false", 1))]
            for expected, process in clients:
                status, _, _, told = self.ended(process)
                self.assertEqual(status, expected, (turn, told))
        self.end_and_check()

    def test_sixteen_background_calls_flood(self):
        cap = 64 * KIB
        pid = self.started("work", "--set", f'session.log="{cap // KIB}K"', "--set", "session.calls=20")
        before = status_field(pid, "VmRSS")
        floods = [self.detach("--", "sh", "-c", f"echo first {number}; exec yes {number}") for number in range(16)]
        wait_until(lambda: all(each["stdout_bytes"] > 4 * cap for number, each in self.calls("work").items() if number in floods),
                   "each has written more than is kept")
        self.assertEqual(self.exec_ok("--", "echo", "answers").out, "answers\n")
        self.assertEqual({self.calls("work")[call]["state"] for call in floods}, {"running"})
        # Of each stream at most once and a half the cap, and what is on its way.
        self.assertLess(status_field(pid, "VmRSS") - before, 16 * 3 * cap // KIB + 4096)
        for number, call in enumerate(floods):
            text = self.sbx_session("logs", "work", call).out
            self.assertTrue(text.startswith(f"first {number}\n"), (call, text[:100]))
            self.assertLess(len(text), cap + 200)
            self.assertIn("bytes left out", text)
        for call in floods[:8]:
            self.assertEqual(self.sbx_session("kill", "work", call).status, 0)
        for call in floods[:8]:
            ended = self.sbx_session("wait", "work", call, "--json")
            self.assertEqual(ended.verdict, ("cancelled", None), ended)
        self.assertEqual({self.calls("work")[call]["state"] for call in floods[8:]}, {"running"})
        self.end_and_check()


if __name__ == "__main__":
    sessiontest.main()

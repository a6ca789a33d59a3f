"""Drives `sbx session` from outside: sessions of a home directory of the test's own, ended and looked after at its end."""

import json
import os
import pathlib
import signal
import subprocess

import sbxtest
from harness import AMPLE, HANG, main, wait_until  # main is for the scripts that import this
from sbxtest import SBX, SOURCE, SbxTest

try:
    import jsonschema
except ImportError:
    jsonschema = None


class Answer:
    """What a command of sbx printed and returned."""

    def __init__(self, words, status, out, err):
        self.words = words
        self.status = status
        self.out = out.decode(errors="surrogateescape")
        self.err = err.decode(errors="replace")

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def record(self):
        return json.loads(self.out)

    @property
    def verdict(self):
        outcome = self.record["outcome"]
        return outcome["status"], outcome["reason"]

    def __str__(self):
        return f"{' '.join(map(str, self.words))}\nexit status {self.status}\nstdout {self.out[:3000]!r}\nstderr {self.err[:3000]!r}"


def state_of(pid):
    """The letter in /proc/PID/stat; X if the process has ended, before or while this reads."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0].decode()
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def process_lives(pid):
    return state_of(pid) not in "ZX"


def waits_for_answer(client):
    """Whether a client of a session has asked and sleeps until the answer comes; or has ended."""
    wchan = pathlib.Path(f"/proc/{client.pid}/wchan").read_text()
    return "unix" in wchan or "sk" in wchan or client.poll() is not None


def kill(pid):
    """Its descriptors are closed, which others see, before it has ended."""
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not process_lives(pid), "what was killed has ended")


def cpu_seconds(pid, of_children=False):
    """What a process has used, of user and system time; or what those of its children had used that it has reaped."""
    with open(f"/proc/{pid}/stat", "rb") as stat:
        fields = stat.read().rpartition(b")")[2].split()
    return sum(map(int, fields[13:15] if of_children else fields[11:13])) / os.sysconf("SC_CLK_TCK")


def held_up(test, pid, call, microseconds):
    """From here to the test's end that process returns late from each `call`; whoever waits for it goes on first."""
    if os.geteuid() != 0:
        test.skipTest("only root may hold up a process of sbx, which nobody else traces")
    tracer = sbxtest.start(["/usr/bin/strace", "-qq", "-o", "/dev/null", "-p", str(pid), "-e", f"trace={call}",
                            "-e", f"inject={call}:delay_exit={microseconds}"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    test.addCleanup(tracer.stderr.close)
    test.addCleanup(tracer.wait)
    test.addCleanup(tracer.terminate)
    wait_until(lambda: f"TracerPid:\t{tracer.pid}\n" in pathlib.Path(f"/proc/{pid}/status").read_text(), "it is traced")


def descendants(pid):
    """Live processes below `pid`, by the parents that /proc names now."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as stat:
                    parents[int(entry)] = int(stat.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue
    found = [pid]
    for each in found:
        found.extend(child for child, parent in parents.items() if parent == each)
    return found[1:]


def children(pid):
    """In the order in which they were made; the first of a session's process is the sandbox's PID 1."""
    try:
        return [int(each) for each in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):  # it has ended, before or while this reads
        return []


def is_stopped(pid):
    return state_of(pid) == "T"


def blocks(pid, number):
    """Whether a process holds a signal back."""
    blocked = next(line for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigBlk:"))
    return bool(int(blocked.split()[1], 16) >> (number - 1) & 1)


def name_of(pid):
    """As in /proc/PID/comm; None if the process has ended, before or while this reads."""
    try:
        with open(f"/proc/{pid}/comm") as comm:
            return comm.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None


class SessionTest(SbxTest):
    def setUp(self):
        super().setUp()
        self.pids = []
        self.addCleanup(self.end_sessions)

    def end_sessions(self):
        self.run_sbx("session", "stop", "--all")
        left = [pid for pid in self.pids if process_lives(pid)]
        for pid in left:
            os.kill(pid, 9)
        sbxtest.kill_orphans()
        self.assertEqual(left, [], "a session's process outlived `session stop --all`")

    def fits(self, schema, answer):
        """Where the machine has no checker, nothing is compared."""
        if jsonschema is None:
            return
        checker = jsonschema.Draft202012Validator(json.loads((SOURCE / f"schema/{schema}.json").read_text()))
        self.assertEqual([f"{list(error.path)}: {error.message}" for error in checker.iter_errors(answer)], [], answer)

    def directory(self):
        """Where sessions are when XDG_RUNTIME_DIR is not set."""
        return self.home / ".local/state/sbx/sessions"

    def run_sbx(self, *words, stdin=None, cwd=None, env=None, timeout=HANG, program=SBX, **options):
        process = sbxtest.start([program, *map(str, words)], env=self.environment(env), cwd=cwd or self.work,
                                stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        try:
            out, err = process.communicate(stdin, timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.fail(f"sbx did not end within {timeout} s: {words}\nstdout {out!r}\nstderr {err!r}")
        return Answer(words, process.returncode, out, err)

    def sbx_session(self, *words, **options):
        return self.run_sbx("session", *words, **options)

    def start_session(self, *options, name="work", **rest):
        """Starts a session and returns what `start --json` says."""
        if os.environ.get("SBX_EMULATED") and "--timeout" not in options:
            options = (*options, "--timeout", AMPLE)
        started = self.sbx_session("start", "--json", *options, *([name] if name else []), **rest)
        self.assertEqual(started.status, 0, started)
        facts = started.json
        self.pids.append(facts["pid"])
        sbxtest.known_children().add(facts["pid"])  # it outlives the command by design
        return facts

    def exec_json(self, *words, name="work", options=(), **rest):
        """One call with its record."""
        return self.sbx_session("exec", name, "--json", *options, *words, **rest)

    def exec_ok(self, *words, name="work", **rest):
        answer = self.sbx_session("exec", name, *words, **rest)
        self.assertEqual(answer.status, 0, answer)
        return answer

    def detach(self, *words, name="work", options=()):
        answer = self.sbx_session("exec", name, "-d", *options, *words)
        self.assertEqual(answer.status, 0, answer)
        return int(answer.out)

    def stop_session(self, name="work"):
        answer = self.sbx_session("stop", name)
        self.assertEqual(answer.status, 0, answer)

    def nothing_is_left(self):
        """But the note for the next command that names a session, .NAME."""
        left = [each.name for each in self.directory().iterdir()] if self.directory().exists() else []
        self.assertEqual([name for name in left if not name.startswith(".")], [])
        for pid in self.pids:
            self.assertFalse(process_lives(pid))
        self.assertEqual(sbxtest.orphans_after(sbxtest.GONE_WITHIN_SECONDS), [])

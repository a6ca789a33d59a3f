"""Drives the built sbx from outside: runs it, reads its record, and checks what it leaves on the host."""

import ctypes
import fcntl
import functools
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from call_numbers import SYSCALLS
from harness import HANG, SOURCE, main, turns  # SOURCE and main are for the scripts that import this

SBX = os.environ.get("SBX", "sbx")
WITH_FAULTS = os.environ.get("SBX_WITH_FAULTS")  # the same with hooks (tests/faults); the shipped binary has none
PROBE = os.environ.get("SBX_PROBE", "probe")
IS_ROOT = os.geteuid() == 0

# Promised is one second after the end of a run, which a busy machine can't show: what is left behind stays for longer than this.
# A test that expects something to be left waits less.
GONE_WITHIN_SECONDS = float(os.environ.get("SBX_GONE_WITHIN", 30))

PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans():
    """Whatever a dead sbx leaves behind becomes a child of this process, so our list of children shows all of it."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


adopt_orphans()

# By design sbx keeps signals ignored that the caller ignores (nohup); these tests need signals that arrive.
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)

_known_children = set()


def known_children():
    """Pids of children of this process that no sbx left behind: a test that forks adds its own."""
    return _known_children


@functools.lru_cache(maxsize=None)
def refusal_of_namespaces():
    """Why no test of the tier `namespaces` can run here; None if they can. Another program is asked, not sbx: where sbx alone fails,
    its tests fail."""
    done = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "true"], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"needs namespaces and a fresh /proc, which this machine refuses ({done.stderr.strip()})"


def binary_for(env):
    """The shipped binary, or the one with hooks where the environment asks for a hook."""
    tests_own = ("SBX_TEST_USER", "SBX_TEST_NAME")
    if not any(name.startswith("SBX_TEST_") for name in {**os.environ, **(env or {})} if name not in tests_own):
        return SBX
    if not WITH_FAULTS:
        raise unittest.SkipTest("SBX_WITH_FAULTS names no binary with hooks")
    return WITH_FAULTS


class Ended:
    """A finished sbx: its exit status, its output, and its record if requested."""

    def __init__(self, arguments, status, out, err, record):
        self.arguments = arguments
        self.status = status
        self.out = out
        self.err = err
        self.record = record

    @property
    def outcome(self):
        return self.record["outcome"]

    @property
    def verdict(self):
        """(status, reason): the record's cause of the end."""
        return self.outcome["status"], self.outcome["reason"]

    @property
    def text(self):
        """The program's output, as far as the record contains it."""
        return self.record["stdout"]["text"]

    @property
    def denied(self):
        """The denials by name: {"ptrace": count}."""
        return {denial["what"]: denial["count"] for denial in self.record["denials"]}

    def __str__(self):
        shown = f"stdout {(self.out or b'')[:2000]!r}"
        if self.record:
            shown = json.dumps({key: self.record.get(key) for key in ("outcome", "limits_met", "denials", "degraded", "usage")})
            shown += "".join(f"\n{name} {json.dumps(self.record[name])[:2000]}" for name in ("stdout", "stderr"))
        return f"{' '.join(map(str, self.arguments))}\nexit status {self.status}\nstderr {self.err!r}\n{shown}"


class Asked:
    """The answer of a probe: `worked`, or `errno` with the kernel's refusal; `lines` is the output before it."""

    def __init__(self, status, text, ended=None):
        self.status = status
        self.ended = ended
        self.lines = text.splitlines()
        self.worked = status == 0
        self.refused = status == 1
        last = self.lines[-1] if self.lines else ""
        self.errno = last.split()[1] if last.startswith("refused ") else None

    def __str__(self):
        return f"probe status {self.status}, printed {self.lines!r}\n{self.ended or ''}"


def children():
    """Processes whose parent is this one, by pid."""
    mine = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as stat:
                    if int(stat.read().rpartition(b")")[2].split()[1]) == os.getpid():
                        mine.append(int(entry))
            except (OSError, IndexError):
                continue
    return mine


def orphans_after(seconds):
    """Processes that a finished sbx left behind and that still exist after the turns of `seconds`; reaps dead ones."""
    for _ in turns(seconds):
        left = [pid for pid in children() if pid not in _known_children]
        for pid in left:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass
        if not left:
            break
    return left


def kill_orphans():
    """Kills what a failed test's runs left behind; returns the pids."""
    left = orphans_after(0.0)
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    orphans_after(5.0)
    return left


# Scratch directories of tests, benchmarks and the Python module.
_OF_OTHERS = re.compile(r"sbx-([a-z-]+-)?[A-Za-z0-9_]{6,8}$|sbx-cells-matplotlib-\d+$")


def mounts():
    return pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")


def host_state():
    """What a run could leave behind besides processes: mounts, directories, network interfaces, IPC objects."""
    state = {"mounts": set(mounts().splitlines())}
    for directory in ("/tmp", "/var/tmp", "/dev/shm", "/run"):
        state[directory] = {name for name in os.listdir(directory) if name.startswith((".sbx", "sbx")) and not _OF_OTHERS.match(name)}
    state["networks"] = set(os.listdir("/sys/class/net")) if os.path.isdir("/sys/class/net") else set()
    for kind in ("shm", "sem", "msg"):
        state[kind] = set(pathlib.Path(f"/proc/sysvipc/{kind}").read_text().splitlines())
    return state


def left_since(before):
    """What came to the host since then, by kind. What went was not this test's: another program took it away."""
    now = host_state()
    return {kind: sorted(now[kind] - before[kind]) for kind in now if now[kind] - before[kind]}


def groups():
    """sbx's own control groups, wherever the caller's are."""
    return {os.path.join(directory, name) for directory, names, _ in os.walk("/sys/fs/cgroup") for name in names if name.startswith("sbx-")}


def dead_groups_since(before):
    """Those of other programs come and go, and their supervisors hold them; a group that nobody has locked is left behind."""
    return sorted(group for group in groups() - before if is_unlocked(group))


def is_unlocked(group):
    """False too if it is gone."""
    try:
        directory = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(directory)


def init_of(process):
    """The pid, on the host, of PID 1 of the sandbox that this sbx supervises."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                status = pathlib.Path(f"/proc/{entry}/status").read_text()
            except OSError:
                continue
            if f"\nPPid:\t{process.pid}\n" in status and "\nNSpid:\t" in status and status.split("\nNSpid:\t")[1].split("\n")[0].endswith("\t1"):
                return int(entry)
    return None


def under_a_parent(command, **options):
    """Starts a process that starts the command and waits for it; that process and the command's pid."""
    code = "import subprocess, sys; p = subprocess.Popen(sys.argv[1:]); print(p.pid, flush=True); p.wait()"
    parent = start([sys.executable, "-c", code, *map(str, command)], stdout=subprocess.PIPE, **options)
    return parent, int(parent.stdout.readline())


def start(command, **options):
    """Popen whose process doesn't count as left behind by sbx."""
    process = subprocess.Popen(command, **options)
    _known_children.add(process.pid)
    return process


class SbxTest(unittest.TestCase):
    """A scratch directory, a home and a workspace for each test; a run must leave nothing behind."""

    maxDiff = None
    NEEDS_NAMESPACES = True  # False: the class has something to show where a container refuses them

    def setUp(self):
        if self.NEEDS_NAMESPACES and (refusal := refusal_of_namespaces()):
            self.skipTest(refusal)
        self.tmp = pathlib.Path(tempfile.mkdtemp(prefix="sbx-test-"))
        self.addCleanup(shutil.rmtree, self.tmp, ignore_errors=True)
        self.home = self.tmp / "home"
        self.work = self.tmp / "work"
        self.home.mkdir()
        self.work.mkdir()

    def environment(self, extra=None):
        base = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home), "LANG": "C.UTF-8", "TMPDIR": str(self.tmp)}
        base.update({name: value for name, value in os.environ.items() if name.startswith(("SBX_TEST_", "ASAN_", "UBSAN_"))})
        base.update(extra or {})
        return {name: value for name, value in base.items() if value is not None}

    def command(self, *arguments, json_record=True, env=None):
        return [binary_for(env), "run", *(["--json"] if json_record else []), *map(str, arguments)]

    def start_sbx(self, *arguments, json_record=True, env=None, cwd=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        command = self.command(*arguments, json_record=json_record, env=env)
        return start(command, env=self.environment(env), cwd=cwd or self.work, **options)

    def finish(self, process, arguments=(), data=None, timeout=HANG, json_record=True):
        try:
            out, err = process.communicate(data, timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.fail(f"sbx did not end within {timeout} s: {arguments}\nstdout {out!r}\nstderr {err!r}")
        record = None
        if json_record and out:
            try:
                record = json.loads(out)
            except ValueError:
                self.fail(f"no record on stdout: {arguments}\nstdout {out!r}\nstderr {err!r}")
        ended = Ended(arguments, process.returncode, out, err, record)
        if orphans_after(GONE_WITHIN_SECONDS):
            self.fail(f"processes are left of the run: {kill_orphans()}\n{ended}")
        return ended

    def sbx(self, *arguments, stdin=None, timeout=HANG, json_record=True, **options):
        """Runs `sbx run --json ARGUMENTS` to its end; nothing of it may be left a second later."""
        if stdin is not None:
            options["stdin"] = subprocess.PIPE
        process = self.start_sbx(*arguments, json_record=json_record, **options)
        return self.finish(process, arguments, data=stdin, timeout=timeout, json_record=json_record)

    def python(self, code, *arguments, options=(), **rest):
        """Runs Python code under sbx; it must have been started."""
        ended = self.sbx(*options, "--lang", "python", "-c", code, *arguments, **rest)
        self.assertIsNotNone(ended.record, ended)
        self.assertNotEqual(ended.outcome["status"], "setup-failed", ended)
        return ended

    def inside(self, *question, options=(), **rest):
        """Runs a probe inside a sandbox."""
        ended = self.sbx(*options, PROBE, *question, **rest)
        self.assertIsNotNone(ended.record, ended)
        self.assertIn(ended.outcome["status"], ("exited", "signaled", "denied", "over-budget"), ended)
        return Asked(ended.outcome["exit_code"], ended.text or "", ended)

    def outside(self, *question, wrapper=(), timeout=HANG, **options):
        """Runs the same probe on the host; `wrapper` is a command that starts it."""
        process = start([*wrapper, PROBE, *map(str, question)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, cwd=self.work, **options)
        out, err = process.communicate(timeout=timeout)
        return Asked(process.returncode, out.decode(errors="replace"), err)

    def on_terminal(self, command):
        """Runs a command with a controlling terminal of its own; returns its exit status and what the terminal
        showed."""
        pid, master = pty.fork()
        if pid == 0:
            os.chdir(self.work)
            os.execve(command[0], [str(word) for word in command], self.environment())
        _known_children.add(pid)
        text = b""
        while True:
            try:
                block = os.read(master, 65536)
            except OSError:  # EIO: the last user of the terminal has closed it
                break
            if not block:
                break
            text += block
        os.close(master)
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status), text.decode(errors="replace")

    def refuses(self, asked, errno=None):
        self.assertTrue(asked.refused, asked)
        if errno is not None:
            self.assertEqual(asked.errno, errno, asked)
        return asked

    def works(self, asked):
        self.assertTrue(asked.worked, asked)
        return asked

    def exited(self, ended, code=0):
        self.assertEqual((*ended.verdict, ended.outcome["exit_code"]), ("exited", None, code), ended)
        self.assertEqual(ended.status, code, ended)
        return ended

    def over_budget(self, ended, reason, status):
        self.assertEqual(ended.verdict, ("over-budget", reason), ended)
        self.assertEqual(ended.status, status, ended)
        return ended

    def could_not(self, ended, *words):
        """Expects exit status 125 before anything ran, and a message with these words."""
        self.assertEqual(ended.status, 125, ended)
        if ended.record is not None:
            self.assertEqual(ended.outcome["status"], "setup-failed", ended)
        said = ended.err.decode(errors="replace")
        for word in words:
            self.assertIn(word, said, ended)
        return ended

    def write(self, name, text, mode=0o644, directory=None):
        path = (directory or self.work) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, bytes):
            path.write_bytes(text)
        else:
            path.write_text(text)
        path.chmod(mode)
        return path

    def policy(self, text, name="test-policy.toml"):
        """A policy file outside the workspace that extends `default`."""
        head = "" if "extends" in text else 'extends = "default"\n'
        return self.write(name, f'schema = 1\nname = "test-policy"\n{head}{text}', directory=self.tmp)


def tmpfs_takes_user_attributes():
    """Since Linux 6.6; without them neither an overlay's upper layer nor a copied file with attributes can be there."""
    descriptor = os.memfd_create("attributes")
    try:
        os.setxattr(descriptor, "user.sbx", b"1")
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


def tmpfs_takes_id_maps():
    """Asks the kernel whether a tmpfs mount can be idmapped (since Linux 6.3); for root."""
    holder = subprocess.Popen(["unshare", "--user", "--map-root-user", "sh", "-c", "echo; read -r line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    holder.stdout.readline()
    try:
        with open(f"/proc/{holder.pid}/ns/user", "rb") as space:
            context = _libc.syscall(SYSCALLS["fsopen"], b"tmpfs", 1)
            assert _libc.syscall(SYSCALLS["fsconfig"], context, 6, None, None, 0) == 0, os.strerror(ctypes.get_errno())
            tree = _libc.syscall(SYSCALLS["fsmount"], context, 1, 0)
            wanted = (ctypes.c_uint64 * 4)(0x100000, 0, 0, space.fileno())  # MOUNT_ATTR_IDMAP
            done = _libc.syscall(SYSCALLS["mount_setattr"], tree, b"", 0x1000, ctypes.byref(wanted), 32)  # AT_EMPTY_PATH
            os.close(tree)
            os.close(context)
            return done == 0
    finally:
        holder.communicate()


def stop(processes):
    for process in processes:
        process.kill()
        process.wait()



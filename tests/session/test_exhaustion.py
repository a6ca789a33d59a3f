"""What calls of a session share and can use up: sbx keeps its own room, and says truthfully what is used up."""

import shutil
import subprocess

import sessiontest
import sbxtest
from flight import FLIGHT, usual_files
from harness import HANG, wait_until
from sessiontest import SBX, SessionTest

CHILDREN = """
import os, signal
count = 0
try:
    while count < 200:
        if os.fork() == 0:
            signal.pause()
        count += 1
except OSError:
    pass
print(count)
"""
ZOMBIES = """
import os
try:
    for _ in range(500):
        if os.fork() == 0:
            os._exit(0)
except OSError as error:
    print(type(error).__name__)
"""


class Processes(SessionTest):
    def let_sleep(self, count):
        """In calls of their own; all of them have begun, because a call that begins takes a process from those before it."""
        for _ in range(count):
            self.detach("--", "sleep", "1000")
        # An init that waits for the next call may be made at any time.
        wait_until(lambda: self.sbx_session("stats", "work", "--json").json["processes"] == count, f"it counts {count} processes of programs")

    def test_one_count_for_all_calls(self):
        """As many as in a run; a program that sleeps in another call takes its part."""
        self.start_session("--processes", "10", "-p", "python", "--workspace", ".:empty")
        alone = int(self.exec_ok("--lang", "python", "-c", CHILDREN).out)
        ran = self.run_sbx("run", "--processes", "10", "-p", "python", "--workspace", ".:empty", "--lang", "python", "-c", CHILDREN)
        self.assertEqual((alone, int(ran.out)), (9, 9))
        self.let_sleep(2)
        self.assertEqual(int(self.exec_ok("--lang", "python", "-c", CHILDREN).out), 7)

    def test_what_used_them_up_is_named_and_a_restart_ends_it(self):
        self.start_session("--processes", "40", "-p", "python", "--workspace", ".:empty")
        self.assertIn("BlockingIOError", self.sbx_session("eval", "work", "-c", ZOMBIES).out)
        self.assertEqual(self.exec_ok("echo", "lives").out, "lives\n")
        forks = ("sh", "-c", "true & wait $! && true | true")
        said = self.sbx_session("exec", "work", "--", *forks)
        self.assertNotEqual(said.status, 0, said)
        self.assertIn("limits.processes of the session (40) is used up: ", said.err)
        self.assertIn(" belong to context python; sbx session restart work python ends them", said.err)
        self.assertNotIn("has ended", said.err)
        self.assertEqual(self.sbx_session("restart", "work", "python").status, 0)
        self.assertEqual(self.exec_ok("--", *forks).err, "")

    def test_a_call_that_cannot_begin_says_why(self):
        """Where even the program can't be started, the error has a code of its own; the twin is the call after the restart."""
        self.start_session("--processes", "3", "-p", "shell", "--workspace", ".:empty")
        self.let_sleep(3)
        said = self.sbx_session("exec", "work", "--", "sh", "-c", "true & wait $!")
        self.assertNotEqual(said.status, 0, said)
        self.assertIn("limits.processes of the session (3) is used up", said.err)
        if "error[" in said.err:
            self.assertIn("session-processes-used-up", said.err)

    def test_stats_counts_no_process_of_sbx(self):
        self.start_session("-p", "python", "--workspace", ".:empty")
        self.let_sleep(1)
        self.exec_ok("true")
        wait_until(lambda: self.sbx_session("stats", "work", "--json").json["processes"] == 1, "it counts the one process of a program")


class Descriptors(SessionTest):
    def test_in_flight_they_stop_no_call(self):
        self.start_session("-p", "python", "--workspace", ".:empty", preexec_fn=usual_files)
        hostile = sbxtest.start([SBX, "session", "exec", "work", "--lang", "python", "-c", FLIGHT], env=self.environment(), cwd=self.work,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=usual_files)
        self.assertIn(b"ETOOMANYREFS", hostile.stdout.readline())
        self.assertEqual(self.exec_ok("echo", "here", preexec_fn=usual_files).out, "here\n")
        self.assertEqual(self.sbx_session("eval", "work", "-c", "print(6 * 7)", preexec_fn=usual_files).out, "42\n")
        self.start_session(name="other", preexec_fn=usual_files)
        self.assertEqual(self.exec_ok("echo", "there", name="other", preexec_fn=usual_files).out, "there\n")
        hostile.communicate(b"", timeout=HANG)


class Tracing(SessionTest):
    """The policy "agent" allows ptrace(2), which takes a number of the caller's PID namespace."""

    TRACE_ALL = """
import ctypes, errno, os, signal
libc = ctypes.CDLL(None, use_errno=True)
child = os.fork()
if child == 0:
    signal.pause()
reached = []
for number in range(1, 2000):
    ctypes.set_errno(0)
    if number != os.getpid() and libc.ptrace(0x4206, number, 0, 0) == 0:
        reached.append(number)
    elif number == 1:
        print(errno.errorcode[ctypes.get_errno()])
print(reached == [child])
os.kill(child, signal.SIGKILL)
"""

    def test_other_calls_and_contexts_are_out_of_reach(self):
        self.start_session("-p", "agent", "--workspace", ".:empty")
        self.detach("--", "sleep", "1000")
        self.assertEqual(self.sbx_session("eval", "work", "-c", "secret = 7").status, 0)
        for answer in (self.exec_ok("--lang", "python", "-c", self.TRACE_ALL).out,
                       self.sbx_session("eval", "work", "--context", "other", "-c", self.TRACE_ALL).out):
            init, own = answer.split()
            self.assertIn(init, ("EPERM", "ESRCH"))
            self.assertEqual(own, "True", "it reaches its own child, and nothing else")
        self.assertEqual(self.sbx_session("eval", "work", "-c", "secret").out, "7\n")


class CompiledPrograms(SessionTest):
    def build_directories(self):
        return self.exec_ok("sh", "-c", "ls -A /tmp | grep sbx-build || true").out

    def code(self, text):
        return '#include <stdio.h>\nint main(void) { puts("%s"); return 0; }' % text

    def test_a_program_compiled_meanwhile_is_not_taken_for_it(self):
        """The first call has written its source, and waits before it compiles that, while the second compiles and runs."""
        if shutil.which("cc") is None:
            self.skipTest("cc is not installed")
        self.start_session("-p", "python", "--workspace", ".:empty")
        self.exec_ok("sh", "-c", r"""mkfifo /tmp/gate; printf '#!/bin/sh\n[ -e /tmp/passed ] || { : >/tmp/passed; read -r end </tmp/gate; }\nexec "$@"\n' >/tmp/wrapper
                                    chmod +x /tmp/wrapper""")
        first = sbxtest.start([SBX, "session", "exec", "work", "--env", "CFLAGS=-wrapper /tmp/wrapper", "--lang", "c", "-c", self.code("first")],
                              env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        gate = sbxtest.start([SBX, "session", "exec", "work", "--", "sh", "-c", "exec 3>/tmp/gate; echo open; read end"], env=self.environment(),
                             cwd=self.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(gate.stdout.readline(), b"open\n")
        self.assertEqual(self.exec_ok("--lang", "c", "-c", self.code("second")).out, "second\n")
        gate.communicate(b"\n", timeout=HANG)
        out, err = first.communicate(timeout=HANG)
        self.assertEqual((first.returncode, out), (0, b"first\n"), err)
        self.assertEqual(self.build_directories(), "")

    def test_nothing_stays_of_a_call_that_is_killed(self):
        if shutil.which("cc") is None:
            self.skipTest("cc is not installed")
        self.start_session("-p", "python", "--workspace", ".:empty")
        ended = self.sbx_session("exec", "work", "--timeout", "3s", "--lang", "c", "-c",
                                 '#include <stdlib.h>\n#include <unistd.h>\nint main(void) { system("mkdir -p $(dirname $(readlink /proc/$PPID/exe))/a/b"); for (;;) pause(); }')
        self.assertEqual(ended.status, 124, ended)
        self.assertEqual(self.build_directories(), "")

    def test_planted_names_do_not_matter(self):
        """In the place of old: a link, a directory and a program that answers for all."""
        if shutil.which("cc") is None:
            self.skipTest("cc is not installed")
        self.start_session("-p", "python", "--workspace", ".:empty")
        self.exec_ok("sh", "-c", "mkdir /tmp/trap && printf '#!/bin/sh\\necho trap\\n' >/tmp/trap/program && chmod +x /tmp/trap/program && ln -s trap /tmp/.sbx-build")
        self.assertEqual(self.exec_ok("--lang", "c", "-c", self.code("own")).out, "own\n")
        self.assertEqual(self.exec_ok("ls", "/tmp/trap").out, "program\n")

    def test_slow_two_at_once(self):
        """20 pairs of each language that is installed."""
        programs = {"c": ("cc", self.code), "c++": ("c++", self.code),
                    "go": ("go", lambda text: 'package main\nfunc main() { println("%s") }' % text),
                    "java": ("javac", lambda text: 'class A { public static void main(String[] a) { System.out.println("%s"); } }' % text)}
        self.start_session("-p", "agent", "--workspace", ".:empty", "--set", 'limits.wall_time="5m"')
        for language, (compiler, program) in programs.items():
            if shutil.which(compiler, path=self.environment()["PATH"]) is None:
                continue
            for pair in range(20):
                both = [sbxtest.start([SBX, "session", "exec", "work", "--lang", language, "-c", program(f"{pair} {each}")], env=self.environment(),
                                      cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for each in "ab"]
                answers = [process.communicate(timeout=HANG)[0].decode() for process in both]
                self.assertEqual(answers, [f"{pair} a\n", f"{pair} b\n"], language)
        self.assertEqual(self.build_directories(), "")


if __name__ == "__main__":
    sessiontest.main()

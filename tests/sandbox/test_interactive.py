"""-i: an interactive program in the sandbox's own terminal: line editing, Ctrl-C, Ctrl-D, window size."""

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import termios
import time

import sbxtest
from sbxtest import SbxTest

UP, LEFT, BACKSPACE, CTRL_A, CTRL_C, CTRL_D, CTRL_Z = "\x1b[A", "\x1b[D", "\x7f", "\x01", "\x03", "\x04", "\x1a"
PATIENCE = 20.0  # seconds for one answer; only a failure takes that long


class Session:
    """A person at a terminal of 80x24 in which sbx runs."""

    def __init__(self, test, command):
        self.test = test
        self.text = ""
        self.seen = 0
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(test.work)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            os.execve(command[0], [str(word) for word in command], test.environment({"TERM": "xterm"}))
        sbxtest._known_children.add(self.pid)
        test.addCleanup(self.close)

    def close(self):
        if self.master is not None:
            os.close(self.master)
            self.master = None

    def resize(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, deadline):
        """More text; empty at the end."""
        ready, _, _ = select.select([self.master], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            self.test.fail(f"no answer within {PATIENCE} s; the terminal showed {self.text!r}")
        try:
            block = os.read(self.master, 65536)
        except OSError:  # EIO: the last user of the terminal has closed it
            return False
        self.text += block.decode(errors="replace")
        return bool(block)

    def expect(self, pattern):
        """Waits until the terminal shows it, after the previous match."""
        deadline = time.monotonic() + PATIENCE
        while True:
            found = re.compile(pattern).search(self.text, self.seen)
            if found:
                self.seen = found.end()
                return found
            if not self.read(deadline):
                self.test.fail(f"{pattern!r} was not shown: {self.text!r}")

    def type(self, keys):
        os.write(self.master, keys.encode())

    def line(self, keys):
        self.type(keys + "\r")

    def end(self):
        """The exit status, when nothing is left to show."""
        deadline = time.monotonic() + PATIENCE
        while self.read(deadline):
            pass
        self.close()
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)


class Interactive(SbxTest):
    def session(self, *command):
        if shutil.which(command[0], path=self.environment()["PATH"]) is None:
            self.skipTest(f"{command[0]} is not installed")
        return Session(self, self.command("-q", "-i", "--", *command, json_record=False))

    def test_an_interrupted_program_gets_no_hint_about_files(self):
        self.write("file", "")
        hint = "exists here but not in the sandbox"
        for code, keys, status in (("echo ready; exec sleep 60 || cat file", CTRL_C, 130), ("echo ready; read answer; cat file", "\r", 1)):
            session = Session(self, self.command("-i", "--", "sh", "-c", code, json_record=False))
            session.expect("ready")
            session.type(keys)
            self.assertEqual(session.end(), status, session.text)
            self.assertEqual(hint in session.text, status == 1, session.text)

    def test_python(self):
        session = self.session("python3", "-q")
        session.expect(">>> ")
        session.line("1300 + 35" + LEFT + BACKSPACE + "4")
        session.expect("1345")  # 1300 + 45
        session.expect(">>> ")
        session.type(UP)
        session.expect(r"1300 \+ 45")
        session.line("0")
        session.expect("1750")
        session.line("import os, time; tuple(os.get_terminal_size())")
        session.expect(r"\(80, 24\)")
        session.resize(101, 33)
        session.line("tuple(os.get_terminal_size())")
        session.expect(r"\(101, 33\)")
        session.line("print('wait' + 'ing') or [time.sleep(0.01) for _ in iter(int, 1)]")
        session.expect("[\r\n]waiting")
        session.type(CTRL_C)
        session.expect("KeyboardInterrupt")
        session.expect(">>> ")
        session.line("input('name' + ': ')")
        session.expect("name: $")
        session.line("grün")
        session.expect("'grün'")
        session.expect(">>> ")
        session.type(CTRL_D)
        self.assertEqual(session.end(), 0)

    def test_node(self):
        session = self.session("node")
        session.expect("> ")
        session.type("1300 + 35")
        session.expect(r"1300 \+ 35")
        session.type(LEFT + BACKSPACE)
        session.expect(r"1300 \+ 5")
        session.type("4")
        session.expect(r"1300 \+ 45")
        session.line("")
        session.expect("\n.*1345")
        session.expect("> ")
        session.line("process.stdout.columns + 'x' + process.stdout.rows")
        session.expect("80x24")
        session.expect("> ")
        session.resize(101, 33)
        session.expect("> ")  # redrawn
        session.line("process.stdout.columns + 'x' + process.stdout.rows")
        session.expect("101x33")
        # Not a busy loop: node itself loses a Ctrl-C that arrives when a line starts to run (one in ten, also without
        # sbx).
        session.line("setTimeout(() => console.log('wait' + 'ing'), 1); await new Promise(() => {})")
        session.expect("[\r\n]waiting")
        session.type(CTRL_C)
        session.expect("interrupted")
        session.expect("> ")
        session.type(CTRL_D)
        self.assertEqual(session.end(), 0)

    def test_bash(self):
        session = self.session("bash", "--norc", "-i")
        session.expect(r"\$ ")
        session.line("eho $((6 * 7))x" + CTRL_A + "\x1b[Cc")  # Ctrl-A, right, c: echo
        session.expect("[\r\n]42x")
        session.line("stty size; echo $TERM $-; tty")
        session.expect("[\r\n]24 80\r\nxterm .*i.*m.*\r\n/dev/pts/0")
        session.resize(101, 33)
        session.line("stty size")
        session.expect("[\r\n]33 101")
        session.line("sh -c 'echo wait\"ing\"; read x'")
        session.expect("[\r\n]waiting")
        session.type(CTRL_C)
        session.expect(r"\$ ")
        session.line("echo status $?")
        session.expect("[\r\n]status 130")
        session.line("sh -c 'echo wait\"ing\"; read x'")
        session.expect("[\r\n]waiting")
        session.type(CTRL_Z)
        session.expect("Stopped")
        session.line("kill -9 %1; wait; jobs; echo none 'left'")
        session.expect("[\r\n]none left")
        session.expect(r"\$ ")
        session.line("echo wait'ing'; cat | tr a-z A-Z")
        session.expect("[\r\n]waiting")  # the shell gets what is typed before
        session.line("shout")
        session.type(CTRL_D)
        session.expect("[\r\n]SHOUT")
        session.expect(r"\$ ")
        session.line("exit 3")
        self.assertEqual(session.end(), 3)

    def test_end_of_input_ends_a_shell(self):
        session = self.session("bash", "--norc", "-i")
        session.expect(r"\$ ")
        session.type(CTRL_D)
        self.assertEqual(session.end(), 0)

    def test_script_with_a_terminal_reads_what_is_typed(self):
        self.write("job.py", "print('Hello, ' + input('who? '))\n")
        session = Session(self, self.command("-q", "-i", "-p", "python", "job.py", json_record=False))
        session.expect(r"who\? $")
        session.line("Ada")
        session.expect("\nHello, Ada")
        self.assertEqual(session.end(), 0)


if __name__ == "__main__":
    sbxtest.main()

"""A person at a terminal, for tests of what sbx does there."""

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

import sbxtest
from harness import HANG

UP, LEFT, BACKSPACE, TAB, CTRL_A, CTRL_C, CTRL_D, CTRL_R, CTRL_Z = "\x1b[A", "\x1b[D", "\x7f", "\t", "\x01", "\x03", "\x04", "\x12", "\x1a"


class Person:
    """At a terminal of 80x24, in which the command runs."""

    PATIENCE = HANG  # seconds for one answer

    def __init__(self, test, command, terminal="xterm", **environment):
        self.test = test
        self.raw = b""
        self.seen = 0
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(test.work)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            os.execve(command[0], [str(word) for word in command], test.environment({"TERM": terminal, **environment}))
        sbxtest.known_children().add(self.pid)
        test.addCleanup(self.close)

    def close(self):
        if self.master is not None:
            os.close(self.master)
            self.master = None

    @property
    def text(self):
        return self.raw.decode(errors="replace")

    def resize_at_prompt(self, prompt, columns, rows):
        """Before its prompt readline reads the size and writes the same back: a change between the two is lost, without sbx too."""
        self.expect(prompt)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, deadline):
        """More text; False at the end."""
        ready, _, _ = select.select([self.master], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            self.test.fail(f"no answer within {self.PATIENCE} s; the terminal showed {self.raw!r}")
        try:
            block = os.read(self.master, 65536)
        except OSError:  # EIO: the last user of the terminal has closed it
            return False
        self.raw += block
        return bool(block)

    def expect(self, pattern):
        """Waits until the terminal shows it, after the previous match."""
        deadline = time.monotonic() + self.PATIENCE
        while True:
            found = re.compile(pattern).search(self.text, self.seen)
            if found:
                self.seen = found.end()
                return found
            if not self.read(deadline):
                self.test.fail(f"{pattern!r} was not shown: {self.raw!r}")

    def type(self, keys):
        os.write(self.master, keys.encode())

    def line(self, keys):
        self.type(keys + "\r")

    def end(self):
        """The exit status, when nothing is left to show."""
        deadline = time.monotonic() + self.PATIENCE
        while self.read(deadline):
            pass
        self.close()
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)

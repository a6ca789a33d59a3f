#!/usr/bin/env python3
"""check_load.py UNDER-LOAD: however that program ends, the load that it makes ends too, and its status is the command's."""

import ctypes
import os
import signal
import subprocess
import sys

PR_SET_CHILD_SUBREAPER = 36


def load_that_is_killed(program, number):
    """The wait statuses of the processes that the program leaves when a signal kills it during its command."""
    with subprocess.Popen([program, "sh", "-c", "echo $$; exec sleep 600"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        command = int(running.stdout.readline())
        running.send_signal(number)
    os.kill(command, signal.SIGKILL)
    left = []
    while True:
        try:
            left.append(os.wait()[1])  # of processes without a parent: ours now
        except ChildProcessError:
            return left


def main():
    program = sys.argv[1]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGKILL, signal.SIGHUP):
        left = load_that_is_killed(program, number)
        assert len(left) > 2, f"only {len(left)} processes made the load"  # and the command
        assert set(left) == {signal.SIGKILL}, left
    for script, status in (("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 128 + signal.SIGTERM)):
        done = subprocess.run([program, "sh", "-c", script], stderr=subprocess.DEVNULL, check=False)
        assert done.returncode == status, (script, done)
        try:
            os.wait()
            assert False, f"a process is left after {script}"
        except ChildProcessError:
            pass


if __name__ == "__main__":
    main()

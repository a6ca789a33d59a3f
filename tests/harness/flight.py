"""Descriptors in flight in unix sockets, of which the kernel has one count for a user."""

import resource

# Leaves as many descriptors in flight as the kernel lets it, and waits.
FLIGHT = """
import array, errno, os, socket, sys
held, pairs, count = os.open("/dev/null", os.O_RDONLY), [], 0
try:
    while True:
        pairs.append(socket.socketpair())
        for _ in range(8):
            pairs[-1][0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [held] * 253))])
            count += 253
except OSError as error:
    print(count, errno.errorcode[error.errno], flush=True)
sys.stdin.read()
"""


def usual_files():
    """The soft limit that logins have; the hard one stays."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def few_files():
    """No more than a program inside has by default: sbx can't raise its own limit."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))

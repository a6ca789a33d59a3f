"""A seccomp filter for a test's own process and its children: simulates a machine that refuses these calls."""

import ctypes
import os
import struct

from call_numbers import SYSCALLS

EPERM, EACCES, ENOSYS = 1, 13, 38
NAMESPACE_FLAGS = 0x7E020000  # CLONE_NEW*: mount, cgroup, uts, ipc, user, pid, net


def refuse_calls(answers, namespaces_by_clone=None):
    """Installs a filter in this process: {call: errno}; and an errno for clone(2) with namespaces."""
    load = lambda offset: struct.pack("HBBI", 0x20, 0, 0, offset)  # noqa: E731
    jump = lambda code, value, yes, no: struct.pack("HBBI", code, yes, no, value)  # noqa: E731
    answer = lambda errno: struct.pack("HBBI", 0x06, 0, 0, 0x00050000 | errno)  # noqa: E731
    program = [load(0)]
    for name, errno in answers.items():
        program += [jump(0x15, SYSCALLS[name], 0, 1), answer(errno)]
    if namespaces_by_clone:
        program += [jump(0x15, SYSCALLS["clone"], 0, 3), load(16), jump(0x45, NAMESPACE_FLAGS, 0, 1), answer(namespaces_by_clone)]
    program.append(struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000))
    text = ctypes.create_string_buffer(b"".join(program))
    libc = ctypes.CDLL(None, use_errno=True)
    head = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(text))
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, head, 0, 0) != 0:
        os._exit(99)

"""A seccomp filter for a test's own process and its children: simulates a machine that refuses these calls."""

import ctypes
import os
import struct

EPERM, EACCES, ENOSYS = 1, 13, 38
NAMESPACE_FLAGS = 0x7E020000  # CLONE_NEW*: mount, cgroup, uts, ipc, user, pid, net
CALLS = {"clone": 56, "clone3": 435, "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "fsopen": 430,
         "fsconfig": 431, "fsmount": 432, "open_tree": 428, "move_mount": 429, "mount_setattr": 442, "sethostname": 170,
         "setdomainname": 171, "chroot": 161, "perf_event_open": 298}


def refuse_calls(answers, namespaces_by_clone=None):
    """Installs a filter in this process: {call: errno}; and an errno for clone(2) with namespaces."""
    load = lambda offset: struct.pack("HBBI", 0x20, 0, 0, offset)  # noqa: E731
    jump = lambda code, value, yes, no: struct.pack("HBBI", code, yes, no, value)  # noqa: E731
    answer = lambda errno: struct.pack("HBBI", 0x06, 0, 0, 0x00050000 | errno)  # noqa: E731
    program = [load(0)]
    for name, errno in answers.items():
        program += [jump(0x15, CALLS[name], 0, 1), answer(errno)]
    if namespaces_by_clone:
        program += [jump(0x15, CALLS["clone"], 0, 3), load(16), jump(0x45, NAMESPACE_FLAGS, 0, 1), answer(namespaces_by_clone)]
    program.append(struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000))
    text = ctypes.create_string_buffer(b"".join(program))
    libc = ctypes.CDLL(None, use_errno=True)
    head = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(text))
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, head, 0, 0) != 0:
        os._exit(99)

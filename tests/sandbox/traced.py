"""Kills a program before the nth of its file-changing system calls, or makes that call fail: every state that a kill or
a failure can leave, without sleeping."""

import ctypes
import errno
import os
import signal
import struct
import subprocess

from sbxtest import start

TRACEME, POKE_USER, SYSCALL, SETOPTIONS, SYSCALL_INFO = 0, 6, 24, 0x4200, 0x420E
ORIG_RAX, RAX = 15 * 8, 10 * 8  # offsets in struct user of x86-64
NO_CALL = 2**64 - 1
OPTIONS = 0x100001  # PTRACE_O_TRACESYSGOOD, to tell a system-call stop from SIGTRAP; PTRACE_O_EXITKILL
AT_CALL = signal.SIGTRAP | 0x80
ENTERS = 1
O_CREAT = 0o100

# x86-64 numbers of calls that change a directory, a file or its attributes.
CHANGES = {
    "write": 1, "pwrite64": 18, "sendfile": 40, "truncate": 76, "ftruncate": 77, "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85, "link": 86,
    "unlink": 87, "symlink": 88, "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "setxattr": 188, "mkdirat": 258,
    "fchownat": 260, "unlinkat": 263, "renameat": 264, "linkat": 265, "symlinkat": 266, "fchmodat": 268, "splice": 275, "utimensat": 280,
    "fallocate": 285, "renameat2": 316, "fchmodat2": 452, "copy_file_range": 326, "openat": 257, "open": 2,
}
NAMES = {number: name for name, number in CHANGES.items()}

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def ptrace(request, pid, address=0, data=0):
    result = _libc.ptrace(request, pid, address, data)
    if result < 0:
        raise OSError(ctypes.get_errno(), "ptrace")
    return result


def call_entered(pid):
    """Number and arguments of the call that the process is about to make; None if it returns from one."""
    info = ctypes.create_string_buffer(96)
    ptrace(SYSCALL_INFO, pid, len(info), ctypes.addressof(info))
    if info.raw[0] != ENTERS:
        return None
    number, *arguments = struct.unpack_from("=7Q", info.raw, 24)
    return number, arguments


def changes_files(number, arguments):
    creates = {CHANGES["openat"]: 2, CHANGES["open"]: 1}
    return number in NAMES and (number not in creates or bool(arguments[creates[number]] & O_CREAT))


def killed_before(command, which, environment):
    """Runs the command and kills it before file-changing call number `which`, counted from 1. Returns that call's
    name, None if the command ended before it."""
    name, status = stopped_at(command, which, environment, None)
    if name is None and status != 0:
        raise AssertionError(f"{command} ended with {status}")
    return name


def failed_at(command, which, environment, error=errno.EIO):
    """Runs the command, and file-changing call number `which` fails. Returns that call's name, None if the command
    ended before it, and the exit status."""
    return stopped_at(command, which, environment, error)


def stopped_at(command, which, environment, error):
    process = start(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment,
                    preexec_fn=lambda: ptrace(TRACEME, 0))
    os.waitpid(process.pid, 0)  # it stops when it executes the command
    ptrace(SETOPTIONS, process.pid, 0, OPTIONS)
    seen, deliver, failing = 0, 0, None
    while True:
        ptrace(SYSCALL, process.pid, 0, deliver)
        _, status = os.waitpid(process.pid, 0)
        if not os.WIFSTOPPED(status):
            process.returncode = os.waitstatus_to_exitcode(status)
            return failing, process.returncode
        stopped_by = os.WSTOPSIG(status)
        deliver = 0 if stopped_by in (AT_CALL, signal.SIGTRAP) else stopped_by
        if stopped_by != AT_CALL:
            continue
        entered = call_entered(process.pid)
        if entered is None and failing and seen == which:
            ptrace(POKE_USER, process.pid, RAX, 2**64 - error)
            seen += 1
        if entered is None or not changes_files(*entered):
            continue
        seen += 1
        if seen != which:
            continue
        failing = NAMES[entered[0]]
        if error is None:
            process.kill()
            process.wait()
            return failing, None
        ptrace(POKE_USER, process.pid, ORIG_RAX, NO_CALL)

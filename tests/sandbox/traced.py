"""Kills a program before the nth of its file-changing system calls, or makes that call fail: every state that a kill or
a failure can leave, without sleeping."""

import ctypes
import errno
import os
import platform
import signal
import struct
import subprocess

from call_numbers import SYSCALLS
from sbxtest import start

TRACEME, SYSCALL, SETOPTIONS, GET_REGISTERS, SET_REGISTERS, SYSCALL_INFO = 0, 24, 0x4200, 0x4204, 0x4205, 0x420E
GENERAL, ARM_SYSTEM_CALL = 1, 0x404  # sets of registers: NT_PRSTATUS, NT_ARM_SYSTEM_CALL
# Where the general registers have the number of a call at its entry (None: in a set of its own), and its answer at its exit.
NUMBER_AT, ANSWER_AT = {"x86_64": (15, 10), "aarch64": (None, 0)}[platform.machine()]
NO_CALL = -1
OPTIONS = 0x100001  # PTRACE_O_TRACESYSGOOD, to tell a system-call stop from SIGTRAP; PTRACE_O_EXITKILL
AT_CALL = signal.SIGTRAP | 0x80
ENTERS = 1

# Calls that change a directory, a file or its attributes.
CHANGES = {name: SYSCALLS[name] for name in (
    "write", "pwrite64", "sendfile", "truncate", "ftruncate", "rename", "mkdir", "rmdir", "creat", "link", "unlink", "symlink", "chmod",
    "fchmod", "chown", "fchown", "lchown", "setxattr", "mkdirat", "fchownat", "unlinkat", "renameat", "linkat", "symlinkat", "fchmodat",
    "splice", "utimensat", "fallocate", "renameat2", "fchmodat2", "copy_file_range", "openat", "open",
) if name in SYSCALLS}
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


class Registers(ctypes.Structure):
    """iovec(3type)."""
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def set_register(pid, index, value):
    """One of the general registers of a stopped process; with None as index the number of the call that it enters."""
    room = ctypes.create_string_buffer(512)
    which, form, at = (ARM_SYSTEM_CALL, "=i", 0) if index is None else (GENERAL, "=q", 8 * index)
    registers = Registers(ctypes.addressof(room), len(room))
    ptrace(GET_REGISTERS, pid, which, ctypes.addressof(registers))  # which sets the length
    struct.pack_into(form, room, at, value)
    ptrace(SET_REGISTERS, pid, which, ctypes.addressof(registers))


def changes_files(number, arguments):
    creates = {CHANGES[name]: flags for name, flags in (("openat", 2), ("open", 1)) if name in CHANGES}
    return number in NAMES and (number not in creates or bool(arguments[creates[number]] & os.O_CREAT))


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
            set_register(process.pid, ANSWER_AT, -error)
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
        set_register(process.pid, NUMBER_AT, NO_CALL)

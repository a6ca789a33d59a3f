"""Kills a program before the nth of its file-changing system calls, or makes that call fail: every state that a kill or
a failure can leave, without sleeping. A filter stops the program at these calls only, since a stop at every call costs
twenty times the program's own time. The kernel answers the calls of a process that the program starts with ENOSYS."""

import ctypes
import errno
import os
import platform
import signal
import struct
import subprocess

from call_numbers import SYSCALLS
from sbxtest import start

TRACEME, CONTINUE, SETOPTIONS, GET_REGISTERS, SET_REGISTERS, SYSCALL_INFO = 0, 7, 0x4200, 0x4204, 0x4205, 0x420E
GENERAL, ARM_SYSTEM_CALL = 1, 0x404  # sets of registers: NT_PRSTATUS, NT_ARM_SYSTEM_CALL
# Where the general registers have the number of a call (None: in a set of its own), and its answer.
NUMBER_AT, ANSWER_AT = {"x86_64": (15, 10), "aarch64": (None, 0)}[platform.machine()]
NO_CALL = -1
OPTIONS = 0x100080  # PTRACE_O_TRACESECCOMP, PTRACE_O_EXITKILL
AT_CALL = signal.SIGTRAP | 7 << 8  # PTRACE_EVENT_SECCOMP
NO_NEW_PRIVILEGES, SET_FILTER, FILTER = 38, 22, 2  # prctl(2)
LOAD, IF_EQUAL, IF_SET, ANSWER = 0x20, 0x15, 0x45, 0x06  # bpf(4): ld [k], jeq #k, jset #k, ret #k
STOP, PASS = 0x7FF00000, 0x7FFF0000  # SECCOMP_RET_TRACE, SECCOMP_RET_ALLOW
NUMBER, ARGUMENTS = 0, 16  # offsets in seccomp_data

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
    """Number of the call at which the filter has stopped the process."""
    info = ctypes.create_string_buffer(96)
    ptrace(SYSCALL_INFO, pid, len(info), ctypes.addressof(info))
    return struct.unpack_from("=Q", info.raw, 24)[0]


def filter_of_changes():
    creates = {CHANGES[name]: flags for name, flags in (("openat", 2), ("open", 1)) if name in CHANGES}
    code = [(LOAD, 0, 0, NUMBER)]
    for number in NAMES:
        if number in creates:
            code += [(IF_EQUAL, 0, 4, number), (LOAD, 0, 0, ARGUMENTS + 8 * creates[number]), (IF_SET, 0, 1, os.O_CREAT), (ANSWER, 0, 0, STOP),
                     (ANSWER, 0, 0, PASS)]
        else:
            code += [(IF_EQUAL, 0, 1, number), (ANSWER, 0, 0, STOP)]
    return b"".join(struct.pack("=HBBI", *each) for each in [*code, (ANSWER, 0, 0, PASS)])


class Program(ctypes.Structure):
    """sock_fprog."""
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def stop_at_changes():
    """In the process that is about to execute the program."""
    code = filter_of_changes()
    program = Program(len(code) // 8, code)
    if (_libc.prctl(NO_NEW_PRIVILEGES, ctypes.c_ulong(1), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0
            or _libc.prctl(SET_FILTER, ctypes.c_ulong(FILTER), ctypes.byref(program), ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0):
        raise OSError(ctypes.get_errno(), "prctl")
    ptrace(TRACEME, 0)


class Registers(ctypes.Structure):
    """iovec(3type)."""
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def set_register(pid, index, value):
    """One of the general registers of a stopped process; with None as index the number of the call at which it stopped."""
    room = ctypes.create_string_buffer(512)
    which, form, at = (ARM_SYSTEM_CALL, "=i", 0) if index is None else (GENERAL, "=q", 8 * index)
    registers = Registers(ctypes.addressof(room), len(room))
    ptrace(GET_REGISTERS, pid, which, ctypes.addressof(registers))  # which sets the length
    struct.pack_into(form, room, at, value)
    ptrace(SET_REGISTERS, pid, which, ctypes.addressof(registers))


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


def changes_by(command, environment):
    """How many file-changing calls the program makes."""
    process = traced(command, environment)
    count = sum(1 for _ in calls_of(process))
    if process.returncode != 0:
        raise AssertionError(f"{command} ended with {process.returncode}")
    return count


def stopped_at(command, which, environment, error):
    process, failing = traced(command, environment), None
    for seen, name in enumerate(calls_of(process), 1):
        if seen != which:
            continue
        failing = name
        if error is None:
            process.kill()
            process.wait()
            return failing, None
        # The kernel skips the call and leaves this answer.
        set_register(process.pid, NUMBER_AT, NO_CALL)
        set_register(process.pid, ANSWER_AT, -error)
    return failing, process.returncode


def traced(command, environment):
    process = start(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment,
                    preexec_fn=stop_at_changes)
    os.waitpid(process.pid, 0)  # it stops when it executes the command
    ptrace(SETOPTIONS, process.pid, 0, OPTIONS)
    return process


def calls_of(process):
    """Names of its file-changing calls, each while the process stands before it; then it has ended."""
    deliver = 0
    while True:
        ptrace(CONTINUE, process.pid, 0, deliver)
        _, status = os.waitpid(process.pid, 0)
        if not os.WIFSTOPPED(status):
            process.returncode = os.waitstatus_to_exitcode(status)
            return
        deliver = 0
        if status >> 8 == AT_CALL:
            yield NAMES[call_entered(process.pid)]
        elif os.WSTOPSIG(status) != signal.SIGTRAP:
            deliver = os.WSTOPSIG(status)

#!/usr/bin/env python3
"""check_call_numbers.py SOURCE: no test makes a system call by a number of its own. A number means another call on another
architecture, where the test would pass or fail for a wrong reason: tests/harness/call_numbers.py has them for each."""

import pathlib
import re
import sys

NUMBER = r"\s*-?\d\w*\b(?!\s*\+\s*SYS_)"  # what is added to a name's number belongs to another ABI on purpose
FORMS = re.compile(rf"\b(?:raw_|sys)?call\((?:ctypes\.c_\w+\()?{NUMBER}|\.syscall\s*,{NUMBER}|\b(?:SYS|__NR)_\w+\s*=(?!=)")
WRONG = ("libc.syscall(101, 0)", "tried(libc.syscall, 438, fd)", "syscall( 0x1b6)", "call(90, b'f', mode)", "SYS_seccomp = 317",
         "::syscall(ctypes.c_long(39))")
RIGHT = ('libc.syscall(SYSCALLS["ptrace"], 0)', "libc.syscall(number, 0)", "syscall(SYS_getpid)", "syscall(0x40000000L + SYS_getpid)",
         "call_all(3)", "recall(3)", "if number == SYS_execve")


def main():
    source = pathlib.Path(sys.argv[1])
    for text in WRONG:
        assert FORMS.search(text), f"not found: {text}"
    for text in RIGHT:
        assert not FORMS.search(text), f"found: {text}"
    problems = []
    for path in sorted((source / "tests").rglob("*")):
        if path.suffix not in (".py", ".cpp", ".hpp", ".sh") or path.name in ("check_call_numbers.py", "call_numbers.py"):
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if match := FORMS.search(line):
                problems.append(f"{path.relative_to(source)}:{number}: \"{match[0]}\" is a number of one architecture; take it from "
                                "tests/harness/call_numbers.py")
    print("\n".join(problems) or "no test makes a system call by a number of its own")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()

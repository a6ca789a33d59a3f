#!/usr/bin/env python3
"""check_segments.py PROGRAM: the program for 64-bit Arm starts with pages of 4, 16 and 64 KiB, elf(5): each loaded segment is
aligned to the largest, and lies in the file at the same offset within such a page as in memory."""

import struct
import sys

PAGE = 65536
AARCH64, LOADED = 183, 1
HEADER, SEGMENT = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQQQ")


def problem(program):
    """What keeps this ELF file from starting with some page size, or None."""
    _, _, machine, _, _, at, _, _, _, size, count, *_ = HEADER.unpack_from(program)
    if machine != AARCH64:
        return f"the machine is {machine}, not {AARCH64}"
    loaded = 0
    for index in range(count):
        kind, _, offset, address, _, _, _, alignment = SEGMENT.unpack_from(program, at + index * size)
        if kind != LOADED:
            continue
        loaded += 1
        if alignment < PAGE or (address - offset) % PAGE:
            return f"segment {index}: offset {offset:#x}, address {address:#x}, alignment {alignment:#x}"
    return None if loaded else "nothing is loaded"


def made(alignment, address, machine=AARCH64, kind=LOADED):
    header = HEADER.pack(b"\x7fELF\2\1\1".ljust(16, b"\0"), 3, machine, 1, 0, HEADER.size, 0, 0, HEADER.size, SEGMENT.size, 1, 0, 0, 0)
    return header + SEGMENT.pack(kind, 5, 0x1000, address, 0, 16, 16, alignment)


def main():
    assert problem(made(PAGE, 0x21000)) is None
    for wrong in (made(4096, 0x21000), made(16384, 0x21000), made(PAGE, 0x22000), made(PAGE, 0x21000, machine=62), made(PAGE, 0, kind=6)):
        assert problem(wrong), "not found"
    with open(sys.argv[1], "rb") as file:
        found = problem(file.read())
    print(found or "every segment suits pages of 4, 16 and 64 KiB")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()

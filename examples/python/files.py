#!/usr/bin/env python3
"""Upload and download: files go in, a command works on them, its result comes out. Usage: files.py DIRECTORY RESULT"""

import pathlib
import sys

from sbx import FileNotFoundException, Sandbox

directory, result = map(pathlib.Path, sys.argv[1:])
with Sandbox() as sandbox:
    sandbox.files.write_files([{"path": f"in/{path.name}", "data": path.read_bytes()} for path in sorted(directory.iterdir()) if path.is_file()])
    for entry in sandbox.files.list("in"):
        print(entry.permissions, entry.size, entry.name)
    sandbox.commands.run("tar -czf /tmp/all.tar.gz in")
    with open(result, "wb") as file:  # in pieces: it need not fit in memory
        for piece in sandbox.files.read("/tmp/all.tar.gz", "stream"):
            file.write(piece)
    try:
        sandbox.files.read("absent")
    except FileNotFoundException as error:
        print(error.kind)

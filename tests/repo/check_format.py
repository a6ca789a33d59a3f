"""Every C and C++ file is formatted according to .clang-format. Usage: check_format.py SOURCE CLANG_FORMAT"""

import pathlib
import subprocess
import sys

source, clang_format = pathlib.Path(sys.argv[1]), sys.argv[2]
SUFFIXES = {".cpp", ".hpp", ".c", ".h"}

files = sorted(
    path
    for directory in ("include", "src", "tests", "examples")
    for path in (source / directory).rglob("*")
    if path.suffix in SUFFIXES and path.is_file()
)
if len(files) < 300:
    sys.exit(f"only {len(files)} files found: the list is wrong")
ended = subprocess.run([clang_format, "--dry-run", "--Werror", *map(str, files)], capture_output=True, text=True)
if ended.returncode:
    names = sorted({line.split(":")[0] for line in ended.stderr.splitlines() if "error:" in line})
    print(ended.stderr[:2000] if not names else "\n".join(f"{name}: not in the form of .clang-format" for name in names))
    print(f"fix: {clang_format} -i {' '.join(names)}")
    sys.exit(1)

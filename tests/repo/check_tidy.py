"""clang-tidy finds nothing in the given files, nor in the headers that they include. Usage: check_tidy.py CLANG_TIDY
BUILD FILE... The compilation database of BUILD says how each is compiled."""

import concurrent.futures
import re
import shutil
import subprocess
import sys

SKIPPED = 77

clang_tidy, build, files = sys.argv[1], sys.argv[2], sys.argv[3:]
if shutil.which(clang_tidy) is None:
    print(f"{clang_tidy} is not installed")
    sys.exit(SKIPPED)
if len(files) < 7:
    sys.exit(f"only {len(files)} files were given: the list is wrong")


def findings(file):
    """The warnings of one file, each with its source lines."""
    ended = subprocess.run([clang_tidy, "--quiet", "-p", build, "--warnings-as-errors=*", file], capture_output=True, text=True)
    blocks = re.split(r"^(?=\S+:\d+:\d+: (?:warning|error): )", ended.stdout, flags=re.MULTILINE)
    if ended.returncode and not any(blocks):
        return [f"{file}: clang-tidy exited with {ended.returncode}: {ended.stderr}"]
    return [block.rstrip() for block in blocks if block.strip()]


with concurrent.futures.ThreadPoolExecutor(2) as pool:  # PROCESSORS in CMakeLists.txt
    found = sorted({each for listed in pool.map(findings, files) for each in listed})  # a header's once
print("\n".join(found) or f"{len(files)} files, nothing found")
sys.exit(1 if found else 0)

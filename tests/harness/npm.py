"""Packages of npm that tests and benchmarks drive sbx with: kept in the build directory, a visible skip without npm."""

import os
import pathlib
import shutil
import subprocess
import unittest


def installed(name, *packages):
    """The directory NAME with node_modules, where the packages are installed once."""
    place = pathlib.Path(os.environ.get("SBX_BUILD", "/nowhere")) / name
    done = place / "installed"
    wanted = " ".join(packages)
    if done.is_file() and done.read_text() == wanted:
        return place
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None or not os.access(place.parent, os.W_OK):
        raise unittest.SkipTest("npm and node are not there, or this user may not install into the build directory")
    ran = subprocess.run([npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", place, *packages], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise unittest.SkipTest(f"npm can't install {wanted}: {ran.stderr.strip()[-200:]}")
    done.write_text(wanted)
    return place

"""The contents of a guest: parts of this machine's own system, or of unpacked packages of another architecture, and the project's
binary and tests."""

import os
import pathlib
import subprocess
import sys

from archive import Archive, System
from kernels import Missing

# busybox applets for the guest's own use; they are not on the PATH of programs in a sandbox.
APPLETS = ("cat", "chroot", "cp", "cut", "hostname", "insmod", "ip", "ln", "mkdir", "mount", "poweroff", "sh", "sleep", "switch_root")
# Programs that the tests and their commands need, and the packages that have them.
PROGRAMS = (
    "bash", "cat", "chgrp", "chmod", "chown", "chroot", "cp", "crun", "cut", "dash", "date", "dd", "dirname", "echo", "env", "false", "find", "grep", "head", "id", "ln",
    "ls", "mkdir", "mkfifo", "mktemp", "mount", "mv", "nproc", "printf", "ps", "pwd", "readlink", "rm", "rmdir", "sed", "seq",
    "setpriv", "sleep", "strace", "stty", "sort", "stat", "sync", "tail", "tee", "test", "timeout", "touch", "tr", "true", "truncate", "tty", "umount",
    "uname", "unshare", "wc", "xargs", "yes", "git", "diff", "jq", "lua", "perl",
)
PACKAGES = ("base-files", "bash", "busybox-static", "coreutils", "dash", "diffutils", "findutils", "git", "grep", "jq", "libc-bin", "lua5.4", "mount",
            "perl-base", "procps", "python3", "sed", "strace", "util-linux")
MORE_PROGRAMS = ("curl", "ip", "openssl")
SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
PYTHON_WITHOUT = {
    "test", "idlelib", "tkinter", "lib2to3", "ensurepip", "turtledemo", "pydoc_data", "distutils", "unittest/test", "dist-packages",
    "asyncio/__pycache__", "config-3.11-x86_64-linux-gnu", "config-3.11-aarch64-linux-gnu", "sqlite3", "xmlrpc", "wsgiref", "curses", "dbm",
}
PASSWD = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\ntester:x:1000:1000:tester:/home/tester:/bin/sh\n"
GROUP = "root:x:0:\nnogroup:x:65534:\ntester:x:1000:\n"


def system_for(architecture, cache, packages=()):
    """Where the programs of a guest, and those of further packages, come from. Raises Missing."""
    if architecture == "amd64":
        return System()
    root = pathlib.Path(cache) / "arm64-root"
    system = System(root, "aarch64-linux-gnu")
    for each in filter(None, (PACKAGES, packages)):
        done = subprocess.run([SCRIPTS / "arm64-root", root, *each], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Missing(f"arm64-root: {done.stderr.strip()[-300:]}")
    _configure(system)
    return system


def _configure(system):
    """What the packages' own scripts do where they are installed: alternatives, and Python's compiled files, without which each
    start in a guest compiles what it imports."""
    libraries = system.place(f"usr/lib/{system.triplet}")
    for name in ("blas", "lapack"):
        link = libraries / f"lib{name}.so.3"
        if (libraries / name).is_dir() and not link.is_symlink():
            link.symlink_to(f"{name}/{link.name}")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if system.place(f"usr/lib/{version}").is_dir():  # else this Python writes another form
        places = [system.place(f"usr/lib/{version}"), system.place("usr/lib/python3/dist-packages")]
        subprocess.run([sys.executable, "-m", "compileall", "-q", "-s", system.root, "-p", "/", *filter(pathlib.Path.is_dir, places)],
                       capture_output=True, check=False)


def base(kernel, here, system):
    """The permanent archive: the system and the kernel's modules."""
    archive = Archive(system)
    for name in ("bin", "sbin", "lib", "lib64"):
        archive.link(name, f"usr/{name}")
    for name in ("newroot", "proc", "sys", "dev", "run", "disk", "root", "usr/sbin", "var/log", "home/tester"):
        archive.directory(name)
    for name in ("tmp", "var/tmp"):
        archive.directory(name, 0o1777)
    archive.device("dev/console", 5, 1)
    archive.device("dev/null", 1, 3, 0o666)
    archive.copy(system.find("busybox"), "busybox")
    for name in APPLETS:
        archive.link(f"applets/{name}", "/busybox")
    archive.copy(here / "init.sh", "init")
    archive.text("modules/order", "".join(f"{path.name}\n" for path in kernel.modules))
    for path in kernel.modules:
        archive.copy(path, f"modules/{path.name}")
    _programs(archive)
    _accounts(archive)
    return archive


def _programs(archive):
    system = archive.system
    for name in PROGRAMS:
        if path := system.find(name):
            archive.program(path, f"usr/bin/{name}")
    archive.link("usr/bin/sh", "dash")
    archive.program(system.place("/usr/bin/su"), "usr/bin/su", mode=0o4755)  # the set-user-ID program that the tests need
    archive.program(system.place("/usr/bin/python3"), "usr/bin/python3.11")
    archive.link("usr/bin/python3", "python3.11")
    archive.system_tree("/usr/lib/python3.11", without=PYTHON_WITHOUT)
    archive.libraries(sorted(system.place("/usr/lib/python3.11/lib-dynload").glob("*.so")))
    archive.system_tree(f"/usr/lib/{system.triplet}/perl-base")
    # Libraries that Python and getpwnam(3) load by name.
    for name in ("libgcc_s.so.1", "libnss_files.so.2"):
        archive.system_file(f"/usr/lib/{system.triplet}/{name}")


def more(system):
    """A further archive, for jobs that name packages: their Python modules and programs, with what they load and read."""
    archive = Archive(system)
    for name in MORE_PROGRAMS:
        if path := system.find(name):
            archive.program(path, f"usr/bin/{name}")
    modules = "/usr/lib/python3/dist-packages"
    place = system.place(modules)
    archive.system_tree(modules, without={str(tests.relative_to(place)) for tests in place.rglob("tests")})
    archive.libraries(sorted(place.rglob("*.so")))
    for data in ("matplotlib", "fonts", "zoneinfo"):
        archive.system_tree(f"/usr/share/{data}")
    for file in ("/etc/matplotlibrc", "/usr/lib/ssl/openssl.cnf"):
        archive.system_file(file)
    return archive


def _accounts(archive):
    archive.text("etc/passwd", PASSWD)
    archive.text("etc/group", GROUP)
    archive.text("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n")
    archive.text("etc/hosts", "127.0.0.1 localhost\n")
    archive.text("etc/resolv.conf", "")
    archive.text("usr/lib/os-release", "ID=guest\n")
    archive.link("etc/os-release", "../usr/lib/os-release")
    archive.system_tree("/usr/share/common-licenses")
    archive.text("etc/shadow", "root:*:19000:0:99999:7:::\ntester:*:19000:0:99999:7:::\n", 0o640)
    archive.text("etc/fstab", "")
    for name in ("ld.so.cache", "ld.so.conf"):
        archive.system_file(f"/etc/{name}")
    archive.system_tree("/etc/ld.so.conf.d")


def boot(job, files, source, system, disk_is_root=False):
    """The small archive of one boot: the binaries under test, the tests, and the job that runs them."""
    archive = Archive(system)
    archive.text("job", job)
    archive.text("disk-is-root", "yes" if disk_is_root else "no")
    for path, inside in files.items():
        archive.program(path, inside)
    problems = pathlib.Path(os.environ.get("SBX_HUMANEVAL") or source.parent / "shared/data/HumanEval.jsonl.gz")
    if problems.exists():
        archive.copy(problems, "t/HumanEval.jsonl.gz", mode=0o644)
    docker = os.environ.get("SBX_DOCKER_FILTER") or source.parent / "shared/data/moby-default-seccomp.json"
    for name, place in (("docker", docker), ("podman", os.environ.get("SBX_PODMAN_FILTER") or "/usr/share/containers/seccomp.json")):
        if os.path.exists(place):
            archive.copy(place, f"t/{name}-filter.json", mode=0o644)
    for name in ("tests", "policies", "examples"):
        archive.tree(source / name, f"src/{name}", without={"__pycache__"})
    archive.copy(source / "man/sbx-security.7", "src/man/sbx-security.7")  # its tables are those of tests
    return archive

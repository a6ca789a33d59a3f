"""Containers of runc (in a guest: crun), with the filters, capabilities and hidden paths of container managers, over the machine's own /usr. The
filter of Docker is not part of the project: SBX_DOCKER_FILTER gives its path; the default is ../shared/data. That of podman is in
Debian's golang-github-containers-common; SBX_PODMAN_FILTER gives another path."""

import ctypes
import json
import os
import pathlib
import shutil
import subprocess

from call_numbers import SYSCALLS
from harness import HANG, SOURCE
from sbxtest import SBX, SbxTest

DOCKER_FILTER = pathlib.Path(os.environ.get("SBX_DOCKER_FILTER") or SOURCE.parent / "shared" / "data" / "moby-default-seccomp.json")
PODMAN_FILTER = pathlib.Path(os.environ.get("SBX_PODMAN_FILTER") or "/usr/share/containers/seccomp.json")
FILTERS = {"docker": DOCKER_FILTER, "podman": PODMAN_FILTER, None: None}
_PODMAN = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"]
_DOCKER = [*_PODMAN, "MKNOD", "NET_RAW", "AUDIT_WRITE"]
CAPABILITIES = {"docker": _DOCKER, "podman": _PODMAN, "none": [], "sysadmin": [*_DOCKER, "SYS_ADMIN"]}
_HIDDEN = ["/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
           "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/proc/interrupts"]
_READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
# The kinds of machine in the profiles of Docker and podman.
_HERE = {"x86_64": ("amd64", ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"]), "aarch64": ("arm64", ["SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"])}


# The least ABI of Landlock for each way to wall programs off.
LEAST_LANDLOCK = {"shielded": 1, "own-uid": 2, "same-uid": 6}


def landlock_abi():
    return ctypes.CDLL(None).syscall(SYSCALLS["landlock_create_ruleset"], None, 0, 1)


def why_not(way="shielded"):
    """Why no container can be made here, or programs can't be walled off so; None if they can."""
    if os.geteuid() != 0:
        return "needs root"
    if landlock_abi() < LEAST_LANDLOCK[way]:
        return f"Landlock has ABI {landlock_abi()}, and {way} needs {LEAST_LANDLOCK[way]}"
    return None if _runtime() else "neither runc nor crun is installed"


def _runtime():
    """In a guest tests run in a control group that they may not divide."""
    return ["runc"] if shutil.which("runc") else ["crun", "--cgroup-manager=disabled"] if shutil.which("crun") else None


def _resolved(profile, capabilities):
    """The profile of a container manager, as the runtime gets it: its conditions are decided."""
    here, architectures = _HERE[os.uname().machine]
    rules = []
    for rule in profile["syscalls"]:
        only, but = rule.get("includes") or {}, rule.get("excludes") or {}
        if only.get("arches") and here not in only["arches"] or here in (but.get("arches") or []):
            continue
        if not set(only.get("caps") or []) <= set(capabilities) or set(but.get("caps") or []) & set(capabilities):
            continue
        rules.append({key: rule[key] for key in ("names", "action", "args", "errnoRet") if rule.get(key) is not None})
    rest = {"defaultErrnoRet": profile["defaultErrnoRet"]} if "defaultErrnoRet" in profile else {}
    return {"defaultAction": profile["defaultAction"], "architectures": architectures, "syscalls": rules, **rest}


def _mount(kind, target, *options):
    return {"destination": target, "type": kind, "source": kind, "options": ["nosuid", "noexec", *options]}


def _bind(source, target):
    return {"destination": target, "type": "bind", "source": str(source), "options": ["rbind", "ro"]}


class Container:
    """One container, whose command is given to run(). The program sbx lies in /sbx."""

    def __init__(self, directory, uid, manager, capabilities, hides, binary=SBX):
        self.directory = pathlib.Path(directory)
        root = self.directory / "rootfs"
        for name in ("usr", "etc", "proc", "dev", "sys", "tmp", "root", "home/u", "sbx", "run"):
            (root / name).mkdir(parents=True)
        os.chown(root / "home/u", 1000, 1000)
        (root / "tmp").chmod(0o1777)
        for link in ("bin", "sbin", "lib", "lib64"):
            (root / link).symlink_to(f"usr/{link}")
        all_of_it = [f"CAP_{name}" for name in CAPABILITIES[capabilities]]
        held = {kind: all_of_it if uid == 0 or kind == "bounding" else [] for kind in ("bounding", "effective", "permitted")}
        linux = {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount", "cgroup")]}
        if hides:
            linux |= {"maskedPaths": _HIDDEN, "readonlyPaths": _READ_ONLY}
        if FILTERS[manager]:
            linux["seccomp"] = _resolved(json.loads(FILTERS[manager].read_text()), all_of_it)
        self.settings = {
            "ociVersion": "1.0.2", "hostname": "container", "root": {"path": "rootfs"}, "linux": linux,
            "process": {"terminal": False, "user": {"uid": uid, "gid": uid}, "cwd": "/tmp", "capabilities": held,
                        "env": ["PATH=/sbx:/usr/bin:/bin", f"HOME={'/home/u' if uid else '/root'}", "LANG=C.UTF-8"]},
            "mounts": [_mount("proc", "/proc", "nodev"), {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=65536k"]},
                       _mount("devpts", "/dev/pts", "newinstance", "ptmxmode=0666", "mode=0620"), _mount("tmpfs", "/dev/shm", "nodev", "mode=1777", "size=65536k"),
                       _mount("mqueue", "/dev/mqueue", "nodev"), _mount("sysfs", "/sys", "nodev", "ro"),
                       _bind("/usr", "/usr"), _bind("/etc", "/etc"), _bind(pathlib.Path(binary).parent, "/sbx")]}

    def bind(self, source, target):
        self.settings["mounts"].append(_bind(source, target))

    def environment(self, variables):
        self.settings["process"]["env"] += [f"{name}={value}" for name, value in variables.items()]

    def run(self, *words, timeout=HANG):
        """The finished process. PID 1 of a container ignores SIGTERM: what hangs is killed with all of its container."""
        self.settings["process"]["args"] = list(words)
        (self.directory / "config.json").write_text(json.dumps(self.settings))
        runtime, name = [*_runtime(), "--root", str(self.directory / "state")], f"sbx-test-{os.getpid()}"
        try:
            return subprocess.run([*runtime, "run", name], cwd=self.directory, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
        finally:
            subprocess.run([*runtime, "delete", "--force", name], capture_output=True)


class FilteredTest(SbxTest):
    """In containers under Docker's filter, with parts of /proc hidden."""

    WAY = "own-uid"  # what the class needs

    def setUp(self):
        super().setUp()
        if why := why_not(self.WAY):
            self.skipTest(why)
        if not DOCKER_FILTER.exists():
            self.skipTest(f"the filter of docker is not here ({DOCKER_FILTER})")

    def container(self, uid=0, capabilities="docker"):
        self.count = getattr(self, "count", 0) + 1
        made = Container(self.tmp / f"container{self.count}", uid, "docker", capabilities, True)
        self.root = made.directory / "rootfs"
        return made

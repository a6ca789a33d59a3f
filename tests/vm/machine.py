"""Boots a guest under qemu's emulation (no /dev/kvm, no root), lets it do a job, and returns its output."""

import os
import pathlib
import re
import shutil
import subprocess
import threading

import directories
import image
import kernels
import systemd

HERE = pathlib.Path(__file__).resolve().parent
# Emulation needs no CPU mitigations.
COMMAND_LINE = "quiet loglevel=1 panic=-1 rdinit=/init mitigations=off nokaslr"
NEEDED = {"mke2fs": "e2fsprogs", "dpkg": "dpkg", "apt-get": "apt"}


class Emulator:
    def __init__(self, needed, command, drive, command_line, strip):
        self.needed = {**NEEDED, **needed}  # programs, and their packages
        self.command = command
        self.drive = drive  # of the disk
        self.command_line = command_line
        self.strip = strip


EMULATORS = {
    # qemu emulates the processor's fast string instructions byte by byte: eight times as slow as without them. Its clock is reliable.
    "amd64": Emulator({"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static"},
                      ["qemu-system-x86_64", "-M", "q35", "-cpu", "max,-erms,-fsrm"], ["-drive", "if=virtio,"],
                      "console=ttyS0 tsc=reliable no_timer_check", "strip"),
    # The emulated signatures of return addresses take a cipher of many steps; pauth-impdef is a quick one.
    "arm64": Emulator({"qemu-system-aarch64": "qemu-system-arm", "readelf": "binutils"},
                      ["qemu-system-aarch64", "-M", "virt,gic-version=3", "-cpu", "max,pauth-impdef=on,sve=off"],
                      ["-device", "virtio-blk-device,drive=disk", "-drive", "if=none,id=disk,"], "console=ttyAMA0", "aarch64-linux-gnu-strip"),
}


class Guest:
    def __init__(self, status, lines, release):
        self.status = status  # of the job; None if the guest died or was killed
        self.lines = lines
        self.release = release


def ready(name, cache, directory, packages):
    """The kernel, the system and its archives, created in `directory` first; raises kernels.Missing."""
    for program, package in EMULATORS[kernels.architecture(name)].needed.items():
        if not shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
            raise kernels.Missing(f"{program} is not installed (package {package})")
    kernel = kernels.kernel(name, cache)
    system = image.system_for(kernel.architecture, cache, packages)
    newest = max(path.stat().st_mtime for path in (*HERE.glob("*.py"), HERE / "init.sh", kernel.image))

    def kept(stem, make):
        archive = pathlib.Path(cache) / f"{stem}.cpio"
        if not archive.exists() or archive.stat().st_mtime < newest:
            make().write(directory / archive.name)
            os.replace(directory / archive.name, archive)
        return archive

    archives = [kept(f"base-{name}", lambda: image.base(kernel, HERE, system))]
    if packages:
        archives.append(kept(f"{'+'.join(packages)}-{kernel.architecture}", lambda: image.more(system)))
    return kernel, system, archives


def request(job, what):
    """What the job requires of its guest, in a line "# WHAT: …" near its beginning."""
    match = re.search(rf"^# {what}: (.*)$", job, re.MULTILINE)
    return match[1] if match else ""


def disk_for(job, cache, directory):
    """The guest's disk: systemd's ("# root: systemd"), or an empty one. Returns its file and qemu's options for it."""
    if request(job, "root") == "systemd":
        return systemd.disk(cache), ",snapshot=on"
    disk = directory / "disk"
    with open(disk, "wb") as file:
        file.truncate(2 << 30)  # sparse
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-E", "lazy_itable_init=1,lazy_journal_init=1", disk], check=True,
                   env={**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"})
    return disk, ",cache=unsafe"


def without_debugging(program, directory, strip):
    """A stripped copy, so that the guest doesn't unpack a hundred megabytes; the program itself if there is no
    strip(1)."""
    copy = directory / program.name
    return copy if shutil.which(strip) and subprocess.run([strip, "-g", "-o", copy, program], check=False).returncode == 0 else program


def boot(name, cache, job, files, source, timeout, memory="3072", echo=None):
    """Runs the shell text `job` as root in a guest; `echo` gets each line as it arrives."""
    pathlib.Path(cache).mkdir(parents=True, exist_ok=True)
    with directories.own(cache) as (directory, mark):
        kernel, system, archives = ready(name, cache, directory, request(job, "packages").split())
        emulator = EMULATORS[kernel.architecture]
        disk, options = disk_for(job, cache, directory)
        files = {without_debugging(path, directory, emulator.strip): inside for path, inside in files.items()}
        image.boot(job, files, source, system, disk_is_root=request(job, "root") == "systemd").write(directory / "boot.cpio")
        with open(directory / "initrd", "wb") as initrd:
            for part in (*archives, directory / "boot.cpio"):
                with open(part, "rb") as data:
                    shutil.copyfileobj(data, initrd, 1 << 20)
        *drive, form = emulator.drive
        # Both CPUs take turns in one thread: in two, a CPU may run into the breakpoint by which the kernel changes its own code
        # (text_poke_bp) after that has been undone, and panics.
        command = [*emulator.command, "-accel", "tcg,thread=single", "-smp", "2", "-m", memory,
                   "-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot", "-nic", "none",
                   *drive, f"{form}file={disk},format=raw{options}", "-kernel", kernel.image, "-initrd", directory / "initrd",
                   "-append", f"{COMMAND_LINE} {emulator.command_line} {request(job, 'kernel')}"]
        return _watch(command, timeout, echo, mark)


def _watch(command, timeout, echo, mark):
    # A guest left by a killed run is killed too, and owns its directory until it has ended.
    process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], pass_fds=(mark,), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    clock = threading.Timer(timeout, process.kill)
    clock.start()
    status, release, lines = None, None, []
    for raw in process.stdout:
        line = raw.decode(errors="replace").rstrip("\r\n")
        if match := re.match(r"@@EXIT (\d+)$", line):
            status = int(match[1])
        elif match := re.match(r"@@BOOTED (\S+)", line):
            release = match[1]
        lines.append(line)
        if echo:
            echo(line)
    process.wait()
    clock.cancel()
    return Guest(status, lines, release)

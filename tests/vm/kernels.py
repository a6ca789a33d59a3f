"""Debian's cloud kernels, from its package archive: fetched by name, unpacked below a cache directory, kept there."""

import fcntl
import lzma
import os
import pathlib
import re
import shutil
import subprocess

# Name: apt's name of its newest package.
KERNELS = {
    "6.1": re.compile(r"linux-image-6\.1\.0-(\d+)-cloud-amd64$"),
    "6.12": re.compile(r"linux-image-6\.12\.(\d+)\+deb12-cloud-amd64-unsigned$"),
    "arm64-6.1": re.compile(r"linux-image-6\.1\.0-(\d+)-cloud-arm64$"),
    "arm64-6.12": re.compile(r"linux-image-6\.12\.(\d+)\+deb12-cloud-arm64-unsigned$"),
    "arm64-6.12-16k": re.compile(r"linux-image-6\.12\.(\d+)\+deb12-arm64-16k-unsigned$"),  # pages of 16 KiB
}
# The modules that the guest loads, dependencies first (read from the files). The last kernel has neither ext4 nor the checksum that
# ext4 asks for by name.
MODULES = ("virtio_mmio", "virtio_pci", "virtio_blk", "crc32c_generic", "ext4", "overlay", "veth")
ARM64_APT = pathlib.Path(__file__).resolve().parents[2] / "scripts/arm64-apt"
# Formats of the kernel in a kernel image: the start of the compressed data, and the tool that unpacks it.
PAYLOADS = ((b"\x28\xb5\x2f\xfd", ("zstd", "-dcq")), (b"\x02\x21\x4c\x18", ("lz4", "-dc")))


class Missing(Exception):
    """The reason why this machine has no kernel for a guest."""


class Kernel:
    def __init__(self, name, directory):
        self.architecture = architecture(name)
        self.image = directory / "vmlinux"
        self.modules = [directory / name for name in (directory / "modules").read_text().split()]


def architecture(name):
    """Debian's name for it."""
    return "arm64" if name.startswith("arm64-") else "amd64"


def kernel(name, cache):
    """The kernel of that name, fetched if missing. Raises Missing."""
    directory = pathlib.Path(cache) / f"linux-{name}"
    if os.uname().machine != "x86_64":
        raise Missing("the guests are emulated on x86-64 machines")
    pathlib.Path(cache).mkdir(parents=True, exist_ok=True)
    with open(pathlib.Path(cache) / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two tests may need it at once
        if not (directory / "modules").exists():
            _fetch(name, directory)
    return Kernel(name, directory)


def _run(*command, **options):
    try:
        return subprocess.run(command, check=True, capture_output=True, **options).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", b"") or b""
        raise Missing(f"{' '.join(map(str, command[:3]))}: {said.decode(errors='replace').strip()[-300:] or error}") from error


def _apt(name, directory):
    """The words before an apt command that is about packages for this kernel's architecture."""
    return [ARM64_APT, directory.parent / "arm64-apt"] if architecture(name) == "arm64" else []


def _package(name, apt):
    def newest():
        known = _run(*apt, "apt-cache", "pkgnames", "linux-image-6", text=True).split()
        return max(((int(match[1]), package) for package in known if (match := KERNELS[name].match(package))), default=(0, None))[1]

    found = newest()
    if not found and not apt and os.geteuid() == 0:  # a bare image has no lists
        _run("apt-get", "update", "-qq")
        found = newest()
    if not found:
        raise Missing(f"apt knows no kernel {name} (run apt-get update)")
    return found


def _fetch(name, directory):
    shutil.rmtree(directory, ignore_errors=True)
    raw = directory / "package"
    raw.mkdir(parents=True)
    apt = _apt(name, directory)
    _run(*apt, "apt-get", "download", "-qq", _package(name, apt), cwd=raw)
    _run("dpkg", "-x", *raw.glob("*.deb"), raw / "files")
    image = next((raw / "files" / "boot").glob("vmlinuz-*")).read_bytes()
    (directory / "vmlinux").write_bytes(_payload(image) if architecture(name) == "amd64" else image)
    order = _modules(next((raw / "files" / "lib" / "modules").iterdir()), directory)
    shutil.rmtree(raw)
    (directory / "modules").write_text("\n".join(order))  # last: it marks the rest as complete


def _payload(image):
    """The ELF file inside a bzImage: booted through its PVH note it starts a second sooner under emulation."""
    for magic, command in PAYLOADS:
        at = image.find(magic)
        while at >= 0:
            try:
                # Data after the payload makes the tool complain after it has written everything.
                text = subprocess.run(command, input=image[at:], capture_output=True, check=False).stdout
            except OSError as error:
                raise Missing(f"{command[0]}: {error}") from error
            if text.startswith(b"\x7fELF"):
                return text
            at = image.find(magic, at + 1)
    raise Missing("the kernel image has no payload that zstd or lz4 can unpack")


def _modules(source, directory):
    """Copies the wanted modules, uncompressed, and returns their names in loading order."""
    files = {path.name.split(".ko")[0].replace("-", "_"): path for path in source.rglob("*.ko*")}
    order = []

    def add(name):
        path = files.get(name)
        if path is None or path.name in order:
            return  # built in, or loaded already
        data = path.read_bytes()
        if path.suffix == ".xz":
            data = lzma.decompress(data)
        depends = re.search(rb"\0depends=([^\0]*)\0", data)
        for other in depends[1].decode().split(",") if depends else ():
            add(other.replace("-", "_"))
        target = f"{name}.ko"
        (directory / target).write_bytes(data)
        if target not in order:
            order.append(target)

    for module in MODULES:
        add(module)
    return order

"""Writes cpio archives ("newc"), which the kernel unpacks into its first root file system.

Owners, modes and device nodes are free to choose, so building one needs no root and copies no tree. The kernel
accepts several archives in succession: a large permanent one, and a small one for each boot."""

import os
import pathlib
import re
import shutil
import stat
import subprocess

DIRECTORY, FILE, LINK, DEVICE = 0o040000, 0o100000, 0o120000, 0o020000


class System:
    """Where a guest's programs come from: this machine, or unpacked packages of another architecture below `root`."""

    def __init__(self, root="/", triplet="x86_64-linux-gnu"):
        self.root = pathlib.Path(root)
        self.triplet = triplet  # Debian's name of the directory of libraries

    def place(self, path):
        """Where a file of that system lies on this machine."""
        return self.root / str(path).lstrip("/")

    def inside(self, path):
        """The reverse, links on the way to it resolved."""
        return "/" + os.path.relpath(os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)), os.path.realpath(self.root))

    def find(self, name):
        """A program of its PATH, or None."""
        return shutil.which(name, path=f"{self.place('usr/bin')}:{self.place('usr/sbin')}")

    def libraries(self, files):
        """What the loader would load for these ELF files: places on this machine."""
        return _listed_by_loader(files) if self.root == pathlib.Path("/") else self._needed(files)

    def _needed(self, files):
        """The loader of another architecture does not run here: follows what the files name themselves, elf(5)."""
        directories = [self.place(f"usr/lib/{self.triplet}"), self.place("usr/lib")]
        found, queue = {}, list(files)
        while queue:
            text = subprocess.run(["readelf", "--wide", "--dynamic", "--program-headers", *map(str, queue)], capture_output=True, text=True, check=False).stdout
            loaders = {name: self.place(name) for name in re.findall(r"interpreter: (.*)\]", text)}  # by its path
            needed = {name: next((directory / name for directory in directories if (directory / name).exists()), None)
                      for name in re.findall(r"\(NEEDED\).*\[(.*)\]", text)}
            fresh = {name: path for name, path in {**loaders, **needed}.items() if path and name not in found}
            found.update(fresh)
            queue = list(fresh.values())
        return list(found.values())


def _listed_by_loader(files):
    listed = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=False).stdout
    for line in listed.splitlines():
        words = line.split()
        name = words[2] if len(words) > 2 and words[1] == "=>" else words[0] if words else ""
        if name.startswith("/") and not name.endswith(":"):
            yield pathlib.Path(name)


class Archive:
    """Entries by their path inside; directories above an entry are created as needed."""

    def __init__(self, system=System()):
        self.entries = {}
        self.system = system

    def _add(self, path, mode, read=lambda: b"", mtime=0, device=(0, 0)):
        path = path.strip("/")
        parent = os.path.dirname(path)
        if parent and parent not in self.entries:
            self.directory(parent)
        self.entries[path] = (mode, read, int(mtime), device)

    def directory(self, path, mode=0o755):
        self._add(path, DIRECTORY | mode)

    def text(self, path, content, mode=0o644):
        self._add(path, FILE | mode, content.encode)

    def link(self, path, target):
        self._add(path, LINK | 0o777, lambda: os.fsencode(target))

    def device(self, path, major, minor, mode=0o600):
        self._add(path, DEVICE | mode, device=(major, minor))

    def copy(self, source, path=None, mode=None):
        """One file, link or empty directory of the host; keeps the time, because Python's compiled files contain it."""
        source = pathlib.Path(source)
        facts = source.lstat()
        mode = stat.S_IMODE(facts.st_mode) & 0o777 if mode is None else mode
        path = str(path or source)
        if stat.S_ISLNK(facts.st_mode):
            self.link(path, os.readlink(source))
        elif stat.S_ISDIR(facts.st_mode):
            self.directory(path, mode)
        elif stat.S_ISREG(facts.st_mode):
            self._add(path, FILE | mode, source.read_bytes, facts.st_mtime)

    def tree(self, source, path=None, without=()):
        """A directory with its contents, except the names in `without` (relative to it)."""
        source, path = pathlib.Path(source), pathlib.Path(path or source)
        self.copy(source, path)
        for directory, directories, files in os.walk(source):
            inside = pathlib.Path(directory).relative_to(source)
            directories[:] = sorted(name for name in directories if str(inside / name) not in without)
            for name in [*directories, *sorted(files)]:
                if str(inside / name) not in without:
                    self.copy(pathlib.Path(directory) / name, path / inside / name)

    def system_file(self, path):
        """A file of the system, under its own path; nothing if it has none."""
        place = self.system.place(path)
        if place.exists():
            self.copy(place.resolve(), path)

    def system_tree(self, path, without=()):
        self.tree(self.system.place(path), path, without)

    def program(self, source, path=None, mode=None):
        """A program with its shared libraries; links on the way are resolved."""
        self.copy(os.path.realpath(source), path or source, mode)
        self.libraries([source])

    def libraries(self, sources):
        """What the loader would load for these ELF files, under the names it searches for."""
        for place in self.system.libraries(sources) if sources else ():
            self.copy(os.path.realpath(place), self.system.inside(place))

    def write(self, target):
        """All entries, then the end mark; padded so that another archive may follow."""
        with open(target, "wb") as out:
            for number, (path, (mode, read, mtime, device)) in enumerate(self.entries.items(), 1):
                _write_entry(out, number, path, mode, read(), mtime, device)
            _write_entry(out, 0, "TRAILER!!!", 0, b"", 0, (0, 0))
            out.write(b"\0" * (-out.tell() % 512))


def _write_entry(out, number, path, mode, data, mtime, device):
    name = os.fsencode(path) + b"\0"
    fields = (number, mode, 0, 0, 1, mtime, len(data), 0, 0, *device, len(name), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    out.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))

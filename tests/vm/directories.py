"""Directories in the cache, one per run, of hundreds of megabytes: the next run removes those whose run was killed."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import tempfile

PREFIX = "sbx-vm-"
OWNER = "owner"  # locked as long as the directory is in use


@contextlib.contextmanager
def own(cache):
    """A new directory, and the descriptor that owns it: a process that inherits the descriptor owns it too."""
    # The mark is created and locked before another run looks for abandoned directories.
    with open(pathlib.Path(cache) / f"{PREFIX}lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_abandoned(cache)
        directory = pathlib.Path(tempfile.mkdtemp(prefix=PREFIX, dir=cache))
        mark = open(directory / OWNER, "w", encoding="ascii")  # noqa: SIM115  closed below
        fcntl.flock(mark, fcntl.LOCK_EX)
    with mark:
        try:
            yield directory, mark.fileno()
        finally:
            _remove(directory)


def remove_abandoned(cache):
    """Removes directories with a mark that nobody holds; the name doesn't show the owner. Skips those with mounts
    inside, as debootstrap makes."""
    mounts = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    for directory in pathlib.Path(cache).glob(f"{PREFIX}*"):
        try:
            mark = os.open(directory / OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if f"/{directory.name}/" not in mounts:
                _remove(directory)
        except BlockingIOError:
            pass
        finally:
            os.close(mark)


def _remove(directory):
    """Removes the mark last: if the process is killed meanwhile, the directory is still recognised."""
    for path in directory.iterdir():
        if path.name == OWNER:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    shutil.rmtree(directory, ignore_errors=True)

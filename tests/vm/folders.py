"""Folders of one run each in the cache, of hundreds of megabytes: those whose run was killed are removed by the next one."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import tempfile

PREFIX = "sbx-vm-"
OWNER = "owner"  # locked for as long as somebody works in the folder


@contextlib.contextmanager
def own(cache):
    """A new folder, and the descriptor by which it is owned: whoever inherits it owns it too."""
    # A mark is made and locked before another run looks for those that are not.
    with open(pathlib.Path(cache) / f"{PREFIX}lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_abandoned(cache)
        folder = pathlib.Path(tempfile.mkdtemp(prefix=PREFIX, dir=cache))
        mark = open(folder / OWNER, "w", encoding="ascii")  # noqa: SIM115  closed below
        fcntl.flock(mark, fcntl.LOCK_EX)
    with mark:
        try:
            yield folder, mark.fileno()
        finally:
            _remove(folder)


def remove_abandoned(cache):
    """What has a mark that nobody holds; a name says nothing about whose a folder is. Not where something is mounted, as
    debootstrap does."""
    mounts = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    for folder in pathlib.Path(cache).glob(f"{PREFIX}*"):
        try:
            mark = os.open(folder / OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if f"/{folder.name}/" not in mounts:
                _remove(folder)
        except BlockingIOError:
            pass
        finally:
            os.close(mark)


def _remove(folder):
    """The mark last: who is killed meanwhile leaves a folder that is still known for what it is."""
    for path in folder.iterdir():
        if path.name == OWNER:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)

"""Every way to use up a budget, each as a small program: its action, the expected report, and its twin below the
budget.

A cause names the options that set the budget, the program beyond it, the same program within it, and how the run must
end: `ends` is (status, reason), `met` the limit that limits_met must list; if the program may be too slow on some
machines to reach it, `said` is its output when it does. Where a mechanism can't see or stop it, `unless` has another
row for that mechanism ("polled"): what happens then, and the entry of `degraded` that must report it. If that depends
on the machine too, `without` names the entry: the program succeeds exactly where `degraded` lists it."""

import dataclasses

from harness import AMPLE
from sbxtest import PROBE

MIB = 1 << 20

EXITED = ("exited", None)
MEMORY = ("over-budget", "memory")
WALL = ("over-budget", "wall_time")
CPU = ("over-budget", "cpu_time")
OUTPUT = ("over-budget", "output")

PYTHON_BOMB = "import os\nsaid = False\nwhile True:\n  try: os.fork()\n  except OSError: said = said or os.write(1, b'refused\\n')"
PYTHON_TWIN = "import os\nfor _ in range(4):\n  if os.fork() == 0: os._exit(0)\nfor _ in range(4): os.wait()"
# Exits at once when one more fork is refused; its children have no time for anything.
PYTHON_LEAVES = "import os\nwhile True:\n  try:\n    if os.fork() == 0: os._exit(0)\n  except OSError: os._exit(1)"
# A shell that can't fork gives up; by then the first one has become another program.
SHELL_BOMB = "b() { b | b & }; (b) 2>&1 & exec sleep 100"  # dash says that it cannot fork
SHELL_TWIN = "for i in 1 2 3 4; do (exit 0) & done; wait"


@dataclasses.dataclass(frozen=True)
class Cause:
    name: str
    options: tuple
    beyond: tuple  # the command; "{live}" is a live grant
    within: tuple
    ends: tuple
    met: str = None
    unit: str = "MiB"  # of the measurement: the peak of `met`, CPU or wall time in ms
    unless: dict = dataclasses.field(default_factory=dict)
    finishes: bool = False  # may end before the next look; the limit is reported
    without: tuple = ()  # (key, beginning of `why`) of an entry
    passing: bool = False  # several reach the limit for a moment only: without a counter that may be missed
    said: str = None  # the program's output when it reached the limit: then the limit must be reported
    quick: tuple = ()  # options for repeated runs: smaller budgets


def _probe(*words):
    return (PROBE, *map(str, words))


def _memory(name, beyond, within, budget=64, **rest):
    # Both times: in an emulated machine what the host takes counts as CPU time of whoever runs.
    rest_of_options = ("--disk", "1G", "--set", 'limits.file_size="1G"', "--timeout", AMPLE, "--cpu-time", AMPLE)
    return Cause(name, ("--memory", f"{budget}M", *rest_of_options), beyond, within, MEMORY, "memory",
                 quick=("--memory", "32M", *rest_of_options), **rest)


# The result with polling: (ends, met, the entry of `degraded`, the program's output).
REFUSED = {"polled": (EXITED, None, "limits.memory", "refused ENOSYS")}
UNSEEN = {"polled": (EXITED, None, "limits.memory", "worked")}

# For a child that is never reaped, only this clock has the time after it has ended.
TASK_CLOCK = ("limits.cpu_time", "no task clock: perf_event_open: ")

_few_processes = ("--processes", "24", "--timeout", "1500ms", "--cpu-time", "60s")
_ending_processes = ("--processes", "24", "--timeout", AMPLE, "--cpu-time", "60s")
_quick_processes = ("--processes", "24", "--timeout", "400ms", "--cpu-time", "60s")
_cpu = ("--cpu-time", "300ms", "--timeout", AMPLE, "--processes", "64")
_quick_cpu = ("--cpu-time", "60ms", "--timeout", AMPLE, "--processes", "64")
_soon = ("--timeout", "60ms")

MEMORY_CAUSES = (
    _memory("anonymous memory", _probe("hold-anonymous", 1024), _probe("hold-anonymous", 16)),
    _memory("memory after a rest", _probe("hold-after-rest", 24, 1024), _probe("hold-after-rest", 16, 8)),
    _memory("12 children of 64 MiB", _probe("hold-children", 12, 64), _probe("hold-children", 4, 16), budget=256),
    _memory("memory after forks that share", _probe("hold-after-forks", 3, 40, 1024), _probe("hold-after-forks", 3, 40, 8)),
    _memory("memory that a child borrows", _probe("hold-with-borrower", 1024), _probe("hold-with-borrower", 48)),
    _memory("memory of a child that begins late", _probe("hold-in-late-child", 1024), _probe("hold-in-late-child", 16)),
    _memory("memory after the first thread left", _probe("hold-without-first", 1024), _probe("hold-without-first", 16)),
    _memory("page tables", _probe("hold-page-tables", 1024), _probe("hold-page-tables", 16)),
    _memory("shared memory given up", _probe("hold-given-up", 1024), _probe("hold-given-up", 16), unless=UNSEEN),
    _memory("shared memory beside a file", _probe("hold-beside-file", "/tmp/f", 56, 0, 56, 0), _probe("hold-beside-file", "/tmp/f", 48, 48, 8, 0)),
    _memory("memory that four share beside a file", _probe("hold-beside-file", "/tmp/f", 56, 4, 56, 3), _probe("hold-beside-file", "/tmp/f", 24, 0, 24, 3)),
    _memory("tmpfs", _probe("fill", "/tmp/f", 400 * MIB), _probe("fill", "/tmp/f", 16 * MIB)),
    _memory("/dev/shm", _probe("fill", "/dev/shm/f", 400 * MIB), _probe("fill", "/dev/shm/f", 16 * MIB)),
    _memory("memfd", _probe("hold-memfd", 400), _probe("hold-memfd", 16), unless=REFUSED),
    _memory("System V memory", _probe("hold-sysv", 400), _probe("hold-sysv", 16), unless=REFUSED),
    _memory("System V semaphores", _probe("hold-semaphores", 128), _probe("hold-semaphores", 16), unless=REFUSED),
    _memory("System V queues", _probe("hold-messages", 200), _probe("hold-messages", 16), unless=REFUSED),
    _memory("unix streams filled", _probe("hold-buffers", "sockets", 256, "stay"), _probe("hold-buffers", "sockets", 8)),
    _memory("unix streams filled and closed", _probe("hold-buffers", "sockets", 256, "closed", "stay"), _probe("hold-buffers", "sockets", 8, "closed")),
    _memory("unix datagrams", _probe("hold-buffers", "datagrams", 256, "stay"), _probe("hold-buffers", "datagrams", 8)),
    _memory("pipes filled", _probe("hold-buffers", "pipes", 256), _probe("hold-buffers", "pipes", 8), unless=UNSEEN),
)
PROCESS_CAUSES = (
    Cause("fork bomb in Python", _few_processes, ("--lang", "python", "-c", PYTHON_BOMB), ("--lang", "python", "-c", PYTHON_TWIN), WALL,
          "processes", "processes", said="refused", quick=("--processes", "24", "--timeout", "1s", "--cpu-time", "60s")),
    Cause("fork bomb in sh", _few_processes, ("--", "sh", "-c", SHELL_BOMB), ("--", "sh", "-c", SHELL_TWIN), WALL, "processes", "processes",
          passing=True, said="Cannot fork", quick=_quick_processes),
    Cause("thread bomb", _ending_processes, _probe("threads", 200), _probe("threads", 8), EXITED, "processes", "processes"),
    Cause("zombies", _ending_processes, _probe("zombies", 200), _probe("zombies", 8), EXITED, "processes", "processes"),
    Cause("end at the refused fork", _ending_processes, ("--lang", "python", "-c", PYTHON_LEAVES), ("--lang", "python", "-c", PYTHON_TWIN), EXITED,
          "processes", "processes"),
)
CPU_CAUSES = (
    Cause("CPU in one process", _cpu, _probe("spin"), _probe("spin-parallel", 1, 20), CPU, unit="ms CPU", quick=_quick_cpu),
    Cause("CPU in short-lived children", _cpu, _probe("spin-children", "waited", 200, 10), _probe("spin-children", "waited", 5, 5), CPU,
          unit="ms CPU", quick=_quick_cpu),
    Cause("CPU in children nobody waits for", _cpu, _probe("spin-children", "ignored", 200, 10), _probe("spin-children", "ignored", 5, 5),
          CPU, unit="ms CPU", without=TASK_CLOCK, quick=_quick_cpu),
    Cause("CPU in parallel", _cpu, _probe("spin-parallel", 4, 2000), _probe("spin-parallel", 4, 10), CPU, unit="ms CPU", quick=_quick_cpu),
    Cause("CPU after sched_setaffinity", ("--cpus", "1", "--timeout", "600ms", "--cpu-time", "60s"),
          _probe("spin-parallel", 4, 20000, "widen"), _probe("spin-parallel", 4, 10, "widen"), WALL, unit="ms CPU",
          quick=("--cpus", "1", "--timeout", "60ms", "--cpu-time", "60s")),
)
SIZE_CAUSES = (
    Cause("disk filled", ("--disk", "16M"), _probe("fill", "/tmp/f", 64 * MIB), _probe("fill", "/tmp/f", 4 * MIB), EXITED, "disk"),
    Cause("files without names", ("--disk", "16M"), _probe("fill-nameless", "/tmp", 64), _probe("fill-nameless", "/tmp", 8), EXITED, "disk"),
    Cause("inodes", ("--set", "limits.disk_files=200"), _probe("make-files", "/tmp", 1000), _probe("make-files", "/tmp", 50), EXITED,
          "disk_files", "files"),
    Cause("sparse file", ("--set", 'limits.file_size="16M"'), _probe("make-sparse", "/tmp/f", 10**10), _probe("make-sparse", "/tmp/f", 10**6),
          ("over-budget", "file_size"), "file_size"),
    Cause("output on stdout", ("--output", "64K", "--set", 'output.exceed="kill"'), _probe("flood-output", 0, 1),
          _probe("flood-output", 20000, 1), OUTPUT),
    Cause("output on stderr", ("--output", "64K", "--set", 'output.exceed="kill"'), _probe("flood-output", 0, 2),
          _probe("flood-output", 20000, 2), OUTPUT),
    Cause("live grant, one long writer", ("--disk", "16M", "--set", 'limits.file_size="1G"', "--write", "{live}"),
          _probe("fill", "{live}/f", 256 * MIB), _probe("fill", "{live}/f", 4 * MIB), ("over-budget", "disk"), "disk", finishes=True),
    Cause("live grant, after the first thread left", ("--disk", "16M", "--set", 'limits.file_size="1G"', "--write", "{live}"),
          _probe("fill-without-first", "{live}/f", 256), _probe("fill-without-first", "{live}/f", 4), ("over-budget", "disk"), "disk",
          finishes=True),
    # Each lives for a moment; its writes are added to its parent's count once, when the parent reaps it.
    Cause("live grant, many short writers", ("--disk", "16M", "--set", 'limits.file_size="1G"', "--write", "{live}"),
          _probe("write-children", "{live}", 64, 4), _probe("write-children", "{live}", 3, 5), ("over-budget", "disk"), "disk", finishes=True),
)
TIME_CAUSES = (
    Cause("sleep", ("--timeout", "300ms"), ("--", "sleep", "100"), ("--", "sleep", "0.01"), WALL, unit="ms", quick=_soon),
    Cause("SIGSTOP of itself", ("--timeout", "300ms"), _probe("stop"), ("--", "sleep", "0.01"), WALL, unit="ms", quick=_soon),
    Cause("daemons left behind", ("--timeout", AMPLE), _probe("leave", "daemon", 5), ("--", "true"), EXITED, unit="ms"),
)
CAUSES = (*MEMORY_CAUSES, *PROCESS_CAUSES, *CPU_CAUSES, *SIZE_CAUSES, *TIME_CAUSES)

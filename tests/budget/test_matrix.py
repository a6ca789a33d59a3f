"""Each way to use up a budget, with the mechanisms of this machine and caller: the verdict, how far beyond, how long
to the end.

The cells are kept for print_matrix.py, with the longest delay of a ticker outside. Only a quiet machine could be judged by
that: that the host stays usable is shown by the CPU time which sbx itself takes, beside that of the program."""

import functools
import os
import resource
import subprocess

from budgettest import MIB, BudgetTest, Ticker, means_of, sbxtest
from causes import CPU_CAUSES, MEMORY, MEMORY_CAUSES, PROCESS_CAUSES, SIZE_CAUSES, TIME_CAUSES
from harness import AMPLE
from refused_calls import EACCES, refuse_calls

# The promise is for one program at 1.5 GB/s. Sockets are filled at 5 GB/s, whatever the speed of memory: a budget
# this small is far exceeded before the next look.
START_MS = 300  # CPU time of sbx for a start and an end
FASTER = ("unix streams filled", "unix streams filled and closed", "unix datagrams")
FROM_SEVERAL = ("12 children of 64 MiB", "memory after forks that share")


@functools.cache
def faster_than_promised():
    """How much faster than the promised 1.5 GB/s a program that has a CPU fills memory here; at least 1. Its CPU time
    tells: other programs take CPUs away now and then, and not always while this is measured."""
    size = 512
    process = sbxtest.start([sbxtest.PROBE, "hold-anonymous", str(size)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise AssertionError(f"hold-anonymous ended with {process.returncode}")
    return max(size * MIB / (used.ru_utime + used.ru_stime) / 1.5e9, 1)


class Matrix(BudgetTest):
    def measured(self, cause):
        """The end, the ticker's delay, and the CPU time in ms of sbx without that of the program."""
        with Ticker() as ticker:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            ended = self.run_cause(cause, cause.beyond)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        own = 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
        if ended.record:
            own -= ended.record["usage"]["user_ms"] + ended.record["usage"]["system_ms"]
        return ended, ticker.late, own

    def too_busy(self, cause, ended, own):
        """Whether sbx itself took more than half a CPU. Not judged in an emulated machine, whose CPU time includes that in
        which the host gives its CPUs to others."""
        return ended.record and not self.missing(cause, ended) and not os.environ.get("SBX_EMULATED") and \
            own > START_MS + ended.record["usage"]["wall_ms"] // 2

    @staticmethod
    def too_far(cause, ended, late):
        """Bytes by which polled memory exceeded its budget beyond the promise: 5 % or 16 MiB (per CPU, if several
        processes allocate) at the promised speed, and what two programs allocate while no look is possible. Not
        judged in an emulated machine, where a look costs milliseconds."""
        if cause.name in FASTER or ended.verdict != MEMORY or means_of(ended) != "polled" or os.environ.get("SBX_EMULATED"):
            return 0
        budget = ended.record["limits"]["memory_bytes"]
        takers = len(os.sched_getaffinity(0)) if cause.name in FROM_SEVERAL else 1
        allowed = int(max(budget // 20, 16 * MIB) * takers * faster_than_promised()) + late * 4 * MIB
        return max(next(limit["peak"] for limit in ended.record["limits_met"] if limit["limit"] == "memory") - budget - allowed, 0)

    def beyond(self, causes):
        problems = []
        for cause in causes:
            ended, late, own = self.measured(cause)
            if wrong := self.wrong(cause, ended):
                problems.append(f"{cause.name}: {wrong}\n{ended}")
            over = self.too_far(cause, ended, late)
            for _ in range(2):
                if over:
                    over = min(over, self.too_far(cause, *self.measured(cause)[:2]))
            if over:
                problems.append(f"{cause.name}: {over // MIB} MiB further beyond the budget than allowed, three times")
            if self.too_busy(cause, ended, own):
                problems.append(f"{cause.name}: sbx itself took {own:.0f} ms of CPU time, more than half a CPU\n{ended}")
            if ended.record:
                self.keep(self.cell(cause, ended, late))
        if problems:
            self.fail("\n".join(problems))

    def within(self, causes):
        problems = []
        for cause in causes:
            # A machine that stops for a while spends a short wall time too.
            options = [AMPLE if before == "--timeout" else word for before, word in zip(("", *cause.options), cause.options)]
            ended = self.run_cause(cause, cause.within, options)
            if (ended.verdict, ended.outcome["exit_code"]) != (("exited", None), 0) and not cause.unless.get(means_of(ended)):
                problems.append(f"{cause.name}: {ended}")
            if ended.record["limits_met"]:
                problems.append(f"{cause.name}: met {ended.record['limits_met']}")
        if problems:
            self.fail("\n".join(problems))

    def test_memory_beyond_the_budget(self):
        self.beyond(MEMORY_CAUSES)

    def test_memory_within_the_budget(self):
        self.within(MEMORY_CAUSES)

    def test_processes_beyond_the_budget(self):
        self.beyond(PROCESS_CAUSES)

    def test_processes_within_the_budget(self):
        self.within(PROCESS_CAUSES)

    def test_cpu_beyond_the_budget(self):
        self.beyond(CPU_CAUSES)

    def test_cpu_within_the_budget(self):
        self.within(CPU_CAUSES)

    def test_cpu_beyond_the_budget_without_a_task_clock(self):
        """Then only a child that is never reaped escapes, and `degraded` reports it."""
        without_clock = {"env": {"SBX_TEST_MEANS": "polled"}, "preexec_fn": lambda: refuse_calls({"perf_event_open": EACCES})}
        got_away = []
        for cause in CPU_CAUSES:
            ended = self.run_cause(cause, cause.beyond, **without_clock)
            self.assertEqual(self.wrong(cause, ended), "", f"{cause.name}: {ended}")
            if "no task clock: perf_event_open: Permission denied" in self.cell(cause, ended, 0)["weaker"]:
                got_away.append(cause.name)
        self.assertLessEqual(set(got_away), {"CPU in children nobody waits for"})

    def test_sizes_beyond_the_budget(self):
        self.beyond(SIZE_CAUSES)

    def test_sizes_within_the_budget(self):
        self.within(SIZE_CAUSES)

    def test_time_beyond_the_budget(self):
        self.beyond(TIME_CAUSES)

    def test_time_within_the_budget(self):
        self.within(TIME_CAUSES)


if __name__ == "__main__":
    sbxtest.main()

"""The verdict is right however often a cause runs: every cause many times, mixed, more at once than there are CPUs."""

import json
import os
import random
import sys
import threading

from budgettest import BudgetTest, means_of, sbxtest
from causes import CAUSES

FAST, SLOW = 4, 1000
WORKERS = 3 * (os.cpu_count() or 1)
PROGRESS = 1000  # runs between two lines of progress


class Seen:
    def __init__(self):
        self.lock = threading.Lock()
        self.runs = 0
        self.wrong = []


class Mixed(BudgetTest):
    def worker(self, causes, result):
        """A process with its own runs and orphans: after each run it writes a line of JSON with the error, or null."""
        pid = os.fork()
        if pid == 0:
            with os.fdopen(result, "w", buffering=1) as out:
                try:
                    sbxtest.adopt_orphans()
                    self.live = self.tmp / f"live-{os.getpid()}"
                    self.live.mkdir()
                    for cause in causes:
                        ended = self.run_cause(cause, cause.beyond, cause.quick)
                        said = self.wrong(cause, ended)
                        out.write(json.dumps(f"{cause.name}: {said}\n{ended}" if said else None) + "\n")
                except BaseException as error:  # noqa: BLE001  reported by the parent
                    out.write(json.dumps(repr(error)) + "\n")
            os._exit(0)
        return pid

    def follow(self, answers, count, seen):
        """Prints a worker's answers as they arrive, so that an interrupted run shows them."""
        with os.fdopen(answers) as lines:
            for line in lines:
                said = json.loads(line)
                with seen.lock:
                    seen.runs += 1
                    if said:
                        seen.wrong.append(said)
                        print(f"misnamed, run {seen.runs} of {count}: {said}", file=sys.stderr, flush=True)
                    if seen.runs % PROGRESS == 0:
                        print(f"{seen.runs} of {count} runs, {len(seen.wrong)} misnamed", file=sys.stderr, flush=True)

    def is_missing_something(self, cause):
        return bool(cause.without) and self.missing(cause, self.run_cause(cause, cause.beyond)) is not None

    def mixed(self, times):
        means = means_of(self.sbx("--", "true"))
        # Programs that can't be stopped here run for seconds: the matrix covers them once.
        causes = [cause for cause in CAUSES if means not in cause.unless and not self.is_missing_something(cause)] * times
        random.Random(times).shuffle(causes)
        seen, workers, pipes = Seen(), [], []
        for first in range(WORKERS):
            ours, theirs = os.pipe()
            workers.append(self.worker(causes[first::WORKERS], theirs))
            pipes.append(ours)
            os.close(theirs)
        followers = [threading.Thread(target=self.follow, args=(pipe, len(causes), seen)) for pipe in pipes]
        for follower in followers:
            follower.start()
        for follower in followers:
            follower.join()
        for pid in workers:
            os.waitpid(pid, 0)
        print(f"{seen.runs} runs by {means}, {len(seen.wrong)} misnamed", file=sys.stderr)
        if seen.wrong:
            self.fail(f"{len(seen.wrong)} of {len(causes)} were misnamed:\n" + "\n".join(seen.wrong[:20]))
        self.assertEqual(seen.runs, len(causes), "a worker died")

    def test_each_cause_many_times(self):
        self.mixed(FAST)

    def test_slow_each_cause_1000_times(self):
        self.mixed(SLOW)


if __name__ == "__main__":
    sbxtest.main()

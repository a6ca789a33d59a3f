"""The verdict is true however often it is asked for: every cause many times, mixed, in parallel, on a loaded machine."""

import json
import os
import random
import sys

from budgettest import BudgetTest, means_of, sbxtest
from causes import CAUSES

FAST, SLOW = 50, 1000
WORKERS = 4


class Mixed(BudgetTest):
    def setUp(self):
        super().setUp()
        busy = sbxtest.spinners(os.cpu_count() or 1)
        self.addCleanup(sbxtest.stop, busy)

    def some(self, causes):
        """Runs these one after the other; what was misnamed."""
        wrong = []
        for cause in causes:
            ended = self.run_cause(cause, cause.beyond, cause.quick)
            if said := self.wrong(cause, ended):
                wrong.append(f"{cause.name}: {said}\n{ended}")
        return wrong

    def worker(self, causes, result):
        """A process with runs, and orphans, of its own; its answer is a line of JSON."""
        pid = os.fork()
        if pid == 0:
            answer = ["the worker died"]
            try:
                sbxtest.adopt_orphans()
                self.live = self.tmp / f"live-{os.getpid()}"
                self.live.mkdir()
                answer = self.some(causes)
            except BaseException as error:  # noqa: BLE001  reported by the parent, whatever it is
                answer = [repr(error)]
            with os.fdopen(result, "w") as out:
                out.write(json.dumps(answer) + "\n")
            os._exit(0)
        return pid

    def mixed(self, times):
        means = means_of(self.sbx("--", "true"))
        # What this means can't stop runs to its own end, for seconds: the matrix has it once.
        causes = [cause for cause in CAUSES if means not in cause.unless] * times
        random.Random(times).shuffle(causes)
        wrong, pipes = [], []
        for first in range(WORKERS):
            ours, theirs = os.pipe()
            pipes.append((self.worker(causes[first::WORKERS], theirs), ours))
            os.close(theirs)
        for pid, ours in pipes:
            with os.fdopen(ours) as answers:
                wrong += json.loads(answers.read() or '["the worker died"]')
            os.waitpid(pid, 0)
        print(f"{len(causes)} runs by {means}, {len(wrong)} misnamed", file=sys.stderr)
        if wrong:
            self.fail(f"{len(wrong)} of {len(causes)} were misnamed:\n" + "\n".join(wrong[:20]))

    def test_each_cause_many_times(self):
        self.mixed(FAST)

    def test_slow_each_cause_1000_times(self):
        self.mixed(SLOW)


if __name__ == "__main__":
    sbxtest.main()

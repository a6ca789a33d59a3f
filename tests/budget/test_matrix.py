"""Each way to use up a budget, on the means that this machine and caller have: the verdict, how far over, how long to the end.

The cells are kept for print_matrix.py. A ticker outside shows that the host stays usable meanwhile.
"""

from budgettest import LATE_MS, BudgetTest, Ticker, means_of, sbxtest
from causes import CAUSES


class Matrix(BudgetTest):
    def measured(self, cause):
        with Ticker() as ticker:
            ended = self.run_cause(cause, cause.beyond)
        return ended, ticker.late

    def beyond(self, first, last):
        problems = []
        for cause in CAUSES[first:last]:
            ended, late = self.measured(cause)
            if wrong := self.wrong(cause, ended):
                problems.append(f"{cause.name}: {wrong}\n{ended}")
            # Other programs of this machine can make the ticker late too; what sbx lets happen happens each time.
            for _ in range(2):
                if late > LATE_MS:
                    late = min(late, self.measured(cause)[1])
            if late > LATE_MS:
                problems.append(f"{cause.name}: a process outside waited {late} ms, three times")
            if ended.record:
                self.keep(self.cell(cause, ended, late))
        if problems:
            self.fail("\n".join(problems))

    def within(self, first, last):
        problems = []
        for cause in CAUSES[first:last]:
            ended = self.run_cause(cause, cause.within)
            if (ended.verdict, ended.outcome["exit_code"]) != (("exited", None), 0) and not cause.unless.get(means_of(ended)):
                problems.append(f"{cause.name}: {ended}")
            if ended.record["limits_met"]:
                problems.append(f"{cause.name}: met {ended.record['limits_met']}")
        if problems:
            self.fail("\n".join(problems))

    def test_memory_beyond_the_budget(self):
        self.beyond(0, 8)

    def test_memory_within_the_budget(self):
        self.within(0, 8)

    def test_processes_beyond_the_budget(self):
        self.beyond(8, 13)

    def test_processes_within_the_budget(self):
        self.within(8, 13)

    def test_cpu_beyond_the_budget(self):
        self.beyond(13, 18)

    def test_cpu_within_the_budget(self):
        self.within(13, 18)

    def test_sizes_beyond_the_budget(self):
        self.beyond(18, 26)

    def test_sizes_within_the_budget(self):
        self.within(18, 26)

    def test_time_beyond_the_budget(self):
        self.beyond(26, None)

    def test_time_within_the_budget(self):
        self.within(26, None)


if __name__ == "__main__":
    sbxtest.main()

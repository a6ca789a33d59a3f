"""The problems of HumanEval as cells of one context: the same verdicts as one run each, and the state is there after each failure."""

import gzip
import json
import os
import pathlib

import sessiontest
from sbxtest import SOURCE
from test_eval import EvalTest

HUMANEVAL = [pathlib.Path(os.environ["SBX_HUMANEVAL"])] if os.environ.get("SBX_HUMANEVAL") else []
HUMANEVAL.append(SOURCE.parent / "shared" / "data" / "HumanEval.jsonl.gz")


class HumanEval(EvalTest):
    def problems(self):
        found = [place for place in HUMANEVAL if os.access(place, os.R_OK)]
        if not found:
            self.skipTest("HumanEval.jsonl.gz is not here (SBX_HUMANEVAL, ../shared/data)")
        with gzip.open(found[0], "rt", encoding="utf-8") as lines:
            problems = [json.loads(line) for line in lines]
        self.assertEqual(len(problems), 164)
        return problems

    def code(self, problem, body):
        return problem["prompt"] + body + "\n" + problem["test"] + f"\ncheck({problem['entry_point']})\n"

    def passes_as_cell(self, code):
        record = self.eval(code, "--json").record
        self.assertEqual(record["outcome"]["status"], "answered", record)
        return record["answer"]["ok"]

    def test_all_problems_as_cells_of_one_context(self):
        self.start_session("--timeout", "60s", "--cpu-time", "600s")
        self.cell("kept = 'state'")
        wrong = [each["task_id"] for each in self.problems() if not self.passes_as_cell(self.code(each, each["canonical_solution"]))]
        self.assertEqual(wrong, [])
        record = self.answered(self.cell("kept"))
        self.assertEqual((self.value(record), record["answer"]["count"]), ("'state'", 166))

    def test_broken_solutions_fail_as_in_a_run_and_lose_nothing(self):
        self.start_session("--timeout", "60s", "--cpu-time", "600s")
        self.cell("kept = 'state'")
        failed = 0
        for problem in self.problems():
            code = self.code(problem, "    return None")
            as_cell = self.passes_as_cell(code)
            as_run = self.run_sbx("run", "--quiet", "--lang", "python", "-c", code).status == 0
            self.assertEqual(as_cell, as_run, problem["task_id"])
            failed += not as_cell
        record = self.answered(self.cell("kept"))
        self.assertEqual((self.value(record), record["answer"]["count"]), ("'state'", 166))
        self.assertGreater(failed, 150)


if __name__ == "__main__":
    sessiontest.main()

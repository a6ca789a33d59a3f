"""HumanEval: reference solutions pass, and broken bodies end for the right reason.

The data is not part of the project: SBX_HUMANEVAL gives its path; the default is ../shared/data."""

import gzip
import json
import os
import pathlib
import statistics
import subprocess
import time

import sbxtest
from sbxtest import SBX, SOURCE, SbxTest

PLACES = [pathlib.Path(os.environ["SBX_HUMANEVAL"])] if os.environ.get("SBX_HUMANEVAL") else []
PLACES.append(SOURCE.parent / "shared" / "data" / "HumanEval.jsonl.gz")
MOST = int(os.environ.get("SBX_PROBLEMS", "164"))  # fewer in a guest, where each start takes a second

SPIN = "    while True: pass\n"
SLEEP = "    import time\n    time.sleep(1000)\n"
FLOOD = "    import sys\n    for _ in range(3000): sys.stdout.write('y' * 1000 + '\\n')\n    sys.exit(0)\n"
# Ten gigabytes: in one piece if the kernel permits it (DESIGN's backstop for the host leaves half of the free
# memory), every page touched; and in steps.
PIECE = "    return b'x' * {bytes}\n"
STEPS = "    held = []\n    for _ in range(10240): held.append(b'x' * (1 << 20))\n"
CHILDREN = ("    import os, time\n    for _ in range(200):\n        if os.fork() == 0:\n            held = b'x' * 50_000_000\n"
            "            time.sleep(100)\n    time.sleep(100)\n")
BOMB = "    import os\n    while True: os.fork()\n"
FILE = "    with open('/tmp/large', 'wb') as file:\n        for _ in range(10240): file.write(b'x' * (1 << 20))\n"
SMALL = ["--memory", "256M", "--timeout", "60s", "--cpu-time", "60s"]


def largest_piece():
    """10 GB, or what a program gets at once here."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        available = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    return min(10 * 10**9, available * 1024 * 2 // 5)


class HumanEval(SbxTest):
    def setUp(self):
        super().setUp()
        found = [place for place in PLACES if os.access(place, os.R_OK)]
        if not found:
            self.skipTest("HumanEval.jsonl.gz is not here (SBX_HUMANEVAL, ../shared/data)")
        with gzip.open(found[0], "rt", encoding="utf-8") as lines:
            self.problems = [json.loads(line) for line in lines]

    def program(self, problem, body=None):
        """One script: the prompt, the body, the tests."""
        text = problem["prompt"] + (problem["canonical_solution"] if body is None else body)
        text += "\n" + problem["test"] + f"\ncheck({problem['entry_point']})\n"
        return self.write(problem["task_id"].replace("/", "-") + ".py", text)

    def all_of(self, problems, body, options, check, policy="python"):
        """Runs the problems; lists every one that ends differently."""
        ends = [(problem["task_id"], self.sbx("-p", policy, *options, self.program(problem, body))) for problem in problems]
        wrong = [f"{name}: {ended}" for name, ended in ends if not check(ended)]
        self.assertEqual(wrong, [])
        self.assertEqual(len(ends), len(problems))

    def some(self):
        """Twelve problems, spread over the whole set."""
        return self.problems[::14][:12]

    @staticmethod
    def passed_unhindered(ended):
        return HumanEval.passed(ended) and ended.record["denials"] == [] and ended.record["limits_met"] == []

    @staticmethod
    def passed(ended):
        return (*ended.verdict, ended.outcome["exit_code"], ended.status) == ("exited", None, 0, 0)

    @staticmethod
    def spun(ended):
        return (*ended.verdict, ended.status) == ("over-budget", "cpu_time", 152)

    @staticmethod
    def slept(ended):
        return (*ended.verdict, ended.status) == ("over-budget", "wall_time", 124)

    @staticmethod
    def flooded(ended):
        stream = ended.record["stdout"]
        return HumanEval.passed(ended) and stream["truncated"] and stream["bytes"] == 3000 * 1001 and stream["head_bytes"] + stream["tail_bytes"] == 65536

    @staticmethod
    def out_of_memory(ended):
        return (*ended.verdict, ended.status) == ("over-budget", "memory", 137) and HumanEval.met(ended, "memory")

    @staticmethod
    def met(ended, limit):
        return limit in [met["limit"] for met in ended.record["limits_met"]]

    @staticmethod
    def bombed(ended):
        """The bomb itself only gets an allocation failure; its own error ends it, and the limit is reported."""
        return ended.outcome["status"] in ("exited", "over-budget") and HumanEval.met(ended, "processes")

    @staticmethod
    def filled(ended):
        return ended.outcome["status"] == "exited" and not ended.outcome["success"] and HumanEval.met(ended, "disk")

    def hostile(self, problems):
        for body, options, check in ((PIECE.format(bytes=largest_piece()), SMALL, self.out_of_memory), (STEPS, SMALL, self.out_of_memory),
                                     (CHILDREN, [*SMALL, "--processes", "256"], self.out_of_memory), (BOMB, [*SMALL, "--processes", "24"], self.bombed),
                                     (FILE, [*SMALL, "--disk", "64M", "--set", 'limits.file_size="16G"'], self.filled)):
            with self.subTest(body=body):
                self.all_of(problems, body, options, check)

    def test_hostile_bodies_are_named(self):
        self.hostile(self.problems[::60])

    def test_slow_all_hostile_bodies_are_named(self):
        self.hostile(self.problems)

    def test_reference_solutions_pass(self):
        self.assertEqual(len(self.problems), 164)
        self.all_of(self.problems[:MOST], None, [], self.passed)

    def test_some_reference_solutions_pass_under_strict_and_default(self):
        for policy in ("strict", "default"):
            self.all_of(self.some(), None, [], self.passed_unhindered, policy)

    def test_slow_reference_solutions_pass_under_strict(self):
        self.all_of(self.problems, None, [], self.passed_unhindered, "strict")

    def test_slow_reference_solutions_pass_under_default(self):
        self.all_of(self.problems, None, [], self.passed_unhindered, "default")

    def test_slow_time_inside_beside_time_outside(self):
        """Including the interpreter's start: the median of all problems' ratios. Printed; the bound is for an idle
        machine."""
        ratios = []
        for problem in self.problems:
            script = self.program(problem)
            times = {"outside": [], "inside": []}
            for _ in range(5):  # the minimum of five: other load only adds
                for where, command in (("outside", ["/usr/bin/python3", script]), ("inside", [SBX, "run", "-q", "-p", "python", script])):
                    began = time.perf_counter()
                    done = subprocess.run(command, cwd=self.work, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False)
                    times[where].append(time.perf_counter() - began)
                    self.assertEqual(done.returncode, 0, done.stderr)
            ratios.append(min(times["inside"]) / min(times["outside"]))
        ratios.sort()
        print(f"time inside / outside: median {statistics.median(ratios):.3f}, least {ratios[0]:.3f}, most {ratios[-1]:.3f} of {len(ratios)} problems")
        self.assertLess(statistics.median(ratios), 3 if os.environ.get("SBX_BUSY") else 1.5)

    def test_spinning_bodies_end_by_cpu_time(self):
        self.all_of(self.some(), SPIN, ["--cpu-time", "400ms"], self.spun)

    def test_sleeping_bodies_end_by_wall_time(self):
        self.all_of(self.some(), SLEEP, ["--timeout", "400ms"], self.slept)

    def test_flooding_bodies_are_truncated(self):
        self.all_of(self.some(), FLOOD, ["--output", "64K"], self.flooded)

    def test_slow_all_spinning_bodies_end_by_cpu_time(self):
        self.all_of(self.problems, SPIN, ["--cpu-time", "1s"], self.spun)

    def test_slow_all_sleeping_bodies_end_by_wall_time(self):
        self.all_of(self.problems, SLEEP, ["--timeout", "1s"], self.slept)

    def test_slow_all_flooding_bodies_are_truncated(self):
        self.all_of(self.problems, FLOOD, ["--output", "64K"], self.flooded)


if __name__ == "__main__":
    sbxtest.main()

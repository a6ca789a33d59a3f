"""The cost of a start in system calls and memory. The bench target measures times."""

import os
import pathlib
import platform
import re
import shutil
import subprocess
import unittest

import sbxtest
from sbxtest import PROBE, SBX, SOURCE, SbxTest

CEILINGS = SOURCE / "tests" / "sandbox" / "start_ceilings.txt"


def ceiling(name):
    if platform.machine() != "x86_64":
        raise unittest.SkipTest("the ceilings are those of x86-64")
    return int(dict(line.split() for line in CEILINGS.read_text().splitlines() if line and not line.startswith("#"))[name])


class Cost(SbxTest):
    def calls_of(self, *arguments):
        if shutil.which("strace") is None:
            self.skipTest("strace is not installed")
        log = self.tmp / "counts"
        process = sbxtest.start(["strace", "-f", "-c", "-o", log, *self.command(*arguments, json_record=False)], env=self.environment(),
                                cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        ended = self.finish(process, json_record=False)
        self.assertEqual(ended.status, 0, ended)
        total = [line.split() for line in log.read_text().splitlines() if line.endswith("total")]
        self.assertEqual(len(total), 1, log.read_text())
        return int(total[0][3]), log.read_text()  # % time, seconds, µs a call, calls, errors if any, "total"

    def test_system_calls_stay_below_the_ceiling(self):
        # The minimum of several: where budgets are polled, a supervisor that is delayed polls more often.
        calls, table = min(self.calls_of("--", "true") for _ in range(20))
        print(f"system calls of `sbx run -- true`: {calls}")
        self.assertLessEqual(calls, ceiling("system-calls-root" if sbxtest.IS_ROOT else "system-calls-user"), table)

    def test_ceiling_counts_the_command_too(self):
        few, _ = self.calls_of("--", "true")
        many, _ = self.calls_of("--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do cat /dev/null; done")
        self.assertGreater(many, few + 9 * 10)

    def only_optimised(self):
        settings = pathlib.Path(os.environ["SBX_BUILD"], "CMakeCache.txt")
        if not settings.exists():  # a guest
            self.skipTest("there is no build directory here to ask how the binary was built")
        if "CMAKE_BUILD_TYPE:STRING=Release" not in settings.read_text():
            self.skipTest("the ceiling is for the optimised build")

    def test_page_faults_stay_below_the_ceiling(self):
        self.only_optimised()
        process = sbxtest.start(self.command("--", "true", json_record=False), env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        self.assertEqual(status, 0)
        print(f"page faults of `sbx run -- true`: {usage.ru_minflt}")
        self.assertGreater(usage.ru_minflt, 100, "a start without page faults was not measured")
        self.assertLessEqual(usage.ru_minflt, ceiling("page-faults"))

    def test_relocations_stay_below_the_ceiling(self):
        self.only_optimised()
        listed = subprocess.run(["readelf", "-rW", SBX], capture_output=True, text=True, check=True).stdout
        count = len(re.findall(r"^[0-9a-f]+ +[0-9a-f]+ R_", listed, re.MULTILINE))
        # .relr.dyn packs the relocations that only add the address of the binary: readelf counts them in one line.
        count += sum(int(offsets) for offsets in re.findall(r"^ +(\d+) offsets$", listed, re.MULTILINE))
        print(f"relocations of the binary: {count}")
        self.assertGreater(count, 100, listed[:1000])
        self.assertLessEqual(count, ceiling("relocations"))

    def resident_kib(self, pid):
        lines = pathlib.Path(f"/proc/{pid}/smaps_rollup")
        try:
            text = lines.read_text()
            return int(re.search(r"^Rss: +(\d+)", text, re.MULTILINE).group(1))
        except OSError:
            text = pathlib.Path(f"/proc/{pid}/status").read_text()
            return int(re.search(r"^VmRSS:\s+(\d+)", text, re.MULTILINE).group(1))

    def test_memory_of_supervisor_and_init_is_small(self):
        process = self.start_sbx(PROBE, "polite", 0, json_record=False)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        total = self.resident_kib(process.pid) + self.resident_kib(sbxtest.init_of(process))
        process.terminate()
        self.finish(process, json_record=False)
        print(f"supervisor and init: {total} KiB resident")
        self.assertLess(total, 24 * 1024, "a dynamic test build has the C++ library in it; the static release is measured by bench")


if __name__ == "__main__":
    sbxtest.main()

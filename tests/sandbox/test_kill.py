"""SIGKILL of sbx at any moment leaves no process and no mount; an ordinary run leaves nothing else either."""

import random
import subprocess
import time

import sbxtest
from sbxtest import PROBE, SbxTest


class Kill(SbxTest):
    def options(self):
        granted = self.write("granted", "x", directory=self.tmp)
        return ["--workspace", f"{self.work}:overlay", "--read", granted, "--write", self.home]

    def kill_at_random_moments(self, times):
        before = sbxtest.host_state()
        options = self.options()
        longest = self.duration_of_a_start(options)
        moments = random.Random(7)
        for _ in range(times):
            moment = moments.uniform(0, 1.5 * longest)
            process = self.start_sbx(*options, PROBE, "leave", "ignore", 4, "stay", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(moment)
            process.kill()
            process.wait(timeout=120)
            if sbxtest.orphans_after(sbxtest.GONE_WITHIN_SECONDS):
                self.fail(f"processes are left of a run killed after {moment * 1000:.1f} ms: {sbxtest.kill_orphans()}")
        self.assertEqual(sbxtest.left_since(before), {})

    def duration_of_a_start(self, options):
        begin = time.monotonic()
        self.exited(self.sbx(*options, PROBE, "leave", "ignore", 4))
        return time.monotonic() - begin

    def test_killed_at_50_moments(self):
        self.kill_at_random_moments(50)

    def test_slow_killed_at_1000_moments(self):
        self.kill_at_random_moments(1000)

    def test_ordinary_run_leaves_nothing(self):
        before = sbxtest.host_state()
        files = sorted(self.tmp.rglob("*"))
        ended = self.exited(self.sbx("--workspace", f"{self.work}:overlay", PROBE, "fill", self.work / "f", 100000))
        self.assertEqual(sbxtest.left_since(before), {})
        if any(each["what"] == "limits.disk" for each in ended.record["degraded"]):  # it was a directory of the state home
            for directory in (".local", ".local/state", ".local/state/sbx", ".local/state/sbx/disks"):
                files.append(self.home / directory)
        self.assertEqual(sorted(self.tmp.rglob("*")), sorted(files))

    def test_run_that_could_not_be_built_leaves_nothing(self):
        before = sbxtest.host_state()
        self.could_not(self.sbx("--read", self.tmp / "absent", PROBE, "exit", 0))
        ended = self.sbx(*self.options(), PROBE, "exit", 0, env={"SBX_TEST_FAIL": "pivot:EIO"})
        self.assertIn(ended.status, (0, 125), ended)
        self.assertEqual(sbxtest.left_since(before), {})


if __name__ == "__main__":
    sbxtest.main()

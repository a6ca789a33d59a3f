"""Many runs at once, fork bombs among them, and many in succession: every verdict is right, and nothing is left."""

import json
import os

import sbxtest
from sbxtest import SbxTest

AT_ONCE = 64
BOMBS = 24
IN_A_ROW = 1000

# Every copy continues to fork, whatever is refused.
BOMB = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n"


class Load(SbxTest):
    def setUp(self):
        super().setUp()
        self.before = (sbxtest.host_state(), sbxtest.groups())

    def nothing_is_left(self):
        self.assertFalse(sbxtest.orphans_after(sbxtest.GONE_WITHIN_SECONDS), sbxtest.kill_orphans())
        self.assertEqual(sbxtest.left_since(self.before[0]), {})
        self.assertEqual(sbxtest.dead_groups_since(self.before[1]), [])
        disks = self.home / ".local/state/sbx/disks"
        self.assertEqual(os.listdir(disks) if disks.is_dir() else [], [])

    def ordinary(self, number):
        return self.start_sbx("--", "sh", "-c", f"echo {number}; exit {number % 100}")

    def is_ordinary(self, number, process):
        out, err = process.communicate(timeout=120)
        told = (number, process.returncode, out[-2000:], err)
        self.assertEqual(process.returncode, number % 100, told)
        record = json.loads(out)
        self.assertEqual((record["outcome"]["status"], record["outcome"]["exit_code"], record["stdout"]["text"]), ("exited", number % 100, f"{number}\n"), told)

    def test_64_at_once_with_24_fork_bombs(self):
        bombs, others = [], []
        for number in range(AT_ONCE):
            if number * BOMBS // AT_ONCE != (number + 1) * BOMBS // AT_ONCE:
                bombs.append(self.start_sbx("--processes", "32", "--timeout", "3s", "--lang", "python", "-c", BOMB))
            else:
                others.append((number, self.ordinary(number)))
        self.assertEqual(len(bombs), BOMBS)
        for number, process in others:
            self.is_ordinary(number, process)
        for process in bombs:
            out, err = process.communicate(timeout=120)
            told = (process.returncode, out[-2000:], err)
            self.assertEqual(process.returncode, 124, told)
            record = json.loads(out)
            self.assertEqual((record["outcome"]["status"], record["outcome"]["reason"]), ("over-budget", "wall_time"), told)
            # With 63 others in parallel one may not reach that many in its time.
            self.assertLessEqual({met["value"] for met in record["limits_met"] if met["limit"] == "processes"}, {32}, told)
        self.nothing_is_left()

    def test_slow_1000_in_a_row(self):
        for number in range(IN_A_ROW):
            self.is_ordinary(number, self.ordinary(number))
        self.nothing_is_left()


if __name__ == "__main__":
    sbxtest.main()

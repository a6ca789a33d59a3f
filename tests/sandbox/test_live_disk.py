"""limits.disk in a live grant, where no kernel counts: each way in which a process could write there without being seen to."""

import sbxtest
from sbxtest import PROBE, SbxTest

MIB = 1 << 20
UNREADABLE = "import ctypes\nprint(ctypes.CDLL(None, use_errno=True).prctl(4, 0, 0, 0, 0), ctypes.get_errno())"
SET_ASIDE = "import ctypes, os\nf = os.open('f', os.O_CREAT | os.O_RDWR)\n" \
            "print(ctypes.CDLL(None, use_errno=True).fallocate(f, 0, ctypes.c_long(0), ctypes.c_long(8 << 20)), ctypes.get_errno())\n" \
            "print(os.fstat(f).st_blocks >> 11)"
# FS_IOC_RESVSP64 of a struct space_resv: the same by ioctl(2).
SET_ASIDE_BY_IOCTL = "import errno, fcntl, os, struct\nf = os.open('f', os.O_CREAT | os.O_RDWR)\n" \
                     "try: fcntl.ioctl(f, 0x4030582a, struct.pack('hhxxxxqqiI16x', 0, 0, 0, 8 << 20, 0, 0))\n" \
                     "except OSError as error: print(error.errno)\nprint(os.fstat(f).st_blocks >> 11)"
POSIX_SET_ASIDE = "import os\nf = os.open('f', os.O_CREAT | os.O_RDWR)\nos.posix_fallocate(f, 0, int(os.environ['MIB']) << 20)\n" \
                  "print(os.fstat(f).st_blocks >> 11)"
# A copy that it may run and not read: what such a program writes is told to the host's root alone.
RUN_ONLY = "cp \"$1\" /tmp/p; chmod 111 /tmp/p; shift; exec /tmp/p \"$@\""


class LiveDisk(SbxTest):
    def setUp(self):
        super().setUp()
        self.limits = ["--read", PROBE, "--disk", "16M", "--set", 'limits.file_size="1G"']
        self.live = ["--workspace", f"{self.work}:read-write", *self.limits]
        self.copy = ["--workspace", f"{self.work}:overlay", *self.limits]

    def stopped(self, ended):
        self.assertEqual((ended.verdict, ended.status), (("over-budget", "disk"), 153), ended)
        return ended

    def test_a_process_whose_first_thread_left_is_counted(self):
        ended = self.stopped(self.sbx(*self.live, PROBE, "fill-without-first", "f", "400"))
        self.assertEqual([met["limit"] for met in ended.record["limits_met"]], ["disk"])
        self.assertGreater(ended.record["usage"]["written_bytes"], 16 * MIB)
        self.exited(self.sbx(*self.live, PROBE, "fill-without-first", "f", "4"))

    def test_space_is_not_set_aside_without_a_count(self):
        self.assertEqual(self.exited(self.python(SET_ASIDE, options=self.live)).text, "-1 95\n0\n")
        for allowed in (self.copy, [*self.live, "--set", 'syscalls.allow=["fallocate"]']):
            self.assertEqual(self.exited(self.python(SET_ASIDE, options=allowed)).text, "0 0\n8\n")

    def test_space_is_not_set_aside_by_ioctl(self):
        self.assertEqual(self.exited(self.python(SET_ASIDE_BY_IOCTL, options=self.live)).text, "95\n0\n")
        self.assertEqual(self.exited(self.python(SET_ASIDE_BY_IOCTL, options=self.copy)).text, "8\n")

    def test_space_that_the_c_library_sets_aside_by_writing_is_counted(self):
        self.assertEqual(self.exited(self.python(POSIX_SET_ASIDE, options=[*self.live, "--set", 'environment.set={MIB="4"}'])).text, "4\n")
        self.stopped(self.python(POSIX_SET_ASIDE, options=[*self.live, "--set", 'environment.set={MIB="800"}']))

    def test_no_process_makes_itself_unreadable(self):
        ended = self.exited(self.python(UNREADABLE, options=self.live))
        self.assertEqual(ended.text, "-1 1\n")
        [denial] = [each for each in ended.record["denials"] if each["what"] == "prctl(PR_SET_DUMPABLE)"]
        self.assertIn("limits.disk", denial["rule"])
        option = denial["allow_with"].replace("syscalls.rule = ", "syscalls.rule=")
        for allowed in (self.copy, [*self.live, "--set", option]):
            self.assertEqual(self.exited(self.python(UNREADABLE, options=allowed)).text, "0 0\n")

    def test_a_program_that_it_may_not_read_is_stopped_where_it_cannot_be_counted(self):
        run = ["--", "sh", "-c", RUN_ONLY, "sh", PROBE, "sleep"]
        soon = ["--timeout", "300ms"]
        self.assertEqual(self.sbx(*self.copy, *soon, *run).verdict, ("over-budget", "wall_time"))
        ended = self.sbx(*self.live, *(soon if sbxtest.IS_ROOT else ["--timeout", "60s"]), *run)
        if sbxtest.IS_ROOT:  # who can read what it writes
            self.assertEqual(ended.verdict, ("over-budget", "wall_time"), ended)
            return
        self.assertIn("can't be counted", self.stopped(ended).outcome["detail"])
        self.assertEqual(ended.record["limits_met"], [])

    def test_a_program_that_it_may_not_read_is_stopped_amid_its_flood(self):
        self.stopped(self.sbx(*self.live, "--set", 'limits.file_size="100G"', "--", "sh", "-c", RUN_ONLY, "sh", PROBE, "fill", "f", str(20_000 * MIB)))


if __name__ == "__main__":
    sbxtest.main()

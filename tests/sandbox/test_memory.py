"""limits.memory: the sum over all processes, counted by the kernel in a cgroup, or else polled."""

import json
import os
import subprocess

import sbxtest
from sbxtest import SbxTest

MIB = 1 << 20
HOG = "import sys, time\nmib, step = map(int, sys.argv[1:3])\nheld = []\n" \
      "for _ in range(0, mib, step): held.append(b'x' * (step << 20))\nprint(len(held))\n"
SLOW_HOG = "import time\nheld = []\nwhile True: held.append(b'x' * (1 << 20)); time.sleep(0.003)"
CHILDREN = """
import os, sys, time
count, mib = map(int, sys.argv[1:3])
for _ in range(count):
    if os.fork() == 0:
        held = b'x' * (mib << 20)
        time.sleep(30 if count * mib > 128 else 0)
        os._exit(0)
for _ in range(count):
    os.wait()
print('done')
"""
SHARED_AFTER_FORK = """
import os, time
held = b'x' * (80 << 20)
readers = []
for _ in range(5):
    end, other = os.pipe()
    if os.fork() == 0:
        os.close(other)
        os.read(end, 1)
        os._exit(0)
    os.close(end)
    readers.append(other)
time.sleep(0.3)
for writer in readers:
    os.close(writer)
for _ in range(5):
    os.wait()
print('done')
"""
TMPFS = "import sys\nwith open('/dev/shm/x', 'wb') as f:\n for _ in range(int(sys.argv[1])): f.write(b'x' * (1 << 20))\nprint('done')"
SHARED_MAPPING = "import mmap, sys\nm = mmap.mmap(-1, int(sys.argv[1]) << 20)\nfor i in range(0, len(m), 4096): m[i] = 1\nprint('done')"


MEMFD = "import os, sys\nfd = os.memfd_create('x')\nfor _ in range(int(sys.argv[1])): os.write(fd, b'x' * (1 << 20))\nprint('done')"


class Memory(SbxTest):
    BUDGET = 128
    options = ["--memory", f"{BUDGET}M", "--disk", "512M", "--set", 'limits.file_size="512M"']

    def hog(self, code, *arguments):
        return self.python(code, *arguments, options=self.options)

    def over(self, ended):
        self.over_budget(ended, "memory", 137)
        met = [limit for limit in ended.record["limits_met"] if limit["limit"] == "memory"]
        counted = ended.record["enforced"]["memory"] != "polled"
        evidence = "kernel-counter" if counted else "sampled"
        self.assertEqual([(limit["value"], limit["evidence"]) for limit in met], [(self.BUDGET * MIB, evidence)], ended)
        self.assertGreaterEqual(met[0]["peak"], self.BUDGET * MIB * 0.98)
        if counted:
            self.assertLessEqual(met[0]["peak"], self.BUDGET * MIB)
        self.assertIn(f"memory limit of {self.BUDGET} MiB reached", ended.outcome["detail"])
        self.assertIn("limits.memory", ended.outcome["rule"])
        self.assertGreaterEqual(ended.record["usage"]["memory_peak_bytes"], met[0]["peak"])

    def test_hog_in_one_piece_is_over_budget(self):
        self.over(self.hog(HOG, 1000, 1000))

    def test_hog_in_steps_is_over_budget(self):
        self.over(self.hog(HOG, 4000, 1))

    def test_hog_below_the_budget_ends_by_itself(self):
        self.exited(self.hog(HOG, 60, 1))

    def test_children_together_are_over_budget(self):
        self.over(self.hog(CHILDREN, 12, 64))

    def test_children_below_the_budget_end_by_themselves(self):
        self.exited(self.hog(CHILDREN, 3, 10))

    def test_pages_shared_since_a_fork_count_once(self):
        self.assertEqual(self.exited(self.hog(SHARED_AFTER_FORK)).text, "done\n")

    def test_files_in_memory_are_over_budget(self):
        self.over(self.hog(TMPFS, 400))

    def test_files_below_the_budget_are_kept(self):
        self.exited(self.hog(TMPFS, 60))

    def test_shared_mapping_is_over_budget(self):
        self.over(self.hog(SHARED_MAPPING, 400))

    def test_shared_mapping_below_the_budget_works(self):
        self.exited(self.hog(SHARED_MAPPING, 60))

    def test_extended_attributes_in_memory_are_over_budget(self):
        """With each mechanism of this caller: kernel memory that is in no file's contents."""
        options = [*self.options, "--set", "limits.disk_files=1000000", "--timeout", "60s"]
        for means in ({}, {"SBX_TEST_MEANS": "polled"}):
            with self.subTest(**means):
                within = self.inside("fill-by", "attributes", "/tmp", "16", options=options, env=means).ended
                if "EOPNOTSUPP" in within.text:
                    self.skipTest("this kernel's tmpfs has no extended attributes for users")
                self.exited(within)
                self.over(self.inside("fill-by", "attributes", "/tmp", "400", "stay", options=options, env=means).ended)

    def test_many_files_are_within_the_budget(self):
        ended = self.inside("make-files", "/tmp", "9000", env={"SBX_TEST_MEANS": "polled"}).ended
        self.assertEqual(self.exited(ended).record["limits_met"], [], ended)

    def polls(self):
        return self.hog("pass").record["enforced"]["memory"] == "polled"

    def test_memory_files_are_over_budget_or_refused(self):
        """A cgroup counts it; polling does not see what no process has mapped."""
        if not self.polls():
            self.over(self.hog(MEMFD, 400))
            self.exited(self.hog(MEMFD, 60))

    def test_memory_that_polling_cannot_see_is_refused(self):
        if not self.polls():
            self.skipTest("a cgroup counts the memory here")
        ended = self.hog("import os\ntry: os.memfd_create('x'); print('made')\nexcept OSError as e: print(e.errno)")
        self.assertEqual(ended.text, "38\n", ended)
        self.assertEqual(ended.record["denials"], [], "a quiet ENOSYS: honest programs try and do without")

    def test_memory_file_that_is_granted_works(self):
        ended = self.python("import os\nos.memfd_create('x')\nprint('made')",
                            options=[*self.options, "--set", 'syscalls.allow=["memfd_create"]'])
        self.assertEqual(ended.text, "made\n", ended)

    def test_weaker_means_is_told(self):
        ended = self.hog("pass")
        polled = ended.record["enforced"]["memory"] == "polled"
        self.assertEqual("limits.memory" in [item["what"] for item in ended.record["degraded"]], polled, ended)

    def test_group_that_is_required_and_missing_is_an_error(self):
        asked = self.sbx("--require", "memory.cgroup", "--", "true")
        if self.polls():
            self.could_not(asked, "memory.cgroup")
        else:
            self.exited(asked)

    def test_limit_its_rule_and_the_largest_process_are_named(self):
        outcome = self.hog(SLOW_HOG).outcome
        for words in ("128 MiB", "limits.memory", "largest process: python3"):
            self.assertIn(words, outcome["detail"])
        self.assertIn('limits.memory = "128M"', outcome["rule"])

    def test_peak_is_not_below_what_one_process_had(self):
        """With each mechanism: also for a run that ends before the first look."""
        for means in ({}, {"SBX_TEST_MEANS": "polled"}):
            for held, least in ((0, 6 * MIB), (48, 54 * MIB)):
                with self.subTest(held=held, **means):
                    ended = self.exited(self.python(f"x = b'x' * ({held} << 20)", env=means))
                    peak = ended.record["usage"]["memory_peak_bytes"]
                    self.assertGreaterEqual(peak, least, ended)
                    self.assertLess(peak, least + 16 * MIB, ended)

    def test_peak_is_not_what_sbx_itself_needs(self):
        for means in ({}, {"SBX_TEST_MEANS": "polled"}):
            with self.subTest(**means):
                peak = self.exited(self.sbx("--", "true", env=means)).record["usage"]["memory_peak_bytes"]
                self.assertTrue(peak is None or peak < 2 * MIB, peak)

    def test_sampled_number_of_processes_is_no_peak(self):
        ended = self.exited(self.python("pass", env={"SBX_TEST_MEANS": "polled"}))
        self.assertIsNone(ended.record["usage"]["processes_peak"], ended)


class Polled(SbxTest):
    """Without a memory cgroup, for root too: the sandbox's memory counts, and memory that may be another program's
    decides nothing."""

    POLLED = {"SBX_TEST_MEANS": "polled"}

    def fill(self, budget, *words, options=()):
        return self.inside("hold-buffers", *words, options=["--memory", budget, "--timeout", "60s", *options], env=self.POLLED).ended

    def fills(self, *words, ways=((),)):
        for options in ways:
            with self.subTest(options=options):
                over = self.over_budget(self.fill("128M", *words, "stay", options=options), "memory", 137)
                self.assertIn("in sockets", over.outcome["detail"])
                within = self.exited(self.fill("1G", *words, options=options))
                self.assertEqual(within.record["limits_met"], [], within)

    def test_unix_streams_are_over_budget(self):
        self.fills("sockets", "256", ways=((), ("--allow-host", "example.org:443")))

    def test_unix_streams_whose_senders_are_closed_are_over_budget(self):
        self.fills("sockets", "512", "closed")

    def test_unix_datagrams_are_over_budget(self):
        self.fills("datagrams", "256")

    def test_tcp_on_the_loopback_is_over_budget(self):
        self.fills("tcp", "256")

    def test_udp_on_the_loopback_is_over_budget(self):
        self.fills("udp", "256")

    def test_what_sockets_held_and_gave_back_does_not_count(self):
        """80 MiB in sockets and then 80 MiB of memory, in turns, within 128 MiB: an outdated list of sockets ends no
        run."""
        turns = "import socket\nfor _ in range(10):\n  held = []\n  while len(held) < 400:\n    a, b = socket.socketpair()\n    held += [a, b]\n" \
                "    for end in (a, b):\n      end.setblocking(False)\n      try:\n        while True: end.send(b'x' * 65536)\n" \
                "      except BlockingIOError: pass\n  for end in held: end.close()\n  del held, a, b, end\n  x = b'x' * (80 << 20)\n  del x\nprint('done')"
        ended = self.exited(self.python(turns, options=["--memory", "128M"], env=self.POLLED))
        self.assertEqual(ended.text, "done\n", ended)
        self.assertGreater(ended.record["usage"]["memory_peak_bytes"], 70 * MIB)

    def doubts(self, ended):
        return [item["why"] for item in ended.record["degraded"] if item["what"] == "limits.memory"][1:]

    def test_sockets_that_the_kernel_does_not_list_are_told(self):
        ended = self.exited(self.fill("128M", "datagrams", "512", "closed"))
        self.assertIn("sockets that were closed", self.doubts(ended)[0])

    def test_sockets_of_the_hosts_namespace_are_not_counted_and_that_is_told(self):
        ended = self.exited(self.fill("128M", "sockets", "256", options=["--net", "host"]))
        self.assertIn("network.mode", self.doubts(ended)[0])

    def test_shared_memory_of_a_program_of_the_host_ends_no_run(self):
        shared = "import mmap, sys, time\nm = mmap.mmap(-1, 1 << 20); m[0] = 1\nprint('ready', flush=True)\n" \
                 "sys.stdin.readline(); time.sleep(0.3); print('done')"
        for program, told in ((shared, 1), (shared.replace("m = mmap.mmap(-1, 1 << 20); m[0] = 1", ""), 0)):
            with self.subTest(told=told):
                report = self.tmp / f"record-{told}"
                process = self.start_sbx("-q", "--memory", "64M", "--report", report, "--lang", "python", "-c", program, json_record=False,
                                         env=self.POLLED, stdin=subprocess.PIPE, text=True)
                self.assertEqual(process.stdout.readline(), "ready\n")
                with open(os.memfd_create("of-the-host"), "wb") as file:
                    file.write(b"x" * (160 * MIB))
                    file.flush()
                    out, _ = process.communicate("go on\n")
                record = json.loads(report.read_text(encoding="utf-8"))
                self.assertEqual((out, record["outcome"]["status"]), ("done\n", "exited"), record)
                doubts = [item["why"] for item in record["degraded"] if "whole machine" in item["why"]]
                self.assertEqual(len(doubts), told, record["degraded"])


if __name__ == "__main__":
    sbxtest.main()

"""Where the caller's /proc hides other users' processes (hidepid), an ordinary user's budgets hold as elsewhere. Root makes
such a /proc, in a mount namespace of its own."""

import json
import os
import subprocess

import sbxtest
from harness import HANG
from sbxtest import SBX, SbxTest

NOBODY = 65534
BIG = "b = bytearray(400 * 2**20); print(len(b))"
BUSY = "sh -c 'while :; do :; done' || true; echo passed"


class HiddenProcesses(SbxTest):
    def setUp(self):
        super().setUp()
        for directory in (self.tmp, self.home, self.work):
            os.chown(directory, NOBODY, NOBODY)

    def hidden(self, hidepid, *words, env=None, also="true"):
        """Runs sbx as nobody, who sees a new /proc with that option."""
        script = f'mount -t proc -o "hidepid=$0" sbx-test /proc && {also} && exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"'
        process = sbxtest.start(["unshare", "--mount", "--propagation", "private", "sh", "-c", script, str(hidepid),
                                 sbxtest.binary_for(env or {}), *map(str, words)], env=self.environment(env), cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate(timeout=HANG)
        return process.returncode, out, err

    def outcome(self, hidepid, *words):
        status, out, err = self.hidden(hidepid, "run", "--json", *words)
        self.assertTrue(out, err)
        self.assertNotIn("processes-hidden", out.decode(), "the sandbox's own procfs shows them")
        outcome = json.loads(out)["outcome"]
        return status, outcome["status"], outcome["reason"]

    def test_memory(self):
        for hidepid in (0, 1, 2, 4):
            with self.subTest(hidepid=hidepid):
                self.assertEqual(self.outcome(hidepid, "--memory", "100M", "--lang", "python", "-c", BIG), (137, "over-budget", "memory"))
        self.assertEqual(self.outcome(2, "--memory", "600M", "--lang", "python", "-c", BIG), (0, "exited", None))

    def test_cpu_time_of_a_child(self):
        for hidepid in (0, 2):
            with self.subTest(hidepid=hidepid):
                self.assertEqual(self.outcome(hidepid, "--cpu-time", "1s", "--", "sh", "-c", BUSY), (152, "over-budget", "cpu_time"))

    def test_calls_of_a_session(self):
        def session(*words):
            return self.hidden(2, "session", *words)
        self.assertEqual(session("start", "work", "--memory", "200M")[0], 0)
        try:
            status, out, _ = session("exec", "work", "--json", "--lang", "python", "-c", BIG)
            self.assertEqual((status, json.loads(out)["outcome"]["reason"]), (137, "memory"))
            status, out, _ = session("exec", "work", "--json", "--cpu-time", "1s", "--", "sh", "-c", BUSY)
            self.assertEqual((status, json.loads(out)["outcome"]["reason"]), (152, "cpu_time"))
            self.assertEqual(session("exec", "work", "--", "echo", "lives")[:2], (0, b"lives\n"))
        finally:
            self.assertEqual(session("stop", "work")[0], 0)

    def test_it_is_refused_where_a_fresh_procfs_is(self):
        """The caller's /proc, which a program sees in its place, shows nobody the sandbox's processes."""
        for hidepid, status in ((2, 125), (0, 0)):
            ended = self.hidden(hidepid, "run", "--", "true", also="mount --bind /dev/null /proc/uptime")
            self.assertEqual(ended[0], status, ended)
            if status:
                self.assertIn(b"it hides processes (hidepid)", ended[2])

    def test_where_nothing_shows_them_it_is_refused(self):
        """Without a procfs of the sandbox's own nobody could see that a budget is exceeded."""
        marker = self.work / "ran"
        words = ("run", "--json", "--workspace", f"{self.work}:read-write", "--", "touch", marker)
        for fault, code in (({"SBX_TEST_SKIP": "processes"}, "processes-hidden"), ({"SBX_TEST_FAIL": "processes:EIO"}, "setup-processes")):
            with self.subTest(fault=fault):
                status, out, err = self.hidden(2, *words, env=fault)
                outcome = json.loads(out)["outcome"]
                self.assertEqual((status, outcome["status"], outcome["code"]), (125, "setup-failed", code), err)
                if code == "setup-processes":
                    self.assertFalse(marker.exists())
                marker.unlink(missing_ok=True)  # a stage that is left out is missed only when the budgets begin to be watched
                status, out, err = self.hidden(2, "session", "start", "work", "--json", env=fault)
                self.assertEqual((status, json.loads(out)["error"]["code"]), (125, code), err)
                self.assertEqual(json.loads(self.hidden(2, "session", "list", "--json")[1])["sessions"], [])
        self.assertEqual(self.hidden(2, *words)[0], 0)
        self.assertTrue(marker.exists())
        # Nothing is hidden: the stage is not entered.
        self.assertEqual(self.hidden(0, *words, env={"SBX_TEST_SKIP": "processes"})[0], 0)

    def test_doctor_says_which(self):
        facts = {}
        for hidepid in (0, 2):
            _, out, _ = self.hidden(hidepid, "doctor", "--json")
            facts[hidepid] = out.decode()
        self.assertIn("through which budgets are polled: /proc hides processes", facts[2])
        self.assertNotIn("hides processes", facts[0])


if __name__ == "__main__":
    sbxtest.main()

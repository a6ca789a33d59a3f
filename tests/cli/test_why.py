"""`sbx why`: explains a record to a person; the last record is kept only on request."""

import json
import os
import re
import subprocess

import sbxtest
from sbxtest import SBX, SbxTest

TRACE_ME = "import ctypes; libc = ctypes.CDLL(None); libc.ptrace(0, 0, 0, 0)"


class Why(SbxTest):
    def why(self, *operands, status=0, stdin=None):
        done = subprocess.run([SBX, "why", *map(str, operands)], env=self.environment(), cwd=self.work, input=stdin, text=True,
                              capture_output=True, timeout=120)
        self.assertEqual(done.returncode, status, f"{operands}\n{done.stdout}\n{done.stderr}")
        return done.stdout if status == 0 else done.stderr

    def explained(self, ended):
        return self.why("-", stdin=json.dumps(ended.record))

    def test_a_denial_has_attempt_rule_cure_and_risk(self):
        text = self.explained(self.python(TRACE_ME))
        for part in ("  exited with status 0\n", "ptrace by python3", "action     controls another process", "(@debug)",
                     'rule       not in syscalls.base = "default" (default.toml:', 'to allow   syscalls.allow = ["ptrace"]', "risk       "):
            self.assertIn(part, text)

    def test_a_budget_has_rule_cure_and_risk(self):
        text = self.explained(self.sbx("--timeout", "200ms", "--", "sleep", "60"))
        for part in ("over-budget: ", 'rule       limits.wall_time = "200ms" (--timeout)', "to allow   --timeout 400ms\n", "risk       "):
            self.assertIn(part, text)
        text = self.explained(self.sbx("--output", "1K", "--", "seq", "10000"))
        for part in ("stdout was cut", "1 KiB kept", "to allow   --output 2K"):
            self.assertIn(part, text)

    def test_what_a_person_reads_fits_the_terminal(self):
        ended = self.sbx("--", "sh", "-c", "curl https://example.com; python3 -c '" + TRACE_ME + "'; exit 3 # " + "a long line " * 9)
        (self.work / "record.json").write_text(json.dumps(ended.record))
        for words in (("why", "record.json"), ("policy", "list")):
            piped = subprocess.run([SBX, *words], env=self.environment(), cwd=self.work, capture_output=True, text=True, check=True).stdout
            status, shown = self.on_terminal([SBX, *words])
            plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.replace("\r", ""))
            self.assertEqual(status, 0, shown)
            # No word is lost or broken; only one that is wider than a line may be.
            self.assertEqual(plain.split(), piped.split())
            self.assertEqual([line for line in plain.splitlines() if len(line) > 80], [])
            self.assertTrue(any(len(line) > 80 for line in piped.splitlines()), piped)
        hanging = [line for line in self.on_terminal([SBX, "policy", "list"])[1].replace("\r", "").splitlines() if line.startswith(" ")]
        self.assertTrue(hanging and all(line.startswith(" " * 28) or not line.startswith(" " * 27) for line in hanging), hanging)

    def test_what_is_suggested_is_enough(self):
        ended = self.sbx("--memory", "60M", "--lang", "python", "-c", "x = bytearray(100 << 20)")
        text = self.explained(ended)
        self.assertIn("to allow   --memory 120M", text)
        self.exited(self.sbx("--memory", "120M", "--lang", "python", "-c", "x = bytearray(100 << 20)"))

    def test_what_a_disk_budget_was_ended_for_has_its_own_cure(self):
        for met, wanted in ((["disk"], "--disk 32M"), (["disk_files"], "limits.disk_files=200"), ([], "a copy in place of the live grant")):
            record = {"schema": "sbx.run/1", "outcome": {"status": "over-budget", "reason": "disk", "detail": "x", "rule": "r"},
                      "limits": {"disk_bytes": 16 << 20, "disk_files": 100}, "limits_met": [{"limit": name} for name in met]}
            told = self.why("-", stdin=json.dumps(record))
            [cure] = [line for line in told.splitlines() if "to allow" in line]
            self.assertIn(wanted, cure)

    def test_a_destination_that_failed_is_named(self):
        text = self.explained(self.sbx("--allow-host", "nosuch.invalid:443", "--", "bash", "-c",
                                       "exec 3<>/dev/tcp/nosuch.invalid/443; read -u 3"))
        for part in ("What the network did not reach\n  nosuch.invalid:443\n", "reason     ", "effect     the program saw a connection that was"):
            self.assertIn(part, text)
        self.assertNotIn("refused nothing", text)

    def test_what_may_have_looked_absent_was_refused_without_namespaces(self):
        for isolation, wanted, other in (("namespaces", "--explain", "--read FILE"), ("landlock", "--read FILE", "--explain")):
            text = self.explained(self.sbx("--isolation", isolation, "--", "cat", "/var/lib/dpkg/status"))
            self.assertIn(wanted, text)
            self.assertNotIn(other, text)

    def test_options_come_before_lines(self):
        text = self.explained(self.sbx("--allow-host", "a.invalid:443", "--", "getent", "hosts", "b.invalid"))
        self.assertIn('to allow   --allow-host b.invalid:443, or network.allow = ["b.invalid:443"] in the policy', text)

    def test_a_signal_is_told_once(self):
        text = self.explained(self.sbx("--", "sh", "-c", "kill -SEGV $$"))
        self.assertIn("How it ended\n  killed by signal 11, SIGSEGV (segmentation fault)\n", text)

    def test_a_lost_run_is_not_one_that_could_not_be(self):
        record = {"schema": "sbx.run/1", "outcome": {"status": "lost", "code": "init-killed", "detail": "x", "success": False}}
        text = self.why("-", stdin=json.dumps(record))
        for part in ("  lost: x\n", "effect     the command had begun", "init-killed: "):
            self.assertIn(part, text)

    def test_a_run_that_could_not_be_has_its_code_and_cure(self):
        text = self.explained(self.sbx("-p", "nosuchpolicy", "true"))
        for part in ("setup-failed: ", "unknown-policy: there is no policy of that name", "fix  ", "effect     nothing ran"):
            self.assertIn(part, text)

    def test_a_record_is_a_strangers_text(self):
        for record in ("", "[]", "{}", '{"schema":"other/1"}', "\xff", '{"schema":"sbx.plan/1"}', '{"schema":"sbx.run/1"}', '{"schema":"sbx.cell/1"}',
                       '{"schema":"sbx.notebook/1","outcome":{}}', '{"event":"end","record":{}}', '{"event":"start","record":{"schema":"sbx.cell/1"}}'):
            self.assertIn("help: records are written by", self.why("-", stdin=record, status=2))
        hostile = {"schema": "sbx.run/1", "id": "\x1b[31m", "command": 5, "outcome": {"status": "over-budget", "reason": "memory", "rule": 7},
                   "denials": [3, {"what": "\x1b]0;x\x07", "count": -1}], "limits_met": {"a": 1}, "limits": [], "stdout": "x"}
        text = self.why("-", stdin=json.dumps(hostile))
        self.assertNotIn("\x1b", text)
        self.assertIn("\\x1b", text)

    def test_the_last_record_is_kept_only_for_who_asked(self):
        state = self.home / ".local/state/sbx/last.json"
        self.sbx("false", json_record=False)
        self.assertFalse(state.exists())
        self.assertIn("no record is kept", self.why(status=2))
        self.write(".config/sbx/config.toml", 'record = "keep"\n', directory=self.home)
        ended = self.sbx("--", "sh", "-c", "exit 5", json_record=False)
        self.assertEqual((ended.status, ended.out, ended.err), (5, b"", b""))
        self.assertEqual((state.stat().st_mode & 0o777, state.parent.stat().st_mode & 0o777), (0o600, 0o700))
        self.assertIn("  exited with status 5\n", self.why())
        self.sbx("--bogus", "true", json_record=False)
        self.assertIn("unknown-option", self.why())
        self.assertEqual(os.listdir(state.parent), ["last.json"])
        # Failing to keep the record changes nothing about the run.
        state.unlink()
        state.parent.rmdir()
        state.parent.write_text("")
        ended = self.sbx("--", "sh", "-c", "exit 6", json_record=False)
        self.assertEqual(ended.status, 6)
        self.assertIn(b"the record is not kept", ended.err)


if __name__ == "__main__":
    sbxtest.main()

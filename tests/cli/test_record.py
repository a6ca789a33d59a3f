"""The record: valid under the shipped schema whatever happened, and delivered where it was asked for."""

import json
import os
import resource
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["SBX_SOURCE"], "tests", "sandbox"))
import sbxtest
from sbxtest import PROBE, SOURCE, SbxTest

try:
    import jsonschema
except ImportError:
    jsonschema = None

TRACE_ME = "import ctypes; libc = ctypes.CDLL(None); libc.ptrace(0, 0, 0, 0)"


class Record(SbxTest):
    def check(self, ended):
        if jsonschema is None:
            self.skipTest("python3-jsonschema is not installed")
        schema = json.loads((SOURCE / "schema/sbx.run.1.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        errors = [f"{list(error.path)}: {error.message}" for error in jsonschema.Draft202012Validator(schema).iter_errors(ended.record)]
        self.assertEqual(errors, [], str(ended))
        return ended

    def test_schema_holds_for_every_verdict(self):
        self.check(self.exited(self.sbx("true")))
        self.check(self.exited(self.sbx("false"), 1))
        self.check(self.sbx("--", "sh", "-c", "kill -SEGV $$"))
        self.check(self.over_budget(self.sbx("--timeout", "200ms", "--", "sleep", "60"), "wall_time", 124))
        self.check(self.python(TRACE_ME, options=["--set", 'syscalls.denied="kill"']))
        self.check(self.sbx("--output", "1K", "--", "seq", "100000"))

    def test_schema_holds_for_every_set_up_failure(self):
        for arguments, reason in ((["nosuchcommand"], "not-found"), (["--bogus", "true"], "usage"), ([], "usage"),
                                  (["-p", "nosuchpolicy", "true"], "policy"), (["--read", "/nosuchpath", "true"], None)):
            ended = self.check(self.sbx(*arguments))
            self.assertEqual(ended.outcome["status"], "setup-failed", str(ended))
            if reason:
                self.assertEqual(ended.outcome["reason"], reason, str(ended))

    def test_schema_holds_for_what_was_brought_out(self):
        options = ["--workspace", ".:overlay", "--out", self.tmp / "out", "--apply", "--yes", "--set", 'filesystem.outputs.collect=["**"]']
        code = "import os; open('a', 'w').write('x'); os.mkfifo(b'\\xff'); os.mkdir('d'); open('.bashrc', 'w')"
        ended = self.check(self.exited(self.python(code, options=options)))
        self.assertEqual([each["path"] for each in ended.record["out"]["files"]], ["a"])
        self.assertEqual(len(ended.record["applied"]["left"]), 2)
        self.assertEqual(len(ended.record["changes"]), 4)

    def test_the_validator_notices_a_wrong_record(self):
        ended = self.exited(self.sbx("true"))
        self.check(ended)
        ended.record["outcome"]["exit_code"] = None
        with self.assertRaises(AssertionError):
            self.check(ended)

    def test_bytes_that_are_not_utf8_are_kept_exactly(self):
        ended = self.check(self.exited(self.sbx("--", "printf", r"\377\376", os.fsdecode(b"\xff"))))
        self.assertEqual((ended.record["stdout"]["encoding"], ended.record["stdout"]["text"]), ("base64", "//4="))
        self.assertEqual(ended.record["command_b64"][-1], "/w==")

    def test_denials_name_the_line_that_would_allow_them(self):
        ended = self.check(self.python(TRACE_ME))
        denial = next(each for each in ended.record["denials"] if each["what"] == "ptrace")
        allowed = self.check(self.python(TRACE_ME, options=["--set", denial["allow_with"].replace(" = ", "=")]))
        self.assertNotIn("ptrace", allowed.denied)

    def test_a_report_file_is_replaced_in_one_step(self):
        path = self.tmp / "r.json"
        path.write_text("before")
        link = self.tmp / "link"
        link.symlink_to(path)
        ended = self.sbx("--report", link, "--", "sh", "-c", "exit 3", json_record=False)
        self.assertEqual(ended.status, 3)
        self.assertTrue(link.is_symlink())
        self.assertEqual(json.loads(path.read_text())["outcome"]["exit_code"], 3)
        self.assertEqual(sorted(each.name for each in self.tmp.iterdir()), ["home", "link", "r.json", "work"])

    def test_a_report_that_cannot_be_written_stops_the_run_before_it_starts(self):
        for path in (self.tmp / "missing" / "r.json", self.tmp):
            ended = self.sbx("--report", path, "--", "touch", "/tmp/x")
            self.assertEqual((ended.status, ended.verdict), (125, ("setup-failed", "usage")), str(ended))
        ended = self.sbx("--report-fd", 97, "true")
        self.assertEqual((ended.status, ended.verdict), (125, ("setup-failed", "usage")), str(ended))

    def test_devices_are_written_to_and_stay(self):
        ended = self.exited(self.sbx("--report", "/dev/null", "true"))
        self.assertTrue(os.path.exists("/dev/null") and not os.path.isfile("/dev/null"), str(ended))

    def test_a_report_descriptor_gets_the_record_and_the_program_does_not(self):
        read, write = os.pipe()
        process = self.start_sbx("--report-fd", write, "--", "sh", "-c", f"echo forged >&{write} || exit 9", json_record=False,
                                 pass_fds=[write])
        os.close(write)
        ended = self.finish(process, json_record=False)
        with os.fdopen(read) as pipe:
            record = json.loads(pipe.read())
        self.assertEqual((ended.status != 0, record["outcome"]["exit_code"]), (True, ended.status), str(ended))

    def test_a_full_disk_is_an_error_not_a_lost_record(self):
        with open("/dev/full", "wb") as full:
            process = self.start_sbx("true", stdout=full)
            ended = self.finish(process, json_record=False)
        self.assertEqual(ended.status, 125, str(ended))
        self.assertIn(b"cannot write the report to stdout: No space left on device", ended.err)
        ended = self.sbx("--report", "/dev/full", "true", json_record=False)
        self.assertEqual(ended.status, 125, str(ended))
        self.assertIn(b'cannot write the report to "/dev/full": No space left on device', ended.err)

    def test_a_limit_of_file_sizes_is_an_error_not_the_end_of_sbx(self):
        """What sbx writes for the sandbox fits into the limit, its record does not; then nothing fits."""
        path = self.tmp / "r.json"
        for limit, words in ((1024, f'cannot write the report to "{path}": File too large'), (0, "File too large")):
            small = lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            ended = self.sbx("--report", path, PROBE, "exit", 3, json_record=False, preexec_fn=small)
            self.assertEqual(ended.status, 125, str(ended))
            self.assertIn(words, ended.err.decode())
            self.assertIn("raise the limit of file sizes: ulimit -f", ended.err.decode())
            self.assertFalse(path.exists())
        self.assertEqual(self.sbx("--report", path, PROBE, "exit", 3, json_record=False).status, 3)
        self.assertTrue(path.exists())

    def test_dry_run_prints_the_plan_and_runs_nothing(self):
        ended = self.sbx("--dry-run", "--workspace", ".:read-write", "--env", "TOKEN=hunter2", "--", "touch", "made")
        self.assertEqual((ended.status, ended.record["schema"]), (0, "sbx.plan/1"))
        self.assertFalse((self.work / "made").exists())
        self.assertIn("TOKEN", ended.record["environment"])
        self.assertNotIn(b"hunter2", ended.out)
        self.exited(self.sbx("--workspace", ".:read-write", "--", "touch", "made"))
        self.assertTrue((self.work / "made").exists())

    def test_stages_are_timed_in_order(self):
        ended = self.sbx("--trace-time", "true", json_record=False)
        stamps = [int(line.split()[1]) for line in ended.err.decode().splitlines() if " us  " in line]
        self.assertGreater(len(stamps), 5, ended.err)
        self.assertEqual(stamps, sorted(stamps))


class Words(SbxTest):
    def test_a_note_is_said_once(self):
        path = self.write("near.toml", 'schema = 1\nextends = "shell"\n')
        ended = self.sbx("-p", path, "true", json_record=False)
        self.assertEqual(ended.err.count(b"lies inside the workspace"), 1, ended)

    def test_an_uneventful_run_says_nothing(self):
        ended = self.sbx("true", json_record=False)
        self.assertEqual((ended.status, ended.out, ended.err), (0, b"", b""))

    def test_the_verdict_is_told_and_quiet_is_quiet(self):
        loud = self.sbx("--timeout", "200ms", "--", "sleep", "60", json_record=False)
        self.assertEqual(loud.status, 124)
        self.assertIn(b"limits.wall_time", loud.err)
        quiet = self.sbx("-q", "--timeout", "200ms", "--", "sleep", "60", json_record=False)
        self.assertEqual((quiet.status, quiet.err), (124, b""))

    def test_a_file_that_exists_only_outside_gets_a_hint(self):
        (self.work / "data.csv").write_text("1\n")
        ended = self.sbx("--", "cat", "data.csv", json_record=False)
        self.assertNotEqual(ended.status, 0)
        self.assertIn(b"--read data.csv", ended.err)
        shown = self.sbx("--read", "data.csv", "--", "cat", str(self.work / "data.csv"), json_record=False)
        self.assertEqual((shown.out, shown.err), (b"1\n", b""), str(shown))

    def test_an_empty_workspace_gets_a_hint_when_the_command_fails(self):
        (self.work / "something").write_text("")
        self.assertIn(b"--workspace .:overlay", self.sbx("false", json_record=False).err)
        self.assertEqual(self.sbx("true", json_record=False).err, b"")
        self.assertEqual(self.sbx("--workspace", ".:overlay", "false", json_record=False).err, b"")

    def test_names_from_inside_cannot_steer_a_terminal(self):
        code = TRACE_ME.replace("libc.ptrace", "libc.prctl(15, b'a\\033[2Jb'); libc.ptrace")
        ended = self.sbx("--", "python3", "-c", code, json_record=False)
        self.assertIn(b"ptrace", ended.err)
        self.assertIn(rb"a\x1b[2Jb", ended.err)
        self.assertNotIn(b"\x1b", ended.err)


if __name__ == "__main__":
    sbxtest.main()

"""Standard streams: byte for byte, without waiting for input, with the reader's pace."""

import os
import subprocess
import time

import sbxtest
from sbxtest import PROBE, SBX, SbxTest


class Streams(SbxTest):
    def test_output_passes_byte_for_byte(self):
        data = bytes(range(256)) * 4
        ended = self.sbx("--", "cat", stdin=data, json_record=False)
        self.assertEqual((ended.status, ended.out, ended.err), (0, data, b""))

    def test_error_stream_stays_apart(self):
        ended = self.sbx("--", "sh", "-c", "echo out; echo err >&2", json_record=False)
        self.assertEqual((ended.out, ended.err), (b"out\n", b"err\n"))

    def test_input_is_relayed(self):
        data = b"line\n" * 50000
        ended = self.exited(self.sbx("--", "wc", "-c", stdin=data))
        self.assertEqual(int(ended.text), len(data))

    def test_open_input_does_not_hold_up_the_end(self):
        process = self.start_sbx(PROBE, "exit", 0, stdin=subprocess.PIPE)
        process.wait(timeout=20)
        self.exited(self.finish(process))

    def test_unread_input_does_not_hold_up_the_end(self):
        self.exited(self.sbx("--", "head", "-c", "5", stdin=b"x" * 3000000))

    def test_program_from_standard_input(self):
        ended = self.exited(self.sbx("--lang", "python", "-", stdin=b"print(6 * 7)\n"))
        self.assertEqual(ended.text, "42\n")

    def test_output_can_be_opened_again_by_name(self):
        ended = self.exited(self.sbx("--", "sh", "-c", "echo one > /dev/stdout; echo two > /proc/self/fd/2"))
        self.assertEqual((ended.text, ended.record["stderr"]["text"]), ("one\n", "two\n"))

    def test_output_to_a_file_and_an_appended_file(self):
        for mode in ("wb", "ab"):
            path = self.tmp / "log"
            path.write_bytes(b"before\n")
            with open(path, mode) as log:
                self.finish(self.start_sbx(PROBE, "flood-output", 200000, json_record=False, stdout=log), json_record=False)
            self.assertEqual(path.stat().st_size, 200000 + (7 if mode == "ab" else 0), mode)

    def test_slow_reader_gets_everything(self):
        process = self.start_sbx(PROBE, "flood-output", 400000, json_record=False)
        time.sleep(0.3)  # the pipe is full by now: the relay must wait, not drop
        ended = self.finish(process, json_record=False)
        self.assertEqual((ended.status, len(ended.out)), (0, 400000))

    def test_closed_reader_closes_the_programs_output(self):
        process = self.start_sbx("--output", "1G", "--report", self.tmp / "r.json", "--", "yes", json_record=False)
        process.stdout.close()
        process.stdout = None
        ended = self.finish(process, json_record=False)
        self.assertEqual(ended.status, 128 + 13, ended)

    def test_input_from_a_file_and_none(self):
        path = self.write("input", "words\n")
        self.assertEqual(self.exited(self.sbx("--stdin", path, "--", "cat")).text, "words\n")
        self.assertEqual(self.exited(self.sbx("--stdin", "null", "--", "cat", stdin=b"words")).text, "")

    def test_a_folder_is_no_input(self):
        marked = self.write("marked/file", "").parent
        ended = self.sbx("--stdin", marked, "--workspace", ".:read-write", "--", "touch", "made")
        self.could_not(ended, "not-a-file", f"'{marked}' is a folder")
        self.assertFalse((self.work / "made").exists())
        self.exited(self.sbx("--stdin", marked / "file", "--workspace", ".:read-write", "--", "touch", "made"))
        self.assertTrue((self.work / "made").exists())

    def test_flags_of_the_callers_descriptors_stay(self):
        read, write = os.pipe()
        os.set_blocking(write, True)
        process = self.start_sbx(PROBE, "flood-output", 1000, json_record=False, stdout=write)
        self.finish(process, json_record=False)
        self.assertTrue(os.get_blocking(write))
        os.close(write)
        self.assertEqual(len(os.read(read, 5000)), 1000)
        os.close(read)

    def test_large_captured_output_keeps_head_and_tail(self):
        ended = self.python("for i in range(100000): print(i)", options=["--output", "8K"])
        self.assertTrue(ended.text.startswith("0\n1\n2\n"))
        self.assertTrue(ended.text.endswith("99998\n99999\n"))


class Terminal(SbxTest):
    def test_terminal_is_not_given_unasked(self):
        status, text = self.on_terminal(self.command("--", "sh", "-c", "cat; echo end", json_record=False))
        self.assertEqual(status, 0, text)
        self.assertIn("end", text)
        self.assertIn("-i", text)

    def test_program_that_does_not_read_is_told_nothing(self):
        status, text = self.on_terminal(self.command("--", "echo", "end", json_record=False))
        self.assertEqual((status, text), (0, "end\r\n"))

    def test_interactive_program_has_a_terminal(self):
        status, text = self.on_terminal(self.command("-i", "--", "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && echo yes", json_record=False))
        self.assertEqual((status, text.replace("\r", "")), (0, "yes\n"))

    def test_terminal_is_restored_on_every_end(self):
        ends = (("--", "true"), (PROBE, "die", "9"), ("--timeout", "300ms", PROBE, "stubborn"), ("--", "no-such-command"))
        for end in ends:
            script = 'stty -g >&2; "$0" "$@"; stty -g >&2'
            status, text = self.on_terminal(["/bin/sh", "-c", script, SBX, "run", "-i", *end])
            settings = [line for line in text.replace("\r", "").splitlines() if line.count(":") > 10]
            self.assertEqual(len(settings), 2, text)
            self.assertEqual(settings[0], settings[1], end)


if __name__ == "__main__":
    sbxtest.main()

"""Standard streams: byte for byte, without waiting for input, at the reader's pace."""

import json
import os
import socket
import subprocess
import threading
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
        process.wait(timeout=120)
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
        time.sleep(0.3)  # by now the pipe is full: the relay must wait, not drop
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

    def test_a_directory_is_no_input(self):
        marked = self.write("marked/file", "").parent
        ended = self.sbx("--stdin", marked, "--workspace", ".:read-write", "--", "touch", "made")
        self.could_not(ended, "not-a-file", f"'{marked}' is a directory")
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


class Passed(SbxTest):
    """Output to a file or a pipe is complete, or the run reports that it is not."""

    ORDER = "for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done"
    IN_ORDER = b"".join(b"o%d\ne%d\n" % (i, i) for i in range(1, 10))

    def test_more_than_a_megabyte_goes_through_a_pipe(self):
        ended = self.sbx("--", "seq", "1", "400000", json_record=False)
        self.assertEqual((ended.status, ended.out.splitlines()[-1], ended.err), (0, b"400000", b""))

    def test_a_pipe_with_a_part_missing_ends_the_run(self):
        report = self.tmp / "r.json"
        ended = self.sbx("--output", "10K", "--report", report, "--", "seq", "1", "400000", json_record=False)
        self.assertEqual((ended.status, len(ended.out)), (153, 10240), ended)
        self.assertTrue(ended.err.endswith(b"written to stdout (output.passed)\nsbx:   to allow more: --output 20K\n"), ended)
        record = json.loads(report.read_text())
        self.assertEqual((record["outcome"]["status"], record["outcome"]["reason"]), ("over-budget", "output"))
        self.assertIn("output.passed", record["outcome"]["rule"])
        why = subprocess.run([SBX, "why", report], env=self.environment(), cwd=self.work, capture_output=True, check=True).stdout
        self.assertIn(b"--output 20K", why)
        self.assertEqual(self.sbx("--output", "10M", "--", "seq", "1", "400000", json_record=False).status, 0)

    def test_dev_null_takes_all_of_it(self):
        """Nobody misses there what is over output.passed. Twin: a run that ends at it."""
        for options, command, status, is_cut in (((), ("seq", "1", "4000"), 0, False), (("--set", 'output.exceed="kill"'), ("yes",), 153, True)):
            report = self.tmp / "r.json"
            ended = self.finish(self.start_sbx("--output", "1K", *options, "--report", report, "--", *command, json_record=False, stdout=subprocess.DEVNULL),
                                json_record=False)
            self.assertEqual(ended.status, status, ended)
            self.assertEqual(b"left out" in ended.err or b"to allow more" in ended.err, is_cut, ended)
            self.assertEqual(json.loads(report.read_text())["stdout"]["truncated"], is_cut)

    def test_one_file_for_both_streams_keeps_their_order(self):
        for mode in ("wb", "ab"):
            path = self.tmp / mode
            with open(path, mode) as log:
                self.finish(self.start_sbx("--", "sh", "-c", self.ORDER, json_record=False, stdout=log, stderr=log), json_record=False)
            self.assertEqual(path.read_bytes(), self.IN_ORDER)
        ended = self.sbx("--report", self.tmp / "r.json", "--", "sh", "-c", self.ORDER, json_record=False, stderr=subprocess.STDOUT)
        self.assertEqual(ended.out, self.IN_ORDER)
        record = json.loads((self.tmp / "r.json").read_text())
        self.assertEqual((record["stdout"]["bytes"], record["stderr"]["bytes"], record["stderr"]["joined"]), (54, 0, True))

    def test_two_pipes_stay_two(self):
        ended = self.sbx("--", "sh", "-c", self.ORDER, json_record=False)
        lines = self.IN_ORDER.splitlines(keepends=True)
        self.assertEqual((ended.out, ended.err), (b"".join(lines[0::2]), b"".join(lines[1::2])))

    def test_output_that_cannot_be_written_is_125(self):
        report = self.tmp / "r.json"
        with open("/dev/full", "wb") as full:
            ended = self.finish(self.start_sbx("--report", report, "--", "head", "-c", "3000000", "/dev/zero", json_record=False, stdout=full), json_record=False)
        self.assertEqual(ended.status, 125, ended)
        self.assertEqual(ended.err, b"sbx: cannot write stdout: No space left on device; the rest of it is dropped\n")
        record = json.loads(report.read_text())
        self.assertEqual(record["write_error"], {"stream": "stdout", "error": "No space left on device", "errno": 28})
        self.assertEqual((record["outcome"]["status"], record["outcome"]["exit_code"]), ("exited", 0))
        why = subprocess.run([SBX, "why", report], env=self.environment(), cwd=self.work, capture_output=True, check=True).stdout
        self.assertIn(b"stdout could not be written", why)
        self.assertIn(b"No space left on device: the exit status of sbx is 125", why)
        self.assertNotIn(b"--output", why)

    def test_a_full_disk_is_125(self):
        if not sbxtest.IS_ROOT:
            self.skipTest("needs root, to mount a small disk")
        place = self.tmp / "small"
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", place], check=True)
        self.addCleanup(subprocess.run, ["umount", place], check=True)
        for size, status in ((200_000, 125), (20_000, 0)):
            with open(place / "o", "wb") as file:
                ended = self.finish(self.start_sbx("--", "head", "-c", size, "/dev/zero", json_record=False, stdout=file), json_record=False)
            self.assertEqual(ended.status, status, ended)

    def test_github_keeps_the_order(self):
        ended = self.sbx("--github", "--", "sh", "-c", self.ORDER, json_record=False)
        self.assertIn(self.IN_ORDER, ended.out)


class SharedInput(SbxTest):
    """What a program leaves unread is there for whoever reads the caller's input next."""

    LINES = b"".join(b"%d\n" % number for number in range(1, 300001))

    def pipe(self):
        read, write = os.pipe()
        return os.fdopen(read, "rb", buffering=0), os.fdopen(write, "wb", buffering=0)

    def sockets(self):
        ours, theirs = socket.socketpair()
        return ours.makefile("rb", buffering=0), theirs.makefile("wb", buffering=0)

    def file(self):
        path = self.tmp / "input"
        write = open(path, "wb", buffering=0)
        return open(path, "rb", buffering=0), write

    KINDS = (pipe, sockets, file)

    def write_all(self, sink):
        writer = threading.Thread(target=lambda: (sink.write(self.LINES), sink.close()))
        writer.start()
        return writer

    def leave(self, kind, data, *program):
        """What a run prints of `data` on its input, and what it leaves there."""
        source, sink = kind(self)
        with source, sink:
            sink.write(data)
            ended = self.exited(self.finish(self.start_sbx("-p", "python", "--", *program, stdin=source)))
            sink.close()
            return ended.text, source.read()

    def test_a_program_takes_what_it_reads_and_no_more(self):
        for kind in self.KINDS:
            for program, printed, left in (
                    (("true",), "", b"1\n2\n3\n"),
                    (("head", "-c", "2"), "1\n", b"2\n3\n"),
                    (("sh", "-c", "read a; read b; echo $b"), "2\n", b"3\n"),
                    (("sh", "-c", "exec <&-"), "", b"1\n2\n3\n")):
                with self.subTest(kind=kind.__name__, program=program):
                    self.assertEqual(self.leave(kind, b"1\n2\n3\n", *program), (printed, left))

    def test_many_slots_of_the_pipe_are_taken_one_by_one(self):
        data = self.LINES[:30000]
        for kind in self.KINDS:
            with self.subTest(kind=kind.__name__):
                self.assertEqual(self.leave(kind, data, "sh", "-c", "head -c 20000 | wc -c"), ("20000\n", data[20000:]))

    def test_who_reads_all_gets_all(self):
        for kind in self.KINDS:
            source, sink = kind(self)
            with self.subTest(kind=kind.__name__), source, sink:
                writer = self.write_all(sink)
                if kind is SharedInput.file:
                    writer.join()
                ended = self.finish(self.start_sbx("--", "cat", json_record=False, stdin=source), json_record=False)
                writer.join()
                self.assertEqual((ended.status, ended.out == self.LINES), (0, True))

    def test_what_a_program_puts_into_its_own_input_stays_there(self):
        script = self.write("evil.py", "import os, sys\ntaken = os.read(0, int(sys.argv[1]))\n"
                            "pipe = os.open('/proc/self/fd/0', os.O_WRONLY | os.O_NONBLOCK)\n"
                            "try: os.write(pipe, b'evil')\nexcept BlockingIOError: pass\nprint(len(taken))\n")
        for kind in self.KINDS:
            for takes in (0, 2, 6):
                with self.subTest(kind=kind.__name__, takes=takes):
                    printed, left = self.leave(kind, b"1\n2\n3\n", "python3", script, str(takes))
                    self.assertEqual(printed, f"{takes}\n")
                    self.assertTrue(b"1\n2\n3\n".endswith(left), left)

    def test_a_program_that_makes_its_pipe_larger_still_gets_all(self):
        script = self.write("larger.py", "import fcntl, os, sys\nfirst = os.read(0, 1)\nfcntl.fcntl(0, 1031, 1 << 20)\n"
                            "print(len(first + sys.stdin.buffer.read()))\n")
        for kind in (SharedInput.pipe, SharedInput.sockets):
            source, sink = kind(self)
            with self.subTest(kind=kind.__name__), source, sink:
                writer = self.write_all(sink)
                ended = self.exited(self.finish(self.start_sbx("-p", "python", "python3", script, stdin=source)))
                writer.join()
                self.assertEqual(int(ended.text), len(self.LINES))

    def test_a_loop_over_lines_sees_each(self):
        loop = f"while read -r line; do '{SBX}' run true || exit; echo $line; done"
        for start in ("seq 5 |", "seq 5 > list; cat list |"):
            done = subprocess.run(["sh", "-c", f"{start} {loop}"], env=self.environment(), cwd=self.work, capture_output=True, text=True)
            self.assertEqual(done.stdout.split(), ["1", "2", "3", "4", "5"], done)


class Fifos(SbxTest):
    """A FIFO without a writer delays nothing."""

    def setUp(self):
        super().setUp()
        self.fifo = self.work / "fifo"
        os.mkfifo(self.fifo)

    def test_files_of_the_caller_are_not_waited_for(self):
        for command in (["why", self.fifo], ["run", "--env-file", self.fifo, "--", "true"], ["run", "-p", "./fifo", "--", "true"],
                        ["policy", "check", self.fifo]):
            done = subprocess.run([SBX, *command], env=self.environment(), cwd=self.work, capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
            self.assertNotEqual(done.returncode, 0, command)
            self.assertIn(b"fifo", (done.stdout + done.stderr).lower(), command)
        done = subprocess.run([SBX, "why", self.fifo], env=self.environment(), cwd=self.work, capture_output=True)
        self.assertIn(b"error[no-writer]", done.stderr)

    def test_a_pipe_with_a_writer_is_read(self):
        script = f"exec '{SBX}' run --env-file <(echo A=b) -- sh -c 'echo $A'"
        done = subprocess.run(["bash", "-c", script], env=self.environment(), cwd=self.work, capture_output=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.stdout, b"b\n", done)

    def test_standard_input_from_one_ends_with_the_wall_time(self):
        ended = self.sbx("--stdin", self.fifo, "--timeout", "300ms", "--", "cat")
        self.over_budget(ended, "wall_time", 124)

    def test_standard_input_from_one_is_read_when_somebody_writes(self):
        process = self.start_sbx("--stdin", self.fifo, "--", "cat")
        self.fifo.write_text("late\n")
        self.assertEqual(self.exited(self.finish(process)).text, "late\n")

    def test_a_directory_is_no_standard_input(self):
        directory = os.open(self.tmp, os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, directory)
        ended = self.finish(self.start_sbx("--", "cat", stdin=directory))
        self.assertEqual((ended.status, ended.outcome["code"]), (125, "not-a-file"), ended)


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

    def test_interactive_with_piped_input_has_pipes(self):
        code = "test -t 0 || test -t 1 || echo pipes; cat"
        ended = self.sbx("-i", "--", "sh", "-c", code, stdin=b"no newline at the end", json_record=False)
        self.assertEqual((ended.status, ended.out), (0, b"pipes\nno newline at the end"), ended)
        ended = self.sbx("-i", "--", "bash", stdin=b"echo hi", json_record=False)
        self.assertEqual((ended.status, ended.out), (0, b"hi\n"), ended)

    def test_the_default_wall_time_is_not_for_a_person(self):
        limits = []
        for options in (("-i",), (), ("-i", "--timeout", "50s"), ("-i", "-p", "strict")):
            report = self.tmp / "r.json"
            status, text = self.on_terminal(self.command("--report", report, *options, "--", "true", json_record=False))
            self.assertEqual(status, 0, text)
            limits.append(json.loads(report.read_text())["limits"]["wall_time_ms"])
        self.assertEqual(limits, [None, 60_000, 50_000, 10_000])

    def test_terminal_is_shown_head_and_tail(self):
        status, text = self.on_terminal(self.command("--output", "1K", "--", "seq", "1", "40000", json_record=False))
        self.assertEqual(status, 0, text)
        text = text.replace("\r", "")
        self.assertTrue(text.startswith("1\n2\n"), text[:100])
        self.assertIn(" bytes left out …\n", text)
        self.assertIn("\n40000\n", text)

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

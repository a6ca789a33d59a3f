"""--events-fd: the events of a run, reported while it runs."""

import fcntl
import json
import os
import socket
import subprocess
import termios
import unittest

import schemas
import sbxtest
from sbxtest import PROBE, SBX, SbxTest


class Events(SbxTest):
    def run_with(self, *words, stdin=subprocess.DEVNULL):
        """The events of a complete run."""
        read, write = os.pipe()
        with os.fdopen(read) as source:
            process = subprocess.Popen([SBX, "run", "--events-fd", str(write), *map(str, words)], pass_fds=[write], env=self.environment(), cwd=self.work,
                                       stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            os.close(write)
            events = [json.loads(line) for line in source]
            process.communicate(timeout=120)
        self.check(events)
        return process.returncode, events

    def check(self, events):
        times = [event["time_ms"] for event in events]
        self.assertEqual(times, sorted(times))

    def names(self, events):
        return [event["event"] for event in events]

    def test_a_quiet_run_begins_and_ends(self):
        status, events = self.run_with("true")
        self.assertEqual((status, self.names(events)), (0, ["started", "ended"]))
        self.assertEqual((events[0]["policy"], events[0]["command"]), ("default", ["true"]))
        self.assertEqual((events[1]["exit_status"], events[1]["outcome"]["status"]), (0, "exited"))

    @unittest.skipIf(schemas.jsonschema is None, "python3-jsonschema is not installed")
    def test_every_kind_of_event_holds_under_the_schema(self):
        held = schemas.Held("sbx.events/1")
        odd = os.fsdecode(b"odd\xff")
        _, events = self.run_with("--processes", "3", "--output", "1K", "--set", 'output.exceed="truncate"', "--read", PROBE, "--", "sh", "-c",
                                  f"{PROBE} trace child; head -c 4096 /dev/zero; for i in 1 2 3 4 5; do sleep 100 & done; wait", odd)
        self.assertEqual(set(self.names(events)), {"started", "denial", "output-cut", "limit", "ended"})
        for event in events:
            held.hold(event)
        # A reader that does not read is a test of its own, below.
        self.assertEqual((held.open_objects(), held.unseen()), (set(), {".dropped"}))

    def test_each_denial_comes_once(self):
        status, events = self.run_with("--read", PROBE, "--", "sh", "-c", f"{PROBE} trace child; {PROBE} trace child; exit 3")
        denials = [event["what"] for event in events if event["event"] == "denial"]
        self.assertEqual((status, denials), (3, ["ptrace"]), events)
        self.assertEqual(self.names(events)[-1], "ended")

    def test_limits_and_cuts(self):
        _, events = self.run_with("--processes", "3", "--output", "1K", "--set", 'output.exceed="truncate"', "--", "sh", "-c",
                                  "head -c 4096 /dev/zero; for i in 1 2 3 4 5; do sleep 100 & done; wait")
        self.assertEqual([(event["stream"], event["limit"]) for event in events if event["event"] == "output-cut"], [("stdout", 1024)], events)
        self.assertEqual([(event["limit"], event["value"]) for event in events if event["event"] == "limit"], [("processes", 3)], events)

    def test_they_come_while_the_command_runs(self):
        read, write = os.pipe()
        process = subprocess.Popen([SBX, "run", "--events-fd", str(write), "--read", PROBE, "--", "sh", "-c", f"{PROBE} trace child; read line"], pass_fds=[write],
                                   env=self.environment(), cwd=self.work, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(write)
        with os.fdopen(read) as source:
            self.assertEqual(json.loads(source.readline())["event"], "started")
            self.assertEqual(json.loads(source.readline())["what"], "ptrace")  # the command still waits for its input
            process.stdin.close()
            self.assertEqual(json.loads(source.readline())["event"], "ended")
        process.wait(timeout=120)

    def test_a_reader_that_does_not_read_or_leaves_changes_nothing(self):
        read, write = os.pipe()
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
        os.set_blocking(write, False)
        try:
            while True:
                os.write(write, b"x" * 64)
        except BlockingIOError:
            pass
        os.set_blocking(write, True)
        full = subprocess.run([SBX, "run", "--events-fd", str(write), "true"], pass_fds=[write], env=self.environment(), cwd=self.work, timeout=120, check=False)
        self.assertEqual(full.returncode, 0)
        self.assertFalse(fcntl.fcntl(write, fcntl.F_GETFL) & os.O_NONBLOCK, "the caller's descriptor is as it was")
        os.close(read)
        left = subprocess.run([SBX, "run", "--events-fd", str(write), "true"], pass_fds=[write], env=self.environment(), cwd=self.work, timeout=120, check=False)
        self.assertEqual(left.returncode, 0)
        os.close(write)

    def test_the_next_event_says_how_many_were_dropped(self):
        read, write = os.pipe()
        capacity = fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
        os.write(write, b"x" * capacity)  # leaves no room for "started"
        process = subprocess.Popen([SBX, "run", "--events-fd", str(write), "--", "sh", "-c", "echo; read line"], pass_fds=[write], env=self.environment(),
                                   cwd=self.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.assertEqual(process.stdout.readline(), b"\n")
        os.close(write)
        self.assertEqual(os.read(read, capacity), b"x" * capacity)
        process.communicate(timeout=120)
        with os.fdopen(read) as source:
            events = [json.loads(line) for line in source]
        self.check(events)
        self.assertEqual([(event["event"], event.get("dropped")) for event in events], [("ended", 1)])

    def run_to(self, write, **options):
        return subprocess.run([SBX, "run", "--events-fd", str(write), "true"], pass_fds=[write], env=self.environment(), cwd="/", stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120, check=False, **options).returncode

    @unittest.skipUnless(sbxtest.IS_ROOT, "only root can start sbx as another user")
    def test_a_pipe_of_another_user_takes_events_and_is_not_waited_for(self):
        read, write = os.pipe()
        self.assertEqual(self.run_to(write, user=65534, group=65534, extra_groups=[]), 0)
        self.assertEqual(self.names([json.loads(line) for line in os.read(read, 65536).splitlines()]), ["started", "ended"])
        capacity = fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
        os.write(write, b"x" * capacity)
        self.assertEqual(self.run_to(write, user=65534, group=65534, extra_groups=[]), 0)
        self.assertEqual(os.read(read, 65536), b"x" * capacity)
        os.close(read)
        os.close(write)

    def test_a_line_that_a_socket_takes_in_part_is_completed(self):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.setblocking(False)
            sent = 0
            try:
                while True:
                    sent += theirs.send(b"x" * 100)
            except BlockingIOError:
                theirs.setblocking(True)
            self.assertEqual(self.run_to(theirs.fileno()), 0)
            while sent > 0:
                sent -= len(ours.recv(min(sent, 65536)))
            self.assertEqual(self.run_to(theirs.fileno()), 0)
            theirs.shutdown(socket.SHUT_WR)
            events = [json.loads(line) for line in ours.makefile()]
        self.assertEqual(self.names(events), ["started", "ended"])

    def test_a_terminal_that_is_stopped_does_not_delay_the_run(self):
        ours, theirs = os.openpty()
        termios.tcflow(theirs, termios.TCOOFF)
        self.assertEqual(self.run_to(theirs), 0)
        termios.tcflow(theirs, termios.TCOON)
        self.assertEqual(self.run_to(theirs), 0)
        self.assertIn(b'"event":"started"', os.read(ours, 65536))
        os.close(ours)
        os.close(theirs)

    def test_a_run_that_can_not_begin_has_its_end(self):
        for words, code in ((["-p", "nosuch", "true"], "unknown-policy"), (["--nosuch"], "unknown-option"), (["nosuch-command-xyz"], "not-found")):
            status, events = self.run_with(*words)
            self.assertEqual(self.names(events), ["ended"], words)
            self.assertEqual((events[0]["exit_status"], events[0]["outcome"]["status"], events[0]["outcome"]["code"]), (status, "setup-failed", code))

    def test_the_program_does_not_get_the_descriptor(self):
        read, write = os.pipe()
        done = subprocess.run([SBX, "run", "--events-fd", str(write), "--", "sh", "-c", f"echo for''ged >&{write}"], pass_fds=[write], env=self.environment(),
                              cwd=self.work, capture_output=True, timeout=120, check=False)
        os.close(write)
        with os.fdopen(read, "rb") as source:
            self.assertNotIn(b"forged", source.read())
        self.assertNotEqual(done.returncode, 0)

    def test_the_same_program_outside_has_the_descriptor(self):
        read, write = os.pipe()
        subprocess.run(["sh", "-c", f"echo for''ged >&{write}"], pass_fds=[write], timeout=120, check=True)
        os.close(write)
        with os.fdopen(read, "rb") as source:
            self.assertEqual(source.read(), b"forged\n")

    def test_a_descriptor_that_is_none(self):
        for number in ("0", "1", "2", "99"):
            done = subprocess.run([SBX, "run", "--events-fd", number, "true"], env=self.environment(), cwd=self.work, capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(done.returncode, 125)
            self.assertIn("--events-fd", done.stderr)


if __name__ == "__main__":
    sbxtest.main()

"""What a background call reads while it runs: `exec -d --stdin open`, `session send`, and any number of readers of what it answers.
The session's process holds none of it, and a sender that does not go on is in nobody's way but that of other senders."""

import hashlib
import os
import pathlib
import signal
import socket
import subprocess
import threading

import sessiontest
import sbxtest
from sbxtest import SBX
from sessiontest import SessionTest
from test_hostile_messages import cbor

BIG = 100 << 20
SLACK = 8 << 20  # what a process may grow by for another reason


def peak(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) << 10


class InputTest(SessionTest):
    def open_call(self, *command):
        return str(self.detach("--", *command, options=("--stdin", "open")))

    def send(self, call, *words, status=0, **options):
        answer = self.sbx_session("send", "work", call, *words, **options)
        self.assertEqual(answer.status, status, answer)
        return answer

    def begin_sending(self, call, *words, stdin=subprocess.DEVNULL):
        process = sbxtest.start([SBX, "session", "send", "work", call, *words], env=self.environment(), cwd=self.work, stdin=stdin,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(sbxtest.stop, [process])
        return process

    def begin_endless(self, call):
        """A sender whose source never ends, which has come to where the call takes no more."""
        reading, writing = os.pipe()
        self.addCleanup(os.close, writing)
        os.set_blocking(writing, False)
        sender = self.begin_sending(call, "-", stdin=reading)
        os.close(reading)

        def is_full():
            try:
                while True:
                    os.write(writing, bytes(1 << 16))
            except BlockingIOError:
                # Asleep with a full source: it waits for the call.
                return sessiontest.state_of(sender.pid) == "S" and "poll" in pathlib.Path(f"/proc/{sender.pid}/wchan").read_text()
        sessiontest.wait_until(is_full, "the call takes no more")
        return sender

    def ends(self, sender, status, *words):
        out, err = sender.communicate(timeout=sessiontest.HANG)
        self.assertEqual(sender.returncode, status, err)
        for each in words:
            self.assertIn(each, err.decode())

    def log(self, call):
        return self.sbx_session("logs", "work", call).out

    def until_logged(self, call, text):
        sessiontest.wait_until(lambda: self.log(call) == text, f"{text!r} is in the log")

    def error(self, code, *words, status=2):
        answer = self.sbx_session(*words, "--json")
        self.assertEqual((answer.status, answer.json["error"]["code"]), (status, code), answer)
        self.fits("sbx.error.1", answer.json)
        return answer


class Sending(InputTest):
    def test_a_program_reads_lines_while_it_runs(self):
        self.start_session()
        call = self.open_call("sh", "-c", "while read -r line; do echo \"got $line\"; done; echo end")
        self.send(call, "one")
        self.until_logged(call, "got one\n")
        self.send(call, "two\nthree\n")
        self.until_logged(call, "got one\ngot two\ngot three\n")
        sent = self.send(call, "--json", "--", "-last").json
        self.assertEqual((sent["call"], sent["bytes"], sent["ended"]), (int(call), 6, False))
        self.fits("sbx.session.1", sent)
        self.assertIs(self.send(call, "--end", "--json").json["ended"], True)
        self.assertEqual(self.sbx_session("wait", "work", call).status, 0)
        self.assertEqual(self.log(call), "got one\ngot two\ngot three\ngot -last\nend\n")

    def test_standard_input_is_sent_byte_for_byte(self):
        self.start_session()
        call = self.open_call("sh", "-c", "wc -c; exec <&-; sleep 100")
        for data in (b"", b"no newline", bytes(range(256)), os.urandom(3 << 20)):
            self.assertEqual(self.send(call, "-", "--json", stdin=data).json["bytes"], len(data))
        (self.work / "file").write_bytes(b"of a file")
        with open(self.work / "file", "rb") as file:
            sender = self.begin_sending(call, "-", "--end", stdin=file)
            self.ends(sender, 0)
        self.until_logged(call, f"{10 + 256 + (3 << 20) + 9}\n")

    def test_much_input_costs_the_session_no_memory(self):
        session = self.start_session()["pid"]
        call = self.open_call("sha256sum")
        before = peak(session)
        sender = self.begin_sending(call, "-", "--end", stdin=subprocess.PIPE)
        block, sum = os.urandom(1 << 20), hashlib.sha256()
        for _ in range(BIG // len(block)):
            sender.stdin.write(block)
            sum.update(block)
        sender_peak = peak(sender.pid)
        sender.stdin.close()
        sender.stdin = None
        self.ends(sender, 0)
        self.assertEqual(self.sbx_session("wait", "work", call).status, 0)
        self.assertEqual(self.log(call), f"{sum.hexdigest()}  -\n")
        self.assertLess(peak(session) - before, SLACK)
        self.assertLess(sender_peak, 32 << 20)

    def test_what_a_call_without_open_input_reads(self):
        """The twin: nothing is left open for it."""
        self.start_session()
        call = str(self.detach("--", "sh", "-c", "cat; echo end; sleep 100"))
        self.until_logged(call, "end\n")
        self.assertIn("exec -d --stdin open", self.error("input-not-open", "send", "work", call, "x").json["error"]["hint"])

    def test_bad_input_is_answered(self):
        self.start_session()
        call = self.open_call("sh", "-c", "cat; sleep 100")
        self.error("no-such-call", "send", "work", "99", "x")
        self.error("no-such-session", "send", "nosuch", call, "x")
        for words in ((), (call,), ("x", "text"), (call, "a", "b")):
            self.error("usage", "send", "work", *words)
        self.send(call, "--end")
        for words in (("x",), ("--end",)):
            self.error("input-ended", "send", "work", call, *words)
        self.assertEqual(self.sbx_session("kill", "work", call, "KILL").status, 0)
        self.sbx_session("wait", "work", call)
        self.error("call-ended", "send", "work", call, "x")
        self.exec_ok("--", "true")
        self.error("call-ended", "send", "work", "2", "x")
        for words in (("run", "--stdin", "open", "--", "cat"), ("session", "exec", "work", "--stdin", "open", "--", "cat")):
            self.assertIn("exec -d --stdin open; a file of that name is ./open", self.run_sbx(*words).err)
        self.assertIn("exclude each other", self.sbx_session("exec", "work", "-d", "--stdin", "open", "--lang", "bash", "-").err)
        (self.work / "open").write_text("of the file")
        self.assertEqual(self.run_sbx("run", "-p", "python", "--stdin", "./open", "--", "cat").out, "of the file")
        closed = sbxtest.start(["/bin/sh", "-c", f"exec {SBX} session send work {self.open_call('cat')} - <&-"], env=self.environment(), cwd=self.work,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.ends(closed, 125, "cannot read what is to be sent")
        closed.stdout.close()
        closed.stderr.close()


if __name__ == "__main__":
    sessiontest.main()

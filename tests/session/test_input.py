"""What a background call reads while it runs: `exec -d --stdin open`, `session send`, and any number of readers of what it answers.
The session's process holds none of it, and a sender that does not go on is in nobody's way but that of other senders."""

import fcntl
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
        room = fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ)
        sender = self.begin_sending(call, "-", stdin=reading)
        os.close(reading)
        written = 0

        def is_full():
            nonlocal written
            try:
                while True:
                    written += os.write(writing, bytes(1 << 16))
            except BlockingIOError:
                # It has read, so it has had its turn. Asleep with a full source it waits for the call.
                return written > room and sessiontest.state_of(sender.pid) == "S" and "poll" in pathlib.Path(f"/proc/{sender.pid}/wchan").read_text()
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

    def test_a_program_that_closed_its_input_and_lives_keeps_no_sender_waiting(self):
        self.start_session("--workspace", f"{self.work}:read-write")
        call = self.open_call("sh", "-c", "until [ -e go ]; do sleep 0.1; done; exec <&-; sleep 1000")
        sender = self.begin_endless(call)
        behind = self.begin_sending(call, "its turn never comes")
        (self.work / "go").touch()
        self.ends(sender, 2, f"the program of call {call} has closed its standard input")
        self.ends(behind, 2, "standard input")
        self.error("input-ended", "send", "work", call, "x")
        self.exec_ok("--", "true")
        self.assertEqual(self.sbx_session("kill", "work", call, "KILL").status, 0)

    def test_a_sender_that_waits_for_its_source_learns_that_nobody_reads(self):
        """Its source says nothing and does not end. The twin: while the program lives and has its input open, the sender waits for more."""
        self.start_session("--workspace", f"{self.work}:read-write")
        for then, why in (("exec <&-; sleep 1000", "the program of call {} has closed its standard input"), ("exit", "call {} has ended")):
            call = self.open_call("sh", "-c", f"head -c 3; until [ -e go ]; do sleep 0.1; done; head -c 3; {then}")
            reading, writing = os.pipe()
            sender = self.begin_sending(call, "-", stdin=reading)
            os.close(reading)
            os.write(writing, b"abc")
            self.until_logged(call, "abc")
            self.assertIsNone(sender.poll())
            os.write(writing, b"def")
            (self.work / "go").touch()
            self.ends(sender, 2, why.format(call), "6 bytes were sent before")
            os.close(writing)
            (self.work / "go").unlink()

    def test_a_program_that_ends_while_somebody_sends_has_ended(self):
        self.start_session("--workspace", f"{self.work}:read-write")
        call = self.open_call("sh", "-c", "until [ -e go ]; do sleep 0.1; done")
        sender = self.begin_endless(call)
        (self.work / "go").touch()
        self.ends(sender, 2, f"call {call} has ended")

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


class Senders(InputTest):
    def test_a_program_that_never_reads_holds_up_its_sender_alone(self):
        session = self.start_session()["pid"]
        before = peak(session)
        call = self.open_call("sleep", "1000")
        sender = self.begin_endless(call)
        self.assertEqual(self.exec_ok("--", "echo", "meanwhile").out, "meanwhile\n")
        other = self.open_call("cat")
        self.send(other, "of the other")
        self.until_logged(other, "of the other\n")
        self.assertIsNone(sender.poll())
        self.assertEqual(self.sbx_session("kill", "work", call, "KILL").status, 0)
        self.ends(sender, 2, f"call {call} has ended", "bytes were sent before")
        self.assertLess(peak(session) - before, SLACK)

    def test_a_program_that_closes_its_input_or_reads_a_part(self):
        self.start_session()
        closes = self.open_call("sh", "-c", "exec <&-; sleep 1000")
        with open("/dev/zero", "rb") as zeros:
            self.ends(self.begin_sending(closes, "-", stdin=zeros), 2, f"the program of call {closes} has closed its standard input")
        part = self.open_call("sh", "-c", "head -c 3; head -c 100000 >/dev/null")
        reading, writing = os.pipe()
        sender = self.begin_sending(part, "-", stdin=reading)
        os.close(reading)
        os.write(writing, b"abc")
        self.until_logged(part, "abc")
        os.set_blocking(writing, False)

        def has_left():
            try:
                os.write(writing, bytes(1 << 16))
            except BlockingIOError:
                pass
            except BrokenPipeError:
                return True
            return sender.poll() is not None
        sessiontest.wait_until(has_left, "the sender has ended with its call")
        self.ends(sender, 2, "has ended", "bytes were sent before")
        os.close(writing)
        self.assertEqual(self.sbx_session("wait", "work", part).status, 0)

    def test_the_last_line_may_end_the_program(self):
        """All of it was taken, so that is no error."""
        self.start_session()
        for _ in range(10):
            call = self.open_call("sh", "-c", "read -r line; exit 3")
            self.send(call, "exit")
            self.assertEqual(self.sbx_session("wait", "work", call).status, 3)

    def test_a_sender_that_is_killed_has_sent_a_part(self):
        self.start_session()
        call = self.open_call("cat")
        reading, writing = os.pipe()
        sender = self.begin_sending(call, "-", "--end", stdin=reading)
        os.close(reading)
        os.write(writing, b"part ")
        self.until_logged(call, "part ")
        sender.kill()
        sender.wait()
        os.close(writing)
        self.send(call, "rest")  # the input has not ended
        self.until_logged(call, "part rest\n")
        self.send(call, "--end")
        self.assertEqual(self.sbx_session("wait", "work", call).status, 0)

    def test_what_one_sends_stays_together(self):
        self.start_session()
        call = self.open_call("cat")
        reading, writing = os.pipe()
        first = self.begin_sending(call, "-", stdin=reading)
        os.close(reading)
        os.write(writing, b"first ")
        self.until_logged(call, "first ")
        waiting = [self.begin_sending(call, word) for word in ("killed", "second")]
        for each in waiting:
            sessiontest.wait_until(lambda: "poll" in pathlib.Path(f"/proc/{each.pid}/wchan").read_text(), "it waits")  # noqa: B023
        waiting[0].kill()
        os.write(writing, b"still first\n")
        os.close(writing)
        self.ends(first, 0)
        self.ends(waiting[1], 0)
        waiting[0].wait()
        self.send(call, "--end")
        self.sbx_session("wait", "work", call)
        lines = self.log(call).splitlines()
        self.assertEqual((lines[0], lines[-1]), ("first still first", "second"), lines)

    def test_many_senders_at_once(self):
        self.start_session()
        call = self.open_call("sh", "-c", "sort | uniq -c")
        senders = [threading.Thread(target=self.send, args=(call, "-"), kwargs={"stdin": f"{n:05}\n".encode() * 20000}) for n in range(8)]
        for each in senders:
            each.start()
        for each in senders:
            each.join()
        self.send(call, "--end")
        self.assertEqual(self.sbx_session("wait", "work", call).status, 0)
        self.assertEqual(self.log(call).split(), [word for n in range(8) for word in ("20000", f"{n:05}")])

    def test_the_end_of_the_session_ends_its_senders(self):
        self.start_session()
        sender = self.begin_endless(self.open_call("sleep", "1000"))
        self.stop_session()
        self.ends(sender, 2, "bytes were sent before")
        self.nothing_is_left()

    def connect(self, call):
        """A sender that says no more than that it is one."""
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(client.close)
        client.settimeout(sessiontest.HANG)
        client.connect(str(self.directory() / "work/socket"))
        client.send(b"\2" + cbor({"op": "send", "call": int(call)}))
        return client

    def test_senders_that_left_take_no_place(self):
        """The twin: those that wait do, below."""
        self.start_session()
        call = self.open_call("cat")
        first = self.connect(call)
        socket.recv_fds(first, 8192, 4)
        waiting = [self.connect(call) for _ in range(63)]
        sessiontest.wait_until(lambda: self.sbx_session("send", "work", call, "x", "--json").json["error"]["code"] == "too-many-senders", "64 of them wait")
        for each in waiting[:-1]:
            each.close()
        later = self.begin_sending(call, "later")
        sessiontest.wait_until(lambda: later.poll() is not None or "poll" in pathlib.Path(f"/proc/{later.pid}/wchan").read_text(), "it waits")
        first.close()
        self.assertEqual(len(socket.recv_fds(waiting[-1], 8192, 4)[1]), 1)
        waiting[-1].close()
        self.ends(later, 0)
        self.until_logged(call, "later\n")

    def test_senders_that_say_nothing_or_nonsense(self):
        self.start_session()
        call = self.open_call("cat")

        def connect():
            return self.connect(call)
        clients = [connect()]
        packet, fds, _, _ = socket.recv_fds(clients[0], 8192, 4)
        self.assertEqual(len(fds), 1, packet)
        clients += [connect() for _ in range(63)]
        sessiontest.wait_until(lambda: self.sbx_session("send", "work", call, "x", "--json").json["error"]["code"] == "too-many-senders", "64 of them wait")
        os.write(fds[0], b"of the first\n")
        clients[0].send(b"\2" + cbor({"end": "nonsense"}))  # it has had its turn
        packet, more, _, _ = socket.recv_fds(clients[1], 8192, 4)
        self.assertEqual(len(more), 1, packet)
        for each in clients:
            each.close()
        self.send(call, "--end")
        # One that has kept its end of the socket can no longer use it.
        self.assertEqual(self.sbx_session("wait", "work", call).status, 0)
        with self.assertRaises(OSError):
            socket.socket(fileno=fds[0]).send(b"late", socket.MSG_NOSIGNAL)
        os.close(more[0])
        self.assertEqual(self.log(call), "of the first\n")

    def test_the_program_gets_a_pipe_of_its_own(self):
        """No descriptor of the session's is inside."""
        self.start_session()
        call = self.open_call("sh", "-c", "readlink /proc/self/fd/*; cat; ls -l /proc/self/fd | grep -c socket")
        self.send(call, "--end")
        self.sbx_session("wait", "work", call)
        *links, count = self.log(call).splitlines()
        self.assertEqual((sum(each.startswith("socket:") for each in links), count), (0, "0"), links)


class Readers(InputTest):
    def test_any_number_of_readers_hear_everything(self):
        self.start_session()
        call = self.open_call("cat")
        follow = [SBX, "session", "logs", "-f", "work", call]
        readers = [sbxtest.start(follow, env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(24)]
        for each in readers:
            self.addCleanup(each.stdout.close)
            self.addCleanup(each.stderr.close)
        self.addCleanup(sbxtest.stop, readers)
        self.send(call, "begin")
        for each in readers:
            self.assertEqual(each.stdout.readline(), b"begin\n")
        stopped, killed, *others = readers
        os.kill(stopped.pid, signal.SIGSTOP)
        killed.kill()
        text = b"".join(b"line %d\n" % n for n in range(20000))
        self.send(call, "-", "--end", stdin=text)
        for each in others:
            self.assertEqual((each.stdout.read(), each.wait()), (text, 0))
        self.assertEqual(self.sbx_session("wait", "work", call).status, 0)
        os.kill(stopped.pid, signal.SIGCONT)
        self.assertEqual((stopped.stdout.read(), stopped.wait()), (text, 0))
        self.assertEqual(self.log(call).encode(), b"begin\n" + text)  # and one that comes late


if __name__ == "__main__":
    sessiontest.main()

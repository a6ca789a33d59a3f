"""Drives the interpreter drivers (src/session/drivers) over pipes, as sbx does but without a sandbox."""

import base64
import fcntl
import json
import os
import re
import selectors
import signal
import subprocess
import tempfile
import time
import unittest

from harness import HANG, SOURCE, main  # main is for the scripts that import this

DRIVERS = SOURCE / "src" / "session" / "drivers"
FONTS = os.path.join(tempfile.gettempdir(), f"sbx-cells-matplotlib-{os.getuid()}")  # matplotlib's cache, made once for all tests
REPEATS_AFTER = 0.1  # seconds, as sbx does
PATIENCE = HANG


class Died(Exception):
    """The context ended before it answered; .status as of Popen, .partial is what arrived of the answer."""

    def __init__(self, status, partial):
        super().__init__(f"the context ended with {status}: {partial}")
        self.status = status
        self.partial = partial


class Answer:
    """What one cell gave: out and err (bytearray), results, errors, done, and the messages of other kinds."""

    def __init__(self):
        self.out = bytearray()
        self.err = bytearray()
        self.results = []
        self.errors = []
        self.done = None
        self.others = []

    @property
    def error(self):
        return self.errors[0] if self.errors else None

    @property
    def main(self):
        """The data of the main result, or None."""
        found = [result["data"] for result in self.results if result["main"]]
        return found[0] if found else None

    @property
    def text(self):
        return None if self.main is None else self.main.get("text/plain")

    @property
    def shown(self):
        """The data of the results that are not the main one."""
        return [result["data"] for result in self.results if not result["main"]]

    def __str__(self):
        return json.dumps({"out": self.out[-2000:].decode(errors="replace"), "err": self.err[-2000:].decode(errors="replace"), "results": str(self.results)[:2000],
                           "errors": self.errors, "done": self.done, "others": self.others}, indent=1)


class Context:
    """One interpreter with its driver."""

    def __init__(self, argv, env=None, cwd=None, repeats=False):
        """repeats: an interrupt is sent again until the driver says that it was heard."""
        requests, self.requests = os.pipe()
        self.replies, replies = os.pipe()
        fcntl.fcntl(self.requests, fcntl.F_SETFL, os.O_NONBLOCK)

        def prepare():
            """The pipes as descriptors 3 and 4, whatever their numbers are now."""
            first, second = os.dup(requests), os.dup(replies)
            first, second = fcntl.fcntl(first, fcntl.F_DUPFD, 20), fcntl.fcntl(second, fcntl.F_DUPFD, 20)
            os.dup2(first, 3)
            os.dup2(second, 4)
            os.closerange(5, 1024)
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "MPLCONFIGDIR": FONTS, "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=prepare, close_fds=False,
                                        env=environment, cwd=cwd, start_new_session=True)
        os.close(requests)
        os.close(replies)
        self.out, self.err = self.process.stdout.fileno(), self.process.stderr.fileno()
        for descriptor in (self.replies, self.out, self.err):
            fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_NONBLOCK)
        self.buffer = b""
        self.count = 0
        self.nonces = 0
        self.repeats = repeats
        self.unheard = None  # how the last interrupt was sent
        self.answers_places = True
        self.ready = None
        started = Answer()
        self.wait_for(started, lambda message: message["event"] == "ready")
        self.ready = started.done
        self.start_output = bytes(started.out), bytes(started.err)

    # Sending.

    def send(self, message):
        body = message if isinstance(message, bytes) else json.dumps(message, ensure_ascii=False).encode()
        data = b"%d\n%b" % (len(body), body)
        while data:
            try:
                data = data[os.write(self.requests, data):]
            except BlockingIOError:
                time.sleep(0.001)
            except BrokenPipeError:
                raise Died(self.process.wait(), None) from None

    def begin(self, code):
        """Sends a cell and returns its nonce."""
        self.count += 1
        self.nonces += 1
        self.unheard = None
        nonce = f"{self.nonces * 0x9E3779B97F4A7C15 & (1 << 64) - 1:016x}"
        self.send({"op": "cell", "nonce": nonce, "count": self.count, "code": code})
        return nonce

    def cell(self, code, meanwhile=None, patience=PATIENCE):
        nonce = self.begin(code)
        return self.finish(nonce, meanwhile, patience)

    def finish(self, nonce, meanwhile=None, patience=PATIENCE):
        answer = Answer()
        self.wait_for(answer, lambda message: message["event"] == "done" and message.get("nonce") == nonce, meanwhile, patience)
        self.drain(answer)
        for message in answer.results + answer.errors + [answer.done]:
            assert message["nonce"] == nonce, message
        assert answer.done["count"] == self.count, answer.done
        return answer

    def ping(self):
        self.send({"op": "ping"})
        answer = Answer()
        self.wait_for(answer, lambda message: message["event"] == "pong")

    def is_unchanged(self):
        """Whether one that was started ahead finds that a start would find the same now."""
        self.send({"op": "unchanged"})
        answer = Answer()
        self.wait_for(answer, lambda message: message["event"] == "unchanged")
        return answer.done["unchanged"]

    def ask(self, what, code):
        """The answer to a question about code that does not run."""
        self.nonces += 1
        nonce = f"question{self.nonces}"
        self.send({"op": "inspect", "nonce": nonce, "what": what, "code": code})
        answer = Answer()
        self.wait_for(answer, lambda message: message["event"] == "inspected" and message["nonce"] == nonce)
        return {key: value for key, value in answer.done.items() if key not in ("event", "nonce")}

    def is_complete(self, table):
        """Checks rows of code, status and, where that matters, the next line's indent."""
        for code, status, *indent in table:
            answer = self.ask("completeness", code)
            assert answer.get("status") == status, (code, answer)
            assert not indent or answer.get("indent") == indent[0], (code, answer)

    def completes(self, table):
        """Checks rows of code, what is replaced, and names that are among the matches; without names there are none."""
        for code, replaces, names in table:
            answer = self.ask("completion", code)
            assert set(names) <= set(answer.get("matches", [])), (code, answer)
            assert not names or (answer["replaces"] == replaces and len(answer["matches"]) <= 200), (code, answer)
            assert names or not answer.get("matches"), (code, answer)

    def interrupt(self, everyone=False):
        (os.killpg if everyone else os.kill)(self.process.pid, signal.SIGINT)
        self.unheard = (everyone,) if self.repeats else None

    # Receiving.

    def messages(self):
        while b"\n" in self.buffer:
            size, _, rest = self.buffer.partition(b"\n")
            if len(rest) < int(size):
                return
            self.buffer = rest[int(size):]
            yield json.loads(rest[:int(size)].decode())

    def wait_for(self, answer, is_last, meanwhile=None, patience=PATIENCE):
        """Gathers messages and output until the last message; calls meanwhile(self, answer) when output arrives."""
        if self.take(answer, is_last):
            return
        deadline = time.monotonic() + patience
        with selectors.DefaultSelector() as selector:
            for descriptor in (self.replies, self.out, self.err):
                selector.register(descriptor, selectors.EVENT_READ)
            while True:
                left = max(0.0, deadline - time.monotonic())
                ready = selector.select(min(left, REPEATS_AFTER) if self.unheard else left)
                if not ready and self.unheard and left > REPEATS_AFTER:
                    self.interrupt(*self.unheard)
                    continue
                if not ready:
                    raise AssertionError(f"no answer after {patience} s: {answer}")
                for key, _ in ready:
                    data = self.read(key.fd)
                    if data == b"" and key.fd == self.replies:
                        status = self.process.wait()
                        self.drain(answer)  # what it wrote when the channel had closed, too
                        raise Died(status, answer)
                    if data == b"":
                        selector.unregister(key.fd)
                    elif key.fd == self.replies:
                        self.buffer += data
                    elif key.fd == self.out:
                        answer.out.extend(data)
                    else:
                        answer.err.extend(data)
                if self.take(answer, is_last):
                    return
                if meanwhile:
                    meanwhile(self, answer)

    def take(self, answer, is_last):
        """Gathers the messages that have arrived whole, up to the last one; whether it was among them."""
        for message in self.messages():
            if is_last(message):
                answer.done = message
                return True
            if message["event"] == "interrupted":
                self.unheard = None
                continue
            if message["event"] == "place" and self.answers_places:
                self.send({"op": "go on"})
            {"result": answer.results, "error": answer.errors}.get(message["event"], answer.others).append(message)
        return False

    @staticmethod
    def read(descriptor):
        try:
            return os.read(descriptor, 1 << 18)
        except BlockingIOError:
            return None

    def drain(self, answer):
        """What the cell wrote before it was done is in the pipes by now."""
        for name, descriptor in (("out", self.out), ("err", self.err)):
            while data := self.read(descriptor):
                getattr(answer, name).extend(data)

    def close(self):
        """Ends the requests, and with them the context; returns its exit status."""
        if self.requests is not None:
            os.close(self.requests)
            self.requests = None
        try:
            status = self.process.wait(10)
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        if self.replies is not None:
            os.close(self.replies)
            self.replies = None
        self.process.stdout.close()
        self.process.stderr.close()
        return status


class CellTest(unittest.TestCase):
    def fits(self, expected, actual):
        """What a table expects: a value, a pattern for the whole text, forms by name, or a function that judges."""
        if isinstance(expected, re.Pattern):
            return expected.fullmatch(str(actual)) is not None
        if isinstance(expected, dict) and isinstance(actual, dict):
            return expected.keys() == actual.keys() and all(self.fits(value, actual[name]) for name, value in expected.items())
        return expected(actual) if callable(expected) else expected == actual

    def start(self, argv, env=None, **named):
        context = Context(argv, env={"HOME": self.directory(), **(env or {})}, **named)
        self.addCleanup(context.close)
        return context

    def directory(self):
        made = tempfile.TemporaryDirectory(prefix="cells-")
        self.addCleanup(made.cleanup)
        os.chmod(made.name, 0o755)
        return made.name


def is_png(text):
    return base64.b64decode(text).startswith(b"\x89PNG\r\n")

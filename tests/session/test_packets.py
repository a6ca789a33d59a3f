"""What commands and a session say to each other, read on its way: each packet is as schema/sbx.packet.2.json says, and each member
that the schema names is in one of them. The test listens in the place of a session and passes everything on."""

import fcntl
import os
import selectors
import socket
import struct
import threading
import unittest

import schemas
from harness import main, wait_until
from sessiontest import SessionTest
from test_hostile_messages import cbor

VERSION = b"\2"
MOST = 253  # descriptors of one packet


class Reader:
    """Reads CBOR, RFC 8949, as far as packets have it."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        assert self.at <= len(self.data), "a packet is cut off"
        return self.data[self.at - count:self.at]

    def value(self):
        first = self.take(1)[0]
        major, more = first >> 5, first & 31
        if major == 7:
            floats = {25: ">e", 26: ">f", 27: ">d"}
            return struct.unpack(floats[more], self.take(1 << more - 24))[0] if more in floats else {20: False, 21: True, 22: None}[more]
        size = more if more < 24 else int.from_bytes(self.take(1 << more - 24), "big")
        if major < 2:
            return size if major == 0 else -1 - size
        if major < 4:
            return self.take(size).decode(errors="surrogateescape")
        if major == 4:
            return [self.value() for _ in range(size)]
        return {self.value(): self.value() for _ in range(size)}


def body_of(packet, fds):
    assert packet[:1] == VERSION, packet[:1]
    data = packet[1:] if len(packet) > 1 else os.pread(fds[0], os.fstat(fds[0]).st_size, 0)
    reader = Reader(data)
    body = reader.value()
    assert reader.at == len(data), "a packet has more than one value"
    return body


class Tap:
    """A session's socket that passes on to another one, and keeps what it has passed on: (connection, who, body)."""

    def __init__(self, runtime, name, session):
        self.session, self.heard, self.count, self.threads = session, [], 0, []
        place = runtime / "sbx/sessions" / name
        place.mkdir(parents=True)
        for each in (runtime, runtime / "sbx", runtime / "sbx/sessions", place):
            each.chmod(0o700)
        self.lock = open(place / "lock", "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(str(place / "socket"))
        self.socket.listen()
        self.accepts = threading.Thread(target=self._accept)
        self.accepts.start()

    def connect(self):
        """A client of the session itself."""
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.connect(str(self.session / "socket"))
        return client

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.accepts.join()
        for each in self.threads:
            each.join()
        self.socket.close()
        self.lock.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            self.count += 1
            self.threads.append(threading.Thread(target=self._pass_on, args=(client, self.count)))
            self.threads[-1].start()

    def _pass_on(self, client, number):
        with client, self.connect() as session, selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ, ("client", session))
            selector.register(session, selectors.EVENT_READ, ("session", client))
            while True:
                for key, _ in selector.select():
                    who, other = key.data
                    try:
                        packet, fds, _, _ = socket.recv_fds(key.fileobj, 8192, MOST)
                        if not packet:
                            return
                        self.heard.append((number, who, body_of(packet, fds)))
                        socket.send_fds(other, [packet], fds)
                    except OSError:
                        return  # one of them has left
                    finally:
                        for fd in fds:
                            os.close(fd)


class Packets(SessionTest):
    def tap(self):
        self.start_session("--workspace", ".:overlay")
        runtime = self.tmp / "runtime"
        tap = Tap(runtime, "tapped", self.directory() / "work")
        self.addCleanup(tap.close)
        self.tapped = {"XDG_RUNTIME_DIR": str(runtime)}
        return tap

    def say(self, *words, status=0, **options):
        answer = self.sbx_session(words[0], "tapped", *words[1:], env=self.tapped, **options)
        self.assertEqual(answer.status, status, answer)
        return answer

    def ask(self, tap, request, fds=(), later=None):
        """What no command asks so, and what its client says next."""
        number = -len(tap.heard)
        with tap.connect() as client:
            tap.heard.append((number, "client", request))
            socket.send_fds(client, [VERSION + cbor(request)], fds)
            if later:
                tap.heard.append((number, "client", later))
                client.send(VERSION + cbor(later))
            while True:
                packet, got, _, _ = socket.recv_fds(client, 8192, MOST)
                if not packet:
                    return
                tap.heard.append((number, "session", body_of(packet, got)))
                for fd in got:
                    os.close(fd)

    def use(self, tap):
        (self.tmp / "in").write_text("text")
        for words in (["show"], ["stats"], ["extend", "5m"], ["put", self.tmp / "in", "/tmp/"], ["ls"], ["contexts"], ["calls"]):
            self.say(*words)
        self.say("exec", "--json", "--timeout", "60s", "--env", "A=1", "--", "sh", "-c", "echo made > made; exit 3", status=3)
        self.say("exec", "--", "sh", "-c", "kill -9 $$", status=137)
        call = self.say("exec", "-d", "--", "sh", "-c", "printf 'out\\377'; echo err >&2; sleep 100").out.strip()
        wait_until(lambda: "err" in self.say("logs", call).err, "it has written")
        self.say("calls")
        follower = self.begin_follower(call)
        self.say("kill", call)
        self.say("wait", "--json", call, status=143)
        follower.join()
        self.say("kill", call, status=2)
        reader = self.say("exec", "-d", "--stdin", "open", "--", "cat").out.strip()
        self.say("send", reader, "text")
        self.say("send", reader, "--end")
        self.say("send", reader, "late", status=2)
        self.say("eval", "--stream", "-c", "from IPython.display import display, clear_output\nhandle = display('one', display_id=True)\n"
                                           "handle.update('two')\nclear_output(wait=True)\n1")
        self.say("eval", "--json", "--timeout", "50s", "-c", "print('x' * 5000)\n1 / 0", status=1)
        self.say("eval", "--stream", "-c", "1 / 0", status=1)
        self.say("eval", "--stream", "-c", "'x' * 9_000_000")
        self.say("eval", "--timeout", "99h", "-c", "1", status=125)
        self.say("eval", "-c", "import nothing", status=1)
        self.say("eval", "-c", "import os; open('/tmp/x', 'w').close(); os.rename('/tmp/x', 'y')", status=1)
        self.say("eval", "--lang", "fortran", "-c", "1", status=125)
        self.say("contexts")
        self.say("interrupt")
        for question, code in (("context", ""), ("completeness", "if True:"), ("completion", "import os; os.pat")):
            self.ask(tap, {"op": "inspect", "language": "python", "context": "", "question": question, "code": code})
        self.ask(tap, {"op": "policy"})
        self.say("close", self.say("context", "--lang", "bash", "--cwd", "/tmp").out.strip())
        self.say("context", "--cwd", "nowhere", status=2)
        self.say("restart")
        with open("/dev/null", "r+b") as null:
            code = {"op": "eval", "id": "c_1", "language": "python", "context": "", "code": "import time; time.sleep(100)", "overrides": [], "capture": False,
                    "follow": False, "directory": "", "environment": [["A", "1"]]}
            self.ask(tap, code, [null.fileno()] * 2, {"cancel": 2})
            program = {"operands": ["sleep", "100"], "hold": False, "after_dashes": True, "language": "", "code": None, "umask": None, "code_from_stdin": False, "interactive": False,
                       "stdin_mode": "null", "stdin_file": "", "directory": "", "environment": [], "inputs": [{"source": str(self.tmp / "in"), "target": "in"}], "require": [],
                       "explain": False}
            self.ask(tap, {"op": "call", "id": "r_1", "program": program, "overrides": [], "capture": False, "background": False, "reads_stdin": False, "open_stdin": False, "silent": True,
                           "verbose": False, "colors": False, "record": False}, [null.fileno()] * 3, {"signal": 15})
            self.ask(tap, {"op": "bring-out", "directory": str(self.tmp / "out"), "collect": ["*"], "silent": False})
        self.assertTrue((self.tmp / "out/made").exists(), tap.heard[-1])
        for words in (["changes"], ["diff"], ["diff", "--patch"], ["keep", "set"], ["apply", "--yes"]):
            self.say(*words)
        self.say("stop")

    def begin_follower(self, call):
        thread = threading.Thread(target=self.sbx_session, args=("logs", "-f", "tapped", call), kwargs={"env": self.tapped})
        thread.start()
        return thread

    @unittest.skipIf(schemas.jsonschema is None, "python3-jsonschema is not installed")
    def test_packets_have_what_their_schema_names_and_nothing_else(self):
        held = schemas.Held("sbx.packet/2", closed=True)
        tap = self.tap()
        self.use(tap)
        operations, asked = held.schema["operations"], {}
        for number, who, body in tap.heard:
            with self.subTest(body=str(body)[:200]):
                if who == "client" and "op" in body:
                    asked[number] = {**operations[body["op"]], "heard": 0}
                    held.hold_as(body, asked[number]["request"])
                    continue
                facts = asked[number]
                if who == "client":
                    held.hold_as(body, facts["later"])
                    continue
                facts["heard"] += 1
                name = "ErrorAnswer" if "error" in body else facts["begun"] if "begun" in facts and facts["heard"] == 1 else \
                    facts["event"] if {"after_out", "copied"} & set(body) else facts["answer"]
                held.hold_as(body, name)
        self.assertEqual(set(operations) - {body.get("op") for _, _, body in tap.heard}, set())
        # Of an allow-list: network/test_allow_list.py. Of changes that are too many or can't be kept, and of a machine that enforces less:
        # sandbox/test_changes.py, test_refusals.py. Of places: test_notebooks.py. Of what stood in the way: test_directories.py. Of the
        # changes of one path: mcp/.
        rare = {"ChangesRequest.below",
                *(f"StatsAnswer.use.network.{name}" for name in ("rule", "connections", "bytes_in", "bytes_out")),
                *(f"StatsAnswer.use.network_failed.{name}" for name in ("what", "why", "count")),
                *(f"{facts}.degraded.{name}" for facts in ("SessionFacts", "StatsAnswer.session") for name in ("what", "why", "instead")),
                *(f"{place}.{name}" for place in ("ChangesAnswer.left", "BroughtOutAnswer.kept.lost") for name in ("path", "why")),
                "BroughtOutAnswer.kept.lost", "BroughtOutAnswer.changes_left_out", "CellEvent.place", "CellEvent.place.display_id", "CellEvent.failure.kind"}
        # Of records of cells: test_eval.py.
        self.assertEqual({name for name in held.unseen() - rare if not name.startswith("CellEnded.cell.")}, set())


if __name__ == "__main__":
    main()

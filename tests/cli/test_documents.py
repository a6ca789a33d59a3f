"""The documents that commands print for programs, held against their schemas both ways: run is in test_record.py, events in
test_events.py, and what is of sessions in tests/session."""

import json
import os
import shutil
import subprocess
import unittest

import schemas
import sbxtest
from sbxtest import SBX, SbxTest

# A name may be any bytes; a member NAME_b64 is there where they are no UTF-8.
ODD = os.fsdecode(b"odd\xff")

# Of a call in a session: session/test_options.py; of an allow-list: network/test_allow_list.py; beyond some thousand names:
# cli/answer_test.cpp; of a state home without room: sandbox/test_changes.py; and reasons are sentences of sbx, of which few name a file.
RARE_IN_RECORDS = [".session", ".session.call", ".session.id", ".session.name", ".denials.during_call",
                   *(f".network.used.{name}" for name in ("bytes_in", "bytes_out", "connections", "rule")),
                   *(f".network.failed.{name}" for name in ("count", "what", "why")), ".hazards_left_out", ".changes_left_out",
                   *(f".{part}.why_b64" for part in ("applied.conflicts", "applied.left", "applied.hazards", "out.left", "patch.left")),
                   ".kept.lost", *(f".kept.lost.{name}" for name in ("path", "path_b64", "why", "why_b64"))]


@unittest.skipIf(schemas.jsonschema is None, "python3-jsonschema is not installed")
class Documents(SbxTest):
    def setUp(self):
        super().setUp()
        self.odd = self.work / ODD
        self.odd.mkdir()

    def ask(self, held, *arguments, status=0, env=None, program=SBX):
        done = subprocess.run([program, *arguments], env=self.environment(env), cwd=self.odd, stdin=subprocess.DEVNULL, capture_output=True,
                              check=False)
        self.assertEqual(done.returncode, status, done)
        return held.hold(json.loads(done.stdout))

    def whole(self, held, *rare):
        """Each member was seen but the rare ones, and no member may be added unnoticed."""
        self.assertEqual(held.open_objects(), set())
        self.assertEqual(held.unseen(), set(rare))

    def policy(self, text, name="p.toml"):
        return self.write(name, f"schema = 1\n{text}", directory=self.odd)

    def test_audit(self):
        held = schemas.Held("sbx.audit/1")
        self.policy('[filesystem]\nwrite = ["./x"]\n', f"{ODD}.toml")
        self.ask(held, "policy", "audit", "--json", f"./{ODD}.toml")
        self.ask(held, "policy", "audit", "--json", "agent")
        self.whole(held)

    def test_check(self):
        held = schemas.Held("sbx.check/1")
        self.policy('memry = "1G"\n[limits\n', f"{ODD}.toml")
        self.policy('[filesystem]\nread = ["/proc"]\n', "two.toml")
        self.write("three.toml", b'schema = 1\nname = "\xff"\n', directory=self.odd)
        self.policy('[filesystem]\nwrite = ["~"]\n', "four.toml")
        self.ask(held, "policy", "check", "--format", "json", f"./{ODD}.toml", "./two.toml", "./three.toml", "./four.toml", ODD,
                 "strict", status=1)
        self.whole(held)

    def test_diff(self):
        held = schemas.Held("sbx.diff/1")
        self.policy('extends = "python"\n[filesystem]\nread = ["./x"]\n', f"{ODD}.toml")
        self.policy('extends = "python"\n', f"2{ODD}.toml")
        self.ask(held, "policy", "diff", "--json", f"./{ODD}.toml", f"./2{ODD}.toml", status=1)
        self.ask(held, "policy", "diff", "--json", f"./2{ODD}.toml", f"./{ODD}.toml", status=1)
        self.whole(held)

    def test_values(self):
        held = schemas.Held("sbx.values/1")
        self.policy('[filesystem]\nread = [{ source = "./x", target = "/data", optional = true }, "/usr"]\n'
                    'write = [{ source = "/run/x", special = true }]\n'
                    '[[syscalls.rule]]\nname = "socket"\nwhen = { arg = 0, op = "eq", value = "AF_INET" }\naction = "deny"\nreason = "none"\n', f"{ODD}.toml")
        self.ask(held, "policy", "show", "--json", "--set", 'limits.memory="1G"', f"./{ODD}.toml")
        keys = set(self.ask(held, "policy", "show", "--json", "agent")["keys"])
        self.whole(held)
        named = json.loads(subprocess.run([SBX, "policy", "schema"], check=True, capture_output=True).stdout)
        self.assertLess({"limits.memory", "filesystem.read", "network.mode"}, keys)
        self.assertLessEqual({key.split(".")[0] for key in keys}, set(named["properties"]), "each key is one of a policy")

    def test_doctor(self):
        held = schemas.Held("sbx.doctor/1")
        (self.odd / "live").mkdir()
        self.policy('[filesystem]\nwrite = ["./live"]\n[interpreters.extensions]\nnone = ["no-such-program"]\n', "p.toml")
        self.policy('[filesystem]\nread = ["./nosuch"]\n', "missing.toml")
        self.ask(held, "doctor", "--json")
        self.ask(held, "doctor", "--json", "-p", "./p.toml")
        self.ask(held, "doctor", "--json", "-p", "./missing.toml", status=1)
        self.whole(held)

    def test_plan(self):
        held = schemas.Held("sbx.plan/1")
        (self.odd / "live").mkdir()
        (self.odd / "x").touch()
        (self.odd / "bin").mkdir()
        (self.odd / "pyvenv.cfg").write_text("home = /usr/bin\n")
        for python in ("python", "python3"):  # a plan runs neither
            shutil.copy("/usr/bin/env", self.odd / "bin" / python)
        program = self.write("program", "#!/bin/sh\n", mode=0o755, directory=self.odd)
        path = self.policy('extends = "python"\n[filesystem]\nread = ["./x", "./program"]\nwrite = ["./live"]\n', f"{ODD}.toml")
        plan = ("run", "--dry-run", "--json", "-p", path)
        self.ask(held, *plan, "--", program, ODD)
        self.ask(held, *plan, "--workspace", ".:overlay", "--", "true")
        self.ask(held, *plan, "--set", 'interpreters.venv="."', "--lang", "python", "-c", "1")
        self.whole(held)
        record = schemas.load("sbx.run/1")["properties"]
        for part in ("policy", "interpreter", "limits", "enforced", "degraded"):
            forms = record[part].get("oneOf", [record[part]])
            self.assertTrue(held.schema["properties"][part] in (record[part], *forms), f"{part} is not as in a record")

    def test_record(self):
        held = schemas.Held("sbx.run/1")

        def run(*words, program="", **options):
            words = (*words, "--lang", "python", "-c", program, ODD) if program else words
            return held.hold(self.sbx(*words, cwd=self.odd, **options).record)

        (self.odd / "live").mkdir()
        (self.odd / "bin").mkdir()
        (self.odd / "x").touch()
        (self.odd / "pyvenv.cfg").write_text("home = /usr/bin\n")
        for python in ("python", "python3"):
            shutil.copy("/usr/bin/env", self.odd / "bin" / python)
        live = self.policy('extends = "python"\n[filesystem]\nwrite = ["./live"]\n', f"{ODD}.toml")
        run("-p", live, program="import os; os.chdir('live'); os.mkdir(b'\\xff'); open(b'\\xff/.envrc', 'w'); os.symlink('/etc', b'link\\xff')")
        run("-p", live, "--set", 'interpreters.venv="."', "--lang", "python", "-c", "1")
        overlay = ("--workspace", ".:overlay", "--set", 'filesystem.outputs.collect=["**"]')
        made = "import os; open(b'new\\xff', 'w').write('1'); open('x', 'wb').write(b'\\xff\\n'); os.mkfifo(b'pipe\\xff'); os.symlink('/etc', b'link\\xff'); os.chmod('live', 0o700)"
        run(*overlay, "--out", self.tmp / ODD, "--keep", "set", "--diff", program=made)
        self.assertTrue(run(*overlay, "--apply", "--yes", program=made)["applied"]["done"])
        process = self.start_sbx(*overlay, "--apply", "--yes", "--report", self.tmp / "conflict", "--", "sh", "-c",
                                 r"name=$(printf 'new\377'); echo 2 > $name; echo ready; read -r line; echo 3 >> $name", cwd=self.odd, json_record=False, stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        (self.odd / os.fsdecode(b"new\xff")).write_text("the host's\n")
        self.finish(process, data=b"\n", json_record=False)
        self.assertTrue(held.hold(json.loads((self.tmp / "conflict").read_text()))["applied"]["conflicts"])
        run("--explain", "--", "sh", "-c", f"cat {self.odd}/x; exit 1")
        (self.odd / os.fsdecode(b"data\xff")).touch()
        run("--", "sh", "-c", r"name=$(printf 'data\377'); read -r line < $name")
        denied = self.policy('extends = "python"\n[syscalls]\ndeny = ["sched_yield"]\n', f"2{ODD}.toml")
        run("-p", denied, program="import ctypes, os; libc = ctypes.CDLL(None); libc.prctl(15, b'odd\\xff'); libc.ptrace(0, 0, 0, 0); libc.sched_yield()")
        run("--processes", "3", "--timeout", "20s", "--", "sh", "-c", "for i in 1 2 3 4 5; do sleep 100 & done; exit 3")
        run("--", "sh", "-c", "kill -9 $$")
        run("--timeout", "100ms", "--", "sleep", "60")
        run("-p", "no-such-policy", "--", "true")
        run("--", "no-such-program")
        run("--", "printf", r"\377")
        run(program="import ctypes, os, time\nread, write = os.pipe()\nif os.fork() == 0:\n  os.setsid(); ctypes.CDLL(None).prctl(15, b'odd\\xff')\n"
                    "  os.write(write, b'x'); time.sleep(60)\nos.read(read, 1)")
        with open("/dev/full", "wb") as full:
            self.finish(self.start_sbx("--report", self.tmp / "full", "--", "head", "-c", "3000000", "/dev/zero", json_record=False, stdout=full), json_record=False)
        self.sbx("--report", self.tmp / "joined", "--", "echo", json_record=False, stderr=subprocess.STDOUT)
        for name in ("full", "joined"):
            held.hold(json.loads((self.tmp / name).read_text()))
        self.whole(held, *RARE_IN_RECORDS)

    def test_ps(self):
        held = schemas.Held("sbx.ps/1")
        process = self.start_sbx("--", "sh", "-c", "echo ready; read -r line", ODD, json_record=False, stdin=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.assertIn(process.pid, [run["pid"] for run in self.ask(held, "ps", "--json")["runs"]])
        self.whole(held)

    def test_the_check_notices_what_is_missing_on_either_side(self):
        held = schemas.Held("sbx.ps/1")
        empty = self.ask(held, "ps", "--json") | {"runs": []}
        held = schemas.Held("sbx.ps/1")
        held.hold(empty)
        self.assertEqual(held.unseen(), {f".runs.{name}" for name in ("id", "policy", "pid", "since", "command", "command_b64")})
        with self.assertRaises(AssertionError):
            held.hold({**empty, "more": 1})
        with self.assertRaises(AssertionError):
            held.hold({"schema": "sbx.ps/1", "runs": []})


if __name__ == "__main__":
    sbxtest.main()

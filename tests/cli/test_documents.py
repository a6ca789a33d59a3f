"""The documents that commands print for programs, held against their schemas both ways: run is in test_record.py, events in
test_events.py, and what is of sessions in tests/session."""

import json
import os
import subprocess
import unittest

import schemas
import sbxtest
from sbxtest import SBX, SbxTest

# A name may be any bytes; a member NAME_b64 is there where they are no UTF-8.
ODD = os.fsdecode(b"odd\xff")


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


if __name__ == "__main__":
    sbxtest.main()

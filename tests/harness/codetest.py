"""Asks for error codes: what a command says, what its record says, and what looking the code up says."""

import json
import shutil
import subprocess

import sbxtest
from harness import HANG
from sbxtest import SbxTest

OVERLAY = ("--workspace", ".:overlay")


class Codes(SbxTest):
    def call(self, *words, wrapper=(), **options):
        environment = options.pop("env", self.environment())
        directory = options.pop("directory", self.work)
        return subprocess.run([*map(str, wrapper), sbxtest.binary_for(environment), *map(str, words)], env=environment, cwd=directory, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=HANG, check=False, **options)

    def says(self, code, *words, status=None, **options):
        """The command fails with this code, and looking the code up explains it."""
        done = self.call(*words, **options)
        told = f"{words}\n{done.stdout}\n{done.stderr}"
        self.assertIn(f"sbx: error[{code}]: ", done.stderr, told)
        self.assertEqual(done.returncode, status or (125 if words[0] == "run" else 2), told)
        explained = self.call("policy", "explain", code, directory=self.tmp)
        self.assertEqual(explained.returncode, 0, explained.stderr)
        return done

    def refuses(self, code, *words, status=125, **options):
        """A run ends this way, the record says the same, and the fix is the same in both."""
        done = self.says(code, "run", *words, status=status, **options)
        record = json.loads(self.call("run", "--json", *words, **options).stdout)
        self.assertEqual((record["outcome"]["status"], record["outcome"]["code"]), ("setup-failed", code))
        if "hint" in record["outcome"]:
            lines = record["outcome"]["hint"].splitlines()
            self.assertIn("".join(f"  help: {line}\n" for line in lines), done.stderr)
        return done

    def injected(self, call, answer, *options):
        strace = shutil.which("strace")
        if strace is None:
            self.skipTest("strace is not installed")
        return [strace, "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:{answer}", *options]

    def meets(self, code, call, answer, *words, options=(), **rest):
        """The kernel's answer to one of sbx's own calls leads to the code."""
        return self.refuses(code, *(words or ("true",)), wrapper=self.injected(call, answer, *options), **rest)

    def keep(self, name):
        done = self.call("run", *OVERLAY, "--keep", name, "touch", f"by-{name}")
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.home / ".local/state/sbx/changes" / name

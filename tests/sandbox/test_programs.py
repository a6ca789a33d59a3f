"""Honest programs don't notice: the same output inside as outside."""

import os
import pathlib
import shutil
import subprocess

import sbxtest
from sbxtest import HANG, SOURCE, SbxTest

EXAMPLE = SOURCE / "examples" / "data-analysis"


def installed(*modules):
    code = "import " + ", ".join(modules)
    return subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, check=False, env={"MPLBACKEND": "Agg", "HOME": "/tmp"}).returncode == 0


class DataAnalysis(SbxTest):
    """pandas and matplotlib over a CSV, under the shipped policy."""

    def setUp(self):
        super().setUp()
        if not installed("pandas", "matplotlib"):
            self.skipTest("python3-pandas and python3-matplotlib are not installed")
        for name in ("analyse.py", "temperatures.csv"):
            shutil.copy(EXAMPLE / name, self.work / name)

    def test_output_is_the_same_as_outside(self):
        outside = self.tmp / "outside"
        shutil.copytree(self.work, outside)
        process = sbxtest.start(["/usr/bin/python3", "analyse.py"], cwd=outside, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                stdin=subprocess.DEVNULL, env=self.environment({"MPLBACKEND": "Agg"}))
        out, err = process.communicate(timeout=HANG)
        self.assertEqual(process.returncode, 0, err)
        # A live grant brings the picture out here, so that its bytes can be compared. In a guest it takes minutes.
        times = [word for limit in ("--timeout", "--cpu-time") for word in (limit, f"{HANG:.0f}s")]
        ended = self.sbx("-p", "data-analysis.toml", *times, "--workspace", f"{self.work}:read-write", "analyse.py", json_record=False)
        self.assertEqual((ended.status, ended.out), (0, out), ended)
        picture = (self.work / "temperatures.png").read_bytes()
        self.assertEqual(picture[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(picture, (outside / "temperatures.png").read_bytes())

    def test_shipped_policy_leaves_the_directory_alone(self):
        before = {path.name: path.read_bytes() for path in self.work.iterdir()}
        ended = self.exited(self.sbx("-p", "data-analysis.toml", "analyse.py"))
        self.assertIn("Warmest", ended.text)
        self.assertEqual(ended.record["policy"]["name"], "data-analysis")
        self.assertEqual(ended.denied, {}, ended)
        self.assertEqual({path.name: path.read_bytes() for path in self.work.iterdir()}, before)


class Interpreters(SbxTest):
    def runs(self, program, arguments, expected, policy="default"):
        if shutil.which(program, path=self.environment()["PATH"]) is None:
            self.skipTest(f"{program} is not installed")
        ended = self.exited(self.sbx("-p", policy, *arguments))
        self.assertEqual(ended.text, expected, ended)
        self.assertEqual(ended.denied, {}, ended)

    def test_python_script_by_its_extension(self):
        self.runs("python3", [self.write("job.py", "import sys, json, socket, threading\nprint(sys.argv[1:])\n"), "a", "b"], "['a', 'b']\n", "python")

    def test_script_by_its_first_line(self):
        self.runs("sh", [self.write("job", "#!/bin/sh\necho $# $1\n", mode=0o755), "x y"], "1 x y\n", "shell")

    def test_node(self):
        self.runs("node", [self.write("job.js", "console.log(6 * 7, process.argv.length)\n")], "42 2\n", "node")

    def test_perl(self):
        self.runs("perl", [self.write("job.pl", "print 6 * 7, \"\\n\";\n")], "42\n")

    def test_gcc(self):
        self.write("job.c", "#include <stdio.h>\nint main(void) { puts(\"compiled\"); return 0; }\n")
        self.runs("gcc", ["--", "sh", "-c", "gcc -o /tmp/job job.c && /tmp/job"], "compiled\n", "ci-untrusted")

    def test_git(self):
        subprocess.run(["git", "init", "-q", self.work], check=True, env=self.environment())
        self.write("file", "x")
        self.runs("git", ["--", "sh", "-c", "git add -A && git -c user.name=x -c user.email=x@example.org commit -qm x && git log --format=%s"],
                  "x\n", "ci-untrusted")

    def test_interpreter_below_the_home(self):
        """A prefix like pyenv's: its shim is resolved by reading, never by running it on the host."""
        prefix = self.home / ".pyenv" / "versions" / "3.99.1"
        self.write("bin/python3", pathlib.Path("/usr/bin/python3").resolve().read_bytes(), mode=0o755, directory=prefix)
        shim = "#!/bin/sh\ntouch \"$HOME/shim-ran\"\nexec \"$HOME/.pyenv/libexec/pyenv\" exec python3 \"$@\"\n"
        self.write("shims/python3", shim, mode=0o755, directory=self.home / ".pyenv")
        self.write("version", "3.99.1\n", directory=self.home / ".pyenv")
        path = f"{self.home}/.pyenv/shims:/usr/bin:/bin"
        script = self.write("job.py", "import os, sys\nprint(os.path.realpath(sys.executable))\n")
        ended = self.sbx("-p", "python", script, env={"PATH": path, "PYTHONHOME": None})
        self.assertFalse((self.home / "shim-ran").exists(), ended)
        self.assertIn("3.99.1", ended.record["interpreter"]["path"], ended)

    def test_same_answer_as_any_user(self):
        code = "import os, pwd; print(os.getuid(), os.getgid(), pwd.getpwuid(os.getuid()).pw_name, os.path.expanduser('~'), os.uname().nodename)"
        ended = self.exited(self.python(code))
        self.assertEqual(ended.text, "1000 1000 sandbox /home/sandbox sandbox\n")


class Files(SbxTest):
    """As root the sandbox has a uid of its own; files of every owner behave as for their owner."""

    def test_private_files_of_the_caller_can_be_granted(self):
        secret = self.write("private.txt", "mine", mode=0o600, directory=self.home)
        self.home.chmod(0o700)
        ended = self.exited(self.sbx("--read", secret, "--", "cat", secret))
        self.assertEqual(ended.text, "mine")

    def test_private_script_runs(self):
        script = self.write("private.py", "print('ran')\n", mode=0o600, directory=self.home)
        self.home.chmod(0o700)
        self.assertEqual(self.exited(self.sbx("-p", "python", script)).text, "ran\n")

    def test_live_files_belong_to_the_caller(self):
        self.exited(self.sbx("--workspace", f"{self.work}:read-write", "--", "sh", "-c", "echo x > new; mkdir -p d/e; stat -c %u new"))
        facts = (self.work / "new").stat()
        self.assertEqual((facts.st_uid, facts.st_gid), (self.work.stat().st_uid, self.work.stat().st_gid))

    def test_overlay_files_can_be_changed_whoever_owns_them(self):
        if not sbxtest.IS_ROOT:
            self.skipTest("needs root to make files of another owner")
        foreign = self.write("foreign", "x")
        os.chown(foreign, 33, 33)
        os.chown(self.work, 1001, 1001)
        self.exited(self.sbx("--workspace", f"{self.work}:overlay", "--", "sh", "-c", "mv foreign moved && rm moved && echo y > own"))
        self.assertEqual(foreign.read_text(), "x")


if __name__ == "__main__":
    sbxtest.main()

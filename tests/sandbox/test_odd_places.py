"""Unusual scripts and arguments: odd directories and names, every byte, large sizes, and every kind of standard
input."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import sbxtest
from sbxtest import SbxTest

NAMES = [b"with space.py", b"new\nline.py", b"-dash.py", b"quo'te\"$(x).py", b"back\\slash.py", "grün ☃.py".encode(), b"not-utf8-\xff\xfe.py", b"a" * 200 + b".py", b".hidden.py", b"%s%n.py"]
SCRIPT = b"import os, sys\nsys.stdout.buffer.write(os.fsencode(sys.argv[0]) + b'|' + b'|'.join(map(os.fsencode, sys.argv[1:])))\n"
ECHO = "import sys; t = sys.stdin.read(); print(len(t), t[:9])"


class Names(SbxTest):
    def runs(self, directory, name, cwd):
        path = os.path.join(os.fsencode(directory), name)
        with open(path, "wb") as script:
            script.write(SCRIPT)
        os.chmod(path, 0o644)
        process = sbxtest.start([os.fsencode(sbxtest.SBX), b"run", b"-q", b"-p", b"python", b"--", b"python3", path, b"x y"] if name.startswith(b"-") else
                                [os.fsencode(sbxtest.SBX), b"run", b"-q", b"-p", b"python", path, b"x y"],
                                cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment())
        out, err = process.communicate(timeout=120)
        self.assertEqual((process.returncode, out), (0, path + b"|x y"), err)

    def test_odd_names_in_the_workspace(self):
        for name in NAMES:
            with self.subTest(name):
                self.runs(self.work, name, self.work)

    def test_script_in_the_common_directory_for_temporary_files(self):
        """/tmp inside is private; a script of the host's /tmp is shown alone."""
        with tempfile.NamedTemporaryFile(dir="/tmp", suffix=".py") as file:
            file.write(b"import os; print(sorted(os.listdir('/tmp')))")
            file.flush()
            os.chmod(file.name, 0o644)
            ended = self.exited(self.sbx(file.name))
            self.assertEqual(ended.text, f"{sorted([self.tmp.name, pathlib.Path(file.name).name])}\n")  # and the working directory

    def test_script_in_the_home_and_below_it(self):
        self.home.chmod(0o755)
        for name in (b"plain.py", b"not-utf8-\xff.py", b"new\nline.py"):
            with self.subTest(name):
                self.runs(self.home, name, self.work)
        (self.home / "sub directory").mkdir()
        self.runs(self.home / "sub directory", b"job.py", self.home)

    def test_working_directory_with_an_odd_name(self):
        directory = os.path.join(os.fsencode(self.work), b"odd \n\xff directory")
        os.mkdir(directory)
        self.runs(directory, b"job.py", directory)

    def test_record_of_a_name_that_is_not_text(self):
        path = os.path.join(os.fsencode(self.work), b"n\xff.py")
        with open(path, "wb") as script:
            script.write(b"print(1)")
        ended = self.exited(self.sbx("-p", "python", os.fsdecode(path)))
        self.assertEqual(ended.text, "1\n")


class Arguments(SbxTest):
    def test_every_byte_reaches_the_program(self):
        words = [bytes(range(1, 128)), bytes(range(128, 256)), b"", b" ", b"--json", b"-"]
        code = "import os, sys; sys.stdout.buffer.write(b'|'.join(map(os.fsencode, sys.argv[1:])))"
        process = sbxtest.start([os.fsencode(sbxtest.SBX), b"run", b"-q", b"--lang", b"python", b"-c", code.encode(), *words], cwd=self.work,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment())
        out, err = process.communicate(timeout=120)
        self.assertEqual((process.returncode, out), (0, b"|".join(words)), err)

    def test_nearly_two_mebibytes_of_arguments_and_environment(self):
        """The kernel's limit is 128 KiB for one string, and a quarter of the stack limit for all."""
        words = ["x" * 100_000] * 14
        file = self.write("variables", "".join(f"LONG_{n}={'y' * 100_000}\n" for n in range(5)), directory=self.tmp)
        code = "import os, sys; print(len(sys.argv) - 1, sum(map(len, sys.argv[1:])), sum(len(v) for k, v in os.environ.items() if k.startswith('LONG_')))"
        ended = self.python(code, *words, options=("--env-file", file))
        self.assertEqual(self.exited(ended).text, "14 1400000 500000\n")

    def test_code_as_an_argument_has_its_own_arguments(self):
        self.assertEqual(self.exited(self.python("import sys; print(sys.argv)", "a b", "-x", "--json")).text, "['-c', 'a b', '-x', '--json']\n")


class Input(SbxTest):
    """Standard input as a pipe, a file, nothing, closed, a terminal."""

    def test_pipe(self):
        self.assertEqual(self.exited(self.python(ECHO, stdin=b"z" * 300_000)).text, "300000 zzzzzzzzz\n")

    def test_file(self):
        with self.write("input", "from a file").open() as file:
            process = self.start_sbx("--lang", "python", "-c", ECHO, stdin=file)
            self.assertEqual(self.exited(self.finish(process)).text, "11 from a fi\n")

    def test_null(self):
        self.assertEqual(self.exited(self.python(ECHO, options=("--stdin", "null"))).text, "0 \n")

    def test_closed(self):
        process = self.start_sbx("--lang", "python", "-c", "import os, sys; print(os.fstat(0).st_mode > 0, sys.stdin.read())", preexec_fn=lambda: os.close(0))
        self.assertEqual(self.exited(self.finish(process)).text, "True \n")

    def test_program_from_standard_input_in_several_languages(self):
        for language, code, text in (("python", b"import sys; print(sys.argv[1:], sys.stdin.read())", "['a'] \n"), ("sh", b"echo $1", "a\n"), ("perl", b"print $ARGV[0], qq(\\n)", "a\n")):
            with self.subTest(language):
                if shutil.which("python3" if language == "python" else language, path="/usr/bin:/bin") is None:
                    continue
                self.assertEqual(self.exited(self.sbx("--lang", language, "-", "a", stdin=code)).text, text)

    def test_terminal_is_read_as_nothing_without_the_option(self):
        status, text = self.on_terminal(self.command("-q", "--lang", "python", "-c", ECHO, json_record=False))
        self.assertEqual((status, text), (0, "0 \r\n"))


if __name__ == "__main__":
    sbxtest.main()

"""Honest programs don't notice: the programs of programs.py end the same outside and inside, and nothing is denied.

`test_programs.py --readme` runs them all and writes the table of docs/programs.md."""

import shutil
import subprocess
import sys

import sbxtest
from harness import HANG
from programs import GROUPS, PROGRAMS
from sbxtest import SOURCE, SbxTest

BEGIN, END = "<!-- programs: written by tests/programs/test_programs.py --readme -->\n", "<!-- end of programs -->\n"
PATH = "/usr/local/bin:/usr/bin:/bin"


def missing(program):
    """What this machine lacks for it; empty if it can run."""
    for command in program.needs:
        if shutil.which(command, path=PATH) is None:
            return command
    for module in program.modules:
        if subprocess.run(["/usr/bin/python3", "-c", f"import importlib.util as u; exit(u.find_spec('{module}') is None)"], check=False).returncode:
            return f"python3-{module}"
    return ""


class Programs(SbxTest):
    def place(self, name, program):
        """A directory with the program's files."""
        directory = self.tmp / name
        directory.mkdir(mode=0o755)
        for path, text in program.files.items():
            self.write(path, text, 0o755, directory)
        return directory

    def outside(self, program, place):
        home, scratch = place / "home", place / "tmp"
        for directory in (home, scratch):
            directory.mkdir(exist_ok=True)
        for path, text in program.home.items():
            self.write(path, text, directory=home)
        work = self.place(f"{place.name}/work", program)
        command = program.command[1:] if program.command[0] == "--" else [self.interpreter(program), *program.command]
        process = sbxtest.start(command, cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self.environment({"HOME": str(home), "TMPDIR": str(scratch), **program.environment}))
        out, err = process.communicate(timeout=HANG)
        return process.returncode, out.decode(), err.decode()

    @staticmethod
    def interpreter(program):
        return {"py": "python3", "js": "node", "pl": "perl", "rb": "ruby", "lua": "lua", "R": "Rscript", "sh": "bash"}[program.command[0].rpartition(".")[2]]

    def runs(self, program, number):
        place = self.tmp / f"outside-{number}"
        place.mkdir()
        outside = self.outside(program, place)
        self.assertEqual(outside[0], 0, f"{program.name} fails outside already: {outside}")
        for path, text in program.home.items():
            self.write(path, text, directory=self.home)
        work = self.place(f"inside-{number}", program)
        ended = self.sbx("-p", program.policy, *program.options, *program.command, cwd=work, timeout=HANG)
        inside = (ended.status, ended.text, ended.record["stderr"]["text"])
        self.assertEqual(inside, outside, f"{program.name}: {ended}")
        self.assertEqual(ended.denied, {}, f"{program.name}: {ended}")
        self.assertEqual(ended.record["limits_met"], [], f"{program.name}: {ended}")

    def group(self, name, slow=False):
        ran, absent = [], []
        for number, program in enumerate(GROUPS[name]):
            if program.slow != slow:
                continue
            lacks = missing(program)
            if lacks:
                absent.append(f"{program.name}: {lacks} is not installed")
                continue
            with self.subTest(program.name):
                self.runs(program, number)
            ran.append(program.name)
        if not ran and absent:
            self.skipTest("; ".join(absent))
        for line in absent:
            print(f"skipped: {line}")
        return ran

    def test_python_science(self):
        self.group("python_science")

    def test_python_standard_library(self):
        self.group("python_standard_library")

    def test_node(self):
        self.group("node")

    def test_compiled(self):
        self.group("compiled")

    def test_shell_and_tools(self):
        self.group("shell_and_tools")

    def test_slow_the_bigger_ones(self):
        for name in GROUPS:
            self.group(name, slow=True)


class Refused(SbxTest):
    """A program that needs what it was not granted gets an ordinary error at once, and doesn't hang."""

    def test_curl_ends_at_once_and_leaves_no_file(self):
        if shutil.which("curl", path=PATH) is None:
            self.skipTest("curl is not installed")
        ended = self.sbx("-p", "shell", "--", "sh", "-c", "curl -sS -o page http://example.org/; echo $?; curl -v -sS http://192.0.2.1/; echo $?; ls")
        first, second = self.exited(ended).text.split()
        self.assertEqual((first, second), ("6", "7"), ended)  # could not resolve the host; could not connect
        self.assertIn("Immediate connect fail for 192.0.2.1: Network is unreachable", ended.record["stderr"]["text"], ended)

    def test_curl_of_the_sandboxs_own_server_works(self):
        if shutil.which("curl", path=PATH) is None:
            self.skipTest("curl is not installed")
        self.write("page", "hello\n")
        script = "python3 -m http.server --bind 127.0.0.1 8123 2>log & until grep -q Serving log || curl -s http://localhost:8123/page; do sleep 0.05; done; curl -sS http://localhost:8123/page"
        self.assertIn("hello\n", self.exited(self.sbx("-p", "shell", "--", "sh", "-c", script)).text)

    def test_git_settings_of_the_caller_stay_outside_but_for_the_identity(self):
        if shutil.which("git", path=PATH) is None:
            self.skipTest("git is not installed")
        (program,) = (program for program in PROGRAMS if program.name == "git")
        self.write(".gitconfig", program.home[".gitconfig"], directory=self.home)
        shown = self.exited(self.sbx("-p", "shell", "--", "git", "config", "--list", "--global"))
        self.assertEqual(shown.text, "user.name=Ada Example\nuser.email=ada@example.org\n", shown)
        hidden = self.sbx("-p", "python", "--", "git", "config", "--list", "--global")
        self.assertNotIn("Ada", hidden.text, hidden)


class Readme(SbxTest):
    def test_table_names_the_programs_that_run(self):
        text = (SOURCE / "docs/programs.md").read_text()
        self.assertEqual(text.count(BEGIN), 1)
        table = text.partition(BEGIN)[2].partition(END)[0]
        rows = [tuple(cell.strip() for cell in line.strip("|").split("|"))[:2] for line in table.splitlines()[2:] if line.startswith("|")]
        self.assertEqual(rows, [(program.name, program.policy) for program in PROGRAMS])

    def test_every_shipped_policy_runs_something(self):
        shipped = {path.stem for path in (SOURCE / "policies").glob("*.toml")}
        self.assertEqual({program.policy for program in PROGRAMS}, shipped)


def write_table():
    """Runs everything now, and writes the results into docs/programs.md."""
    rows = ["| program | policy | what ran |\n| --- | --- | --- |\n"]
    case = Programs("group")
    for number, program in enumerate(PROGRAMS):
        if lacks := missing(program):
            sys.exit(f"{program.name} can't run here: {lacks} is missing; the table is as it was")
        case.setUp()
        try:
            case.runs(program, number)
        finally:
            case.doCleanups()
        rows.append(f"| {program.name} | {program.policy} | {program.does} |\n")
        print(f"same: {program.name}")
    readme = SOURCE / "docs/programs.md"
    head, _, rest = readme.read_text().partition(BEGIN)
    readme.write_text(head + BEGIN + "".join(rows) + END + rest.partition(END)[2])


if __name__ == "__main__":
    if sys.argv[1:] == ["--readme"]:
        write_table()
    else:
        sbxtest.main()

"""--lang and interpreters: one command compiles and runs; argv, stdin and exit status belong to the program."""

import os
import pathlib
import shutil
import subprocess

import sbxtest
from sbxtest import SbxTest

# Each program prints its arguments and its input, and exits with 3. By name of --lang: its requirements, its text.
PROGRAMS = {
    "c": ("cc", r"""
        #include <stdio.h>
        int main(int n, char **v) { int x = 0; scanf("%d", &x); for (int i = 1; i < n; i++) printf("[%s]", v[i]); printf(" %d\n", x); return 3; }"""),
    "c++": ("c++", r"""
        #include <iostream>
        int main(int n, char **v) { int x = 0; std::cin >> x; for (int i = 1; i < n; i++) std::cout << '[' << v[i] << ']'; std::cout << ' ' << x << std::endl; return 3; }"""),
    "go": ("go", r"""
        package main
        import ("fmt"; "os")
        func main() { x := 0; fmt.Scan(&x); for _, v := range os.Args[1:] { fmt.Printf("[%s]", v) }; fmt.Println("", x); os.Exit(3) }"""),
    "java": ("javac", r"""
        public class Any { public static void main(String[] a) { var in = new java.util.Scanner(System.in); int x = in.hasNextInt() ? in.nextInt() : 0;
          for (String v : a) System.out.print("[" + v + "]"); System.out.println(" " + x); System.exit(3); } }"""),
    "python": ("python3", "import sys; t = sys.stdin.read()\nprint(''.join(f'[{v}]' for v in sys.argv[1:]), int(t or 0)); sys.exit(3)"),
    "javascript": ("node", "const t = require('fs').readFileSync(0, 'utf8'), a = process.argv.slice(1);\nif (a[0] === '-' || a[0].endsWith('/some program')) a.shift()\n"
                           "console.log(a.map(v => `[${v}]`).join(''), Number(t)); process.exit(3)"),
    "ruby": ("ruby", "t = $stdin.read\nputs ARGV.map { |v| \"[#{v}]\" }.join + ' ' + t.to_i.to_s; exit 3"),
    "perl": ("perl", "my $t = <STDIN>; print join('', map { \"[$_]\" } @ARGV), ' ', ($t || 0) + 0, \"\\n\"; exit 3"),
    "r": ("Rscript", "a <- commandArgs(TRUE)\na <- a[a != '--args']\nt <- readLines(file('stdin'))\ncat(paste0('[', a, ']', collapse=''), ' ', if (length(t)) t else 0, '\\n', sep='')\n"
                     "quit(status=3)"),
    "lua": ("lua", "local x = io.read('n') or 0\nlocal s = ''\nfor i = 1, #(arg or {}) do s = s .. '[' .. arg[i] .. ']' end\nprint(s .. ' ' .. x)\nos.exit(3)"),
    "php": ("php", "<?php foreach (array_slice($argv, 1) as $v) echo \"[$v]\"; echo ' ', (int)trim((string)fgets(fopen('php://stdin', 'r'))), \"\\n\"; exit(3);"),
    "bash": ("bash", "read -r x || x=0\nfor v in \"$@\"; do printf '[%s]' \"$v\"; done\necho \" $x\"\nexit 3"),
    "sh": ("sh", "read -r x || x=0\nfor v in \"$@\"; do printf '[%s]' \"$v\"; done\necho \" $x\"\nexit 3"),
}
NO_CODE_ARGUMENTS = {"lua"}  # -e ends where the arguments begin; lua takes the first one as a script


class Language(SbxTest):
    def needs(self, *programs):
        for program in programs:
            if shutil.which(program, path=self.environment()["PATH"]) is None:
                self.skipTest(f"{program} is not installed")

    def ends(self, ended, text):
        self.exited(ended, 3)
        self.assertEqual((ended.text, ended.denied), (text, {}), ended)

    def speaks(self, language, ways=("file", "code", "stdin")):
        """The same program as a file, as an argument and on standard input."""
        needed, text = PROGRAMS[language]
        self.needs(needed)
        if "file" in ways:
            self.ends(self.sbx("--lang", language, self.write("some program", text), "a b", "--json", stdin=b"42\n"), "[a b][--json] 42\n")
        if "code" in ways:
            code = text.removeprefix("<?php ")
            for each in {code, text if language == "php" else code}:
                self.ends(self.sbx("--lang", language, "-c", each, "a b", "-x", stdin=b"42\n"), "[a b][-x] 42\n")
        if "stdin" in ways:
            self.ends(self.sbx("--lang", language, "-", "a b", "-x", stdin=text.encode() + b"\n"), "[a b][-x] 0\n")

    def test_c(self):
        self.speaks("c")

    def test_cxx(self):
        self.speaks("c++", ("file",))

    def test_go(self):
        self.speaks("go", ("file",))

    def test_java(self):
        self.speaks("java", ("stdin",))

    def test_python(self):
        self.speaks("python")

    def test_javascript(self):
        self.speaks("javascript")

    def test_ruby(self):
        self.speaks("ruby")

    def test_perl(self):
        self.speaks("perl")

    def test_r(self):
        self.speaks("r", ("file", "code"))

    def test_lua(self):
        self.speaks("lua", ("file", "stdin"))

    def test_php(self):
        self.speaks("php")

    def test_shells(self):
        """A shell reads a program on standard input line by line, so the program has no input of its own."""
        for language in ("bash", "sh"):
            self.speaks(language, ("file", "code"))
            self.ends(self.sbx("--lang", language, "-", "a b", "-x", stdin=b"printf '[%s]' \"$@\"\necho\nexit 3\n"), "[a b][-x]\n")

    def test_slow_every_way_of_the_slower_compilers(self):
        for language in ("c++", "go", "java", "r", "lua"):
            with self.subTest(language):
                self.speaks(language, ("file", "stdin") if language in NO_CODE_ARGUMENTS else ("file", "code", "stdin"))

    def test_rust(self):
        """Through rustup's proxy, if the caller has one in the home directory."""
        path, home = os.environ.get("PATH", ""), os.environ.get("HOME", "")
        if shutil.which("rustc", path=path) is None:
            self.skipTest("rustc is not installed")
        code = "fn main() { let v: Vec<String> = std::env::args().skip(1).collect(); println!(\"{:?}\", v); std::process::exit(3) }"
        ended = self.sbx("--lang", "rust", "-c", code, "a b", env={"PATH": path, "HOME": home})
        self.ends(ended, "[\"a b\"]\n")

    def test_typescript(self):
        self.needs("node")
        strips = subprocess.run(["node", "--experimental-strip-types", "-e", ""], capture_output=True, check=False, env=self.environment()).returncode == 0
        ended = self.sbx(self.write("job.ts", "const x: number = 6 * 7\nconsole.log(x, process.argv.slice(2).join())\n"), "a", "b")
        if strips:
            self.assertEqual(self.exited(ended).text, "42 a,b\n")
        else:
            self.exited(ended, 126)
            self.assertIn("node 22.6 or later", ended.record["stderr"]["text"])

    def test_typescript_runs_by_the_projects_own_command(self):
        """From the directory of the script up, also where PATH has another one. Its twins lead out of the project, can't be executed, or aren't shown."""
        program = "#!/bin/sh\necho $0; cat \"$1\"; shift; echo \"$@\"\n"
        script = self.write("src/deep/job.ts", "text\n")
        modules = self.work / "node_modules"
        place = modules / ".bin/tsx"
        self.write("node_modules/tsx/cli", program).chmod(0o755)
        self.write("bin/tsx", "#!/bin/sh\necho the one on PATH\n").chmod(0o755)
        place.parent.mkdir()
        path = {"PATH": f"{self.work / 'bin'}:{os.environ['PATH']}"}
        place.symlink_to("../tsx/cli")
        ended = self.exited(self.sbx("--workspace", ".:overlay", script, "a", "b", env=path))
        self.assertEqual(ended.text, f"{place}\ntext\na b\n")
        self.assertIn("the project's own", ended.record["interpreter"]["reason"])
        self.assertEqual(self.exited(self.sbx(script, env=path)).text, "the one on PATH\n")
        place.unlink()
        place.symlink_to(self.work / "bin/tsx")
        self.assertEqual(self.exited(self.sbx("--workspace", ".:overlay", script, env=path)).text, "the one on PATH\n")
        place.unlink()
        place.write_text(program)
        self.assertEqual(self.exited(self.sbx("--workspace", ".:overlay", script, env=path)).text, "the one on PATH\n")

    def test_compiler_error_goes_to_stderr_with_its_exit_status(self):
        self.needs("cc")
        ended = self.exited(self.sbx(self.write("bad.c", "int main(void) { return x; }\n")), 1)
        self.assertEqual(ended.text, "")
        self.assertIn("bad.c:1:25: error:", ended.record["stderr"]["text"])

    def test_source_finds_the_headers_beside_it_and_those_of_the_directory(self):
        self.needs("cc")
        self.write("one.h", "#define ONE 1\n")
        self.write("main.c", '#include <stdio.h>\n#include "one.h"\nint main(void) { printf("%d\\n", ONE); }\n')
        self.assertEqual(self.exited(self.sbx("-p", "python", "main.c")).text, "1\n")
        code = '#include <stdio.h>\n#include "one.h"\nint main(void) { printf("%d\\n", ONE); }'
        self.assertEqual(self.exited(self.sbx("-p", "python", "--lang", "c", "-c", code)).text, "1\n")

    def test_compiling_under_strict_names_what_it_lacks(self):
        self.needs("cc")
        ended = self.sbx("-p", "strict", "--lang", "c", "-c", "int main(void) { return 0; }")
        self.assertFalse(ended.outcome["success"], ended)
        self.assertTrue(ended.denied, ended)
        self.assertIn("@process-spawn", ended.record["denials"][0]["rule"] + ended.record["denials"][0]["allow_with"], ended)


class FirstLine(SbxTest):
    """The program of a `#!` line, resolved by reading."""

    def first_line(self, line, body, *arguments, **options):
        return self.exited(self.sbx("-p", "python", self.write("job", f"{line}\n{body}\n", mode=0o755), *arguments, **options)).text

    def test_env_split_string_gives_its_arguments(self):
        text = self.first_line("#!/usr/bin/env -S python3 -u -X 'utf8=1'", "import sys; print(sys.flags.utf8_mode, sys.argv[1:])", "x")
        self.assertEqual(text, "1 ['x']\n")

    def test_env_with_variables_is_left_to_env(self):
        text = self.first_line("#!/usr/bin/env -S A=1 sh", "echo $A $1", "x")
        self.assertEqual(text, "1 x\n")

    def test_alternatives_are_followed(self):
        link = "/etc/alternatives/awk"
        if not os.path.exists(link):
            self.skipTest(f"{link} does not exist")
        self.assertEqual(self.first_line("#!/usr/bin/awk -f", "BEGIN { print 6 * 7 }"), "42\n")
        self.assertEqual(self.exited(self.sbx("--", "readlink", "/usr/bin/awk", link)).text, f"{link}\n{os.readlink(link)}\n")

    def test_programs_find_what_they_read_first(self):
        wanted = ["/etc/os-release", "/etc/debian_version", "/etc/manpath.config", "/etc/magic", "/etc/locale.alias", "/usr/share/maven/conf/settings.xml"]
        there = [name for name in wanted if os.path.exists(name)]
        ended = self.exited(self.sbx("--", "sh", "-c", "cat " + " ".join(there) + " | wc -c; cat /etc/environment /etc/ssl/private/x /etc/shadow /etc/sudoers | wc -c"))
        self.assertEqual(ended.text.split(), [str(sum(os.path.getsize(name) for name in there)), "0"], ended)

    def test_symbolic_link_to_a_script_runs_it_under_its_typed_name(self):
        self.write("real.py", "import sys; print(sys.argv[0])\n")
        (self.work / "link.py").symlink_to("real.py")
        self.assertEqual(self.exited(self.sbx("-p", "python", "link.py")).text, "link.py\n")

    def test_missing_interpreter_is_126_and_named(self):
        ended = self.sbx("-p", "python", self.write("job", "#!/nowhere/python\n", mode=0o755))
        self.assertEqual(ended.status, 126, ended)
        self.assertIn("/nowhere/python", ended.outcome["detail"], ended)


class Environment(SbxTest):
    """A virtual environment: named by an option, by the policy, or by the script that belongs to it."""

    def setUp(self):
        super().setUp()
        self.venv = self.home / "venv"
        made = subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", self.venv], capture_output=True, check=False)
        if made.returncode != 0:
            self.skipTest("python3-venv is not installed")
        (package,) = (self.venv / "lib").glob("python3*/site-packages")
        (package / "own.py").write_text("NAME = 'of the environment'\n")
        self.home.chmod(0o711)

    CODE = "import own, sys\nprint(own.NAME, sys.prefix)\n"

    def expects(self, ended):
        self.assertEqual(self.exited(ended).text, f"of the environment {self.venv}\n", ended)

    def test_option_gives_its_packages(self):
        self.expects(self.sbx("-p", "python", "--venv", self.venv, self.write("job.py", self.CODE)))

    def test_policy_gives_its_packages(self):
        policy = self.policy(f'[interpreters]\nvenv = "{self.venv}"\n')
        self.expects(self.sbx("-p", policy, "--lang", "python", "-c", self.CODE))

    def test_script_started_by_its_python_needs_no_option(self):
        self.expects(self.sbx("-p", "python", self.write("tool", f"#!{self.venv}/bin/python\n{self.CODE}", mode=0o755)))

    def test_its_python_as_a_command_needs_no_option(self):
        self.expects(self.sbx("-p", "python", f"{self.venv}/bin/python", self.write("job.py", self.CODE)))

    def test_only_its_program_directories_are_seen(self):
        (self.venv / "secret").write_text("x")
        code = f"import os; print(sorted(os.listdir({str(self.venv)!r})))"
        text = self.exited(self.sbx("-p", "python", "--venv", self.venv, "--lang", "python", "-c", code)).text
        self.assertNotIn("secret", text)
        self.assertIn("pyvenv.cfg", text)

    def test_explanation_says_what_was_bound_and_why(self):
        ended = self.sbx("-v", "-p", "python", "--venv", self.venv, self.write("job.py", self.CODE))
        self.assertIn(f"the virtual environment '{self.venv}' is shown, read-only", ended.err.decode(), ended)


class ProjectEnvironment(SbxTest):
    """A `.venv` beside the script, used by default."""

    CODE = "import own, sys\nprint(own.NAME, sys.prefix)\n"

    def setUp(self):
        super().setUp()
        self.venv = self.work / ".venv"
        made = subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", self.venv], capture_output=True, check=False)
        if made.returncode != 0:
            self.skipTest("python3-venv is not installed")
        (package,) = (self.venv / "lib").glob("python3*/site-packages")
        (package / "own.py").write_text("NAME = 'of the project'\n")
        self.own = package / "own.py"

    def test_is_used_and_named_once(self):
        ended = self.sbx("-p", "python", self.write("job.py", self.CODE))
        self.assertEqual(self.exited(ended).text, f"of the project {self.venv}\n", ended)
        self.assertIn(str(self.venv), ended.record["interpreter"]["reason"], ended)
        told = self.sbx("-p", "python", "job.py", json_record=False)
        self.assertEqual(told.err.decode(), f"sbx: using the virtual environment '{self.venv}'\n", told)

    def test_an_empty_workspace_does_not_show_it(self):
        ended = self.sbx(self.write("job.py", self.CODE))
        self.assertEqual(ended.status, 1, ended)
        self.assertNotIn(b"virtual environment", ended.err)

    def test_a_live_workspace_keeps_it_as_it_is(self):
        code = f"open({str(self.own)!r}, 'w')"
        ended = self.sbx("-p", "python", "--workspace", ".:read-write", self.write("job.py", code))
        self.assertEqual(ended.status, 1, ended)
        self.assertIn("Read-only file system", ended.record["stderr"]["text"] or ended.err.decode(), ended)
        self.assertIn("of the project", self.own.read_text())
        ended = self.sbx("-p", "python", "--workspace", ".:read-write", "/usr/bin/python3", "job.py")
        self.assertEqual(ended.status, 0, ended)
        self.assertEqual(self.own.read_text(), "")

    def test_an_interpreter_that_nobody_knows_is_not_shown_unasked(self):
        hidden = self.home / "private"
        (hidden / "bin").mkdir(parents=True)
        (hidden / "lib").mkdir()
        shutil.copy(pathlib.Path("/usr/bin/python3").resolve(), hidden / "bin" / "python3.99")
        (self.venv / "bin" / "python").unlink()
        (self.venv / "bin" / "python").symlink_to(hidden / "bin" / "python3.99")
        self.home.chmod(0o711)
        code = f"import os; print(os.path.exists({str(hidden / 'lib')!r}))"
        ended = self.sbx("-p", "python", self.write("job.py", code))
        self.assertEqual(self.exited(ended).text, "False\n", ended)
        told = self.sbx("-p", "python", "job.py", json_record=False)
        self.assertIn(b"is not used: its interpreter", told.err)
        self.assertEqual(self.exited(self.sbx("-p", "python", "--venv", ".venv", "job.py")).text, "True\n")


class CallersPython(SbxTest):
    """`python3` from the caller's own PATH: a shim below the home directory, if there is one."""

    def test_first_python_of_the_path_runs(self):
        path, home = os.environ.get("PATH", ""), os.environ.get("HOME", "")
        found = shutil.which("python3", path=path)
        if found is None or pathlib.Path(found).parent in (pathlib.Path("/usr/bin"), pathlib.Path("/bin")):
            self.skipTest("python3 on PATH is the system's")
        env = {"PATH": path, "HOME": home}
        code = "import os, ssl, sqlite3, sys; print(os.path.realpath(sys.executable), sys.version)"
        outside = subprocess.run(["python3", "-c", code], capture_output=True, check=True, env=self.environment(env), cwd=self.work)
        for arguments in (["python3", "-c", code], ["--lang", "python", "-c", code]):
            ended = self.exited(self.sbx("-p", "python", *arguments, env=env))
            self.assertEqual((ended.text, ended.denied), (outside.stdout.decode(), {}), ended)


if __name__ == "__main__":
    sbxtest.main()

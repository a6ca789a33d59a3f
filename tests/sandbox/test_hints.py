"""What a failed program may have met that no refused call tells, and the option with which it gets further."""

import json
import os
import re
import shutil
import subprocess

import sbxtest
from sbxtest import SBX, SbxTest

# (program, kind, options): with the options the program ends well. {w} is the working directory.
MISSING = [
    (("sh", "-c", "cat data.csv"), "data.csv"),
    (("sh", "-c", "f=data; cat $f.csv"), "data.csv"),
    (("bash", "-c", "f=data; read x < $f.csv && echo $x"), "data.csv"),
    (("bash", "-c", "d=sub; ls $d"), "sub"),
    (("bash", "-c", "f=data; cp $f.csv /tmp"), "data.csv"),
    (("bash", "-c", "f=data; grep a $f.csv"), "data.csv"),
    (("bash", "-c", "f=data; head -n 1 $f.csv"), "data.csv"),
    (("bash", "-c", "f=data; sort $f.csv"), "data.csv"),
    (("python3", "-c", "print(open('data' + '.csv').read())"), "data.csv"),
    (("python3", "-c", "import os; os.stat('su' + 'b')"), "sub"),
    (("python3", "-c", "import os; print(os.listdir(os.getcwd() + '/sub'))"), "sub"),
    (("python3", "-c", "import shutil; shutil.copy('data' + '.csv', '/tmp')"), "data.csv"),
    (("python3", "-c", "import sqlite3, pathlib; pathlib.Path('data' + '.csv').read_text()"), "data.csv"),
    (("node", "-e", "require('fs').readFileSync('data' + '.csv')"), "data.csv"),
    (("node", "-e", "require('fs').readdirSync('su' + 'b')"), "sub"),
    (("Rscript", "-e", "read.csv(paste0('data', '.csv'))"), "data.csv"),
    (("gcc", "-E", "-include", "data.csv", "-x", "c", "/dev/null"), "data.csv"),
    (("perl", "-e", "open(F, '<', 'data.' . 'csv') or die qq(data.csv: $!\\n)"), "data.csv"),
]
READ_ONLY = [
    ("sh", "-c", "echo x > out.txt"), ("sh", "-c", "mkdir out.d"), ("sh", "-c", "touch out.txt"), ("sh", "-c", "rm data.csv"),
    ("bash", "-c", "echo x > out.txt"), ("bash", "-c", "cp data.csv copy.csv"), ("bash", "-c", "mv data.csv other.csv"),
    ("python3", "-c", "open('out.txt', 'w')"), ("python3", "-c", "import os; os.mkdir('out.d')"), ("python3", "-c", "import os; os.remove('data.csv')"),
    ("Rscript", "-e", "writeLines('x', 'out.txt')"), ("gcc", "-x", "c", "-c", "/dev/null", "-o", "out.o"),
    ("node", "-e", "require('fs').writeFileSync('out.txt', 'x')"), ("node", "-e", "require('fs').mkdirSync('out.d')"),
]
# Each is refused by the sandbox's own loopback; Python and bash name no port.
REFUSED = [
    ("python3", "-c", "import socket; socket.create_connection(('127.0.0.1', 5432))"), ("bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/5432"),
    ("node", "-e", "require('net').connect(5432, '127.0.0.1')"), ("curl", "-s", "-S", "http://127.0.0.1:5432"),
    ("perl", "-e", "use IO::Socket::INET; IO::Socket::INET->new('127.0.0.1:5432') or die qq(no server: $!\\n)"),
    ("Rscript", "-e", "socketConnection('127.0.0.1', 5432, timeout = 5)"),
]
LIES = ["cat: {}: No such file or directory", "FileNotFoundError: [Errno 2] No such file or directory: '{}'", "Error: ENOENT: no such file or directory, open '{}'",
        "main.c:1: fatal error: {}: No such file or directory", "OSError: [Errno 30] Read-only file system: '{}'"]


class Hints(SbxTest):
    def setUp(self):
        super().setUp()
        self.write("data.csv", "a,b\n1,2\n")
        self.write("sub/x", "x")

    def hints(self, ended):
        return [(hint["kind"], hint["what"], hint["options"]) for hint in ended.record.get("hints", [])]

    def programs(self, table, first=lambda row: row):
        rows = [row for row in table if shutil.which(first(row)[0], path="/usr/local/bin:/usr/bin:/bin")]
        self.assertGreater(len(rows), 5)
        return rows

    def test_a_name_that_was_not_granted_is_told_and_its_option_helps(self):
        for command, name in self.programs(MISSING, lambda row: row[0]):
            with self.subTest(command):
                ended = self.sbx("--", *command)
                self.assertNotEqual(ended.status, 0, ended)
                said = self.hints(ended)
                if not said:  # the command line itself names it: a note says so
                    self.assertIn(name, " ".join(command), ended)
                    self.assertIn(f"--read {name}", self.sbx("--", *command, json_record=False).err.decode())
                    said = [("not-granted", str(self.work / name), ["--read", name])]
                self.assertEqual(said[0][:2], ("not-granted", str(self.work / name)), ended)
                self.exited(self.sbx(*said[0][2], "--", *command))

    def test_a_write_to_a_read_only_place_is_told_and_its_option_helps(self):
        for command in self.programs(READ_ONLY):
            with self.subTest(command):
                ended = self.sbx("--workspace", ".:read-only", "--", *command)
                kinds = [(kind, options) for kind, _, options in self.hints(ended)]
                self.assertIn(("read-only", ["--workspace", ".:overlay"]), kinds, ended)
                self.exited(self.sbx("--workspace", ".:overlay", "--", *command))
        ended = self.sbx("--", "sh", "-c", "echo x > /usr/x")
        self.assertEqual(self.hints(ended), [("read-only", "/usr/x", [])], ended)
        self.write("granted/x", "x", directory=self.tmp)
        ended = self.sbx("--read", self.tmp / "granted", "--", "python3", "-c", f"open('{self.tmp}/granted/y', 'w')")
        self.assertEqual([kind for kind, _, _ in self.hints(ended)], ["read-only"], ended)

    def test_a_write_to_what_read_shows_is_told_with_the_grant_that_allows_it(self):
        """By its own name, and also by a link's. Under another name the program does not learn where it is; nor is the home offered."""
        shown, link = self.tmp / "shown", self.tmp / "link"
        self.write("x", "x", directory=shown)
        shown.chmod(0o777)
        link.symlink_to(shown)
        for directory in (shown, link):
            ended = self.sbx("--read", directory, "--", "sh", "-c", f"echo x > {directory}/y")
            self.assertEqual(self.hints(ended), [("read-only", f"{directory}/y", ["--write", str(directory)])], ended)
            self.assertEqual(ended.record["hints"][0]["text"], f'"{directory}/y" is in "{directory}", which is read-only (--read)')
            self.exited(self.sbx("--read", directory, "--write", directory, "--", "sh", "-c", f"echo x > {directory}/y"))
        policy = self.write("own.toml", f'extends = "default"\n[filesystem]\nread = ["{shown}"]\n')
        for options, inside, offered in ((("--read", f"{shown}:/data"), "/data", []), (("--read", self.home), self.home, []),
                                         (("--policy", policy), shown, ["--write", str(shown)])):
            ended = self.sbx(*options, "--", "sh", "-c", f"echo x > {inside}/y")
            self.assertEqual(self.hints(ended), [("read-only", f"{inside}/y", offered)], ended)
            self.assertIn(f'is in "{inside}", which is read-only', ended.record["hints"][0]["text"])

    def test_a_directory_that_is_a_mount_is_told_apart_from_what_is_in_it(self):
        ended = self.sbx("--", "rm", "-r", "/dev/shm")
        self.assertEqual(self.hints(ended), [("read-only", "/dev/shm", [])], ended)
        self.assertIn("can't be removed or renamed: it is a mount; what is in it can be", ended.record["hints"][0]["text"])
        self.exited(self.sbx("--", "sh", "-c", "mkdir /dev/shm/x && rm -r /dev/shm/x"))

    def test_a_file_that_grew_to_its_limit_in_a_live_directory_is_told_and_the_option_helps(self):
        """Nothing but the program's words tells of it there."""
        live = ("--workspace", ".:read-write", "--set", 'limits.file_size="1M"')
        grow = ("--", "python3", "-c", "file = open('big', 'wb', buffering=0); file.write(bytes(1 << 20)); file.write(b'x')")
        ended = self.sbx(*live, *grow, json_record=False)
        self.assertIn("sbx: perhaps a file met limits.file_size = \"1M\"; to allow more, add --set 'limits.file_size=\"2M\"'\n", ended.err.decode())
        self.exited(self.sbx(*live, "--set", 'limits.file_size="2M"', *grow))

    def notes(self, *words, status=1, **options):
        ended = self.sbx(*words, json_record=False, **options)
        self.assertEqual(ended.status, status, ended)
        return ended.err.decode()

    def test_a_variable_that_is_not_in_the_sandbox_is_told_and_the_option_helps(self):
        python = "import os; os.environ['REGION']"
        programs = [("python3", "-c", python), ("bash", "-c", "set -u; : $REGION"), ("sh", "-c", "set -u; : $REGION")]
        here = {"REGION": "north"}
        for program in programs:
            told = self.sbx("--", *program, env=here, json_record=False)
            self.assertNotEqual(told.status, 0, told)
            self.assertIn("sbx: the variable REGION is not in the sandbox; to pass the caller's on, add --env REGION\n", told.err.decode(), program)
            self.exited(self.sbx("--env", "REGION", "--", *program, env=here))
        # What is no variable of the environment, has another cause, or is a secret.
        for code in ("{}['REGION']", "import os\ntry: os.environ['REGION']\nexcept KeyError: pass", "import os; os.environ['GITHUB_TOKEN']",
                     "import os; os.environ['DATABASE_URL']", "import os; os.environ['LD_PRELOAD']", "import os; os.environ['A B']"):
            self.assertNotIn("the variable", self.sbx("--lang", "python", "-c", code, json_record=False, env={**here, "GITHUB_TOKEN": "x", "DATABASE_URL": "x"}).err.decode(), code)

    def test_what_a_pip_of_the_system_says_is_told_with_the_way_that_works(self):
        told = self.notes("--", "sh", "-c", "echo 'This environment is externally managed' >&2; exit 1")
        self.assertIn(".venv/bin/pip install PACKAGE; then add --venv .venv\n", told)
        self.assertNotIn("pip", self.notes("--", "sh", "-c", "echo 'This environment is externally managed' >&2", status=0))

    def test_a_picture_that_is_shown_or_saved_elsewhere_is_told_where_out_brings_nothing(self):
        chart = "class plt: show = lambda: None\n"
        saving = "class plt:\n    def show(): pass\n    def savefig(name): open(name, 'w').close()\n"
        for line, told in (("plt.show()", "plt.savefig('chart.png') makes a file"), ("plt.savefig('/tmp/x.png')", "\"/tmp/x.png\" is not in the working directory"),
                           ("plt.savefig('x.png')\nplt.show()", ""), ("print('plt')", "")):
            code = (saving if "savefig" in line else chart) + line + "\n"
            self.write("chart.py", code)
            for words in (("chart.py",), ("--workspace", ".:overlay", "--", "python3", "chart.py"), ("--lang", "python", "-c", code)):
                text = self.notes("--out", "out", *words, status=0)
                if told:
                    self.assertIn(told, text, words)
                else:
                    self.assertNotIn("savefig", text, words)
        self.write("chart.py", saving + "plt.savefig('x.png')\n")
        self.notes("--out", "out", "chart.py", status=0)
        self.assertTrue((self.work / "out/x.png").exists())

    def test_who_installs_packages_of_the_system_is_told_where_that_works(self):
        """By what was typed, or by the place that the lines name. Twins: none of both, and a program that ended well."""
        debian = "/var/lib/dpkg" if shutil.which("apt-get") else None
        self.write("tools/apk", "#!/bin/sh\necho 'ERROR: Unable to lock database: Permission denied' >&2\nexit 99\n", 0o755)
        rows = [(("--read", "tools", "--", "tools/apk", "add", "x"), "apk", "/usr")]
        if debian:
            rows += [(("--", "apt-get", "install", "-y", "x"), "apt-get", debian), (("--", "dpkg", "-i", "x.deb"), "dpkg", "/usr"),
                     (("--", "sh", "-c", "apt-get update && apt-get install -y x"), "apt-get", "/var/lib/apt"),
                     (("--", "python3", "-c", "import subprocess, sys; sys.exit(subprocess.run(['apt-get', 'install', 'x']).returncode)"), "apt", debian)]
        for words, name, place in rows:
            with self.subTest(words):
                ended = self.sbx(*words)
                self.assertEqual(self.hints(ended), [("read-only", place, [])], ended)
                self.assertIn(f"sbx: {name} installs nothing in a sandbox, where the system is read-only; install the package on the host, and every sandbox shows it\n",
                              self.sbx(*words, json_record=False).err.decode())
        for line in ("echo 'are you root?' >&2; exit 1", "echo apt; exit 1", "echo /var/lib/dpkg/lock", "cat /var/lib/dpkg/status"):
            self.assertEqual(self.hints(self.sbx("--", "sh", "-c", line)), [], line)

    def test_a_script_that_lists_its_dependencies_is_told_the_way(self):
        self.write("needs.py", "# /// script\n# dependencies = ['nosuchmodule']\n# ///\nimport nosuchmodule\n")
        self.assertEqual(self.hints(self.sbx("needs.py")), [("module", "nosuchmodule", ["--venv", "DIR"])])

    def test_a_script_that_the_program_has_replaced_tells_nothing_of_what_is_there_now(self):
        script, told = self.work / "s.py", []
        for text in ("# /// script\n", "other\n"):
            (self.tmp / "secret").write_text(text)
            script.unlink(missing_ok=True)
            script.write_text("import os, sys\nos.remove('s.py')\nos.symlink(sys.argv[1], 's.py')\nimport nosuchmodule\n")
            told.append(self.sbx("--workspace", ".:read-write", "s.py", self.tmp / "secret").record.get("hints"))
        self.assertEqual(told[0], told[1])

    def test_a_file_beside_the_script_that_it_imports_is_told_and_its_option_helps(self):
        self.write("sub/other.py", "x = 1\n")
        self.write("sub/pack/__init__.py", "x = 1\n")
        self.write("other.js", "")
        self.write("sub/more.js", "")
        for name, code, told in (("main.py", "import sub.pack", "sub"), ("sub/main.py", "import other", "sub/other.py"), ("sub/main.py", "import pack", "sub/pack"),
                                 ("main.js", "require('./other')", "./other.js"), ("sub/main.js", "require('./more')", "sub/./more.js")):
            if shutil.which({"py": "python3", "js": "node"}[name[-2:]], path="/usr/local/bin:/usr/bin:/bin"):
                self.write(name, code + "\n")
                said = self.hints(self.sbx(name))
                self.assertEqual(said, [("not-granted", os.path.normpath(self.work / told), ["--read", os.path.normpath(self.work / told)])], f"{name}: {code}")
                self.exited(self.sbx(*said[0][2], name))

    def test_a_module_that_nobody_has_is_told_with_the_way_to_it(self):
        self.write("main.py", "import nosuchmodule\n")
        for words in (("main.py",), ("--read", "main.py", "--", "/usr/bin/python3", "main.py"), ("--lang", "python", "-c", "import nosuchmodule.part")):
            ended = self.sbx(*words)
            self.assertEqual(self.hints(ended), [("module", "nosuchmodule", ["--venv", ".venv"])], ended)
        told = self.sbx("main.py", json_record=False).err.decode()
        self.assertIn("python3 -m venv .venv makes an environment", told)
        # As it says, but for pip.
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", ".venv"], cwd=self.work, check=True)
        packages, = self.work.glob(".venv/lib/python3*/site-packages")
        ended = self.sbx("--venv", ".venv", "main.py")
        self.assertEqual(self.hints(ended), [("module", "nosuchmodule", [])], ended)
        (packages / "nosuchmodule.py").write_text("")
        self.exited(self.sbx("--venv", ".venv", "main.py"))

    def test_an_environment_that_is_not_there_is_told_with_the_way_to_it(self):
        self.write("main.py", "")
        absent = self.sbx(".venv/bin/python", "main.py", json_record=False)
        self.assertEqual((absent.status, absent.err.decode()), (127, "sbx: error[not-found]: there is no virtual environment '.venv'\n"
                                                                    "  help: python3 -m venv .venv makes it\n"))
        self.assertIn("no file './bin/python'", self.sbx("./bin/python", "main.py", json_record=False).err.decode())
        lines = (".venv/bin/python main.py", ". .venv/bin/activate; python main.py", "bash -c '.venv/bin/python main.py'")
        for line in lines:
            ended = self.sbx("--read", "main.py", "--", "sh", "-c", line)
            self.assertEqual(self.hints(ended), [("module", ".venv", ["--venv", ".venv"])], ended)
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", ".venv"], cwd=self.work, check=True)
        for line in lines:
            self.exited(self.sbx("--read", "main.py", "--venv", ".venv", "--", "sh", "-c", line))
        # Of what is elsewhere nothing is told, whether it is there or not.
        for place in ("/usr/nosuchenv", "../nosuchenv", "~/nosuchenv", "/usr"):
            ended = self.sbx("--", "sh", "-c", f"echo 'sh: 1: {place}/bin/python: not found' >&2; exit 1")
            self.assertEqual(self.hints(ended), [], ended)

    def test_a_package_of_node_or_r_is_told_with_the_way_to_it(self):
        path = "/usr/local/bin:/usr/bin:/bin"
        self.write("node_modules/here/index.js", "")
        self.write("node_modules/@scope/here/index.js", "")
        for name, code, module in (("a.js", "require('here')", "here"), ("b.js", "require('@scope/here')", "@scope/here")):
            if shutil.which("node", path=path):
                self.write(name, code)
                ended = self.sbx(name)
                self.assertEqual(self.hints(ended), [("module", module, ["--read", "node_modules"])], ended)
                self.assertIn("which is here but not in the sandbox", str(ended.record["hints"]))
                self.exited(self.sbx("--read", "node_modules", name))
        for name, code, module in (("c.js", "require('nosuch/part')", "nosuch"), ("d.mjs", "import '@scope/nosuch/part'", "@scope/nosuch")):
            if shutil.which("node", path=path):
                self.write(name, code)
                ended = self.sbx(name)
                self.assertEqual(self.hints(ended), [("module", module, ["--read", "node_modules"])], ended)
                self.assertIn("outside, npm install", str(ended.record["hints"]))
        if shutil.which("Rscript", path=path):
            ended = self.sbx("--", "Rscript", "-e", "library(nosuch)")
            self.assertEqual(self.hints(ended), [("module", "nosuch", [])], ended)
            self.assertIn("install.packages()", str(ended.record["hints"]))

    def test_a_granted_file_that_can_not_be_replaced_is_told_and_its_directory_helps(self):
        said = f'"{self.work}/sub/x" is granted as one file, which rename() can\'t move or replace; to grant its directory, add --write {self.work}/sub'
        for command in (("sed", "-i", "s/x/y/", "sub/x"), ("sh", "-c", "echo y > sub/y; mv sub/y sub/x"),
                        ("python3", "-c", "import os; open('sub/y', 'w').write('y'); os.replace('sub/y', 'sub/x')"),
                        ("python3", "-c", "import os; os.rename('sub/x', 'sub/y')")):
            self.write("sub/x", "x")
            ended = self.sbx("--write", "sub/x", "--", *command, json_record=False)
            self.assertEqual((ended.status != 0, said in ended.err.decode()), (True, True), ended)
            self.exited(self.sbx("--write", self.work / "sub", "--", *command))
        self.write("notes", "x", directory=self.home)
        for options in (("--write", self.home / "notes"), ("--read", self.home / "notes")):  # the home is not to be granted
            ended = self.sbx(*options, "--", "mv", self.home / "notes", "/tmp/x", json_record=False)
            self.assertIn("is granted as one file", ended.err.decode())
            self.assertNotIn("add --write", ended.err.decode())
        # Without such a grant the words are a program's own.
        ended = self.sbx("--read", "sub", "--", "sh", "-c", "echo 'mv: x: Device or resource busy' >&2; exit 1", json_record=False)
        self.assertNotIn("rename", ended.err.decode())

    def test_what_rename_does_not_move_is_told_with_what_does(self):
        for code, better in (("os.rename('sub', 'new')", "shutil.move('sub', 'new')"), ("os.rename('data.csv', '/tmp/data.csv')", "shutil.move('data.csv', '/tmp/data.csv')")):
            ended = self.sbx("-p", "python", "--", "python3", "-c", f"import os; {code}", json_record=False)
            self.assertIn("sbx: rename() moves nothing between the working directory, the home and /tmp, and no directory that was there before", ended.err.decode())
            self.exited(self.sbx("-p", "python", "--", "python3", "-c", f"import shutil; {better}"))

    def test_a_refused_connection_to_the_own_loopback_is_told(self):
        said = [("loopback", "127.0.0.1:5432", ["--allow-host", "host.sbx.internal:5432"])]
        for command in REFUSED:
            if shutil.which(command[0], path="/usr/local/bin:/usr/bin:/bin"):
                ended = self.sbx("--", *command)
                self.assertEqual([(kind, what.replace("localhost", "127.0.0.1"), options) for kind, what, options in self.hints(ended)], said, ended)
        # Words without the call, of another port or after another call are not facts.
        for lie in ("", "import socket; s = socket.socket(); s.settimeout(1); s.connect_ex(('127.0.0.1', 6)); "):
            liar = self.sbx("--", "python3", "-c", lie + "raise ConnectionRefusedError('[Errno 111] Connection refused: 127.0.0.1:5432')")
            self.assertEqual(self.hints(liar), [], liar)
        self.assertEqual(self.hints(self.sbx("--allow-host", "host.sbx.internal:5432", "--", "python3", "-c", "raise OSError('Connection refused')")), [])
        # What is not a terminal does not learn whether the host has such a server: the words are the same for each port.
        self.assertNotIn("listens there", str(said))

    def test_a_name_in_the_home_is_told_at_a_terminal_and_its_option_helps(self):
        """Inside, the home is another directory; a hint that only says the path outside would come back."""
        self.write("notes.txt", "my notes\n", directory=self.home)
        self.write("more/deep.txt", "deep\n", directory=self.home)
        report = self.tmp / "report.json"
        for command in (("python3", "-c", "import os; print(open(os.path.expanduser('~/notes.' + 'txt')).read())"), ("sh", "-c", "cat ~/more/deep.txt"),
                        ("python3", "-c", "print(open('../home/notes.' + 'txt').read())"), ("sh", "-c", "cd ~ && ls more"),
                        ("python3", "-c", f"print(open('{self.home}/more/' + 'deep.txt').read())"), ("sh", "-c", "n=notes; cat ../home/$n.txt")):
            with self.subTest(command):
                self.on_terminal(self.command("--report", report, "--", *command, json_record=False))
                hints = json.loads(report.read_text()).get("hints", [])
                report.unlink()
                if command[-1] == "cd ~ && ls more":  # relative to a directory that only the program knows
                    self.assertEqual(hints, [])
                    continue
                self.assertEqual([hint["kind"] for hint in hints], ["not-granted"], command)
                self.assertIn(str(self.home), hints[0]["what"])
                self.exited(self.sbx(*hints[0]["options"], "--", *command))
                # What is no person learns nothing of what is outside the working directory.
                self.assertEqual(self.hints(self.sbx("--", *command)), [])

    def test_roots_home_is_a_home_as_any_other(self):
        """In a mount namespace of the test, /root is a directory of the test."""
        if not sbxtest.IS_ROOT:
            self.skipTest("only root has it")
        for name in ("notes.txt", ".secret"):
            self.write(name, "text\n", directory=self.home)
        inside = ("unshare", "--mount", "sh", "-c", 'mount --bind "$HOME" /root && export HOME="$0" && exec "$@"')
        unshare = shutil.which("unshare")
        for home, name, is_told in (("/root", "notes.txt", True), ("/root", ".secret", False), (self.tmp, "notes.txt", False)):
            for file in (f"/root/{name}", f"$HOME/{name}"):
                command = self.command("--", "sh", "-c", f"f={file}; cat $f", json_record=False)
                said = self.on_terminal([unshare, *inside[1:], home, *command])[1]
                self.assertEqual(f"add --read /root/{name}" in said.replace("\r\n", " "), is_told, f"{home} {file}: {said}")
                if is_told:
                    command = self.command("--read", f"/root/{name}" + (":/home/sandbox/notes.txt" if "$" in file else ""), *command[2:], json_record=False)
                    self.assertIn("text", self.on_terminal([unshare, *inside[1:], home, SBX, "run", *command[2:]])[1])

    def test_a_part_of_the_system_is_told_with_what_can_be_written_to(self):
        ended = self.sbx("--", "sh", "-c", "echo x >/usr/lib/made", json_record=False)
        self.assertIn(b'is in a part of the system that is read-only; the working directory, /tmp and the home, "/home/sandbox", can be written to\n', ended.err)
        self.exited(self.sbx("--", "sh", "-c", "for d in . /tmp /home/sandbox; do echo x >$d/made || exit 1; done"))

    def test_a_variable_that_the_caller_has_not_is_told_and_the_option_helps(self):
        command = ("sh", "-c", 'echo "${WANTED?}"')
        for options, is_told in ((("--env", "WANTED"), True), ((), False), (("--env", "OTHER"), False)):
            ended = self.sbx(*options, "--", *command, json_record=False)
            self.assertEqual(b"WANTED is not set here, so --env WANTED passes nothing; --env WANTED=VALUE sets it" in ended.err, is_told, ended)
        self.exited(self.sbx("--env", "WANTED=1", "--", *command))

    def test_a_name_is_offered_with_the_port_that_the_program_means(self):
        self.write("curl", "#!/bin/sh\ngetent hosts example.org\n", mode=0o755)
        self.write("fetch.py", "# of http://example.org/list\nimport socket\nsocket.getaddrinfo('example' + '.org', None)\n")
        look = "import socket; socket.getaddrinfo('example.org', None)"
        for command, port in ((("python3", "-c", f"{look}  # http://example.org/"), 80), (("python3", "-c", f"{look}  # https://example.org"), 443),
                              (("python3", "-c", f"{look}  # http://www.example.org and not.example.org:81"), None), (("python3", "-c", look, "example.org:8080"), 8080),
                              (("python3", "-c", "import socket; socket.create_connection(('example.org', 2525))"), 2525), (("python3", "-c", look, "git@example.org:a/b"), 22),
                              (("python3", "-c", look.replace("ex", "EX"), "HTTP://Example.org"), 80), (("python3", "-c", look, "ftp://me@example.org/"), 21),
                              (("sh", "-c", "getent hosts example.org; echo \"HTTPConnectionPool(host='example\".org\"', port=8000)\" >&2; exit 1"), 8000),
                              (("sh", "-c", "getent hosts example.org || exit 0", "example.org", "25"), 25), (("fetch.py",), 80), (("sh", "-c", "getent hosts example.org || curl example.org"), 80), (("python3", "-c", look), None)):
            ended = self.sbx(*(["--"] if command[0] != "fetch.py" else []), *command)
            (denial,) = [each for each in ended.record["denials"] if each["what"].startswith("name ")]
            self.assertEqual(denial["options"], ["--allow-host", f"example.org:{port or 443}"], f"{command}: {ended}")
            self.assertIn(f'"example.org:{port or 443}"', denial["allow_with"])
            self.assertEqual("plain http needs :80" in denial["risk"], port is None, command)
        ended = self.sbx("--read", ".", "--", "./curl", "example.org/list")
        self.assertEqual(ended.record["denials"][0]["options"], ["--allow-host", "example.org:80"], ended)

    def test_a_file_that_was_made_and_lost_is_told_once_at_a_terminal(self):
        said = self.on_terminal(self.command("--", "sh", "-c", "mkdir __pycache__; echo x > chart.png; echo x > .hidden", json_record=False))[1]
        self.assertEqual(said.count("chart.png"), 1, said)
        self.assertNotIn("hidden", said)
        self.assertNotIn("__pycache__", said)
        many = self.on_terminal(self.command("-p", "python", "--", "sh", "-c", "touch a b c d; echo x >> data.csv", json_record=False))[1]
        self.assertIn("a, b, c, ...;", many)
        self.assertNotIn("data.csv", many)
        late = self.on_terminal(self.command("-p", "python", "--", "sh", "-c", "touch a", "--out", "out", json_record=False))[1]
        self.assertIn("--out stands behind the command, so the program got it", late)
        self.assertNotIn("stands behind", many)
        for options in (("--out", self.tmp / "out"), ("--diff",), ("--keep", "set")):
            self.assertNotIn("gone with", self.on_terminal(self.command("-p", "python", *options, "--", "touch", "a", json_record=False))[1], options)
        self.assertTrue((self.tmp / "out/a").exists())
        for command in ("touch a; exit 1", "true", "touch data.csv"):
            self.assertNotIn("gone with", self.on_terminal(self.command("-p", "python", "--", "sh", "-c", command, json_record=False))[1], command)

    def test_files_that_were_made_or_changed_and_lost_are_told_in_a_pipe_too(self):
        for name in ("data.csv", "deep/data.csv", ".hidden", "same"):
            self.write(name, "old\n")
        (self.work / "deep").chmod(0o755)
        for command, told in (("touch a", "a file was created and is gone with the sandbox: a; --apply keeps it, --out DIR copies"),
                              ("echo >>data.csv", "a file was changed and the change is gone with the sandbox: data.csv; --apply keeps it"),
                              ("echo >>deep/data.csv; echo >>data.csv", "files were changed and the changes are gone with the sandbox: data.csv, deep/data.csv; --apply keeps it"),
                              ("touch a; echo >>data.csv", "files were created or changed, and that is gone with the sandbox: a, data.csv; --apply keeps it"),
                              ("touch deep/a", "a file was created and is gone with the sandbox: deep/a; --apply keeps it, --out DIR copies"),
                              ("mkdir -p new/b deep/c new-; touch new/b/x deep/c/x new-/x",
                               "files were created and are gone with the sandbox: new/, new-/, deep/c/; --apply keeps them, --out DIR copies"),
                              ("rm same; mkdir same; touch same/a", "a file was created and is gone with the sandbox: same/; --apply keeps it, --out DIR copies"),
                              ("echo >>.hidden; echo old >same; rm deep/data.csv", None), ("echo >>data.csv; exit 1", None)):
            ended = self.sbx("-p", "python", "--", "sh", "-c", command, json_record=False)
            self.assertEqual(ended.err.decode(), f"sbx: {told}\n" if told else "", command)

    def test_files_that_were_made_in_the_home_and_lost_are_told(self):
        """Not those of /tmp, nor what was copied in. Also without namespaces, and beside a live workspace."""
        self.write("notes", "x")
        told = "in the home and {} gone with the sandbox: {}; what is in the working directory can be kept\n"
        for isolation in ("namespaces", "landlock"):
            for command, said in (("mkdir ~/x; touch ~/a ~/.hidden ${TMPDIR:-/tmp}/f", "sbx: files were created " + told.format("are", "~/a, ~/x/")),
                                  ("touch ~/a here", "sbx: a file was created and is gone with the sandbox: here; --apply keeps it, --out DIR copies\n"
                                                     "sbx: a file was created " + told.format("is", "~/a")),
                                  ("touch ~/a; exit 1", ""), ("touch ${TMPDIR:-/tmp}/f", "")):
                ended = self.sbx("--isolation", isolation, "--in", "notes:~/notes", "--", "sh", "-c", command, json_record=False)
                lines = [line for line in ended.err.decode().splitlines(keepends=True) if not line.startswith("sbx: weaker isolation")]
                self.assertEqual("".join(lines), said, (isolation, command))
        live = self.sbx("--workspace", ".:read-write", "--", "sh", "-c", "touch ~/a here", json_record=False)
        self.assertEqual(live.err.decode(), "sbx: a file was created " + told.format("is", "~/a"))
        self.assertTrue((self.work / "here").exists())

    def test_what_out_does_not_copy_of_the_files_that_were_there_is_told(self):
        """Twins: nobody may miss it, it is kept, and the command failed."""
        for name in ("same", "other", ".hidden"):
            self.write(name, "old\n")
        out = self.tmp / "out"
        run = lambda command, *options: self.sbx("-p", "python", "--out", out, *options, "--", "sh", "-c", command, json_record=False)
        self.assertIn("sbx: a file that existed before changed and is gone with the sandbox: same; --apply keeps it\n", run("touch new; echo more >>same").err.decode())
        self.assertIn("sbx: files that existed before changed and are gone with the sandbox: other, same; --apply keeps them\n", run("touch new; echo more | tee -a same >>other").err.decode())
        for command, options in (("touch new; echo more >>.hidden", ()), ("touch new; echo more >>same; false", ()), ("touch new; echo more >>same", ("--keep", "set"))):
            self.assertNotIn("existed before", run(command, *options).err.decode(), command)

    def test_a_file_that_is_too_large_to_be_copied_on_its_first_write_names_the_limit(self):
        """The private disk is not found full afterwards. Twins: with the option it works, and a smaller file has room."""
        self.write("big", "x" * (3 << 20))
        self.write("small", "x")
        append = lambda name: ("--", "python3", "-c", f"open('{name}', 'ab').write(b'x')")
        overlay = ("--workspace", ".:overlay", "--disk", "2M")
        ended = self.sbx(*overlay, *append("big"), json_record=False)
        # Of what was copied, more than 1 MiB may have been seen on the disk: then it says 8M.
        self.assertRegex(ended.err.decode(), 'sbx: "big" has 3 MiB, and the first write to a file of a copy-on-write directory copies all of it, '
                                             'which limits.disk = "2M" has no room for; to allow more, add --disk [48]M\n')
        self.exited(self.sbx("--workspace", ".:overlay", "--disk", "4M", *append("big")))
        self.exited(self.sbx(*overlay, *append("small")))
        lie = self.sbx(*overlay, "--", "sh", "-c", "echo 'small: No space left on device'; exit 1", json_record=False)
        self.assertNotIn("limits.disk", lie.err.decode())

    def test_a_write_without_namespaces_is_told_as_with_them(self):
        """The kernel answers EACCES there, as where something may not be read or executed: those are told nothing."""
        landlock = ("--isolation", "landlock")
        for path in (self.tmp, self.work):
            path.chmod(0o755)
        (self.work / "data.csv").chmod(0o644)
        for command in [row for row in READ_ONLY if row[0] in ("sh", "bash", "python3")]:
            with self.subTest(command):
                ended = self.sbx(*landlock, "--workspace", ".:read-only", "--", *command)
                self.assertIn(("read-only", ["--workspace", ".:overlay"]), [(kind, options) for kind, _, options in self.hints(ended)], ended)
                self.exited(self.sbx(*landlock, "--workspace", ".:overlay", "--", *command))
        for place in ("/usr/x", "/etc/x", "/tmp/x"):
            ended = self.sbx(*landlock, "--", "sh", "-c", f"echo x > {place}")
            self.assertEqual(self.hints(ended), [("read-only", place, [])], ended)
            self.assertIn("$TMPDIR", ended.record["hints"][0]["text"])
        granted = self.write("granted/x", "x", directory=self.tmp).parent
        granted.chmod(0o755)
        ended = self.sbx(*landlock, "--read", granted, "--", "sh", "-c", f"echo x > {granted}/y")
        self.assertEqual(self.hints(ended), [("read-only", f"{granted}/y", [])], ended)  # --write needs namespaces
        for command in ("cat /etc/shadow", "ls /root", "./data.csv", f"{granted}/x"):
            ended = self.sbx(*landlock, "--workspace", ".:read-only", "--read", granted, "--", "sh", "-c", f"{command}; exit $?")
            self.assertNotIn("read-only", [kind for kind, _, _ in self.hints(ended)], ended)

    def test_a_file_that_is_refused_without_namespaces_names_the_option(self):
        """Twins: it is granted; and a device is no file to read."""
        told = "--read FILE shows one"
        for command in (("cat", "/var/lib/dpkg/status"), ("python3", "-c", "open('/var/lib/dpkg/status')")):
            ended = self.sbx("--isolation", "landlock", "--", *command, json_record=False)
            self.assertIn(told, ended.err.decode(), command)
            self.exited(self.sbx("--isolation", "landlock", "--read", "/var/lib/dpkg/status", "--", *command))
        ended = self.sbx("--isolation", "landlock", "--", "sh", "-c", "cat /dev/tty", json_record=False)
        self.assertNotIn(told, ended.err.decode())

    def test_out_leaves_no_empty_directory_and_says_what_was_not_new(self):
        self.write("same", "old\n")
        out = self.tmp / "out"
        for command, told in (("false", "no file is new or has other content"), ("echo old >same", "no file is new or has other content"),
                              ("echo more >>same", "no file is new")):
            ended = self.sbx("-p", "python", "--out", out, "--", "sh", "-c", command, json_record=False)
            self.assertIn(f"sbx: nothing to copy to {out}: {told} in the working directory; what is elsewhere, as in /tmp, is not copied\n", ended.err.decode())
            self.assertFalse(out.exists(), command)
        self.sbx("-p", "python", "--out", out, "--", "touch", "new", json_record=False)
        self.assertEqual(os.listdir(out), ["new"])

    def test_a_link_of_a_checkout_into_a_private_place_is_not_proposed(self):
        """The twin leads to a file of the caller's."""
        self.write(".config/app/token", "x", directory=self.home)
        self.write("plain/token", "x", directory=self.home)
        for name, target in (("shadow", "/etc/shadow"), ("passwd", "/etc/login.defs"), ("token", self.home / ".config/app/token"),
                             ("plain", self.home / "plain/token")):
            (self.work / name).symlink_to(target)
            said = self.on_terminal(self.command("-p", "python", "--", "cat", name, json_record=False))[1]
            self.assertEqual("--read" in said, name == "plain", said)
        self.assertIn(str(self.home / "plain/token"), said)

    def test_a_directory_that_is_no_workspace_is_not_proposed(self):
        """rm(1) itself refuses the root. The twin names the working directory."""
        for name, told in (("/", False), (".", True)):
            ended = self.sbx("--", "sh", "-c", f"rm -r {name}; exit 1", json_record=False)
            self.assertEqual(b"--workspace .:overlay" in ended.err, told, ended)

    def test_git_clone_in_an_overlay_is_told_how_to_copy(self):
        subprocess.run(["git", "init", "-q", self.work / "src"], check=True)
        subprocess.run(["git", "-C", self.work / "src", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"], check=True)
        failed = self.sbx("-p", "python", "--", "git", "clone", "src", "dst", json_record=False)
        self.assertEqual((failed.status, b"git clone --no-hardlinks copies them" in failed.err), (128, True), failed)
        self.assertEqual(self.sbx("-p", "python", "--", "git", "clone", "--no-hardlinks", "src", "dst").status, 0)

    def test_a_program_that_lies_learns_nothing(self):
        """Of names that are denied, elsewhere, special, or behind a link. test_hint_liars.py has more ways to lie."""
        self.write(".env", "SECRET=1\n")
        self.write(".ssh/id_rsa", "key", directory=self.home)
        self.write("notes.txt", "notes", directory=self.home)
        (self.work / "link").symlink_to(self.home / ".ssh/id_rsa")
        names = [".env", str(self.home / ".ssh/id_rsa"), str(self.home / ".ssh"), "link", "/etc/shadow", "/root", str(self.home), str(self.home / "notes.txt"),
                 "/proc/1/environ", "/run"]
        for lie in LIES:
            text = "\\n".join(lie.format(name) for name in names)
            ended = self.sbx("--", "python3", "-c", f"import sys; sys.stderr.write('''{text}\\n'''); sys.exit(1)")
            for kind, what, options in self.hints(ended):
                self.assertEqual((kind, options[:1] in ([], ["--workspace"])), ("read-only", True), f"{what}: {ended}")
        # The twin: a name below the working directory is told, whoever lies about it; after success nothing is.
        for status, told in ((1, 1), (0, 0)):
            ended = self.sbx("--", "python3", "-c", f"import sys; sys.stderr.write('cat: data' + '.csv: No such file or directory\\n'); sys.exit({status})")
            self.assertEqual(len(self.hints(ended)), told, ended)

    def test_a_refusal_is_told_when_it_happens_at_a_terminal(self):
        command = self.command("--", "python3", "-c", "import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0); print('going on')", json_record=False)
        status, shown = self.on_terminal(command)
        self.assertEqual(status, 0, shown)
        self.assertEqual(len(re.findall("denied:", shown)), 2, shown)  # then, and at the end with what would allow it
        done = subprocess.run(command, env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        self.assertEqual(done.stderr.count(b"denied:"), 1, done.stderr)


if __name__ == "__main__":
    sbxtest.main()

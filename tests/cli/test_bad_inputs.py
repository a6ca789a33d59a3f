"""Invalid policies, options, paths, scripts and environments, all judged by the same rules: the status, one message
with the position and the fix, nothing on stdout, no byte that controls a terminal, no line longer than 300 bytes, and
nothing left behind."""

import json
import os
import re
import resource
import subprocess

import sbxtest
from sbxtest import SBX, SbxTest
from sessiontest import SessionTest

LONGEST_LINE = 300
# C0 except newline, DEL, C1 and characters that reorder text, Unicode Standard Annex 9.
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f؜‎‏‪-‮⁦-⁩]")
RLO = "‮"

SIZES = ("limits.memory", "limits.file_size", "limits.disk", "output.stdout", "output.stderr", "output.passed", "filesystem.outputs.max_bytes", "session.log")
TIMES = ("limits.wall_time", "limits.cpu_time", "limits.grace", "session.idle", "session.lifetime", "session.cpu_time")
COUNTS = ("limits.processes", "limits.open_files", "limits.disk_files", "filesystem.outputs.max_files", "filesystem.scan", "session.calls", "session.contexts")
WORDS = ("network.mode", "syscalls.base", "syscalls.denied", "filesystem.workspace.mode", "limits.disk_on", "output.exceed")
SWITCHES = ("locked", "filesystem.landlock", "network.private", "network.match_sni", "network.named", "syscalls.named")
LISTS = ("filesystem.read", "filesystem.write", "network.allow", "network.publish", "syscalls.allow", "syscalls.deny", "environment.pass")

# TOML values that no key of the type accepts.
WRONG = {
    SIZES: ("512", "true", '"512"', '"512MB"', '"1Gib"', '"-1M"', '""', '"1.5.5M"', "1979-05-27", "[]"),
    TIMES: ("30", "false", '"30"', '"5 minutes"', '"-1s"', '""', '"1d"', "07:32:00"),
    COUNTS: ('"128"', "-1", "1.5", "true", "[1]"),
    WORDS: ("true", "1", '"nonsense"', '""', f'"{RLO}none"'),
    SWITCHES: ('"true"', "1", '"yes"', "[]"),
    LISTS: ("5", "true", "[5]", '[["a"]]', "1979-05-27"),
}

# Whole policies: the text, and what the message must mention.
POLICIES = (
    ("schema = 2\n", "schema"),
    ('schema = "1"\n', "schema"),
    ("schema = 1\n[limits\n", "t.toml:2"),
    ('schema = 1\nname = "abc\n', "not closed"),
    ("schema = 1\nname = 'abc\n", "not closed"),
    ('schema = 1\nextends = ["default", \n', "t.toml"),
    ("schema = 1\nlimits = { memory = '1M'\n", "not closed"),
    ('{"schema": 1}\n', "JSON"),
    ("schema: 1\nlimits:\n  memory: 1M\n", "YAML"),
    ("---\nschema: 1\n", "YAML"),
    ("%YAML 1.2\n", "YAML"),
    ("- schema\n- name\n", "YAML"),
    ('[{"schema": 1}]\n', "JSON"),
    ("[\n1\n]\n", "JSON"),
    ('<?xml version="1.0"?>\n', "XML"),
    ("#!/bin/sh\necho hi\n", "script"),
    ("%PDF-1.4\n", "binary"),
    ("PK\x03\x04", "binary"),
    ('schema = 1\nname = """abc\n', "not closed"),
    ("schema = 1\nname = \'\'\'abc\n", "not closed"),
    ("schema = 1\nread = [1,\n[limits]\n", "begins in line 2"),
    ("schema = 1\n[filesystem]\nread = ['/a'\n'/b']\n", "begins in line 3"),
    ("schema = 1 name = 'a'\n", "line of its own"),
    ('schema = 1\nname = "C:\\temp\\q"\n', "backslash"),
    ('schema = 1\nname = "\\u12"\n', "backslash"),
    ("schema = 1\nlocked = tru\n", "true or false"),
    ("schema = 1\nlocked = yes\n", "quotes"),
    ("schema = 1\nx = 1__0\n", "not a value"),
    ("schema = 1\nx = 0x\n", "not a value"),
    ("schema = 1\nx = 010\n", "remove the 0"),
    ("schema = 1\nx = 2024-13-45\n", "not a value"),
    ("schema = 1\nx = 99999999999999999999\n", "too large"),
    ("schema = 1\n[]\n", "names no table"),
    ("schema = 1\n[limits]]\n", "text after the end"),
    ("schema = 1\n= 1\n", "expected a key"),
    ("schema = 1\n\"schema\" = 1\n", "line 1"),
    ("schema = 1\nlimits = { memory = '1M', }\n", "comma"),
    ("\x00\x01\x02", "binary"),
    ("\x7fELF\x02\x01", "binary"),
    ("schema = 1\nschema = 1\n", "twice"),
    ("schema = 1\n[limits]\nmemory = '1M'\nmemory = '2M'\n", "line 3"),
    ("schema = 1\n[limits]\n[limits]\n", "line 2"),
    ("schema = 1\nname = \"a\x01b\"\n", "control character"),
    (f"schema = 1\n{RLO}memory = 1\n", "t.toml:2"),
    ("schema = 1\nlimits.memory = 512M\n", "quotes"),
    ("schema = 1\nlimits.memory =\n", "missing"),
    ("schema = 1\nlimits.memory \"1M\"\n", "'='"),
    ("schema = 1\n" + "a." * 40 + "b = 1\n", "parts"),
    ("schema = 1\nx = " + "[" * 40 + "]" * 40 + "\n", "nested"),
    ("schema = 1\n" + "k" * 5000 + " = 1\n", "unknown"),
    ('schema = 1\nextends = "nosuch"\n', "nosuch"),
    ('schema = 1\nextends = "./nosuch.toml"\n', "nosuch.toml"),
    ('schema = 1\nextends = "./t.toml"\n', "circle"),
    ("schema = 1\nextends = 5\n", "extends"),
    ('schema = 1\nextends = "/etc/passwd"\n', "passwd"),
    ("schema = 1\nlimits = 5\n", "table"),
    ("schema = 1\n[limits]\nmemroy = '1G'\n", "memory"),
    ("schema = 1\n[netwrk]\nmode = 'none'\n", "network"),
    ("schema = 1\n[filesystem]\nread = ['']\n", "empty"),
    ("schema = 1\n[filesystem]\nread = ['~nobody/x']\n", "~"),
    ("schema = 1\n[filesystem]\nwrite = [{ target = '/x' }]\n", "source"),
    ("schema = 1\n[filesystem]\nread = [{ source = '/etc', targte = '/x' }]\n", "target"),
    ("schema = 1\n[filesystem]\nread = [{ source = '/etc', target = 'x' }]\n", "absolute"),
    ("schema = 1\n[network]\nmode = 'allow-list'\nallow = ['http://']\n", "network.allow"),
    ("schema = 1\n[network]\nmode = 'allow-list'\nallow = ['a b:443']\n", "network.allow"),
    ("schema = 1\n[network]\nmode = 'allow-list'\nallow = ['example.com:99999']\n", "port"),
    ("schema = 1\n[network]\nmode = 'allow-list'\nallow = ['10.0.0.0/33:80']\n", "10.0.0.0/33"),
    ("schema = 1\n[network]\nmode = 'allow-list'\nallow = ['2001:db8::1:443']\n", "brackets"),
    ("schema = 1\n[network]\nmode = 'allow-list'\nallow = ['127.0.0.1:80']\n", "host.sbx.internal"),
    ("schema = 1\n[network]\npublish = ['80']\n", "publish"),
    ("schema = 1\n[network]\npublish = ['0.0.0.0:80:80']\n", "publish"),
    ("schema = 1\n[syscalls]\nallow = ['opne']\n", "open"),
    ("schema = 1\n[syscalls]\nallow = ['@debgu']\n", "@debug"),
    ("schema = 1\n[syscalls]\ndeny = ['execve']\n", "execve"),
    ("schema = 1\n[[syscalls.rule]]\nname = 'ioctl'\n", "action"),
    ("schema = 1\n[[syscalls.rule]]\nname = 'nosuch'\naction = 'deny'\n", "nosuch"),
    ("schema = 1\n[environment]\nset = { '1A' = 'x' }\n", "1A"),
    ("schema = 1\n[environment]\nset = { A = 5 }\n", "string"),
    ("schema = 1\n[interpreters]\nextensions = { py = 5 }\n", "extensions"),
)

# Words after `sbx run`, and what the message must mention.
RUNS = (
    ((), "command"),
    (("",), "empty"),
    (("--",), "command"),
    (("nosuch-command-xyz",), "nosuch-command-xyz"),
    (("./nosuch.py",), "nosuch.py"),
    (("nosuch.py",), "nosuch.py"),
    (("ls | wc -l",), "bash"),
    ((".",), "directory"),
    (("d",), "directory"),
    (("--nosuch", "true"), "--nosuch"),
    (("--memry", "1G", "true"), "--memory"),
    (("-policy", "strict", "true"), "--policy"),
    (("-json", "true"), "--json"),
    (("--timeout",), "--timeout"),
    (("--timeout", "", "true"), "--timeout"),
    (("--timeout", "30", "true"), "30s"),
    (("--timeout", "-1s", "true"), "--timeout"),
    (("--timeout", "9999999h", "true"), "8760h"),
    (("--memory", "256MB", "true"), "256M"),
    (("--memory", "1", "true"), "--memory"),
    (("--memory", "0B", "true"), "1M"),
    (("--cpus", "0", "true"), "above 0"),
    (("--cpus", "two", "true"), "--cpus"),
    (("--processes", "-1", "true"), "--processes"),
    (("--processes", "4194304", "true"), "4194303"),
    (("--output", "lots", "true"), "--output"),
    (("--disk", "1", "true"), "--disk"),
    (("--set", "limits.memory", "true"), "KEY=VALUE"),
    (("--set", "limits.memory=512M", "true"), '"512M"'),
    (("--set", "limits.memroy='1G'", "true"), "memory"),
    (("--set", "=1", "true"), "--set"),
    (("--set", "limits.memory='1M'\nlocked=true", "true"), "--set"),
    (("--set", "limits.open_files=8", "true"), "16"),
    (("--set", f"{RLO}=1", "true"), "unknown"),
    (("-p", "nosuch", "true"), "nosuch"),
    (("-p", "pyton", "true"), "python"),
    (("-p", "", "true"), "policy"),
    (("-p", "./nosuch.toml", "true"), "nosuch.toml"),
    (("-p", "d", "true"), "d"),
    (("-p", "/dev/null", "true"), "null"),
    (("-p", "p" * 5000, "true"), "policy"),
    (("--require", "nosuch", "true"), "landlock"),
    (("--lang", "klingon", "-c", "1"), "klingon"),
    (("--lang", "pyhton", "-c", "1"), "python"),
    (("-c", "1"), "--lang"),
    (("--lang", "python", "ls"), "ls"),
    (("--net", "none", "--allow-host", "a.example:443", "true"), "--net"),
    (("--net", "bridge", "true"), "--net"),
    (("--allow-host", "", "true"), "--allow-host"),
    (("--allow-host", "localhost:80", "true"), "host.sbx.internal"),
    (("--allow-host", "a.example:0", "true"), "port"),
    (("--allow-host", "a.example:http", "true"), "port"),
    (("--allow-host", "*", "true"), "*"),
    (("--env", "1A=x", "true"), "1A"),
    (("--env", "=x", "true"), "--env"),
    (("--env", "A B=x", "true"), "A B"),
    (("--env-file", "nosuch", "true"), "nosuch"),
    (("--env-file", "d", "true"), "d"),
    (("--env-file", "bad.env", "true"), "line 2"),
    (("--env-file", "fifo", "true"), "fifo"),
    (("--env-fd", "99", "true"), "99"),
    (("--env-fd", "x", "true"), "--env-fd"),
    (("--report", "nosuch/r.json", "true"), "nosuch"),
    (("--report", "d", "true"), "d"),
    (("--report", "link.json", "true"), "link"),
    (("--report-fd", "99", "true"), "99"),
    (("--in", "nosuch", "true"), "nosuch"),
    (("--in", "d", "true"), "d"),
    (("--in", "good.txt:rel:x", "true"), "colon"),
    (("--read", "nosuch", "true"), "nosuch"),
    (("--read", "", "true"), "--read"),
    (("--read", "good.txt:rel", "true"), "absolute"),
    (("--write", "nosuch", "true"), "nosuch"),
    (("--workspace", "nosuch:overlay", "true"), "nosuch"),
    (("--workspace", ".:overlap", "true"), "overlay"),
    (("--workspace", "good.txt:overlay", "true"), "good.txt"),
    (("--out", "good.txt", "true"), "good.txt"),
    (("--collect", "*.c", "true"), "--out"),
    (("--yes", "true"), "--apply"),
    (("--apply=", "true"), "--apply"),
    (("--keep", "../x", "true"), "../x"),
    (("--keep", "", "true"), "--keep"),
    (("--stdin", "nosuch", "true"), "nosuch"),
    (("--venv", "nosuch", "true"), "nosuch"),
    (("--venv", "d", "true"), "d"),
    (("--color", "blue", "true"), "always"),
    (("-v", "x.xyz"), "x.xyz"),
    (("text.xyz",), "text.xyz"),
    (("long-shebang.sh",), "xxx"),
    (("no-interpreter.sh",), "nosuch"),
    (("no-line.sh",), "names nothing"),
    (("env.sh",), "env without a program"),
    (("env-split.sh",), "env without a program"),
    (("env-nosuch.sh",), "help: correct the"),
    (("loop.sh",), "loop.sh"),
    (("dangling.py",), "dangling.py"),
    (("fifo",), "fifo"),
    (("/" + "/".join(["b" * 200] * 20),), "bbb"),
    ((f"{RLO}name",), "name"),
    (("bad\x1bname",), "bad"),
)

# Words of the other commands.
OTHERS = (
    (("nosuch",), "nosuch"),
    (("rnu", "true"), "run"),
    (("--nosuch",), "--nosuch"),
    (("policy",), "policy"),
    (("policy", "nosuch"), "nosuch"),
    (("policy", "check"), "file"),
    (("policy", "check", "--format", "xml", "t.toml"), "xml"),
    (("policy", "show"), "policy"),
    (("policy", "show", "nosuch"), "nosuch"),
    (("policy", "explain"), "key"),
    (("policy", "explain", "nosuch-thing"), "nosuch-thing"),
    (("policy", "explain", "limits.memroy"), "limits.memory"),
    (("policy", "explain", "over-budet"), "over-budget"),
    (("policy", "explain", "degarded"), "degraded"),
    (("policy", "diff", "default"), "two"),
    (("policy", "list", "x"), "operands"),
    (("policy", "audit", "nosuch"), "nosuch"),
    (("changes", "show"), "name"),
    (("changes", "show", "nosuch"), "nosuch"),
    (("changes", "diff", "../x"), "../x"),
    (("changes", "apply", "nosuch", "--yes"), "nosuch"),
    (("changes", "drop"), "name"),
    (("changes", "list", "x"), "operands"),
    (("completions",), "shell"),
    (("completions", "tcsh"), "bash"),
    (("help", "nosuch"), "nosuch"),
    (("why", "nosuch.json"), "nosuch.json"),
    (("why", "good.txt"), "JSON"),
    (("why", "d"), "'d'"),
    (("why", "a", "b"), "one record"),
    (("why", "fifo"), "fifo"),
    (("doctor", "-p", "nosuch"), "nosuch"),
    (("stop", "nosuch"), "nosuch"),
    (("version",), "--version"),
    (("--json", "run", "true"), "run"),
)

# Commands of sessions while one named "work" lives: the words, the status, its cause or place, and its cure.
SESSIONS = (
    ("rnu", 2, "session rnu", "has start, exec"),
    ("strat", 2, "session strat", "sbx session start"),
    ("extend work -5m", 2, "-5m", "-- -5m"),
    ("start BAD/NAME", 2, "BAD/NAME", "lower-case letters"),
    ("start work", 125, "exists already", "sbx session stop work"),
    ("start x -p nosuch", 125, "nosuch", "policies: default"),
    ("start x -p ./nosuch.toml", 125, "./nosuch.toml", "sbx policy list"),
    ("start x --timeout 5", 2, "--timeout", "--timeout 5s"),
    ("start x --memory 512", 2, "--memory", "--memory 512M"),
    ("start x --set session.idle=5", 125, "session.idle", "5s"),
    ("start x --set session.idel=5m", 125, "session.idel", "session.idle"),
    ("start x --set session.calls=-1", 125, "from 1 to 256", "session.calls=1"),
    ("start x --workspace nosuch", 125, "nosuch", "name a directory"),
    ("start x --workspace .:nosuch", 2, "--workspace", "overlay, read-only"),
    ("start x --nosuch", 2, "--nosuch", "sbx session start --help"),
    ("start x y", 2, "takes one name", "sbx session exec"),
    ("exec", 125, "nothing to run", "sbx session exec work make test"),
    ("exec work --", 125, "nothing to run", "sbx session exec work make test"),
    ("exec nosuch true", 125, "nosuch", "sbx session start nosuch"),
    ("exec work nosuch", 127, "'nosuch'", "sbx session start --read"),
    ("exec work --timeout 5 true", 125, "--timeout", "--timeout 5s"),
    ("exec work --timeout 0s true", 125, "limits.wall_time", "--timeout 1ms"),
    ("exec work --cwd nosuch true", 125, "--cwd", "cd DIR"),
    ("exec work --nosuch true", 125, "--nosuch", "sbx session exec --help"),
    ("eval", 125, "the name of a session", "sbx session list"),
    ("eval nosuch -c 1", 125, "nosuch", "sbx session start nosuch"),
    ("eval work --lang cobol -c 1", 125, "cobol", "python, javascript, r and bash"),
    ("eval work nosuch.py", 125, "nosuch.py", "-c"),
    ("eval work good.txt extra", 125, "takes one cell", "sbx session eval --help"),
    ("eval work d", 125, "'d' is a directory", "name a file"),
    ("eval work fifo", 125, "'fifo'", "start its writer"),
    ("eval work -c 1 good.txt", 125, "takes one cell", "sbx session eval --help"),
    ("eval work --context ../x -c 1", 125, "../x", "lower-case letters"),
    ("eval work --timeout 1 -c 1", 125, "--timeout", "--timeout 1s"),
    ("eval work cut.ipynb", 125, "cut.ipynb", "sbx run --cells cut.ipynb"),
    ("put", 2, "the name of a session", "sbx session list"),
    ("put work", 2, "a file to copy", "sbx session put --help"),
    ("put nosuch good.txt", 2, "nosuch", "sbx session start nosuch"),
    ("get", 2, "the name of a session", "sbx session list"),
    ("get work", 2, "a path to copy", "sbx session get --help"),
    ("get nosuch x", 2, "nosuch", "sbx session start nosuch"),
    ("get work x --nosuch", 2, "--nosuch", "sbx session get --help"),
    ("ls", 2, "the name of a session", "sbx session list"),
    ("ls nosuch", 2, "nosuch", "sbx session start nosuch"),
    ("ls work --nosuch", 2, "--nosuch", "sbx session ls --help"),
    ("logs", 2, "the name of a session", "sbx session list"),
    ("logs work", 2, "the number of a call", "sbx session calls work"),
    ("logs work nosuch", 2, "nosuch", "sbx session calls work"),
    ("logs work 99", 2, "no call 99", "sbx session calls work"),
    ("wait work", 125, "the number of a call", "sbx session calls work"),
    ("wait work 99", 125, "no call 99", "sbx session calls work"),
    ("kill work", 2, "the number of a call", "sbx session calls work"),
    ("kill work 99", 2, "no call 99", "sbx session calls work"),
    ("restart work nosuch", 2, "nosuch", "sbx session contexts work"),
    ("show", 2, "the name of a session", "sbx session list"),
    ("show nosuch", 2, "nosuch", "sbx session start nosuch"),
    ("stats nosuch", 2, "nosuch", "sbx session start nosuch"),
    ("calls nosuch", 2, "nosuch", "sbx session start nosuch"),
    ("list x", 2, '"x"', "sbx session list --help"),
    ("stop", 2, "the name of a session", "--all"),
    ("stop nosuch", 2, "nosuch", "sbx session list"),
    ("stop --nosuch", 2, "--nosuch", "sbx session stop --help"),
    ("diff work", 2, "not copy-on-write", "--workspace .:overlay"),
    ("apply work --yes", 2, "not copy-on-write", "--workspace .:overlay"),
    ("apply nosuch", 2, "nosuch", "sbx session list"),
    ("keep work", 2, "the name of a set", "sbx session keep work"),
    ("keep work bad/name", 2, "bad/name", "letters, digits"),
    ("keep work ''", 2, '""', "letters, digits"),
    ("keep work kept", 2, "not copy-on-write", "--workspace .:overlay"),
    ("keep nosuch kept", 2, "nosuch", "sbx session start nosuch"),
    ("extend work", 2, "a time", "30m or 2h"),
    ("extend nosuch 5m", 2, "nosuch", "sbx session start nosuch"),
)

# Notebooks and their parameters: the words after `run`, its cause or place, and its cure.
NOTEBOOKS = (
    ("--cells nosuch.ipynb", "nosuch.ipynb", ""),
    ("--cells good.txt", "good.txt", ".ipynb file"),
    ("--cells d", '"d" is a directory', ".ipynb file"),
    ("--cells fifo", "'fifo' is a FIFO", "start its writer first"),
    ("--cells -", "standard input", "--cells FILE.ipynb"),
    ("--cells cut.ipynb", "line 1, column 11", ".ipynb file"),
    ("--cells list.ipynb", "not a JSON object", ".ipynb file"),
    ("--cells old.ipynb", "nbformat 3", "jupyter nbconvert"),
    ("--cells cobol.ipynb", "cobol", "python, javascript, r and bash"),
    ("--cells good.ipynb --parameter n", '"n"', "--parameter rows=100"),
    ("--cells good.ipynb --parameter =1", "--parameter", "--parameter rows=100"),
    ("--cells good.ipynb --parameter 1n=1", "1n", "--parameter rows=100"),
    ("--cells good.ipynb extra", "takes one notebook", "sbx run --cells"),
    ("--cells good.ipynb -c 1", "-c and --cells", "sbx-run(1)"),
    ("--cells good.ipynb --lang cobol", "cobol", "python, javascript, r and bash"),
    ("--cells good.ipynb --session x", "--session and --cells", "sbx-run(1)"),
    ("--parameter n=1 true", "--parameter", "--cells FILE"),
)

# For every option of run that takes a value; some accept some of them.
ODD_VALUES = ("", " ", f"{RLO}x", "\x1b[31mred", "a\nb", "x" * 5000, "/" + "/".join(["y" * 250] * 16), "../" * 1200, "\udcff\udcfe", "=", ":::", "%s%n")


class BadInputs(SbxTest):
    def setUp(self):
        super().setUp()
        (self.work / "d").mkdir()
        os.mkfifo(self.work / "fifo")
        self.put("good.txt", "text\n")
        self.put("bad.env", "A=1\nhunter2\n")
        self.put("text.xyz", "text\n")
        self.put("long-shebang.sh", f"#!/usr/bin/{'x' * 300}\n", 0o755)
        self.put("no-interpreter.sh", "#!/nosuch/sh\n", 0o755)
        self.put("no-line.sh", "#!\n", 0o755)
        self.put("env.sh", "#!/usr/bin/env\n", 0o755)
        self.put("env-split.sh", "#!/usr/bin/env -S\n", 0o755)
        self.put("env-nosuch.sh", "#!/usr/bin/env nosuch\n", 0o755)
        (self.work / "loop.sh").symlink_to("loop.sh")
        (self.work / "dangling.py").symlink_to("nosuch.py")
        (self.work / "link.json").symlink_to("good.txt")
        self.names = sorted(os.listdir(self.work))

    def put(self, name, text, mode=0o644):
        path = self.work / name
        path.write_bytes(text.encode())
        path.chmod(mode)

    def judge(self, words, named, statuses):
        done = subprocess.run([SBX, *words], cwd=self.work, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
        told = f"{[word[:80] for word in words]} -> {done.returncode}\n{done.stdout!r}\n{done.stderr.decode('utf-8', 'replace')}"
        self.assertIn(done.returncode, statuses, told)
        text = done.stderr.decode()  # valid UTF-8
        lines = text.splitlines()
        if "--json" in words:
            self.assertEqual(json.loads(done.stdout)["schema"], "sbx.error/1", told)
        else:
            self.assertEqual(done.stdout, b"", told)
        self.assertEqual(sum(line.startswith("sbx: error[") for line in lines), 1, told)
        self.assertTrue(lines[0].startswith("sbx: error["), told)
        self.assertIn(named, text, told)
        self.assertIsNone(STEERING.search(text), told)
        self.assertLessEqual(max(len(line.encode()) for line in lines), LONGEST_LINE, told)
        self.assertEqual(sorted(os.listdir(self.work)), self.names, told)

    def check_policy(self, text, named):
        """`policy check` finds the error, and a run refuses the policy with the same words."""
        (self.work / "t.toml").write_bytes(text.encode())
        self.names = sorted(os.listdir(self.work))
        checked = subprocess.run([SBX, "policy", "check", "t.toml"], cwd=self.work, env=self.environment(), stdin=subprocess.DEVNULL,
                                 capture_output=True, timeout=120, check=False)
        told = f"{text[:200]!r}\n{checked.stdout.decode('utf-8', 'replace')}"
        self.assertEqual((checked.returncode, checked.stderr), (1, b""), told)
        self.assertIn("\n1 finding\n", checked.stdout.decode(), told)
        self.judge(("run", "-p", "./t.toml", "true"), named, (125,))

    def test_policies(self):
        for text, named in POLICIES:
            with self.subTest(text=text[:60]):
                self.check_policy(text, named)

    def test_values(self):
        for keys, values in WRONG.items():
            for number, value in enumerate(values):
                key = keys[number % len(keys)]
                with self.subTest(key=key, value=value):
                    table, _, name = key.rpartition(".")
                    head = f"schema = 1\n[{table}]\n" if table else "schema = 1\n"
                    self.check_policy(f"{head}{name} = {value}\n", key)

    def test_runs(self):
        for words, named in RUNS:
            with self.subTest(words=[word[:60] for word in words]):
                self.judge(("run", *words), named, (125, 126, 127))

    def test_other_commands(self):
        for words, named in OTHERS:
            with self.subTest(words=words):
                self.judge(words, named, (2, 125))

    def test_odd_values_of_every_option(self):
        known = subprocess.run([SBX, "help", "run"], capture_output=True, text=True, check=True).stdout
        options = sorted(set(re.findall(r"(--[a-z-]+)(?:\[?=| )\[?[A-Z]", known)))
        self.assertGreater(len(options), 20, known)
        for option in options:
            for value in ODD_VALUES:
                with self.subTest(option=option, value=value[:20]):
                    done = subprocess.run([SBX, "run", f"{option}={value}", "true"], cwd=self.work, env=self.environment(), stdin=subprocess.DEVNULL,
                                          capture_output=True, timeout=120, check=False)
                    told = f"{done.returncode}\n{done.stderr.decode('utf-8', 'replace')}"
                    text = done.stderr.decode()  # valid UTF-8
                    self.assertIn(done.returncode, (0, 1, 125, 126, 127), told)
                    if done.returncode:
                        self.assertEqual((sum(line.startswith("sbx: error[") for line in text.splitlines()), done.stdout), (1, b""), told)
                    self.assertIsNone(STEERING.search(text), told)
                    self.assertLessEqual(max((len(line.encode()) for line in text.splitlines()), default=0), LONGEST_LINE, told)

    def test_surroundings(self):
        for extra, named in (({"PATH": None}, "PATH"), ({"PATH": ""}, "PATH"), ({"SBX_POLICY": "nosuch"}, "SBX_POLICY"),
                             ({"SBX_POLICY": "./nosuch.toml"}, "SBX_POLICY")):
            with self.subTest(extra=extra):
                environment = {**self.environment(), **extra}
                environment = {name: value for name, value in environment.items() if value is not None}
                for words in (("true",), ("--lang", "python", "-c", "1")):
                    done = subprocess.run([SBX, "run", *words], cwd=self.work, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                                          text=True, timeout=120, check=False)
                    self.assertIn(done.returncode, (125, 127), done.stderr)
                    self.assertIn(named, done.stderr)
                    self.assertIn("help: ", done.stderr)
                    self.assertEqual(done.stdout, "")

    def test_a_path_that_is_not_utf8_is_named_and_its_cure_works(self):
        odd = self.work / os.fsdecode(b"odd\xff")
        odd.mkdir()
        (odd / "file").write_text("read")
        for option, path in (("--read", odd), ("--write", odd / "file"), ("--workspace", f"{odd}:overlay"), ("--set", f'filesystem.read=["{odd}"]')):
            ended = self.sbx(option, path, "--", "true", json_record=False)
            self.could_not(ended, "error[invalid-utf8]", r"odd\xff", f"is not UTF-8 ({option})", 'change into it and write "."')
        for options in (("--read", "."), ("--workspace", ".:overlay")):
            self.assertEqual(self.exited(self.sbx(*options, "--", "cat", "file", cwd=odd)).text, "read", options)
        self.assertEqual(self.exited(self.sbx("--read", self.work, "--", "cat", odd / "file")).text, "read")

    def test_the_policy_of_the_environment_is_used(self):
        ended = self.sbx("true", env=self.environment({"SBX_POLICY": "strict"}))
        self.assertEqual(ended.record["policy"]["name"], "strict", ended)
        ended = self.sbx("--policy", "default", "true", env=self.environment({"SBX_POLICY": "strict"}))
        self.assertEqual(ended.record["policy"]["name"], "default", ended)


class SessionInputs(SessionTest):
    def setUp(self):
        super().setUp()
        (self.work / "d").mkdir()
        os.mkfifo(self.work / "fifo")
        (self.work / "good.txt").write_text("text\n")
        (self.work / "cut.ipynb").write_text('{"cells": [')
        (self.work / "list.ipynb").write_text("[]")
        book = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
        (self.work / "good.ipynb").write_text(json.dumps(book))
        (self.work / "old.ipynb").write_text(json.dumps({**book, "nbformat": 3}))
        (self.work / "cobol.ipynb").write_text(json.dumps({**book, "metadata": {"kernelspec": {"name": "cobol", "language": "cobol", "display_name": "cobol"}}}))

    def judge(self, words, status, cause, cure):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        names = sorted(os.listdir(self.work))
        done = subprocess.run([SBX, *words], cwd=self.work, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        text = done.stderr.decode()  # valid UTF-8
        told = f"{words} -> {done.returncode}\n{done.stdout!r}\n{text}"
        self.assertEqual((done.returncode, done.stdout), (status, b""), told)
        first, *rest = text.splitlines()
        self.assertTrue(first.startswith("sbx: error["), told)
        self.assertIn(cause, first, told)
        if cure:
            self.assertIn(cure, "\n".join(line for line in rest if line.startswith("  help: ")), told)
        self.assertEqual(sorted(os.listdir(self.work)), names, told)
        self.assertLess(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1.0, told)

    def test_sessions(self):
        self.start_session()
        for words, status, cause, cure in SESSIONS:
            with self.subTest(words=words):
                self.judge(("session", *("" if word == "''" else word for word in words.split())), status, cause, cure)

    def test_notebooks(self):
        for words, cause, cure in NOTEBOOKS:
            with self.subTest(words=words):
                self.judge(("run", *words.split()), 125, cause, cure)



if __name__ == "__main__":
    sbxtest.main()

"""Invalid policies, options, paths, scripts and environments, all judged by the same rules: the status, one message
with the position and the fix, nothing on stdout, no byte that controls a terminal, no line longer than 300 bytes, and
nothing left behind."""

import json
import os
import re
import resource
import shutil
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
WORDS = ("isolation", "network.mode", "syscalls.base", "syscalls.denied", "filesystem.workspace.mode", "limits.disk_on", "output.exceed")
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

# Whole policies: the text, what the message must mention, and the text that follows its help, which is good; where no word of
# the help is in that, the words of the help.
GOOD = "schema = 1\n"
MEMORY = 'schema = 1\n[limits]\nmemory = "512M"\n'
POLICIES = (
    ("schema = 2\n", "schema", GOOD),
    ('schema = "1"\n', "schema", GOOD),
    ("schema = 1\n[limits\n", "t.toml:2", "schema = 1\n[limits]\n"),
    ('schema = 1\nname = "abc\n', "not closed", 'schema = 1\nname = "abc"\n'),
    ("schema = 1\nname = 'abc\n", "not closed", "schema = 1\nname = 'abc'\n"),
    ('schema = 1\nextends = ["default", \n', "t.toml", 'schema = 1\nextends = ["default"]\n'),
    ("schema = 1\nlimits = { memory = '1M'\n", "not closed", "schema = 1\nlimits = { memory = '1M' }\n"),
    ('{"schema": 1}\n', "JSON", MEMORY),
    ("schema: 1\nlimits:\n  memory: 1M\n", "YAML", MEMORY),
    ("---\nschema: 1\n", "YAML", MEMORY),
    ("%YAML 1.2\n", "YAML", MEMORY),
    ("- schema\n- name\n", "YAML", MEMORY),
    ('[{"schema": 1}]\n', "JSON", MEMORY),
    ("[\n1\n]\n", "JSON", MEMORY),
    ('<?xml version="1.0"?>\n', "XML", MEMORY),
    ("#!/bin/sh\necho hi\n", "script", MEMORY),
    ("%PDF-1.4\n", "binary", GOOD, "sbx policy init"),
    ("PK\x03\x04", "binary", GOOD, "sbx policy init"),
    ('schema = 1\nname = """abc\n', "not closed", 'schema = 1\nname = """abc"""\n'),
    ("schema = 1\nname = \'\'\'abc\n", "not closed", "schema = 1\nname = \'\'\'abc\'\'\'\n"),
    ("schema = 1\nread = [1,\n[limits]\n", "begins in line 2", "schema = 1\n[filesystem]\nread = ['/a']\n[limits]\n", "] at the end"),
    ("schema = 1\n[filesystem]\nread = ['/a'\n'/b']\n", "begins in line 3", "schema = 1\n[filesystem]\nread = ['/a',\n'/b']\n"),
    ("schema = 1 name = 'a'\n", "line of its own", "schema = 1\nname = 'a'\n"),
    ('schema = 1\nname = "C:\\temp\\q"\n', "backslash", 'schema = 1\ndescription = "C:\\\\temp\\\\q"\n', "write \\\\ for a backslash"),
    ('schema = 1\nname = "\\u12"\n', "backslash", "schema = 1\ndescription = '\\u12'\n", "single quotes"),
    ("schema = 1\nlocked = tru\n", "true or false", "schema = 1\nlocked = true\n"),
    ("schema = 1\nlocked = yes\n", "quotes", "schema = 1\nlocked = true\n"),
    ("schema = 1\nx = 1__0\n", "not a value", MEMORY),
    ("schema = 1\nx = 0x\n", "not a value", MEMORY),
    ("schema = 1\nx = 010\n", "remove the 0", "schema = 1\nlimits.processes = 10\n", "remove the 0"),
    ("schema = 1\nx = 2024-13-45\n", "not a value", MEMORY),
    ("schema = 1\nx = 99999999999999999999\n", "too large", "schema = 1\nlimits.processes = 99\n", "write a number below"),
    ("schema = 1\n[]\n", "names no table", "schema = 1\n[limits]\n"),
    ("schema = 1\n[limits]]\n", "text after the end", "schema = 1\n[limits]\n"),
    ("schema = 1\n= 1\n", "expected a key", MEMORY),
    ("schema = 1\n\"schema\" = 1\n", "line 1", GOOD),
    ("schema = 1\nlimits = { memory = '1M', }\n", "comma", "schema = 1\nlimits = { memory = '1M', disk = '1M' }\n", "a comma between two values"),
    ("\x00\x01\x02", "binary", GOOD, "sbx policy init"),
    ("\x7fELF\x02\x01", "binary", GOOD, "sbx policy init"),
    ("schema = 1\nschema = 1\n", "twice", GOOD),
    ("schema = 1\n[limits]\nmemory = '1M'\nmemory = '2M'\n", "line 3", "schema = 1\n[limits]\nmemory = '2M'\n"),
    ("schema = 1\n[limits]\n[limits]\n", "line 2", "schema = 1\n[limits]\n"),
    ("schema = 1\nname = \"a\x01b\"\n", "control character", 'schema = 1\ndescription = "a\\u0001b"\n', "an escape in a string"),
    (f"schema = 1\n{RLO}memory = 1\n", "t.toml:2", MEMORY),
    ("schema = 1\nlimits.memory = 512M\n", "quotes", 'schema = 1\nlimits.memory = "512M"\n'),
    ("schema = 1\nlimits.memory =\n", "missing", 'schema = 1\nlimits.memory = "512M"\n'),
    ("schema = 1\nlimits.memory \"1M\"\n", "'='", 'schema = 1\nlimits.memory = "1M"\n'),
    ("schema = 1\n" + "a." * 40 + "b = 1\n", "parts", GOOD),
    ("schema = 1\nx = " + "[" * 40 + "]" * 40 + "\n", "nested", GOOD),
    ("schema = 1\n" + "k" * 5000 + " = 1\n", "unknown", MEMORY),
    ('schema = 1\nextends = "nosuch"\n', "nosuch", 'schema = 1\nextends = "strict"\n'),
    ('schema = 1\nextends = "./nosuch.toml"\n', "nosuch.toml", 'schema = 1\nextends = "python"\n', "sbx policy list"),
    ('schema = 1\nextends = "./t.toml"\n', "circle", GOOD),
    ("schema = 1\nextends = 5\n", "extends", 'schema = 1\nextends = "default"\n'),
    ('schema = 1\nextends = "/etc/passwd"\n', "passwd", 'schema = 1\nextends = "./agent.toml"\n', "rename the file"),
    ("schema = 1\nlimits = 5\n", "table", "schema = 1\nlimits.processes = 5\n", "its keys are wall_time, cpu_time, cpus, memory, processes"),
    ("schema = 1\n[limits]\nmemroy = '1G'\n", "memory", "schema = 1\n[limits]\nmemory = '1G'\n"),
    ("schema = 1\n[netwrk]\nmode = 'none'\n", "network", "schema = 1\n[network]\nmode = 'none'\n"),
    ("schema = 1\n[filesystem]\nread = ['']\n", "empty", "schema = 1\n[filesystem]\nread = []\n"),
    ("schema = 1\n[filesystem]\nread = ['~nobody/x']\n", "~", "schema = 1\n[filesystem]\nread = ['~/x']\n", "~ alone is your own home"),
    ("schema = 1\n[filesystem]\nwrite = [{ target = '/x' }]\n", "source", "schema = 1\n[filesystem]\nwrite = [{ source = '/srv/data', target = '/x' }]\n"),
    ("schema = 1\n[filesystem]\nread = [{ source = '/etc', targte = '/x' }]\n", "target", "schema = 1\n[filesystem]\nread = [{ source = '/srv', target = '/x' }]\n"),
    ("schema = 1\n[filesystem]\nread = [{ source = '/etc', target = 'x' }]\n", "absolute", "schema = 1\n[filesystem]\nread = [{ source = '/srv', target = '/data' }]\n"),
    ("schema = 1\n[network]\nmode = 'allow-list'\nallow = ['http://']\n", "network.allow", "schema = 1\n[network]\nmode = 'allow-list'\nallow = ['api.example.com:443']\n"),
    ("schema = 1\n[network]\nmode = 'allow-list'\nallow = ['http://a.example/x']\n", "network.allow", "schema = 1\n[network]\nmode = 'allow-list'\nallow = ['a.example:80']\n"),
    ("schema = 1\n[network]\nmode = 'allow-list'\nallow = ['a b:443']\n", "network.allow", "schema = 1\n[network]\nmode = 'allow-list'\nallow = ['api.example.com:443']\n"),
    ("schema = 1\n[network]\nmode = 'allow-list'\nallow = ['example.com:99999']\n", "port", "schema = 1\n[network]\nmode = 'allow-list'\nallow = ['example.com:443']\n"),
    ("schema = 1\n[network]\nmode = 'allow-list'\nallow = ['10.0.0.0/33:80']\n", "10.0.0.0/33", "schema = 1\n[network]\nmode = 'allow-list'\nallow = ['10.0.0.0/8:443']\n"),
    ("schema = 1\n[network]\nmode = 'allow-list'\nallow = ['2001:db8::1:443']\n", "brackets", "schema = 1\n[network]\nmode = 'allow-list'\nallow = ['[2001:db8::1]:443']\n"),
    ("schema = 1\n[network]\nmode = 'allow-list'\nallow = ['127.0.0.1:80']\n", "host.sbx.internal", "schema = 1\n[network]\nmode = 'allow-list'\nallow = ['host.sbx.internal:80']\n"),
    ("schema = 1\n[network]\npublish = ['80']\n", "publish", "schema = 1\n[network]\npublish = ['127.0.0.1:8080:80']\n"),
    ("schema = 1\n[network]\npublish = ['0.0.0.0:80:80']\n", "publish", "schema = 1\n[network]\npublish = ['127.0.0.1:8080:80']\n"),
    ("schema = 1\n[syscalls]\nallow = ['opne']\n", "open", "schema = 1\n[syscalls]\nallow = ['open']\n"),
    ("schema = 1\n[syscalls]\nallow = ['@debgu']\n", "@debug", "schema = 1\n[syscalls]\nallow = ['@debug']\n"),
    ("schema = 1\n[syscalls]\ndeny = ['execve']\n", "execve", "schema = 1\n[syscalls]\ndeny = []\n"),
    ("schema = 1\n[[syscalls.rule]]\nname = 'ioctl'\n", "action", "schema = 1\n[[syscalls.rule]]\nname = 'ioctl'\naction = 'deny'\n"),
    ("schema = 1\n[[syscalls.rule]]\nname = 'nosuch'\naction = 'deny'\n", "nosuch", "schema = 1\n[[syscalls.rule]]\nname = 'ptrace'\naction = 'deny'\n", "syscalls(2)"),
    ("schema = 1\n[environment]\nset = { '1A' = 'x' }\n", "1A", "schema = 1\n[environment]\nset = { 'A_1' = 'x' }\n", "letters, digits and _"),
    ("schema = 1\n[environment]\nset = { A = 5 }\n", "string", "schema = 1\n[environment]\nset = { A = '5' }\n"),
    ("schema = 1\n[interpreters]\nextensions = { py = 5 }\n", "extensions", 'schema = 1\n[interpreters]\nextensions = { py = ["python3"] }\n'),
)

# Words after `sbx run`, what the message must mention, and the words that follow its help, which work. What these have and the
# bad ones have not stands in the help; or else the next member does. The last one: the statuses of what works, if not 0.
RUNS = (
    ((), "command", ("script.py",)),
    (("",), "empty", ("./script.py",)),
    (("--",), "command", ("script.py",)),
    (("nosuch-command-xyz",), "nosuch-command-xyz", ("./script.py",)),
    (("./nosuch.py",), "nosuch.py", ("./script.py",)),
    (("nosuch.py",), "nosuch.py", ("./script.py",)),
    (("ls | wc -l",), "bash", ("--lang", "bash", "-c", "ls | wc -l")),
    ((".",), "directory", ("./script.py",)),
    (("d",), "directory", ("./script.py",)),
    (("--nosuch", "true"), "--nosuch", ("--help",)),
    (("--memry", "1G", "true"), "--memory", ("--memory", "1G", "true")),
    (("-policy", "strict", "true"), "--policy", ("--policy", "strict", "true")),
    (("-json", "true"), "--json", ("--json", "true")),
    (("--timeout",), "--timeout", ("--help",)),
    (("--timeout", "", "true"), "--timeout", ("--timeout", "30s", "true")),
    (("--timeout", "30", "true"), "30s", ("--timeout", "30s", "true")),
    (("--timeout", "-1s", "true"), "--timeout", ("--timeout", "5m", "true")),
    (("--timeout", "9999999h", "true"), "8760h", ("--timeout", "8760h", "true")),
    (("--memory", "256MB", "true"), "256M", ("--memory", "256M", "true")),
    (("--memory", "1", "true"), "--memory", ("--memory", "512M", "true")),
    (("--memory", "0B", "true"), "1M", ("--memory", "1M", "true"), None, (0, 125, 137)),  # too little for any program
    (("--cpus", "0", "true"), "above 0", ("--cpus", "0.5", "true")),
    (("--cpus", "two", "true"), "--cpus", ("--cpus", "2", "true")),
    (("--processes", "-1", "true"), "--processes", ("--processes", "64", "true")),
    (("--processes", "4194304", "true"), "4194303", ("--processes", "4194303", "true")),
    (("--output", "lots", "true"), "--output", ("--output", "64K", "true")),
    (("--disk", "1", "true"), "--disk", ("--disk", "1M", "true")),
    (("--set", "limits.memory", "true"), "KEY=VALUE", ("--set", 'limits.memory="512M"', "true")),
    (("--set", "limits.memory=512M", "true"), '"512M"', ("--set", 'limits.memory="512M"', "true")),
    (("--set", "limits.memroy='1G'", "true"), "memory", ("--set", "limits.memory='1G'", "true"), "limits.memory"),
    (("--set", "=1", "true"), "--set", ("--set", 'limits.memory="512M"', "true")),
    (("--set", "limits.memory='1M'\nlocked=true", "true"), "--set", ("--set", 'limits.memory="512M"', "true")),
    (("--set", "limits.open_files=8", "true"), "16", ("--set", "limits.open_files=16", "true")),
    (("--set", f"{RLO}=1", "true"), "unknown", ("--set", "limits.processes=100", "true"), "sbx-policy(5)"),
    (("-p", "nosuch", "true"), "nosuch", ("-p", "strict", "true")),
    (("-p", "pyton", "true"), "python", ("-p", "python", "true")),
    (("-p", "", "true"), "policy", ("-p", "python", "true")),
    (("-p", "./nosuch.toml", "true"), "nosuch.toml", ("-p", "python", "true"), "sbx policy list"),
    (("-p", "d", "true"), "d", ("-p", "agent", "true")),
    (("-p", "/dev/null", "true"), "null", ("-p", "./good.toml", "true"), "a regular file"),
    (("-p", "p" * 5000, "true"), "policy", ("-p", "default", "true")),
    (("--require", "nosuch", "true"), "landlock", ("--require", "landlock", "true"), None, (0, 125)),  # not on each machine
    (("--lang", "klingon", "-c", "1"), "klingon", ("--lang", "python", "-c", "1")),
    (("--lang", "pyhton", "-c", "1"), "python", ("--lang", "python", "-c", "1")),
    (("-c", "1"), "--lang", ("--lang", "python", "-c", "1")),
    (("--lang", "python", "ls"), "ls", ("ls",), "without --lang"),
    (("--net", "none", "--allow-host", "a.example:443", "true"), "--net", ("--allow-host", "a.example:443", "true"), "leave out one"),
    (("--net", "bridge", "true"), "--net", ("--net", "none", "true")),
    (("--allow-host", "", "true"), "--allow-host", ("true",), "leave it out"),
    (("--allow-host", "localhost:80", "true"), "host.sbx.internal", ("--allow-host", "host.sbx.internal:80", "true")),
    (("--allow-host", "a.example:0", "true"), "port", ("--allow-host", "a.example:443", "true"), '"443"'),
    (("--allow-host", "a.example:http", "true"), "port", ("--allow-host", "a.example:80,443", "true"), '"80,443"'),
    (("--allow-host", "*", "true"), "*", ("--allow-host", "*.example.org:443", "true")),
    (("--env", "1A=x", "true"), "1A", ("--env", "MODE=test", "true")),
    (("--env", "=x", "true"), "--env", ("--env", "MODE=test", "true")),
    (("--env", "A B=x", "true"), "A B", ("--env", "MODE=test", "true")),
    (("--env-file", "nosuch", "true"), "nosuch", ("--env-file", "good.env", "true"), "NAME=VALUE"),
    (("--env-file", "d", "true"), '"d" is a directory', ("--env-file", "good.env", "true"), "NAME=VALUE"),
    (("--env-file", "bad.env", "true"), "line 2", ("--env-file", "good.env", "true"), "put # before the line"),
    (("--env-file", "fifo", "true"), "fifo", ("--env-file", "good.env", "true"), "start its writer first"),
    (("--env-fd", "99", "true"), "99", ("--env-fd", "0", "true"), "3<secrets"),
    (("--env-fd", "x", "true"), "--env-fd", ("--env-fd", "0", "true"), "for example"),
    (("--report", "nosuch/r.json", "true"), "nosuch", ("--report", "d/r.json", "true"), "mkdir -p nosuch"),
    (("--report", "d", "true"), "d", ("--report", "d/r.json", "true"), "name a file in it"),
    (("--report", "link.json", "true"), "link", ("--report", "/dev/stdout", "true")),
    (("--report-fd", "99", "true"), "99", ("--report-fd", "1", "true"), "3>FILE"),
    (("--in", "nosuch", "true"), "nosuch", ("--in", "good.txt", "true"), "a file that is there"),
    (("--in", "d", "true"), "d", ("--read", "d", "true")),
    (("--in", "good.txt:rel:x", "true"), "colon", ("--in", r"good.txt:rel\:x", "true"), r"\:"),
    (("--read", "nosuch", "true"), "nosuch", ("--read", "good.txt", "true"), "name what exists"),
    (("--read", "", "true"), "--read", ("--read", "./data.csv", "true")),
    (("--read", "good.txt:rel", "true"), "absolute", ("--read", "good.txt:/rel", "true"), r"\:"),
    (("--write", "nosuch", "true"), "nosuch", ("true",), "leave out --write"),
    (("--workspace", "nosuch:overlay", "true"), "nosuch", ("--workspace", ".:overlay", "true"), "name a directory"),
    (("--workspace", ".:overlap", "true"), "overlay", ("--workspace", ".:overlay", "true"), '"overlay"'),
    (("--workspace", "good.txt:overlay", "true"), "good.txt", ("--workspace", "d:overlay", "true"), "name a directory"),
    (("--out", "good.txt", "true"), "good.txt", ("--out", "d", "true"), "name a directory"),
    (("--collect", "*.c", "true"), "--out", ("--out", "d", "--collect", "*.c", "true"), "--out DIR"),
    (("--yes", "true"), "--apply", ("-p", "python", "--apply", "--yes", "true"), "--apply --yes"),
    (("--apply=", "true"), "--apply", ("-p", "python", "--apply", "--yes", "true"), "--apply alone"),
    (("--keep", "../x", "true"), "../x", ("-p", "python", "--keep", "cleanup-1", "true"), "cleanup-1"),
    (("--keep", "", "true"), "--keep", ("-p", "python", "--keep", "cleanup", "true"), "--keep cleanup"),
    (("--stdin", "nosuch", "true"), "nosuch", ("--stdin", "null", "true")),
    (("--venv", "nosuch", "true"), "nosuch", ("--venv", "environment", "true"), "python3 -m venv DIR"),
    (("--venv", "d", "true"), "d", ("--venv", "environment", "true"), "python3 -m venv DIR"),
    (("--color", "blue", "true"), "always", ("--color", "always", "true")),
    (("-v", "x.xyz"), "x.xyz", ("./script.py",)),
    (("text.xyz",), "text.xyz", ("--lang", "sh", "text.xyz"), None, (0, 127)),  # it is no program
    (("long-shebang.sh",), "xxx", ("--lang", "sh", "long-shebang.sh"), "--lang"),
    (("no-interpreter.sh",), "nosuch", ("--lang", "sh", "no-interpreter.sh"), "--lang"),
    (("no-line.sh",), "names nothing", ("--lang", "sh", "no-line.sh"), "--lang"),
    (("env.sh",), "env without a program", ("--lang", "sh", "env.sh"), "--lang"),
    (("env-split.sh",), "env without a program", ("--lang", "sh", "env-split.sh"), "--lang"),
    (("env-nosuch.sh",), "help: correct the", ("--lang", "sh", "env-nosuch.sh"), "--lang"),
    (("loop.sh",), "loop.sh", ("./script.py",)),
    (("dangling.py",), "dangling.py", ("./script.py",)),
    (("fifo",), "fifo", ("--lang", "sh", "-"), "--lang NAME -"),
    (("/" + "/".join(["b" * 200] * 20),), "bbb", ("./script.py",)),
    ((f"{RLO}name",), "name", ("./script.py",)),
    (("bad\x1bname",), "bad", ("basename", "x"), "'basename'"),
)

# Words of the other commands, in the same form.
OTHERS = (
    (("nosuch",), "nosuch", ("help",)),
    (("rnu", "true"), "run", ("run", "true")),
    (("--nosuch",), "--nosuch", ("--help",)),
    (("policy",), "policy", ("policy", "list")),
    (("policy", "nosuch"), "nosuch", ("policy", "schema")),
    (("policy", "check"), "file", ("policy", "check", "agent.toml")),
    (("policy", "check", "--format", "xml", "t.toml"), "xml", ("policy", "check", "--format", "json", "good.toml"), "json"),
    (("policy", "show"), "policy", ("policy", "list")),
    (("policy", "show", "nosuch"), "nosuch", ("policy", "show", "agent")),
    (("policy", "explain"), "key", ("policy", "explain", "limits.memory")),
    (("policy", "explain", "nosuch-thing"), "nosuch-thing", ("policy", "explain", "limits.memory"), "sbx-policy(5)"),
    (("policy", "explain", "limits.memroy"), "limits.memory", ("policy", "explain", "limits.memory")),
    (("policy", "explain", "over-budet"), "over-budget", ("policy", "explain", "over-budget")),
    (("policy", "explain", "degarded"), "degraded", ("policy", "explain", "degraded")),
    (("policy", "diff", "default"), "two", ("policy", "diff", "default", "agent.toml"), None, (0, 1)),
    (("policy", "list", "x"), "operands", ("policy", "list"), "sbx policy list"),
    (("policy", "audit", "nosuch"), "nosuch", ("policy", "audit", "strict")),
    (("changes", "show"), "name", ("changes", "list")),
    (("changes", "show", "nosuch"), "nosuch", ("changes", "list")),
    (("changes", "diff", "../x"), "../x", ("changes", "list"), "cleanup-1"),
    (("changes", "apply", "nosuch", "--yes"), "nosuch", ("changes", "list")),
    (("changes", "drop"), "name", ("changes", "list")),
    (("changes", "list", "x"), "operands", ("changes", "list"), "sbx changes list"),
    (("completions",), "shell", ("completions", "bash")),
    (("completions", "tcsh"), "bash", ("completions", "fish")),
    (("help", "nosuch"), "nosuch", ("help",), '"sbx help"'),
    (("why", "nosuch.json"), "nosuch.json", ("why", "record.json"), "name a file with a record"),
    (("why", "good.txt"), "JSON", ("why", "record.json"), "--report FILE"),
    (("why", "d"), "'d'", ("why", "record.json"), "name a file with a record"),
    (("why", "a", "b"), "one record", ("why", "record.json"), "a file"),
    (("why", "fifo"), "fifo", ("why", "record.json"), "start its writer first"),
    (("doctor", "-p", "nosuch"), "nosuch", ("doctor", "-p", "strict"), "strict", (0, 1)),
    (("stop", "nosuch"), "nosuch", ("ps",)),
    (("version",), "--version", ("--version",)),
    (("--json", "run", "true"), "run", ("run", "--json", "true"), "sbx run --json"),
)

# Commands of sessions while "work" and the copy-on-write "copy" live: the words, the status, its cause or place, its cure, and
# the words of sbx that follow the cure, which work; without them the cure is such a line.
SESSIONS = (
    ("rnu", 2, "session rnu", "has start, exec", "session exec work true"),
    ("strat", 2, "session strat", "sbx session start", "session start x"),
    ("extend work -5m", 2, "-5m", "no sign: 5m", "session extend work 5m"),
    ("extend work -- -5m", 2, "-5m", "sbx session stop NAME ends it", "session extend work 5m"),
    ("start BAD/NAME", 2, "BAD/NAME", "lower-case letters", "session start bad-name"),
    ("start work", 125, "exists already", "sbx session stop work"),
    ("start x -p nosuch", 125, "nosuch", "policies: default", "session start x -p default"),
    ("start x -p ./nosuch.toml", 125, "./nosuch.toml", "sbx policy list"),
    ("start x --timeout 5", 2, "--timeout", "--timeout 5s", "session start x --timeout 5s"),
    ("start x --memory 512", 2, "--memory", "--memory 512M", "session start x --memory 512M"),
    ("start x --set session.idle=5", 125, "session.idle", "5s", 'session start x --set session.idle="5s"'),
    ("start x --set session.idel=5m", 125, "session.idel", "session.idle", 'session start x --set session.idle="5m"'),
    ("start x --set session.calls=-1", 125, "from 1 to 256", "session.calls=1", "session start x --set session.calls=1"),
    ("start x --workspace nosuch", 125, "nosuch", "name a directory", "session start x --workspace d:overlay"),
    ("start x --workspace .:nosuch", 2, "--workspace", "overlay, read-only", "session start x --workspace .:overlay"),
    ("start x --nosuch", 2, "--nosuch", "sbx session start --help"),
    ("start x y", 2, "takes one name", "sbx session exec", "session exec work true"),
    ("exec", 125, "nothing to run", "sbx session exec work make test", "session exec work true"),
    ("exec work --", 125, "nothing to run", "sbx session exec work make test", "session exec work true"),
    ("exec nosuch true", 125, "nosuch", "sbx session start nosuch"),
    ("exec work nosuch", 127, "'nosuch'", "sbx session start --read", "session start x --read good.txt"),
    ("exec work --timeout 5 true", 125, "--timeout", "--timeout 5s", "session exec work --timeout 5s true"),
    ("exec work --timeout 0s true", 125, "limits.wall_time", "--timeout 1ms", "session exec work --timeout 1m true"),
    ("exec work --cwd nosuch true", 125, "--cwd", "sbx session ls NAME lists", "session exec work --cwd /tmp true"),
    ("exec work --workdir nosuch true", 125, "--workdir", "--cwd DIR", "session exec work --cwd /tmp true"),
    ("exec work --nosuch true", 125, "--nosuch", "sbx session exec --help"),
    ("eval", 125, "the name of a session", "sbx session list"),
    ("eval nosuch -c 1", 125, "nosuch", "sbx session start nosuch"),
    ("eval work --lang cobol -c 1", 125, "cobol", "python, javascript, r and bash", "session eval work --lang bash -c true"),
    ("eval work nosuch.py", 125, "nosuch.py", "-c", "session eval work -c 1"),
    ("eval work good.txt extra", 125, "takes one cell", "sbx session eval --help"),
    ("eval work d", 125, "'d' is a directory", "name a file", "session eval work cell.py"),
    ("eval work fifo", 125, "'fifo'", "start its writer", "session eval work cell.py"),
    ("eval work -c 1 good.txt", 125, "takes one cell", "sbx session eval --help"),
    ("eval work --context ../x -c 1", 125, "../x", "lower-case letters", "session eval work --context x -c 1"),
    ("eval work --timeout 1 -c 1", 125, "--timeout", "--timeout 1s", "session eval work --timeout 1m -c 1"),
    ("eval work good.ipynb", 125, "good.ipynb", "sbx run --cells good.ipynb"),
    ("put", 2, "the name of a session", "sbx session list"),
    ("put work", 2, "a file to copy", "sbx session put --help"),
    ("put nosuch good.txt", 2, "nosuch", "sbx session start nosuch"),
    ("get", 2, "the name of a session", "sbx session list"),
    ("get work", 2, "a path to copy", "sbx session get --help"),
    ("get nosuch x", 2, "nosuch", "sbx session start nosuch"),
    ("get work x --nosuch", 2, "--nosuch", "sbx session get --help"),
    ("ls", 2, "the name of a session", "sbx session list"),
    ("ls nosuch", 2, "nosuch", "sbx session start nosuch"),
    ("put work -", 2, "whose name must be given", "sbx session put NAME - TARGET", "session put work good.txt"),
    ("get work nosuch --as x", 125, "'nosuch' in the session", "sbx session ls NAME", "session ls work"),
    ("get work x --offset 5", 2, "--offset", "--as FILE", "session get copy good.txt --as - --offset 1"),
    ("ls work --depth 0", 2, "--depth", "1 lists", "session ls work --depth 1"),
    ("stat work", 2, "needs one path", "sbx session stat --help"),
    ("stat work nosuch", 125, "'nosuch' in the session", "sbx session ls NAME", "session ls work"),
    ("rm work", 2, "needs one path", "sbx session stop work"),
    ("mkdir work", 2, "needs one path", "sbx session mkdir --help"),
    ("mv work x", 2, "a path and a target", "sbx session mv --help"),
    ("rm work nosuch", 125, "'nosuch' in the session", "sbx session ls NAME", "session ls work"),
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
    ("stop", 2, "the name of a session", "--all", "session stop --all"),
    ("stop nosuch", 2, "nosuch", "sbx session list"),
    ("stop --nosuch", 2, "--nosuch", "sbx session stop --help"),
    ("diff work", 2, "not copy-on-write", "--workspace .:overlay", "session diff copy"),
    ("apply work --yes", 2, "not copy-on-write", "--workspace .:overlay", "session apply copy --yes"),
    ("apply nosuch", 2, "nosuch", "sbx session list"),
    ("keep work", 2, "the name of a set", "sbx session keep work", "session keep copy kept"),
    ("keep work bad/name", 2, "bad/name", "letters, digits", "session keep copy good-name"),
    ("keep work ''", 2, '""', "letters, digits", "session keep copy name"),
    ("keep work kept", 2, "not copy-on-write", "--workspace .:overlay", "session keep copy kept"),
    ("keep nosuch kept", 2, "nosuch", "sbx session start nosuch"),
    ("extend work", 2, "a time", "30m or 2h", "session extend work 30m"),
    ("extend nosuch 5m", 2, "nosuch", "sbx session start nosuch"),
)

# Notebooks and their parameters: the words after `run`, its cause or place, its cure, and the words that follow it.
NOTEBOOKS = (
    ("--cells", "--cells needs a value", "--cells FILE", "--cells good.ipynb"),
    ("--cells nosuch.ipynb", "nosuch.ipynb", "", "--cells good.ipynb"),
    ("--cells good.txt", "good.txt", ".ipynb file", "--cells good.ipynb"),
    ("--cells d", '"d" is a directory', ".ipynb file", "--cells good.ipynb"),
    ("--cells fifo", "'fifo' is a FIFO", "start its writer first", "--cells good.ipynb"),
    ("--cells -", "standard input", "--cells FILE.ipynb", "--cells good.ipynb"),
    ("--cells cut.ipynb", "line 1, column 11", ".ipynb file", "--cells good.ipynb"),
    ("--cells list.ipynb", "not a JSON object", ".ipynb file", "--cells good.ipynb"),
    ("--cells old.ipynb", "nbformat 3", "jupyter nbconvert", "--cells good.ipynb"),
    ("--cells cobol.ipynb", "cobol", "python, javascript, r and bash", "--cells good.ipynb --lang python"),
    ("--cells good.ipynb --parameter n", '"n"', "--parameter rows=100", "--cells good.ipynb --parameter rows=100"),
    ("--cells good.ipynb --parameter =1", "--parameter", "--parameter rows=100", "--cells good.ipynb --parameter rows=100"),
    ("--cells good.ipynb --parameter 1n=1", "1n", "--parameter rows=100", "--cells good.ipynb --parameter rows=100"),
    ("--cells good.ipynb extra", "takes one notebook", "sbx run --cells", "--cells good.ipynb --out results"),
    ("--cells good.ipynb -c 1", "-c and --cells", "sbx-run(1)", "--cells good.ipynb"),
    ("--cells good.ipynb --lang cobol", "cobol", "python, javascript, r and bash", "--cells good.ipynb --lang python"),
    ("--cells good.ipynb --session x", "--session and --cells", "sbx-run(1)", "--cells good.ipynb"),
    ("--parameter n=1 true", "--parameter", "--cells FILE", "--parameter n=1 --cells good.ipynb"),
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
        self.put("good.env", "A=1\n# hunter2\n")
        self.put("data.csv", "a,b\n")
        self.put("script.py", "print(1)\n")
        self.put("good.toml", "schema = 1\n")
        self.put("agent.toml", 'schema = 1\nextends = "agent"\n')
        self.put("environment/pyvenv.cfg", "home = /usr/bin\n")
        (self.work / "environment/bin").mkdir()
        (self.work / "environment/bin/python").symlink_to("/usr/bin/python3")
        subprocess.run([SBX, "run", "--report", "record.json", "true"], cwd=self.work, env=self.environment(), stdin=subprocess.DEVNULL, check=True)
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
        path.parent.mkdir(exist_ok=True)
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
        return "\n".join(line[8:] for line in lines if line.startswith("  help: "))

    def follow(self, words, cure, help_words, phrase=None, statuses=(0,), before=()):
        """What the help says is what the cured line has and the bad one has not; and that line works."""
        told = f"{[word[:80] for word in words]}: {help_words!r}"
        self.assertTrue(help_words, told)
        for word in [phrase] if phrase else [word for word in cure if word not in words]:
            self.assertIn(word, help_words, told)
        done = subprocess.run([SBX, *before, *cure], cwd=self.work, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
        self.assertIn(done.returncode, statuses, f"{told}\n{cure}: {done.stderr.decode('utf-8', 'replace')}")
        for made in set(os.listdir(self.work)) - set(self.names):
            os.unlink(self.work / made)

    def check_policy(self, text, named, cured, phrase=None):
        """`policy check` finds the error, a run refuses the policy with the same words, and what the help says is good."""
        (self.work / "t.toml").write_bytes(text.encode())
        self.names = sorted(os.listdir(self.work))
        checked = subprocess.run([SBX, "policy", "check", "t.toml"], cwd=self.work, env=self.environment(), stdin=subprocess.DEVNULL,
                                 capture_output=True, timeout=120, check=False)
        told = f"{text[:200]!r}\n{checked.stdout.decode('utf-8', 'replace')}"
        self.assertEqual((checked.returncode, checked.stderr), (1, b""), told)
        self.assertIn("\n1 finding\n", checked.stdout.decode(), told)
        help_words = self.judge(("run", "-p", "./t.toml", "true"), named, (125,))
        self.assertTrue(help_words, told)
        added = set(re.findall(r"[\w.@/-]+", cured)) - set(re.findall(r"[\w.@/-]+", text))
        self.assertTrue(phrase in help_words if phrase else not added or any(word in help_words for word in added), f"{added}: {help_words}")
        (self.work / "t.toml").write_text(cured)
        good = subprocess.run([SBX, "policy", "check", "t.toml"], cwd=self.work, env=self.environment(), capture_output=True, text=True, check=False)
        self.assertEqual(good.returncode, 0, f"{cured!r}: {good.stdout}")

    def test_policies(self):
        for text, named, cured, *phrase in POLICIES:
            with self.subTest(text=text[:60]):
                self.check_policy(text, named, cured, *phrase)

    def test_values(self):
        for keys, values in WRONG.items():
            for number, value in enumerate(values):
                key = keys[number % len(keys)]
                with self.subTest(key=key, value=value):
                    table, _, name = key.rpartition(".")
                    head = f"schema = 1\n[{table}]\n" if table else "schema = 1\n"
                    checked = self.findings(f"{head}{name} = {value}\n")
                    written = re.search(rf"write ({name} = .*?)(?:;|$)", checked, re.MULTILINE)
                    cure = f"{name} = " + value.replace("5", '"name"').replace('["a"]', '"127.0.0.1:8080:80"') if "in quotes" in checked else written and written[1]
                    self.assertIsNotNone(cure, checked)
                    self.check_policy(f"{head}{name} = {value}\n", key, f"{head}{cure}\n", "in quotes" if "in quotes" in checked else written[1])

    def findings(self, text):
        (self.work / "t.toml").write_text(text)
        return subprocess.run([SBX, "policy", "check", "t.toml"], cwd=self.work, env=self.environment(), capture_output=True, text=True, check=False).stdout

    def test_runs(self):
        for words, named, cure, *more in RUNS:
            with self.subTest(words=[word[:60] for word in words]):
                self.follow(words, cure, self.judge(("run", *words), named, (125, 126, 127)), *more, before=("run",))

    def test_other_commands(self):
        for words, named, cure, *more in OTHERS:
            with self.subTest(words=words):
                self.follow(words, cure, self.judge(words, named, (2, 125)), *more)

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
        (self.work / "cell.py").write_text("1\n")
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

    def follow(self, words):
        """What a cure says works; then all is as before."""
        names = set(os.listdir(self.work))
        done = subprocess.run([SBX, *words], cwd=self.work, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")
        for made in set(os.listdir(self.work)) - names:
            shutil.rmtree(self.work / made)

    def base(self):
        """The sessions that each row finds."""
        live = {each["name"] for each in self.sbx_session("list", "--json").json["sessions"]}
        for name in live - {"work", "copy"}:
            self.assertEqual(self.sbx_session("stop", name).status, 0)
        for name in {"work", "copy"} - live:
            self.start_session(*(("--workspace", ".:overlay") if name == "copy" else ()), name=name)
        self.run_sbx("changes", "drop", *{each["name"] for each in json.loads(self.run_sbx("changes", "list", "--json").out)["sets"]})
        self.sbx_session("exec", "copy", "--", "sh", "-c", "echo new >good.txt")

    def test_sessions(self):
        for words, status, cause, cure, *cured in SESSIONS:
            with self.subTest(words=words):
                self.base()
                self.judge(("session", *("" if word == "''" else word for word in words.split())), status, cause, cure)
                line = cured[0] if cured else cure.removeprefix("sbx ")
                self.assertTrue(cured or line != cure, cure)
                self.follow(line.split())

    def test_notebooks(self):
        for words, cause, cure, cured in NOTEBOOKS:
            with self.subTest(words=words):
                self.judge(("run", *words.split()), 125, cause, cure)
                self.follow(("run", *cured.split()))


if __name__ == "__main__":
    sbxtest.main()

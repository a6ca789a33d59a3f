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
    (("--lang", "python", "-c", "1", "-c", "2"), '-c is given twice: "1" and "2"', ("--lang", "python", "-c", "1", "-c", "1"), "join the two"),
    (("--cells", "a.ipynb", "--cells", "b.ipynb"), '--cells is given twice: "a.ipynb" and "b.ipynb"', ("true",), "a command of its own"),
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
    (("--workspace", ".:rw", "true"), '"rw"', ("--workspace", ".:read-write", "true"), "read-write"),
    (("--workspace", ".:ro", "true"), '"ro"', ("--workspace", ".:read-only", "true"), "read-only"),
    (("--workspace", ".:overlap", "true"), "overlay", ("--workspace", ".:overlay", "true"), '"overlay"'),
    (("--workspace", "good.txt:overlay", "true"), "good.txt", ("--workspace", "d:overlay", "true"), "name a directory"),
    (("--out", "", "true"), "--out", ("--out", "results", "true"), "--out results"),
    (("-p", "8080:80", "true"), "8080:80", ("--set", "network.publish=[]", "true"), 'network.publish=["127.0.0.1:8080:80"]'),
    (("--out", "good.txt", "true"), "good.txt", ("--out", "d", "true"), "name a directory"),
    *((("%s=~/x" % option, "true"), "~/x", (option, cured, "true"), f'{option} "$HOME/x"')
      for option, cured in (("--out", "results"), ("--report", "d/r.json"), ("--env-file", "good.env"), ("--stdin", "null"))),
    (("--out=~", "true"), '"~"', ("--out", "results", "true"), '--out "$HOME"'),
    (("--out=~/a b", "true"), "~/a b", ("--out", "results", "true"), """--out "$HOME"'/a b'"""),
    (("--apply", "*.csv", "true"), '"*.csv"', ("-p", "python", "--apply=*.csv", "--yes", "true"), "--apply='*.csv'", (1,)),
    (("--output", "out.ipynb", "true"), "out.ipynb", ("--out", "results", "true"), "--out DIR"),
    (("--allow-host", "a.example,b.example:80,443", "true"), "one host", ("--allow-host", "a.example", "--allow-host", "b.example:80,443", "true"),
     "--allow-host a.example --allow-host b.example:80,443"),
    (("--read", "good.txt:/w:ro", "true"), "colon", ("--read", "good.txt:/w", "true"), "--read good.txt:/w"),
    (("--read", "d:/w:rw", "true"), "colon", ("--write", "d:/w", "true"), "--write d:/w"),
    (("--read", "good.txt:ro", "true"), '"ro"', ("--read", "good.txt", "true"), "--read good.txt"),
    (("cd", "d"), "'cd'", ("--workspace", "d:overlay", "true"), "sbx run --workspace d:overlay COMMAND"),
    (("export", "A=1"), "'export'", ("--env", "A=1", "env"), "sbx run --env A=1 COMMAND"),
    (("source", "environment/bin/activate"), "'source'", ("--venv", "environment", "true"), "sbx run --venv environment COMMAND"),
    (("shopt", "-s", "nullglob"), "'shopt'", ("--", "bash", "-c", "shopt -s nullglob && true"), "sbx run -- bash -c 'shopt -s nullglob && COMMAND'"),
    (("A=1", "B=2", "env"), "'A=1'", ("--env", "A=1", "--env", "B=2", "env"), "sbx run --env A=1 --env B=2 env"),
    (("papermill", "x.ipynb", "y.ipynb"), "'papermill'", ("true",), "sbx run -p python --out results --cells x.ipynb"),
    (("jupyter-execute", "x.ipynb"), "'jupyter-execute'", ("true",), "--cells x.ipynb"),
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
    (("sandbox", "list"), "sandbox", ("session", "list"), "sbx session list"),
    (("containers", "ls"), "containers", ("session", "list"), "sbx session list"),
    (("mcp", "install", "claude", "--print", "-p", "agent"), "-p", ("mcp", "install", "claude", "--print", "--", "-p", "agent"),
     "sbx mcp install claude --print -- -p agent"),
    (("--json", "run", "true"), "run", ("run", "--json", "true"), "sbx run --json"),
)

# Commands of sessions while "work" and the copy-on-write "copy" live: the words, the status, its cause or place, its cure, and
# the words of sbx that follow the cure, which work; without them the cure is such a line.
SESSIONS = (
    ("rnu", 2, "session rnu", "has start, exec", "session exec work true"),
    ("strat", 2, "session strat", "sbx session start", "session start x"),
    ("extend work -5m", 2, "-5m", "no sign: 5m", "session extend work 5m"),
    ("extend work -- -5m", 2, "-5m", "sbx session stop work ends it", "session extend work 5m"),
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
    ("eval work --context '' -c 1", 125, "--context", "--context second", "session eval work --context second -c 1"),
    ("exec work --cwd nosuch true", 125, "--cwd", "sbx session ls work lists", "session exec work --cwd /tmp true"),
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
    ("put work good.txt work:b.txt", 2, "work:b.txt", "sbx session put work good.txt b.txt", "session put work good.txt b.txt"),
    ("put good.txt work:", 2, "the session first", "sbx session put work good.txt", "session put work good.txt"),
    ("get copy copy:good.txt .", 2, "copy:good.txt", "sbx session get copy good.txt", "session get copy good.txt --out d"),
    ("get copy:good.txt d", 2, "the session first", "sbx session get copy good.txt --out d", "session get copy good.txt --out d"),
    ("get copy good.txt .", 2, '"."', "--out DIR", "session get copy good.txt --out d"),
    ("get copy good.txt ./", 2, '"."', "leave it out", "session get copy good.txt --out d"),
    ("get copy good.txt cell.py", 2, '"good.txt" already', "sbx session get copy good.txt --as cell.py", "session get copy good.txt --as d/x"),
    ("get copy nosuch good.txt d", 2, '"good.txt" already', "sbx session get copy nosuch good.txt --out d", "session get copy good.txt --out d"),
    ("get copy nosuch /tmp", 2, 'the host has "/tmp" too', "sbx session get copy nosuch --out /tmp", "session get copy good.txt --out d"),
    ("get copy nosuch /etc/passwd", 2, 'the host has "/etc/passwd" too', "sbx session get copy nosuch --as /etc/passwd", "session get copy good.txt --as d/x"),
    ("get copy nosuch nowhere /etc/", 2, 'the host has "/etc/" too', "sbx session get copy nosuch nowhere --out /etc/", "session get copy good.txt --out d"),
    ("get copy good.txt --as ~/x", 2, "~/x", '--as "$HOME/x"', "session get copy good.txt --as d/x"),
    ("eval work --results ~/x -c 1", 125, "~/x", '--results "$HOME/x"', "session eval work --results d -c 1"),
    ("get good.txt work", 2, "good.txt", "sbx session get work good.txt", "session get copy good.txt --as d/x"),
    ("put good.txt work", 2, "good.txt", "sbx session put work good.txt"),
    ("exec true work", 125, '"true"', "sbx session exec work true"),
    ("eval 1+1 work", 125, "'work'", "sbx session eval work -c 1+1"),
    ("exec copy cd d", 127, "'cd'", "sbx session exec copy --cwd d COMMAND", "session exec copy --cwd d true"),
    ("exec work A=1 env", 127, "'A=1'", "sbx session exec work --env A=1 env"),
    ("exec work --memory 1G true", 125, "--memory", "sbx session start NAME --memory", "session start x --memory 1G"),
    ("exec work --apply true", 125, "--apply", "sbx session apply NAME", "session diff copy"),
    ("start x --kernel python", 2, "--kernel", "sbx session eval NAME --lang", "session eval work --lang python -c 1"),
    ("start x --template base", 2, "--template", "-p POLICY", "session start x -p python"),
    ("start x --out d", 2, "--out", "sbx session get NAME PATH --out DIR", "session get copy good.txt --out d"),
    ("eval work --language python -c 1", 125, "--language", "--lang python", "session eval work --lang python -c 1"),
    ("eval work --code 1", 125, "--code", "-c CODE", "session eval work -c 1"),
    ("eval work -e A=1 -c 1", 125, '"-e"', "--env NAME=VALUE", "session eval work --env A=1 -c 1"),
    ("eval work --out d -c 1", 125, "--out", "--results DIR", "session eval work --results d -c 1"),
    ("get work x --nosuch", 2, "--nosuch", "sbx session get --help"),
    ("ls", 2, "the name of a session", "sbx session list"),
    ("ls nosuch", 2, "nosuch", "sbx session start nosuch"),
    ("put work -", 2, "whose name must be given", "sbx session put work - TARGET", "session put work good.txt"),
    ("get work nosuch --as x", 125, "'nosuch' in the session", "sbx session ls work", "session ls work"),
    ("get work x --offset 5", 2, "--offset", "--as FILE", "session get copy good.txt --as - --offset 1"),
    ("ls work --depth 0", 2, "--depth", "1 lists", "session ls work --depth 1"),
    ("stat work", 2, "needs one path", "sbx session stat --help"),
    ("stat work nosuch", 125, "'nosuch' in the session", "sbx session ls work", "session ls work"),
    ("rm work", 2, "needs one path", "sbx session stop work"),
    ("mkdir work", 2, "needs one path", "sbx session mkdir --help"),
    ("mv work x", 2, "a path and a target", "sbx session mv --help"),
    ("rm work nosuch", 125, "'nosuch' in the session", "sbx session ls work", "session ls work"),
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
    ("send", 2, "the name of a session", "sbx session list"),
    ("send work", 2, "the number of a call", "sbx session calls work"),
    ("send nosuch 1 x", 2, "nosuch", "sbx session start nosuch"),
    ("send work x y", 2, '"x"', "sbx session calls work"),
    ("send work 1.5 x", 2, '"1.5"', "sbx session calls work"),
    ("send work 99999999999999999999 x", 2, "99999999999999999999", "sbx session calls work"),
    ("send work 99 x", 2, "no call 99", "sbx session calls work"),
    ("send work -1 x", 2, '"-1"', "-- -1", "session calls work"),
    ("send work 1 x y", 2, '"y"', "sbx session send --help"),
    ("send work 1", 2, "what is to be sent", "--end alone", "session send --help"),
    ("send work 1 --nosuch x", 2, "--nosuch", "sbx session send --help"),
    ("context", 2, "the name of a session", "sbx session list"),
    ("context nosuch", 2, "nosuch", "sbx session start nosuch"),
    ("context work --lang cobol", 2, "cobol", "python, javascript, r and bash", "session context work --lang bash"),
    ("context work --lang ''", 2, "--lang", "--lang python", "session contexts work"),
    ("context work --lang", 2, "--lang needs a value", "--lang NAME", "session contexts work"),
    ("context work --cwd nosuch", 2, "no directory 'nosuch'", "sbx session ls work", "session ls work"),
    ("context copy --cwd good.txt", 2, "'good.txt'", "sbx session ls copy", "session context copy --lang bash --cwd d"),
    ("context work --cwd ''", 2, "--cwd", "--cwd src", "session contexts work"),
    ("context work x", 2, '"x"', "sbx session context --help"),
    ("context work --nosuch", 2, "--nosuch", "sbx session context --help"),
    ("close", 2, "the name of a session", "sbx session list"),
    ("close work", 2, "a session and a context", "sbx session contexts work"),
    ("close work nosuch", 2, "nosuch", "sbx session contexts work"),
    ("close work ../x", 2, "../x", "sbx session contexts work"),
    ("close work ''", 2, '""', "sbx session contexts work"),
    ("close work a b", 2, '"b"', "sbx session close --help"),
    ("close nosuch python", 2, "nosuch", "sbx session start nosuch"),
    ("contexts", 2, "the name of a session", "sbx session list"),
    ("contexts nosuch", 2, "nosuch", "sbx session start nosuch"),
    ("contexts work x", 2, '"x"', "sbx session contexts --help"),
    ("contexts work --nosuch", 2, "--nosuch", "sbx session contexts --help"),
    ("interrupt", 2, "the name of a session", "sbx session list"),
    ("interrupt nosuch", 2, "nosuch", "sbx session start nosuch"),
    ("interrupt work nosuch", 2, "nosuch", "sbx session contexts work"),
    ("interrupt work ../x", 2, "../x", "sbx session contexts work"),
    ("interrupt work a b", 2, '"b"', "sbx session interrupt --help"),
    ("restart", 2, "the name of a session", "sbx session list"),
    ("restart nosuch", 2, "nosuch", "sbx session start nosuch"),
    ("restart work ../x", 2, "../x", "sbx session contexts work"),
    ("restart work a b", 2, '"b"', "sbx session restart --help"),
    ("calls", 2, "the name of a session", "sbx session list"),
    ("calls work x", 2, '"x"', "sbx session calls --help"),
    ("logs nosuch 1", 2, "nosuch", "sbx session start nosuch"),
    ("logs work -1", 2, '"-1"', "-- -1", "session calls work"),
    ("logs work 1 2", 2, '"2"', "sbx session logs --help"),
    ("wait", 125, "the name of a session", "sbx session list"),
    ("wait nosuch 1", 125, "nosuch", "sbx session start nosuch"),
    ("wait work x", 125, '"x"', "sbx session calls work"),
    ("wait work 1 2", 125, '"2"', "sbx session wait --help"),
    ("kill", 2, "the name of a session", "sbx session list"),
    ("kill nosuch 1", 2, "nosuch", "sbx session start nosuch"),
    ("kill work x", 2, '"x"', "sbx session calls work"),
    ("kill work 1 NOSUCH", 2, "NOSUCH", "INT, TERM or 9", "session calls work"),
    ("kill work 1 99", 2, '"99"', "INT, TERM or 9", "session calls work"),
    ("kill work -1", 2, '"-1"', "-- -1", "session calls work"),
    ("put work ''", 2, "an empty path", ". is the session's directory", "session put work good.txt"),
    ("put work good.txt ''", 2, "an empty path", ". is the session's directory", "session put work good.txt ."),
    ("put work - ''", 2, "an empty path", ". is the session's directory", "session put work - made"),
    ("put work - /usr/x", 125, "'/usr/x' in the session", "sbx session ls work", "session put work - /tmp/x"),
    ("put work good.txt --nosuch", 2, "--nosuch", "sbx session put --help"),
    ("get work ''", 2, "an empty path", ". is the session's directory", "session get copy good.txt --as -"),
    ("get copy good.txt --out good.txt", 2, "good.txt", "name a directory", "session get copy good.txt --out d"),
    ("get copy good.txt --as d", 125, "'d' is a directory", "the name of a file", "session get copy good.txt --as -"),
    ("get copy good.txt --as ''", 2, "--as", "--as chart.png", "session get copy good.txt --as -"),
    ("get copy good.txt --as nosuch/deep/x", 2, "nosuch", "mkdir -p nosuch", "session get copy good.txt --as d/x"),
    ("get copy good.txt cell.py --as x", 2, "takes one path", "sbx session get --help"),
    ("get copy good.txt --as x --out d", 2, "--as and --out", "--as names the file itself", "session get copy good.txt --as d/x"),
    ("get copy d --as -", 125, "'d' in the session", "sbx session ls copy", "session ls copy d"),
    ("get copy good.txt --as - --offset -1", 2, "--offset", "--offset 4096", "session get copy good.txt --as - --offset 1"),
    ("get copy good.txt --as - --limit x", 2, "--limit", "--limit 20000", "session get copy good.txt --as - --limit 3"),
    ("get copy good.txt --as - --limit 99999999999999999999", 2, "--limit", "--limit 20000", "session get copy good.txt --as - --limit 3"),
    ("ls work a b", 2, "lists one directory", "sbx session ls --help"),
    ("ls work ''", 2, "an empty path", ". is the session's directory", "session ls work ."),
    ("ls work --depth -1", 2, "--depth", "--depth 2", "session ls work --depth 2"),
    ("ls work --depth x", 2, "--depth", "--depth 2", "session ls work --depth 2"),
    ("ls work --depth 99999999999", 2, "from 1 to 1000", "1 lists", "session ls work --depth 1"),
    ("stat work ''", 2, "an empty path", ". is the session's directory", "session stat work ."),
    ("stat work a b", 2, "one path", "sbx session stat --help"),
    ("stat nosuch /tmp", 2, "nosuch", "sbx session start nosuch"),
    ("stat work --nosuch", 2, "--nosuch", "sbx session stat --help"),
    ("mkdir nosuch /tmp/x", 2, "nosuch", "sbx session start nosuch"),
    ("mkdir work /usr/x", 125, "'/usr/x' in the session", "sbx session ls work", "session mkdir work /tmp/made/x"),
    ("mkdir work ''", 2, "an empty path", ". is the session's directory", "session mkdir work made-now"),
    ("mkdir work /tmp/a /tmp/b", 2, "one path", "sbx session mkdir --help"),
    ("mkdir copy good.txt", 125, "File exists", "a directory that is not there", "session mkdir copy made-here"),
    ("mkdir copy good.txt/x", 125, "'good.txt/x' in the session", "sbx session ls copy", "session ls copy"),
    ("mv nosuch a b", 2, "nosuch", "sbx session start nosuch"),
    ("mv work nosuch b", 125, "'nosuch' in the session", "sbx session stat work nosuch", "session ls work"),
    ("mv copy good.txt ''", 2, "an empty path", ". is the session's directory", "session mv copy good.txt d/good.txt"),
    ("mv copy d cell.py", 125, "'d' in the session", "a target that is not there", "session mkdir copy other"),
    ("mv copy cell.py /usr/x", 125, "cross-device", "sbx session exec copy -- mv", "session exec copy -- mv cell.py /tmp/x"),
    ("mv copy a b c", 2, "a path and a target", "sbx session mv --help"),
    ("rm nosuch x", 2, "nosuch", "sbx session start nosuch"),
    ("rm copy other", 125, "Is a directory", "sbx session rm -r copy other"),
    ("rm copy a b", 2, "one path", "sbx session rm --help"),
    ("rm -r work /", 125, "'/' in the session", "by its own name", "session ls work /"),
    ("rm -r copy .", 125, "'.' in the session", "by its own name", "session ls copy ."),
    ("rm -r work ''", 2, "an empty path", ". is the session's directory", "session ls work"),
    ("rm -r work /usr", 125, "'/usr' in the session", "sbx session ls work", "session ls work"),
    ("changes", 2, "the name of a session", "sbx session list"),
    ("changes nosuch", 2, "nosuch", "sbx session start nosuch"),
    ("changes work", 2, "not copy-on-write", "--workspace .:overlay", "session changes copy"),
    ("changes copy x", 2, '"x"', "sbx session changes --help"),
    ("diff nosuch", 2, "nosuch", "sbx session start nosuch"),
    ("diff copy x", 2, '"x"', "sbx session diff --help"),
    ("diff copy --nosuch", 2, "--nosuch", "sbx session diff --help"),
    ("apply copy", 2, "no terminal", "--yes", "session apply copy --yes"),
    ("keep copy a b", 2, '"b"', "sbx session keep --help"),
    ("keep", 2, "the name of a session", "sbx session list"),
    ("list --nosuch", 2, "--nosuch", "sbx session list --help"),
    ("show ../x", 2, "../x", "lower-case letters", "session show work"),
    ("show work x", 2, '"x"', "sbx session show --help"),
    ("stats", 2, "the name of a session", "sbx session list"),
    ("stats work x", 2, '"x"', "sbx session stats --help"),
    ("extend", 2, "the name of a session", "sbx session list"),
    ("extend work 0s", 2, '"0s"', "30s, 30m or 2h", "session extend work 30m"),
    ("extend work 5", 2, '"5"', "30s, 30m or 2h", "session extend work 5m"),
    ("extend work 5m x", 2, '"x"', "sbx session extend --help"),
    ("extend work 99999h", 125, "session.lifetime", "by less", "session extend work 1h"),
    ("stop work nosuch", 2, "nothing was stopped", "sbx session list"),
    ("stop --keep", 2, "--keep needs a value", "--keep NAME", "session stop --keep kept copy"),
    ("stop --keep x work", 2, "the session lives on", "--workspace .:overlay", "session stop work"),
    ("stop --keep bad/name copy", 2, "bad/name", "cleanup-1", "session stop --keep cleanup-1 copy"),
    ("stop --all work", 2, "--all and a name", "sbx session list"),
    ("start x --processes 0", 125, "limits.processes", "--processes 1", "session start x --processes 64"),
    ("start x --disk 0B", 125, "limits.disk", "--disk 64K", "session start x --disk 64K"),
    ("start a_b", 2, "a_b", "lower-case letters", "session start a-b"),
    ("start -- -x", 2, "-x", "not beginning with a hyphen", "session start x"),
    ("start x --env 1A=x", 2, "1A", "MODE=test", "session start x --env MODE=test"),
    ("start x --allow-host a.example:0", 125, "a port number", '"443"', "session start x --allow-host a.example:443"),
    ("start x --read nosuch", 125, "nosuch", "name what exists", "session start x --read good.txt"),
    ("start x --write nosuch", 125, "nosuch", "leave out --write", "session start x"),
    ("start x --venv d", 125, "virtual environment", "python3 -m venv DIR", "session start x"),
    ("start x --net bridge", 2, "bridge", "none, host", "session start x --net none"),
    ("exec work ''", 126, "cannot run './'", "chmod +x FILE", "session exec work true"),
    ("exec work ./nosuch", 127, "./nosuch", "sbx session put work FILE", "session put work good.txt"),
    ("exec work --env 1A=x true", 125, "1A", "MODE=test", "session exec work --env MODE=test true"),
    ("exec work --env-file nosuch true", 125, "nosuch", "NAME=VALUE", "session exec work --env A=1 true"),
    ("exec work --stdin nosuch true", 125, "nosuch", "", "session exec work --stdin good.txt true"),
    ("exec work -c 1", 125, "needs --lang", "--lang python", "session exec work --lang python -c 1"),
    ("exec work --lang cobol -c 1", 125, "cobol", "it knows python", "session exec work --lang python -c 1"),
    ("exec ../x true", 125, "../x", "lower-case letters", "session exec work true"),
    ("eval work --env 1A=x -c 1", 125, "1A", "MODE=test", "session eval work --env MODE=test -c 1"),
    ("eval work --memory 1G -c 1", 125, "--memory", "sbx session start NAME --memory", "session start x --memory 1G"),
    ("eval work --results good.txt -c 1", 125, "good.txt", "name a directory", "session eval work --results d -c 1"),
    ("eval work --nosuch -c 1", 125, "--nosuch", "sbx session eval --help"),
    ("eval work -c", 125, "-c needs a value", "-c CODE", "session eval work -c 1"),
    ("eval ../x -c 1", 125, "../x", "lower-case letters", "session eval work -c 1"),
)

# `sbx mcp`, in the form of OTHERS; what cures it prints its tools and ends.
MCP = (
    ("mcp nosuch", "takes no operands", "serves on standard input", "mcp tools"),
    ("mcp --nosuch", "--nosuch", "sbx mcp --help", "mcp --help"),
    ("mcp -p", "-p needs a value", "-p POLICY", "mcp tools -p agent"),
    ("mcp -p nosuch", "nosuch", "policies: default", "mcp tools -p default"),
    ("mcp -p ./nosuch.toml", "./nosuch.toml", "sbx policy list", "policy list"),
    ("mcp --workspace nosuch", "nosuch", "name a directory", "mcp tools --workspace d"),
    ("mcp --workspace .:nosuch", "nosuch", "overlay, read-only", "mcp tools --workspace .:overlay"),
    ("mcp --memory 512", "--memory", "--memory 512M", "mcp tools --memory 512M"),
    ("mcp --timeout 5", "--timeout", "--timeout 5s", "mcp tools --timeout 5s"),
    ("mcp --set x", "KEY=VALUE", "limits.memory", 'mcp tools --set limits.memory="512M"'),
    ('mcp --set limits.memroy="1G"', "limits.memroy", "limits.memory", 'mcp tools --set limits.memory="1G"'),
    ("mcp --read nosuch", "nosuch", "name what exists", "mcp tools --read good.txt"),
    ("mcp --allow-host a.example:0", "a port number", '"443"', "mcp tools --allow-host a.example:443"),
    ("mcp --net bridge", "bridge", "none, host", "mcp tools --net none"),
    ("mcp --session BAD/NAME", "BAD/NAME", "lower-case letters", "mcp tools"),
    ("mcp --log d", "'d'", "name a file", "mcp tools"),
    ("mcp --log nosuch/x", "nosuch/x", "a directory that is there", "mcp tools"),
    ("mcp tools nosuch", "takes no operands", "serves on standard input", "mcp tools"),
    ("mcp tools --nosuch", "--nosuch", "sbx mcp tools --help", "mcp tools --help"),
    ("mcp tools -p nosuch", "nosuch", "policies: default", "mcp tools -p strict"),
    ("mcp tools --sha256 x", "takes no operands", "serves on standard input", "mcp tools --sha256"),
)

# Notebooks and their parameters: the words after `run`, its cause or place, its cure, and the words that follow it.
NOTEBOOKS = (
    ("--cells", "--cells needs a value", "--cells FILE", "--cells good.ipynb"),
    ("--cells nosuch.ipynb", "nosuch.ipynb", ".ipynb file", "--cells good.ipynb"),
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
    ("--cells good.ipynb -p n 1", "takes one notebook", "--parameter NAME=VALUE", "--cells good.ipynb --parameter n=1"),
    ("--cells good.ipynb extra", "takes one notebook", "sbx run --cells", "--cells good.ipynb --out results"),
    ("--cells good.ipynb -c 1", "-c and --cells", "sbx-run(1)", "--cells good.ipynb"),
    ("--cells good.ipynb --lang cobol", "cobol", "python, javascript, r and bash", "--cells good.ipynb --lang python"),
    ("--cells good.ipynb --session x", "--session and --cells", "sbx-run(1)", "--cells good.ipynb"),
    ("--parameter n=1 true", "--parameter", "--cells FILE", "--parameter n=1 --cells good.ipynb"),
    ("--cells ''", "--cells", "--cells report.ipynb", "--cells good.ipynb"),
    ("--cells good.ipynb --parameter", "--parameter needs a value", "NAME=VALUE", "--cells good.ipynb --parameter rows=1"),
    ("--cells good.ipynb --parameter ''", "--parameter", "--parameter rows=100", "--cells good.ipynb --parameter rows=100"),
    ("--cells good.ipynb --parameter a.b=1", '"a.b"', "--parameter rows=100", "--cells good.ipynb --parameter rows=100"),
    ("--keep-going true", "--keep-going", "--cells FILE", "--keep-going --cells good.ipynb"),
    ("--cells good.ipynb --output out.ipynb", "out.ipynb", "--out DIR", "--cells good.ipynb --out results"),
    ("--cells ~/good.ipynb", "~/good.ipynb", '--cells "$HOME/good.ipynb"', "--cells good.ipynb"),
    ("--cells good.ipynb --out good.txt", "good.txt", "name a directory", "--cells good.ipynb --out results"),
    ("--cells good.ipynb --out .", "--out would replace", "another directory", "--cells good.ipynb --out results"),
    ("--cells good.ipynb --collect *.png", "--collect", "--out DIR", "--cells good.ipynb --out results --collect *.png"),
    *((f"--cells good.ipynb {option}", f"{option.split()[0]} and --cells", "sbx-run(1)", "--cells good.ipynb")
      for option in ("--keep x", "--diff", "--apply", "--yes", "--dry-run", "--stdin null", "--explain", "--cwd d", "--die-with-parent", "--trace-time")),
    ("--cells good.ipynb --github", "--github and --cells", "sbx run --cells FILE --out DIR >FILE", "--cells good.ipynb --out results"),
    ("--cells good.ipynb -i", "-i and --cells", "sbx session eval -i work", "--cells good.ipynb"),
    ("--cells good.ipynb --events-fd 1", "--events-fd", "3>FILE", "--cells good.ipynb"),
    ("--cells one.ipynb -p nosuch", "nosuch", "policies: default", "--cells one.ipynb -p default"),
    ("--cells one.ipynb --workspace nosuch", "nosuch", "name a directory", "--cells one.ipynb --workspace d:overlay"),
    ("--cells one.ipynb --read nosuch", "nosuch", "name what exists", "--cells one.ipynb --read good.txt"),
    ("--cells good.ipynb --report nosuch/x", "nosuch", "mkdir -p nosuch", "--cells good.ipynb --report d/x"),
    ("--cells good.ipynb --report d", '"d"', "name a file in it", "--cells good.ipynb --report d/x"),
    ("--cells good.ipynb --timeout 5", "--timeout", "--timeout 5s", "--cells good.ipynb --timeout 5s"),
    ("--cells good.ipynb --memory 1", "--memory", "--memory 1M", "--cells good.ipynb --memory 512M"),
    ("--cells good.ipynb --env 1A=1", "1A", "MODE=test", "--cells good.ipynb --env MODE=test"),
    ("--session BAD/NAME true", "BAD/NAME", "lower-case letters", "-- true"),
    ("--session '' true", "--session", "--session work", "-- true"),
    ("--session x --out d true", "--out and --session", "sbx session get x", "--out d true"),
    ("--session x --diff true", "--diff and --session", "sbx session diff x", "--diff true"),
    ("--session x --keep y true", "--keep and --session", "sbx session keep x", "--keep y true"),
    ("--session x", "nothing to run", "sbx run script.py", "-- true"),
    ("--cwd d true", "--cwd without --session", "--workspace d:overlay", "--workspace d:overlay true"),
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

    def test_a_cure_with_an_odd_name_can_be_pasted(self):
        for name in ("a\nb", "a\u200bb", "a\u3164b", "a\x1b[1mb", "it's\t\\x", "a\x01'; touch taken #", os.fsdecode(b"odd\xff"), "plain b"):
            ended = self.sbx("--report", f"{name}/r.json", "--", "true", json_record=False)
            self.assertEqual(ended.status, 125, ended)
            text = ended.err.decode()  # valid UTF-8
            self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\u200b\u3164]")
            line = re.search(r"^  help: make the directory first: (mkdir -p .*)$", text, re.MULTILINE)
            self.assertIsNotNone(line, text)
            subprocess.run(["bash", "-c", line[1]], cwd=self.work, check=True)
            self.assertTrue((self.work / name).is_dir(), text)
            # A shell that does not know $'…' makes another name of it, and runs nothing.
            subprocess.run(["sh", "-c", line[1]], cwd=self.work, check=True)
            self.assertFalse((self.work / "taken").exists(), text)

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
        cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": "1", "outputs": [], "execution_count": None}
        (self.work / "one.ipynb").write_text(json.dumps({**book, "cells": [cell], "nbformat_minor": 5}))
        (self.work / "old.ipynb").write_text(json.dumps({**book, "nbformat": 3}))
        (self.work / "cobol.ipynb").write_text(json.dumps({**book, "metadata": {"kernelspec": {"name": "cobol", "language": "cobol", "display_name": "cobol"}}}))

    def judge(self, words, status, cause, cure):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        names = sorted(os.listdir(self.work))
        done = subprocess.run([SBX, *words], cwd=self.work, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        text = done.stderr.decode()  # valid UTF-8
        told = f"{words} -> {done.returncode}\n{done.stdout!r}\n{text}"
        self.assertIn(done.returncode, status if isinstance(status, tuple) else (status,), told)
        self.assertEqual(done.stdout, b"", told)
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
            (shutil.rmtree if (self.work / made).is_dir() else os.unlink)(self.work / made)

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
                self.judge(("session", *self.typed(words)), status, cause, cure)
                line = cured[0] if cured else cure.removeprefix("sbx ")
                self.assertTrue(cured or line != cure, cure)
                self.follow(line.split())

    def test_notebooks(self):
        for words, cause, cure, cured in NOTEBOOKS:
            with self.subTest(words=words):
                self.judge(("run", *self.typed(words)), 125, cause, cure)
                self.follow(("run", *cured.split()))
                self.run_sbx("changes", "drop", "y")

    @staticmethod
    def typed(words):
        return ["" if word == "''" else word for word in words.split()]

    def test_mcp(self):
        for words, cause, cure, cured in MCP:
            with self.subTest(words=words):
                self.judge(self.typed(words), (2, 125), cause, cure)
                self.follow(cured.split())

    def test_there_are_many(self):
        self.assertGreaterEqual(len(SESSIONS) + len(NOTEBOOKS) + len(MCP), 200)
        self.assertEqual(len({words for words, *_ in (*SESSIONS, *NOTEBOOKS, *MCP)}), len(SESSIONS) + len(NOTEBOOKS) + len(MCP))


if __name__ == "__main__":
    sbxtest.main()

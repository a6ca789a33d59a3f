"""Completions, loaded in real shells: what they offer where."""

import os
import pty
import select
import shutil
import subprocess
import unittest

import sbxtest
from harness import wait_until
from sbxtest import SBX, SOURCE, SbxTest

# The words before the cursor, some words that must be offered, and some that must not.
EXPECTED = [
    (["sbx", ""], {"run", "policy", "completions"}, {"serve", "list"}),
    (["sbx", "pol"], {"policy"}, {"run"}),
    (["sbx", "policy", ""], {"list", "show", "check", "diff", "schema", "init", "audit", "explain"}, {"run"}),
    (["sbx", "policy", "show", "da"], {"data-analysis"}, {"python"}),
    (["sbx", "policy", "show", "ag"], {"agent"}, {"python"}),
    (["sbx", "policy", "show", "mi"], {"mine"}, {"python"}),
    (["sbx", "policy", "show", "--"], {"--effective", "--origin", "--json"}, {"--timeout"}),
    (["sbx", "policy", "explain", "@de"], {"@debug"}, {"@mount"}),
    (["sbx", "policy", "explain", "unknown-k"], {"unknown-key"}, {"unknown-word"}),
    (["sbx", "policy", "check", "--format", ""], {"human", "json", "github", "sarif"}, {"default"}),
    (["sbx", "run", "-p", "str"], {"strict"}, {"shell"}),
    (["sbx", "run", "--policy", "of"], {"offline-build"}, {"shell"}),
    (["sbx", "run", "--set", "limits.mem"], {"limits.memory="}, {"limits.cpus="}),
    (["sbx", "run", "--require", "land"], {"landlock"}, {"all"}),
    (["sbx", "run", "--timeo"], {"--timeout"}, {"--memory"}),
    (["sbx", "run", "--lang", "py"], {"python"}, {"node"}),
    (["sbx", "policy", "explain", "over-b"], {"over-budget"}, {"exited"}),
    (["sbx", "completions", ""], {"bash", "zsh", "fish"}, {"run"}),
    (["sbx", "help", "session", "ex"], {"exec", "extend"}, {"start"}),
    (["sbx", "session", "eval", "s", "--lang", ""], {"python", "javascript", "r", "bash"}, {"go"}),
    (["sbx", "session", "st"], {"start", "stop", "stats"}, {"exec"}),
]


class Completions(SbxTest):
    def setUp(self):
        super().setUp()
        self.write(".config/sbx/policies/mine.toml", "schema = 1\n", directory=self.home)
        self.path = f"{os.path.dirname(SBX)}:/usr/local/bin:/usr/bin:/bin"

    def offered(self, *words):
        done = subprocess.run([SBX, "__complete", *words], env=self.environment(), cwd=self.work, capture_output=True, text=True, check=True)
        how, *lines = done.stdout.splitlines()
        return how, {line.split("\t")[0] for line in lines}

    def shell(self, name):
        program = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin")
        if program is None:
            raise unittest.SkipTest(f"{name} is not installed")
        script = subprocess.run([SBX, "completions", name], capture_output=True, text=True, check=True).stdout
        return program, script

    def expect(self, offered):
        for words, wanted, unwanted in EXPECTED:
            got = offered(words)
            self.assertLessEqual(wanted, got, words)
            self.assertFalse(unwanted & got, (words, unwanted & got))

    def test_bash(self):
        program, script = self.shell("bash")
        path = self.write("sbx.bash", script)

        def offered(words):
            array = " ".join(f"'{word}'" for word in words)
            done = subprocess.run([program, "--norc", "-c", f"source {path}; COMP_WORDS=({array}); COMP_CWORD={len(words) - 1}; _sbx; "
                                   "printf '%s\\n' \"${COMPREPLY[@]}\"; complete -p sbx"],
                                  env=self.environment({"PATH": self.path}), cwd=self.work, capture_output=True, text=True, timeout=120)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)
            lines = done.stdout.splitlines()
            self.assertIn("-F _sbx sbx", lines.pop())
            return set(lines)
        self.expect(offered)
        # From the program's name on, the words belong to the program.
        self.write("data.csv", "")
        self.assertNotIn("--json", offered(["sbx", "run", "cat", "--js"]))
        self.assertIn("data.csv", offered(["sbx", "run", "cat", "dat"]))
        # bash divides words at "=" and completes what follows.
        self.assertEqual(offered(["sbx", "run", "--policy", "=", "str"]), {"strict"})
        self.assertEqual(offered(["sbx", "run", "--require", "="]), offered(["sbx", "run", "--require", ""]))
        self.assertEqual(offered(["sbx", "run", "--set", "network.mode", "=", ""]), {r"\"none\"", r"\"allow-list\"", r"\"host\""})
        self.assertIn("data.csv", offered(["sbx", "run", "--policy", "=", "strict", "cat", "dat"]))

    def test_fish(self):
        program, script = self.shell("fish")
        path = self.write("sbx.fish", script)

        def offered(words):
            line = " ".join(words).replace("'", "\\'")
            done = subprocess.run([program, "--no-config", "-c", f"source {path}; complete -C '{line}'"],
                                  env=self.environment({"PATH": self.path}), cwd=self.work, capture_output=True,
                                  text=True, timeout=120)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)
            return {line.split("\t")[0] for line in done.stdout.splitlines()}
        self.expect(offered)
        self.assertNotIn("--json", offered(["sbx", "run", "cat", "--js"]))

    def test_what_no_shell_knows(self):
        """Where a program's words begin, what takes files, and an option's value behind "=", or its letter."""
        self.assertEqual(self.offered("run", "-qp", "str"), ("files", {"strict"}))
        self.assertEqual(self.offered("run", "--policy=str"), ("files", {"--policy=strict"}))
        self.assertEqual(self.offered("run", "--set", "limits.memory"), ("nospace", {"limits.memory="}))
        self.assertEqual(self.offered("run", "-p", "strict", "--", ""), ("program 5", set()))
        self.assertEqual(self.offered("run", "cat", "--js"), ("program 2", set()))
        self.assertEqual(self.offered("session", "exec", "s", "-q", "cat", "x"), ("program 5", set()))
        self.assertEqual(self.offered("run", "--out", ""), ("directories", set()))
        self.assertEqual(self.offered("mcp", "install", "c"), ("", {"claude", "codex", "cursor"}))
        self.assertEqual(self.offered("mcp", "check", "claude", "--sc"), ("", {"--scope"}))
        self.assertEqual(self.offered("mcp", "install", "claude", "--", "--allow-a"), ("", {"--allow-apply"}))  # options of mcp
        self.assertEqual(self.offered("mcp", "install", "claude", "--", "-p", "str"), ("files", {"strict"}))
        for words in (["mcp", "install", "claude", ""], ["unknown", ""], ["session", "unknown", ""], ["run", "--unknown="], ["session", "keep", "s", ""], ["session", "eval", "--context", ""]):
            self.assertEqual(self.offered(*words), ("", set()), words)
        self.assertEqual(self.offered()[1], self.offered("")[1])

    def test_zsh(self):
        program, script = self.shell("zsh")
        self.write("functions/_sbx", script)
        terminal = Terminal([program, "-f"], self.environment({"TERM": "dumb", "PS1": "", "PROMPT": "", "PATH": self.path}), self.work)
        self.addCleanup(terminal.close)
        # Watches compadd: zsh would show what a completion function passes to it.
        terminal.say(f"fpath=({self.work}/functions $fpath); autoload -Uz compinit; compinit -u -D; zstyle ':completion:*' menu no; "
                     "compadd() { if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]]; then builtin compadd \"$@\"; return; fi; "
                     "local -a found; builtin compadd -O found \"$@\"; local suffix=; [[ \"$*\" == *'-S = '* ]] && suffix='='; "
                     "print -rl -- ${found/%/$suffix} >> offered; builtin compadd \"$@\" }; "
                     "watch() { compadd_real=1; zle complete-word; zle kill-whole-line; print done >> offered; zle accept-line }; "
                     "zle -N watch; bindkey '^I' watch; stty -echo; print ready > offered")
        self.await_line("ready")

        def offered(words):
            (self.work / "offered").write_text("")
            terminal.send(" ".join(words).encode() + b"\t")
            return set(self.await_line("done"))
        self.expect(offered)

    def await_line(self, last):
        path = self.work / "offered"
        lines = lambda: path.read_text().splitlines() if path.exists() else []
        wait_until(lambda: last in lines(), f"zsh writes {last!r}")
        return lines()


class Terminal:
    """A program on its own terminal; its output is read continuously."""

    def __init__(self, command, environment, directory):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.execve(command[0], command, environment)
        sbxtest._known_children.add(self.pid)

    def send(self, data):
        while select.select([self.master], [], [], 0)[0]:
            os.read(self.master, 65536)
        os.write(self.master, data)

    def say(self, line):
        self.send(line.encode() + b"\n")

    def close(self):
        os.close(self.master)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


if __name__ == "__main__":
    sbxtest.main()

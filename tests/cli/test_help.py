"""What somebody meets who knows nothing yet: `sbx` alone, help, and the words of other tools."""

import os
import re
import subprocess

import sbxtest
from sbxtest import SBX
from sessiontest import SessionTest
from terminaltest import Person

NOTEBOOK = ('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "code", "id": "a", "metadata": {}, "source": "print(6 * 7)",'
            ' "outputs": [], "execution_count": null}]}')


class Help(SessionTest):
    def setUp(self):
        super().setUp()
        programs = self.tmp / "bin"
        programs.mkdir()
        (programs / "sbx").symlink_to(os.path.abspath(SBX))
        self.path = {"PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin"}

    def shell(self, line):
        done = subprocess.run(["bash", "-c", line], env=self.environment(self.path), cwd=self.work, stdin=subprocess.DEVNULL, capture_output=True,
                              check=False)
        for pid in re.findall(r"[0-9]+", " ".join(done.stderr.decode(errors="replace").split("process ")[1:])):
            self.pids.append(int(pid))
        return done

    def help_of(self, *words):
        done = self.run_sbx("help", *words)
        self.assertEqual((done.status, done.err), (0, ""), done)
        return done.out

    def commands(self):
        """The commands, in the order in which help lists them."""
        listed = re.findall(r"^  ((?:session|policy|changes) [a-z]+|mcp (?:tools|install|remove|check)|[a-z]+)(?= |$)", self.help_of().split("\n\n", 2)[2], re.MULTILINE)
        return [name for name in listed if name != "sbx"]

    @staticmethod
    def section(text, title):
        return [line[2:] for line in text.split(f"\n{title}:\n")[1].split("\n\n")[0].splitlines() if line.startswith("  ")]

    def test_sbx_alone_shows_how_to_begin(self):
        done = self.run_sbx()
        self.assertEqual((done.status, done.err), (0, ""), done)
        shown = done.out
        self.assertEqual(re.findall(r"^  (sbx \S+)", shown, re.MULTILINE), ["sbx run", "sbx session", "sbx changes", "sbx policy", "sbx doctor"])
        self.assertIn('"sbx help"', shown)
        self.assertLessEqual(len(shown.splitlines()), 24, "it fits a terminal")
        self.assertLessEqual(max(map(len, shown.splitlines())), 80)

    def test_help_lists_each_command_once_and_in_groups(self):
        shown = self.help_of()
        commands = self.commands()
        self.assertEqual(len(commands), len(set(commands)))
        for name in ("run", "session eval", "policy audit", "changes drop", "doctor", "help"):
            self.assertIn(name, commands)
        self.assertGreaterEqual(len(re.findall(r"^[A-Z].*:$", shown, re.MULTILINE)), 6, shown)
        for family in ("session", "policy", "changes"):
            listed = self.help_of(family)
            self.assertEqual(re.findall(rf"^  ({family} [a-z]+)", listed, re.MULTILINE), [name for name in commands if name.startswith(family + " ")])
            self.assertEqual(self.run_sbx(family, "--help").out, listed)
            self.assertIn(f"sbx help {family}", self.run_sbx(family, "help").err)

    def test_help_lists_what_completions_offer(self):
        """Completions walk the table of commands by themselves: no command is without its help."""
        def offered(*words):
            lines = self.run_sbx("__complete", *words, "").out.splitlines()[1:]
            return {line.split("\t")[0] for line in lines if not line.startswith("-")}

        known = set()
        for name in offered():
            parts = offered(name) if name in ("session", "policy", "changes", "mcp") else ()
            known |= {f"{name} {part}" for part in parts}
            if name == "mcp" or not parts:
                known.add(name)
        self.assertGreater(len(known), 40)
        self.assertEqual(set(self.commands()), known)

    def test_the_option_in_front_of_the_command_is_its_help(self):
        for words in (("run",), ("session", "exec")):
            self.assertEqual(self.run_sbx("--help", *words).out, self.run_sbx("help", *words).out)

    def test_help_fits_the_terminal(self):
        for columns, widest in ((72, 72), (200, 100)):
            person = Person(self, ["/bin/sh", "-c", f'stty cols {columns}; exec "$0" help run', SBX])
            self.assertEqual(person.end(), 0)
            lines = re.sub(r"\x1b\[[0-9;]*m", "", person.text).splitlines()
            running = [line for line in lines if re.match(r" {30}\S", line)]
            self.assertLessEqual(max(map(len, running)), widest)
            self.assertGreater(max(map(len, running)), widest - 16)

    def test_each_command_names_its_exit_statuses_and_two_examples(self):
        for name in self.commands():
            text = self.help_of(*name.split())
            self.assertGreaterEqual(len(self.section(text, "Examples")), 2, name)
            self.assertIn("125", " ".join(self.section(text, "Exit status")), name)
            self.assertEqual(self.run_sbx(*name.split(), "--help").out, text)
            self.assertLessEqual(max(map(len, text.splitlines())), 100, name)

    def prepare(self):
        self.write("script.py", "open('made.txt', 'w').write('x')\nprint(42)\n")
        self.write("data.csv", "a,b\n1,2\n")
        self.write("notes.md", "notes\n")
        self.write("Makefile", "test:\n\t@echo tested\n\t@echo more >> notes.md\n")
        (self.work / "results").mkdir()
        for name in ("policies", "completions"):
            (self.home / ".config/sbx" / name).mkdir(parents=True)
        for name in (".config/fish/completions", ".local/share/bash-completion/completions"):
            (self.home / name).mkdir(parents=True)
        (self.work / "agent.toml").write_text(self.run_sbx("policy", "init", "--name", "agent", "-p", "agent").out)

    def ready(self, command, example):
        """The example with what must be there before it."""
        if command == "stop" and "r_0123456789abcdef" in example:
            # A run of which `sbx ps` knows.
            process = self.start_sbx("--", "sh", "-c", "echo begun; sleep 100", json_record=False)
            self.addCleanup(sbxtest.stop, [process])
            self.addCleanup(process.stderr.close)
            self.addCleanup(process.stdout.close)
            self.assertEqual(process.stdout.readline(), b"begun\n")
            run, = [each["id"] for each in self.run_sbx("ps", "--json").json["runs"] if each["pid"] == process.pid]
            return example.replace("r_0123456789abcdef", run)
        if command == "stop" and "--all" in example:
            # Runs are found by sockets of the network namespace: here those of other tests are not.
            return f"unshare {'--net' if sbxtest.IS_ROOT else '--map-root-user --net'} sh -c '{example.replace('sbx', SBX, 1)}'"
        if command == "mcp check":
            self.assertEqual(self.shell(example.replace("check", "install").replace(" --yes", "")).returncode, 0)
        if command == "session send":
            return example.replace("work 2", f"work {self.detach('cat', options=('--stdin', 'open'))}")
        if command in ("session logs", "session wait", "session kill"):
            return example.replace("work 2", f"work {self.detach('sleep', '100') if command == 'session kill' else self.detach('echo', 'hi')}")
        return example

    def test_each_example_works(self):
        self.prepare()
        tried = 0
        for name in sorted(self.commands(), key=lambda name: name == "session stop"):
            for example in self.section(self.help_of(*name.split()), "Examples"):
                if name.startswith("changes ") and not (self.home / ".local/state/sbx/changes/monday").exists() and name != "changes list":
                    self.shell("sbx run -p python --keep monday -- sh -c 'echo more >> notes.md'")
                for other in ("tuesday", "wednesday") if name == "changes drop" else ():
                    self.shell(f"sbx run -p python --keep {other} -- sh -c 'echo more >> notes.md'")
                if name == "session stop":
                    self.shell("sbx changes drop wednesday")
                done = self.shell(self.ready(name, example))
                expected = 1 if name == "policy diff" else 0  # they differ
                self.assertEqual(done.returncode, expected, f"{example}\n{done.stdout.decode()}\n{done.stderr.decode()}")
                tried += 1
        self.assertGreater(tried, 80)

    def hint(self, *words):
        done = self.run_sbx(*words)
        self.assertIn(done.status, (2, 125, 126, 127), done)
        found = re.search(r"^  help: (.*)$", done.err, re.MULTILINE)
        self.assertIsNotNone(found, done)
        return found.group(1)

    def test_the_commands_of_other_tools_are_answered_with_the_form_that_works(self):
        self.write("x.ipynb", NOTEBOOK)
        self.write("f.txt", "data\n")
        # In this order: the session of the first is that of the others.
        for typed, form in (("create box", "sbx session start box"), ("start box2", "sbx session start box2"), ("session new box3", "sbx session start box3"),
                            ("session create box4", "sbx session start box4"), ("exec box echo hi", "sbx session exec box echo hi"),
                            ("eval box -c 1", "sbx session eval box -c 1"), ("session run box echo hi", "sbx session exec box echo hi"),
                            ("ls", "sbx session list"), ("session ps", "sbx session list"), ("inspect box", "sbx session show box"),
                            ("stats box", "sbx session stats box"), ("top box", "sbx session stats box"), ("session top box", "sbx session stats box"), ("history box", "sbx session calls box"),
                            ("session files box", "sbx session ls box"), ("session timeout box 5m", "sbx session extend box 5m"), ("session upload box f.txt", "sbx session put box f.txt"),
                            ("session python box -c 6*7", "sbx session eval box -c '6*7'"), ("session download box f.txt", "sbx session get box f.txt"),
                            ("notebook x.ipynb", "sbx run -p python --cells x.ipynb"), ("execute x.ipynb", "sbx run -p python --cells x.ipynb"),
                            ("jupyter execute --inplace x.ipynb", "sbx run -p python --cells x.ipynb"), ("jupyter lab x.ipynb", "sbx run -p python --cells x.ipynb"),
                            ("session help", "sbx help session"), ("info", "sbx doctor"), ("init", "sbx policy init"),
                            ("rm box", "sbx session stop box"), ("session remove box2", "sbx session stop box2"), ("session delete box3", "sbx session stop box3"),
                            ("session end box4", "sbx session stop box4")):
            if "download" in typed:
                (self.work / "f.txt").unlink()
            self.assertEqual(self.hint(*typed.split()), form, typed)
            done = self.shell(form)
            self.assertEqual(done.returncode, 0, f"{form}\n{done.stderr.decode()}")
        for typed, begin in (("shell", "sbx run -i -p shell bash"), ("repl", "sbx session start work; sbx session eval -i work"),
                             ("exec -it box bash", "sbx session exec -i box bash"), ("session attach box", "sbx session eval -i box"),
                             ("pull python:3", "sbx run COMMAND"), ("kill r_1", "sbx stop r_1"), ("cp f.txt", "sbx session put NAME FILE"),
                             ("cp f.txt box:/", "sbx session put box f.txt /"), ("cp box:/tmp/x .", "sbx session get box /tmp/x"),
                             ("session cp box:x d", "sbx session get box x --out d"), ("eval -c 6*7", "sbx session eval NAME -c '6*7'"),
                             ("eval print(1)", "sbx session eval NAME -c 'print(1)'"), ("eval f.txt", "sbx session eval NAME f.txt"),
                             ("jupyter", "sbx run -p python --cells FILE.ipynb"), ("jupyter nbconvert --execute x.ipynb", "sbx run -p python --cells FILE.ipynb --out"),
                             ("jupyter console", "sbx session start work; sbx session eval -i work"), ("ps -a", "leave it out: sbx ps"),
                             ("session list --all", "leave it out: sbx session list"), ("session start --cwd d", "--workspace DIR:overlay"),
                             ("session start --idle 5m", "--set 'session.idle="), ("session start --lifetime 1h", "--set 'session.lifetime="),
                             ("exec -it", "sbx session exec NAME -i"), ("session python -c 1", "sbx session eval NAME -c 1")):
            self.assertTrue(self.hint(*typed.split()).startswith(begin), typed)
        for typed, form in (("sandbox create box5", "sbx session start box5"), ("sandbox ls", "sbx session list"), ("container exec box5 true", "sbx session exec box5 true"),
                            ("sandbox kill box5", "sbx session stop box5")):
            self.assertTrue(self.hint(*typed.split()).startswith(form), typed)
        for typed in ("python3 f.txt --n 1", "./f.txt", "bash -c ls"):
            self.assertTrue(self.hint(*typed.split()).endswith(f"a program is run by: sbx run {typed}"), typed)

    def test_the_options_of_other_tools_are_answered_with_the_form_that_works(self):
        self.write("f.txt", "data\n")
        for typed, tried in (("-e A=1", "--env A=1"), ("--setenv A 1", "--env A=1"), ("-w .", "--workspace .:overlay"), ("--chdir .", "--workspace .:overlay"),
                             ("--volume f.txt:/f.txt", "--read f.txt:/f.txt"), ("--ro-bind f.txt /f.txt", "--read f.txt:/f.txt"),
                             ("--bind . /w", "--write .:/w"), ("--name x", "--session x"), ("--network none", "--net none"),
                             ("-m 512m", "--memory 512M"), ("--pids-limit 9", "--processes 9"), ("--rm", ""), ("--cap-drop ALL", ""), ("--unshare-all", ""),
                             ("-u nobody", ""), ("--read-only", ""), ("--entrypoint sh", ""), ("--gpus all", ""), ("--device /dev/kvm", ""),
                             ("-p 8080:80", "--set network.publish=[]"), ("-p 127.0.0.1:8080:80/tcp", "--set network.publish=[]"),
                             ("--publish 8080:80", "--set network.publish=[]"), ("--out=", "--out results"),
                             ("--user 0", ""), ("--ulimit nofile=9", "--processes 9"), ("--shm-size 1g", "--disk 1G"), ("--label a=b", ""), ("--init", ""),
                             ("--cpuset-cpus 0", "--cpus 1"), ("--mem-limit 512m", "--memory 512M"), ("--time-limit 5", "--timeout 5s"), ("--ro f.txt", "--read f.txt"),
                             ("--rw .", "--write ."), ("--allow-net a.example", "--allow-host a.example"), ("--no-network", "--net none"), ("--output-dir results", "--out results"),
                             ("--upload f.txt", "--in f.txt"), ("--code 1", "-c 1"), ("-y", "--yes --apply"), ("--debug", "-v"), ("--language python", "--lang python -c 1"),
                             ("--dir .", "--workspace .:overlay")):
            hint = self.hint("run", *typed.split(), "true")
            words = tried.split()
            self.assertTrue((words[0] if words else "leave it out") in hint or "name the command" in hint, f"{typed}: {hint}")
            if "-c" in words:
                continue
            done = self.run_sbx("run", *words, "--", "true")
            self.assertEqual(done.status, 0, done)
        self.assertIn("""--set 'network.publish=["127.0.0.1:8080:80"]'""", self.hint("run", "-p", "127.0.0.1:8080:80/tcp", "true"))
        self.assertEqual(self.run_sbx("run", "--set", 'network.publish=["127.0.0.1:0:80"]', "--", "true").status, 125)  # a port of the host
        self.assertIn("--lang python", self.hint("run", "--cells", "x.ipynb", "--kernel", "python3"))
        self.assertIn("-i gives", self.hint("run", "-it", "bash"))
        self.assertIn("--read .:/w", self.hint("run", "-v", ".:/w", "ls"))
        self.assertEqual(self.run_sbx("run", "--read", ".:/w", "--", "cat", "/w/f.txt").out, "data\n")
        self.start_session()
        for typed, words in (("-e A=1", "--env"), ("-it", "-i gives"), ("-w /tmp", "--cwd DIR"), ("-u root", "leave it out"), ("-m 5M", "sbx session start NAME with --memory")):
            self.assertIn(words, self.hint("session", "exec", *typed.split(), "work", "true"), typed)
        self.assertEqual(self.exec_ok("--cwd", "/tmp", "pwd").out, "/tmp\n")
        self.assertIn("sh -c 'echo hi | wc -c'", self.hint("session", "exec", "work", "echo hi | wc -c"))


if __name__ == "__main__":
    sbxtest.main()

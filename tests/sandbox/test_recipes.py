"""The recipes of the README and of docs, typed as printed, in a copy of the examples: the output must be the page's."""

import json
import os
import re
import shutil
import subprocess
import unittest

import sbxtest
from sbxtest import SBX, SOURCE, SbxTest

# What differs between runs or versions of libraries.
VARYING = [(r"\b[0-9a-f]{32}\b", "TOKEN"), (r"\d{4}-\d\d-\d\d \d\d:\d\d", "DATE"), (r"[\d.]+ KiB", "N KiB"), (r"python3\.\d+", "python3.N")]
PORT = "18081"  # the pages'; the test's server has another one
PAGES = sorted([SOURCE / "README.md", *(SOURCE / "docs").glob("*.md")])

# What each recipe needs of this machine: programs, and modules of Debian's python3.
RECIPES = {("README.md", "A script that would have deleted your work"): {}, ("README.md", "A refusal with its cure"): {}, ("README.md", "A verdict"): {},
           ("README.md", "A chart"): {"modules": ("pandas", "matplotlib")}, ("README.md", "A session"): {},
           ("agents.md", "A tool call"): {}, ("agents.md", "An allow-listed download"): {}, ("agents.md", "Keep the changes, decide later"): {},
           ("agents.md", "A model server on the host's loopback"): {"programs": ("curl",)}, ("agents.md", "A script that sandboxes itself"): {},
           ("ci.md", "Generated code"): {}, ("data-analysis.md", "A chart out of a CSV"): {"modules": ("pandas", "matplotlib")},
           ("data-analysis.md", "A project's own .venv or node_modules"): {"programs": ("node",), "modules": ("venv",)},
           ("data-analysis.md", "A file that looks absent"): {}, ("sessions.md", "A sandbox that stays"): {"programs": ("curl",)},
           ("sessions.md", "Notebooks"): {}, ("policies.md", "A policy of your own"): {}}


FETCH = """import socket
try:
    socket.create_connection(("other.example.org", 443))
except OSError:
    print("no other host")
"""
# The single commands of the README, and what each prints.
LINES = {
    'echo "$code" | sbx run --json --lang python -': r'^\{.*"status":"exited".*"text":"42\\n"',
    'sbx run --session work -p agent -- sh -c "$command"': r"^in /.*/project\n",
    "sbx run -p ci-untrusted pytest -q": "1 passed",
    "sbx run -p web-fetch --allow-host data.example.org fetch.py": r"(?s)no other host\n.*denied: name other\.example\.org",
    "sbx run -p python --cells report.ipynb --out results": r"the notebook is in results/report\.ipynb",
    "sbx run -p python --keep monday cleanup.py": "monday",
}


def recipes(page):
    """{title: [(command, the output that the page shows)]} of what has commands; a title is a heading or bold."""
    found, title = {}, ""
    for line in page.read_text().splitlines():
        head = re.match(r"## (.*)|\*\*(.*?)\.?\*\*", line)
        if head:
            title = head.group(1) or head.group(2)
        steps = found.get(title, [])
        if line.startswith("    $ "):
            found.setdefault(title, []).append((line[6:], []))
        elif line.startswith("    ") and steps:
            steps[-1][1].append(line[4:])
        elif not line and steps and steps[-1][1]:
            steps[-1][1].append("")  # an empty line within an output; one at its end is stripped below
        elif steps:
            steps[-1][1].append(None)  # a sentence ends the output
    return {title: [(command, "\n".join(lines[:lines.index(None)] if None in lines else lines).strip("\n")) for command, lines in steps]
            for title, steps in found.items()}


class Recipes(SbxTest):
    def setUp(self):
        super().setUp()
        self.root = self.home / "sbx"
        self.root.mkdir()
        shutil.copytree(SOURCE / "examples", self.root / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        programs = self.tmp / "bin"
        programs.mkdir()
        (programs / "sbx").symlink_to(os.path.abspath(SBX))
        self.path = f"{programs}:/usr/local/bin:/usr/bin:/bin"

    def needs(self, *programs, modules=()):
        for program in programs:
            if shutil.which(program, path="/usr/local/bin:/usr/bin:/bin") is None:
                self.skipTest(f"{program} is not installed")
        for module in modules:
            if subprocess.run(["/usr/bin/python3", "-c", f"import {module}"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
                self.skipTest(f"python3's {module} is not installed")

    def serve(self):
        """The port of the example's server."""
        server = sbxtest.start(["/usr/bin/python3", self.root / "examples/download/server.py", "0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(sbxtest.stop, [server])
        self.addCleanup(server.stdout.close)
        return server.stdout.readline().split()[1].decode()

    def normal(self, text):
        text = text.replace(str(self.home), "/home/me")
        for pattern, words in VARYING:
            text = re.sub(pattern, words, text)
        return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())

    def follow(self, page, title):
        """Types the commands of a recipe into one shell, and compares their output."""
        needs = RECIPES[page, title]
        self.needs(*needs.get("programs", ()), modules=needs.get("modules", ()))
        steps = recipes(next(path for path in PAGES if path.name == page))[title]
        port = self.serve() if any(PORT in command for command, _ in steps) else PORT
        steps = [(command.replace(PORT, port), shown) for command, shown in steps if not command.endswith("&")]
        typed = "".join(f"{command}\nprintf '\\036'\n" for command, _ in steps)
        shell = sbxtest.start(["bash", "-c", typed], cwd=self.root, env=self.environment({"PATH": self.path}), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        out, _ = shell.communicate(timeout=100)
        said = out.decode().split("\x1e")
        self.assertEqual(len(said), len(steps) + 1, out)
        for (command, shown), got in zip(steps, said):
            pattern = re.escape(self.normal(shown)).replace("…", ".*")
            self.assertRegex(self.normal(got), re.compile(rf"\A{pattern}\Z", re.DOTALL), f"{title}: $ {command}")

    def test_each_recipe_of_the_readme(self):
        self.follow_page("README.md")
        self.assertEqual(os.listdir(self.home / "pictures"), ["temperatures.png"])
        self.assertNotIn("temperatures.png", os.listdir(self.root / "examples/data-analysis"))

    def test_each_recipe_for_agents(self):
        self.follow_page("agents.md")
        self.assertEqual((self.root / "examples/cleanup/README").read_text(), "project\ncleaned\n")
        self.assertTrue((self.root / "examples/cleanup/notes.txt").exists())

    def test_each_recipe_for_data_analysis(self):
        self.follow_page("data-analysis.md")

    def test_each_recipe_of_the_other_pages(self):
        for page in ("ci.md", "sessions.md", "policies.md"):
            self.follow_page(page)

    def follow_page(self, page):
        skipped = 0
        for other, title in RECIPES:
            if other != page:
                continue
            with self.subTest(title):
                try:
                    self.follow(page, title)
                except unittest.SkipTest as reason:
                    skipped += 1
                    print(f"left out: {title}: {reason}")
        if skipped:
            self.skipTest(f"{skipped} recipes need what this machine lacks")

    def test_each_recipe_is_followed(self):
        shown = {(page.name, title) for page in PAGES for title in recipes(page)}
        self.assertEqual(shown, set(RECIPES))

    def test_each_line_of_the_recipes(self):
        """The README's block of single commands: each does what its comment says."""
        self.root = self.home / "project"
        self.root.mkdir()
        for name, text in (("test_it.py", "def test_it(): assert 6 * 7 == 42\n"), ("fetch.py", FETCH), ("cleanup.py", "open('made', 'w').write('x')\n"),
                           ("report.ipynb", json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))):
            (self.root / name).write_text(text)
        block = (SOURCE / "README.md").read_text().split("\n## Recipes\n")[1].split("\n## ")[0]
        lines = [line.strip().partition("  #")[0].strip() for line in block.splitlines() if line.startswith("    ")]
        self.assertEqual(sorted(lines), sorted(LINES))
        self.addCleanup(lambda: self.typed("sbx session stop work"))
        for line in lines:
            if "pytest" in line and shutil.which("pytest", path="/usr/bin:/bin") is None:
                continue
            status, said = self.typed(line)
            self.assertEqual(status, 0, f"{line}: {said}")
            self.assertRegex(said, LINES[line], line)
        self.assertIn("made", self.typed("sbx changes diff monday")[1])
        self.assertTrue((self.root / "results/report.ipynb").exists())
        self.assertFalse((self.root / "made").exists())

    def typed(self, line):
        done = subprocess.run(["bash", "-c", line], cwd=self.root, env=self.environment({"PATH": self.path, "code": "print(6 * 7)", "command": "echo in $PWD"}),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100)
        return done.returncode, done.stdout.decode()

    def test_the_lines_for_those_who_come_from_elsewhere(self):
        (self.root / "app.py").write_text("print('app')\n")
        rows = re.findall(r"^\| (\w+) \| `.*` \| (.*) \|$", (SOURCE / "README.md").read_text(), re.MULTILINE)
        self.assertEqual([name for name, _ in rows], ["docker", "E2B", "Jupyter", "bubblewrap"])
        cells = {"cells": [{"cell_type": "code", "id": "a", "metadata": {}, "source": "print(42)", "outputs": [], "execution_count": None}],
                 "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        (self.root / "report.ipynb").write_text(json.dumps(cells))
        for name, here in rows:
            for command in re.findall(r"`(.*?)`", here):
                done = subprocess.run(["bash", "-c", command], cwd=self.root, env=self.environment({"PATH": self.path, "code": "6 * 7"}),
                                      stdin=subprocess.DEVNULL, capture_output=True, check=False)
                self.assertEqual(done.returncode, 0, f"{name}: {command}: {done.stderr.decode()}")
        subprocess.run([SBX, "session", "stop", "--all"], env=self.environment(), check=True, capture_output=True)


class Pages(SbxTest):
    def test_the_readme_is_short_and_leads_to_every_page(self):
        text = (SOURCE / "README.md").read_text()
        self.assertLessEqual(len(text.splitlines()), 150)
        for page in PAGES:
            if page.name != "README.md":
                self.assertIn(f"(docs/{page.name})", text)
                self.assertLessEqual(len(page.read_text().splitlines()), 150, page.name)

    def test_links_lead_somewhere(self):
        for page in PAGES:
            for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
                self.assertTrue((page.parent / link).exists(), f"{page.name}: {link}")

    def test_the_table_of_policies_is_that_of_the_list(self):
        shown = dict(re.findall(r"^\| `(\S+)` \| (.*) \|$", (SOURCE / "docs/policies.md").read_text(), re.MULTILINE))
        listed = subprocess.run([SBX, "policy", "list"], env=self.environment(), capture_output=True, text=True, check=True).stdout
        self.assertEqual(shown, {line.split()[0]: " ".join(line.split()[2:]) for line in listed.splitlines()})

    def test_the_picture_is_of_this_version(self):
        made = subprocess.run([SOURCE / "scripts/terminal-picture", SBX], env=self.environment(), capture_output=True, text=True, check=True).stdout
        self.assertEqual(made, (SOURCE / "docs/terminal.svg").read_text(), "write it again: scripts/terminal-picture SBX > docs/terminal.svg")


if __name__ == "__main__":
    sbxtest.main()

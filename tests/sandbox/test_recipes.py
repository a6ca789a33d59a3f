"""The recipes of the README and of docs, typed as printed, in a copy of the examples: the output must be the page's."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import sbxtest
from sbxtest import SBX, SOURCE, SbxTest

try:
    import yaml
except ImportError:
    yaml = None

# What differs between runs or versions of libraries.
VARYING = [(r"\b[0-9a-f]{32}\b", "TOKEN"), (r"\d{4}-\d\d-\d\d \d\d:\d\d", "DATE"), (r"[\d.]+ KiB", "N KiB"), (r"python3\.\d+", "python3.N")]
PORT = "18081"  # the pages'; the test's server has another one
PAGES = sorted([SOURCE / "README.md", *(SOURCE / "docs").glob("*.md")])

# What each recipe needs of this machine: programs, and modules of Debian's python3.
RECIPES = {("README.md", "A script that would have deleted your work"): {}, ("README.md", "A refusal with its cure"): {}, ("README.md", "A verdict"): {},
           ("README.md", "A cell with a chart"): {"modules": ("pandas", "matplotlib")}, ("README.md", "A session"): {},
           ("agents.md", "A tool call"): {}, ("agents.md", "An allow-listed download"): {}, ("agents.md", "Keep the changes, decide later"): {},
           ("agents.md", "A model server on the host's loopback"): {}, ("agents.md", "A script that sandboxes itself"): {},
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
    "sbx run -p data-analysis --out pictures analyse.py": "copied 1 file",
}


# Blocks of the pages that are no recipe with an output, by their first line: what runs them, or the reason why no test of this
# script does.
BLOCKS = {
    "./demo ": "start", "export PATH=": "start",
    'echo "$code" | sbx run --json --lang python -': "test_each_line_of_the_recipes",
    "git ls-files": "test_the_loop_over_files", "- id: sandbox": "test_the_step_of_a_workflow", "repos:": "test_the_hook_of_pre_commit",
    "run = sbx.run(code": "test_the_python_of_the_page", "const sbx::RunAnswer answer": "test_the_cpp_of_the_page",
    "sbx run --in rain.csv job.py": "test_the_shorter_ways", "./check ": "it runs the tests, so that a test can't: its words are checked",
    "sbx mcp install claude -- -p agent": "tests/mcp registers it with each client, and a server of tests/mcp speaks to it",
}
# What the blocks of the README and of docs/install.md name and no test of this script runs.
NOT_RUN = {
    "./demo": "it installs packages and builds for minutes; its last step, the example, is a recipe of docs/data-analysis.md",
    "./check --all": "it runs this test",
    "./check": "it runs this test",
    "./check -C slow -L slow": "it takes hours",
    "cmake --build build/release --target bench": "it measures for minutes, alone on a quiet machine",
}


FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Whole programs of the pages, by their language, and what each prints.
PROGRAMS = {("python.md", "python"): [r"42\n", r"42 \[\] None\n(?s:.*) sales\.csv\n", r"6\n7\n", r"42\n"]}


def blocks(page):
    """The blocks of a page that show no output, each as one text."""
    found, lines = [], []
    for line in [*re.sub(FENCED, "", page.read_text()).splitlines(), "end"]:
        if line.startswith("    ") or (not line and lines):
            lines.append(line[4:])
        elif lines:
            if not any(each.startswith("$ ") for each in lines):
                found.append("\n".join(lines).strip("\n") + "\n")
            lines = []
    return found


def commands(block):
    """The command lines of a block, without their comments."""
    return [re.split(r"\s+# ", line)[0].strip() for line in block.splitlines()]


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
        self.assertEqual(os.listdir(self.home / "pictures"), ["python-3-1.png"])
        self.assertTrue((self.home / "pictures/python-3-1.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n"))
        self.assertEqual(sorted(os.listdir(self.root / "examples/data-analysis")), ["analyse.py", "temperatures.csv"])

    def test_each_recipe_for_agents(self):
        self.follow_page("agents.md")
        self.assertEqual((self.root / "examples/cleanup/README").read_text(), "project\ncleaned\n")
        self.assertTrue((self.root / "examples/cleanup/notes.txt").exists())

    def test_each_recipe_for_data_analysis(self):
        self.follow_page("data-analysis.md")
        self.assertEqual(os.listdir(self.home / "pictures"), ["temperatures.png"])
        self.assertNotIn("temperatures.png", os.listdir(self.root / "examples/data-analysis"))

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
        for name, text in (("test_it.py", "def test_it(): assert 6 * 7 == 42\n"), ("fetch.py", FETCH), ("analyse.py", "open('chart.png', 'w').write('x')\n"),
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
        self.assertTrue((self.root / "results/report.ipynb").exists())
        self.assertTrue((self.root / "pictures/chart.png").exists())

    def block(self, page, beginning):
        """The one block of a page that begins so."""
        found, = [block for block in blocks(next(path for path in PAGES if path.name == page)) if block.startswith(beginning)]
        return found

    def test_each_block_is_run_or_has_a_reason(self):
        for page in PAGES:
            for block in blocks(page):
                known = [words for beginning, words in BLOCKS.items() if block.startswith(beginning)]
                self.assertEqual(len(known), 1, f"{page.name}: {block}")
                self.assertTrue(not known[0].startswith("test_") or hasattr(self, known[0]), known)

    def test_the_lines_that_start_and_check(self):
        """What can't be run here has a reason; its words are those that the scripts and the tests know."""
        lines = commands(self.block("README.md", "./demo")) + commands(self.block("install.md", "./check"))
        for line in lines:
            if line in NOT_RUN:
                print(f"not run: {line}: {NOT_RUN[line]}")
                self.assertTrue(line.startswith("cmake ") or os.access(SOURCE / line.split()[0], os.X_OK), line)
        export, = [line for line in lines if line.startswith("export")]
        release = self.root / "build/release"
        release.mkdir(parents=True)
        (release / "sbx").symlink_to(os.path.abspath(SBX))
        done = subprocess.run(["bash", "-c", f"{export} && command -v sbx && sbx --version"], cwd=self.root,
                              env=self.environment({"PATH": "/usr/bin:/bin"}), capture_output=True, text=True, check=True)
        self.assertRegex(done.stdout, rf"\A{re.escape(str(release))}/sbx\nsbx \d")
        rest = [line for line in lines if line not in NOT_RUN and line != export]
        self.assertEqual(rest, ["./check -L network", "./check -R host.abstract"])
        shown = re.search(r"by label: (.*)", self.block("install.md", "./check")).group(1).split()
        asked = SOURCE / "tests"
        texts = "".join(path.read_text() for path in [*asked.rglob("CMakeLists.txt"), *(SOURCE / "cmake").glob("*.cmake")])
        for label in shown:
            self.assertRegex(texts, rf"\b{label}\b")

    def test_the_other_tool_of_this_name(self):
        self.assertIn("`sbx policy explain limits.memory`", (SOURCE / "docs/install.md").read_text())
        status, said = self.typed("sbx policy explain limits.memory")
        self.assertEqual((status, said.startswith("limits.memory")), (0, True), said)

    def repository(self):
        """A repository with two scripts, in which the shell stands."""
        self.root = self.home / "checkout"
        self.root.mkdir()
        for name in ("a.py", "b.py"):
            (self.root / name).write_text(f"print('this is {name}')\n")
        subprocess.run("git init -q . && git add .", shell=True, cwd=self.root, env=self.environment(), check=True)

    def test_the_loop_over_files(self):
        self.needs("git")
        self.repository()
        status, said = self.typed(self.block("ci.md", "git ls-files"))
        self.assertEqual((status, said), (0, "this is a.py\nthis is b.py\n"))

    def test_the_step_of_a_workflow(self):
        """The page's step is one of the example workflow; the action's script runs it."""
        self.needs("make")
        if yaml is None:
            self.skipTest("python3-yaml is not installed")
        step, = yaml.safe_load(self.block("ci.md", "- id: sandbox"))
        steps = yaml.safe_load((SOURCE / "examples/ci/github-workflow.yml").read_text())["jobs"]["test"]["steps"]
        self.assertIn(step, steps)
        self.assertEqual(set(step["with"]) - set(yaml.safe_load((SOURCE / "action.yml").read_text())["inputs"]), set())
        (self.root / "Makefile").write_text("all:\n\t@echo built\ntest:\n\t@echo tested\n")
        for name in ("output", "summary"):
            (self.tmp / name).touch()
        given = step["with"]
        done = subprocess.run([SOURCE / "share/github/run"], cwd=self.root, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
                              env=self.environment({"PATH": self.path, "SBX_POLICY_NAME": given["policy"], "SBX_OPTIONS": given["options"], "SBX_RUN": given["run"],
                                                    "RUNNER_TEMP": str(self.tmp), "GITHUB_OUTPUT": str(self.tmp / "output"), "GITHUB_STEP_SUMMARY": str(self.tmp / "summary")}))
        self.assertIn("\nbuilt\ntested\n", done.stdout)
        self.assertIn("status=exited\nexit-code=0\n", (self.tmp / "output").read_text())

    def test_the_hook_of_pre_commit(self):
        """The page's hook is one of the repository; its command finds the mistake of a policy that it checks."""
        if yaml is None:
            self.skipTest("python3-yaml is not installed")
        asked, = yaml.safe_load(self.block("ci.md", "repos:"))["repos"]
        example, = [each for each in yaml.safe_load((SOURCE / "examples/ci/pre-commit-config.yaml").read_text())["repos"] if each["repo"] == asked["repo"]]
        self.assertEqual(asked["rev"], example["rev"])
        hooks = {each["id"]: each for each in yaml.safe_load((SOURCE / ".pre-commit-hooks.yaml").read_text())}
        for hook in asked["hooks"]:
            entry, files = hooks[hook["id"]]["entry"], hooks[hook["id"]]["files"]
            self.assertTrue(re.search(files, "sbx.toml"))
            (self.root / "sbx.toml").write_text("schema = 1\n")
            self.assertEqual(self.typed(f"{entry} sbx.toml")[0], 0)
            (self.root / "sbx.toml").write_text("schema = 2\n")
            self.assertEqual(self.typed(f"{entry} sbx.toml")[0], 1)

    def test_the_python_of_the_page(self):
        shutil.copy(SOURCE / "examples/python/sbx.py", self.root)
        for given, printed in (("print(6 * 7)", "42\n"), ("1 / 0", "the command exited with status 1")):
            (self.root / "page.py").write_text(f"import sbx\ncode = {given!r}\n" + self.block("agents.md", "run = sbx.run(code"))
            status, said = self.typed("/usr/bin/python3 page.py")
            self.assertEqual((status, said.strip()), (0, printed.strip()), said)

    def test_each_whole_program(self):
        shutil.copy(SOURCE / "examples/python/sbx.py", self.root)
        shown = {}
        for page in PAGES:
            for language, text in FENCED.findall(page.read_text()):
                shown.setdefault((page.name, language), []).append(text)
        self.assertEqual({key: len(texts) for key, texts in shown.items()}, {key: len(texts) for key, texts in PROGRAMS.items()})
        for key, texts in shown.items():
            for text, printed in zip(texts, PROGRAMS[key]):
                (self.root / "whole.py").write_text(text)
                status, said = self.typed("/usr/bin/python3 whole.py")
                self.assertEqual(status, 0, said)
                self.assertRegex(said, rf"\A{printed}\s*\Z")

    def test_the_cpp_of_the_page(self):
        build = os.environ.get("SBX_BUILD")
        library = pathlib.Path(build or ".") / "src/lib/libsbx.a"
        if shutil.which("g++") is None or not library.exists():
            self.skipTest("there is no g++, or no library in the build")
        text = "#include <iostream>\n#include <sbx/run.hpp>\nint main() {\n" + self.block("agents.md", "const sbx::RunAnswer answer") + "}\n"
        (self.root / "page.cpp").write_text(text)
        subprocess.run(["g++", "-std=c++20", "-I", SOURCE / "include", "page.cpp", library, "-o", "page"], cwd=self.root, check=True)
        status, said = self.typed("./page")
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r'\Aexited\n\{"schema":"sbx.run/1".*"text":"42\\n"')

    def test_the_shorter_ways(self):
        (self.root / "rain.csv").write_text("sea,12\n")
        (self.home / "data").mkdir()
        (self.root / "job.py").write_text("import os\nprint(sorted(os.listdir()), os.environ.get('TZ'), os.path.isdir(os.path.expanduser('{}/data')))\n".replace("{}", str(self.home)))
        (self.root / "chart.py").write_text("open('chart.png', 'w').write('x')\n")
        shown = {"sbx run --in rain.csv job.py": "['job.py', 'rain.csv'] None False", "sbx run --read ~/data --env TZ job.py": "['job.py'] UTC True",
                 "sbx run -p data-analysis --out . chart.py": "copied 1 file"}
        lines = commands(self.block("data-analysis.md", "sbx run --in rain.csv"))
        self.assertEqual(lines, list(shown))
        for line in lines:
            status, said = self.typed(line)
            self.assertEqual(status, 0, said)
            self.assertIn(shown[line], said, line)
        self.assertTrue((self.root / "chart.png").exists())

    def typed(self, line):
        done = subprocess.run(["bash", "-c", line], cwd=self.root, env=self.environment({"PATH": self.path, "TZ": "UTC", "code": "print(6 * 7)", "command": "echo in $PWD"}),
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

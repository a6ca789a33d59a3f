"""The README's recipes, typed as printed, in a copy of the examples: the output must be the README's."""

import os
import re
import shutil
import subprocess

import sbxtest
from sbxtest import SBX, SOURCE, SbxTest

# What differs between runs or versions of libraries.
VARYING = [(r"\b[0-9a-f]{32}\b", "TOKEN"), (r"\d{4}-\d\d-\d\d \d\d:\d\d", "DATE"), (r"[\d.]+ KiB", "N KiB"), (r"python3\.\d+", "python3.N")]
PORT = "18081"  # the README's; the test's server has another one


def recipe(title):
    """[(command, the output that the README shows)] of a recipe, by its number, or of a section."""
    text = (SOURCE / "README.md").read_text()
    begin, end = (rf"\*\*{title}\. ", r"\*\*|More:") if isinstance(title, int) else (f"## {title}\n", "## ")
    body = re.search(rf"^{begin}.*?(?=^(?:{end}))", text, re.MULTILINE | re.DOTALL).group()
    steps = []
    for line in body.splitlines():
        if line.startswith("    $ "):
            steps.append((line[6:], []))
        elif line.startswith("    ") and steps:
            steps[-1][1].append(line[4:])
        elif not line and steps and steps[-1][1]:
            steps[-1][1].append("")  # an empty line within an output; one at its end is stripped below
    return [(command, "\n".join(lines).strip("\n")) for command, lines in steps]


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

    def follow(self, title):
        """Types the commands of a recipe into one shell, and compares their output."""
        steps = recipe(title)
        self.assertTrue(steps, f"{title} has no command")
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

    def test_recipe_1_tool_call(self):
        self.follow(1)

    def test_recipe_2_github(self):
        self.follow(2)

    def test_recipe_3_data_analysis(self):
        self.needs(modules=("pandas", "matplotlib"))
        self.follow(3)
        self.assertEqual(os.listdir(self.home / "pictures"), ["temperatures.png"])
        self.assertNotIn("temperatures.png", os.listdir(self.root / "examples/data-analysis"))

    def test_recipe_4_download(self):
        self.follow(4)

    def test_recipe_5_cleanup(self):
        self.follow(5)

    def test_recipe_6_keep(self):
        self.follow(6)
        self.assertEqual((self.root / "examples/cleanup/README").read_text(), "project\ncleaned\n")
        self.assertTrue((self.root / "examples/cleanup/notes.txt").exists())

    def test_recipe_7_packages(self):
        self.needs("node", modules=("venv",))
        self.follow(7)

    def test_recipe_8_model_server(self):
        self.needs("curl")
        self.follow(8)

    def test_recipe_9_missing_file(self):
        self.follow(9)

    def test_recipe_10_shebang(self):
        self.follow(10)

    def test_recipe_policy_of_your_own(self):
        self.follow("A policy of your own")


if __name__ == "__main__":
    sbxtest.main()

"""--explain: reports paths that were looked for and not granted, with the line that would grant them."""

import json

import sbxtest
from sbxtest import SbxTest

LOOK = """
import os, subprocess, sys
for path in sys.argv[1:]:
    try: open(os.path.expanduser(path)).close(); print("opened")
    except OSError as error: print(error.strerror)
"""


class Explain(SbxTest):
    def setUp(self):
        super().setUp()
        self.home.chmod(0o755)
        self.tmp.chmod(0o755)
        self.data = self.write("data.csv", "x\n", directory=self.tmp / "elsewhere")

    def explained(self, code, *arguments, options=()):
        return self.exited(self.python(code, *arguments, options=("-p", "python", "--explain", *options)))

    @staticmethod
    def paths(ended):
        return {denial["what"]: denial for denial in ended.record["denials"] if denial["kind"] == "path"}

    def test_path_that_was_looked_for_is_named_with_the_line_that_grants_it(self):
        ended = self.explained(LOOK, self.data, "/nowhere/at/all")
        self.assertEqual(ended.text, "No such file or directory\n" * 2)
        (denial,) = self.paths(ended).values()
        self.assertEqual((denial["what"], denial["count"], denial["process"]), (str(self.data), 1, "python3.11"), ended)
        self.assertIn("fake", denial["rule"])
        key, _, value = denial["allow_with"].partition(" = ")
        again = self.explained(LOOK, self.data, options=("--set", f"{key}={value}"))
        self.assertEqual((again.text, self.paths(again)), ("opened\n", {}), again)

    def test_without_the_option_no_path_is_named(self):
        ended = self.exited(self.python(LOOK, self.data, options=("-p", "python")))
        self.assertEqual(ended.record["denials"], [])

    def test_relative_paths_and_other_calls_are_named_too(self):
        tool = self.write("tool", "#!/bin/sh\n", mode=0o755, directory=self.tmp / "elsewhere")
        code = ("import os, subprocess, sys\n"
                "os.path.exists('../elsewhere/data.csv')\n"
                "try: subprocess.run([sys.argv[1]])\n"
                "except OSError as error: print(error.strerror)\n")
        found = self.paths(self.explained(code, tool))
        self.assertEqual(set(found), {str(self.data), str(tool)}, found)

    def test_file_of_the_home_is_named_by_its_place_there(self):
        self.write(".toolrc", "x", directory=self.home)
        ended = self.explained(LOOK, "~/.toolrc")
        (denial,) = self.paths(ended).values()
        self.assertEqual((denial["what"], denial["allow_with"]), ("/home/sandbox/.toolrc", f'filesystem.seed = ["{self.home}/.toolrc"]'), ended)
        self.assertEqual(denial["options"], ["--in", f"{self.home}/.toolrc:/home/sandbox/.toolrc"])
        self.assertEqual(self.exited(self.sbx(*denial["options"], "--", "sh", "-c", "cat ~/.toolrc")).text, "x")

    def test_honest_program_that_finds_everything_is_told_nothing(self):
        self.write("module.py", "VALUE = 1\n")
        ended = self.explained("import json, module, tempfile, pathlib\nwith tempfile.NamedTemporaryFile() as f: pathlib.Path('made').write_text('x')\nprint(module.VALUE)")
        self.assertEqual((ended.text, ended.record["denials"]), ("1\n", []), ended)

    def test_many_paths_are_bounded_and_the_rest_is_counted(self):
        for number in range(100):
            self.write(f"f{number}", "x", directory=self.tmp / "elsewhere")
        code = "import os, sys\nfor n in range(3000):\n    os.path.exists(f'{sys.argv[1]}/f{n}')\n"
        ended = self.explained(code, self.data.parent)
        found = self.paths(ended)
        self.assertEqual(len(found), 65, ended)
        self.assertGreater(found["others"]["count"], 30)

    def test_denied_calls_are_named_beside_paths(self):
        ended = self.explained("import ctypes, sys\nctypes.CDLL(None).ptrace(0, 0, 0, 0)\ntry: open(sys.argv[1])\nexcept OSError: pass", self.data)
        self.assertEqual([denial["kind"] for denial in ended.record["denials"]], ["syscall", "path"], ended)

    def test_looking_allows_nothing_and_forbids_nothing(self):
        """The program runs unchanged: its threads, its children, and many calls at once."""
        code = ("import os, threading, subprocess\n"
                "def work():\n    for _ in range(300): os.stat('/usr/bin/env')\n"
                "threads = [threading.Thread(target=work) for _ in range(4)]\n"
                "[t.start() for t in threads]; [t.join() for t in threads]\n"
                "print(subprocess.run(['sh', '-c', 'cd /usr && ls -d bin'], capture_output=True).stdout)")
        ended = self.explained(code)
        self.assertEqual((ended.text, ended.record["denials"]), ("b'bin\\n'\n", []), ended)

    def test_words_say_where_the_names_come_from(self):
        ended = self.sbx("-p", "python", "--explain", "--lang", "python", "-c", LOOK, self.data, json_record=False)
        said = ended.err.decode()
        self.assertIn(f"sbx: python3.11 looked for {self.data}, which the policy does not grant\n", said)
        self.assertIn("note: observed by tracing; a program can fake such look-ups", said)
        self.assertIn(f'to allow it: --read {self.data}, or filesystem.read = ["{self.data}"] in the policy', said)

    def test_what_an_empty_workspace_lacks_is_named(self):
        self.write("here", "")
        ended = self.sbx("--explain", "--lang", "python", "-c", LOOK, "here")
        self.assertEqual([(denial["what"], denial["options"]) for denial in ended.record["denials"]],
                         [(str(self.work / "here"), ["--read", str(self.work / "here")])], ended)

    def test_what_the_program_makes_itself_is_not_named(self):
        self.write("made", "")
        code = "open('made', 'w').close(); open('made').close()"
        self.assertEqual(self.sbx("--explain", "--lang", "python", "-c", code).record["denials"], [])

    def test_hidden_file_of_the_workspace_is_named_as_hidden(self):
        self.write(".env", "SECRET=1\n")
        ended = self.explained(LOOK, ".env")
        found = self.paths(ended)
        if not found:
            self.assertNotIn("opened", ended.text, ended)  # whited out: absent for every look-up
            return
        self.assertIn("filesystem.deny", json.dumps(found), ended)


if __name__ == "__main__":
    sbxtest.main()

"""session.put_aside: protected names that appear in a live directory are renamed, and nothing else is."""

import os
import stat
import subprocess

from sessiontest import SessionTest, main, wait_until

MAKE = """
import os
for name, text in (("sub/.git/commondir", "/tmp\\n"), (".mcp.json", "{}"), (".vscode/tasks.json", "{}"), ("deep/er/.envrc", "x"), ("sub/a.txt", "text")):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "w") as file:
        file.write(text)
"""
NAMES = ("sub/.git/commondir", ".mcp.json", ".vscode", "deep/er/.envrc")
END = ".sbx-refused"


class Live(SessionTest):
    def start(self, *options):
        self.start_session("--workspace", f"{self.work}:read-write", "--set", "session.put_aside=true", *options)

    def refused(self, record):
        return {each["what"] for each in record["denials"] if each["kind"] == "name"}

    def all_of(self, name, directory="."):
        """What was put aside of a name."""
        return [each for each in os.listdir(self.work / directory) if each.startswith(name) and each.endswith(END)]

    def python(self, code):
        return self.exec_json("python3", "-c", code).record


class NewNames(Live):
    def test_a_call_names_what_was_put_aside(self):
        self.start()
        record = self.python(MAKE)
        self.assertEqual(record["outcome"]["exit_code"], 0, record)
        self.assertEqual(self.refused(record), set(NAMES))
        for name in NAMES:
            self.assertFalse(os.path.lexists(self.work / name), name)
            self.assertTrue(os.path.lexists(self.work / (name + END)), name)
        self.assertTrue((self.work / f".vscode{END}/tasks.json").exists())
        self.assertEqual((self.work / "sub/a.txt").read_text(), "text")
        self.assertEqual(self.refused(self.python("print(1)")), set(), "once")
        told = self.run_sbx("session", "exec", "work", "--", "sh", "-c", ": >.envrc; exit 3")
        self.assertIn(f"it is now .envrc{END}", told.err)

    def test_without_the_key_names_stay(self):
        self.start_session("--workspace", f"{self.work}:read-write")
        self.assertEqual(self.refused(self.python(MAKE)), set())
        for name in NAMES:
            self.assertTrue(os.path.lexists(self.work / name), name)

    def test_what_was_there_at_the_start_stays_and_commits_work(self):
        self.write(".envrc", "mine\n")
        git = ("git", "-C", str(self.work), "-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run([*git, "init", "-q"], check=True, env=self.environment())
        self.start()
        record = self.exec_json("sh", "-c", "echo x >a && git add a && git -c user.name=a -c user.email=a@example.org commit -qm one && : >.git/index.lock").record
        self.assertEqual((record["outcome"]["exit_code"], self.refused(record)), (0, set()), record)
        self.assertEqual((self.work / ".envrc").read_text(), "mine\n")
        self.assertEqual([found for _, names, files in os.walk(self.work) for found in names + files if found.endswith(END)], [])

    def test_a_cell_names_it_too(self):
        self.start()
        record = self.run_sbx("session", "eval", "work", "--json", "-c", "open('.envrc', 'w').close()").record
        self.assertEqual(self.refused(record), {".envrc"})
        self.assertEqual(os.listdir(self.work), [f".envrc{END}"])

    def test_while_a_call_runs_they_are_put_aside_whoever_made_them(self):
        self.start()
        self.detach("sh", "-c", ": >.envrc; exec sleep 1000")
        wait_until(lambda: (self.work / f".envrc{END}").exists(), "it was put aside while the call ran")
        os.mkfifo(self.work / ".envrc")
        wait_until(lambda: len(self.all_of(".envrc")) == 2, "the host's FIFO was put aside")
        self.assertFalse(os.path.lexists(self.work / ".envrc"))


class Attacks(Live):
    """Programs that know what sbx does."""

    def test_a_name_that_is_made_again_and_again_is_gone_at_the_end(self):
        self.start()
        call = self.detach("python3", "-c", "while True:\n  open('.envrc', 'w').close()")
        wait_until(lambda: len(self.all_of(".envrc")) >= 3, "it was put aside again and again")
        self.run_sbx("session", "kill", "work", str(call))
        self.run_sbx("session", "wait", "work", str(call))
        self.assertFalse(os.path.lexists(self.work / ".envrc"))

    def test_the_new_name_is_taken(self):
        victim = self.write("victim", "mine\n", directory=self.home)
        for take in ("os.symlink({victim!r}, '.envrc.sbx-refused')", "os.mkdir('.envrc.sbx-refused')", "open('.envrc.sbx-refused', 'w').close()"):
            self.start()
            record = self.python("import os\n" + take.format(victim=str(victim)) + "\nopen('.envrc', 'w').write('x')")
            self.assertEqual(self.refused(record), {".envrc"})
            self.assertFalse(os.path.lexists(self.work / ".envrc"), take)
            self.assertEqual(len(self.all_of(".envrc")), 2, take)
            self.assertEqual(victim.read_text(), "mine\n")
            self.stop_session()
            subprocess.run(["find", self.work, "-mindepth", "1", "-delete"], check=True)

    def test_links_and_directories_of_that_name_are_renamed_themselves(self):
        victim = self.write("victim", "mine\n", directory=self.home)
        self.start()
        self.python(f"import os; os.symlink({str(victim)!r}, '.mcp.json'); os.makedirs('.envrc/x'); os.symlink('nowhere', '.vscode')")
        self.assertEqual(sorted(os.listdir(self.work)), [f".envrc{END}", f".mcp.json{END}", f".vscode{END}"])
        self.assertEqual((os.readlink(self.work / f".mcp.json{END}"), victim.read_text()), (str(victim), "mine\n"))

    def test_a_directory_that_becomes_a_link_leads_nowhere(self):
        outside = self.home / "outside"
        outside.mkdir()
        self.write(".envrc", "mine\n", directory=outside)
        self.start()
        self.detach("python3", "-c", f"""
import os
os.makedirs('d')
os.makedirs('seen')
os.symlink({str(outside)!r}, 'link')
while True:
    for name in ('d/.envrc', 'seen/.envrc'):
        open(name, 'w').close()
    os.rename('d', 'e'); os.rename('link', 'd'); os.rename('d', 'link'); os.rename('e', 'd')
""")
        wait_until(lambda: (self.work / "seen").is_dir() and len(self.all_of(".envrc", "seen")) >= 4, "sbx has looked several times")
        self.stop_session()
        self.assertEqual(os.listdir(outside), [".envrc"])

    def test_a_directory_that_is_closed_to_writers(self):
        self.start()
        record = self.python("import os; os.mkdir('d'); open('d/.envrc', 'w').close(); os.chmod('d', 0o555)")
        self.assertEqual(self.refused(record), {"d/.envrc"})
        self.assertEqual(os.listdir(self.work / "d"), [f".envrc{END}"])
        self.assertEqual(stat.S_IMODE((self.work / "d").stat().st_mode), 0o555)
        (self.work / "d").chmod(0o755)


if __name__ == "__main__":
    main()

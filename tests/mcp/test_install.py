#!/usr/bin/env python3
"""`sbx mcp install`, `remove` and `check`: what they write into the settings of six clients, and what they refuse to touch."""

import json
import os
import pathlib
import shlex
import tomllib

import sbxtest
from mcptest import McpTest, text_of
from sbxtest import SBX

TOOLS = ["run_code", "run_command", "wait", "read_file"]
# Where each has its servers and its permissions, in the home and in a project.
FILES = {
    "claude": (".claude.json", ".claude/settings.json", ".mcp.json", ".claude/settings.json"),
    "codex": (".codex/config.toml", ".codex/config.toml", ".codex/config.toml", ".codex/config.toml"),
    "gemini": (".gemini/settings.json", ".gemini/settings.json", ".gemini/settings.json", ".gemini/settings.json"),
    "opencode": (".config/opencode/opencode.json", ".config/opencode/opencode.json", "opencode.json", "opencode.json"),
    "cursor": (".cursor/mcp.json", ".cursor/mcp.json", ".cursor/mcp.json", ".cursor/mcp.json"),
    "vscode": (".config/Code/User/mcp.json", ".config/Code/User/mcp.json", ".vscode/mcp.json", ".vscode/mcp.json"),
}
DENIES = ("claude", "codex", "gemini", "opencode")
LIVE = ("--workspace", ".:read-write")


def tree(directory):
    """Every name below a directory, and what its files say."""
    return {path.relative_to(directory).as_posix(): path.read_bytes() if path.is_file() and not path.is_symlink() else None
            for path in sorted(directory.rglob("*"))}


class InstallTest(McpTest):
    def mcp(self, *words, status=0, **options):
        done = self.run_sbx("mcp", *words, **options)
        self.assertEqual(done.status, status, done)
        return done

    def read(self, client, scope="user"):
        servers, settings = FILES[client][0 if scope == "user" else 2:][:2]
        top = self.home if scope == "user" else self.work
        reader = tomllib.loads if servers.endswith(".toml") else json.loads
        return [reader((top / name).read_text()) if (top / name).exists() else {} for name in (servers, settings)]

    def entry(self, client, name="sbx", scope="user"):
        servers, _ = self.read(client, scope)
        table = {"codex": "mcp_servers", "opencode": "mcp", "vscode": "servers"}.get(client, "mcpServers")
        return servers.get(table, {}).get(name)

    def words(self, client, **which):
        entry = self.entry(client, **which)
        return entry["command"] if isinstance(entry["command"], list) else [entry["command"], *entry["args"]]

    def denied(self, client, scope="user"):
        _, settings = self.read(client, scope)
        return {"claude": lambda: "Bash" in settings.get("permissions", {}).get("deny", []),
                "codex": lambda: settings.get("features", {}).get("shell_tool") is False,
                "gemini": lambda: "run_shell_command" in settings.get("tools", {}).get("exclude", []),
                "opencode": lambda: settings.get("permission", {}).get("bash") == "deny"}[client]()

    def approved(self, client):
        servers, settings = self.read(client)
        found = settings.get("permissions", {}).get("allow", [])
        entry = self.entry(client) or {}
        return found + list(entry.get("tools", {})) + (["trust"] if entry.get("trust") else [])


class Install(InstallTest):
    def test_each_client_gets_the_absolute_path_and_the_options(self):
        for client in FILES:
            done = self.mcp("install", client, "--", "-p", "data-analysis", "--max-text", "30000")
            self.assertEqual(self.words(client), [os.path.realpath(SBX), "mcp", "-p", "data-analysis", "--max-text", "30000"])
            self.assertEqual("ot tried with the client" in done.out, client in ("cursor", "vscode"), done)
            self.assertFalse(client in DENIES and self.denied(client))
            path = self.home / FILES[client][0]
            self.assertEqual((path.stat().st_mode & 0o777, path.stat().st_uid), (0o600, os.geteuid()))

    def test_a_second_time_changes_nothing_and_other_options_replace_the_first(self):
        for client in FILES:
            self.mcp("install", client)
        before, times = tree(self.home), {path: path.stat().st_ino for path in self.home.rglob("*")}
        for client in FILES:
            self.assertIn("nothing to change", self.mcp("install", client).out)
        self.assertEqual(tree(self.home), before)
        self.assertEqual({path: path.stat().st_ino for path in self.home.rglob("*")}, times, "no file is written anew")
        for client in FILES:
            self.mcp("install", client, "--", "-p", "strict")
            self.assertEqual(self.words(client)[2:], ["-p", "strict"])

    def test_the_shell_is_denied_on_the_same_files_and_given_back(self):
        for client in DENIES:
            done = self.mcp("install", client, "--replace-shell")
            self.assertEqual(self.words(client)[2:], list(LIVE))
            self.assertTrue(self.denied(client))
            self.assertEqual(self.approved(client), [], "with a live workspace the client asks")
            for words in ("What the model can still do", "Makefile", ".sbx-refused", "question" if client == "opencode" else "asks before each call"):
                self.assertIn(words, done.out)
            self.assertIn("nothing to change", self.mcp("install", client, "--replace-shell").out)
            kept = self.mcp("remove", client)
            self.assertIn("--replace-shell", kept.out)
            self.assertTrue(self.denied(client), "only who asks for it gives the model the shell of the host")
            self.assertIsNone(self.entry(client))
            self.mcp("remove", client, "--replace-shell")
            self.assertFalse(self.denied(client))
        for client in set(FILES) - set(DENIES):
            self.assertIn("no setting", self.mcp("install", client, "--replace-shell", status=2).err)
            self.mcp("remove", client, "--replace-shell", status=2)
        named = self.mcp("install", "claude", "--replace-shell", "--", "--workspace", ".:overlay")
        self.assertEqual(self.words("claude")[2:], ["--workspace", ".:overlay"])
        self.assertNotIn("What the model can still do", named.out)

    def test_only_calls_that_reach_nothing_of_the_users_are_approved(self):
        some = {"claude": [f"mcp__sbx__{tool}" for tool in TOOLS], "codex": TOOLS, "gemini": ["trust"]}
        live = self.policy('[filesystem.workspace]\nmode = "read-write"\n', "live.toml")
        writes = self.policy(f'[filesystem]\nwrite = ["{self.work}"]\n', "writes.toml")
        for client, words in some.items():
            for options in (LIVE, ("--allow-apply",), ("-p", live), ("-p", writes), ("--write", self.work),
                            ("--set", 'filesystem.workspace.mode="read-write"'), ("--session", "work")):
                self.mcp("install", client)
                self.assertEqual(sorted(self.approved(client)), sorted(words))
                done = self.mcp("install", client, "--", *options)
                self.assertEqual(self.approved(client), [], options)
                self.assertIn("asks before each call", done.out)

    def test_print_writes_nothing_and_a_client_of_another_kind_has_its_text_too(self):
        before = tree(self.home)
        for client in FILES:
            done = self.mcp("install", client, "--print", "--", "-p", "strict")
            self.assertIn(str(self.home / FILES[client][0]), done.out)
            self.assertIn("strict", done.out)
        claude = self.mcp("install", "claude", "--replace-shell", "--print").out
        for part in claude.split("\n\n"):
            json.loads(part.split(":\n", 1)[1])
        generic = json.loads(self.mcp("install", "--print", "--name", "box", "--", "-p", "strict").out)
        self.assertEqual(generic, {"mcpServers": {"box": {"command": os.path.realpath(SBX), "args": ["mcp", "-p", "strict"]}}})
        self.assertEqual(tree(self.home), before)
        self.mcp("install", status=2)

    def test_a_project_has_its_own_files(self):
        for client in FILES:
            done = self.mcp("install", client, "--scope", "project", "--name", "box")
            self.assertEqual(self.words(client, name="box", scope="project"), [os.path.realpath(SBX), "mcp"])
            self.assertIn("for this project only", done.out)
            self.assertIsNone(self.entry(client, name="box"))
            self.mcp("remove", client, "--scope", "project", "--name", "box")
            self.assertIsNone(self.entry(client, name="box", scope="project"))

    def test_a_clients_own_variable_says_where_its_settings_are(self):
        other = self.home / "other"
        for client, variable, below in (("claude", "CLAUDE_CONFIG_DIR", ".claude.json"), ("codex", "CODEX_HOME", "config.toml"),
                                        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"), ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json")):
            self.mcp("install", client, env={variable: str(other)})
            self.assertIn("sbx", (other / below).read_text())
            outside = self.mcp("install", client, env={variable: str(self.tmp)}, status=1)
            self.assertIn("outside of the home", outside.err)
            self.assertIn('mcp"', outside.out, "the text to paste")
            self.assertFalse((self.tmp / below).exists())


class Refusals(InstallTest):
    def test_files_that_cannot_be_kept_as_they_are_stay_and_the_text_to_paste_is_printed(self):
        for client, text, words in (("claude", '{"a": 1} // mine\n', "it has comments"), ("gemini", "[1]", "not one JSON object"),
                                    ("vscode", '{"servers": [], /* mine */}', "not JSON"), ("cursor", '{"mcpServers": []}', "is not an object"),
                                    ("opencode", '{"mcp": {"sbx": {"type": "remote", "url": "http://x"}}}', "is there already"),
                                    ("gemini", '{"mcpServers": {}, "mcpServers": {}}', "is there twice"),
                                    ("codex", '[mcp_servers.sbx]\ncommand = "x"\n', "this table"), ("codex", "x = ", "not TOML"),
                                    ("cursor", " " * (17 << 20), "more than 16 MiB"), ("cursor", "\0", "not JSON")):
            path = self.write(FILES[client][0], text, directory=self.home)
            done = self.mcp("install", client, "--", "-p", "strict", status=1)
            self.assertIn(words, done.err)
            self.assertIn("strict", done.out)
            self.assertEqual(path.read_text(), text)
            self.mcp("check", client, status=1)
            path.unlink()
        for client, text in (("codex", "[features]\nweb = true\n"), ("opencode", '{"permission": {"bash": "ask"}}')):
            path = self.write(FILES[client][0], text, directory=self.home)
            self.assertIn("shell_tool" if client == "codex" else '"deny"', self.mcp("install", client, "--replace-shell", status=1).out)
            self.assertEqual(path.read_text(), text)

    def test_nothing_is_written_where_one_of_two_files_can_not_be(self):
        self.write(".claude.json", "{} //", directory=self.home)
        self.mcp("install", "claude", "--replace-shell", status=1)
        self.assertFalse((self.home / ".claude/settings.json").exists())

    def test_no_link_out_of_the_home_or_the_project_is_followed(self):
        victim = self.write("victim", "{}", directory=self.tmp)
        (self.home / ".claude.json").symlink_to(victim)
        (self.home / ".codex").symlink_to(self.tmp)
        (self.work / ".mcp.json").symlink_to("../victim")
        (self.work / ".gemini").symlink_to(self.home / ".gemini")
        (self.home / ".gemini").mkdir()
        for words in (("claude",), ("codex",), ("claude", "--scope", "project"), ("gemini", "--scope", "project")):
            self.assertIn("leads out", self.mcp("install", *words, status=1).err)
            self.mcp("remove", *words, status=1)
        self.assertEqual((victim.read_text(), list((self.home / ".gemini").iterdir())), ("{}", []))
        self.assertFalse((self.tmp / "config.toml").exists())
        # The twin: settings that a link keeps elsewhere in the home.
        (self.home / ".claude.json").unlink()
        self.write("dotfiles/claude.json", '{"kept": 1}', directory=self.home)
        (self.home / ".claude.json").symlink_to("dotfiles/claude.json")
        self.mcp("install", "claude")
        self.assertTrue((self.home / ".claude.json").is_symlink())
        self.assertEqual(json.loads((self.home / "dotfiles/claude.json").read_text())["kept"], 1)

    def test_nothing_waits_for_a_fifo_and_no_device_is_read(self):
        os.mkfifo(self.home / ".claude.json")
        for command in ("install", "remove", "check"):
            self.assertIn("not a regular file", self.mcp(command, "claude", status=1).err)

    def test_no_secret_and_nothing_that_a_project_could_bring_gets_into_the_settings(self):
        self.write("own.toml", 'schema = 1\nname = "own"\nextends = "strict"\n')
        for options, words in ((("--env", "TOKEN=s3cret"), "--env NAME=VALUE"), (("--env-fd", "3"), "--env-fd"),
                               (("--set", 'environment.set={TOKEN="s3cret"}'), "environment.set"), (("-p", "own.toml"), "a policy of its own"),
                               (("-p", "./own.toml"), "a policy of its own"), (("--log", "log"), "have its own"),
                               (("--sha256",), "unknown option"), (("tools",), "and nothing else"), (("--timeout", "x"), "--timeout"),
                               (("-p", "nosuchpolicy"), "nosuchpolicy"), (("--help",), "and nothing else"), (("\udcff",), "UTF-8")):
            done = self.run_sbx("mcp", "install", "claude", "--print", "--", *options)
            self.assertIn(done.status, (2, 125), done)
            self.assertIn(words, done.err)
            self.assertNotIn("s3cret", done.out + done.err)
        for options in (("--env", "TOKEN"), ("-p", self.work / "own.toml"), ("--log", self.home / "log")):
            self.mcp("install", "claude", "--", *options)
        self.mcp("install", "claude", "--scope", "project", "--", "-p", "own.toml")

    def test_a_name_is_one_that_every_client_takes(self):
        for name in ("a b", "a_b", "__proto__", "a.b", 'a"', "x" * 33, "é", "a/b"):
            for command in ("install", "remove", "check"):
                self.assertIn("not a name for a server", self.mcp(command, "claude", "--name", name, status=2).err)
        self.assertIn("one of claude", self.mcp("install", "emacs", status=2).err)
        self.assertEqual(tree(self.home), {})

    def test_an_sbx_that_the_model_could_change_is_not_registered(self):
        own = self.work / "sbx"
        own.write_bytes(pathlib.Path(SBX).read_bytes())
        own.chmod(0o755)
        for options in (("--replace-shell",), ("--", *LIVE)):
            done = self.mcp("install", "claude", *options, status=2, program=own)
            self.assertIn("programs can change it", done.err)
        self.mcp("install", "claude", program=own)
        self.assertEqual(self.words("claude"), [str(own), "mcp"])

    def test_what_others_wrote_is_not_removed(self):
        for client in FILES:
            self.assertIn("nothing to change", self.mcp("remove", client).out)
        self.write(".gemini/settings.json", '{"mcpServers": {"sbx": {"command": "x", "args": ["mcp"]}}}', directory=self.home)
        self.write(".codex/config.toml", '[mcp_servers.sbx]\ncommand = "x"\n', directory=self.home)
        for client in ("gemini", "codex"):
            before = tree(self.home)
            self.mcp("remove", client, status=1)
            self.assertEqual(tree(self.home), before)

    def test_a_process_that_swaps_names_leads_no_write_out(self):
        """Whatever stands there when sbx looks, it writes in the home or not at all."""
        outside = self.tmp / "outside"
        outside.mkdir()
        (self.home / ".cursor").mkdir()
        (self.home / "link").symlink_to(outside)
        swapper = sbxtest.start(["python3", "-c", SWAP, self.home], env=self.environment(), cwd=self.home)
        try:
            for _ in range(40):
                self.run_sbx("mcp", "install", "cursor")
                self.run_sbx("mcp", "remove", "cursor")
        finally:
            swapper.kill()
            swapper.wait()
        self.assertEqual(list(outside.iterdir()), [])


SWAP = """
import ctypes, os, sys
exchange = ctypes.CDLL(None).renameat2
os.chdir(sys.argv[1])
while True:
    exchange(-100, b".cursor", -100, b"link", 2)
"""


class Check(InstallTest):
    def test_it_starts_what_the_settings_say_and_lets_it_calculate(self):
        for client in FILES:
            self.assertIn("does not register", self.mcp("check", client, status=1).err)
            self.mcp("install", client, *(["--replace-shell"] if client in DENIES else []), "--", "-p", "agent")
            done = self.mcp("check", client)
            for words in (f'starts "sbx" as: {shlex.quote(os.path.realpath(SBX))} mcp -p agent', "it offers run_code, run_command, wait", "1+1 is 2: ok"):
                self.assertIn(words, done.out)
            self.assertIn("denied by" if client in DENIES else "no setting", done.out)
        self.mcp("remove", "gemini", "--replace-shell")
        self.mcp("install", "gemini")
        self.assertIn("not denied, and runs commands on the host", self.mcp("check", "gemini").out)
        self.nothing_is_left()

    def test_a_server_that_can_not_run_says_why(self):
        policy = self.policy("", "own.toml")
        self.mcp("install", "claude", "--", "-p", policy)
        self.mcp("check", "claude")
        policy.write_text("schema = 1\n[limits]\nmemory = 3\n")
        broken = self.mcp("check", "claude", status=1)
        self.assertIn("own.toml", broken.err)
        self.assertIn("given no answer", broken.err)

    def test_a_settings_file_starts_no_other_program(self):
        """A project's file may name any."""
        started = self.tmp / "started"
        program = self.write("sbx", f"#!/bin/sh\ntouch {started}\n", 0o755, self.tmp)
        own = os.path.realpath(SBX)
        for words in ([str(program), "mcp"], ["sbx", "mcp"], ["./sbx", "mcp"], [own, "run", "--", "touch", str(started)], [own], [own, "mcp", "tools"],
                      [own, "mcp", "--", "x"], [own, "mcp", "--help"]):
            for scope in ((), ("--scope", "project", "--yes")):
                for top in (self.home / ".gemini/settings.json", self.work / ".gemini/settings.json"):
                    top.parent.mkdir(exist_ok=True)
                    top.write_text(json.dumps({"mcpServers": {"sbx": {"command": words[0], "args": words[1:]}}}))
                self.mcp("check", "gemini", *scope, status=1, env={"PATH": f"{self.tmp}:/usr/bin:/bin"})
        self.assertFalse(started.exists())

    def test_a_projects_own_line_is_shown_before_it_is_started(self):
        self.mcp("install", "claude", "--scope", "project")
        shown = self.mcp("check", "claude", "--scope", "project", status=1)
        self.assertIn('starts "sbx" as:', shown.out)
        self.assertNotIn("1+1", shown.out)
        self.assertIn("--yes", shown.err)
        self.assertIn("1+1 is 2", self.mcp("check", "claude", "--scope", "project", "--yes").out)

    def test_a_projects_shell_counts_as_the_client_reads_it(self):
        self.mcp("install", "codex", "--replace-shell")
        self.mcp("install", "codex", "--scope", "project")
        self.assertIn("denied by", self.mcp("check", "codex", "--scope", "project", "--yes").out)
        path = self.work / ".codex/config.toml"
        path.write_text(path.read_text() + "[features]\nshell_tool = true\n")
        self.assertIn("not denied", self.mcp("check", "codex", "--scope", "project", "--yes").out)

    def test_the_self_test_names_clients_and_their_shells(self):
        program = self.write("bin/gemini", "#!/bin/sh\n", 0o755, self.tmp)
        self.mcp("install", "codex")
        self.mcp("install", "claude", "--replace-shell")
        done = self.run_sbx("doctor", "--json", "-p", "strict", env={"PATH": f"{program.parent}:/usr/bin:/bin"})
        found = {each["name"]: each for each in done.json["clients"]}
        self.assertIn(str(program), found["Gemini CLI"]["fact"])
        self.assertIn("does not start sbx mcp", found["Gemini CLI"]["fact"])
        self.assertEqual((found["Codex"]["state"], found["Codex"]["cure"]), ("weaker", "sbx mcp install codex --replace-shell"))
        self.assertEqual((found["Claude Code"]["state"], "its own shell is denied" in found["Claude Code"]["fact"]), ("ok", True))
        self.fits("sbx.doctor.1", done.json)


class Model(InstallTest):
    """The model as attacker, in the live workspace that --replace-shell gives it."""

    def server(self, client):
        words = self.words(client, scope="project")
        return self.client(*words[2:])

    def test_it_can_not_change_how_it_is_started_or_what_it_may_do(self):
        for client in DENIES:
            self.mcp("install", client, "--scope", "project", "--replace-shell")
        files = sorted({name for client in DENIES for name in FILES[client][2:]})
        before = {name: (self.work / name).read_bytes() for name in files}
        server = self.server("claude")
        for name in files:
            for command in ("echo {{}} >{}", "rm -f {}", "mv {} x", "ln -sf /etc/passwd {}", "chmod 777 {}"):
                self.assertNotIn("ok ·", text_of(server.run("run_command", command=command.format(name))).split("\n")[0], (command, name))
            self.assertTrue(server.run("write_file", path=name, content="{}").get("isError"))
        self.assertEqual({name: (self.work / name).read_bytes() for name in files}, before)
        # The twin: a file that is nobody's settings.
        self.assertIn("ok ·", server.text("run_command", command="echo x >file"))
        self.assertEqual((self.work / "file").read_text(), "x\n")

    def test_settings_that_it_makes_anew_are_put_aside(self):
        self.mcp("install", "claude", "--replace-shell")
        server = self.client(*self.words("claude")[2:])
        told = server.text("run_command", command="mkdir .gemini .vscode; echo {} >.gemini/settings.json; echo {} >.vscode/mcp.json; echo {} >.mcp.json; echo >.envrc")
        for name in (".gemini", ".vscode", ".mcp.json", ".envrc"):
            self.assertFalse((self.work / name).exists(), name)
            self.assertTrue((self.work / f"{name}.sbx-refused").exists(), name)
            self.assertIn(name, told)
        self.assertIn("does not register", self.mcp("check", "claude", "--scope", "project", status=1).err)

    def test_a_server_whose_registration_it_could_change_does_not_start(self):
        self.mcp("install", "claude", "--replace-shell", cwd=self.work)
        refused = self.mcp("check", "claude", status=1, cwd=self.home)  # where .claude.json lies
        self.assertRegex(refused.err, r"own-file-writable|unfit-workspace")
        self.mcp("check", "claude", cwd=self.work)


if __name__ == "__main__":
    sbxtest.main()

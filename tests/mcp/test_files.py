#!/usr/bin/env python3
"""The tools of `sbx mcp` for files, and what the operator has of it: the log, and walls that a model can't move."""

import base64
import json
import os

import sbxtest
from harness import wait_until
from mcptest import McpTest, context_of, first_line, job_of, of_program, own, text_of
from sessiontest import process_lives
from test_server import PICTURE

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=")


class Files(McpTest):
    def test_a_file_is_written_read_in_parts_and_listed(self):
        client = self.client()
        self.assertEqual(first_line(client.text("write_file", path="a/b.txt", content="héllo\nworld\n")), "ok · 'a/b.txt' · 13 bytes")
        self.assertEqual(client.text("read_file", path="a/b.txt"), "ok · 'a/b.txt' · 13 bytes\n--- from the program ---\nhéllo\nworld\n")
        self.assertIn("here from 7 to 10; for more: offset 10\n--- from the program ---\nwor", client.text("read_file", path="a/b.txt", offset=7, limit=3))
        self.assertIn("here from 99 to 99", client.text("read_file", path="a/b.txt", offset=99))
        listed = client.text("read_file", path="a")
        self.assertTrue(listed.startswith("ok · 'a' · directory of 1 entries\n"), listed)
        self.assertEqual(of_program(listed).split(), ["13", "b.txt"])
        self.assertIn("stdout:\nhéllo\nworld\n", client.text("run_command", command="cat a/b.txt"))
        self.assertFalse((self.work / "a").exists(), "the workspace is a copy")

    def test_what_is_replaced_keeps_its_permissions(self):
        self.write("script", "#!/bin/sh\necho old\n", mode=0o755)
        client = self.client()
        client.text("write_file", path="script", content="#!/bin/sh\necho new\n")
        self.assertIn("stdout:\nnew\n", client.text("run_command", command="./script"))
        self.assertEqual((self.work / "script").read_text(), "#!/bin/sh\necho old\n")

    def test_pictures_come_as_images_and_other_data_as_its_first_bytes(self):
        client = self.client()
        client.text("write_file", path="dot.png", content=base64.b64encode(PNG).decode(), encoding="base64")
        text, picture = client.run("read_file", path="dot.png")["content"]
        self.assertEqual((picture["mimeType"], base64.b64decode(picture["data"])), ("image/png", PNG))
        client.text("run_command", command="printf '\\000\\001\\377' >data")
        self.assertIn("binary data, of which the first bytes are:\n00 01 ff", client.text("read_file", path="data"))
        self.assertIn("content is not base64", client.refused("write_file", path="x", content="§", encoding="base64"))

    def test_what_an_answer_leaves_out_is_a_file_of_the_session(self):
        client = self.client("--max-text", "1000")
        text = client.text("run_command", command="seq 5000")
        place = text.split("more of it: ")[1].split()[0]
        self.assertEqual(client.text("run_command", command=f"tail -n 1 {place}; wc -l <{place}").split("stdout:\n")[1], "5000\n5000\n")
        shown = client.text("run_code", code=PICTURE)
        place = own(shown).split("saved: ")[1].split()[0]
        self.assertRegex(place, r"^~/results/\d+-1\.png$")
        self.assertEqual(client.run("read_file", path=place)["content"][1]["mimeType"], "image/png")

    def test_changes_are_told_where_the_workspace_is_a_copy(self):
        self.write("old", "one\n")
        client = self.client()
        client.text("write_file", path="old", content="two\n")
        client.text("write_file", path="new", content="x\n")
        listed = client.text("changes")
        self.assertTrue(listed.startswith("ok · 2 names are changed"), listed)
        self.assertIn("+two", of_program(client.text("changes", diff=True)))
        client.text("run_command", command="mkdir -p sub/in subtle; echo x >sub/in/deep; echo x >subtle/file")
        for path in ("sub", "./sub/", "sub//in", str(self.work / "sub")):
            seen = client.text("changes", path=path)
            self.assertIn("sub/in/deep", of_program(seen))
            self.assertNotRegex(of_program(seen), "subtle|new|old")
            self.assertIn(f"changed in '{path}'", first_line(seen))
        diff = of_program(client.text("changes", path="old", diff=True))
        self.assertRegex(diff, r"(?s)-one\n.*\+two\n")
        self.assertNotRegex(diff, "subtle|new|deep")
        for path in ("..", "/etc", "nowhere", "../work/sub", "sub/../old"):
            self.assertTrue(client.text("changes", path=path).startswith("ok · 0 names are changed in "), path)
        everything = of_program(client.text("changes"))
        for path in (".", "", str(self.work)):
            self.assertEqual(of_program(client.text("changes", path=path)), everything)
        live = self.client("--workspace", f"{self.work}:read-write")
        self.assertEqual(live.error(live.call("changes"))["code"], -32602)
        tools = {each["name"]: each["annotations"] for each in live.result(live.ask("tools/list"))["tools"]}
        self.assertNotIn("changes", tools)
        self.assertEqual((tools["write_file"]["destructiveHint"], tools["read_file"]["destructiveHint"]), (True, False))
        live.text("write_file", path="live", content="x")
        self.assertEqual((self.work / "live").read_text(), "x")

    def test_a_protected_name_in_a_live_workspace_is_put_aside_and_told(self):
        live, log = ("--workspace", f"{self.work}:read-write"), self.home / "log"
        twin = self.client("--set", "session.put_aside=false", *live)
        twin.text("run_command", command=": >.mcp.json")
        self.assertTrue((self.work / ".mcp.json").exists())
        (self.work / ".mcp.json").unlink()
        client = self.client("--log", log, *live)
        for tool, arguments, name in (("run_command", {"command": ": >.mcp.json"}, ".mcp.json"), ("run_code", {"code": "open('.envrc', 'w').close()"}, ".envrc")):
            text = client.text(tool, **arguments)
            self.assertIn(f"it is now {name}.sbx-refused", text.partition("--- from the program ---")[0])
            self.assertFalse((self.work / name).exists())
            self.assertTrue((self.work / f"{name}.sbx-refused").exists())
            self.assertIn(f"{name}.sbx-refused", log.read_text())


class Applying(McpTest):
    def applier(self, *options):
        return self.client("--allow-apply", *options)

    def test_the_named_files_and_no_others_reach_the_users_directory(self):
        self.write("old", "one\n")
        self.write("gone", "x\n")
        client = self.applier()
        client.text("run_command", command="echo two >old; rm gone; mkdir new; echo a >new/a; echo b >new/b; echo s >'[o]ld'; echo s >'*'")
        [tool] = [each for each in client.result(client.ask("tools/list"))["tools"] if each["name"] == "apply_changes"]
        self.assertEqual((tool["annotations"]["destructiveHint"], tool["annotations"]["readOnlyHint"]), (True, False))
        applied = client.text("apply_changes", paths=["./new/a", "gone"])
        self.assertEqual(first_line(applied), "ok · 3 applied to the user's directory")
        self.assertEqual(sorted(applied.splitlines()[1:]), ["  gone", "  new", "  new/a"])
        self.assertEqual(sorted(each.name for each in self.work.rglob("*")), ["a", "new", "old"])
        self.assertEqual(client.text("apply_changes", paths=["[o]ld"]), "ok · 1 applied to the user's directory\n  [o]ld\n")
        client.text("apply_changes", paths=["*"])
        self.assertEqual((self.work / "old").read_text(), "one\n", "a name is not a pattern")
        self.assertFalse((self.work / "new/b").exists())
        client.text("run_command", command="echo three >old")
        client.text("apply_changes", paths=[str(self.work / "old")])
        self.assertEqual((self.work / "old").read_text(), "three\n")

    def test_what_may_not_be_applied_is_refused_and_nothing_else_is_applied_with_it(self):
        (self.work / ".git/hooks").mkdir(parents=True)
        self.write("mine", "one\n")
        client = self.applier()
        client.text("run_command", command="echo x >good; echo x >.git/hooks/pre-commit; echo x >.mcp.json; echo two >mine; mkdir dir; echo x >dir/in; mkfifo pipe")
        self.write("mine", "the user's\n")
        for path, why in ((".git/hooks/pre-commit", "a protected name"), (".mcp.json", "a protected name"), ("mine", "changed"), ("dir", "name files"),
                          ("dir/*", "it was not changed"), ("../work/good", "it was not changed"), ("/etc/passwd", "it was not changed"),
                          (".", "it was not changed"), ("**", "it was not changed"), ("pipe", "a FIFO")):
            with self.subTest(path=path):
                refused = client.refused("apply_changes", paths=["good", path])
                self.assertTrue(refused.startswith("nothing was applied: "), refused)
                self.assertIn(why, refused)
        for paths in ([], "good", [1], [""], ["a\0b"], ["good"] * 1001):
            self.assertIn('argument "paths" must be a list of 1 to 1000 paths', client.refused("apply_changes", paths=paths))
        self.assertFalse((self.work / "good").exists())
        self.assertEqual((self.work / "mine").read_text(), "the user's\n")
        self.assertTrue(client.text("apply_changes", paths=["good"]).startswith("ok · 1 applied"))

    def test_a_link_that_leads_to_what_may_not_be_written_is_refused(self):
        """The client's own tools would read and write through it on the host. The twins lead to other files of the directory."""
        self.write("a/b/file", "x\n")
        (self.work / "own").symlink_to(self.home)  # the user's
        client = self.applier()
        client.text("run_command", command="ln -s . here; ln -s ../../here a/b/up")
        twins = {"in": "a/b/file", "a/b/back": "../../a", "absolute": f"{self.work}/a/b/file", "top": ".", "a/over": "./b", "through": "own"}
        attacks = {"key": f"{self.home}/.ssh/id", "root": "/", "out": "..", "a/out": "../..", "a/b/far": "../../../x", "slashes": "./..//x", "prefix": f"{self.work}x",
                   "dots": f"{self.work}/../x", "winding": "a/b/up/../../x", "self": "/proc/self/cwd", "git": ".git", "hook": ".git/hooks/pre-commit", "a/rc": "../.bashrc",
                   "case": ".GIT/config"}
        for name, to in {**twins, **attacks}.items():
            client.text("run_command", command=f"ln -s '{to}' {name}")
        for name, to in attacks.items():
            with self.subTest(to=to):
                refused = client.refused("apply_changes", paths=["in", name])
                self.assertTrue(refused.startswith(f"nothing was applied: '{name}': it is a symbolic link "), refused)
        self.assertFalse(os.path.lexists(self.work / "in"))
        applied = client.text("apply_changes", paths=list(twins))
        self.assertTrue(applied.startswith(f"ok · {len(twins)} applied"), applied)
        self.assertEqual({name: os.readlink(self.work / name) for name in twins}, twins)

    def test_a_directory_in_the_place_of_something_else_is_not_named_by_it(self):
        (self.work / "was").symlink_to("a")
        client = self.applier()
        client.text("run_command", command="rm was; mkdir was; echo x >was/unnamed")
        self.assertIn("name files", client.refused("apply_changes", paths=["was"]))
        self.assertTrue((self.work / "was").is_symlink())

    def test_only_the_operator_offers_it_and_no_file_of_his_lies_where_it_writes(self):
        client = self.client()
        self.assertEqual(client.error(client.call("apply_changes", paths=["x"]))["code"], -32602)
        for options, words in ((("--workspace", f"{self.work}:read-write"), "--allow-apply needs a copy-on-write workspace"),
                               (("-p", self.policy("", name="work/own.toml"), "--workspace", f"{self.work}:overlay"), "own-file-writable"),
                               (("--log", self.work / "log"), "own-file-writable")):
            refused = self.run_sbx("mcp", "--allow-apply", *options)
            self.assertNotEqual(refused.status, 0)
            self.assertIn(words, refused.err)
        self.write(".mcp.json", "{}")  # a protected name
        self.assertEqual(self.run_sbx("mcp", "--allow-apply").status, 0)
        (self.work / ".claude.json").write_text("{}")
        self.assertIn("own-file-writable", self.run_sbx("mcp", "--allow-apply").err)

    def test_an_application_whose_client_is_gone_is_whole(self):
        client = self.applier()
        client.text("run_command", command="for i in $(seq 300); do echo $i >$i; done")
        client.call("apply_changes", paths=[str(number) for number in range(1, 301)])
        client.end()
        self.nothing_is_left()
        self.assertIn(len(list(self.work.iterdir())), (0, 300))


class Walls(McpTest):
    def test_the_log_has_a_line_for_each_call_without_what_programs_wrote(self):
        log = self.tmp / "log"
        client = self.client("--log", log)
        client.text("run_code", code="print('LOUD' * 2)")
        client.refused("read_file", path="nowhere")
        job = job_of(client.text("run_command", command="true", wait_s=0))
        client.text("wait", job_id=job)
        self.assertEqual(client.end(), 0)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertEqual([line["call"] for line in lines][:3], ["run_code", "read_file", "run_command"])
        self.assertEqual(lines[0]["arguments"], {"code": "print('LOUD' * 2)"})
        self.assertEqual(lines[0]["record"]["schema"], "sbx.cell/1")
        self.assertIn(f"end of {job}", [line["call"] for line in lines])
        self.assertNotIn("LOUDLOUD", log.read_text())
        self.assertEqual(log.stat().st_mode & 0o777, 0o600)
        log.chmod(0o644)
        refused = self.run_sbx("mcp", "--log", log)
        self.assertEqual((refused.status, "only its owner can read" in refused.err), (125, True), refused)

    def test_files_that_decide_about_the_server_may_not_lie_where_programs_change_them(self):
        policy = self.policy("", name="work/sub/own.toml")
        live = ("--workspace", f"{self.work}:read-write")
        (self.work / ".gemini").mkdir()
        self.write(".gemini/settings.json", "{}")
        twin = self.run_sbx("mcp", "-p", self.policy("", name="own.toml"), *live)  # .gemini stays as it is
        self.assertEqual((twin.status, twin.out), (0, ""), twin)
        (self.tmp / "link").symlink_to(self.work)
        for log in (self.work / "log", self.tmp / "link/log"):  # neither is there yet
            refused = self.run_sbx("mcp", "--log", log, *live)
            self.assertEqual((refused.status, "own-file-writable" in refused.err), (125, True), refused)
        other = self.tmp / "other"
        self.write(".claude.json", "{}", directory=other)
        refused = self.run_sbx("mcp", "--write", other)
        self.assertEqual((refused.status, "own-file-writable" in refused.err), (125, True), refused)
        (other / ".claude.json").unlink()
        self.assertEqual(self.run_sbx("mcp", "--write", other).status, 0)
        self.write(".claude.json", "{}")
        for options in (("-p", policy, *live), ("--log", self.work / "log", *live), live):
            refused = self.run_sbx("mcp", *options, env={"HOME": str(self.home)})
            self.assertEqual((refused.status, refused.out), (125, ""), refused)
            self.assertIn("own-file-writable", refused.err)
        self.assertFalse((self.work / "log").exists(), "a log that is refused is not made")
        self.assertEqual(self.run_sbx("mcp", "-p", policy, "--log", self.work / "log").status, 0)

    def test_why_the_sandbox_can_not_start_is_for_the_operator(self):
        log = self.tmp / "log"
        (self.home / ".local").mkdir()
        (self.home / ".local/state").write_text("no directory")
        client = self.client("--log", log, "--workspace", ".:read-only", env={"XDG_RUNTIME_DIR": "", "XDG_STATE_HOME": ""})
        self.assertEqual(client.refused("run_command", command="true"), "the sandbox can't start: ask the user to run sbx doctor")
        [told, call] = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertIn(".local/state", told["answer"])
        self.assertIn(told["answer"], client.said())
        self.assertEqual(call["call"], "run_command")

    def test_where_changes_can_not_be_kept_the_server_does_not_start(self):
        """An account without a home of its own may have a directory for sessions."""
        runtime = self.tmp / "runtime"
        runtime.mkdir(mode=0o700)
        env = {"XDG_RUNTIME_DIR": str(runtime), "XDG_STATE_HOME": None}
        self.assertEqual(self.run_sbx("mcp", env=env).status, 0)
        (self.home / ".local").rename(self.tmp / "moved")
        (self.home / ".local").write_text("no directory")
        refused = self.run_sbx("mcp", env=env)
        self.assertEqual((refused.status, refused.out), (125, ""), refused)
        self.assertIn("error[no-state-directory]", refused.err)
        self.assertIn("changes that nobody has applied are kept there: HOME, and XDG_STATE_HOME", refused.err)
        client = self.client("--session", "named", env=env)
        self.assertIn("the sandbox can't start", client.refused("write_file", path="new", content="x"))
        self.assertIn("error[no-state-directory]", client.said())
        self.assertEqual(self.run_sbx("mcp", "--workspace", ".:read-only", env=env).status, 0)

    def test_changes_that_are_lost_at_the_end_are_named(self):
        runtime = self.tmp / "runtime"
        runtime.mkdir(mode=0o700)
        log = self.tmp / "log"
        for written in (["new", "other"], []):
            with self.subTest(written=written):
                client = self.client("--log", log, env={"XDG_RUNTIME_DIR": str(runtime), "XDG_STATE_HOME": None})
                client.text("run_command", command="true")
                for name in written:
                    client.text("write_file", path=name, content="x")
                (self.home / ".local").rename(self.tmp / f"moved-{len(written)}")
                (self.home / ".local").write_text("no directory")
                self.assertEqual(client.end(), 125 if written else 0)
                (self.home / ".local").unlink()
                self.assertEqual("changes that were not applied are lost: new, other\n" in client.said(), bool(written), client.said())
        self.assertIn("are lost: new, other", log.read_text())

    def sets(self):
        return [each["name"] for each in self.run_sbx("changes", "list", "--json").json["sets"]]

    def test_the_changes_are_kept_when_the_client_ends_the_server_or_is_killed(self):
        log = self.tmp / "log"
        client = self.client("--log", log)
        client.text("write_file", path="new", content="x\n")
        self.assertEqual(client.end(), 0)
        [name] = self.sets()
        self.assertRegex(name, rf"^mcp-{client.process.pid}-[0-9a-f]{{4}}$")
        self.assertIn(f"sbx: kept 1 change: \"sbx changes diff {name}\" shows", client.said())
        self.assertIn(name, json.loads(log.read_text().splitlines()[-1])["answer"])
        self.assertEqual(self.run_sbx("changes", "apply", "--yes", name).status, 0)
        self.assertEqual((self.work / "new").read_text(), "x\n")
        unchanged = self.client()
        unchanged.text("run_command", command="cat new")
        self.assertEqual(unchanged.end(), 0)
        killed = self.client()
        killed.text("write_file", path="other", content="y\n")
        killed.process.kill()
        killed.process.wait()
        self.nothing_is_left()
        self.assertEqual({each.split("-")[1] for each in self.sets()}, {str(client.process.pid), str(killed.process.pid)})

    def test_the_changes_are_kept_when_the_lifetime_is_over_and_go_where_the_operator_stops_the_session(self):
        client = self.client()
        client.text("write_file", path="new", content="x\n")
        [name] = self.sessions()
        self.assertEqual(self.run_sbx("session", "extend", name, "1s").status, 0)
        wait_until(self.sets, "the session has ended and its changes are kept")
        lines = []
        wait_until(lambda: lines.append(first_line(client.text("run_command", command="true"))) or lines[-1].startswith("new session"),
                   "the next session begins")
        self.assertIn(f"new session: variables and files of the old one are gone, its changes are kept as {name} · ok · ", lines[-1])
        stopped = self.client()
        stopped.text("write_file", path="other", content="y\n")
        own_session = next(each for each in self.sessions() if f"-{stopped.process.pid}-" in each)
        self.assertIn("changes that were not applied ended with", self.run_sbx("session", "stop", own_session).err)
        self.assertNotIn(own_session, self.sets())

    def test_the_session_is_not_idle_as_long_as_its_server_lives(self):
        client = self.client("--set", "session.idle=\"1s\"")
        context = context_of(client.text("run_code", code="x = 9"))
        twin = self.start_session("--set", "session.idle=\"1s\"", name="twin")
        wait_until(lambda: not process_lives(twin["pid"]), "a session without a server has ended")
        self.assertIn("result:\n9\n", client.text("run_code", code="x", context_id=context))


if __name__ == "__main__":
    sbxtest.main()

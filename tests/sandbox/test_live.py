"""Live grants: what is guarded in a directory that the program writes to directly, and what is reported afterwards."""

import os
import subprocess

import sbxtest
from sbxtest import SbxTest


class Live(SbxTest):
    def setUp(self):
        super().setUp()
        self.tmp.chmod(0o755)
        self.live = ["--workspace", f"{self.work}:read-write"]

    def appeared(self, ended):
        return {os.path.relpath(each["path"], self.work): each["guard"] for each in ended.record.get("appeared", [])}


class Appeared(Live):
    MAKE = ("import os\nos.makedirs('sub/.git/hooks'); open('.envrc', 'w'); os.mkdir('.vscode'); open('.vscode/tasks.json', 'w'); open('.env', 'w')\n"
            "open('sub/.git/hooks/x', 'w'); open('fine', 'w'); os.symlink('elsewhere', 'CLAUDE.md'); open('sub/.env.d', 'w')\n"
            "os.mkdir('tree'); open('tree/.git', 'w')")
    NAMES = {".envrc": "protected", ".vscode": "protected", "CLAUDE.md": "protected", "sub/.git/hooks": "protected", "tree/.git": "protected",
             ".env": "filesystem.deny", "sub/.env.d": "filesystem.deny"}

    def test_guarded_names_that_the_program_made_are_listed(self):
        self.write(".bashrc", "mine")
        self.write("old/.env", "mine")
        self.assertEqual(self.appeared(self.exited(self.python(self.MAKE, options=self.live))), self.NAMES)

    def test_a_write_grant_is_looked_through_too(self):
        ended = self.exited(self.python(f"import os; os.chdir({str(self.work)!r})\n{self.MAKE}", options=["--write", self.work]))
        self.assertEqual(self.appeared(ended), self.NAMES)

    def test_a_name_that_a_rule_gives_whole_is_listed_when_it_was_not_there(self):
        self.write("there", "secret")
        deny = ["--set", f'filesystem.deny=["{self.work}/made", "{self.work}/there", "{self.work}/deep/er/made"]']
        ended = self.exited(self.sbx(*self.live, *deny, "--", "sh", "-c", f"cd {self.work}; echo x > made; mkdir -p deep/er; echo x > deep/er/made; cat there"))
        self.assertEqual(self.appeared(ended), {"made": "filesystem.deny", "deep/er/made": "filesystem.deny"}, ended)

    def test_those_that_the_host_made_meanwhile_are_listed(self):
        process = self.start_sbx(*self.live, "--", "sh", "-c", "echo ready; read x", json_record=False, stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.write(".env", "s3cr3t")
        self.write(".envrc", "x")
        said = self.finish(process, data=b"\n", json_record=False).err.decode()
        self.assertRegex(said, rf"run or trust[^\n]*\n  {self.work}/\.envrc\n")
        self.assertRegex(said, rf"filesystem\.deny means[^\n]*\n  {self.work}/\.env\n")

    def test_people_are_told_of_ten_and_of_how_many_more(self):
        ended = self.sbx(*self.live, "--lang", "python", "-c", "import os\nfor i in range(14): os.mkdir(f'd{i:02}'); open(f'd{i:02}/.envrc', 'w')",
                         json_record=False)
        self.assertEqual((ended.err.count(b".envrc\n"), ended.err.count(b"  and 4 more\n")), (10, 1), ended)

    def test_names_with_escapes_are_made_visible(self):
        ended = self.sbx(*self.live, "--lang", "python", "-c", "import os; os.mkdir('a\\033[2J\\n'); open('a\\033[2J\\n/.envrc', 'w')",
                         json_record=False)
        self.assertNotIn(b"\x1b", ended.err)
        self.assertEqual(len(ended.err.splitlines()), 3, ended)  # the guarded name, and its parent directory as a hazard

    def test_what_was_there_and_what_is_not_guarded_is_not_listed(self):
        for name in (".bashrc", ".env", ".git/hooks/x", ".vscode/a", "worktree/.git"):
            self.write(name, "mine")
        (self.work / "CLAUDE.md").symlink_to("AGENTS.md")
        ended = self.exited(self.python("import os\nopen('new', 'w'); os.mkdir('d'); open('.env2', 'w'); os.rename('d', 'e')", options=self.live))
        self.assertNotIn("appeared", ended.record)
        ended = self.sbx(*self.live, "touch", "other", json_record=False)
        self.assertEqual(ended.err, b"")

    def test_a_copy_has_no_such_list(self):
        ended = self.exited(self.python(self.MAKE, options=["--workspace", f"{self.work}:overlay"]))
        self.assertNotIn("appeared", ended.record)

    def test_a_directory_that_grew_beyond_the_scan_is_told_of(self):
        code = "import os\nfor i in range(100): os.mkdir(f'd{i}')"
        for most, told in ((50, True), (150, False)):
            subprocess.run(["find", self.work, "-mindepth", "1", "-delete"], check=True)
            ended = self.exited(self.python(code, options=[*self.live, "--set", f"filesystem.scan={most}"]))
            self.assertEqual(any("filesystem.scan" in each["why"] for each in ended.record["degraded"]), told, ended)


class Guarded(Live):
    """What a program does to get its own hook into a repository of the host."""

    def setUp(self):
        super().setUp()
        self.write(".git/hooks/pre-commit", "trusted\n")
        self.write(".git/config", "[core]\n")
        self.write("sub/module/.git/hooks/x", "trusted\n")
        self.write(".env", "s3cr3t")
        self.write("deep/er/.env", "s3cr3t")

    def test_a_mask_cannot_be_renamed_away(self):
        for move in ("mv .git x && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit", "mv sub x", "mv sub/module sub/x", "mv deep x", "mv deep/er deep/x",
                     "mv .git/hooks .git/h", "rmdir .git/hooks", "mv .env x", "rm .env", "mv .git/config x"):
            ended = self.sbx(*self.live, "--", "sh", "-c", move)
            self.assertEqual((ended.outcome["exit_code"], "busy" in ended.record["stderr"]["text"]), (1, True), f"{move}: {ended}")
        code = ("import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True); os.makedirs('new/hooks')\n"
                "print([(libc.renameat2(-100, a, -100, b, 2), ctypes.get_errno()) for a, b in ((b'new', b'.git'), (b'.git', b'new'), (b'deep', b'new'))])")
        self.assertEqual(self.python(code, options=self.live).text, "[(-1, 16), (-1, 16), (-1, 16)]\n")
        self.assertEqual((self.work / ".git/hooks/pre-commit").read_text(), "trusted\n")
        self.assertEqual(os.listdir(self.work / ".git/hooks"), ["pre-commit"])

    def test_the_file_that_leads_git_elsewhere_is_read_only(self):
        self.write("worktree/.git", "gitdir: /srv/repository\n")
        ended = self.sbx(*self.live, "--", "sh", "-c", "echo gitdir: evil > worktree/.git || mv worktree/.git x || mv worktree y")
        self.assertEqual(ended.outcome["exit_code"], 1, ended)
        self.assertEqual((self.work / "worktree/.git").read_text(), "gitdir: /srv/repository\n")

    def test_links_under_protected_names_stay(self):
        self.write("AGENTS.md", "trusted")
        for name, leads_to in (("CLAUDE.md", "AGENTS.md"), (".vscode", "/etc"), (".envrc", "nowhere")):
            (self.work / name).symlink_to(leads_to)
        for name in ("CLAUDE.md", ".vscode", ".envrc"):
            ended = self.sbx(*self.live, "--", "sh", "-c", f"rm {name} && mv {name} x || ln -sfn evil {name}")
            self.assertEqual(ended.outcome["exit_code"], 1, ended)
        self.assertEqual([os.readlink(self.work / name) for name in ("CLAUDE.md", ".vscode", ".envrc")], ["AGENTS.md", "/etc", "nowhere"])

    def test_the_rest_of_a_live_directory_is_the_programs(self):
        ended = self.exited(self.sbx(*self.live, "--", "sh", "-c", "mkdir a && mv a b && echo x > deep/er/f && echo y > .git/index && rm .git/index"))
        self.assertEqual((self.work / "deep/er/f").read_text(), "x\n", ended)


class Submounts(Live):
    """A mount below a granted directory is shown with its guarded names, in every mode."""

    def apart(self, script, *arguments):
        """A shell script in its own mount namespace."""
        if not sbxtest.IS_ROOT:
            wrapper = ["unshare", "--user", "--map-current-user", "--mount", "--keep-caps"]
            if subprocess.run([*wrapper, "true"], capture_output=True).returncode != 0:
                self.skipTest("mounts can't be made here")
        else:
            wrapper = ["unshare", "--mount"]
        process = sbxtest.start([*wrapper, "sh", "-c", script, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self.environment(), cwd=self.work)
        return self.finish(process, json_record=False)

    def mounted(self, mode, script):
        (self.work / "sub").mkdir(exist_ok=True)
        make = (f'mount -t tmpfs -o mode=777 t "{self.work}/sub"; cd "{self.work}"; mkdir -p sub/.git/hooks; echo shown > sub/file; echo s3cr3t > sub/.env; '
                f'"$0" run --workspace .:{mode} -- sh -c "$1"; echo "status $?"; cat sub/file; ls -A sub')
        return self.apart(make, sbxtest.SBX, script)

    def test_they_show_their_content_and_hide_what_is_hidden(self):
        self.write("sub/below", "under the mount")
        for mode in ("read-only", "overlay", "read-write"):
            ended = self.mounted(mode, "cat sub/file; ls -A sub; cat sub/.env")
            self.assertIn(b"shown\n", ended.out, ended)
            self.assertNotIn(b"below", ended.out.split(b"status")[0], ended)
            self.assertNotIn(b"s3cr3t", ended.out, ended)

    GRANTS = ("--workspace .:read-only", "--workspace .:overlay", "--workspace .:read-write", "--read .", "--write .")

    def test_a_hidden_name_that_is_a_mount_stays_hidden(self):
        self.write("shown", "shown")
        make = ('echo s3cr3t > ../e; : > .env; mount --bind ../e .env; mkdir -p .ssh .aws/sub; mount -t tmpfs t .ssh; echo s3cr3t > .ssh/key; '
                'mount -t tmpfs t .aws/sub; echo s3cr3t > .aws/sub/key; "$0" run $1 -- sh -c "cat $2/.env $2/.ssh/key $2/.aws/sub/key $2/shown"')
        for grant in self.GRANTS:
            ended = self.apart(make, sbxtest.SBX, grant, self.work)
            self.assertEqual(ended.out, b"shown", f"{grant}: {ended}")

    def test_the_state_of_sbx_that_is_a_mount_stays_hidden(self):
        make = ('mkdir -p "$HOME/.local/state/sbx" "$HOME/.local/lib"; mount -t tmpfs t "$HOME/.local/state/sbx"; echo s3cr3t > "$HOME/.local/state/sbx/last.json"; '
                'echo shown > "$HOME/.local/lib/shown"; "$0" run $1 "$HOME" -- sh -c "cat $HOME/.local/state/sbx/last.json $HOME/.local/lib/shown"')
        for grant in ("--read", "--write"):
            ended = self.apart(make, sbxtest.SBX, grant)
            self.assertEqual(ended.out, b"shown\n", f"{grant}: {ended}")

    def test_a_file_that_is_a_mount_is_shown(self):
        make = 'echo mounted > ../e; : > settings; mount --bind ../e settings; "$0" run $1 -- cat $2/settings'
        for grant in self.GRANTS:
            ended = self.apart(make, sbxtest.SBX, grant, self.work)
            self.assertEqual(ended.out, b"mounted\n", f"{grant}: {ended}")

    def test_writing_to_them_is_what_the_mode_says(self):
        for mode, after in (("read-only", b"shown"), ("overlay", b"shown"), ("read-write", b"written")):
            ended = self.mounted(mode, "echo written > sub/file; mv sub/.git sub/x; mkdir -p sub/.git/hooks; echo evil > sub/.git/hooks/h")
            self.assertIn(b"status", ended.out, ended)
            if mode == "read-write" and sbxtest.IS_ROOT and not sbxtest.tmpfs_takes_id_maps():
                self.assertIn(b"error[cannot-idmap]", ended.err, ended)
                self.skipTest("this kernel's tmpfs can't be idmapped: sbx says so; the other modes were seen")
            self.assertEqual(ended.out.split(b"status")[1].splitlines()[1], after, f"{mode}: {ended}")
            self.assertIn(b".git\n", ended.out.split(b"status")[1])


if __name__ == "__main__":
    sbxtest.main()

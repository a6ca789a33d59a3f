"""Invariants 6 and 7: what leaves the sandbox, and captured output."""

import os
import pathlib
import re
import shlex
import subprocess
import time

import sbxtest
from sbxtest import PROBE, SbxTest

MIB = 1 << 20


MAKE_SPECIALS = """
import os, socket
os.mkfifo("pipe"); os.symlink("/etc/passwd", "link"); open("plain", "w").write("data")
socket.socket(socket.AF_UNIX).bind("socket")
os.link("plain", "second"); open("suid", "w").write("x"); os.chmod("suid", 0o6755)
"""


class BroughtOut(SbxTest):
    """Only regular files leave, as new files, and nothing on the host redirects them."""

    def setUp(self):
        super().setUp()
        self.out = self.tmp / "out"

    def brought(self, code, *options, collect='"**"'):
        ended = self.exited(self.python(code, options=["--set", f"filesystem.outputs.collect=[{collect}]", "--out", self.out,
                                                       "--workspace", f"{self.work}:overlay", *options]))
        return ended, {each["path"]: each["why"] for each in ended.record["out"]["left"]}

    def applied(self, code, *patterns):
        options = [f"--apply={pattern}" for pattern in patterns] or ["--apply"]
        return self.exited(self.python(code, options=[*options, "--yes", "--workspace", f"{self.work}:overlay"]))

    def test_what_is_no_plain_file_is_left_behind(self):
        ended, left = self.brought(MAKE_SPECIALS)
        self.assertEqual(sorted(os.listdir(self.out)), ["plain", "second", "suid"], ended)
        self.assertEqual((left["pipe"], left["socket"], left["link"]), ("a FIFO", "a socket", "a symbolic link"))
        self.assertEqual((self.out / "suid").stat().st_mode & 0o7777, 0o755)
        self.assertIn("set-uid", left["suid"])

    def test_plain_files_are_brought_out(self):
        ended, left = self.brought("open('plain', 'w').write('data')")
        self.assertEqual(((self.out / "plain").read_text(), left), ("data", {}), ended)

    def test_hard_links_leave_as_files_of_their_own(self):
        self.brought(MAKE_SPECIALS)
        self.assertEqual([(self.out / name).stat().st_nlink for name in ("plain", "second")], [1, 1])

    def test_nothing_but_plain_files_and_links_is_applied(self):
        ended = self.applied(MAKE_SPECIALS)
        self.assertEqual(sorted(os.listdir(self.work)), ["link", "plain", "second", "suid"], ended)
        self.assertEqual((self.work / "suid").stat().st_mode & 0o7777, 0o755)
        self.assertEqual({each["path"] for each in ended.record["applied"]["left"]}, {"pipe", "socket", "suid"})

    def test_links_of_the_host_are_not_followed(self):
        victim = self.write("victim", "untouched", directory=self.tmp)
        directory = self.tmp / "elsewhere"
        directory.mkdir()
        self.out.mkdir()
        (self.out / "plain").symlink_to(victim)
        (self.out / "sub").symlink_to(directory)
        process = self.start_sbx("--set", 'filesystem.outputs.collect=["**"]', "--out", self.out, "--lang", "python", "-c",
                                 "import os; os.mkdir('sub'); open('sub/x', 'w'); open('plain', 'w').write('data')")
        ended = self.finish(process)
        self.assertEqual((victim.read_text(), os.listdir(directory)), ("untouched", []), ended)
        self.assertFalse((self.out / "plain").is_symlink())
        self.assertEqual((self.out / "plain").read_text(), "data")
        self.assertEqual([each["path"] for each in ended.record["out"]["left"]], ["sub/x"])

    def test_links_in_the_workspace_are_replaced_not_followed(self):
        victim = self.write("victim", "untouched", directory=self.tmp)
        (self.work / "name").symlink_to(victim)
        self.applied("import os; os.unlink('name'); open('name', 'w').write('data')")
        self.assertEqual((victim.read_text(), (self.work / "name").is_symlink()), ("untouched", False))
        self.assertEqual((self.work / "name").read_text(), "data")

    def test_a_directory_that_became_a_link_during_the_run_is_not_followed(self):
        elsewhere = self.tmp / "elsewhere"
        elsewhere.mkdir()
        self.write("sub/file", "x")
        code = "import sys\nopen('sub/new', 'w')\nprint('ready', flush=True); sys.stdin.readline()\nopen('fine', 'w')"
        process = self.start_sbx("--workspace", f"{self.work}:overlay", "--apply", "--yes", "--lang", "python", "-c", code,
                                 json_record=False, stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        (self.work / "sub").rename(self.work / "moved")
        (self.work / "sub").symlink_to(elsewhere)
        ended = self.finish(process, data=b"\n", json_record=False)
        self.assertEqual(os.listdir(elsewhere), [], ended)
        self.assertTrue((self.work / "sub").is_symlink())
        self.assertIn("fine", os.listdir(self.work), ended)

    def test_protected_names_are_left_out(self):
        code = "import os; os.makedirs('.git/hooks')\nfor n in ('.git/hooks/x', '.bashrc', 'a'): open(n, 'w').write('x')"
        ended, left = self.brought(code)
        self.assertEqual(os.listdir(self.out), ["a"], ended)
        self.assertEqual(set(left), {".git/hooks/x", ".bashrc"})
        ended = self.applied(code)
        self.assertEqual(sorted(os.listdir(self.work)), [".git", "a"], ended)
        self.assertEqual(os.listdir(self.work / ".git"), [])
        again = sbxtest.start([sbxtest.SBX, "changes", "apply", "--yes", ended.record["kept"]["name"], ".bashrc"], env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL)
        self.assertEqual((again.wait(), sorted(os.listdir(self.work))), (0, [".bashrc", ".git", "a"]))

    def test_protected_names_come_when_they_are_named(self):
        code = "open('.bashrc', 'w').write('x')"
        self.brought(code, collect='".bashrc"')
        self.assertEqual(os.listdir(self.out), [".bashrc"])
        self.applied(code, ".bashrc")
        self.assertEqual(os.listdir(self.work), [".bashrc"])

    def test_policy_files_are_left_out(self):
        policy = self.policy('[filesystem.workspace]\nmode = "overlay"\n')
        inside = self.write("p.toml", policy.read_text())
        ended = self.sbx("-p", inside, "--apply", "--yes", "--lang", "python", "-c",
                         "import os; os.mkdir('d'); os.rename('d', 'e')\ntry: open('p.toml', 'w')\nexcept OSError: pass")
        self.assertEqual((inside.read_text(), sorted(os.listdir(self.work))), (policy.read_text(), ["e", "p.toml"]), ended)

    def test_keeping_changes_of_a_live_workspace_is_an_error(self):
        marker = self.work / "ran"
        self.could_not(self.sbx("--workspace", f"{self.work}:read-write", "--keep", "x", PROBE, "write", marker), "copy-on-write")
        self.assertFalse(marker.exists())

    def test_run_that_brings_nothing_out_works(self):
        self.exited(self.sbx(PROBE, "exit", 0))
        self.assertFalse(self.out.exists())


class ProtectedNames(SbxTest):
    """Names through which a host program could be made to run something are read-only in live grants."""

    NAMES = (".git/hooks/pre-commit", ".git/config", ".git/modules/x/config", ".envrc", ".bashrc", ".vscode/settings.json")

    def setUp(self):
        super().setUp()
        for name in self.NAMES:
            self.write(name, "trusted\n")
        self.options = ["--workspace", f"{self.work}:read-write"]

    def test_protected_names_are_read_only_in_a_live_workspace(self):
        for name in self.NAMES:
            self.refuses(self.inside("write", self.work / name, options=self.options))
        self.assertEqual({name: (self.work / name).read_text() for name in self.NAMES}, dict.fromkeys(self.NAMES, "trusted\n"))

    def test_protected_names_are_read_only_in_a_write_grant(self):
        for name in self.NAMES:
            self.refuses(self.inside("write", self.work / name, options=["--write", self.work]))

    def test_protected_directories_cannot_be_moved_away(self):
        self.refuses(self.inside("rename", self.work / ".git", self.work / "x", options=self.options))
        self.refuses(self.inside("write", self.work / ".git/hooks/post-commit", options=self.options))
        self.assertTrue((self.work / ".git/hooks").is_dir())

    def test_git_writes_through_no_link_that_was_applied(self):
        """Reflogs and messages, with names of branches that the program chose. Twin: files in the same places are applied."""
        self.write("victim", "precious")
        for name in ("logs/HEAD", "COMMIT_EDITMSG"):
            self.write(f".git/{name}", "before")
        program = ("import os; os.remove('.git/{0}'); os.symlink('../' * {0!r}.count('/') + '../victim', '.git/{0}')",
                   "open('.git/{0}', 'w').write('after')")
        for name in ("logs/HEAD", "COMMIT_EDITMSG"):
            for text, content in zip(program, ("before", "after")):
                ended = self.sbx("--workspace", f"{self.work}:overlay", "--apply", "--yes", "--", "python3", "-c", text.format(name))
                self.assertFalse((self.work / ".git" / name).is_symlink(), ended)
                self.assertEqual((self.work / ".git" / name).read_text(), content, ended)

    def test_other_names_of_a_live_grant_can_be_written_and_moved(self):
        self.works(self.inside("write", self.work / "src", options=self.options))
        self.works(self.inside("rename", self.work / "src", self.work / "dst", options=self.options))
        self.assertEqual((self.work / "dst").read_text(), "x")

    def test_protected_names_are_writable_in_an_overlay(self):
        self.works(self.inside("write", self.work / ".bashrc", options=["--workspace", f"{self.work}:overlay"]))
        self.assertEqual((self.work / ".bashrc").read_text(), "trusted\n")

    def test_git_credentials_are_not_shown(self):
        self.write(".git/config", '[remote "origin"]\n\turl = https://user:hunter2@example.org/x.git\n[http]\n\textraheader = AUTHORIZATION: hunter3\n')
        for mode in ("overlay", "read-only", "read-write"):
            ended = self.sbx("--workspace", f"{self.work}:{mode}", "--", "cat", self.work / ".git/config")
            self.assertNotIn("hunter", ended.text or "", f"{mode}: {ended}")

    def test_git_settings_without_credentials_are_shown(self):
        self.write(".git/config", '[core]\n\tbare = false\n[remote "origin"]\n\turl = https://example.org/x.git\n')
        ended = self.sbx("--workspace", f"{self.work}:overlay", "--", "cat", self.work / ".git/config")
        self.exited(ended)
        self.assertIn("https://example.org/x.git", ended.text)

    def test_policy_files_of_the_run_are_read_only(self):
        policy = self.policy("", name="work/p.toml")
        ended = self.inside("write", policy, options=["-p", policy, *self.options])
        self.refuses(ended)
        self.assertNotIn("x", policy.read_text()[-1])

    def test_other_policy_files_are_writable(self):
        self.works(self.inside("write", self.work / "q.toml", options=self.options))


class PolicyWays(SbxTest):
    """A link by which a policy was named, and the user's config.toml, choose the next run's policy as the file itself does."""

    TEXT = '[filesystem.workspace]\nmode = "overlay"\n'
    # Tries each way to have another policy under the name; what is kept from it shows as an error that the program ignores.
    ATTACK = ("import os, shutil, sys\nopen('fine', 'w')\n"
              "def put(name):\n  open(name, 'w').write('schema = 1')\n"
              "for name in sys.argv[1:]:\n"
              "  for way in (lambda: (put('new'), os.replace('new', name)), lambda: os.rename(name, name + '-gone'), lambda: os.remove(name),\n"
              "              lambda: os.symlink('evil.toml', name), lambda: put(name),\n"
              "              lambda: (os.mkdir(name), put(name + '/real.toml'), put(name + '/second.toml'))):\n"
              "    try: way()\n"
              "    except OSError as error: print(error)\n")

    def setUp(self):
        super().setUp()
        self.real = self.policy(self.TEXT, name="elsewhere/real.toml")
        self.link("first.toml", "second.toml")
        self.link("second.toml", "../elsewhere/real.toml")
        self.link("directory", "../elsewhere")
        self.link("other.toml", "../elsewhere/real.toml")
        self.write("child.toml", 'schema = 1\nextends = "./third.toml"\n')
        self.link("third.toml", "../elsewhere/real.toml")
        self.before = self.texts()

    def link(self, name, text):
        (self.work / name).symlink_to(text)

    def texts(self):
        return {path.name: os.readlink(path) for path in self.work.iterdir() if path.is_symlink()}

    def attack(self, policy, *names, options=("--apply", "--yes"), env=None):
        named = ("-p", policy) if policy else ()
        ended = self.sbx(*named, "--workspace", f"{self.work}:overlay", *options, "--lang", "python", "-c", self.ATTACK, *names, env=env)
        self.assertTrue((self.work / "fine").exists() or "--apply" not in options, ended)
        return ended

    def test_links_to_the_policy_are_left_out(self):
        for policy, names in (("./first.toml", ("first.toml", "second.toml")), (self.work / "second.toml", ("second.toml",)),
                              ("directory/real.toml", ("directory",)), ("./directory/../elsewhere/real.toml", ("directory",)), ("./child.toml", ("third.toml",))):
            with self.subTest(policy=policy):
                if policy == "./directory/../elsewhere/real.toml":
                    policy = f"{self.work}/directory/../elsewhere/real.toml"
                ended = self.attack(policy, *names)
                self.assertEqual(self.texts(), self.before, ended)

    def test_links_that_lead_to_no_policy_are_replaced(self):
        for name in ("first.toml", "second.toml", "directory", "third.toml"):
            with self.subTest(name=name):
                ended = self.attack(self.real, name)
                self.assertNotEqual(self.texts()[name], self.before[name], ended)

    def kept_with(self, name):
        """A set whose program replaced every link, of a run whose policy had a link of this name."""
        ended = self.attack(self.real, *self.before, options=("--keep", "set"))
        manifest = self.home / ".local/state/sbx/changes/set/manifest"
        text = manifest.read_text()
        manifest.write_text(text.replace(str(self.real), str(self.work / name)))
        self.assertNotEqual(manifest.read_text(), text, ended)
        again = sbxtest.start([sbxtest.SBX, "changes", "apply", "--yes", "set"], env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL)
        again.wait()
        return {name for name, text in self.before.items() if self.texts()[name] != text}

    def test_a_kept_set_leaves_them_out(self):
        """Nothing keeps the program from replacing the link here."""
        replaced = self.kept_with("other.toml")
        self.assertEqual(replaced, set(self.before) - {"other.toml"})

    def test_links_in_live_grants_stay(self):
        options = ["--workspace", f"{self.work}:read-write"]
        for policy, name in (("./first.toml", "first.toml"), ("./first.toml", "second.toml"), ("directory/real.toml", "directory")):
            ended = self.refuses(self.inside("rename", self.work / name, self.work / "x", options=["-p", policy, *options])).ended
            self.assertIn(f"'{self.work / name}', which leads to the policy: its directory is granted for writing", str(ended.record["degraded"]))
        self.assertEqual(self.texts(), self.before)

    def test_other_links_in_live_grants_can_be_moved(self):
        self.works(self.inside("rename", self.work / "other.toml", self.work / "x", options=["-p", "./first.toml", "--workspace", f"{self.work}:read-write"]))

    def config(self, directory):
        settings = self.write("config.toml", 'policy = "strict"\n', directory=directory)
        (self.home / ".config/sbx").mkdir(parents=True, exist_ok=True)
        (self.home / ".config/sbx/config.toml").symlink_to(settings)
        return settings

    def test_settings_that_were_read_are_left_out(self):
        settings = self.config(self.work)
        self.attack(None, "config.toml")
        self.assertEqual(settings.read_text(), 'policy = "strict"\n')

    def test_settings_of_others_are_replaced(self):
        self.config(self.tmp / "theirs")
        settings = self.write("config.toml", "")
        self.attack(None, "config.toml")
        self.assertTrue(settings.is_symlink())

    def test_a_policy_in_the_directory_of_out_is_left(self):
        out = self.work / "out"
        policy = self.policy(self.TEXT, name="work/out/p.toml")
        (out / "link.toml").symlink_to("p.toml")
        before = policy.read_text()
        self.sbx("-p", out / "link.toml", "--out", out, "--lang", "python", "-c", "for name in ('p.toml', 'link.toml', 'q.toml'): open(name, 'w').write('x')")
        self.assertEqual((policy.read_text(), (out / "link.toml").is_symlink(), (out / "q.toml").read_text()), (before, True, "x"))

    def test_other_files_in_the_directory_of_out_are_replaced(self):
        out = self.work / "out"
        policy = self.policy(self.TEXT, name="work/out/p.toml")
        self.sbx("-p", self.real, "--out", out, "--lang", "python", "-c", "open('p.toml', 'w').write('x')")
        self.assertEqual(policy.read_text(), "x")


class GitElsewhere(SbxTest):
    """A program leads the host's git to settings of its own, by names beside .git/config and .git/hooks."""

    def setUp(self):
        super().setUp()
        self.mark = self.tmp / "ran"
        self.write("file", "one\n")
        self.git("init", "-q", ".")
        self.git("add", ".")
        self.git("commit", "-qm", "first")
        self.attack = (f"set -e; cd {shlex.quote(str(self.work))}; rm -rf x; mkdir x; cp -r .git/HEAD .git/refs .git/objects x/; "
                       f"printf '#!/bin/sh\\ntouch {self.mark}\\n' >x/mon; chmod 755 x/mon; "
                       f"printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = {self.work}/x/mon\\n' >x/config; printf '../x\\n' >.git/commondir")

    def git(self, *words):
        return subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@example", *words], cwd=self.work, env=self.environment(), check=False,
                              capture_output=True, text=True)

    def ran(self):
        """Whether git on the host runs the program's command."""
        self.git("status")
        return self.mark.exists()

    def is_whole(self):
        return (self.git("fsck", "--strict").returncode, self.git("status", "--porcelain").stdout) == (0, "")

    def test_git_follows_commondir_where_nobody_protects_it(self):
        subprocess.run(["sh", "-c", self.attack], check=True, env=self.environment())
        self.assertTrue(self.ran())

    def test_commondir_is_not_applied(self):
        ended = self.exited(self.sbx("--workspace", f"{self.work}:overlay", "--apply", "--yes", "--", "sh", "-c", self.attack))
        self.assertTrue((self.work / "x/config").exists(), ended)
        self.assertFalse((self.work / ".git/commondir").exists() or self.ran(), ended)
        left = {each["path"]: each["why"] for each in ended.record["applied"]["left"]}
        self.assertEqual(left, {".git/commondir": "a protected name (git takes settings and hooks from where it leads): left out unless it is named itself"})

    def test_commondir_cannot_be_made_in_live_grants(self):
        for options in (["--workspace", f"{self.work}:read-write"], ["--write", self.work], ["--write", self.work / ".git", "--workspace", f"{self.work}:overlay"]):
            ended = self.sbx(*options, "--", "sh", "-c", self.attack + " || exit 7; exit 1")
            self.assertNotEqual(ended.outcome["exit_code"], 1, f"{options}: {ended}")
            self.assertIn("Read-only file system", ended.record["stderr"]["text"])
            for more in ("rm -f .git/commondir", "mv .git/commondir x", "mv .git y", "echo > .git/config.worktree", "ln -sf x .git/commondir"):
                ended = self.sbx(*options, "--", "sh", "-c", f"cd {self.work} && {more}")
                self.assertNotEqual(ended.outcome["exit_code"], 0, f"{options}: {more}: {ended}")
            self.assertFalse(self.ran(), options)
            self.assertEqual([name for name in ("commondir", "config.worktree") if (self.work / ".git" / name).exists()], [], options)

    def test_commits_in_live_grants_work(self):
        self.git("worktree", "add", "-q", "-b", "topic", "tree")
        commit = "echo two >>file && git -c user.name=n -c user.email=e@example commit -qam second && git status --porcelain"
        for directory in (self.work, self.work / "tree"):
            ended = self.sbx("-p", "shell", "--workspace", f"{self.work}:read-write", "--", "sh", "-c", f"cd {directory} && {commit}", cwd=self.work)
            self.exited(ended)
            self.assertNotIn("appeared", ended.record, ended)
        self.assertEqual(self.git("log", "--format=%s", "topic").stdout, "second\nfirst\n")
        self.assertEqual(self.git("log", "--format=%s").stdout, "second\nfirst\n")
        self.assertEqual(self.git("fsck", "--strict").returncode, 0)

    def applied(self, script, *options):
        """Runs a script on a copy of the repository; what was left out, and why."""
        ended = self.exited(self.sbx("-p", "shell", "--workspace", f"{self.work}:overlay", "--apply", "--yes", *options, "--", "sh", "-ec", script, env={"GIT_ALLOW_PROTOCOL": "file"}))
        self.assertEqual((ended.status, ended.record["applied"]["conflicts"]), (0, []), ended)
        return {each["path"]: each["why"] for each in ended.record["applied"]["left"]}

    def test_of_submodules_only_data_is_applied(self):
        self.git("clone", "-q", "--bare", ".", "lib.git")
        self.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", "./lib.git", "old")
        self.git("commit", "-qm", "a submodule")
        id = "git config --global user.name n; git config --global user.email e@example; git config --global protocol.file.allow always\n"
        self.assertEqual(self.applied(id + "cd old; echo two >>file; git commit -qam config; git branch config-two; cd ..; git commit -qam 'from the submodule'"), {})
        self.assertEqual(self.git("submodule", "status").stdout[0], " ")
        self.assertEqual((self.git("-C", "old", "status", "--porcelain").stdout, self.git("-C", "old", "fsck", "--strict").returncode), ("", 0))
        # A new one: git on the host makes what leads to it.
        left = self.applied(id + f"git submodule add -q file://{self.work}/lib.git new; git commit -qam 'one more'; rm -rf .git/modules/new/hooks/*.sample .git/modules/new/branches")
        self.assertEqual(set(left), {".git/config", ".git/modules/new/config", ".git/modules/new/hooks", "new/.git"})
        self.assertIn("git submodule update --init", left["new/.git"])
        self.assertEqual(self.git("submodule", "update", "--init", "new").returncode, 0)
        self.assertEqual((self.git("status", "--porcelain").stdout, self.git("-C", "new", "fsck", "--strict").returncode), ("?? lib.git/\n", 0))
        # What git runs stays out, also where the name of a submodule makes it look like data.
        left = self.applied("for d in old x/objects x/refs objects; do mkdir -p .git/modules/$d/hooks .git/modules/$d/info; cd .git/modules/$d\n"
                            "echo x >config; echo x >config.worktree; echo x >commondir; echo x >hooks/post-checkout; echo '* filter=x' >info/attributes; cd -; done >&2\n"
                            "mkdir -p .git/modules/objects/objects; echo x >.git/modules/objects/objects/data; echo x >.git/modules/old/what-comes-next")
        names = {f".git/modules/{d}/{name}" for d in ("old", "x/objects", "x/refs", "objects") for name in ("config", "config.worktree", "commondir", "info/attributes")}
        hooks = {f".git/modules/{d}/hooks" for d in ("x/objects", "x/refs", "objects")} | {".git/modules/old/hooks/post-checkout"}
        below = {f"{each}/post-checkout" for each in hooks if each.endswith("hooks")}
        self.assertEqual(set(left), names | hooks | below | {".git/modules/old/what-comes-next"})
        self.assertTrue((self.work / ".git/modules/objects/objects/data").exists())

    def test_of_a_worktrees_submodules_only_data_is_applied(self):
        """git keeps them in .git/worktrees/NAME/modules."""
        self.git("clone", "-q", "--bare", ".", "lib.git")
        self.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", "./lib.git", "sub")
        self.git("commit", "-qm", "a submodule")
        self.git("worktree", "add", "-q", "-b", "topic", "tree")
        self.assertEqual(self.git("-C", "tree", "-c", "protocol.file.allow=always", "submodule", "update", "--init").returncode, 0)
        modules = ".git/worktrees/tree/modules/sub"
        id = "git config --global user.name n; git config --global user.email e@example\n"
        left = self.applied(id + "cd tree/sub; echo two >>file; git commit -qam two; cd ..; git commit -qam 'from the submodule'; cd ..\n"
                            f"echo x >{modules}/hooks/post-checkout; echo >>{modules}/config; echo x >{modules}/commondir")
        self.assertEqual(set(left), {f"{modules}/{name}" for name in ("hooks/post-checkout", "config", "commondir")})
        self.assertEqual((self.git("-C", "tree", "status", "--porcelain").stdout, self.git("-C", "tree", "log", "--format=%s", "-1").stdout), ("", "from the submodule\n"))
        self.assertEqual(self.git("-C", "tree/sub", "fsck", "--strict").returncode, 0)

    def test_a_worktree_is_applied_whole_or_not_at_all(self):
        add = "git worktree add -q -b topic tree; echo more >tree/more"
        left = self.applied(add)
        self.assertEqual(set(left), {".git/worktrees/tree", "tree"})
        self.assertIn("git worktree add on the host makes it", left[".git/worktrees/tree"])
        self.assertEqual((os.listdir(self.work / ".git/worktrees"), (self.work / "tree").exists()), ([], False))
        self.assertTrue(self.is_whole())
        self.git("branch", "-D", "topic")
        # Named, all of it comes.
        options = [f"--apply={name}" for name in (".git/worktrees/tree", ".git/refs/**", ".git/logs/**", "tree/**", "tree/.git")]
        ended = self.exited(self.sbx("-p", "shell", "--workspace", f"{self.work}:overlay", *options, "--yes", "--", "sh", "-ec", add))
        self.assertEqual(ended.status, 0, ended)
        self.assertEqual(self.git("-C", "tree", "status", "--porcelain").stdout, "?? more\n", ended)
        # One that is there takes commits, and goes whole or not at all.
        commit = "cd tree; git add more; git -c user.name=n -c user.email=e@example commit -qm more"
        self.assertEqual(self.applied(commit), {})
        self.assertEqual((self.git("-C", "tree", "status", "--porcelain").stdout, self.git("log", "-1", "--format=%s", "topic").stdout), ("", "more\n"))
        left = self.applied("git worktree remove --force tree")
        self.assertIn("git worktree remove on the host does it", left[".git/worktrees/tree"])
        self.assertEqual((self.git("-C", "tree", "status", "--porcelain").stdout, self.is_whole()), ("", False))
        ended = self.exited(self.sbx("-p", "shell", "--workspace", f"{self.work}:overlay", "--apply=.git/worktrees/**", "--apply=.git/worktrees/tree", "--apply=tree/**", "--apply=tree/.git", "--apply=tree", "--yes", "--",
                                     "git", "worktree", "remove", "--force", "tree"))
        self.assertEqual((self.git("worktree", "list").stdout.count("\n"), (self.work / "tree").exists(), self.is_whole()), (1, False, True), ended)

    def test_commits_in_a_copy_are_applied_whole(self):
        commit = "echo two >>file && git -c user.name=n -c user.email=e@example commit -qam second && git switch -qc topic && git merge -q --no-edit master; exit 0"
        ended = self.exited(self.sbx("-p", "shell", "--workspace", f"{self.work}:overlay", "--apply", "--yes", "--", "sh", "-c", commit))
        self.assertEqual((ended.status, ended.record["applied"]["left"], ended.record["applied"]["conflicts"]), (0, [], []), ended)
        self.assertTrue(self.is_whole(), ended)
        self.assertEqual(self.git("log", "--format=%s").stdout, "second\nfirst\n")

    def test_a_repository_is_deleted_whole_or_not_at_all(self):
        options = ["--workspace", f"{self.work}:overlay", "--yes"]
        for remove in ("rm -rf .git", "rm -rf .git; echo gitdir: x >.git"):
            ended = self.exited(self.sbx(*options, "--apply", "--", "sh", "-c", remove))
            self.assertTrue(self.is_whole(), ended)
            self.assertIn("deleted whole or not at all", ended.record["applied"]["left"][0]["why"])
        self.exited(self.sbx(*options, "--apply=.git", "--", "rm", "-rf", ".git"))
        self.assertEqual(os.listdir(self.work), ["file"])

    def test_case_counts_for_nothing_and_a_rebase_is_named(self):
        names = (".GIT/hooks/x", ".git/Commondir", ".Git/INFO/attributes", ".VSCode/tasks.json", "Claude.md", ".hG/HGRC", ".Rprofile", ".npmrc", ".cargo/config.toml",
                 ".github/workflows/x.yml", "a.code-workspace", ".RData", ".PerlDB", ".octaverc", ".githooks/pre-commit", ".pre-commit-config.yaml", "Lefthook.yml",
                 ".lefthook-local.toml", ".git/rebase-merge/git-rebase-todo")
        others = (".github/x", "code-workspace", ".cargo/x", "hooks", "x.RData", "lefthook", "githooks")
        code = f"import os\nfor n in {names!r}: os.makedirs(os.path.dirname(n) or '.', exist_ok=True); open(n, 'w').write('x')\n" \
               f"for n in {others!r}: open(n, 'w')"
        ended = self.sbx("--workspace", f"{self.work}:overlay", "--apply", "--yes", "--lang", "python", "-c", code, json_record=False)
        self.assertEqual([name for name in names if (self.work / name).exists()], [], ended)
        self.assertEqual([name for name in others if not (self.work / name).exists()], [], ended)
        self.assertRegex(ended.err, rb"run or trust by themselves[^\n]*\n(  [^\n]*\n)*  \.git/rebase-merge/git-rebase-todo \([^\n]*git rebase --abort")


class Captured(SbxTest):
    def test_output_is_capped_while_it_streams(self):
        ended = self.sbx("--output", "64K", PROBE, "flood-output", 10 * MIB)
        self.exited(ended)
        stream = ended.record["stdout"]
        self.assertEqual((stream["bytes"], stream["truncated"]), (10 * MIB, True))
        self.assertLess(len(stream["text"]), 66 * 1024)
        self.assertIn("bytes left out", stream["text"])
        self.assertEqual(stream["head_bytes"] + stream["tail_bytes"], 64 * 1024)

    def test_output_below_the_cap_is_whole(self):
        ended = self.sbx("--output", "64K", PROBE, "flood-output", 64 * 1024)
        self.exited(ended)
        stream = ended.record["stdout"]
        self.assertEqual((stream["bytes"], stream["truncated"], len(stream["text"])), (64 * 1024, False, 64 * 1024))

    def test_passed_output_is_capped(self):
        ended = self.sbx("--output", "64K", PROBE, "flood-output", 10 * MIB, json_record=False)
        self.assertEqual((ended.status, len(ended.out)), (153, 64 * 1024))
        self.assertIn(b"output.passed", ended.err)
        ended = self.sbx("--output", "64K", "--set", 'output.exceed="truncate"', PROBE, "flood-output", 10 * MIB, json_record=False)
        self.assertEqual((ended.status, len(ended.out)), (0, 64 * 1024))
        self.assertIn(b"left out (output.passed", ended.err)

    def test_passed_output_below_the_cap_is_whole_and_silent(self):
        ended = self.sbx(PROBE, "flood-output", 600000, json_record=False)
        self.assertEqual((ended.status, len(ended.out), ended.err), (0, 600000, b""))

    def flooded_supervisor(self, total):
        """The supervisor's peak memory in KiB while that much output passes."""
        # The command waits until the supervisor has been measured: a short flood may end before the first look.
        done = self.work / "done"
        done.unlink(missing_ok=True)
        script = f"{shlex.quote(PROBE)} flood-output {total} && echo > {shlex.quote(str(done))} && cat"
        process = self.start_sbx("--output", "16K", "--read", PROBE, "--workspace", f"{self.work}:read-write",
                                 "--", "sh", "-c", script, stdin=subprocess.PIPE)
        while not done.exists() and process.poll() is None:
            time.sleep(0.01)
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        ended = self.finish(process)
        self.assertEqual(ended.record["stdout"]["bytes"], total)
        return int(re.search(r"^VmHWM:\s+(\d+)", status, re.M)[1])

    def test_supervisor_does_not_grow_with_the_output(self):
        small = self.flooded_supervisor(8 * MIB)
        self.assertLess(self.flooded_supervisor(1024 * MIB) - small, 8 * 1024)

    def test_slow_supervisor_does_not_grow_with_ten_gigabytes(self):
        small = self.flooded_supervisor(8 * MIB)
        self.assertLess(self.flooded_supervisor(10 * 1024 * MIB) - small, 8 * 1024)

    def test_binary_output_is_data(self):
        ended = self.python("import sys; sys.stdout.buffer.write(bytes(range(256)))")
        stream = ended.record["stdout"]
        self.assertEqual(stream["encoding"], "base64", ended)

    def test_text_output_is_text(self):
        ended = self.python("print('ä \"quoted\" \\x07')")
        self.assertEqual((ended.record["stdout"]["encoding"], ended.text), ("utf-8", "ä \"quoted\" \x07\n"))


class OnATerminal(SbxTest):
    def shown(self, text):
        code = f"import sys; sys.stdout.write({text!r})"
        status, seen = self.on_terminal(self.command("--lang", "python", "-c", code, json_record=False))
        self.assertEqual(status, 0, seen)
        return seen

    def test_output_is_never_raw_on_a_terminal(self):
        for sequence in ("\x1b]0;title\x07", "\x1b]52;c;aGk=\x07", "\x1bP+q544e\x1b\\", "\x1b_x\x1b\\", "\x1b[2J", "\x1b[6n", "\x9b6n", "\x1bc"):
            seen = self.shown("a" + sequence + "b")
            self.assertNotIn(sequence, seen, repr(sequence))
            self.assertNotIn("\x1b", seen, repr(sequence))

    def test_colours_pass_on_a_terminal(self):
        self.assertIn("\x1b[31mred\x1b[0m", self.shown("\x1b[31mred\x1b[0m"))

    def test_output_is_raw_in_a_pipe(self):
        ended = self.sbx("--", "printf", "a\\033]0;title\\007b", json_record=False)
        self.assertEqual(ended.out, b"a\x1b]0;title\x07b")


if __name__ == "__main__":
    sbxtest.main()

"""filesystem.deny: what stays hidden within grants, and every known way around it."""

import os
import socket
import subprocess

import sbxtest
from sbxtest import SbxTest

SECRET = "s3cr3t-0123456789"
EVERY_FILE = """
import os, stat
for directory, _, names in os.walk('.', followlinks=False):
    for name in names:
        path = os.path.join(directory, name)
        try:
            if stat.S_ISREG(os.stat(path).st_mode) and 's3cr3t' in open(path, errors='replace').read():
                print(path)
        except OSError:
            pass
"""


class Later(SbxTest):
    """Names that the host creates while the sandbox is there."""

    def test_plain_names_are_hidden_in_the_top_directory_of_a_copy(self):
        names = (".env", ".env.local", ".env.production", ".netrc", ".ssh/key")
        listing = "echo ready; read x; cat " + " ".join(names) + " .envx; ls -A; echo mine >.env && cat .env"
        process = self.start_sbx("--workspace", f"{self.work}:overlay", "--", "sh", "-c", listing, json_record=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        for name in names:
            self.write(name, "s3cr3t\n")
        self.write(".envx", "shown\n")
        ended = self.finish(process, data=b"\n", json_record=False)
        self.assertEqual(ended.out, b"shown\n.envx\nmine\n", ended)

    def test_an_environment_of_that_name_is_shown(self):
        self.write(".env/pyvenv.cfg", "home = /usr/bin\n")
        ended = self.exited(self.sbx("--workspace", f"{self.work}:overlay", "--", "cat", ".env/pyvenv.cfg"))
        self.assertIn("home", ended.text)


class Deny(SbxTest):
    MODES = ("overlay", "read-only", "read-write")

    def setUp(self):
        super().setUp()
        self.tmp.chmod(0o755)

    def secrets_seen(self, mode, *options, code=EVERY_FILE, directory=None):
        ended = self.sbx("--workspace", f"{directory or self.work}:{mode}", *options, "--lang", "python", "-c", code)
        self.assertEqual(ended.status, 0, ended)
        return sorted(ended.text.split())

    def deny(self, *patterns):
        return ["--set", f"filesystem.deny={{ replace = [{', '.join(f'{chr(34)}{each}{chr(34)}' for each in patterns)}] }}"]


class OwnState(Deny):
    """sbx's state is off limits to programs: kept changes are applied later, and private disks belong to other runs."""

    def tried(self, state, *grant, env=None):
        self.write("sbx/kept/set", SECRET, directory=state)
        self.write("near/file", SECRET, directory=state)
        code = (f"import os, shutil\nos.chdir({str(state)!r})\n"
                "for name in ('sbx', 'near'): print(name, sorted(os.listdir(name)))\n"
                "for name in ('sbx', 'near'):\n  for do in (lambda: os.rename(name, 'moved'), lambda: open(name + '/made', 'w'), lambda: shutil.rmtree('moved')):\n"
                "    try: do(); print(name, 'done')\n    except OSError: print(name, 'refused')\n    if name == 'near' and not os.path.exists('near'): os.mkdir('near')\n")
        return self.sbx(*grant, "--lang", "python", "-c", code, env=env)

    def test_it_is_hidden_in_a_grant_of_the_home_and_what_lies_beside_it_is_not(self):
        for name, env in ((".local/state", None), ("own", {"XDG_STATE_HOME": str(self.home / "own")})):
            state = self.home / name
            ended = self.exited(self.tried(state, "--write", self.home, env=env))
            self.assertEqual(ended.text.splitlines(), ["sbx []", "near ['file']", *["sbx refused"] * 3, *["near done"] * 3], ended)
            self.assertEqual(((state / "sbx/kept/set").read_text(), os.listdir(state / "near")), (SECRET, ["made"]))
            ended = self.sbx("--read", self.home, "--", "ls", "-A", state, env=env)
            self.assertEqual(ended.text, "near\n", ended)

    def test_where_it_is_without_settings_is_hidden_beside_another(self):
        self.write(".local/state/sbx/kept/set", SECRET, directory=self.home)
        self.write(".local/state/near", "shown\n", directory=self.home)
        code = "cat .local/state/near; cat .local/state/sbx/kept/set"
        for grant in ("--read", "--write"):
            ended = self.sbx(grant, self.home, "--", "sh", "-c", f"cd {self.home}; {code}", env={"XDG_STATE_HOME": str(self.home / "own")})
            self.assertEqual(ended.text, "shown\n", ended)

    def test_what_it_is_a_link_to_is_hidden(self):
        self.write("big/sbx/last.json", SECRET, directory=self.home)
        self.write("big/near", "shown\n", directory=self.home)
        (self.home / ".local/state").mkdir(parents=True)
        (self.home / ".local/state/sbx").symlink_to(self.home / "big/sbx")
        ended = self.sbx("--read", self.home / "big", "--", "sh", "-c", f"cd {self.home}/big; cat near; cat sbx/last.json")
        self.assertEqual(ended.text, "shown\n", ended)

    def test_none_can_be_planted_where_there_is_none_yet(self):
        self.write("victim/disks/a/data", "precious", directory=self.home)
        self.write("victim/disks/a.lock", "", directory=self.home)
        (self.home / ".local").mkdir()
        plant = f"cd {self.home}/.local; mkdir -p lib state; ln -s {self.home}/victim state/sbx && rm -r state/sbx; ln -sfn {self.home}/victim state/sbx; mv state moved; ls -A"
        for _ in range(2):
            ended = self.sbx("--write", self.home / ".local", "--", "sh", "-c", plant)
            self.assertEqual(ended.text, "lib\nstate\n", ended)
            self.exited(self.sbx("--", "true"))  # which removes the remains of dead runs
            self.assertEqual((self.home / "victim/disks/a/data").read_text(), "precious")
        self.assertFalse((self.home / ".local/state/sbx").is_symlink())

    def test_a_link_on_the_way_to_it_stays_and_another_is_the_programs(self):
        (self.home / "elsewhere").mkdir()
        (self.home / ".local").mkdir()
        for name in ("state", "other"):
            (self.home / ".local" / name).symlink_to(self.home / "elsewhere")
        code = "for name in state other; do ln -sfn /tmp $name; mv $name moved && echo $name moved && rm moved; done"
        ended = self.sbx("--write", self.home / ".local", "--", "sh", "-c", f"cd {self.home}/.local; {code}")
        self.assertEqual(ended.text, "other moved\n", ended)
        self.assertEqual(os.readlink(self.home / ".local/state"), str(self.home / "elsewhere"))

    def test_a_link_in_its_place_is_not_used(self):
        self.write("victim/disks/a/data", "precious", directory=self.home)
        self.write("victim/disks/a.lock", "", directory=self.home)
        (self.home / ".local/state").mkdir(parents=True)
        (self.home / ".local/state/sbx").symlink_to(self.home / "victim")
        self.exited(self.sbx("--", "true"))
        self.assertEqual((self.home / "victim/disks/a/data").read_text(), "precious")

    def test_a_grant_of_it_is_refused(self):
        self.write(".local/state/sbx/kept/set", SECRET, directory=self.home)
        self.could_not(self.sbx("--read", self.home / ".local/state/sbx/kept", "true"), "sbx's own state")

    def test_the_first_run_that_makes_it_in_a_granted_home_is_like_the_second(self):
        for _ in range(2):
            ended = self.sbx("--write", self.home, "--workspace", f"{self.work}:overlay", "--set", 'limits.disk_on="directory"', "--", "sh", "-c",
                             f"cd {self.home}; mkdir -p .local/lib; echo text > .local/lib/file; ls -A .local .local/state .local/state/sbx")
            self.assertEqual(ended.text, ".local:\nlib\nstate\n\n.local/state:\nsbx\n\n.local/state/sbx:\n", ended)
            self.assertEqual((self.home / ".local/lib/file").read_text(), "text\n")
            self.assertNotIn("appeared", ended.record)


class Hidden(Deny):
    def test_names_of_the_built_in_list_are_hidden(self):
        for name in (".env", ".env.production", "a/b/.env", ".ssh/id_rsa", ".aws/credentials", "deep/.netrc", ".git-credentials", "x/.pypirc"):
            self.write(name, SECRET)
        self.write("env", SECRET)
        for mode in self.MODES:
            self.assertEqual(self.secrets_seen(mode), ["./env"], mode)

    def test_a_virtual_environment_called_env_is_no_secret(self):
        self.write("a/.env/pyvenv.cfg", "home = /usr/bin\n")
        self.write("a/.env/lib/x", SECRET)
        self.write("a/.env/.env", SECRET)
        self.write("b/.env/production", SECRET)
        for mode in self.MODES:
            self.assertEqual(self.secrets_seen(mode), ["./a/.env/lib/x"], mode)
        ended = self.sbx("--workspace", f"{self.work}:overlay", "--apply", "--yes", "--lang", "python", "-c", "open('a/.env/lib/x', 'w').write('evil')")
        self.assertEqual(((self.work / "a/.env/lib/x").read_text(), ended.record["changes"]), (SECRET, []), ended)

    def test_nothing_is_hidden_that_no_rule_means(self):
        for name in (".env", "a/.ssh/id"):
            self.write(name, SECRET)
        for mode in self.MODES:
            self.assertEqual(self.secrets_seen(mode, *self.deny()), ["./.env", "./a/.ssh/id"], mode)

    def test_no_run_of_a_built_in_says_that_deny_is_not_enforced(self):
        for policy in ("default", "python", "shell", "data-analysis"):
            ended = self.sbx("-p", policy, "true")
            self.assertNotIn("filesystem.deny", [each["what"] for each in ended.record["degraded"]], ended)

    def test_patterns_mean_what_they_say(self):
        for name in ("one/key.pem", "two/key.pem", "two/x/key.pem", "k.pem", "own/a", "own/b/c", "[odd]/f", "o/f"):
            self.write(name, SECRET)
        for pattern, left in (("**/two/*.pem", ["./k.pem", "./o/f", "./one/key.pem", "./own/a", "./own/b/c", "./two/x/key.pem", "./[odd]/f"]),
                              (f"{self.work}/*.pem", ["./o/f", "./one/key.pem", "./own/a", "./own/b/c", "./two/key.pem", "./two/x/key.pem", "./[odd]/f"]),
                              (f"{self.work}/**/key.pem", ["./k.pem", "./o/f", "./own/a", "./own/b/c", "./[odd]/f"]),
                              (f"{self.work}/own/**", ["./k.pem", "./o/f", "./one/key.pem", "./two/key.pem", "./two/x/key.pem", "./[odd]/f"]),
                              (f"{self.work}/[odd]", ["./k.pem", "./one/key.pem", "./own/a", "./own/b/c", "./two/key.pem", "./two/x/key.pem"]),
                              ("**/tw?", ["./k.pem", "./o/f", "./one/key.pem", "./own/a", "./own/b/c", "./[odd]/f"])):
            seen = self.secrets_seen("overlay", *self.deny(pattern))
            left = [each for each in left if pattern != f"{self.work}/[odd]" or each != "./o/f"]
            self.assertEqual(seen, sorted(left), pattern)

    def test_the_home_is_meant_by_a_tilde_through_links(self):
        real = self.tmp / "elsewhere"
        self.write(".kube/config", SECRET, directory=real)
        self.write("dotfiles/ssh/id", SECRET, directory=real)
        (real / ".ssh").symlink_to("dotfiles/ssh")
        linked = self.tmp / "linked"
        linked.symlink_to(real)
        for mode in self.MODES:
            ended = self.sbx("--workspace", f"{real / 'dotfiles'}:{mode}", "--read", real / "dotfiles", *self.deny("~/.kube", "~/.ssh"), "--lang",
                             "python", "-c", EVERY_FILE, env={"HOME": str(linked)})
            self.assertEqual((ended.status, ended.text), (0, ""), ended)
        ended = self.sbx("--read", real, *self.deny("~/.kube", "~/.ssh"), "--", "sh", "-c", f"cat {real}/.kube/config {real}/.ssh/id {real}/dotfiles/ssh/id",
                         env={"HOME": str(linked)})
        self.assertNotIn(SECRET, ended.text)

    def test_other_names_of_a_hidden_file_are_hidden(self):
        self.write(".env", SECRET)
        self.write(".ssh/id", SECRET)
        self.write("home-key", SECRET, directory=self.home)
        for target, name in ((self.work / ".env", "copy-of-env"), (self.work / ".ssh/id", "deep/key"), (self.home / "home-key", "third")):
            (self.work / name).parent.mkdir(exist_ok=True)
            os.link(target, self.work / name)
        self.write("two", "harmless")
        os.link(self.work / "two", self.work / "two-again")
        for mode in self.MODES:
            seen = self.secrets_seen(mode, *self.deny("**/.env", "**/.ssh", "~/home-key"))
            self.assertEqual(seen, [], mode)
        self.assertEqual(self.sbx("--workspace", f"{self.work}:overlay", "cat", "two-again").text, "harmless")

    def test_what_a_hidden_link_leads_to_is_hidden(self):
        self.write("config/prod", SECRET)
        (self.work / ".env").symlink_to("config/prod")
        (self.work / "way").symlink_to("config/prod")
        (self.work / ".ssh").symlink_to(".")
        self.write("open", SECRET)
        for mode in self.MODES:
            self.assertEqual(self.secrets_seen(mode), ["./open"], mode)

    def test_a_directory_that_only_its_owner_could_open_is_hidden(self):
        self.write("closed/.env", SECRET)
        self.write("closed/other", "x")
        self.write("search/.env", SECRET)
        (self.work / "closed").chmod(0)
        (self.work / "search").chmod(0o711 if sbxtest.IS_ROOT else 0o311)
        self.addCleanup((self.work / "closed").chmod, 0o755)
        self.addCleanup((self.work / "search").chmod, 0o755)
        code = ("import os\nfor name in ('closed', 'search'):\n    try: os.chmod(name, 0o755)\n    except OSError: pass\n"
                "    try: print(open(name + '/.env').read())\n    except OSError: pass\n")
        for mode in self.MODES:
            self.assertEqual(self.secrets_seen(mode, code=code), [], mode)
            (self.work / "closed").chmod(0)


class Granted(Deny):
    def refused(self, *arguments):
        ended = self.sbx(*arguments)
        self.could_not(ended, "filesystem.deny")
        return ended

    def test_a_hidden_file_cannot_be_granted_alone(self):
        secret = self.write(".env", SECRET)
        self.write("plain", SECRET)
        self.refused("--read", secret, "true")
        self.refused("--write", secret, "true")
        (self.work / ".env.link").symlink_to("plain")
        self.refused("--read", self.work / ".env.link", "true")
        os.link(secret, self.tmp / "innocent")
        self.refused("--read", self.tmp / "innocent", *self.deny(str(secret)), "true")
        self.exited(self.sbx("--read", self.work / "plain", "cat", self.work / "plain"))

    def test_a_hidden_directory_cannot_be_granted_nor_what_lies_in_it(self):
        self.write(".ssh/known_hosts", "x")
        for path in (self.work / ".ssh", self.work / ".ssh/known_hosts"):
            self.refused("--read", path, "true")
        self.exited(self.sbx("--read", self.work, "true"))

    def test_an_optional_grant_that_is_hidden_is_left_out(self):
        secret = self.write(".env", SECRET)
        policy = self.policy(f'extends = "default"\n[filesystem]\nread = [{{ source = "{secret}", optional = true }}]\n')
        ended = self.exited(self.sbx("-p", policy, "--", "sh", "-c", f"test ! -e {secret}"))
        self.assertEqual(ended.status, 0)

    def test_a_hidden_script_is_refused(self):
        script = self.write(".env.py", "print(1)")
        self.refused("--workspace", f"{self.work}:overlay", script)
        self.refused(script)
        program = self.write("bin/.ssh/tool", "#!/bin/sh\necho hi\n")
        program.chmod(0o755)
        self.refused("--", program)
        self.exited(self.sbx(self.write("fine.py", "print(1)")))

    def test_a_hidden_workspace_is_refused_when_named_and_replaced_when_not(self):
        directory = self.work / ".ssh"
        directory.mkdir()
        self.refused("--workspace", f"{directory}:overlay", "true")
        ended = self.sbx("-p", "shell", "pwd", cwd=directory)
        self.assertEqual(ended.text, "/work\n", ended)

    def test_a_hidden_socket_is_refused(self):
        listener = socket.socket(socket.AF_UNIX)
        (self.tmp / ".gnupg").mkdir()
        path = self.tmp / ".gnupg/S"
        listener.bind(str(path))
        self.addCleanup(listener.close)
        self.refused("--set", f'filesystem.sockets=["{path}"]', "true")

    def test_nested_grants_hide_too(self):
        self.write("sub/inner/.env", SECRET)
        self.write("sub/.env", SECRET)
        for option in ("--read", "--write"):
            for mode in ("overlay", "read-only", "read-write"):
                self.assertEqual(self.secrets_seen(mode, option, self.work / "sub"), [], (option, mode))

    def test_the_same_directory_at_two_places_is_hidden_at_both(self):
        self.write("src/.env", SECRET)
        for option in ("--read", "--write"):
            ended = self.sbx("--workspace", f"{self.work}:overlay", option, f"{self.work}/src:/data", "--", "sh", "-c", "cat src/.env /data/.env; true")
            self.assertEqual((ended.status, ended.text), (0, ""), ended)

    def test_a_path_in_the_system_is_masked(self):
        ended = self.sbx(*self.deny("/usr/share/common-licenses", "/usr/lib/os-release"), "--", "sh", "-c",
                         "ls -A /usr/share/common-licenses; cat /usr/lib/os-release; ls /usr/share | wc -l")
        self.assertEqual(ended.status, 0, ended)
        self.assertEqual(len(ended.text.split()), 1, ended)
        self.assertIn("filesystem.deny", [each["what"] for each in ended.record["degraded"]])

    def test_files_of_etc_are_hidden(self):
        hidden = [path for path in ("/etc/ld.so.conf", "/etc/passwd") if os.path.isfile(path)]
        beside = "/etc/ld.so.cache"
        for isolation in ("namespaces", "landlock"):
            for deny in ([], self.deny(*hidden)):
                ended = self.sbx("--isolation", isolation, *deny, "--", "sh", "-c", f"cat {' '.join(hidden)}; wc -c {beside}", json_record=False)
                if b"Landlock" in ended.err:
                    self.skipTest(ended.err.decode())
                self.assertIn(f"{os.path.getsize(beside)} {beside}\n", ended.out.decode(), ended)
                for path in hidden:  # in namespaces /etc/passwd is the sandbox's own
                    with open(path, "rb") as file:
                        is_shown = file.read() in ended.out
                    self.assertEqual(is_shown, not deny and (isolation == "landlock" or path != "/etc/passwd"), (path, isolation, ended))


class Around(Deny):
    """What a program does to reach a hidden name."""

    ATTEMPTS = """
import os, shutil, ctypes
def attempt(do):
    try:
        do()
    except OSError:
        pass
attempt(lambda: os.rename('src/.env', 'src/got'))
attempt(lambda: os.link('src/.env', 'src/got'))
attempt(lambda: os.rename('src', 'moved'))
attempt(lambda: os.rename('src/deep', 'src/moved'))
attempt(lambda: shutil.copytree('src', 'copied'))
attempt(lambda: shutil.move('src/deep', 'elsewhere'))
attempt(lambda: os.remove('src/.env'))
attempt(lambda: shutil.rmtree('src/.ssh'))
attempt(lambda: os.rmdir('src/.ssh'))
attempt(lambda: os.symlink(os.path.abspath('src/.env'), 'by-link'))
attempt(lambda: os.mkdir('src/.env.d'))
libc = ctypes.CDLL(None)
attempt(lambda: libc.renameat2(-100, b'src', -100, b'other', 2))
attempt(lambda: os.chroot('src'))
""" + EVERY_FILE

    def setUp(self):
        super().setUp()
        for name in ("src/.env", "src/deep/.env", "src/.ssh/id", "src/deep/er/.aws/credentials"):
            self.write(name, SECRET)
        self.write("src/main.c", "int main;")
        (self.work / "other").mkdir()

    def test_no_rename_link_or_removal_gets_around_it(self):
        for mode in self.MODES:
            self.assertEqual(self.secrets_seen(mode, code=self.ATTEMPTS), [], mode)
            self.assertEqual((self.work / "src/.env").read_text(), SECRET)
            self.assertEqual((self.work / "src/deep/.env").read_text(), SECRET)

    def test_the_same_attempts_get_at_what_is_not_hidden(self):
        self.assertIn("./copied/main.c", self.sbx("--workspace", f"{self.work}:overlay", *self.deny(), "--lang", "python", "-c",
                                                  self.ATTEMPTS.replace("'s3cr3t' in", "'int main' in")).text.split())

    def test_a_host_editor_that_saves_by_rename_shows_nothing(self):
        code = "import sys, time\nprint('ready', flush=True); sys.stdin.readline()\n" + EVERY_FILE
        for mode in ("overlay", "read-only"):
            process = self.start_sbx("--workspace", f"{self.work}:{mode}", "--read", f"{self.work}/src:/also", "--lang", "python", "-c", code,
                                     stdin=subprocess.PIPE, json_record=False)
            self.assertEqual(process.stdout.readline(), b"ready\n")
            (self.work / "src/.env.tmp").write_text(SECRET + "new")
            os.replace(self.work / "src/.env.tmp", self.work / "src/.env")
            ended = self.finish(process, data=b"\n", json_record=False)
            self.assertEqual(ended.out, b"", ended)

    def test_a_literal_name_stays_hidden_when_the_host_makes_it_later(self):
        code = "import sys\nprint('ready', flush=True); sys.stdin.readline()\n" + EVERY_FILE
        process = self.start_sbx("--workspace", f"{self.work}:overlay", *self.deny(f"{self.work}/late", f"{self.work}/far/away/late"), "--lang",
                                 "python", "-c", code, stdin=subprocess.PIPE, json_record=False)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        for name in ("late", "far/away/late"):
            self.write(name, SECRET)
        self.write("seen", SECRET)
        out = self.finish(process, data=b"\n", json_record=False).out.decode().split()
        self.assertNotIn("./late", out)
        self.assertNotIn("./far/away/late", out)


class ItsOwn(Deny):
    """What the program creates under a hidden name."""

    def run_overlay(self, code, *options):
        ended = self.sbx("--workspace", f"{self.work}:overlay", *options, "--lang", "python", "-c", code)
        self.assertEqual(ended.status, 0, ended)
        return ended, {each["path"]: each["change"] for each in ended.record["changes"]}

    def test_it_is_no_change_and_is_not_applied(self):
        self.write(".env", SECRET)
        ended, changes = self.run_overlay("import os\nopen('.env', 'w').write('mine'); os.mkdir('.ssh'); open('.ssh/id', 'w'); open('new', 'w')\n"
                                          "assert open('.env').read() == 'mine'", "--apply", "--yes")
        self.assertEqual(changes, {"new": "created"}, ended)
        self.assertEqual(sorted(os.listdir(self.work)), [".env", "new"])
        self.assertEqual((self.work / ".env").read_text(), SECRET)
        self.assertEqual({each["path"] for each in ended.record["applied"]["left"]}, {".env", ".ssh"}, ended)

    def test_it_is_not_collected(self):
        out = self.tmp / "out"
        ended, _ = self.run_overlay("open('.env', 'w'); open('new', 'w')", "--out", out, "--set", 'filesystem.outputs.collect=["**"]')
        self.assertEqual(os.listdir(out), ["new"], ended)
        self.assertIn(".env", [each["path"] for each in ended.record["out"]["left"]])

    def test_removing_a_directory_leaves_what_was_hidden_in_it(self):
        for name in ("src/.env", "src/deep/.env", "src/main.c"):
            self.write(name, SECRET)
        ended, changes = self.run_overlay("import shutil, os; shutil.rmtree('src'); os.mkdir('src')", "--apply", "--yes")
        self.assertEqual(changes, {"src/deep": "deleted", "src/main.c": "deleted"}, ended)
        self.assertEqual(sorted(str(path.relative_to(self.work)) for path in self.work.rglob("*") if path.is_file()),
                         ["src/.env", "src/deep/.env"])

    def test_git_settings_that_were_only_rewritten_are_no_change(self):
        text = '[remote "o"]\n\turl = https://u:pass@example.org/x\n'
        self.write(".git/config", text)
        self.write("sub/.git/config", text)
        self.write(".git/modules/m/config", text)
        _, changes = self.run_overlay("for n in ('.git/config', 'sub/.git/config', '.git/modules/m/config'):\n"
                                      "    t = open(n).read(); assert 'pass' not in t and 'example.org' in t; open(n, 'w').write(t)\n")
        self.assertEqual(changes, {})
        _, changes = self.run_overlay("open('.git/config', 'a').write('[x]')")
        self.assertEqual(changes, {".git/config": "modified"})

    def test_directories_that_hold_hidden_names_look_as_they_are(self):
        self.write("src/.env", SECRET)
        (self.work / "src").chmod(0o750)
        os.utime(self.work / "src", (10**9, 10**9))
        for mode in self.MODES:
            facts = self.sbx("--workspace", f"{self.work}:{mode}", "--", "stat", "-c", "%a %u %Y", "src").text
            self.assertEqual(facts, "750 1000 1000000000\n", mode)


class Scan(Deny):
    def test_a_tree_beyond_the_scan_is_an_error_that_names_it(self):
        for i in range(30):
            self.write(f"many/{i}", "x")
        for mode in self.MODES:
            ended = self.sbx("--workspace", f"{self.work}:{mode}", "--set", "filesystem.scan=20", "true")
            self.could_not(ended, "filesystem.scan")
            self.assertIn(str(self.work), ended.err.decode())
        self.could_not(self.sbx("--read", self.work, "--set", "filesystem.scan=20", "true"), "filesystem.scan")
        self.exited(self.sbx("--workspace", f"{self.work}:overlay", "--set", "filesystem.scan=40", "true"))


if __name__ == "__main__":
    sbxtest.main()

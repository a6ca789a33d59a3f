"""Live grants without namespaces: what a program does in them, what it does not reach through them, and which are refused. In containers of
runc, for root, which leaves the uid of the program's own for them, and for an ordinary user."""

import json
import os
import stat

from containers import FilteredTest
from sbxtest import main

CALLERS = ((0, "docker"), (1000, "docker"))
# Prints what is refused in the grant, then what it leads to.
WORK = r"""
import os, socket, sys
os.chdir("/host/live")
refused = []
def attempt(name, act):
    try:
        act()
    except OSError:
        refused.append(name)
def made(path, mode=0o644):
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode))
def bound():
    socket.socket(socket.AF_UNIX).bind("socket")
attempt("file", lambda: made("file"))
attempt("old file", lambda: open("old", "a").write("more"))
attempt("directory", lambda: os.makedirs("a/b"))
attempt("rename", lambda: os.rename("file", "a/b/file"))
attempt("link", lambda: os.link("a/b/file", "linked"))
attempt("symlink", lambda: os.symlink("../closed", "outside"))
attempt("mode", lambda: os.chmod("linked", 0o700))
attempt("times", lambda: os.utime("linked", (5, 7)))
attempt("from home", lambda: (made(os.environ["HOME"] + "/new"), os.rename(os.environ["HOME"] + "/new", "new")))
attempt("remove", lambda: os.unlink("new"))
attempt("protected name", lambda: made(".envrc"))
print(refused)
refused = []
attempt("write beside it", lambda: open("/host/closed/file", "a").write("x"))
attempt("write by a link", lambda: open("outside/file", "a").write("x"))
attempt("make by a link", lambda: made("outside/new"))
attempt("mode by a link", lambda: os.chmod("outside/file", 0o777))
attempt("mode beside it", lambda: os.chmod("../closed/file", 0o777))
attempt("list above", lambda: os.listdir("/host"))
attempt("rename the grant", lambda: os.rename("/host/live", "/host/gone"))
attempt("link what may be read", lambda: os.link("/host/read", "own"))
attempt("move what may be read", lambda: os.rename("/host/read", "own"))
attempt("set-ID bit", lambda: os.chmod("linked", 0o4755))
attempt("set-ID bit of a new file", lambda: made("set", 0o2755))
attempt("fifo", lambda: os.mkfifo("fifo"))
attempt("socket", bound)
attempt("device", lambda: os.mknod("device", 0o020666, os.makedev(1, 3)))
attempt("whiteout", lambda: os.mknod("whiteout", 0o020666, 0))
print(refused)
"""
BEYOND = ["write beside it", "write by a link", "make by a link", "mode by a link", "mode beside it", "list above", "rename the grant", "link what may be read",
          "move what may be read", "set-ID bit", "set-ID bit of a new file", "fifo", "socket", "device", "whiteout"]


class LiveOutside(FilteredTest):
    WAY = "same-uid"

    def containers(self):
        for uid, capabilities in CALLERS:
            container = self.container(uid, capabilities)
            for name in ("host", "host/live", "host/closed"):
                (self.root / name).mkdir()
            for name in ("live/old", "closed/file", "read"):
                (self.root / "host" / name).write_text("text")
            for path in [self.root / "host", *(self.root / "host").rglob("*")]:
                os.chown(path, uid, uid)
            yield uid, container

    def record(self, container, *words, status=0):
        done = container.run("sbx", "run", "--isolation", "landlock", "--json", *words)
        self.assertEqual(done.returncode, status, done)
        return json.loads(done.stdout)

    def test_a_program_works_in_it_and_not_through_it(self):
        for uid, container in self.containers():
            record = self.record(container, "--write", "/host/live", "--read", "/host/read", "--", "python3", "-c", WORK)
            self.assertEqual(record["isolation"], {"tier": "landlock", "form": "same-uid"})
            self.assertEqual(record["stdout"]["text"].splitlines(), ["[]", str(BEYOND)], record)
            self.assertEqual([each["path"] for each in record["appeared"]], ["/host/live/.envrc"])
            live = self.root / "host/live"
            self.assertEqual((live / "old").read_text(), "textmore")
            facts = (live / "linked").stat()
            self.assertEqual((stat.S_IMODE(facts.st_mode), facts.st_mtime, facts.st_uid), (0o700, 7, uid))
            self.assertEqual(((self.root / "host/closed/file").read_text(), stat.S_IMODE((self.root / "host/closed/file").stat().st_mode)), ("text", 0o644))
            self.assertEqual({each["what"] for each in record["degraded"]} & {"limits.disk", "limits.disk_files"}, {"limits.disk", "limits.disk_files"})

    def test_special_files_can_be_allowed(self):
        for _, container in self.containers():
            grant = 'filesystem.write=[{source="/host/live", special=true}]'
            self.record(container, "--set", grant, "--", "mkfifo", "/host/live/fifo")
            self.record(container, "--write", "/host/live", "--", "mkfifo", "/host/live/other", status=1)

    def test_a_grant_below_tmp_keeps_no_sockets_out_of_the_programs_own_places(self):
        """Those lie in another directory than the machine's /tmp. Twin: the grant gets none."""
        look = "import os, socket\nfor place in (os.environ['TMPDIR'], '/tmp/live'):\n" \
               "    try: socket.socket(socket.AF_UNIX).bind(place + '/s'); print('bound')\n    except OSError as e: print(e.strerror)"
        for uid, container in self.containers():
            live = self.root / "tmp/live"
            live.mkdir()
            os.chown(live, uid, uid)
            record = self.record(container, "--write", "/tmp/live", "--", "python3", "-c", look)
            self.assertEqual(record["stdout"]["text"], "bound\nPermission denied\n", record)

    def test_a_workspace_is_changed_in_place(self):
        for _, container in self.containers():
            self.record(container, "--workspace", "/host/live:read-write", "--", "sh", "-c", "echo new > new; cat old; ls /host/live")
            self.assertEqual((self.root / "host/live/new").read_text(), "new\n")

    def test_one_file_can_be_granted(self):
        for _, container in self.containers():
            record = self.record(container, "--write", "/host/live/old", "--", "sh", "-c", "echo x > /host/live/old; chmod 600 /host/live/old || touch /host/live/new || echo refused")
            self.assertEqual(record["stdout"]["text"], "refused\n", record)
            self.assertIn("filesystem.write", {each["what"] for each in record["degraded"]})

    def test_what_mounts_would_cover_is_an_error(self):
        """Each with its twin: without that name the grant is given."""
        names = {"denied": ".env", "denied below": "a/b/.env", "protected": ".vscode/tasks.json", "a repository": ".git/HEAD", "a file that leads git": "sub/.git",
                 "hooks": ".git/hooks/x"}
        for uid, container in self.containers():
            live = self.root / "host/live"
            for what, name in names.items():
                path = live / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("x")
                outcome = self.record(container, "--write", "/host/live", "--", "true", status=125)["outcome"]
                self.assertEqual((outcome["code"], "overlay" in outcome["hint"]), ("needs-namespaces", True), (what, outcome))
                self.assertIn(f"/host/live/{name.removesuffix('/tasks.json').removesuffix('/x').removesuffix('/HEAD')}", outcome["detail"])
                path.unlink()
                for parent in path.parents:
                    if parent != live and live in parent.parents:
                        parent.rmdir()
                self.record(container, "--write", "/host/live", "--", "true")

    def test_other_grants_that_cannot_be_kept_are_errors(self):
        for uid, container in self.containers():
            os.mknod(self.root / "host/closed/device", 0o020666, os.makedev(1, 3))
            refused = [("--write", "/host/closed"), ("--write", "/tmp"), ("--write", "/host/live:/other"), ("--workspace", "/host:overlay", "--write", "/host/live"),
                       ("--write", "/host/live", "--read", "/host/live/old")]
            if uid == 0:
                os.chown(self.root / "host/live", 1000, 1000)
                refused.append(("--write", "/host/live"))
            for options in refused:
                outcome = self.record(container, *options, "--", "true", status=125)["outcome"]
                self.assertEqual(outcome["code"], "needs-namespaces", (options, outcome))
                self.assertTrue(outcome["hint"], outcome)

    def test_a_uid_of_its_own_that_is_required_refuses_it(self):
        container = next(self.containers())[1]
        self.assertEqual(self.record(container, "--require", "own-uid", "--write", "/host/live", "--", "true", status=125)["outcome"]["code"], "requirement-not-met")
        self.record(container, "--require", "own-uid", "--read", "/host/live", "--", "true")

    def test_sbx_changes_no_file_with_rights_that_the_program_lacks(self):
        """Another user's, which root with its capabilities may change."""
        container = next(self.containers())[1]
        other = self.root / "host/live/others"
        other.write_text("x")
        os.chown(other, 1000, 1000)
        record = self.record(container, "--write", "/host/live", "--", "sh", "-c", "chmod 700 /host/live/old && chmod 777 /host/live/others; touch -d @5 /host/live/others; echo $?")
        self.assertEqual(record["stdout"]["text"], "1\n", record)
        self.assertEqual((stat.S_IMODE((self.root / "host/live/old").stat().st_mode), stat.S_IMODE(other.stat().st_mode)), (0o700, 0o644))

    def test_what_is_written_counts(self):
        fill = "import sys\nf = open('/host/live/big', 'wb')\nfor _ in range(int(sys.argv[1])): f.write(bytes(2**20)); f.flush()\nimport time; time.sleep(1000 * (sys.argv[1] == '200'))"
        for _, container in self.containers():
            self.record(container, "--disk", "50M", "--write", "/host/live", "--", "python3", "-c", fill, "10")
            outcome = self.record(container, "--disk", "50M", "--write", "/host/live", "--", "python3", "-c", fill, "200", status=153)["outcome"]
            self.assertEqual(outcome["reason"], "disk", outcome)


if __name__ == "__main__":
    main()

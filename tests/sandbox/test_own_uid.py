"""Without namespaces: what a program with a uid of its own reaches in a container of Docker's filter, how it ends, and what is refused.
All of it runs in containers of runc: what goes wrong ends with them."""

import json
import os
import shutil

from containers import FilteredTest
from outside import AROUND, ATTEMPTS, HOPPING, LAST, NOT_EVERYWHERE, REACHED_WHERE_GRANTED, SEEN, opened
from sbxtest import main

# Kills by name of what is killed: "sbx", "keeper" or "program"; prints the status of sbx, and how many processes of the uid are left when the last
# of the watchers has ended. Where sbx itself was killed, the second ends the keeper too, which reaps no more then, and can't reap itself.
ENDS = LAST + r"""
import os, signal, subprocess, sys, time
def of(uid):
    found = []
    for name in os.listdir("/proc"):
        try:
            lines = open(f"/proc/{name}/status").read().split("\n") if name.isdigit() else []
        except OSError:
            continue
        fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        if fields.get("Uid", "").split("\t")[0] == uid and fields["State"][0] not in "ZX":
            found.append(int(name))
    return found
sbx = subprocess.Popen(["sbx", "run", "--isolation", "landlock", "--timeout", sys.argv[3], "--", "python3", "-c", sys.argv[2]], stdout=subprocess.PIPE)
uid, keeper = sbx.stdout.readline().decode().split()
while len(of(uid)) < 5:
    pass
last = Last(*of(str(int(uid) + 1)))  # the keeper and its second
if sys.argv[1] == "sbx":
    sbx.kill()
elif sys.argv[1] == "keeper":
    os.kill(int(keeper), signal.SIGKILL)
elif sys.argv[1] == "both":  # neither sees that the other ends
    sbx.send_signal(signal.SIGSTOP)
    os.kill(int(keeper), signal.SIGKILL)
    sbx.kill()
elif sys.argv[1] == "interrupt":
    sbx.send_signal(signal.SIGINT)
status = sbx.wait()
last.wait()
if status < 0:
    wait_for_all()
left = of(uid) + of(str(int(uid) + 1))
print(status, len(last.watchers), len(left), sorted(name for name in os.listdir("/tmp") if name.startswith("sbx-")) if sys.argv[1] not in ("sbx", "both") else [])
subprocess.run(["sbx", "run", "--isolation", "landlock", "-q", "--", "true"])
print(sorted(name for name in os.listdir("/tmp") if name.startswith("sbx-")))
"""

# The status of a change of the private directory's mode, and what another user and root read in it meanwhile.
READERS = r"""
import subprocess
program = "echo text > $HOME/own; chmod 777 $HOME || exit; chmod 777 $HOME/.. 2> /dev/null; echo $? $HOME; read line"
sbx = subprocess.Popen(["sbx", "run", "--isolation", "landlock", "-q", "--", "sh", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
status, home = sbx.stdout.readline().split()
def read_as(uid):
    return subprocess.run(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "cat", f"{home}/own"], capture_output=True, text=True).stdout
print(status, read_as(1000).split(), read_as(0).split())
sbx.communicate()
"""


class OwnUid(FilteredTest):
    def record(self, *words, container=None, status=0):
        done = (container or self.container()).run("sbx", "run", "--isolation", "landlock", "--json", *words)
        self.assertEqual(done.returncode, status, done)
        return json.loads(done.stdout)

    def attempts(self, *options):
        done = self.container().run("python3", "-c", AROUND, ATTEMPTS, "--isolation", "landlock", *options)
        self.assertEqual(done.returncode, 0, done)
        outside, inside = done.stdout.splitlines()
        return json.loads(outside), json.loads(inside)

    def test_what_leads_out_is_refused(self):
        outside, inside = self.attempts()
        self.assertEqual(opened(inside), SEEN)
        # The twin: without a sandbox each of them is there to be reached.
        self.assertEqual(set(outside) - opened(outside) - NOT_EVERYWHERE, set())

    def test_a_policy_cannot_allow_it(self):
        allowed = 'syscalls.allow=["@ipc", "@debug", "@keyring", "@io-uring", "@handle", "socket", "socketpair", "prctl", "inotify_init1", "setpriority", "sched_setaffinity"]'
        _, inside = self.attempts("--set", allowed)
        self.assertEqual(opened(inside), SEEN)

    def test_what_is_granted_can_be_reached(self):
        _, inside = self.attempts("--read", "/host/open", "--net", "host")
        self.assertEqual(opened(inside) - SEEN, REACHED_WHERE_GRANTED)

    def test_the_program_is_somebody_of_its_own(self):
        look = "import os; print(os.getresuid(), os.getresgid(), os.getgroups(), [l for l in open('/proc/self/status') if l[:4] in ('CapP', 'CapB', 'NoNe')] if os.access('/proc/self/status', 4) and 0 else '')"
        record = self.record("--", "python3", "-c", look)
        self.assertEqual(record["isolation"], {"tier": "landlock", "form": "own-uid"})
        uids, gids = record["stdout"]["text"].split(") (")
        self.assertEqual(len(set(uids.strip("(").split(", "))), 1, record["stdout"])
        self.assertGreater(int(uids.strip("(").split(", ")[0]), 2000)
        self.assertTrue(gids.startswith(uids.strip("(")), record["stdout"])
        self.assertTrue(gids.strip().endswith("[]"), record["stdout"])
        self.assertEqual({each["what"] for each in record["degraded"]} - {"limits.memory", "limits.cpu_time"},
                         {"isolation", "names", "tmp", "network.mode", "ipc", "proc", "hostname", "limits.disk", "end"})
        self.assertNotEqual(self.record("--", "id", "-u")["stdout"]["text"], record["stdout"]["text"].split(",")[0].strip("("))

    def test_an_interpreter_in_roots_home_runs_with_the_callers_uid(self):
        """As installers put it there for root: pyenv, conda, nvm. Where its files are open to everybody, it has a uid of its own."""
        python = os.path.realpath("/usr/bin/python3")
        for mode, form in ((0o700, "same-uid"), (0o755, "own-uid")):
            container = self.container()
            prefix = self.root / "root/py"
            (prefix / "bin").mkdir(parents=True)
            (prefix / "lib").mkdir()
            (prefix / "lib" / os.path.basename(python)).symlink_to(f"/usr/lib/{os.path.basename(python)}")
            shutil.copy(python, prefix / "bin/python3")
            prefix.parent.chmod(mode)
            words = ("--", "/root/py/bin/python3", "-c", "print(6 * 7)")
            record = self.record(*words, container=container)
            self.assertEqual((record["isolation"]["form"], record["stdout"]["text"]), (form, "42\n"), record)
            if form == "same-uid":
                self.assertIn("only its owner can reach '/root/py/bin/python3'", container.run("sbx", "run", "--isolation", "landlock", *words).stderr)
                environment = self.root / "work/.venv/bin"
                environment.mkdir(parents=True)
                (environment / "python3").symlink_to("/root/py/bin/python3")
                (environment.parent / "pyvenv.cfg").write_text("home = /root/py/bin\n")
                linked = self.record("--workspace", "/work:overlay", "--", "/work/.venv/bin/python3", "-c", "print(6 * 7)", container=container)
                self.assertEqual((linked["isolation"]["form"], linked["stdout"]["text"]), (form, "42\n"), linked)
                refused = self.record("--require", "own-uid", *words, container=container, status=125)
                self.assertEqual(refused["outcome"]["code"], "requirement-not-met", refused)

    def test_the_end_of_sbx_of_its_keeper_and_of_the_time_takes_everything_along(self):
        for killed, timeout, status in (("sbx", "60s", "-9"), ("keeper", "60s", "125"), ("interrupt", "60s", "130"), ("nothing", "2s", "124")):
            done = self.container().run("python3", "-c", ENDS, killed, HOPPING, timeout)
            self.assertEqual(done.stdout.splitlines(), [f"{status} 2 0 []", "[]"], (killed, done))

    def test_the_second_ends_what_runs_where_sbx_and_its_keeper_are_killed_at_once(self):
        """The next run removes the private directory."""
        done = self.container().run("python3", "-c", ENDS, "both", HOPPING, "60s")
        self.assertEqual(done.stdout.splitlines(), ["-9 2 0 []", "[]"], done)

    def test_processes_are_counted_exactly(self):
        forks = "import os\nn = 0\ntry:\n    while True:\n        if os.fork() == 0:\n            import signal; signal.pause()\n        n += 1\nexcept OSError as e:\n    print(n, e.errno)"
        record = self.record("--processes", "20", "--", "python3", "-c", forks)
        self.assertEqual(record["stdout"]["text"], "19 11\n")
        self.assertEqual([each["limit"] for each in record["limits_met"]], ["processes"])

    def test_budgets_end_the_run(self):
        record = self.record("--memory", "100M", "--", "python3", "-c", "x = []\nwhile True: x.append(bytearray(2**20))", status=137)
        self.assertEqual(record["outcome"]["reason"], "memory")
        record = self.record("--disk", "20M", "--", "python3", "-c", "f = open('big', 'wb')\nwhile True: f.write(bytes(2**20)); f.flush()", status=153)
        self.assertEqual(record["outcome"]["reason"], "disk")

    def test_a_workspace_is_copied_and_brought_back(self):
        container = self.container()
        work = self.root / "work"
        (work / "a").mkdir(parents=True)
        (work / "old.txt").write_text("old\n")
        (work / ".env").write_text("TOKEN=x\n")
        (work / "a" / ".env").write_text("TOKEN=x\n")
        look = "cat old.txt; ls -A . a; echo new > new.txt; echo more >> old.txt; pwd; echo $HOME $TMPDIR; touch $TMPDIR/t $HOME/h"
        done = container.run("sh", "-c", f"cd /work && sbx run --isolation landlock --workspace .:overlay --apply --yes -- sh -c '{look}'; echo $?")
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "old", done)
        self.assertEqual(lines[-1], "0", done)
        self.assertNotIn(".env", lines, done)
        self.assertIn("weaker isolation", done.stderr)
        self.assertEqual(((work / "new.txt").read_text(), (work / "old.txt").read_text()), ("new\n", "old\nmore\n"))
        self.assertEqual(((work / ".env").read_text(), (work / "a" / ".env").read_text()), ("TOKEN=x\n", "TOKEN=x\n"))
        self.assertEqual(sorted(path.name for path in (self.root / "tmp").iterdir()), [])

    def test_a_workspace_that_may_be_read_has_no_contents_of_what_is_hidden(self):
        container = self.container()
        work = self.root / "work"
        (work / "a").mkdir(parents=True)
        for name in ("old.txt", "a/old.txt", ".env", "a/.env"):
            (work / name).write_text("x\n")
        script = "for f in old.txt a/old.txt .env a/.env; do cat $f; done; echo y > old.txt; ls -A"
        done = container.run("sh", "-c", f"cd /work && sbx run --isolation landlock --workspace .:read-only -- sh -c '{script}' 2>&1")
        self.assertEqual(done.stdout.count("Permission denied"), 3, done)
        self.assertEqual(done.stdout.splitlines().count("x"), 2, done)
        self.assertIn(".env", done.stdout)

    def test_scripts_and_files_run_where_they_are(self):
        container = self.container()
        for place in ("srv", "root/own"):
            (self.root / place).mkdir(parents=True)
            (self.root / place / "hello.py").write_text("import sys; print('hello', open(sys.argv[1]).read())")
            (self.root / place / "data").write_text("data")
        for place in ("/srv", "/root/own"):
            done = container.run("sh", "-c", f"cd {place} && sbx run --isolation landlock -q --read data hello.py data; exit $?")
            self.assertEqual((done.stdout, done.stderr), ("hello data\n", ""), done)

    def test_the_host_name_can_be_read_as_it_can_be_asked_for(self):
        container = self.container()
        plain = container.run("cat", "/etc/hostname")
        done = container.run("sbx", "run", "--isolation", "landlock", "-q", "--", "cat", "/etc/hostname")
        self.assertEqual((done.returncode, done.stdout), (plain.returncode, plain.stdout), done)

    def test_what_cannot_be_kept_is_refused(self):
        refusals = {("--allow-host", "example.org:443"): "needs-namespaces", ("--explain",): "needs-namespaces",
                    ("--set", "filesystem.landlock=false"): "needs-namespaces", ("--require", "namespaces"): "requirement-not-met"}
        container = self.container()
        (self.root / "srv").mkdir()
        for options, code in refusals.items():
            outcome = self.record(*options, "--", "true", container=container, status=125)["outcome"]
            self.assertEqual(outcome["code"], code, outcome)
            self.assertTrue(outcome["hint"], outcome)

    def test_no_other_user_reaches_its_files(self):
        done = self.container().run("python3", "-c", READERS)
        self.assertEqual(done.stdout, "1 [] ['text']\n", done)

    def test_a_place_where_others_could_move_it_is_refused(self):
        container = self.container()
        (self.root / "tmp").chmod(0o777)
        self.assertEqual(self.record("--", "true", container=container, status=125)["outcome"]["code"], "no-private-directory")
        (self.root / "tmp").chmod(0o1777)
        self.record("--", "true", container=container)

    def test_a_start_that_fails_leaves_no_process(self):
        """Its children would be those of PID 1 of the container, the script."""
        look = "import os, subprocess\nprint(subprocess.run(['sbx', 'run', '--isolation', 'landlock', '-q', '--', 'true']).returncode)\ntry: print(os.waitpid(-1, os.WNOHANG))\nexcept ChildProcessError: print('none')"
        for mode, status in ((0o777, 125), (0o1777, 0)):
            container = self.container()
            (self.root / "tmp").chmod(mode)
            done = container.run("python3", "-c", look)
            self.assertEqual(done.stdout, f"{status}\nnone\n", done)

    def test_the_weaker_wall_is_told_unless_it_was_asked_for_just_now(self):
        container = self.container()
        for options, is_told in ((("--isolation", "auto"), True), (("--isolation", "auto", "-q"), True), (("--isolation", "landlock"), True), (("--isolation", "landlock", "-q"), False)):
            done = container.run("sbx", "run", *options, "--", "true")
            self.assertEqual((done.returncode, "weaker isolation" in done.stderr), (0, is_told), done)


if __name__ == "__main__":
    main()

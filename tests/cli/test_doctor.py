"""`sbx doctor` predicts what a run does, on this machine and where something is refused."""

import ctypes
import json
import os
import pathlib
import subprocess

import sbxtest
from refused_calls import ENOSYS, EPERM, refuse_calls
from sbxtest import IS_ROOT, SBX, SbxTest, mounts

BUILTINS = ["default", "strict", "data-analysis", "python", "node", "shell", "agent", "ci-untrusted", "offline-build", "web-fetch", "e2b"]

# A shell in its own user namespace disables something there, then executes sbx.
NO_NAMESPACES = "echo 0 > /proc/sys/user/max_user_namespaces"
HIDDEN_PROC = "mount --bind /dev/null /proc/uptime"


def listen():
    """Installs a listener that allows everything, so that no second one can be installed below it."""
    libc = ctypes.CDLL(None, use_errno=True)

    class Instruction(ctypes.Structure):
        _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]

    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.POINTER(Instruction))]
    allow = Instruction(0x06, 0, 0, 0x7FFF0000)
    libc.prctl(38, 1, 0, 0, 0)
    listener = libc.syscall(sbxtest.SYSCALLS["seccomp"], 1, 1 << 3, ctypes.byref(Program(1, ctypes.pointer(allow))))
    if listener < 0:
        os._exit(99)
    os.set_inheritable(listener, True)


class Doctor(SbxTest):
    def call(self, *arguments, wrapper=(), preexec=None):
        return subprocess.run([*wrapper, SBX, *map(str, arguments)], env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120, preexec_fn=preexec, close_fds=preexec is None)

    def doctor(self, *arguments, status=0, **options):
        done = self.call("doctor", "--json", *arguments, **options)
        self.assertEqual(done.returncode, status, f"{done.stdout}\n{done.stderr}")
        answer = json.loads(done.stdout)
        return {part: {finding["name"]: finding for finding in answer[part]} for part in ("machine", "isolation", "means", "interpreters", "policies")}

    def run_of(self, policy, **options):
        done = self.call("run", "--json", "-p", policy, "--", "/bin/true", **options)
        return done.returncode, json.loads(done.stdout)

    def agrees(self, policies, **options):
        """Whether each policy runs, the code if it doesn't, and what its runs list as degraded."""
        for name, finding in policies.items():
            status, record = self.run_of(name, **options)
            if finding["state"] == "missing":
                self.assertEqual((status, record["outcome"]["code"]), (125, finding["code"]), name)
                # A last line of the hint is another way to run.
                self.assertEqual((record["outcome"].get("hint") or "").split("\n")[0] or None, finding["cure"], name)
            else:
                self.assertEqual(status, 0, record["outcome"])
                self.assertEqual(sorted({each["what"] for each in record["degraded"]}), sorted(finding.get("degraded", [])), name)

    def broken(self, words):
        return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", f'{words} && exec "$@"', "sh"]

    def test_what_it_predicts_is_what_runs_do(self):
        before = mounts()
        answer = self.doctor()
        self.assertEqual(list(answer["policies"]), BUILTINS)
        for finding in answer["policies"].values():
            self.assertNotEqual(finding["state"], "missing", finding)
        self.agrees(answer["policies"])
        for name in ("user namespaces", "procfs", "seccomp"):
            self.assertEqual(answer["machine"][name]["state"], "ok", answer["machine"][name])
        self.assertEqual([(name, finding["state"]) for name, finding in answer["isolation"].items()], [("namespaces", "ok")])
        weaker = {what for finding in answer["policies"].values() for what in finding.get("degraded", [])}
        self.assertEqual(weaker, {name for name, finding in answer["means"].items() if finding["state"] == "weaker"})
        self.assertEqual(mounts(), before)

    def test_refused_namespaces_are_found_with_the_cure(self):
        wrapper = self.broken(NO_NAMESPACES)
        answer = self.doctor("-p", "strict", status=1, wrapper=wrapper)
        self.assertEqual(answer["machine"]["user namespaces"]["state"], "missing")
        self.assertEqual(answer["machine"]["user namespaces"]["cure"], "sysctl user.max_user_namespaces=15000")
        self.assertEqual(answer["policies"]["strict"]["code"], "no-user-namespace")
        self.assertEqual([(name, finding["state"]) for name, finding in answer["isolation"].items()],
                         [("namespaces", "missing"), ("shielded /proc", "missing"), ("landlock", "missing")])
        self.agrees(answer["policies"], wrapper=wrapper)
        self.assertEqual(self.doctor("-p", "strict")["machine"]["user namespaces"]["state"], "ok")

    def test_a_hidden_proc_is_found_with_the_cure(self):
        wrapper = self.broken(HIDDEN_PROC)
        answer = self.doctor("-p", "strict", wrapper=wrapper)
        self.assertEqual(answer["machine"]["user namespaces"]["state"], "ok")
        self.assertEqual(answer["machine"]["procfs"]["state"], "weaker")
        self.assertIn("systempaths=unconfined", answer["machine"]["procfs"]["cure"])
        self.assertIn("proc", answer["policies"]["strict"]["degraded"])
        self.assertEqual([(name, finding["state"]) for name, finding in answer["isolation"].items()],
                         [("namespaces", "missing"), ("shielded /proc", "weaker")])
        self.agrees(answer["policies"], wrapper=wrapper)
        # Nothing would shield it there.
        path = self.policy("[filesystem]\nlandlock = false")
        answer = self.doctor("-p", path, status=1, wrapper=wrapper)
        self.assertEqual(answer["policies"]["test-policy"]["code"], "setup-proc")
        self.agrees({path: answer["policies"]["test-policy"]}, wrapper=wrapper)
        self.assertEqual(self.doctor("-p", "strict")["machine"]["procfs"]["state"], "ok")

    def test_a_listener_in_the_way_is_weaker(self):
        answer = self.doctor("-p", "strict", preexec=listen)
        self.assertEqual(answer["machine"]["seccomp listener"]["state"], "weaker")
        self.assertIn("syscalls.named", answer["policies"]["strict"]["degraded"])
        self.agrees(answer["policies"], preexec=listen)
        self.assertEqual(self.doctor("-p", "strict")["machine"]["seccomp listener"]["state"], "ok")

    def test_a_policy_that_can_not_run_here_says_why(self):
        path = self.policy('[filesystem]\nread = ["/nosuchpath"]')
        answer = self.doctor("-p", path, status=1)
        self.assertEqual(answer["policies"]["test-policy"]["code"], "missing-grant")
        self.assertEqual(self.run_of(path)[1]["outcome"]["code"], "missing-grant")
        done = self.call("doctor", "-p", "nosuchpolicy")
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown-policy", done.stderr)

    def test_a_policy_of_the_configuration_that_nobody_knows_is_an_error(self):
        directory = pathlib.Path(self.environment()["HOME"]) / ".config/sbx"
        directory.mkdir(parents=True)
        (directory / "config.toml").write_text('policy = "nosuchpolicy"\n')
        done = self.call("doctor")
        self.assertEqual((done.returncode, "unknown-policy" in done.stderr), (2, True), done)

    def test_a_long_cure_is_told_once(self):
        """A machine that refuses namespaces refuses them to each policy."""
        done = self.call("doctor", preexec=lambda: refuse_calls({"clone3": ENOSYS, "unshare": EPERM}, EPERM))
        self.assertEqual(done.stdout.count("in Docker: --security-opt"), 1, done.stdout)
        self.assertIn("fix: as for user namespaces", done.stdout)

    def test_weaker_isolation_is_proposed_only_to_who_has_not_asked_for_it(self):
        """Where it works without namespaces."""
        path = self.policy('isolation = "auto"')
        for policy, is_proposed in (("default", True), (path, False)):
            answer = self.doctor("-p", policy, status=1 if is_proposed else 0, preexec=lambda: refuse_calls({"clone3": ENOSYS, "unshare": EPERM}, EPERM))
            self.assertEqual(answer["isolation"]["landlock"]["state"], "weaker", answer)
            self.assertEqual("--isolation auto" in (answer["isolation"]["landlock"]["cure"] or ""), is_proposed)

    def test_interpreters_are_those_of_runs(self):
        answer = self.doctor("-p", "strict")
        python = answer["interpreters"]["python3"]
        self.assertEqual(python["state"], "ok")
        record = self.python("pass").record
        self.assertTrue(python["fact"].startswith(os.path.realpath(record["interpreter"]["path"])), (python, record["interpreter"]))
        path = self.policy('[interpreters.extensions]\nxyz = ["nosuchinterpreter"]')
        missing = self.doctor("-p", path)["interpreters"]["nosuchinterpreter"]
        self.assertEqual(missing["state"], "missing")
        self.assertIn("*.xyz", missing["consequence"])

    def test_groups_of_an_ordinary_user_are_named(self):
        if not IS_ROOT:
            self.skipTest("only root can give groups")
        wrapper = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--groups", "100"]
        self.work.chmod(0o755)
        self.tmp.chmod(0o755)
        done = subprocess.run([*wrapper, SBX, "doctor", "--json", "-p", "strict"], cwd="/", capture_output=True, text=True, timeout=120,
                              env=self.environment())
        groups = next(each for each in json.loads(done.stdout)["machine"] if each["name"] == "supplementary groups")
        self.assertEqual(groups["state"], "weaker")
        self.assertIn("100", groups["fact"])

    def test_the_fix_of_a_polled_budget_is_one_that_the_caller_has(self):
        memory = self.doctor("-p", "strict")["means"]["limits.memory"]
        cure = memory["cure"] or ""
        if memory["state"] == "ok":
            self.assertEqual(cure, "")
            return
        self.assertEqual("as root" in cure, not IS_ROOT, memory)
        if "cgroup v1" in memory["fact"]:
            self.assertNotIn("systemd-run", cure)
        if "systemd-run" in cure:
            self.assertTrue(os.path.exists("/run/systemd/system" if IS_ROOT else f"/run/user/{os.geteuid()}/systemd"), memory)

    def test_a_name_and_what_is_said_of_it_stay_apart(self):
        """In a directory of root the workspace is a copy for an ordinary user: that rule has a long name."""
        words = ("doctor", "-p", "python")
        text, answer = (subprocess.run([SBX, *words, *more], cwd="/usr/share/common-licenses", env=self.environment(), capture_output=True, text=True,
                                       timeout=120, check=True).stdout for more in ((), ("--json",)))
        means = {each["name"] for each in json.loads(answer)["means"]}
        self.assertEqual("filesystem.workspace.mode" in means, not IS_ROOT, means)
        for name in means:
            self.assertRegex(text, rf"(?m)^  \S+ +{name} +\S")

    def test_the_directories_of_sessions_and_state_are_tried(self):
        """Nothing is made there. Twin: they can't be used, or a variable that names them is not."""
        state, session = (self.doctor("-p", "strict")["machine"][name] for name in ("state directory", "session directory"))
        self.assertEqual((state["state"], state["fact"]), ("ok", "~/.local/state/sbx"))
        self.assertEqual(session["state"], "ok", session)
        self.assertFalse((self.home / ".local").exists())
        self.write(".local/state/sbx", "a file", directory=self.home)
        environment = {**self.environment(), "XDG_RUNTIME_DIR": "run/me", "XDG_STATE_HOME": "/nosuch"}
        done = subprocess.run([SBX, "doctor", "--json", "-p", "strict"], env=environment, cwd=self.work, capture_output=True, text=True, timeout=120, check=False)
        machine = {each["name"]: each for each in json.loads(done.stdout)["machine"]}
        state, session = machine["state directory"], machine["session directory"]
        self.assertEqual((state["state"], session["state"]), ("missing", "missing"), machine)
        self.assertIn("can't be used: it is not a directory; XDG_STATE_HOME=/nosuch is not used: it is not a directory below the home", state["fact"])
        self.assertIn("XDG_RUNTIME_DIR=run/me is not used: it is not a directory of yours of mode 0700", session["fact"])
        self.assertEqual(session["consequence"], "no session can be started")
        refused = subprocess.run([SBX, "session", "start"], env=environment, cwd=self.work, capture_output=True, timeout=120, check=False)
        self.assertNotEqual(refused.returncode, 0, refused)

    def test_people_get_one_line_for_each(self):
        done = self.call("doctor", "-p", "strict")
        for line in done.stdout.splitlines():
            self.assertRegex(line, r"^(  (ok|weaker|missing|absent) +\S.*|[A-Z].*|)$")
        quiet = self.call("doctor", "-q", "-p", "strict").stdout
        self.assertNotIn("  ok ", quiet)
        self.assertEqual(self.call("doctor", "--quiet", "--policy", "strict").stdout, quiet)
        self.assertEqual(self.call("doctor", "strict").returncode, 2)

    def test_interpreters_that_are_not_there_share_a_line(self):
        path = self.policy('[interpreters.extensions]\nxyz = ["nosuchone"]\nxyy = ["nosuchtwo"]')
        [absent] = [line for line in self.call("doctor", "-p", path).stdout.splitlines() if line.startswith("  absent ")]
        for name in ("nosuchone", "nosuchtwo"):
            self.assertIn(name, absent)
        self.assertNotIn("nosuch", self.call("doctor", "-q", "-p", path).stdout)

    def test_what_enforces_a_budget_is_named(self):
        means = self.doctor("-p", "strict")["means"]
        for name in ("limits.memory", "limits.cpu_time", "limits.cpus", "limits.processes", "limits.disk"):
            if means[name]["state"] == "ok":
                self.assertRegex(means[name]["fact"], "^(cgroup v[12]|CPU affinity|RLIMIT_NPROC|counted by sbx|task clock|summed by process|size of a private tmpfs)$")


if __name__ == "__main__":
    sbxtest.main()

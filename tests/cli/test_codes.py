"""Each error code: the mistake, or the kernel's refusal, that leads to it. Refusals that no user can cause are made
with strace, which answers one of sbx's system calls instead of the kernel."""

import fcntl
import json
import os
import pathlib
import socket
import struct
import subprocess

import sbxtest
from codetest import OVERLAY, Codes
from sbxtest import SBX

ELF_MACHINE, ELF_PROGRAM_HEADERS = 18, 56  # offsets of e_machine and e_phnum, elf(5)


def loader_of(program):
    """The path in PT_INTERP of a 64-bit ELF file, elf(5)."""
    start, count = struct.unpack_from("<Q", program, 32)[0], struct.unpack_from("<H", program, 56)[0]
    for at in range(start, start + 56 * count, 56):
        kind, _, offset, _, _, size = struct.unpack_from("<IIQQQQ", program, at)
        if kind == 3:
            return program[offset:offset + size - 1]


class CommandLine(Codes):
    def test_commands_and_operands(self):
        self.says("reserved", "learn")
        self.says("unknown-command", "lern")
        self.says("missing-command", "policy")
        self.says("misplaced-option", "--json", "run")
        self.says("usage", "completions", "tcsh")
        self.refuses("nothing-to-run")
        self.refuses("needs-language", "-c", "print(1)")
        self.refuses("unknown-language", "--lang", "klingon", "-")
        for options in (("--net", "none", "--allow-host", "example.org"), ("--allow-host", "example.org", "--net", "none")):
            self.refuses("allow-host-with-none", *options, "true")
        self.refuses("language-with-command", "--lang", "python", "--", "true")
        self.refuses("unknown-option", "--tiemout", "1s", "true")

    def test_settings_of_clients(self):
        self.write(".claude.json", "{} // mine", directory=self.home)
        self.says("not-editable", "mcp", "install", "claude", status=1)
        self.says("not-registered", "mcp", "check", "gemini", status=1)
        policy = self.policy("")
        self.assertEqual(self.call("mcp", "install", "codex", "--", "-p", policy).returncode, 0)
        policy.write_text("no policy")
        self.says("no-answer", "mcp", "check", "codex", status=1)

    def test_values(self):
        self.refuses("missing-value", "--timeout")
        self.refuses("unexpected-value", "--json=yes", "true")
        self.refuses("bad-value", "--timeout", "5", "true")
        self.refuses("bad-variable", "--set", 'environment.set={ "1A" = "b" }', "true")
        self.refuses("bad-user", "--set", 'environment.user="root"', "true")
        self.refuses("bad-descriptor", "--env-fd", "9", "true")
        self.refuses("too-large", "--env-file", self.write("large", "x" * (3 << 20)), "true")
        self.refuses("no-such-file", "--env-file", "nowhere", "true")
        self.refuses("report-unwritable", "--report", "/nowhere/record.json", "true")
        self.refuses("allow-host-with-host", "--net", "host", "--allow-host", "example.org", "true")
        self.refuses("bad-input", "--in", self.work, "true")

    def test_a_language_without_code_on_the_command_line(self):
        """tsx is searched first, so a fake one is found on every machine."""
        self.write("bin/tsx", "#!/bin/sh\n", 0o755, self.tmp)
        environment = self.environment({"PATH": f"{self.tmp}/bin:/usr/bin:/bin"})
        self.refuses("no-code-option", "--lang", "typescript", "-c", "1", env=environment)

    def test_what_is_to_be_brought_out(self):
        self.refuses("no-changes-kept", "--workspace", ".:read-write", "--diff", "true")
        self.refuses("nobody-to-ask", *OVERLAY, "--apply", "true")
        self.refuses("nothing-to-bring-out", "--workspace", ".:read-write", "--out", "out", "true")
        self.refuses("out-unusable", "--set", 'filesystem.outputs.collect=["*"]', "--out", self.write("file", ""), "true")
        self.refuses("bad-set-name", *OVERLAY, "--keep", "a/b", "true")
        self.tmp.chmod(0o755)
        self.work.chmod(0o755 if sbxtest.IS_ROOT else 0o555)
        stranger = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if sbxtest.IS_ROOT else ()
        self.refuses("not-applicable", *OVERLAY, "--apply", "--yes", "true", wrapper=stranger)
        self.work.chmod(0o755)
        self.keep("once")
        self.refuses("name-taken", *OVERLAY, "--keep", "once", "true")

    def test_a_stage_that_is_none(self):
        environment = self.environment({"SBX_TEST_FAIL": "nowhere:EIO"})
        self.refuses("unknown-stage", "true", env=environment)


class Files(Codes):
    def test_scripts_and_commands(self):
        self.refuses("not-found", "nosuchcommand", status=127)
        self.refuses("not-executable", "--", self.write("plain", "text"), status=126)
        self.refuses("no-interpreter", self.write("x.nolanguage", "text"), status=126)
        self.refuses("bad-interpreter", self.write("x", "#!/nowhere/python\n", 0o755), status=126)
        os.mkfifo(self.work / "fifo")
        self.refuses("not-a-file", "./fifo", status=126)

    def test_shims_that_lead_in_a_circle(self):
        """Two managers, each of which leaves the choice to "the system's": the other one."""
        directories = [self.home / name / "shims" for name in (".pyenv", ".other")]
        for directory in directories:
            root = directory.parent
            self.write("python3", f'#!/usr/bin/env bash\nexport PYENV_ROOT="{root}"\nexec "{root}/libexec/pyenv" exec "$program" "$@"\n', 0o755, directory)
            self.write("version", "system\n", directory=root)
        self.refuses("shim-loop", "python3", env=self.environment({"PATH": ":".join(map(str, directories))}), status=126)

    def test_a_program_whose_loader_is_not_inside(self):
        program = pathlib.Path("/bin/true").read_bytes()
        loader = loader_of(program)
        self.refuses("command-not-found", self.write("lost", program.replace(loader, loader[:-1] + b"9"), 0o755), status=127)

    def test_a_program_of_another_machine(self):
        program = bytearray(pathlib.Path("/bin/true").read_bytes())
        program[ELF_MACHINE:ELF_MACHINE + 2] = b"\xff\x7f"
        self.refuses("foreign-architecture", self.write("foreign", bytes(program), 0o755), status=126)

    def test_a_program_that_the_kernel_does_not_load(self):
        program = bytearray(pathlib.Path("/bin/true").read_bytes())
        program[ELF_PROGRAM_HEADERS:ELF_PROGRAM_HEADERS + 2] = b"\0\0"
        self.refuses("command-not-executable", self.write("headless", bytes(program), 0o755), status=126)

    def test_grants(self):
        secret = self.write(".ssh/id", "secret", directory=self.home)
        self.refuses("denied-grant", "--read", secret, "true")
        self.refuses("missing-grant", "--read", "/nowhere", "true")
        self.refuses("forbidden-grant", "--read", "/proc", "true")
        self.refuses("missing-workspace", "--workspace", "/nowhere:overlay", "true")
        self.refuses("unfit-workspace", "--workspace", f"{self.home}:overlay", "true")
        self.refuses("no-workspace-mode", "--workspace", ".", "true")
        self.refuses("no-venv", "--venv", self.work, "true")
        self.refuses("not-a-socket", "--set", f'filesystem.sockets=["{secret.parent}"]', "true")
        self.write("seed", "x" * (17 << 20), directory=self.home)
        self.refuses("seed-too-large", "--set", 'filesystem.seed=["~/seed"]', "true")
        self.refuses("seed-outside-home", "--set", 'filesystem.seed=["/etc/passwd"]', "true")

    def test_policies(self):
        self.refuses("unknown-policy", "-p", "nosuchpolicy", "true")
        self.refuses("no-such-file", "-p", "./nowhere.toml", "true")
        self.refuses("not-a-regular-file", "-p", f"{self.work}/", "true")
        self.refuses("toml-syntax", "-p", self.policy("= 1\n"), "true")

    def test_records(self):
        self.says("no-record-kept", "why")
        self.says("not-a-record", "why", self.write("r.json", "{}"))
        self.says("cannot-open", "why", "/nowhere/r.json", status=125)
        self.says("cannot-read", "why", self.work, status=125)

    def test_what_can_not_be_written(self):
        collect = ("--set", 'filesystem.outputs.collect=["*"]', "--out", "out")
        (self.work / "out/taken").mkdir(parents=True)
        self.says("not-brought-out", "run", *collect, "touch", "taken", status=125)
        self.says("cannot-lock", "run", *collect, "touch", "made", wrapper=self.injected("flock", "error=ENOLCK"))

    def test_a_store_that_can_not_be_used(self):
        self.write(".local", "a file", directory=self.home)
        self.refuses("no-state-directory", *OVERLAY, "--keep", "once", "true")
        self.refuses("no-disk-directory", "--set", 'limits.disk_on="directory"', "true")


class ChangeSets(Codes):
    def test_sets_that_are_not_there_or_not_whole(self):
        self.says("no-such-set", "changes", "show", "nowhere")
        os.mkfifo(self.work / "fifo")
        self.refuses("no-writer", "--env-file", "fifo", "true")
        self.says("bad-set-name", "changes", "show", "a/b")
        (self.keep("once") / "manifest").write_text("junk\n")
        self.assertIn('the set "once"', self.says("broken-set", "changes", "show", "once", status=125).stderr)

    def test_sets_that_can_not_be_kept_or_dropped(self):
        self.says("not-kept", "run", *OVERLAY, "--keep", "one", "touch", "x", wrapper=self.injected("renameat2", "error=EACCES"))
        self.says("cannot-put", "run", *OVERLAY, "--keep", "two", "touch", "x", wrapper=self.injected("renameat", "error=EACCES"))
        self.keep("once")
        self.says("not-dropped", "changes", "drop", "once", status=125, wrapper=self.injected("renameat", "error=EACCES"))

    def test_a_set_that_somebody_looks_at(self):
        kept = self.keep("once")
        with open(kept / "contents/0", "rb"):
            directory = os.open(kept / "contents", os.O_RDONLY)
            fcntl.flock(directory, fcntl.LOCK_SH)
            self.says("set-in-use", "changes", "drop", "once", status=125)
            os.close(directory)
        self.assertEqual(self.call("changes", "drop", "once").returncode, 0)

    def test_a_directory_that_is_gone_or_another_one(self):
        self.keep("once")
        elsewhere = self.tmp / "elsewhere"
        self.work.rename(elsewhere)
        self.work.mkdir()
        self.says("workspace-replaced", "changes", "apply", "--yes", "once", status=125, directory=self.tmp)
        self.work.rmdir()
        self.says("workspace-gone", "changes", "apply", "--yes", "once", status=125, directory=self.tmp)
        elsewhere.rename(self.work)
        self.assertEqual(self.call("changes", "apply", "--yes", "once").returncode, 0)


class Machine(Codes):
    def test_namespaces(self):
        for answer in ("ENOSYS", "ENOSPC", "EPERM"):
            self.meets("no-user-namespace", "clone3", f"error={answer}")

    def test_no_process_is_left(self):
        self.meets("cannot-clone", "clone3", "error=EAGAIN")

    def test_procfs_and_a_fence(self):
        self.meets("no-proc", "openat", "error=EACCES", options=("-P", "/proc/meminfo"))
        done = self.meets("cannot-open", "openat", "error=EMFILE", options=("-P", "/proc/meminfo"))
        self.assertIn("help: raise the limit of open files: ulimit -n", done.stderr)
        self.says("no-fence", "run", "--github", "true", wrapper=self.injected("getrandom", "error=ENOSYS"))

    def test_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            self.refuses("cannot-publish", "--set", f'network.publish=["127.0.0.1:{port}:80"]', "true")

    def test_means_that_are_required(self):
        self.refuses("requirement-not-met", "--require", "landlock", "--set", "filesystem.landlock=false", "true")

    def test_a_listener_that_can_not_be(self):
        self.meets("listener-busy", "seccomp", "error=EBUSY")
        self.meets("denied-cannot-kill", "seccomp", "error=EBUSY:when=1", "--set", 'syscalls.denied="kill"', "true")

    def test_descriptors_run_out(self):
        for code, call in (("no-epoll", "epoll_create1"), ("no-pidfd", "pidfd_open"), ("no-pipe", "pipe2"),
                           ("no-signalfd", "signalfd4"), ("no-socket", "socketpair")):
            with self.subTest(code):
                self.meets(code, call, "error=EMFILE")
        done = self.meets("no-pidfd", "clone3", "error=EMFILE:when=1")
        self.assertIn("cannot start the sandbox: Too many open files\n  help: raise the limit of open files: ulimit -n 1024\n", done.stderr)
        self.meets("no-pidfd", "clone3", "error=ENFILE:when=1")

    def test_a_standard_input_that_can_not_be_made(self):
        code = "no-stream"
        status, shown = self.on_terminal([*self.injected("memfd_create", "error=EMFILE"), SBX, "run", "true"])
        self.assertEqual(status, 125, shown)
        self.assertIn(f"error[{code}]: ", shown)

    def test_what_the_group_was_sent_during_the_set_up_is_left_to_the_supervisor(self):
        """The signal doesn't reach the command, which runs."""
        for name in ("HUP", "INT", "QUIT", "TERM"):
            done = self.call("run", "echo", "ran", wrapper=self.injected("setsid", f"signal={name}"))
            self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)

    def test_a_sandbox_that_dies(self):
        """PID 1 sends its sockets, its descriptors, the listener, and finally the command's end."""
        self.meets("child-died", "pivot_root", "signal=KILL")
        self.meets("setup-pivot", "pivot_root", "error=EIO")
        self.meets("no-descriptors", "sendmsg", "retval=1:when=2")
        self.meets("no-listener", "sendmsg", "retval=1:when=3")
        for when in (3, 4):  # by then the command runs
            self.is_lost("init-killed", f"signal=KILL:when={when}")

    def is_lost(self, code, answer):
        done = self.call("run", "--json", "true", wrapper=self.injected("sendmsg", answer))
        outcome = json.loads(done.stdout)["outcome"]
        self.assertEqual((done.returncode, outcome["status"], outcome["code"]), (125, "lost", code), done.stderr)

    def test_a_page_whose_generated_part_is_unknown(self):
        """Generated from tables by a program that is not installed."""
        self.write("man/sbx.1", '.\\" generated: nothing\n.\\" end generated\n')
        code = "broken-page"
        docs = pathlib.Path(os.environ["SBX_BUILD"]) / "src/cli/sbx-docs"
        done = subprocess.run([docs, "check", self.work], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"error[{code}]: ", done.stderr)


if __name__ == "__main__":
    sbxtest.main()

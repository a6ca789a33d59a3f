"""Invariant 1: nothing of the host is reachable unless granted."""

import ctypes
import os
import pathlib
import socket

import sbxtest
from sbxtest import PROBE, SbxTest


IPC_CREAT, IPC_RMID = 0o1000, 0
SECRET = "swordfish-1b7e"


class Paths(SbxTest):
    def setUp(self):
        super().setUp()
        self.secret = self.write("secret.txt", SECRET, directory=self.home)

    def test_ungranted_path_is_absent(self):
        self.refuses(self.inside("read", self.secret), "ENOENT")
        self.refuses(self.inside("look", self.home / "other"), "ENOENT")

    def test_granted_path_is_readable(self):
        self.works(self.inside("read", self.secret, options=["--read", self.secret]))

    def test_granted_path_is_not_writable_by_read(self):
        self.refuses(self.inside("write", self.secret, options=["--read", self.secret]))
        self.assertEqual(self.secret.read_text(), SECRET)

    def test_write_grant_is_writable(self):
        directory = self.tmp / "results"
        directory.mkdir()
        self.works(self.inside("write", directory / "new", options=["--write", directory]))
        self.assertEqual((directory / "new").read_text(), "x")

    def test_host_files_of_accounts_are_absent(self):
        for path in ("/etc/shadow", "/root/.profile", "/var/log", "/boot", "/sys/kernel", "/etc/ssh", "/run/user"):
            self.assertTrue(self.inside("look", path).refused, path)

    def test_host_files_of_accounts_exist_outside(self):
        for path in ("/etc/shadow", "/var/log", "/sys/kernel"):
            self.works(self.outside("look", path))

    def test_accounts_inside_are_synthetic(self):
        ended = self.python("print(open('/etc/passwd').read())")
        self.assertIn("sandbox:x:1000:1000", ended.text)
        names = {line.split(":")[0] for line in pathlib.Path("/etc/passwd").read_text().splitlines()}
        inside = {line.split(":")[0] for line in ended.text.split()}
        self.assertEqual(inside & names - {"root", "nobody", "sandbox"}, set(), ended)

    def test_system_directories_are_read_only(self):
        for path in ("/usr/new", "/etc/new", "/new", "/usr/bin/new"):
            self.refuses(self.inside("write", path))
        self.refuses(self.inside("remount", "/usr"))
        ended = self.python("import os; print([os.statvfs(path).f_flag & os.ST_RDONLY for path in ('/', '/usr', '/etc', '/dev')])")
        self.assertEqual(ended.text, "[1, 1, 1, 1]\n", "read-only whoever asks")

    def test_private_directories_are_writable_and_vanish(self):
        for path in ("/tmp/new", "/home/sandbox/new", "/dev/shm/new"):
            self.works(self.inside("write", path))
        self.assertFalse(pathlib.Path("/tmp/new").exists())
        ended = self.python("import os; print([os.statvfs(path).f_flag & os.ST_RDONLY for path in ('/tmp', '/home/sandbox', '/dev/shm')])")
        self.assertEqual(ended.text, "[0, 0, 0]\n")

    def test_old_root_is_not_mounted(self):
        ended = self.sbx("--", "cat", "/proc/self/mountinfo")
        self.exited(ended)
        roots = [line.split() for line in ended.text.splitlines() if line.split()[4] == "/"]
        self.assertEqual([fields[fields.index("-") + 1] for fields in roots], ["tmpfs"], ended)
        self.assertTrue(self.inside("look", self.home).refused)

    def test_host_root_is_mounted_outside(self):
        self.assertTrue([line for line in sbxtest.mounts().splitlines() if line.split()[4] == "/"])
        self.works(self.outside("look", self.home))

    def test_host_name_is_not_shown(self):
        ended = self.python("import os; print(os.uname().nodename)")
        self.assertEqual(ended.text, "sandbox\n", ended)

    def test_host_name_is_shown_outside(self):
        self.assertNotEqual(os.uname().nodename, "sandbox")

    def test_only_harmless_devices_are_there(self):
        asked = self.inside("list", "/dev")
        harmless = {".", "..", "null", "zero", "full", "random", "urandom", "tty", "shm", "pts", "ptmx", "fd", "stdin", "stdout", "stderr"}
        self.assertEqual(set(asked.lines) - harmless, set(), asked)

    def test_other_devices_are_there_outside(self):
        self.assertGreater(len(self.outside("list", "/dev").lines), 16)

    def test_roots_of_the_system_cannot_be_granted(self):
        for path in ("/", "/proc", "/sys", "/dev", "/proc/sys"):
            for option in ("--read", "--write"):
                self.could_not(self.sbx(option, path, PROBE, "exit", 0), path)

    def test_link_in_a_grant_does_not_lead_out(self):
        directory = self.tmp / "grant"
        directory.mkdir()
        (directory / "link").symlink_to(self.secret)
        self.refuses(self.inside("read", directory / "link", options=["--read", directory]), "ENOENT")

    def test_link_in_a_grant_leads_out_outside(self):
        (self.work / "link").symlink_to(self.secret)
        self.works(self.outside("read", self.work / "link"))

    def test_denied_names_of_a_granted_directory_are_absent(self):
        secret = self.write("deep/.env", "x")
        for mode in ("overlay", "read-only"):
            self.refuses(self.inside("read", secret, options=["--workspace", f"{self.work}:{mode}"]), "ENOENT")
        self.refuses(self.inside("read", secret, options=["--read", self.work]), "ENOENT")

    def test_denied_names_of_a_live_grant_are_empty_and_stay(self):
        secret = self.write("deep/.env", "x")
        for option in (["--workspace", f"{self.work}:read-write"], ["--write", self.work]):
            self.assertEqual(self.sbx(*option, "cat", secret).text, "")
            self.refuses(self.inside("write", secret, options=option))
            self.refuses(self.inside("rename", secret, self.work / "got", options=option))
            self.refuses(self.inside("rename", self.work / "deep", self.work / "got", options=option))
        self.assertEqual(secret.read_text(), "x")

    def test_other_names_of_a_granted_directory_are_there(self):
        self.write("deep/.env", "x")
        other = self.write("deep/env", "x")
        for mode in ("overlay", "read-only", "read-write"):
            self.works(self.inside("read", other, options=["--workspace", f"{self.work}:{mode}"]))

    def test_live_grant_is_listed_as_degraded(self):
        directory = self.tmp / "live"
        directory.mkdir()
        ended = self.sbx("--write", directory, PROBE, "exit", 0)
        self.exited(ended)
        self.assertTrue([item for item in ended.record["degraded"] if "live grant" in item["why"]], ended)

    def test_run_without_live_grant_does_not_list_one(self):
        ended = self.sbx(PROBE, "exit", 0)
        self.exited(ended)
        self.assertFalse([item for item in ended.record["degraded"] if "live grant" in item["why"]], ended)

    def test_workspace_overlay_leaves_the_host_alone(self):
        kept = self.write("kept.txt", "before")
        options = ["--workspace", f"{self.work}:overlay"]
        self.works(self.inside("write", kept, options=options))
        self.works(self.inside("remove", kept, options=options))
        self.works(self.inside("write", self.work / "new.txt", options=options))
        self.assertEqual(kept.read_text(), "before")
        self.assertEqual([path.name for path in self.work.iterdir()], ["kept.txt"])

    def test_workspace_read_write_changes_the_host(self):
        self.works(self.inside("write", self.work / "new.txt", options=["--workspace", f"{self.work}:read-write"]))
        self.assertEqual((self.work / "new.txt").read_text(), "x")

    def test_workspace_read_only_refuses_writes(self):
        self.refuses(self.inside("write", self.work / "new.txt", options=["--workspace", f"{self.work}:read-only"]))
        self.assertEqual(list(self.work.iterdir()), [])

    def test_workspace_empty_hides_its_files(self):
        kept = self.write("kept.txt", "before")
        self.refuses(self.inside("read", kept), "ENOENT")


class Inherited(SbxTest):
    def leaky_fd(self):
        fd = os.open(self.home, os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, fd)
        return fd

    def test_descriptors_of_the_caller_are_not_inherited(self):
        asked = self.inside("descriptors", pass_fds=[self.leaky_fd()])
        self.assertEqual([line.split()[0] for line in asked.lines], ["0", "1", "2"], asked)

    def test_descriptors_are_inherited_outside(self):
        fd = self.leaky_fd()
        asked = self.outside("descriptors", pass_fds=[fd])
        self.assertIn(f"{fd} {self.home}", asked.lines)

    def test_standard_streams_are_pipes_of_the_sandbox(self):
        log = self.tmp / "log"
        with open(log, "wb") as out, open(self.write("input", "text"), "rb") as data:
            process = self.start_sbx(PROBE, "descriptors", json_record=False, stdin=data, stdout=out)
            self.finish(process, json_record=False)
        lines = log.read_text().splitlines()
        self.assertEqual(len(lines), 3, lines)
        for line in lines:
            self.assertIn("pipe:[", line)
        self.assertNotIn(str(log), log.read_text())

    def test_standard_streams_are_the_callers_outside(self):
        asked = self.outside("descriptors")
        self.assertIn("0 /dev/null", asked.lines)

    def test_environment_is_not_inherited(self):
        asked = self.inside("environment", env={"SECRET_TOKEN": SECRET, "LD_PRELOAD": "", "PYTHONPATH": "/x"})
        names = {line.split("=")[0] for line in asked.lines}
        allowed = {"HOME", "TMPDIR", "PATH", "USER", "LOGNAME", "SHELL", "LANG"}
        self.assertEqual(names, allowed, asked)

    def test_environment_is_passed_where_granted(self):
        asked = self.inside("environment", options=["--env", "SECRET_TOKEN"], env={"SECRET_TOKEN": SECRET})
        self.assertIn(f"SECRET_TOKEN={SECRET}", asked.lines)

    def test_environment_of_the_caller_is_not_in_proc(self):
        code = "import glob\nfor f in glob.glob('/proc/*/environ') + glob.glob('/proc/*/cmdline'):\n" \
               "    try: print(f, open(f).read())\n    except OSError as e: print(f, e)"
        ended = self.python(code, "an-argument", env={"SECRET_TOKEN": SECRET})
        self.assertNotIn(SECRET, ended.text)
        self.refuses(self.inside("read", "/proc/1/environ", env={"SECRET_TOKEN": SECRET}))
        self.refuses(self.inside("read", "/proc/1/cmdline"))

    def test_environment_of_a_process_is_in_proc_outside(self):
        self.works(self.outside("read", "/proc/self/environ"))
        self.works(self.inside("read", "/proc/self/environ"))


class Processes(SbxTest):
    def victim(self):
        process = sbxtest.start([PROBE, "sleep"])
        self.addCleanup(sbxtest.stop, [process])
        return process.pid

    def test_host_process_cannot_be_signalled(self):
        self.refuses(self.inside("signal", self.victim(), 9), "ESRCH")

    def test_host_process_can_be_signalled_outside(self):
        self.works(self.outside("signal", self.victim(), 9))

    def test_host_processes_are_not_listed(self):
        asked = self.inside("list", "/proc")
        pids = [int(line) for line in asked.lines if line.isdigit()]
        self.assertEqual(len(pids), 1, asked)

    def test_host_processes_are_listed_outside(self):
        asked = self.outside("list", "/proc")
        self.assertIn(str(os.getpid()), asked.lines)

    def test_init_is_not_visible(self):
        for name in ("mem", "maps", "environ", "exe", "root", "cwd", "fd", "ns/user", "cmdline", "auxv"):
            asked = self.inside("look", f"/proc/1/{name}")
            self.assertTrue(asked.refused, f"{name}: {asked}")

    def test_own_process_is_visible(self):
        for name in ("mem", "maps", "environ", "exe", "root", "cwd", "fd", "ns/user", "cmdline", "auxv"):
            self.works(self.inside("look", f"/proc/self/{name}"))

    def test_init_cannot_be_harmed(self):
        options = ["--set", 'syscalls.allow=["@debug"]']
        for question in (("trace", 1), ("read-memory", 1), ("steal-fd", 1), ("compare", 1), ("limit-cpu", 1)):
            asked = self.inside(*question, options=options)
            self.assertTrue(asked.refused, f"{question}: {asked}")
        for number in (9, 15, 19, 11, 2):
            asked = self.inside("signal", 1, number)
            self.assertEqual(asked.ended.outcome["status"], "exited", asked)

    def test_own_child_can_be_traced_where_allowed(self):
        options = ["--set", 'syscalls.allow=["@debug"]']
        self.works(self.inside("trace", "child", options=options))

    def test_init_cannot_be_rescheduled(self):
        self.refuses(self.inside("reschedule", 1))

    def test_own_process_can_be_rescheduled(self):
        self.works(self.inside("reschedule", "self"))


class SeenFromOutside(SbxTest):
    """What the host's process table shows of a sandbox's PID 1; the program itself can't see the table."""

    def setUp(self):
        super().setUp()
        self.process = self.start_sbx(PROBE, "polite", 0, SECRET, json_record=False)
        self.assertEqual(self.process.stdout.readline(), b"ready\n")
        self.init = sbxtest.init_of(self.process)
        self.assertIsNotNone(self.init)

    def tearDown(self):
        self.process.terminate()
        self.finish(self.process, json_record=False)

    def payload(self):
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if f"\nPPid:\t{self.init}\n" in (entry / "status").read_text():
                    return entry
            except OSError:
                continue
        return None

    def test_init_shows_nothing_of_the_caller(self):
        shown = pathlib.Path(f"/proc/{self.init}/cmdline").read_bytes()
        self.assertEqual(shown.strip(b"\0"), b"sbx-init")

    def test_command_shows_its_arguments(self):
        self.assertIn(SECRET.encode(), (self.payload() / "cmdline").read_bytes())

    def test_init_is_not_dumpable(self):
        self.assertEqual(os.stat(f"/proc/{self.init}/environ").st_uid, 0, "files of a non-dumpable process belong to root")

    def test_command_is_dumpable(self):
        self.assertNotEqual((self.payload() / "environ").stat().st_uid, 0)


class Ipc(SbxTest):
    def setUp(self):
        super().setUp()
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.key = 0x5B000000 + (os.getpid() & 0xFFFFFF)

    def test_host_shared_memory_is_unreachable(self):
        self.shared_memory()
        granted = ["--set", 'syscalls.allow=["shmget"]']  # without it: ENOSYS without a denial where memory is polled
        self.refuses(self.inside("shared-memory", self.key, options=granted), "ENOENT")

    def test_host_shared_memory_is_reachable_outside(self):
        self.shared_memory()
        self.works(self.outside("shared-memory", self.key))

    def shared_memory(self):
        made = self.libc.shmget(self.key, 4096, IPC_CREAT | 0o600)
        self.assertNotEqual(made, -1)
        self.addCleanup(self.libc.shmctl, made, IPC_RMID, None)

    def queues(self):
        queue = self.libc.msgget(self.key, IPC_CREAT | 0o600)
        semaphore = self.libc.semget(self.key, 1, IPC_CREAT | 0o600)
        self.assertNotIn(-1, (queue, semaphore))
        self.addCleanup(self.libc.msgctl, queue, IPC_RMID, None)
        self.addCleanup(self.libc.semctl, semaphore, 0, IPC_RMID)

    def test_host_queues_and_semaphores_are_unreachable(self):
        self.queues()
        granted = ["--set", 'syscalls.allow=["msgget", "semget"]']  # as above
        self.refuses(self.inside("message-queue", self.key, options=granted), "ENOENT")
        self.refuses(self.inside("semaphore", self.key, options=granted), "ENOENT")

    def test_host_queues_and_semaphores_are_reachable_outside(self):
        self.queues()
        self.works(self.outside("message-queue", self.key))
        self.works(self.outside("semaphore", self.key))

    def posix_memory(self):
        path = pathlib.Path(f"/dev/shm/sbx-test-{os.getpid()}")
        path.write_text(SECRET)
        self.addCleanup(path.unlink)
        return path

    def test_host_posix_memory_is_unreachable(self):
        self.refuses(self.inside("read", self.posix_memory()), "ENOENT")

    def test_host_posix_memory_is_reachable_outside(self):
        self.works(self.outside("read", self.posix_memory()))

    # keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, create)
    KEYRING = ("raw", sbxtest.SYSCALLS["keyctl"], 0, -3, 1)

    def test_keyrings_are_unreachable(self):
        asked = self.refuses(self.inside(*self.KEYRING), "EPERM")
        self.assertIn("keyctl", asked.ended.denied)

    def test_keyrings_are_reachable_where_allowed(self):
        self.works(self.inside(*self.KEYRING, options=["--set", 'syscalls.allow=["keyctl"]']))


class Sockets(SbxTest):
    def listener(self, name):
        server = socket.socket(socket.AF_UNIX)
        server.bind(name)
        server.listen(8)
        self.addCleanup(server.close)
        return server

    def abstract(self):
        name = f"sbx-test-{os.getpid()}"
        self.listener("\0" + name)
        return name

    def test_abstract_socket_is_unreachable(self):
        self.refuses(self.inside("connect-abstract", self.abstract()), "ECONNREFUSED")

    def test_abstract_socket_is_unreachable_in_the_hosts_network(self):
        self.refuses(self.inside("connect-abstract", self.abstract(), options=["--net", "host"]))

    def test_abstract_socket_is_reachable_outside(self):
        self.works(self.outside("connect-abstract", self.abstract()))

    def path_socket(self):
        directory = self.tmp / "sockets"
        directory.mkdir()
        self.listener(str(directory / "s"))
        (directory / "s").chmod(0o777)
        return directory / "s"

    def test_path_socket_is_unreachable_through_a_read_grant(self):
        path = self.path_socket()
        self.refuses(self.inside("connect-path", path, options=["--read", path.parent]))

    def test_path_socket_is_unreachable_through_a_write_grant(self):
        path = self.path_socket()
        self.refuses(self.inside("connect-path", path, options=["--write", path.parent]))

    def test_path_socket_is_unreachable_through_workspaces(self):
        path = self.path_socket()
        for mode in ("overlay", "read-only", "read-write"):
            asked = self.inside("connect-path", path, options=["--workspace", f"{path.parent}:{mode}"])
            self.assertTrue(asked.refused, f"{mode}: {asked}")

    def test_path_socket_is_reachable_outside(self):
        self.works(self.outside("connect-path", self.path_socket()))

    def port(self):
        server = socket.socket(socket.AF_INET)
        server.bind(("127.0.0.1", 0))
        server.listen(8)
        self.addCleanup(server.close)
        return server.getsockname()[1]

    def test_host_loopback_is_unreachable(self):
        self.refuses(self.inside("connect-tcp", "127.0.0.1", self.port()), "ECONNREFUSED")

    def test_host_loopback_is_reachable_in_the_hosts_network(self):
        self.works(self.inside("connect-tcp", "127.0.0.1", self.port(), options=["--net", "host"]))

    def test_network_is_unreachable(self):
        self.refuses(self.inside("connect-tcp", "192.0.2.1", 80), "ENETUNREACH")
        self.refuses(self.inside("send-datagram", "192.0.2.1", 53), "ENETUNREACH")

    def test_gateway_has_a_network_of_its_own(self):
        ended = self.exited(self.sbx("--set", 'network.mode="allow-list"', "--", "cat", "/proc/net/dev"))
        links = {line.split(":")[0].strip() for line in ended.text.splitlines()[2:]}
        self.assertIn("eth0", links)
        self.assertNotIn("gw0", links)

    def test_own_loopback_is_reachable(self):
        self.works(self.inside("talk-to-itself"))


class Terminals(SbxTest):
    """The caller has a controlling terminal; the program must not reach it."""

    def test_terminal_of_the_caller_is_unreachable(self):
        status, text = self.on_terminal(self.command(PROBE, "open-terminal", "/dev/tty", json_record=False))
        self.assertEqual(status, 1, text)
        status, text = self.on_terminal(self.command(PROBE, "descriptors", json_record=False))
        self.assertEqual(status, 0, text)
        self.assertNotIn("/dev/pts", text)

    def test_terminal_of_the_caller_is_reachable_outside(self):
        status, text = self.on_terminal([PROBE, "open-terminal", "/dev/tty"])
        self.assertEqual(status, 0, text)

    def test_command_has_a_session_of_its_own(self):
        ended = self.python("import os; print(os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid())")
        self.assertEqual(ended.text, "True True\n")

    def test_command_shares_the_session_outside(self):
        process = sbxtest.start([PROBE, "sleep"])
        self.addCleanup(sbxtest.stop, [process])
        self.assertEqual(os.getsid(process.pid), os.getsid(0))

    def test_interactive_terminal_is_the_sandboxs_own(self):
        status, text = self.on_terminal(self.command("-i", PROBE, "open-terminal", "/dev/tty", json_record=False))
        self.assertEqual(status, 0, text)
        status, text = self.on_terminal(self.command("-i", PROBE, "list", "/dev/pts", json_record=False))
        self.assertEqual(status, 0, text)
        self.assertEqual({word for word in text.split() if word.isdigit()}, {"0"}, text)


if __name__ == "__main__":
    sbxtest.main()

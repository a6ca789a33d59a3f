"""Without namespaces, on this machine itself: what `--isolation landlock` and `auto` keep, also where a container refuses namespaces
and the other tests are skipped. More attacks are in test_own_uid.py and test_same_uid.py: in containers, which end with them."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile

from containers import LEAST_LANDLOCK, landlock_abi
from outside import ATTEMPTS, SEEN, opened
from sbxtest import IS_ROOT, SBX, SbxTest, main, refusal_of_namespaces, start

CONNECT = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))).sendall(b'x')"
# Each grandchild leaves its session and is nobody's child.
HOPPING = "import os, time\nfor _ in range(8):\n  if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(3600)\n    os._exit(0)\nprint('begun')"


class InPlace(SbxTest):
    NEEDS_NAMESPACES = False

    def setUp(self):
        super().setUp()
        if landlock_abi() < LEAST_LANDLOCK["own-uid" if IS_ROOT else "same-uid"]:
            self.skipTest(f"Landlock has ABI {landlock_abi()} here")

    def walled(self, *words, options=(), **rest):
        ended = self.sbx("--isolation", "landlock", *options, "--", *words, **rest)
        self.assertEqual(ended.record["isolation"]["tier"], "landlock", ended)
        return ended

    def program(self, text, *words, **rest):
        return self.walled("python3", "-c", text, *words, **rest)

    def test_an_answer_is_the_programs(self):
        ended = self.program("import os, sys; print(6 * 7); print(os.getcwd(), file=sys.stderr); sys.exit(3)")
        self.assertEqual((ended.outcome["exit_code"], ended.text), (3, "42\n"), ended)
        self.assertIn("isolation", [each["what"] for each in ended.record["degraded"]])

    def test_a_file_needs_a_grant(self):
        self.tmp.chmod(0o755)
        file = self.tmp / "open"
        file.write_text("text")
        ended = self.walled("cat", file)
        self.assertEqual((ended.outcome["exit_code"], ended.text), (1, ""), ended)
        self.assertEqual(self.walled("cat", file, options=("--read", file)).text, "text")

    def copying(self, place, *words, **rest):
        """The ended `sbx run` of a program with a copied workspace, and its record."""
        work = pathlib.Path(place) / "work"
        work.mkdir(exist_ok=True)
        (work / "file").write_bytes(b"x" * (1 << 20))
        ended = subprocess.run([*words, "run", "--isolation", "landlock", "--json", "--workspace", f"{work}:overlay", "--", "echo", "ran"],
                               stdout=subprocess.PIPE, text=True, **rest)
        return ended, json.loads(ended.stdout)

    def test_after_a_signal_that_comes_while_copies_are_made_nothing_begins(self):
        """Twin: without it the program does."""
        def comes():
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            os.kill(os.getpid(), signal.SIGTERM)
        self.tmp.chmod(0o755)
        ended, record = self.copying(self.tmp, SBX)
        self.assertEqual((ended.returncode, record["stdout"]["text"]), (0, "ran\n"), record)
        ended, record = self.copying(self.tmp, SBX, preexec_fn=comes)
        self.assertEqual((ended.returncode, record["stdout"]["text"], record["outcome"]["status"], record["outcome"]["detail"]),
                         (143, None, "cancelled", "cancelled by SIGTERM before the command began"), record)

    def test_a_full_tmp_is_named_and_not_a_limit(self):
        if not IS_ROOT or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            self.skipTest("no file system can be mounted")
        with tempfile.TemporaryDirectory(dir="/var/tmp") as place:  # seen beside another /tmp
            os.chmod(place, 0o755)
            program = shutil.copy(SBX, place)
            for options in ("size=64m,nr_inodes=5", "size=512k,nr_inodes=100"):
                ended, record = self.copying(place, "unshare", "--mount", "--propagation", "private", "sh", "-c",
                                             f'mount -t tmpfs -o {options},mode=1777 tmpfs /tmp && exec "$@"', "sh", program)
                self.assertEqual((ended.returncode, record["outcome"]["hint"]), (125, "make room in /tmp"), record)

    def test_what_leads_out_is_refused(self):
        """Its twin, where each attempt has something to reach, is in the containers' tests."""
        self.tmp.chmod(0o755)
        around = self.tmp / "around"
        (around / "dir").mkdir(parents=True)
        for name, mode in (("open", 0o644), ("wide", 0o666), ("gone", 0o666), ("dir/file", 0o600)):
            (around / name).write_text("SECRET")
            (around / name).chmod(mode)
        (around / "link").symlink_to("open")
        around.chmod(0o777)
        abstract = f"sbx-test-{os.getpid()}"
        with (socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as stream, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagram,
              socket.socket(socket.AF_UNIX) as nameless, start(["sleep", "3600"], env={"TOKEN": "SECRET"}, start_new_session=True) as victim):
            for server, name in ((stream, str(around / "stream")), (datagram, str(around / "datagram")), (nameless, "\0" + abstract)):
                server.bind(name)
                if server is not datagram:
                    server.listen()
            for name in ("stream", "datagram"):
                (around / name).chmod(0o777)
            attempts = ATTEMPTS.replace("sbx-test", abstract).replace("4100", str(tcp.getsockname()[1])).replace("/host", str(around))
            try:
                ended = self.program(attempts, str(victim.pid))
            finally:
                victim.kill()
        self.assertEqual(opened(json.loads(ended.text)), SEEN, ended)

    def test_a_program_is_compiled_where_it_may_write(self):
        ended = self.sbx("--isolation", "landlock", "--lang", "c", "-c", '#include <stdio.h>\nint main(void) { puts("compiled"); }')
        self.assertEqual((ended.outcome["exit_code"], ended.text), (0, "compiled\n"), ended)

    def test_a_workspace_changes_where_its_changes_are_applied(self):
        file = self.work / "a.txt"
        file.write_text("old")
        change = ("sh", "-c", "printf new >a.txt; printf b >b.txt; cat a.txt")
        self.assertEqual(self.walled(*change, options=("--workspace", f"{self.work}:overlay")).text, "new")
        self.assertEqual((file.read_text(), len(list(self.work.iterdir()))), ("old", 1))
        self.assertEqual(self.walled(*change, options=("--workspace", f"{self.work}:overlay", "--apply", "--yes")).text, "new")
        self.assertEqual((file.read_text(), (self.work / "b.txt").read_text()), ("new", "b"))

    def test_loopback_needs_the_network(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = str(server.getsockname()[1])
            self.assertEqual(self.program(CONNECT, port).outcome["exit_code"], 1)
            self.assertEqual(self.program(CONNECT, port, options=("--net", "host")).outcome["exit_code"], 0)
            server.accept()[0].close()
            server.setblocking(False)
            self.assertRaises(BlockingIOError, server.accept)

    def hints(self, *words):
        ended = self.sbx("--isolation", "landlock", "--report", self.tmp / "report.json", *words, json_record=False)
        self.assertEqual(ended.status, 1, ended)
        hints = json.loads((self.tmp / "report.json").read_text()).get("hints", [])
        (self.tmp / "report.json").unlink()
        lines = [line for line in ended.err.decode().splitlines() if line.startswith("sbx:") and "weaker isolation" not in line]
        self.assertEqual(len(lines), len(hints), ended)  # no note beside them
        return [(hint["what"], hint["options"]) for hint in hints]

    def test_what_a_script_misses_is_told_by_its_path_on_the_host_and_the_option_helps(self):
        """Names of the private directory are another one's in the next run. The script itself was shown."""
        for name in ("data.csv", "sub/x", "sub/other.py"):
            self.write(name, "")
        self.write("failing.py", "1/0\n")
        self.assertEqual(self.hints("failing.py"), [])
        for code, name, option in (("open('data' + '.csv')", "data.csv", "--read"), ("import os; open(os.getcwd() + '/data' + '.csv')", "data.csv", "--read"),
                                   ("open('sub/x')", "sub/x", "--read"), ("import os; os.listdir('su' + 'b')", "sub", "--read"), ("import other", "sub/other.py", "--workspace")):
            script = self.write("sub/main.py" if "import other" in code else "main.py", code + "\n").relative_to(self.work)
            for directory in (self.tmp, self.work, self.work / "sub"):
                directory.chmod(0o755)
            [(what, options)] = self.hints(script)
            self.assertEqual((what, options), (str(self.work / name), [option, ".:overlay" if option == "--workspace" else str(self.work / name)]), code)
            self.exited(self.sbx("--isolation", "landlock", *options, script))

    def test_paths_that_lie_elsewhere_here_are_told(self):
        """Twins: what the hint names works."""
        self.write("data.csv", "text")
        for directory in (self.tmp, self.work):
            directory.chmod(0o755)
        python = lambda code: ("--workspace", f"{self.work}:overlay", "--", "python3", "-c", code)
        for path, what, ways in ((f"{self.work}/data.csv", f"{self.work}/data.csv", "open('data.csv')"),
                                 (f"/tmp/x-{os.getpid()}", f"/tmp/x-{os.getpid()}", "import os; open(os.environ['TMPDIR'] + '/x', 'w')")):
            self.assertEqual(self.hints(*python(f"open({path!r}, 'a')")), [(what, [])])
            self.exited(self.sbx("--isolation", "landlock", *python(ways)))

    def test_a_failed_guess_names_no_option_that_is_refused(self):
        """At a terminal, where the caller's home is told: nothing is shown under another name, but a file can be copied there."""
        for name in ("notes.txt", "more/deep.txt"):
            self.write(name, "text", directory=self.home)
        look = "import os, sys; os.stat(os.path.expanduser('~/' + sys.argv[1]))"
        command = ("--", "python3", "-c", look, "notes.txt")
        wanted = f"{self.home}/notes.txt:/home/sandbox/notes.txt"
        said = self.on_terminal(self.command("--isolation", "landlock", *command, json_record=False))[1].replace("\r\n", " ")
        self.assertIn(f"add --in {wanted}", said)
        self.assertNotIn("--explain", said)
        self.exited(self.sbx("--isolation", "landlock", "--in", wanted, *command))
        said = self.on_terminal(self.command("--isolation", "landlock", *command[:-1], "more", json_record=False))[1].replace("\r\n", " ")
        self.assertIn(f'which is "{self.home}/more" here', said)
        self.assertNotIn(": add", said)

    def test_nothing_outlives_the_program(self):
        ended = self.program(HOPPING)  # what is left would be found
        self.assertEqual((ended.outcome["status"], ended.text), ("exited", "begun\n"), ended)

    def test_time_is_bounded(self):
        ended = self.walled("sleep", "3600", options=("--timeout", "1s"))
        self.assertEqual((ended.outcome["status"], ended.outcome["reason"]), ("over-budget", "wall_time"), ended)

    def test_auto_takes_what_the_machine_gives(self):
        refused = refusal_of_namespaces() is not None
        ended = self.sbx("--isolation", "auto", "--", "true")
        if refused and ended.record["isolation"]["tier"] == "namespaces":
            self.assertIn("proc", [each["what"] for each in ended.record["degraded"]])
        elif not refused:
            self.assertEqual(ended.record["isolation"]["tier"], "namespaces", ended)
        needed = self.sbx("--isolation", "landlock", "--require", "namespaces", "--", "true")
        self.assertEqual((needed.status, needed.outcome["status"]), (125, "setup-failed"), needed)


if __name__ == "__main__":
    main()

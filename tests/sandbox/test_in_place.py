"""Without namespaces, on this machine itself: what `--isolation landlock` and `auto` keep, also where a container refuses namespaces
and the other tests are skipped. The attacks are in test_own_uid.py and test_same_uid.py: in containers, which end with them."""

import socket

from containers import LEAST_LANDLOCK, landlock_abi
from sbxtest import IS_ROOT, SbxTest, main, refusal_of_namespaces

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

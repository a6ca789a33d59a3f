"""`sbx ps` and `sbx stop`: the runs of this user; and runs that end because nobody waits for them any more."""

import json
import os
import subprocess
import sys

import sbxtest
from sbxtest import SBX, SbxTest

WAITS = "print('ready', flush=True); input()"


class Harness(SbxTest):
    def test_what_ships_is_tested_unless_a_test_asks_for_a_hook(self):
        self.assertEqual((sbxtest.binary_for({}), sbxtest.binary_for({"SBX_TEST_SKIP": "seccomp"})), (SBX, sbxtest.WITH_FAULTS))


class Waiting(SbxTest):
    def waiting(self, *options, code=WAITS, **rest):
        """A run whose program has started and waits for a line."""
        process = self.start_sbx(*options, "--lang", "python", "-c", code, json_record=False, stdin=subprocess.PIPE, **rest)
        self.addCleanup(self.end, process)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    @staticmethod
    def error(code):
        return f"error[{code}]".encode()

    def ask(self, *arguments):
        return subprocess.run([SBX, *arguments], env=self.environment(), cwd=self.work, capture_output=True, check=False)

    def listed(self):
        """The runs of this test: the same user may have others."""
        answer = self.ask("ps", "--json")
        self.assertEqual(answer.returncode, 0, answer)
        return {run["pid"]: run for run in json.loads(answer.stdout)["runs"]}


class Runs(Waiting):
    def test_a_run_is_listed_while_it_is_under_way(self):
        process = self.waiting("-p", "python")
        run = self.listed()[process.pid]
        self.assertRegex(run["id"], "^r_[0-9a-f]{16}$")
        self.assertEqual(run["policy"], "python")
        self.assertEqual(run["command"][1:4], ["run", "-p", "python"])
        self.assertIn(run["id"], self.ask("ps").stdout.decode())
        process.communicate(b"\n")
        self.assertNotIn(process.pid, self.listed())

    def test_where_nothing_runs_a_sentence_says_so(self):
        # Names of runs are of a network namespace, as unix(7) says of abstract ones.
        alone = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--net"]
        answer = subprocess.run([*alone, SBX, "ps"], env=self.environment(), cwd=self.work, capture_output=True, check=False)
        self.assertEqual((answer.returncode, answer.stdout), (0, b""), answer)
        self.assertIn(b'no run is under way; "sbx session list" lists sessions', answer.stderr)
        answer = subprocess.run([*alone, SBX, "ps", "--json"], env=self.environment(), cwd=self.work, capture_output=True, check=False)
        self.assertEqual((json.loads(answer.stdout)["runs"], answer.stderr), ([], b""))

    def test_the_id_is_the_records(self):
        report = self.tmp / "record.json"
        process = self.waiting("--report", report)
        run = self.listed()[process.pid]
        process.communicate(b"\n")
        self.assertEqual(json.loads(report.read_text())["id"], run["id"])

    def test_asking_often_changes_nothing(self):
        process = self.waiting()
        for _ in range(60):
            self.assertIn(process.pid, self.listed())

    def test_stop_ends_it_as_cancelled(self):
        report = self.tmp / "record.json"
        process = self.waiting("--report", report)
        other = self.waiting()
        stopped = self.ask("stop", self.listed()[process.pid]["id"])
        self.assertEqual((stopped.returncode, stopped.stderr), (0, b""), stopped)
        self.assertEqual(process.wait(), 143)
        self.assertEqual(json.loads(report.read_text())["outcome"]["status"], "cancelled")
        self.assertIsNone(other.poll())

    def test_the_beginning_of_an_id_and_a_process_id_are_enough(self):
        first, second = self.waiting(), self.waiting()
        self.assertEqual(self.ask("stop", self.listed()[first.pid]["id"][2:12]).returncode, 0)
        self.assertEqual(first.wait(), 143)
        self.assertEqual(self.ask("stop", str(second.pid)).returncode, 0)
        self.assertEqual(second.wait(), 143)

    def test_an_unknown_id_stops_nothing(self):
        process = self.waiting()
        run = self.listed()[process.pid]
        for wrong in (["r_0000000000000000"], [run["id"], "nothing"], [""], []):
            answer = self.ask("stop", *wrong)
            self.assertEqual(answer.returncode, 2, answer)
            self.assertIn(b"sbx ps", answer.stderr)
        self.assertIn(self.error("no-such-run"), self.ask("stop", "nothing").stderr)
        self.assertEqual(self.ask("stop", "--all", run["id"]).returncode, 2)
        self.assertIsNone(process.poll())

    def test_a_run_of_another_pid_namespace_is_listed_and_not_stopped(self):
        process = self.waiting()
        run = self.listed()[process.pid]
        apart = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", SBX]
        answer = subprocess.run([*apart, "stop", run["id"]], env=self.environment(), cwd=self.work, capture_output=True, check=False)
        self.assertEqual(answer.returncode, 1, answer)
        self.assertIn(self.error("not-ended"), answer.stderr)
        self.assertIsNone(process.poll())

    def test_a_killed_run_is_not_listed(self):
        process = self.waiting()
        self.assertIn(process.pid, self.listed())
        process.kill()
        process.wait()
        self.assertNotIn(process.pid, self.listed())

    def test_a_name_that_another_user_holds_is_not_listed(self):
        if not sbxtest.IS_ROOT:
            self.skipTest("needs root, to become two users")
        name = "\0sbx-run-r_%016x-x"
        code = (f"import os, socket, sys; os.setuid(int(sys.argv[1])); s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
                f"s.bind({name!r} % os.getpid()); s.listen(); print('ready', flush=True); input()")
        pids = []
        for uid in ("65534", "0"):
            holder = subprocess.Popen([sys.executable, "-c", code, uid], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            sbxtest.known_children().add(holder.pid)
            self.addCleanup(self.end, holder)
            self.assertEqual(holder.stdout.readline(), b"ready\n")
            pids.append(holder.pid)
        listed = self.listed()
        self.assertNotIn(pids[0], listed)
        self.assertIn(pids[1], listed, "the twin: the name itself is well formed")

    def test_a_name_that_a_program_of_a_sandbox_holds_is_not_listed(self):
        """With the host's network its abstract names are the host's too, unix(7)."""
        code = ("import os, socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
                "name = 'r_%016x' % int.from_bytes(os.urandom(8), 'big')\n"
                "s.bind('\\0sbx-run-' + name + '-forged'); s.listen(); print(name, flush=True); input(); print('went on')")
        inside = self.start_sbx("--set", 'network.mode="host"', "--lang", "python", "-c", code, json_record=False, stdin=subprocess.PIPE)
        self.addCleanup(self.end, inside)
        forged = inside.stdout.readline().decode().strip()
        outside = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        sbxtest.known_children().add(outside.pid)
        self.addCleanup(self.end, outside)
        twin = outside.stdout.readline().decode().strip()
        self.assertRegex(forged + twin, "^r_[0-9a-f]{16}r_[0-9a-f]{16}$")
        listed = {run["id"]: pid for pid, run in self.listed().items()}
        self.assertIn(inside.pid, listed.values(), "the run itself")
        self.assertNotIn(forged, listed)
        self.assertEqual(listed[twin], outside.pid, "the name itself is well formed")
        answer = self.ask("stop", forged)
        self.assertEqual(answer.returncode, 2, answer)
        self.assertIn(self.error("no-such-run"), answer.stderr)
        self.assertIn(b"went on", inside.communicate(b"\n")[0])

    def test_a_sandbox_does_not_see_runs(self):
        process = self.waiting()
        self.assertIn(process.pid, self.listed())
        shown = self.python("print(open('/proc/net/unix').read())")
        self.assertIn("Inode", shown.text, shown)
        self.assertNotIn("sbx-run", shown.text, shown)


class NobodyWaits(Waiting):
    def test_a_run_ends_when_the_reader_of_the_record_leaves(self):
        read, write = os.pipe()
        process = self.waiting("--report-fd", write, pass_fds=[write])
        os.close(write)
        os.close(read)
        process.communicate(timeout=120)
        self.assertNotEqual(process.returncode, 0)

    def test_a_json_caller_that_leaves_ends_the_run(self):
        process = self.start_sbx("--lang", "python", "-c", "import time; time.sleep(50)")
        process.stdout.close()
        self.addCleanup(process.stderr.close)
        self.assertNotEqual(process.wait(timeout=120), 0)

    def test_a_record_that_goes_to_a_file_too_is_waited_for(self):
        read, write = os.pipe()
        report = self.tmp / "record.json"
        process = self.waiting("--report-fd", write, "--report", report, pass_fds=[write])
        os.close(write)
        os.close(read)
        process.communicate(b"\n", timeout=120)
        self.assertEqual(json.loads(report.read_text())["outcome"]["status"], "exited")

    def under_a_parent(self, *options):
        """The pid of a run, and of the process that started it."""
        program = ["--lang", "python", "-c", "import sys; print('ready', file=sys.stderr, flush=True); input()"]
        parent, pid = sbxtest.under_a_parent(self.command(*options, *program, json_record=False), cwd=self.work, env=self.environment(),
                                             stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(parent.stderr.readline(), b"ready\n")
        self.addCleanup(lambda: [pipe.close() for pipe in (parent.stdin, parent.stdout, parent.stderr)])
        return pid, parent

    def kill_parent(self, parent):
        parent.kill()
        parent.wait()

    def test_a_run_dies_with_its_parent_where_that_was_asked_for(self):
        report = self.tmp / "record.json"
        pid, parent = self.under_a_parent("--die-with-parent", "--report", report)
        self.kill_parent(parent)
        _, status = os.waitpid(pid, 0)  # an orphan by now: this process adopts those
        self.assertEqual(os.waitstatus_to_exitcode(status), 129)
        self.assertEqual(json.loads(report.read_text())["outcome"]["status"], "cancelled")

    def test_a_run_outlives_its_parent_otherwise(self):
        report = self.tmp / "record.json"
        pid, parent = self.under_a_parent("--report", report)
        self.kill_parent(parent)
        parent.stdin.write(b"\n")
        parent.stdin.flush()
        _, status = os.waitpid(pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        self.assertEqual(json.loads(report.read_text())["outcome"]["status"], "exited")


if __name__ == "__main__":
    sbxtest.main()

"""What the kernel counts for a user, and for an ordinary user the sandbox is the caller: a program takes its part of it, not all."""

import resource
import subprocess

import sbxtest
from flight import FLIGHT, few_files, usual_files
from sbxtest import IS_ROOT, SbxTest

PASS_ONE = """
import array, errno, socket
a, b = socket.socketpair()
try:
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])
    print("passed")
except OSError as error:
    print(errno.errorcode[error.errno])
"""


class Exhaustion(SbxTest):
    def test_descriptors_in_flight_leave_room_for_other_runs(self):
        hostile = self.start_sbx("--lang", "python", "-c", FLIGHT, json_record=False, stdin=subprocess.PIPE, preexec_fn=usual_files)
        count, error = hostile.stdout.readline().split()
        self.assertEqual(error, b"ETOOMANYREFS")
        self.assertGreater(int(count), 1024)
        # Root's sandboxes have a user of their own, and root is exempt.
        outside = subprocess.run(["python3", "-c", PASS_ONE], capture_output=True, text=True, check=True, preexec_fn=usual_files).stdout
        self.assertEqual(outside.strip(), "passed" if IS_ROOT else "ETOOMANYREFS")
        self.exited(self.sbx("--", "true", preexec_fn=usual_files))
        self.assertEqual(self.exited(self.python("print(7)", preexec_fn=usual_files)).text, "7\n")
        if not IS_ROOT:
            ended = self.sbx("--", "true", preexec_fn=few_files)
            self.assertEqual((ended.status, ended.record["errors"][0]["code"]), (125, "descriptors-in-flight"), ended)
        self.finish(hostile, data=b"", json_record=False)
        self.exited(self.sbx("--", "true", preexec_fn=few_files))

    def test_the_program_gets_fewer_descriptors_than_sbx(self):
        ended = self.exited(self.python("import resource; print(*resource.getrlimit(resource.RLIMIT_NOFILE))", preexec_fn=few_files))
        self.assertEqual(ended.text, "512 512\n")
        self.assertIn("limits.open_files", [each["what"] for each in ended.record["degraded"]])
        ended = self.exited(self.python("import resource; print(*resource.getrlimit(resource.RLIMIT_NOFILE))"))
        self.assertEqual(ended.text, "1024 1024\n")


if __name__ == "__main__":
    sbxtest.main()

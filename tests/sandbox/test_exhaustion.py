"""What the kernel counts for a user, and for an ordinary user the sandbox is the caller: a program takes its part of it, not all."""

import resource
import subprocess

import sbxtest
from flight import FLIGHT, few_files, usual_files
from sbxtest import IS_ROOT, SbxTest

COUNT = """
import ctypes, errno, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
def until_refused(make, most):
    kept = []
    for _ in range(most):
        try:
            made = make()
        except OSError as error:
            return len(kept), errno.errorcode[error.errno]
        if isinstance(made, int) and made < 0:
            return len(kept), errno.errorcode[ctypes.get_errno()]
        kept.append(made)
    return len(kept), None
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
MAKERS = {
    "signals": lambda: libc.sigqueue(os.getpid(), int(signal.SIGRTMIN), ctypes.c_void_p(0)),
    "inotify": lambda: libc.inotify_init1(0),
    "terminals": os.openpty,
}
print(*until_refused(MAKERS[sys.argv[1]], int(sys.argv[2])))
"""

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
    def most(self, what, most, inside=True):
        """How many of them a program gets, of `most` that it asks for, and the error that ended it."""
        if inside:
            words = self.exited(self.python(COUNT, what, most)).text.split()
        else:
            words = subprocess.run(["python3", "-c", COUNT, what, str(most)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                   check=True).stdout.split()
        return int(words[0]), words[1]

    def test_queued_signals(self):
        asked = 1024 + 4 * 128 + 1000
        if resource.getrlimit(resource.RLIMIT_SIGPENDING)[0] < asked:
            self.skipTest("the caller has fewer than the program asks for")
        self.assertEqual(self.most("signals", asked), (1024 + 4 * 128, "EAGAIN"))
        self.assertEqual(self.most("signals", asked, inside=False), (asked, "None"))

    def test_inotify(self):
        self.assertEqual(self.most("inotify", 100), (64, "EMFILE"))
        self.assertGreater(self.most("inotify", 100, inside=False)[0], 64)
        shown = self.exited(self.python("""
            print(open("/proc/sys/user/max_inotify_watches").read().strip())
            try:
                open("/proc/sys/user/max_inotify_watches", "w").write("1000000")
            except OSError as error:
                print(type(error).__name__)
            """.replace("\n            ", "\n"))).text.split()
        self.assertEqual(shown[0], "32768")
        self.assertIn(shown[1], ("PermissionError", "OSError"))

    def test_terminals(self):
        count, error = self.most("terminals", 80)
        self.assertEqual((count, error), (64, "ENOSPC"))
        self.assertEqual(self.most("terminals", 80, inside=False), (80, "None"))

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
            self.assertEqual((ended.status, ended.outcome["code"]), (125, "descriptors-in-flight"), ended)
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

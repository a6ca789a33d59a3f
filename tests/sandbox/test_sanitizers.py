"""Programs that a compiler's sanitizers watch: they reserve terabytes of address space, and the leak checker traces."""

import shutil
import subprocess

import sbxtest
from sbxtest import SbxTest

CLEAN = "#include <stdlib.h>\nint main(void) { volatile char *p = malloc(10); p[0] = 1; free((void *)p); return 0; }\n"
# Many: a register or the stack may still hold the last one, which the leak checker then takes for used.
LEAKS = "#include <stdlib.h>\nvoid *volatile p;\nint main(void) { for (int i = 0; i < 100; ++i) p = malloc(10); p = 0; return 0; }\n"
TRACING = ("ci-untrusted", "offline-build", "agent")
SANITIZERS = (("gcc", "address"), ("gcc", "leak"), ("gcc", "thread"), ("gcc", "undefined"), ("clang-19", "memory"))

TRACE = f"PIDFD_GETFD = {sbxtest.SYSCALLS['pidfd_getfd']}" + """
import ctypes, errno, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
ATTACH, DETACH = 16, 17
def ask(call, *arguments):
    return "works" if call(*arguments) >= 0 else errno.errorcode[ctypes.get_errno()]
"""


class Sanitizers(SbxTest):
    def built(self, compiler, sanitizer, text=CLEAN):
        if shutil.which(compiler) is None:
            self.skipTest(f"{compiler} is not installed")
        source = self.write("program.c", text)
        made = subprocess.run([compiler, f"-fsanitize={sanitizer}", "-o", self.work / "program", source], capture_output=True)
        if made.returncode != 0:
            self.skipTest(f"{compiler} has no {sanitizer} sanitizer here")
        return subprocess.run([self.work / "program"], capture_output=True).returncode

    def test_a_clean_program_ends_as_outside(self):
        for compiler, sanitizer in SANITIZERS:
            with self.subTest(sanitizer):
                self.assertEqual(self.built(compiler, sanitizer), 0)
                for policy in TRACING:
                    ended = self.sbx("-p", policy, "--workspace", ".:read-only", "--", "./program")
                    self.assertEqual(self.exited(ended).denied, {}, f"{policy} {ended}")

    def test_a_leak_is_found_and_elsewhere_the_refused_trace_is_named(self):
        outside = self.built("gcc", "address", LEAKS)
        self.assertNotEqual(outside, 0)
        self.exited(self.sbx("-p", "ci-untrusted", "--workspace", ".:read-only", "--", "./program"), outside)
        ended = self.sbx("--workspace", ".:read-only", "--", "./program")
        self.assertIn("ptrace", ended.denied, ended)
        denial = next(each for each in ended.record["denials"] if each["what"] == "ptrace")
        self.assertIn("syscalls.allow", denial["allow_with"])

    def test_trace_reaches_the_programs_own_processes_only(self):
        code = TRACE + """
child = os.fork()
if child == 0:
    signal.pause()
traced = ask(libc.ptrace, ATTACH, child, 0, 0)
print(traced)
if traced == "works":
    os.waitpid(child, 0)
print(ask(libc.ptrace, ATTACH, 1, 0, 0))
vector = (ctypes.c_void_p * 2)()
print(ask(libc.process_vm_readv, child, vector, 0, vector, 0, 0))
print(ask(libc.syscall, PIDFD_GETFD, os.pidfd_open(child), 0, 0))
os.kill(child, signal.SIGKILL)
"""
        for policy, traced in (("agent", "works"), ("default", "EPERM")):
            ended = self.exited(self.sbx("-p", policy, "--workspace", ".:empty", "--lang", "python", "-c", code))
            first, init, reads, takes = ended.text.split()
            self.assertEqual(first, traced, ended)
            self.assertIn(init, ("EPERM", "ESRCH"), ended)
            self.assertEqual((reads, takes), ("EPERM", "EPERM"), ended)
            self.assertTrue({"process_vm_readv", "pidfd_getfd"} <= set(ended.denied), ended)

    def test_a_program_that_asks_its_init_to_trace_it_ends_as_it_would(self):
        """PID 1 would be the tracer, and sees each signal of the program as a stop."""
        code = TRACE + "print(libc.ptrace(0, 0, 0, 0), flush=True)\nos.kill(os.getpid(), signal.SIGUSR1)\nprint('after')\nsys.exit(3)"
        code = code.replace("print(libc", "signal.signal(signal.SIGUSR1, lambda *_: print('handled', flush=True))\nprint(libc")
        ended = self.exited(self.sbx("-p", "agent", "--workspace", ".:empty", "--lang", "python", "-c", code), 3)
        self.assertEqual(ended.text, "0\nhandled\nafter\n", ended)
        code = TRACE + "libc.ptrace(0, 0, 0, 0)\nos.execv('/bin/sh', ['sh', '-c', 'kill -TERM $$'])"
        ended = self.sbx("-p", "agent", "--workspace", ".:empty", "--lang", "python", "-c", code)
        self.assertEqual((ended.verdict[0], ended.outcome["signal"]["name"] if isinstance(ended.outcome["signal"], dict) else "SIGTERM"),
                         ("signaled", "SIGTERM"), ended)


if __name__ == "__main__":
    sbxtest.main()

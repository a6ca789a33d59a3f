"""-i: an interactive program in the sandbox's own terminal: line editing, Ctrl-C, Ctrl-D, window size."""

import os
import shutil
import time

import sbxtest
from sbxtest import SbxTest
from terminaltest import BACKSPACE, CTRL_A, CTRL_C, CTRL_D, CTRL_Z, LEFT, UP, Person


class Interactive(SbxTest):
    def session(self, *command):
        if shutil.which(command[0], path=self.environment()["PATH"]) is None:
            self.skipTest(f"{command[0]} is not installed")
        return Person(self, self.command("-q", "-i", "--", *command, json_record=False))

    def test_an_interrupted_program_gets_no_hint_about_files(self):
        self.write("file", "")
        hint = "exists here but not in the sandbox"
        for code, keys, status in (("echo ready; exec sleep 60 || cat file", CTRL_C, 130), ("echo ready; read answer; cat file", "\r", 1)):
            session = Person(self, self.command("-i", "--", "sh", "-c", code, json_record=False))
            session.expect("ready")
            session.type(keys)
            self.assertEqual(session.end(), status, session.text)
            self.assertEqual(hint in session.text, status == 1, session.text)

    def test_python(self):
        session = self.session("python3", "-q")
        session.expect(">>> ")
        session.line("1300 + 35" + LEFT + BACKSPACE + "4")
        session.expect("1345")  # 1300 + 45
        session.expect(">>> ")
        session.type(UP)
        session.expect(r"1300 \+ 45")
        session.line("0")
        session.expect("1750")
        session.line("import os, time; tuple(os.get_terminal_size())")
        session.expect(r"\(80, 24\)")
        session.resize_at_prompt(">>> ", 101, 33)
        session.line("tuple(os.get_terminal_size())")
        session.expect(r"\(101, 33\)")
        session.line("print('wait' + 'ing') or [time.sleep(0.01) for _ in iter(int, 1)]")
        session.expect("[\r\n]waiting")
        session.type(CTRL_C)
        session.expect("KeyboardInterrupt")
        session.expect(">>> ")
        session.line("input('name' + ': ')")
        session.expect("name: $")
        session.line("grün")
        session.expect("'grün'")
        session.expect(">>> ")
        session.type(CTRL_D)
        self.assertEqual(session.end(), 0)

    def test_node(self):
        session = self.session("node")
        session.expect("> ")
        session.type("1300 + 35")
        session.expect(r"1300 \+ 35")
        session.type(LEFT + BACKSPACE)
        session.expect(r"1300 \+ 5")
        session.type("4")
        session.expect(r"1300 \+ 45")
        session.line("")
        session.expect("\n.*1345")
        session.expect("> ")
        session.line("process.stdout.columns + 'x' + process.stdout.rows")
        session.expect("80x24")
        session.resize_at_prompt("> ", 101, 33)
        session.expect("> ")  # redrawn
        session.line("process.stdout.columns + 'x' + process.stdout.rows")
        session.expect("101x33")
        # Not a busy loop: node itself loses a Ctrl-C that arrives when a line starts to run (one in ten, also without
        # sbx).
        session.line("setTimeout(() => console.log('wait' + 'ing'), 1); await new Promise(() => {})")
        session.expect("[\r\n]waiting")
        session.type(CTRL_C)
        session.expect("interrupted")
        session.expect("> ")
        session.type(CTRL_D)
        self.assertEqual(session.end(), 0)

    def test_bash(self):
        session = self.session("bash", "--norc", "-i")
        session.expect(r"\$ ")
        session.line("eho $((6 * 7))x" + CTRL_A + "\x1b[Cc")  # Ctrl-A, right, c: echo
        session.expect("[\r\n]42x")
        session.line("stty size; echo $TERM $-; tty")
        session.expect("[\r\n]24 80\r\nxterm .*i.*m.*\r\n/dev/pts/0")
        session.resize_at_prompt(r"\$ ", 101, 33)
        session.line("stty size")
        session.expect("[\r\n]33 101")
        session.line("sh -c 'echo wait\"ing\"; read x'")
        session.expect("[\r\n]waiting")
        session.type(CTRL_C)
        session.expect(r"\$ ")
        session.line("echo status $?")
        session.expect("[\r\n]status 130")
        session.line("sh -c 'echo wait\"ing\"; read x'")
        session.expect("[\r\n]waiting")
        session.type(CTRL_Z)
        session.expect("Stopped")
        session.line("kill -9 %1; fg; jobs; echo none 'left'")  # `wait` does not wait for a job that has stopped
        session.expect("[\r\n]none left")
        session.expect(r"\$ ")
        session.line("echo wait'ing'; cat | tr a-z A-Z")
        session.expect("[\r\n]waiting")  # the shell gets what is typed before
        session.line("shout")
        session.type(CTRL_D)
        session.expect("[\r\n]SHOUT")
        session.expect(r"\$ ")
        session.line("exit 3")
        self.assertEqual(session.end(), 3)

    def test_end_of_input_ends_a_shell(self):
        session = self.session("bash", "--norc", "-i")
        session.expect(r"\$ ")
        session.type(CTRL_D)
        self.assertEqual(session.end(), 0)

    def test_script_with_a_terminal_reads_what_is_typed(self):
        self.write("job.py", "print('Hello, ' + input('who? '))\n")
        session = Person(self, self.command("-q", "-i", "-p", "python", "job.py", json_record=False))
        session.expect(r"who\? $")
        session.line("Ada")
        session.expect("\nHello, Ada")
        self.assertEqual(session.end(), 0)

    def test_a_program_that_would_come_from_a_terminal_is_refused(self):
        session = Person(self, self.command("--lang", "python", "-", json_record=False))
        session.expect("standard input, which is a terminal")
        session.expect("-c CODE, a file, or a pipe")
        self.assertEqual(session.end(), 125)


if __name__ == "__main__":
    sbxtest.main()

"""`sbx session eval -i`: a prompt for the cells of a context, driven through a terminal and through pipes."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess

import sessiontest
import sbxtest
import terminaltest
from sbxtest import SBX
from sessiontest import SessionTest, wait_until
from terminaltest import BACKSPACE, CTRL_C, CTRL_D, CTRL_R, CTRL_Z, LEFT, TAB, UP

PROMPT = r"In \[(\d+)\]: "
PLAIN = ("--set", 'environment.set={SBX_CELL_SHELL="plain"}')  # Python without IPython's shell
# What libedit and sbx write to place the cursor, to switch bracketed paste on and off, and to begin a line.
PLACING = re.compile(r"\x1b\[[0-9;?]*[A-Za-ln-z]|\x1b\[0m {20,}\r")


class Person(terminaltest.Person):
    @property
    def text(self):
        """What was shown, without the sequences that place the cursor."""
        return PLACING.sub("", super().text).replace("\r", "")

    def expect(self, pattern):
        """Returns what is between the previous match and this one."""
        seen = self.seen
        found = super().expect(pattern)
        return found.string[seen:found.start()]

    def answer(self, keys):
        """Types a line and returns what is shown until the next prompt."""
        self.type(keys + "\r")
        return self.expect(PROMPT)

    def leave(self):
        self.type(CTRL_D)
        status = self.end()
        self.test.assertEqual(status, 0, self.raw)


class ReplTest(SessionTest):
    def person(self, *options, name="work", **environment):
        person = Person(self, [SBX, "session", "eval", name, "-i", *options], **environment)
        person.expect(PROMPT)
        return person

    def repl(self, text, *options, name="work", **rest):
        """Cells through pipes."""
        return self.sbx_session("eval", name, "-i", *options, stdin=text.encode(), **rest)

    def needs(self, program):
        if shutil.which(program, path="/usr/local/bin:/usr/bin:/bin") is None:
            self.skipTest(f"{program} is not installed")

    def history(self, language="python"):
        return self.home / ".local/state/sbx/history" / language


class Prompt(ReplTest):
    def test_a_picture_is_saved_and_named(self):
        self.start_session()
        cell = "type('P', (), {'_repr_png_': lambda self: b'\\x89PNG', '__repr__': lambda self: 'a picture'})()"
        person = self.person()
        self.assertRegex(person.answer(cell), "a picture\nsbx: image/png is in sbx-pictures/python-1-1.png\n")
        person.leave()
        self.assertEqual((self.work / "sbx-pictures/python-1-1.png").read_bytes(), b"\x89PNG")

    def test_twin_without_a_terminal_no_file_is_made_unasked(self):
        self.start_session()
        cell = "type('P', (), {'_repr_png_': lambda self: b'\\x89PNG', '__repr__': lambda self: 'a picture'})()"
        answer = self.sbx_session("eval", "work", "-c", cell)
        self.assertIn("--results DIR saves it", answer.err)
        self.assertEqual(list(self.work.iterdir()), [])

    def test_a_lost_interpreter_is_followed_by_number_one(self):
        self.start_session()
        person = self.person()
        person.answer("1")
        person.answer("import os; os._exit(3)")
        self.assertIn("In [1]: ", person.raw.decode(errors="replace").rpartition("lost")[2])
        person.leave()

    def test_the_first_line_says_what_it_is_and_how_to_leave(self):
        self.start_session(*PLAIN)
        person = self.person()
        self.assertRegex(person.text, r'^sbx: python in the session "work"; Ctrl-D leaves, and the session lives on\n')
        person.leave()
        self.assertNotIn("Ctrl-D", self.person("-q").text)
        self.assertIn('"work", context "second"; Ctrl-D', self.person("--context", "second").text)
        self.assertNotIn("Ctrl-D", self.repl("1\n").err)

    def test_cells_follow_each_other_in_python(self):
        self.start_session(*PLAIN)
        person = self.person()
        self.assertEqual(person.answer("x = 40"), "x = 40\n")
        self.assertEqual(person.answer("x + 2"), "x + 2\n42\n")
        failed = person.answer("1 / 0")
        self.assertIn("\x1b[1;31mZeroDivisionError: division by zero\x1b[0m\n", failed)
        self.assertRegex(failed, r'  File \x1b\[1;34m"[^"\n]*", line 1, in <module>\x1b\[0m\n    1 / 0\n')
        self.assertEqual(person.answer("None"), "None\n")
        person.leave()
        self.assertIn("In [5]: ", person.text)
        # Context and session live on.
        self.assertEqual(self.sbx_session("eval", "work", "-c", "x").out, "40\n")
        self.assertIn("In [6]", self.person().text)

    def test_a_block_is_typed_line_by_line(self):
        self.start_session(*PLAIN)
        person = self.person()
        person.type("def double(x):\r")
        person.expect(r"\.\.\.: ")
        person.type("return 2 * x\r")  # the indent is there already
        person.expect(r"\.\.\.: ")
        person.type("\r")
        person.expect(PROMPT)
        self.assertEqual(person.answer("double(21)"), "double(21)\n42\n")
        person.type("[1,\r")
        person.expect(r"\.\.\.: ")
        self.assertIn("[1, 2]\n", person.answer("2]"))
        self.assertIn("SyntaxError", person.answer("1 2"))
        person.leave()

    def test_ipython_is_asked_where_it_is(self):
        if not os.path.isdir("/usr/lib/python3/dist-packages/IPython"):
            self.skipTest("python3-ipython is not installed")
        self.start_session()
        self.assertEqual(self.sbx_session("eval", "work", "-c", "get_ipython() is not None").out, "True\n")
        person = self.person()
        person.type("for i in range(2):\r")
        person.expect(r"\.\.\.: ")
        person.type("print('turn', i)\r")
        person.expect(r"\.\.\.: ")
        self.assertIn("turn 0\nturn 1\n", person.answer(""))
        person.answer("remembered = 'made by a cell'")
        self.assertIn("'made by a cell'", person.answer("remem" + TAB))
        self.assertIn("%timeit", person.answer("%timei" + TAB + " -n1 -r1 pass"))
        person.leave()

    def test_javascript(self):
        self.needs("node")
        self.start_session()
        person = self.person("--lang", "javascript")
        person.type("function twice(x) {\r")
        person.expect(r"\.\.\.: ")
        person.type("return 2 * x\r")
        person.expect(r"\.\.\.: ")
        person.answer(BACKSPACE * 2 + "}")
        self.assertIn("42\n", person.answer("twi" + TAB + "(21)"))
        person.answer("const remembered = {alpha: 1, beta: 'two'}")
        self.assertIn("'two'", person.answer("remem" + TAB + ".bet" + TAB))
        self.assertIn("3\n", person.answer("await Promise.resolve(3)"))
        person.type("console.log('looping'); for (;;);\r")
        person.expect(r"\nlooping\n")
        person.type(CTRL_C)
        person.expect(PROMPT)
        self.assertIn("'two'", person.answer("remembered.beta"))
        person.leave()

    def test_r(self):
        self.needs("Rscript")
        self.start_session()
        person = self.person("--lang", "r")
        person.type("twice <- function(number) {\r")
        person.expect(r"\.\.\.: ")
        person.type("2 * number\r")
        person.expect(r"\.\.\.: ")
        person.answer("}")
        self.assertIn("[1] 42\n", person.answer("twi" + TAB + "(numb" + TAB + "21)"))
        person.answer("remembered <- data.frame(alpha = 7)")
        self.assertIn("[1] 7\n", person.answer("remem" + TAB + "$al" + TAB))
        person.type("cat('looping\\n'); repeat {}\r")
        person.expect(r"\nlooping\n")
        person.type(CTRL_C)
        person.expect(PROMPT)
        self.assertIn("[1] 7\n", person.answer("remembered$alpha"))
        person.leave()

    def test_ctrl_c_clears_the_line_or_interrupts_the_cell(self):
        self.start_session(*PLAIN)
        person = self.person()
        person.answer("kept = 'still here'")
        person.type("raise SystemExit" + CTRL_C)
        person.expect(PROMPT)
        person.type("def never():\r")
        person.expect(r"\.\.\.: ")
        person.type(CTRL_C)
        person.expect(PROMPT)
        person.type("print('looping'); [None for _ in iter(int, 1)]\r")
        person.expect(r"\nlooping\n")
        person.type(CTRL_C)
        shown = person.expect(PROMPT)
        self.assertIn("KeyboardInterrupt", shown)
        self.assertNotIn("sbx:", shown)
        self.assertIn("'still here'", person.answer("kept"))
        person.leave()

    def test_keys_typed_while_a_cell_runs_stay_what_they_are(self):
        self.start_session(*PLAIN)
        person = self.person()
        # The cell goes on when another call says so: by then the terminal has taken the keys.
        waits = "import os; os.mkfifo('gate'); print('begun'); open('gate').read(); os.unlink('gate')\r"
        for keys, shown, answer in (("6*7" + CTRL_D + "\r", r"6\*7\n", "42"), (CTRL_D * 2 + "'é中'\r", "'é中'\n", "'é中'"), ("1\r" + CTRL_D + "6*8\r", r"1\n6\*8\n", "48")):
            person.type(waits)
            person.expect(r"\nbegun\n")
            person.type(keys)
            person.expect(shown)  # the terminal's echo
            self.exec_ok("sh", "-c", "echo > gate")
            person.expect(PROMPT)
            person.expect(rf"\n{answer}\n")
            person.expect(PROMPT)
            self.assertEqual(person.answer("5"), "5\n5\n")
        self.assertNotIn("SyntaxError", person.text)
        person.leave()  # Ctrl-D at the prompt still ends it

    def test_ctrl_space_takes_no_key_with_it(self):
        self.start_session(*PLAIN)
        person = self.person()
        person.type("6*\x007\r")
        person.expect(r"\n42\n")
        person.expect(PROMPT)
        person.type("\x00" + CTRL_D)
        self.assertEqual(person.end(), 0)

    def test_tab_completes_what_a_former_cell_made(self):
        self.start_session(*PLAIN)
        person = self.person()
        person.answer("remembered = 'made by a cell'")
        self.assertIn("'made by a cell'", person.answer("remem" + TAB))
        self.assertIn("'MADE BY A CELL'", person.answer("remembered.upp" + TAB + "()"))
        person.type("remembered.is" + TAB)
        shown = person.expect(PROMPT)  # again, below the names
        self.assertIn("isalpha", shown)
        self.assertNotIn("remembered.isalpha", shown)
        person.type("upper()\r")
        person.expect("'MADE|True|False|Attribute")
        person.expect(PROMPT)
        self.assertIn("    7", person.answer(TAB + "7") + person.answer("7"))  # at the beginning of a line it indents
        person.leave()

    def test_history_lasts_and_holds_whole_cells(self):
        self.start_session(*PLAIN)
        first = self.person()
        first.answer("x = 'first'")
        first.type("if x:\r")
        first.expect(r"\.\.\.: ")
        first.type("print('in a', 'block')\r")
        first.expect(r"\.\.\.: ")
        self.assertIn("in a block\n", first.answer(""))
        first.leave()
        self.assertEqual([json.loads(line) for line in self.history().read_text().splitlines()], ["x = 'first'", "if x:\n    print('in a', 'block')"])
        self.assertEqual((stat.S_IMODE(self.history().stat().st_mode), stat.S_IMODE(self.history().parent.stat().st_mode)), (0o600, 0o700))
        second = self.person()
        second.type(UP + "\r")
        second.expect(r"\.\.\.: ")  # another line could follow
        self.assertIn("in a block\n", second.answer(""))
        second.type(CTRL_R + "first")
        second.expect("first")
        second.type("\x1b[F = 'found'\r")  # End, which ends the search too
        second.expect(PROMPT)
        second.leave()
        self.assertFalse(self.history("javascript").exists())

    def test_history_is_bounded(self):
        self.start_session(*PLAIN)
        self.person().leave()
        with open(self.history(), "w") as file:
            for number in range(12_000):
                file.write(json.dumps(f"cell_{number}") + "\n")
            file.write("no text of JSON\n7\n")
        person = self.person()
        person.answer("'the last'")
        person.leave()
        lines = self.history().read_text().splitlines()
        self.assertEqual((len(lines), lines[0], lines[-1]), (10_001, '"cell_2000"', '"\'the last\'"'))

    def test_without_a_place_there_is_no_history(self):
        self.start_session(*PLAIN)
        state = self.home / ".local/state/sbx"
        state.mkdir(parents=True, exist_ok=True)
        (state / "history").write_text("no directory")
        person = self.person()
        self.assertIn("there is no history", person.text)
        self.assertIn("2\n", person.answer("1 + 1"))
        person.type(UP + "\r")  # of this prompt
        person.expect(r"1 \+ 1\n2\n")
        person.expect(PROMPT)
        person.leave()
        quiet = Person(self, [SBX, "session", "eval", "work", "-i", "-q"])
        quiet.expect(PROMPT)
        self.assertNotIn("history", quiet.text)
        quiet.leave()

    def test_characters_of_any_width_are_edited(self):
        self.start_session(*PLAIN)
        for environment in ({"LANG": "C.UTF-8"}, {"LANG": "C"}, {"LANG": "no_SUCH.UTF-8"}):
            person = self.person(**environment)
            self.assertIn("'éz' 'e9' 2", person.answer("s = 'é中z'" + LEFT * 2 + BACKSPACE + "\x1b[F; print(repr(s), hex(ord(s[0]))[2:].join(\"''\"), len(s))"))
            self.assertIn("3\n", person.answer("len('中文字')"))
            self.assertIn("'😀'", person.answer("'\\U0001F600'"))
            person.leave()

    def test_a_machine_without_locales_keeps_characters(self):
        if not sbxtest.IS_ROOT:
            self.skipTest("only root hides the machine's locales")
        self.start_session(*PLAIN)
        hidden = f"mount -t tmpfs none /usr/lib/locale && exec {SBX} session eval work -i"
        person = Person(self, ["/usr/bin/unshare", "--mount", "sh", "-c", hidden])
        person.expect(PROMPT)
        person.answer("s = 'é中z'" + LEFT * 2 + BACKSPACE)
        self.assertIn("['0xe9', '0x7a']", person.answer("list(map(hex, map(ord, s)))"))
        person.leave()

    def test_a_paste_is_one_cell(self):
        self.start_session(*PLAIN)
        person = self.person()
        person.type("\x1b[200~def pasted():\r\tone = 1\r\r\treturn one\r\x1b[201~")
        person.type("\r")
        person.expect(r"\.\.\.: ")
        person.answer("")
        self.assertIn("1\n", person.answer("pasted()"))
        person.leave()

    def test_the_prompt_begins_a_line(self):
        self.start_session(*PLAIN)
        person = self.person()
        person.answer("print('no line feed', end='')")
        # As many blanks as the terminal is wide, then back: only after text they reach the next line.
        self.assertIn(b"no line feed\x1b[0m" + b" " * 80 + b"\r\x1b[K", person.raw)
        person.leave()

    def test_a_prompt_on_a_simple_terminal(self):
        self.start_session(*PLAIN)
        person = self.person(terminal="dumb")
        self.assertIn("42\n", person.answer("6 * 7"))
        self.assertNotIn(b"\x1b", person.raw)
        person.leave()

    def test_it_stops_and_goes_on(self):
        self.start_session(*PLAIN)
        person = self.person()
        person.type("12")
        person.expect("12")
        person.type(CTRL_Z)
        wait_until(lambda: self.state_of(person.pid) == "T", "it is stopped")
        os.kill(person.pid, signal.SIGCONT)
        person.expect(PROMPT + "12")  # is shown again
        self.assertEqual(person.answer("3"), "3\n123\n")
        person.leave()

    def state_of(self, pid):
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]

    def test_signals_end_it(self):
        self.start_session(*PLAIN)
        person = self.person()
        os.kill(person.pid, signal.SIGTERM)
        self.assertEqual(person.end(), 128 + signal.SIGTERM)
        person = self.person()
        person.type("print('begun'); [None for _ in iter(int, 1)]\r")
        person.expect(r"\nbegun\n")
        os.kill(person.pid, signal.SIGTERM)
        self.assertEqual(person.end(), 128 + signal.SIGTERM)

    def test_a_terminal_that_goes_away_ends_it(self):
        self.start_session(*PLAIN)
        person = self.person()
        person.close()
        _, status = os.waitpid(person.pid, 0)
        self.assertIn(os.waitstatus_to_exitcode(status), (0, 128 + signal.SIGHUP))

    def test_results_are_saved_and_a_file_comes_first(self):
        self.start_session(*PLAIN)
        cell = self.write("first.py", "class Page:\n    def _repr_html_(self): return '<b>bold</b>'\n    def __repr__(self): return 'a page'\n")
        person = self.person(cell, "--results", self.work / "results")
        shown = person.answer("Page()")
        self.assertIn("a page\n", shown)
        self.assertIn("text/html is in", shown)
        person.leave()
        self.assertEqual([path.read_text() for path in (self.work / "results").iterdir()], ["<b>bold</b>"])


class Ends(ReplTest):
    def test_a_context_that_dies_is_told_once(self):
        self.start_session(*PLAIN)
        person = self.person()
        person.answer("x = 1")
        shown = person.answer("import os; os._exit(3)")
        self.assertEqual(shown.count("lost"), 1, shown)
        shown = person.answer("'x' in globals()")
        self.assertIn("False\n", shown)
        self.assertNotIn("lost", shown)
        person.answer("y = 2")
        self.sbx_session("eval", "work", "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
        shown = person.answer("'y' in globals()")
        self.assertIn("False\n", shown)
        self.assertEqual(shown.count("lost"), 1, shown)
        self.assertNotIn("lost", person.answer("1"))
        person.leave()

    def test_the_words_of_each_language_leave_the_prompt(self):
        self.start_session(*PLAIN)
        for language, program, keeps, asks, words in (("python", "python3", "kept = 6 * 7", "kept", ("exit", "exit()", "quit", "quit()")),
                                                      ("javascript", "node", "var kept = 6 * 7", "kept", (".exit", "exit", "quit()")),
                                                      ("r", "Rscript", "kept <- 6 * 7", "kept", ("q()", "quit()", "exit")),
                                                      ("bash", "bash", "kept=$((6 * 7))", "echo $kept", ("exit",))):
            if shutil.which(program, path="/usr/local/bin:/usr/bin:/bin") is None:
                continue
            for word in words:
                person = self.person("--lang", language)
                person.answer(keeps)
                person.type(word + " \r")
                self.assertEqual(person.end(), 0, (language, word, person.text))
                answer = self.sbx_session("eval", "work", "--lang", language, "-c", asks)
                self.assertIn("42", answer.out, (language, word))
                self.assertNotIn("lost", answer.err)
        self.assertNotIn("exit", self.history().read_text())

    def test_words_that_only_look_like_leaving_do_not_leave(self):
        self.start_session(*PLAIN)
        person = self.person()
        self.assertIn("SyntaxError", person.answer(".exit"))
        self.assertIn("NameError", person.answer("q()"))
        person.answer("import sys; sys.exit(3)")
        person.type("[\r")
        person.expect(r"\.\.\.: ")
        person.type("exit\r")
        person.expect(r"\.\.\.: ")
        self.assertIn("[", person.answer("]"))
        person.leave()
        person = self.person("--lang", "bash")
        self.assertIn("quit: command not found", person.answer("quit"))
        person.type("exit()\r")
        person.expect(r"\.\.\.: ")
        person.answer("{ echo mine; }")
        person.leave()

    def test_a_session_that_ends_ends_the_prompt(self):
        self.start_session(*PLAIN)
        person = self.person()
        self.stop_session()
        person.type("1\r")
        self.assertEqual(person.end(), 125)
        self.assertIn('the session "work" has ended', person.text)
        self.start_session(*PLAIN)
        person = self.person()
        person.type("print('begun'); import time; time.sleep(60)\r")
        person.expect(r"\nbegun\n")
        self.stop_session()
        person.expect(PROMPT + "|ended|gone")
        person.type("1\r")
        self.assertEqual(person.end(), 125)

    def test_what_can_not_begin_says_why(self):
        self.start_session(*PLAIN)
        for words, code in ((("absent", "-i"), "no-such-session"), (("work", "-i", "--lang", "lua"), "no-context-language"),
                            (("work", "-i", "--context", "Not/A/Name"), "bad-context-name"), (("work", "-i", "--json"), "usage"),
                            (("work", "-i", "--stream"), "usage"), (("work", "-i", "-"), "usage"), (("work", "-i", "a", "b"), "usage")):
            answer = self.sbx_session("eval", *words, stdin=b"1\n")
            self.assertEqual(answer.status, 125, answer)
            self.assertIn(f"[{code}]", answer.err)

    def test_without_a_cell_a_terminal_is_told_the_prompt(self):
        self.start_session()
        status, shown = self.on_terminal([SBX, "session", "eval", "work"])
        self.assertEqual(status, 125, shown)
        self.assertRegex(shown, r"there is no cell to run.*\s+.*help:.* -i for a prompt")
        self.person().leave()

    def test_a_first_cell_that_can_not_run_ends_it(self):
        self.start_session(*PLAIN)
        (self.work / "bad.py").write_bytes(b"\xff")
        for file, code in (("absent.py", "cannot-open"), (".", "not-a-file"), ("bad.py", "bad-code")):
            answer = self.repl("'the next one'\n", file)
            self.assertEqual((answer.status, answer.out), (125, ""), answer)
            self.assertEqual(answer.err.count(f"[{code}]"), 1, answer)
        person = Person(self, [SBX, "session", "eval", "work", "-i", "absent.py"])
        self.assertEqual(person.end(), 125)
        self.assertIn("absent.py", person.text)
        # The twin: one that ran and failed is followed by the others.
        answer = self.repl("'the next one'\n", self.write("fails.py", "1 / 0"))
        self.assertEqual((answer.status, answer.out), (0, "'the next one'\n"), answer)
        self.assertIn("ZeroDivisionError", answer.err)

    def test_a_missing_interpreter_is_told_before_the_first_cell(self):
        self.start_session(*PLAIN, env={"PATH": str(self.tmp)})
        answer = self.repl("1 + 1\n", "--lang", "r")
        self.assertEqual((answer.status, answer.out), (127, ""), answer)
        self.assertEqual(answer.err.count("[no-interpreter]"), 1, answer)

    def test_another_clients_cell_goes_first(self):
        self.start_session(*PLAIN)
        person = self.person()
        other = sbxtest.start([SBX, "session", "eval", "work", "-c", "import time\nwhile not globals().get('free'): time.sleep(60)"], env=self.environment(),
                              cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: "running" in self.sbx_session("contexts", "work").out, "the other cell runs")
        person.type("prin" + TAB)  # nobody can be asked
        person.type("t('my turn')\r")
        wait_until(lambda: re.search(r"running +\d+ +1 ", self.sbx_session("contexts", "work").out), "the cell waits")
        other.send_signal(signal.SIGINT)
        other.wait()
        self.assertIn("\nmy turn\n", person.expect(PROMPT))
        person.leave()


class Pipes(ReplTest):
    def test_cells_come_through_a_pipe(self):
        self.start_session(*PLAIN)
        answer = self.repl("1+1\ndef f(x):\n    return x * 2\n\nf(21)\nfor i in range(2):\n  print(i)\n'after a block'\n1/0\n'the end'")
        self.assertEqual((answer.status, answer.out), (0, "2\n42\n0\n1\n'after a block'\n'the end'\n"), answer)
        self.assertIn("ZeroDivisionError", answer.err)
        self.assertFalse(self.history().exists())
        self.assertEqual(self.repl("").out, "")
        self.assertEqual(self.sbx_session("eval", "work", "--interactive", stdin=b"'the long name'").out, "'the long name'\n")
        self.assertEqual(self.repl("if True:\n  print('cut off')").out, "cut off\n")
        self.assertEqual(self.repl("", "-c", "'a first cell'").out, "'a first cell'\n")

    def test_exit_ends_what_comes_through_a_pipe(self):
        self.start_session(*PLAIN)
        answer = self.repl("'before'\nexit()\n'after'\n")
        self.assertEqual((answer.status, answer.out), (0, "'before'\n"), answer)

    def test_other_languages_come_through_a_pipe(self):
        self.start_session()
        if shutil.which("node", path="/usr/local/bin:/usr/bin:/bin"):
            answer = self.repl("const x = [1,\n2]\nfunction f() {\n  return x.length\n}\nf()\nx.map(\n  (y) => y + 1\n)[1]\n", "--lang", "javascript")
            self.assertEqual((answer.status, answer.out), (0, "2\n3\n"), answer)
        if shutil.which("Rscript", path="/usr/local/bin:/usr/bin:/bin"):
            answer = self.repl("x <- c(1,\n2)\nf <- function() {\n  sum(x)\n}\nf()\n", "--lang", "r")
            self.assertEqual((answer.status, answer.out), (0, "[1] 3\n"), answer)
        answer = self.repl("for i in 1 2; do\necho $i\ndone\nf() {\n  echo f\n}\nf\n", "--lang", "bash")
        self.assertEqual((answer.status, answer.out), (0, "1\n2\nf\n"), answer)

    def test_questions_are_no_cells(self):
        self.start_session(*PLAIN)
        person = self.person()
        person.type("imp" + TAB)
        person.expect("import")
        person.type(CTRL_C)
        person.expect(PROMPT)
        person.leave()
        listed = self.run_sbx("session", "contexts", "work", "--json").json["contexts"]
        self.assertEqual([(each["state"], each["cells"]) for each in listed], [("idle", 0)])
        record = self.sbx_session("eval", "work", "--json", "-c", "1").record
        self.assertEqual((record["state"], record["answer"]["count"]), ("new", 1))


class Hostile(ReplTest):
    """What comes from inside reaches the terminal as text, or not at all."""

    def complete(self, person, line):
        """What Tab shows or adds, until the line is cleared."""
        person.type(line + TAB)
        person.type("#")
        shown = person.expect("#")
        person.type(CTRL_C)
        return shown + person.expect(PROMPT)

    def test_names_with_escape_sequences_are_left_out(self):
        self.start_session(*PLAIN)
        person = self.person()
        person.answer("class A:\n    pass".replace("\n    ", " "))
        person.answer(r"A.__dir__ = lambda self: ['safe_name', 'safe_other', 'e\x1b]0;title\x07vil', 'e\nvil', 'e\u202evil', 'e\x9bvil', '\ud800']; a = A()")
        shown = self.complete(person, "a.")
        self.assertNotIn("vil", shown)
        self.assertIn("safe_", shown)
        self.assertNotIn(b"\x1b]0", person.raw)
        # The twin: names like these are offered where they are plain.
        person.answer("A.__dir__ = lambda self: ['evil', 'evil_too']")
        self.assertIn("evil", self.complete(person, "a."))
        person.leave()

    def test_a_million_names_are_cut(self):
        self.start_session(*PLAIN)
        person = self.person()
        person.answer("class A: __dir__ = lambda self: ['n' + str(i) for i in range(10 ** 6)]")
        person.answer("a = A()")
        shown = self.complete(person, "a.n")
        self.assertLess(len(shown), 5000)
        person.answer("class B: __dir__ = lambda self: ['b' * 10 ** 7, 'bc', 'bd']")
        person.answer("b = B()")
        self.assertLess(len(self.complete(person, "b.")), 5000)
        self.assertIn("'alive'", person.answer("'alive'"))
        person.leave()

    def test_a_completion_that_never_ends_costs_a_moment(self):
        self.start_session(*PLAIN)
        person = self.person()
        person.answer("import time; kept = 'state'")
        for code, survives in (("while True: time.sleep(60)", True), ("while True: pass", True)):
            person.answer(f"exec('class A:\\n def __dir__(self):\\n  {code}')")
            person.answer("a = A()")
            self.complete(person, "a.")  # its code never ends, and yet the prompt comes back
            self.assertIn("'state'", person.answer("kept"))
        # One that takes no interrupt for an answer: the next cell's end decides.
        person.answer("exec('class A:\\n def __dir__(self):\\n  while True:\\n   try: time.sleep(60)\\n   except BaseException: pass')")
        person.answer("a = A()")
        self.complete(person, "a.")
        late = self.sbx_session("eval", "work", "--timeout", "1s", "-c", "kept")
        self.assertEqual(late.status, 124, late)
        self.assertIn("lost", late.err)
        self.assertIn("'new'", person.answer("'new'"))
        person.leave()

    def test_javascript_getters_do_not_run_for_a_completion(self):
        self.needs("node")
        self.start_session()
        person = self.person("--lang", "javascript")
        person.answer("var ran = 0; var trap = {get inner() { ran++; for (;;); }, plain: {fine: 1}}; var loop = new Proxy({}, {ownKeys() { for (;;); }, get() { for (;;); }})")
        self.complete(person, "trap.inner.")
        self.complete(person, "loop.")
        self.complete(person, "Object.create(loop).")
        person.answer("var heir = Object.create(new Proxy({}, {get() { for (;;); }}))")
        self.complete(person, "heir.")  # V8 asks the proxy, until it is interrupted
        person.answer("'interrupted by now'")
        self.assertIn("fine", self.complete(person, "trap.plain.f"))
        self.assertRegex(person.answer("`ran ${ran}`"), "'ran 0'")
        person.leave()

    def test_a_forged_answer_is_checked(self):
        self.start_session(*PLAIN)
        person = self.person()
        person.answer("import gc; channel = next(o for o in gc.get_objects() if type(o).__name__ == 'Channel')")
        person.answer("send = type(channel).send")
        for forged in (r"replaces='', matches='text'", r"replaces='other', matches=['otherwise']", r"replaces='abc', matches=['abc\x1b[2J', 'abc' + 'd' * 9999]",
                       "replaces=['abc'], matches=[['abcd']]", "matches={}", "replaces='abc', matches=['abx']", r"status='incomplete', indent='\x1b[2J'",
                       r"status='incomplete', indent=' ' * 10 ** 6", "status=['complete']"):
            person.answer(f"type(channel).send = lambda self, **m: send(self, **({{'event': 'inspected', 'nonce': m['nonce'], **dict({forged})}} if m['event'] == 'inspected' else m))")
            before = len(person.raw)
            person.type("abc" + TAB + CTRL_C)
            person.expect(PROMPT)
            person.type("7\r")
            if "incomplete" in forged:
                person.expect(r"\.\.\.: ")
                person.type(CTRL_C)
            person.expect(PROMPT)
            self.assertNotIn(b"\x1b[2J", person.raw[before:])
            self.assertLess(len(person.raw) - before, 3000)
            person.type("type(channel).send = send" + CTRL_C)
            person.expect(PROMPT)
            self.sbx_session("eval", "work", "-c", "type(channel).send = send")
        person.leave()

    def test_printed_text_steers_no_terminal(self):
        self.start_session(*PLAIN)
        person = self.person()
        shown = person.answer(r"print('\x1b]0;title\x07\x1b[2J\x1b[31mred'); '\x1b[2J'")
        self.assertNotIn(b"\x1b]0", person.raw)
        self.assertNotIn(b"\x1b[2J", person.raw)
        self.assertIn("red", shown)
        person.answer("class A: __repr__ = lambda self: 'a\\x1b[2Jb'")
        self.assertIn("a", person.answer("A()"))
        self.assertNotIn(b"\x1b[2J", person.raw)
        person.leave()

    def test_no_configuration_is_read(self):
        self.start_session(*PLAIN)
        for directory in (self.home, self.work):
            (directory / ".editrc").write_text("bind a ed-tty-sigint\nbind b em-kill-line\n")
            (directory / ".inputrc").write_text('"a": "evil"\n')
        person = self.person(EDITRC=str(self.home / ".editrc"))
        self.assertIn("'ab'\n", person.answer("'ab'"))
        person.leave()


if __name__ == "__main__":
    sessiontest.main()

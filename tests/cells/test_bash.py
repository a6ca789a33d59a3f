#!/usr/bin/env python3
"""The driver of bash contexts: state, statuses, errors, ends, interrupts, what cells do to it."""

import re
import shutil

import celltest
from celltest import DRIVERS, CellTest, Context, Died

# As drivers.cpp starts it; descriptor 5 is the driver there.
START = """exec 5< {driver}; PROMPT_COMMAND='. /proc/self/fd/5; eval "$PROMPT_COMMAND"' exec -a bash "$BASH" --norc --noprofile --noediting +m +o history -i 6>&2 2>/dev/null"""


class BashContext(Context):
    def send(self, message):
        """Requests are plain."""
        super().send(b"%s %d\n%s" % (message["nonce"].encode(), message["count"], message["code"].encode("utf-8", "surrogateescape")))


def matching(text):
    return re.compile(text, re.DOTALL)


# Code, stdout, stderr, exit status (None: 0 and not said), (error's name, value, traceback, line).
CELLS = [
    ("echo out; echo err >&2", "out\n", "err\n", None, None),
    ("x=5; y=(a 'b c'); declare -A m=([k]=v); f() { echo \"f $1 $x\"; }", "", "", None, None),
    ("f 1; echo ${y[1]} ${m[k]}", "f 1 5\nb c v\n", "", None, None),
    ("cd /tmp; shopt -s nullglob; set -o pipefail; alias greet='echo hello'", "", "", None, None),
    ("pwd; shopt -q nullglob && echo on; [[ -o pipefail ]] && echo on; greet", "/tmp\non\non\nhello\n", "", None, None),
    ("set +o pipefail; shopt -u nullglob", "", "", None, None),
    ("false", "", "", 1, None),
    ("echo $?", "1\n", "", None, None),
    ("(exit 7)", "", "", 7, None),
    ("echo $?; true", "7\n", "", None, None),
    ("nosuchcommand", "", "bash: nosuchcommand: command not found\n", 127, None),
    ("", "", "", None, None),
    ("# a comment", "", "", None, None),
    ("echo a # a comment", "a\n", "", None, None),
    ("echo a \\", "a\n", "", None, None),
    ("cat <<E\nhere $x\nE", "here 5\n", "", None, None),
    ("echo é中😀 | cat; printf '\\xff' | od -An -tx1", "é中😀\n ff\n", "", None, None),
    ("echo $LINENO\necho $LINENO", "1\n2\n", "", None, None),
    ("read v; echo \"$? [$v]\"; cat; wc -c", "1 []\n0\n", "", None, None),
    ("echo a | while read v; do echo \"<$v>\"; done", "<a>\n", "", None, None),
    ("shopt -s extglob\ncd /; [[ -d /etc ]]; echo @(etc|nosuch)", "etc\n", "", None, None),
    ("shopt -q extglob && echo on; shopt -u extglob", "on\n", "", None, None),
    ("exit 3; echo no", "", "", 3, None),
    ("echo $?; g() { for i in 1 2; do eval 'exit 4'; done; }; g | cat; g; echo no", "3\n", "", 4, None),
    ("exit", "", "", 4, None),
    ("true; exit", "", "", 0, None),
    ("false; exit", "", "", 1, None),
    ("exit nine; echo no", "", "bash: exit: nine: numeric argument required\n", 2, None),
    ("(exit 5); echo $? $(exit 6)$?; { exit 3; } 2>/dev/null >&2", "5 6\n", "", 3, None),
    ("if", "", "", 2, ("SyntaxError", "line 2: syntax error: unexpected end of file", None, 2)),
    ("echo no\n}\necho no", "", "", 2, ("SyntaxError", "line 2: syntax error near unexpected token `}'\nline 2: `}'", None, 2)),
    ("echo no\nesac", "", "", 2, ("SyntaxError", matching(".*syntax error.*"), None, 3)),
    ("echo 'no", "", "", 2, ("SyntaxError", matching(".*unexpected EOF while looking for matching `''.*"), None, matching("[12]"))),
    ("echo \"é\x01\udcff\" <(", "", "", 2, ("SyntaxError", matching(".*unexpected EOF.*"), None, matching("[12]"))),
    ("set -u; echo $nope; echo no\necho no", "", "bash: nope: unbound variable\n", 1, None),
    ("set +u; echo ${x:?}; : ${nope:?is missing}\necho no", "5\n", "bash: nope: is missing\n", 1, None),
    ("echo $((1 / 0))\necho no", "", matching("bash: 1 / 0: division by 0.*\n"), 1, None),
    ("set -e; echo a; (exit 9); echo no", "a\n", "", 9, ("ExitStatus", "9", "line 1: ( exit 9 ): exit status 9", 1)),
    ("[[ -o errexit ]] && echo kept\nfalse || true\nif false; then :; fi\n! true\nfalse\necho no", "kept\n", "", 1, ("ExitStatus", "1", "line 5: false: exit status 1", 5)),
    ("h() { false; echo no; }; h | cat; h; echo no", "", "", 1, ("ExitStatus", "1", "false: exit status 1", None)),
    ("v=$(echo \"é\\\"\"; false)\necho no", "", "", 1, ("ExitStatus", "1", 'line 1: v=$(echo "é\\""; false): exit status 1', 1)),
    ("set -u; echo $nope; echo no", "", "bash: nope: unbound variable\n", 1, None),
    ("if", "", "", 2, ("SyntaxError", "line 2: syntax error: unexpected end of file", None, 2)),
    ("eval 'if'; echo no", "", matching("bash: eval: line .*"), 2, None),
    ("set +eu; false; echo yes", "yes\n", "", None, None),
    ("break; echo no", "", "", None, None),
    ("continue; echo no", "", "", None, None),
    ("return 3", "", matching("bash: return: can only.*"), 2, None),
    ("exec >/dev/null; echo hidden", "", "", None, None),
    ("echo seen; exec 2>&1; echo err >&2", "seen\nerr\n", "", None, None),
    ("echo err >&2", "", "err\n", None, None),
    ("trap 'echo usr1' USR1; kill -USR1 $$", "usr1\n", "", None, None),
    ("kill -USR1 $$; trap - USR1", "usr1\n", "", None, None),
    ("sleep 100 & p=$!", "", "", None, None),
    ("kill $p; wait $p; echo $?", "143\n", "", None, None),
    ("printf '%s\\n' \"$0\" $$ | head -n 1; env | grep -c PROMPT", "bash\n0\n", "", 1, None),
    ("printf '%10000000s' x", lambda out: len(out) == 10_000_000, "", None, None),
    ("x=$(printf '%1000000s' é); echo ${#x}", matching("[0-9]+\n"), "", None, None),
    ("set -x; : traced", "", matching(".*: traced\n"), None, None),
    ("set +x", "", matching(".*"), None, None),
    ("set -n; echo n", "n\n", "", None, None),
    ("set -f; set -- 1 2; IFS=,", "", "", None, None),
    ("echo \"$*\" *; set +f; unset IFS", "1,2 *\n", "", None, None),
    ("LC_ALL=C; v=é; echo ${#v}", "2\n", "", None, None),
    ("unset LC_ALL; echo ${#v}", "1\n", "", None, None),
    ("eval() { echo E; }; printf() { echo P; }; read() { :; }; trap() { :; }; local() { :; }; kill() { :; }; set() { :; }; exit 2", "", "", 2, None),
    ("command printf '%s\\n' fine; unset -f eval printf read trap local kill set", "fine\n", "", None, None),
    ("alias eval=false builtin=false exit=false", "", "", None, None),
    ("\\exit 2", "", "", 2, None),
    ("unalias -a; kill -INT $$; echo no", "", "", "", ("Interrupt", "SIGINT ended the cell", "", None)),
    ("echo $?", "130\n", "", None, None),
]

# What a cell can do to its own context: the code, and whether the next cell is answered.
DAMAGES = [
    ("builtin() { :; }", False),
    ("enable -n read", False),
    ("exec 233<&-", False),
    ("exec 234>&-", False),
    ("kill -9 $$", False),
    ("kill -TERM $$", False),
    ("exec true", False),
    ("readonly LC_ALL=POSIX", False),
    ("readonly __sbx_open", False),
    ("exec 231>&- 232>&-", True),
    ("exec 0<&- 1>&- 2>&- 3<&- 4<&- 5<&-", True),
    ("unset PROMPT_COMMAND; PROMPT_COMMAND=false", True),
    ("__sbx_next() { :; }", True),
    ("unset -f __sbx_next exit", True),
    ("readonly IFS=01 REPLY=no", True),
    ("trap '' INT HUP TERM; set -m; TMOUT=1", True),
    ("set -o posix; shopt -s failglob lastpipe", True),
    ("trap 'false' DEBUG; set -T; trap ':' RETURN", True),
    ("ulimit -n 240", True),
]

SLEEPERS = [
    "while :; do :; done",
    "until false; do [[ a == b ]]; done",
    "sleep 1000",
    "sleep 1000 | cat | cat",
    "for ((;;)); do sleep 0.001; done",
    "for ((;;)); do v=$(echo a); done",
    "v=$(sleep 1000)",
    "( while :; do :; done )",
    "f() { while :; do g; done; }; g() { return 1; }; f",
    "sleep 1000 & wait",
    "while read -r v; do :; done < <(while :; do echo v; done)",
    "eval 'eval \"sleep 1000\"'",
    "set -e; f() { sleep 1000; }; f",
    "trap : DEBUG; while :; do :; done",
]


class Bash(CellTest):
    def bash(self):
        program = shutil.which("bash", path="/usr/local/bin:/usr/bin:/bin")
        if program is None:
            self.skipTest("bash is not installed")
        context = BashContext([program, "-c", START.format(driver=DRIVERS / "bash.sh")], env={"HOME": self.directory()}, cwd=self.directory())
        self.addCleanup(context.close)
        self.assertEqual((context.ready["language"], context.ready["shell"], context.start_output), ("bash", "plain", (b"", b"")))
        return context

    def test_table(self):
        context = self.bash()
        context.cell("kept=42")
        for code, out, err, status, error in CELLS:
            answer = context.cell(code)
            about = f"{code!r}\n{answer}"
            self.assertTrue(self.fits(out, answer.out.decode(errors="replace")), about)
            self.assertTrue(self.fits(err, answer.err.decode(errors="replace")), about)
            self.assertEqual(answer.results, [], about)
            self.assertEqual(answer.done.get("exit"), None if status == "" else status, about)
            self.assertEqual(answer.done["ok"], status in (None, 0), about)
            self.assertEqual(len(answer.errors), error is not None, about)
            if error:
                name, value, traceback, line = error
                for expected, key in ((name, "name"), (value, "value"), (value if name == "SyntaxError" else traceback, "traceback"), (line, "line")):
                    self.assertTrue(self.fits(expected, answer.error[key]), f"{key}: {about}")
        self.assertEqual(bytes(context.cell("echo $kept").out), b"42\n")
        self.assertEqual(context.close(), 0)

    def test_commands_get_their_streams_and_nothing_else(self):
        context = self.bash()
        self.assertEqual(bytes(context.cell("ls /proc/self/fd").out), b"0\n1\n2\n3\n", "3 is the directory that ls reads")
        self.assertEqual(bytes(context.cell("readlink /proc/self/fd/0").out), b"/dev/null\n")
        self.assertIn(b"channel", context.cell("[[ -e /proc/$$/fd/233 && -e /proc/$$/fd/234 ]] && echo channel").out, "the twin: the shell has it")
        for code in ("echo x >&3", "echo x >&4", "read v <&5"):
            self.assertIn(b"Bad file descriptor", context.cell(code).err)

    def test_errors_are_json_whatever_the_command(self):
        context = self.bash()
        for text in ('"\\\n\t\x01\x7f', "é中😀", "\udcff\udcc0\udcaf", "\udced\udca0\udc80", "é" * 3000):
            answer = context.cell("set -e; false $'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'")
            self.assertEqual((answer.error["name"], answer.error["value"], answer.done["exit"]), ("ExitStatus", "1", 1), answer)
            self.assertIn("false", answer.error["traceback"])

    def test_other_ends_are_reported(self):
        for code, status in (("builtin exit 6", 6), ("command exit 0", 0), ("trap 'echo mine' ERR; set -e; f() { (exit 5); }; f", 5)):
            context = self.bash()
            answer = context.cell("echo first; " + code)
            self.assertTrue(answer.out.startswith(b"first\n"))
            self.assertEqual((answer.done["exit"], answer.done["ended"], answer.done["ok"]), (status, True, status == 0), answer)
            with self.assertRaises(Died) as ended:
                context.cell("echo")
            self.assertEqual(ended.exception.status, status)

    def interrupted(self, context, code, before=""):
        """The answer to a cell that SIGINT reaches with its commands, again while it is not done, as sbx does it."""
        nonce = context.begin(before + "echo ready; " + code)
        answer = celltest.Answer()
        sent = []

        def send(context, answer):
            if not sent and b"ready\n" in answer.out:
                sent.append(True)
                context.interrupt(everyone=True)

        for _ in range(200):
            try:
                context.wait_for(answer, lambda message: message["event"] == "done" and message.get("nonce") == nonce, send, patience=0.3)
                context.drain(answer)
                return answer
            except AssertionError:
                if sent:
                    context.interrupt(everyone=True)
        self.fail(f"no answer: {code}\n{answer}")

    def test_sigint_ends_the_cell_only(self):
        context = self.bash()
        context.cell("kept=0")
        for _ in range(15):
            for code in SLEEPERS:
                answer = self.interrupted(context, code, "kept=$((kept + 1)); ")
                self.assertEqual((answer.done["ok"], bytes(answer.out)), (False, b"ready\n"), f"{code}\n{answer}")
                context.cell("set +e; trap - DEBUG")
        self.assertEqual(bytes(context.cell("echo $kept").out), b"%d\n" % (15 * len(SLEEPERS)))
        answer = self.interrupted(context, "sleep 1000; echo no")
        self.assertEqual((answer.error["name"], answer.done.get("exit")), ("Interrupt", None), answer)
        self.assertEqual(context.process.poll(), None)

    def test_sigint_between_cells_interrupts_none(self):
        context = self.bash()
        for i in range(200):
            context.interrupt(everyone=True)
            self.assertEqual(bytes(context.cell(f"echo {i}").out), b"%d\n" % i)
            context.interrupt()
        self.assertEqual(context.close(), 0)

    def test_a_trap_of_the_cell_gets_the_interrupt(self):
        context = self.bash()
        answer = self.interrupted(context, "while :; do :; done", "trap 'echo mine; exit 9' INT; ")
        self.assertEqual((bytes(answer.out), answer.done["exit"], answer.errors), (b"ready\nmine\n", 9, []), answer)
        self.assertEqual(self.interrupted(context, "while :; do :; done").error["name"], "Interrupt", "the trap has ended with its cell")

    def test_background_commands_live_on(self):
        context = self.bash()
        answer = self.interrupted(context, "wait", "sleep 1000 & p=$!; until grep -q 'SigIgn:.*6$' /proc/$p/status; do :; done; ")
        self.assertFalse(answer.done["ok"])
        self.assertEqual(bytes(context.cell("kill -0 $p && kill $p && echo alive").out), b"alive\n")

    def test_damage_is_the_contexts_own_and_never_a_silence(self):
        other = self.bash()
        for code, survives in DAMAGES:
            with self.subTest(code=code):
                context = self.bash()
                try:
                    context.cell(code)
                    answer = context.cell("echo next")
                    self.assertTrue(survives, answer)
                    self.assertEqual(answer.done["count"], 2)
                except Died:
                    self.assertFalse(survives)
                finally:
                    context.process.kill()
        self.assertEqual(bytes(other.cell("echo here").out), b"here\n")

    def test_large_cells(self):
        context = self.bash()
        answer = context.cell(": " + "é" * 500_000 + "\necho $LINENO")
        self.assertEqual(bytes(answer.out), b"2\n")


if __name__ == "__main__":
    celltest.main()

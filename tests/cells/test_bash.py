#!/usr/bin/env python3
"""The driver of bash contexts: what a shell keeps, how it ends, interrupts, and what commands inherit."""

import re
import shutil

import celltest
from celltest import DRIVERS, CellTest, Died

ANY = re.compile(b".*", re.DOTALL)

# Code, stdout, exit status, stderr. All in one shell.
TABLE = [
    ("echo text", b"text\n", 0, b""),
    ("x=5", b"", 0, b""),
    ("echo $x", b"5\n", 0, b""),
    ("false", b"", 1, b""),
    ("echo $?", b"1\n", 0, b""),
    ("(exit 7)", b"", 7, b""),
    ("true", b"", 0, b""),
    ("f() { echo \"f $1\"; return 3; }", b"", 0, b""),
    ("f one", b"f one\n", 3, b""),
    ("cd /; pwd", b"/\n", 0, b""),
    ("pwd; cd - > /dev/null", b"/\n", 0, b""),
    ("declare -A map=([key]=value); declare -i n=5; readonly r=1; local_list=(a 'b c')", b"", 0, b""),
    ("echo ${map[key]} $((n + 1)) $r \"${local_list[1]}\"", b"value 6 1 b c\n", 0, b""),
    ("export EXPORTED=yes; bash -c 'echo $EXPORTED'", b"yes\n", 0, b""),
    ("alias hello='echo hello'", b"", 0, b""),
    ("hello", b"hello\n", 0, b""),
    ("printf 'no line end'", b"no line end", 0, b""),
    ("printf '\\0\\xff\\x1b[0m'", b"\0\xff\x1b[0m", 0, b""),
    ("echo 'quote \" backslash \\ tab\there é 😀'", "quote \" backslash \\ tab\there é 😀\n".encode(), 0, b""),
    ("cat <<'E'\n\\n \\\\ \\u0041 \"\nE", b"\\n \\\\ \\u0041 \"\n", 0, b""),
    ("echo one\n\n# a comment\necho two", b"one\ntwo\n", 0, b""),
    ("", b"", 0, b""),
    ("# nothing", b"", 0, b""),
    ("if", b"", 2, re.compile(b"bash: (eval: )?line [12]: syntax error: unexpected end of file.*", re.DOTALL)),
    ("echo )", b"", 2, re.compile(b"bash: (eval: )?line 1: syntax error near unexpected token.*", re.DOTALL)),
    ("echo 'open", b"", 2, ANY),
    ("echo still here", b"still here\n", 0, b""),
    ("nosuchcommand", b"", 127, re.compile(b"bash: line 1: nosuchcommand: command not found\n")),
    ("echo err >&2", b"", 0, b"err\n"),
    ("read line; echo \"[$line] $?\"", b"[] 1\n", 0, b""),
    ("echo before; break; echo after", b"before\n", 0, b""),
    ("continue", b"", 0, b""),
    ("return 3", b"", ..., ANY),
    ("for i in 1 2 3; do [ $i = 2 ] && break; echo $i; done", b"1\n", 0, b""),
    ("echo $x ${map[key]}; f two", b"5 value\nf two\n", 3, b""),
    ("set -x; echo traced", b"traced\n", 0, re.compile(rb"\++ echo traced\n")),
    ("echo more", b"more\n", 0, re.compile(rb"\++ echo more\n")),
    ("set +x", b"", 0, re.compile(rb"\++ set \+x\n")),
    ("echo quiet", b"quiet\n", 0, b""),
    ("set -u; echo ${nothing-unset}; set +u", b"unset\n", 0, b""),
    ("set -f; echo *; set +f", b"*\n", 0, b""),
    ("IFS=,; v='a,b'; echo $v", b"a b\n", 0, b""),
    ("echo $v; IFS=$' \\t\\n'", b"a b\n", 0, b""),
    ("trap 'echo err' ERR; false; trap - ERR", b"err\n", 0, b""),
    ("exec 5> /dev/null; echo x >&5", b"", 0, b""),
    ("echo y >&5", b"", 0, b""),
    ("exec 5>&-; (sleep 0.05; echo later) & wait", b"later\n", 0, b""),
    ("echo $0 $#", b"bash 0\n", 0, b""),
    ("x=$(echo sub; exit 4)", b"", 4, b""),
    ("echo $x | tr s S; echo ${PIPESTATUS[*]}", b"Sub\n0 0\n", 0, b""),
    ("diff <(echo a) <(echo a)", b"", 0, b""),
    ("head -c 10000000 /dev/zero | tr '\\0' x", b"x" * 10_000_000, 0, b""),
    ("shopt -s extglob; echo ${HOME:+home}", b"home\n", 0, b""),
    ("LC_ALL=C; echo 'é'; unset LC_ALL", "é\n".encode(), 0, b""),
    ("printf '%s' é | wc -c", b"2\n", 0, b""),
    ("echo done", b"done\n", 0, b""),
]


class Bash(CellTest):
    def bash(self):
        if shutil.which("bash", path="/usr/bin:/bin") is None:
            self.skipTest("bash is not installed")
        context = self.start(["bash", "--noprofile", "--norc", "-c", 'eval "$1";eval "$__sbx_cells"', "bash", (DRIVERS / "bash.sh").read_text()], cwd=self.directory())
        self.assertEqual((context.ready["language"], context.ready["shell"], context.start_output), ("bash", "plain", (b"", b"")))
        return context

    def test_table(self):
        context = self.bash()
        context.cell("kept() { echo 42; }")
        for code, out, status, err in TABLE:
            answer = context.cell(code)
            self.assertEqual(bytes(answer.out), out, f"{code}\n{answer}")
            if status is not ...:
                self.assertEqual((answer.done["exit"], answer.done["ok"]), (status, status == 0), f"{code}\n{answer}")
            self.assertTrue(err.fullmatch(answer.err) if isinstance(err, re.Pattern) else answer.err == err, f"{code}\n{answer}")
            self.assertNotIn("ended", answer.done)
        self.assertEqual(context.cell("kept").out, b"42\n")
        self.assertEqual(context.close(), 0)

    def test_json_of_any_writer(self):
        context = self.bash()
        for code in (b'echo \\u0022\\u00e9\\ud83d\\ude00\\/\\u0041\\u0022', b'printf %s \\"\\\\\\\\n\\"\\necho'):
            context.count += 1
            context.send(b' { "op" : "cell",\n"count":%d , "code":"%s","nonce": "00112233445566aa"}' % (context.count, code))
            answer = context.finish("00112233445566aa")
            self.assertIn(answer.out.decode(), ("é😀/A\n", "\\n\n"), answer)
        context.ping()
        self.assertEqual(context.cell("echo " + "é" * 200_000 + "; #" + "\n" * 5_000 + "echo").out, ("é" * 200_000 + "\n\n").encode())

    def test_exit_is_reported_and_ends_the_context(self):
        for code, status in (("exit 3", 3), ("f() { exit 4; }; f", 4), ("set -e; false; echo no", 1), ("set -u; echo $nothing", 127), ("trap 'true' ERR; exit", 0)):
            context = self.bash()
            answer = context.cell("echo first; " + code)
            self.assertEqual((answer.out, answer.done["exit"], answer.done.get("ended")), (b"first\n", status, True), answer)
            with self.assertRaises(Died) as ended:
                context.cell("echo no")
            self.assertEqual(ended.exception.status, status)

    def test_exec_and_signals_end_the_context(self):
        for code, status in (("exec true", 0), ("kill -9 $$", -9)):
            context = self.bash()
            with self.assertRaises(Died) as ended:
                context.cell(code)
            self.assertEqual(ended.exception.status, status)

    def test_sigint_ends_the_cell_only(self):
        context = self.bash()
        context.cell("kept=42")
        for code in ("echo ready; sleep 100; echo no", "while true; do [ $r ] || echo ready; r=1; done; echo no", "f() { while true; do sleep 100; done; echo no; }; echo ready; f; f; echo no",
                     "echo ready; (sleep 100; echo no); echo no", "echo ready; x=$(sleep 100); echo no", "echo ready; sleep 100 | cat; echo no", "echo ready; read x < <(sleep 100)",
                     "f() { g; echo no; }; g() { sleep 100; echo no; }; echo ready; for i in 1 2; do f; done", "echo ready; if sleep 100; then echo no; fi; declare -A no"):
            sent = []

            def send(context, answer):
                if not sent and b"ready\n" in answer.out:
                    sent.append(True)
                    context.interrupt(everyone=True)

            answer = context.cell(code, send)
            self.assertEqual((answer.done["exit"], answer.done["ok"], answer.error["name"]), (130, False, "Interrupt"), f"{code}\n{answer}")
            self.assertEqual(answer.out, b"ready\n", code)
            answer = context.cell("echo $kept; g2() { echo g; }; g2; set -o | grep functrace; shopt extdebug; trap -p DEBUG")
            self.assertEqual(b" ".join(answer.out.split()), b"42 g functrace off extdebug off", answer)
        for _ in range(20):
            context.interrupt()
            context.ping()
        self.assertEqual(context.cell("echo $kept").out, b"42\n")

    def test_commands_inherit_no_channel(self):
        context = self.bash()
        context.cell("dup() { for f in /proc/self/fd/*; do readlink $f; done; }")
        answer = context.cell("bash -c 'for f in /proc/$$/fd/*; do [[ ${f##*/} -gt 2 ]] && readlink $f; done'; sh -c 'echo x >&3' 2> /dev/null || echo closed; echo x >&4 || echo closed")
        self.assertEqual(answer.out, b"closed\nclosed\n", answer)

    def test_a_subshell_does_not_answer(self):
        context = self.bash()
        answer = context.cell("(echo sub; exit 3); { sleep 0.01; echo bg; } & wait; (exit 5)")
        self.assertEqual((bytes(answer.out), answer.done["exit"]), (b"sub\nbg\n", 5), answer)
        self.assertEqual(context.cell("echo next").out, b"next\n")

    def test_attacks_hurt_their_own_context(self):
        other = self.bash()
        for code in ("for i in {3..40}; do eval \"exec $i>&-\"; done", "unset __sbx_in __sbx_out", "__sbx_send() { :; }", "exec 1>&- 2>&-", "ulimit -n 3", "set -n",
                     "printf() { echo mine; }; read() { false; }; builtin() { echo mine; }", "trap '' INT", "echo 5: no message >&10", "trap 'exit 5' EXIT; trap - EXIT"):
            context = self.bash()
            try:
                context.cell(code, patience=1.0)
            except (Died, AssertionError, ValueError):
                pass
            context.process.kill()
            self.assertEqual(other.cell("echo 1").out, b"1\n")


if __name__ == "__main__":
    celltest.main()

#!/usr/bin/env python3
"""The driver of bash contexts: state, statuses, errors, ends, interrupts, what cells do to it."""

import pathlib
import re
import shutil

import celltest
from celltest import DRIVERS, CellTest, Context, Died

# As drivers.cpp starts it; descriptor 5 is the driver there.
START = """exec 5< {driver}; PROMPT_COMMAND='. /proc/self/fd/5; eval "$PROMPT_COMMAND"' exec -a bash "$BASH" --norc --noprofile --noediting +m +o history -i 6>&2 2>/dev/null"""


class BashContext(Context):
    def send(self, message):
        """Requests are plain; a question has its name where a cell has its count."""
        head = f"{message['nonce']} {message['what'] if message['op'] == 'inspect' else message['count']}"
        super().send(b"%s\n%s" % (head.encode(), message["code"].encode("utf-8", "surrogateescape")))


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
    ("shopt -s nocasematch; false; echo on", "on\n", "", None, None),
    ("shopt -u nocasematch", "", "", None, None),
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
    ("exec 123<&-", False),
    ("exec 124>&-", False),
    ("kill -9 $$", False),
    ("kill -TERM $$", False),
    ("exec true", False),
    ("readonly LC_ALL=POSIX", False),
    ("readonly __sbx_open", False),
    ("exec 121>&- 122>&-", True),
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

# Code, and whether it is a whole cell.
COMPLETENESS = [
    ("", "complete"), ("  ", "complete"), ("# a comment", "complete"), ("echo a; echo b &", "complete"), ("é", "complete"), ("f() {\n  a\n}", "complete"),
    ("for i in 1 2; do", "incomplete"), ("for i in 1 2; do\necho $i", "incomplete"), ("for i in 1 2; do\necho $i\ndone", "complete"), ("for i in 1 2", "incomplete"),
    ("if a; then", "incomplete"), ("if a\nthen b\nelse", "incomplete"), ("if a; then b; fi", "complete"), ("while a", "incomplete"), ("until a; do b; done", "complete"),
    ("f()", "incomplete"), ("f() {", "incomplete"), ("function f {\n a", "incomplete"), ("{", "incomplete"), ("( a", "incomplete"), ("a=(1\n2", "incomplete"),
    ("case x in", "incomplete"), ("case x in a) b", "incomplete"), ("case x in a) b;;", "incomplete"), ("case x in a) b;; esac", "complete"), ("{ case x in a) b", "incomplete"),
    ("echo 'a", "incomplete"), ('echo "a', "incomplete"), ("echo $'a\\'", "incomplete"), ("echo it\\'s", "complete"), ("echo `a", "incomplete"), ("echo ${a", "incomplete"),
    ("echo $(", "incomplete"), ("echo $(a; if", "incomplete"), ('echo "$(a', "incomplete"), ("echo <(a", "incomplete"), ("((1 +", "incomplete"), ("echo $((1 +", "incomplete"),
    ("cat <<E", "incomplete"), ("cat <<E\nit's", "incomplete"), ("cat <<E\nit's\nE", "complete"), ("cat <<'E' && a\nb\nE\n", "complete"), ("x=$(cat <<E\na\n)", "incomplete"),
    ("echo a \\", "incomplete"), ("echo a \\\\", "complete"), ("echo a \\\nb", "complete"), ("# a \\", "complete"), ("a # b \\", "complete"), ("for \\", "incomplete"),
    ("a |", "incomplete"), ("a &&", "incomplete"), ("a ||\n# more", "incomplete"), ("[[ a &&", "incomplete"), ("[[ a && b ]]", "complete"), ("! a", "complete"),
    ("fi", "invalid"), ("done", "invalid"), (")", "invalid"), ("}", "invalid"), (";;", "invalid"), ("esac", "invalid"), ("a\n} ; {", "invalid"), ("for", "invalid"),
    ("if; then", "invalid"), ("echo $(fi)", "invalid"), ("a ( b", "invalid"), (") # bash: line 1: unexpected EOF", "invalid"), ("a | | b", "invalid"),
    ("echo @(a|b)", "invalid"), ("shopt -s extglob\necho @(a|b)", "complete"),
]

# Code before the cursor, what is replaced, and all matches.
COMPLETIONS = [
    ("hello_", "hello_", ["hello_alias", "hello_fn", "hello_run"]), ("hello_f", "hello_f", ["hello_fn"]), ("whil", "whil", ["while"]), ("unalia", "unalia", ["unalias"]),
    ("a; hello_r", "hello_r", ["hello_run"]), ("a\nhello_r", "hello_r", ["hello_run"]), ("if hello_r", "hello_r", ["hello_run"]), ("f() { hello_r", "hello_r", ["hello_run"]),
    ("a=1 hello_r", "hello_r", ["hello_run"]), (">x 2>&1 hello_r", "hello_r", ["hello_run"]), ("case x in a) hello_r", "hello_r", ["hello_run"]), ("a | hello_r", "hello_r", ["hello_run"]),
    ("echo $hello_", "hello_", ["hello_world"]), ("echo ${hello_w", "hello_w", ["hello_world"]), ('"${#hello_w', "hello_w", ["hello_world"]), ("((1 + hello_w", "hello_w", ["hello_world"]),
    ("$hello_w", "hello_w", ["hello_world"]), ("echo $nothing_of_", "", []), ("echo '$hello_w", "", []), ("echo \\$hello_w", "", []), ("echo $__sbx_", "", []),
    ("cat my", "my", ["my\\ dir/", "my\\ file"]), ("cat my\\ f", "my\\ f", ["my\\ file"]), ('cat "my f', '"my f', ['"my file"']), ("cat 'my f", "'my f", ["'my file'"]),
    ("cat 'my d", "'my d", ["'my dir/"]), ("cat my\\ dir/s", "s", ["sub/", "söme"]), ('cat "my dir/', "", ["sub/", 'söme"']), ("cat my\\ dir/sub/", "", []),
    ("cat it", "it", ["it\\'s"]), ("cat 'it", "'it", ["'it'\\''s'"]), ('cat "$H/pl', "pl", ['plain"']), ("cat $H/pl", "pl", ["plain"]), ("cat ~/pl", "pl", ["plain"]),
    ("cat", "cat", None), ("cat .", ".", [".hidden"]), ("cat \\#", "\\#", ["\\#sharp"]), ("cat '#", "'#", ["'#sharp'"]), ("cat # pl", "", []), ("cat nothing", "", []), ("cat $ref/pl", "", []),
    ("cat >pl", "pl", ["plain"]), ("a=pl", "pl", ["plain"]), ("a=/nothing:pl", "pl", ["plain"]), ("a --b=pl", "pl", ["plain"]), ("a=(pl", "pl", ["plain"]), ("./", "", ["hello_run", "my\\ dir/"]),
    ("cat \\\npl", "pl", ["plain"]), ("cat 'pl'\\\nai", "ai", ["ain"]), ("cat $(touch ran; hello_r", "hello_r", ["hello_run"]), ('cat "$(touch ran)" pl', "pl", ["plain"]),
    ('cat "$(touch ran) pl', "", []), ("cat `touch ran`pl", "", []), ("`hello_r", "hello_r", ["hello_run"]), ("cat <(hello_r", "hello_r", ["hello_run"]), ("${x:-$hello_w", "hello_w", ["hello_world"]),
    ("(a) | (hello_r", "hello_r", ["hello_run"]), ("nothing_of_this_name", "", []), ("", "", []), ("none", "", []), ("a\\", "", []), ("'", "'", None),
]

# What cells leave behind, in text; bash counts some of its own variables on.
STATE = r"""{ declare -p | grep -Ev '^declare -[-airx]+ (__sbx_|BASH|EPOCH|RANDOM|SRANDOM|SECONDS|LINENO|FUNCNAME|_=)'; declare -p BASH_REMATCH; shopt -p; set +o; trap -p; alias; declare -F; declare -f f; umask; pwd; jobs; }"""

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
    def bash(self, driver=DRIVERS / "bash.sh"):
        program = shutil.which("bash", path="/usr/local/bin:/usr/bin:/bin")
        if program is None:
            self.skipTest("bash is not installed")
        context = BashContext([program, "-c", START.format(driver=driver)], env={"HOME": self.directory()}, cwd=self.directory())
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
        self.assertIn(b"channel", context.cell("[[ -e /proc/$$/fd/123 && -e /proc/$$/fd/124 ]] && echo channel").out, "the twin: the shell has it")
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

    def test_questions_about_code_that_does_not_run(self):
        context = self.bash()
        context.is_complete(COMPLETENESS)
        context.cell("mkdir -p 'my dir/sub'; touch 'my file' 'my dir/söme' \"it's\" '#sharp' .hidden plain hello_run; chmod +x hello_run; "
                     "PATH+=:$PWD; HOME=$PWD; H=$PWD; hello_world=1; hello_fn() { :; }; alias hello_alias=ls; declare -n ref='a[$(touch ran)]'")
        for code, replaces, matches in COMPLETIONS:
            answer = context.ask("completion", code)
            if matches is not None:
                self.assertEqual(answer, {"replaces": replaces, "matches": matches} if matches else {}, code)
        self.assertIn("cat", context.ask("completion", "ca")["matches"])
        context.cell("touch many{1..300}")
        matches = context.ask("completion", "cat many")["matches"]
        self.assertEqual(matches, sorted(f"many{number}" for number in range(1, 301))[:200])
        self.assertEqual(context.ask("completion", "cat " + "é" * 2000), {})
        self.assertEqual(context.ask("nonsense", "x"), {})
        self.assertEqual(bytes(context.cell("[[ -e ran ]] || echo neither ran").out), b"neither ran\n")

    def test_questions_run_nothing(self):
        context = self.bash()
        for code in ("touch ran", "$(touch ran)", "`touch ran", "exit 5; touch ran", ";; esac }\ntouch ran", "} >$(touch ran)", "} & touch ran; {", "a=(\n$(touch ran)", "trap 'touch ran' EXIT",
                     "cat <<E\n$(touch ran)\nE", "cat <<E\n$(touch ran)", "((x[$(touch ran)]", "${x:-$(touch ran)}", "$x[$(touch ran)]", "~$(touch ran)/", "a\n} ;; esac\ntouch ran"):
            for what in ("completeness", "completion"):
                context.ask(what, code)
        self.assertEqual(bytes(context.cell("shopt -s nullglob; echo *").out), b"\n")

    def test_questions_change_nothing(self):
        context = self.bash()
        context.cell("shopt -s failglob nocasematch; set -f -o noclobber; trap 'echo usr1' USR1; trap ': mine' EXIT; IFS=1; [[ abc =~ b ]]; alias x=y; f() { :; }; GLOBIGNORE=a; cd /; sleep 1000 & p=$!")
        before = bytes(context.cell(STATE).out)
        self.assertIn(b"BASH_REMATCH", before)
        for code in ("x", "for", "echo $(", "echo $x", "echo \"$HOME/", "shopt -s extglob; cd /tmp; echo @(a", "[[ a =~ b ]]", "x \\"):
            for what in ("completeness", "completion"):
                context.ask(what, code)
        self.assertEqual(bytes(context.cell(STATE).out).decode(), before.decode())
        self.assertEqual(bytes(context.cell("kill -0 \"$p\" && kill \"$p\" && echo alive").out), b"alive\n")
        context.cell("unset IFS; (exit 7)")
        context.is_complete([("x", "complete"), ("if", "incomplete"), ("fi", "invalid")])
        self.assertEqual(bytes(context.cell("echo $?; (sleep 0.3; exit 3) & p=$!").out), b"7\n")
        for _ in range(10):
            context.is_complete([("x", "complete"), ("if", "incomplete")])
        self.assertEqual(bytes(context.cell("sleep 0.3; wait $p; echo $?").out), b"3\n")

    def test_questions_are_answered_whatever_the_session_has_set(self):
        for code in ("set -e", "set -u", "set -x; BASH_XTRACEFD=1", "set -v", "set -f", "set -o posix", "set -euo pipefail", "IFS=comple", "shopt -s failglob nocasematch dotglob", "LC_ALL=de_DE.UTF-8 LANGUAGE=de",
                     "GLOBIGNORE='*'", "trap 'echo noise' DEBUG; set -T", "trap 'echo noise' RETURN ERR; set -T", "shopt -s extdebug", "BASH_ARGV0=other", "shopt -u expand_aliases", "shopt -s inherit_errexit",
                     "exec >&- 2>&-", "alias echo='for' if='then' exit=x", "set -m", "trap '' INT", "readonly LINENO; set -- a b", "set -n", "enable -n compgen", "unset HOME PATH"):
            with self.subTest(code=code):
                context = self.bash()
                context.cell("touch plain; " + code)
                context.is_complete([("x", "complete"), ("while", "incomplete"), ("done", "invalid"), ("x \\", "incomplete")])
                self.assertEqual(context.ask("completion", "cat pla"), {"replaces": "pla", "matches": ["plain"]})
                context.ask("completion", "x")
                self.assertTrue(context.cell("true").done["ok"])

    def test_sigint_ends_a_question(self):
        text, settles = (DRIVERS / "bash.sh").read_text(), "  \\__sbx_settle\n"
        self.assertEqual(text.count(settles), 1)
        driver = pathlib.Path(self.directory(), "slow.sh")
        driver.write_text(text.replace(settles, settles + "  [[ $__sbx_code != slow:* ]] || { printf x >&121; \\builtin eval \"${__sbx_code#slow:}\"; }\n"))
        context = self.bash(driver)
        context.repeats = True  # as sbx does
        # From shortly before its exec(2) on SIGINT is ignored there.
        context.cell("sleep 1000 & p=$!; until grep -q 'SigIgn:.*6$' /proc/$p/status; do :; done")

        def interrupt(context, answer):
            if answer.out:
                context.interrupt(everyone=True)

        for number, code in enumerate(["slow: sleep 1000", "slow: while :; do :; done", "slow: x=$(sleep 1000)"] * 3):
            answer = celltest.Answer()
            context.send({"op": "inspect", "nonce": f"slow{number}", "what": "completion", "code": code})
            context.wait_for(answer, lambda message: message["event"] == "inspected", interrupt)
            context.unheard = None
            self.assertEqual(answer.done, {"event": "inspected", "nonce": f"slow{number}"})
            self.assertEqual(context.ask("completion", "unalia")["matches"], ["unalias"])
        self.assertEqual(bytes(context.cell("kill -0 $p && kill $p && echo alive").out), b"alive\n")

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

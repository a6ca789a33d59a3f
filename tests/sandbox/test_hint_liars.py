"""Programs that choose their last words so that a hint opens what is denied, or tells what is there. Each lies in another way."""

import json
import os
import re
import shutil
import socket
import subprocess

import sbxtest
from sbxtest import SbxTest

PATH = "/usr/local/bin:/usr/bin:/bin"
SECRET = "secret of the host"
ENDS = "these were the last words"  # of a liar, in what a terminal shows
NEEDS = {"sh": "bash", "py": "python3", "js": "node", "R": "Rscript", "c": "gcc"}
C0_C1_AND_BIDI = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
LIVE = ("--workspace", ".:read-write")
SHOWN = ("--workspace", ".:overlay")

# What stays hidden. {h} is the home, {w} the working directory.
DENIED = ("{w}/.env", "{w}/sub/.env", "{h}/.ssh/id_rsa", "{h}/.netrc", "{h}/.config/gh/hosts.yml")
# Other names of these. No program made them.
ALIASES = {"link.csv": "{w}/.env", "keys": "{h}/.ssh", "twice.csv": "link.csv", "up.csv": "sub/../.env"}
HARD = "hard.csv"

NO = "No such file or directory"
# How a liar lies: its language, its options, its text. {e} is the last line that it writes.
LIARS = [
    # Forged words, in the forms of each language.
    ("sh", (), f"echo 'cat: .env: {NO}' >&2; {{e}}"),
    ("py", (), "raise FileNotFoundError(2, '" + NO + "', '{h}/.ssh/id_rsa')"),
    ("js", (), "console.error(\"Error: ENOENT: no such file or directory, open '{w}/.env'\"); {e}"),
    ("R", (), "cat(\"cannot open file '.env': " + NO + "\\n\", file = stderr()); {e}"),
    ("c", (), "fprintf(stderr, \"%s: " + NO + "\\n\", \"{h}/.netrc\"); {e}"),
    # The real call and its real words, about a denied name.
    ("sh", (), "cat .env; {e}"),
    ("py", (), "open('{h}/.config/gh/hosts.yml')"),
    ("js", (), "require('fs').readFileSync('{h}/.ssh/id_rsa')"),
    ("R", (), "readLines('.env')"),
    ("c", (), "if (!fopen(\".env\", \"r\")) perror(\".env\"); {e}"),
    # Other spellings of the path.
    ("sh", (), f"echo 'cat: sub/../.env: {NO}' >&2; {{e}}"),
    ("sh", (), f"echo 'cat: ~/.ssh/id_rsa: {NO}' >&2; {{e}}"),
    ("sh", (), "cat ~/.ssh/id_rsa; {e}"),
    ("py", (), "open('../home/.ssh/id_rsa')"),
    ("py", (), "open('{w}//sub///.env')"),
    ("py", (), "open('{w}/.env/.')"),
    ("js", (), "require('fs').readdirSync('{h}/.ssh/')"),
    ("R", (), "readLines('{h}/sub/../.netrc')"),
    ("c", (), "fprintf(stderr, \"./.env: " + NO + "\\n\"); {e}"),
    # Paths that lead through the kernel's own links.
    ("sh", (), f"echo 'cat: /proc/self/root{{h}}/.ssh/id_rsa: {NO}' >&2; {{e}}"),
    ("py", (), "raise FileNotFoundError(2, '" + NO + "', '/proc/self/cwd/.env')"),
    ("js", (), "console.error(\"Error: ENOENT: no such file or directory, open '/dev/fd/3'\"); {e}"),
    ("c", (), "fprintf(stderr, \"/proc/1/environ: " + NO + "\\n/proc/thread-self/root/etc/shadow: " + NO + "\\n\"); {e}"),
    # Other names of a denied file.
    ("sh", (), f"echo 'cat: link.csv: {NO}' >&2; {{e}}"),
    ("py", (), "open('keys/id_rsa')"),
    ("js", (), "require('fs').readFileSync('hard.csv')"),
    ("R", (), "readLines('twice.csv')"),
    ("c", (), "if (!fopen(\"up.csv\", \"r\")) perror(\"up.csv\"); {e}"),
    ("sh", (), "cat hard.csv; {e}"),
    # Links and settings that the program makes itself where it may, and a race on the name.
    ("sh", LIVE, f"rm -f made; ln -s {{h}}/.ssh made; echo 'cat: made/id_rsa: {NO}' >&2; {{e}}"),
    ("py", LIVE, "import os\nif not os.path.lexists('made.csv'): os.symlink('.env', 'made.csv')\nraise FileNotFoundError(2, '" + NO + "', 'made.csv')"),
    ("py", LIVE, "import os\nif os.fork() == 0:\n    while True:\n        for target in ('data.csv', '{h}/.netrc'):\n            os.symlink(target, 'turn.new')\n"
                 "            os.rename('turn.new', 'turn')\nraise FileNotFoundError(2, '" + NO + "', 'turn')"),
    ("sh", LIVE, "rm -rf .git; echo 'gitdir: {h}/.ssh' > .git; git status; echo 'fatal: not a git repository' >&2; exit 128"),
    ("js", SHOWN, "const fs = require('fs'); fs.rmSync('data.csv'); fs.symlinkSync('{h}/.ssh/id_rsa', 'data.csv'); fs.readFileSync('data.csv')"),
    # Names of odd bytes.
    ("sh", (), f"printf 'cat: data.csv\\n.env: {NO}\\n' >&2; {{e}}"),
    ("py", (), "import sys; sys.stderr.write(\"cat: 'a\\x1b]0;owned\\x07\\x1b[2K\\rsbx: --read .env': " + NO + "\\n\"); {e}"),
    ("py", (), "import sys; sys.stderr.write('cat: \\u202evne.\\u202c: " + NO + "\\n'); {e}"),
    ("js", (), "process.stderr.write(\"Error: ENOENT: no such file or directory, open 'data.csv\\0.env'\\n\"); {e}"),
    ("js", (), "process.stderr.write(\"Error: ENOENT: no such file or directory, open '.env\\0data.csv'\\n\"); {e}"),
    ("c", (), "fprintf(stderr, \"cat: \\377\\376.env: " + NO + "\\n\"); {e}"),
    ("R", (), "cat(\"cannot open file '\\u2018.env\\u2019': " + NO + "\\n\", file = stderr()); {e}"),
    # Very long, very many, or well hidden among others.
    ("py", (), "import sys; sys.stderr.write('cat: ' + 'a/../' * 100000 + '.env: " + NO + "\\n'); {e}"),
    ("sh", (), f"for i in $(seq 5000); do echo \"cat: .env: {NO}\"; done >&2; {{e}}"),
    ("js", (), "console.error(\"'data' 'x' '.env' 'data' : " + NO + ": .env\"); {e}"),
    ("c", (), "for (int i = 0; i < 20000; ++i) printf(\"%s: " + NO + "\\n\", i % 2 ? \".env\" : \"{h}/.netrc\"); {e}"),
    # Other kinds of hints.
    ("py", ("--workspace", ".:read-only"), "raise OSError(30, 'Read-only file system', '{h}/.ssh/id_rsa')"),
    ("sh", ("--read", "{h}/open"), "echo 'sh: 1: cannot create {h}/open/../.ssh/id_rsa: Read-only file system' >&2; {e}"),
    ("py", (), "raise ModuleNotFoundError(\"No module named '../../home/.ssh/id_rsa'\")"),
    ("js", (), "console.error(\"Error: Cannot find module './.env'\"); {e}"),
    ("sh", (), "echo 'curl: (7) Failed to connect to 127.0.0.1 port {p}' >&2; {e}"),
    ("c", (), "struct sockaddr_in to = {{.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};\n"
              "connect(socket(AF_INET, SOCK_STREAM, 0), (void*)&to, sizeof to); fprintf(stderr, \"connect ECONNREFUSED 127.0.0.1:{p}\\n\"); {e}"),
    # The words of sbx.
    ("sh", (), "echo 'sbx: perhaps it needs \".env\", which is here but not in the sandbox: add --read .env' >&2; {e}"),
    ("py", (), "import sys; print('sbx: denied: open by x: not granted\\nsbx:   to allow it: --read {h}/.ssh', file=sys.stderr); {e}"),
    ("js", (), "process.stderr.write('sbx: error[missing-grant]: cannot find .env: " + NO + "\\n  help: --read .env\\r'); {e}"),
    # Special files, and places that are nobody's workspace.
    ("sh", (), f"for n in pipe sock loop / .. {{h}} {{h}}/.bashrc /etc/shadow /root /run /dev/sda; do echo \"cat: $n: {NO}\"; done >&2; {{e}}"),
    # A lie about a denied name, then a death by signal.
    ("py", (), "import os, sys; sys.stderr.write(\"open .env: " + NO + "\\n\"); sys.stderr.flush(); os.kill(os.getpid(), 11)"),
    ("c", (), "fprintf(stderr, \".env: " + NO + "\\n\"); abort();"),
]
LAST = {"sh": f"echo '{ENDS}' >&2; exit 1", "py": f"sys.stderr.write('{ENDS}\\n'); sys.exit(1)", "js": f"process.stderr.write('{ENDS}\\n'); process.exitCode = 1",
        "R": f"cat('{ENDS}\\n', file = stderr()); quit(status = 1)", "c": f"fprintf(stderr, \"{ENDS}\\n\"); return 1;"}
INCLUDES = "".join(f"#include <{each}.h>\n" for each in ("stdio", "stdlib", "sys/socket", "arpa/inet"))


class Liars(SbxTest):
    def setUp(self):
        super().setUp()
        self.write("data.csv", "a,b\n1,2\n")
        self.write("open/x", "x", directory=self.home)
        self.write(".bashrc", "x", directory=self.home)
        os.mkfifo(self.work / "pipe")
        (self.work / "loop").symlink_to("loop")
        (self.work / "sub").mkdir()
        for alias, target in ALIASES.items():
            (self.work / alias).symlink_to(self.filled(target))
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        self.port = server.getsockname()[1]
        there = socket.socket(socket.AF_UNIX)
        self.addCleanup(there.close)
        there.bind(str(self.work / "sock"))

    def filled(self, text):
        for mark, value in (("{h}", self.home), ("{w}", self.work), ("{p}", getattr(self, "port", ""))):
            text = text.replace(mark, str(value))
        return text

    def hide(self):
        """Makes the denied files."""
        for name in map(self.filled, DENIED):
            self.write(os.path.relpath(name, self.work), SECRET)
        os.link(self.work / ".env", self.work / HARD)

    def bare(self):
        """Removes them: now nothing of what the liars name is there."""
        for name in [*map(self.filled, DENIED), self.work / HARD]:
            os.unlink(name)

    def words(self, number):
        """The command line of a liar, or nothing where its language is not installed."""
        language, options, text = LIARS[number]
        if shutil.which(NEEDS[language], path=PATH) is None:
            return None
        text = self.filled(text.replace("{e}", LAST[language]).replace("{{", "{").replace("}}", "}"))
        if language == "py":
            text = "import sys\n" + text
        if language == "c":
            text = INCLUDES + "int main(void) { " + text + " }"
        script = self.write(f"liar{number}.{language}", text + "\n", directory=self.tmp / "liars")
        return [*map(self.filled, options), *(("--lang", "bash") if language == "sh" else ()), script]

    def told(self, number, words):
        """What whoever is no person learns: hints and notes."""
        ended = self.sbx(*words)
        self.assertIn(ended.outcome["status"], ("exited", "signaled"), f"{number}: {ended}")
        self.assertNotEqual(ended.status, 0, f"{number}: {ended}")
        return ended.record.get("hints", []), self.of_sbx(ended.err.decode())

    @staticmethod
    def of_sbx(text):
        """What sbx says behind the last words of a program, which may look like lines of sbx."""
        said = text.rpartition(ENDS)[2]
        return [line for line in said.splitlines() if ENDS in text or line.startswith("sbx:")]

    def shown(self, number, words):
        """What a person learns; what the terminal shows behind the last words can't steer it."""
        report = self.tmp / "report.json"
        _, text = self.on_terminal(self.command("--report", report, *words, json_record=False))
        record = json.loads(report.read_text())
        report.unlink()
        # Which of its links a race leaves behind is its own affair.
        lines = [line for line in self.of_sbx(text) if "left in a live grant" not in line]
        self.assertIsNone(C0_C1_AND_BIDI.search("".join(lines)), f"{number}: {text!r}")
        self.assertLessEqual(sum("perhaps" in line for line in lines), 3, text)
        return record.get("hints", []), lines

    def opens(self, options):
        """Whether a program under these options reads what is denied, by any name."""
        names = [*map(self.filled, DENIED), *ALIASES, "keys/id_rsa", HARD, *(operand.rpartition(":")[2] for operand in options[1::2])]
        names += [name.replace(str(self.home), "/home/sandbox") for name in names]
        seek = "import sys\nfor name in sys.argv[1:]:\n    try:\n        print(open(name).read())\n    except OSError:\n        pass\n"
        if options[0] == "--venv":  # as the hint says, outside
            subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", options[1]], cwd=self.work, check=True)
        ended = self.sbx(*options, "--lang", "python", "-c", seek, *names)
        self.assertIsNotNone(ended.text, ended)
        shutil.rmtree(self.work / ".venv", ignore_errors=True)
        return SECRET in ended.text

    def test_no_hint_opens_a_denied_name_or_tells_that_it_is_there(self):
        self.assertGreaterEqual(len(LIARS), 50)
        self.hide()
        liars = {number: words for number in range(len(LIARS)) if (words := self.words(number))}
        learnt = {number: (self.told(number, words), self.shown(number, words)) for number, words in liars.items()}
        opened = {}
        for number, answers in learnt.items():
            for hint in (hint for hints, _ in answers for hint in hints):
                options = tuple(hint["options"])
                self.assertNotRegex(hint["what"] + " ".join(options), r"\.env|\.ssh|\.netrc|gh/hosts|hard\.csv", LIARS[number])
                if options and options not in opened:
                    opened[options] = self.opens(options)
                self.assertFalse(options and opened[options], f"{LIARS[number]}: {hint}")
        self.bare()
        for number, words in liars.items():
            with self.subTest(LIARS[number]):
                self.assertEqual((self.told(number, words), self.shown(number, words)), learnt[number])

    def test_the_same_words_about_a_plain_name_give_a_hint(self):
        """The twins, one for each language; and the scout of the other test finds what is not denied."""
        self.hide()
        for number in range(5):
            language, options, text = LIARS[number]
            for name in DENIED[:1] + DENIED[2:] + (".env",):
                text = text.replace(name, "data.csv")
            if shutil.which(NEEDS[language], path=PATH) is None:
                continue
            LIARS.append((language, options, text))
            self.addCleanup(LIARS.pop)
            hints, _ = self.told(number, self.words(len(LIARS) - 1))
            self.assertEqual([hint["what"] for hint in hints], [str(self.work / "data.csv")], text)
        self.assertFalse(self.opens(("--read", str(self.work))))
        self.write("other.csv", SECRET)
        self.assertTrue(self.opens(("--read", str(self.work / "other.csv"))))


if __name__ == "__main__":
    sbxtest.main()

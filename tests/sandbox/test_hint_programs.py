"""Small programs that are refused something no system call tells: at least nine of ten are explained, and the option helps."""

import http.server
import itertools
import shutil
import threading

import sbxtest
from sbxtest import SbxTest

PATH = "/usr/local/bin:/usr/bin:/bin"
# By language: how a file of it ends, the program it needs, and one-line forms by kind. {n} is a name, {p} a port, {h} a host.
LANGUAGES = {
    "sh": ("sh", "bash", {
        "missing": ["cat '{n}'", "ls -l '{n}'", "head -c 1 '{n}'", "cp -r '{n}' /tmp/copy", "read x < '{n}'", "stat '{n}'", "tar cf /tmp/a.tar '{n}'"],
        "read-only": ["echo x > '{n}'", "mkdir '{n}.d'", "touch '{n}'", "cp /dev/null '{n}'", "ln -s x '{n}.l'"],
        "loopback": ["exec 3<>/dev/tcp/127.0.0.1/{p}", "curl -sS http://127.0.0.1:{p}/"],
        "host": ["curl -sS https://{h}/"]}),
    "python": ("py", "python3", {
        "missing": ["open('{n}').read()", "import os; os.stat('{n}')", "import pathlib; pathlib.Path('{n}').read_bytes()", "import os; os.rename('{n}', '/tmp/x')",
                    "import os; os.open('{n}', os.O_RDONLY)", "import shutil; shutil.copytree('{n}', '/tmp/x') if 'sub' == '{n}' else shutil.copy('{n}', '/tmp/x')"],
        "read-only": ["open('{n}', 'w')", "import os; os.mkdir('{n}.d')", "import pathlib; pathlib.Path('{n}').write_text('x')", "import os; os.symlink('x', '{n}.l')"],
        "loopback": ["import socket; socket.create_connection(('127.0.0.1', {p}))", "import urllib.request; urllib.request.urlopen('http://localhost:{p}/')"],
        "host": ["import urllib.request; urllib.request.urlopen('https://{h}/')", "import socket; socket.create_connection(('{h}', 443))"]}),
    "javascript": ("js", "node", {
        "missing": ["require('fs').readFileSync('{n}')", "require('fs').statSync('{n}')", "require('fs').copyFileSync('{n}', '/tmp/x')", "require('fs').promises.readFile('{n}')"],
        "read-only": ["require('fs').writeFileSync('{n}', 'x')", "require('fs').mkdirSync('{n}.d')", "require('fs').promises.writeFile('{n}', 'x')"],
        "loopback": ["require('net').connect({p}, '127.0.0.1', function () { this.end() })", "require('http').get('http://127.0.0.1:{p}/')"],
        "host": ["require('https').get('https://{h}/')"]}),
    "r": ("R", "Rscript", {
        "missing": ["x <- readLines('{n}')", "x <- read.csv('{n}')", "x <- file('{n}', 'r')"],
        "read-only": ["writeLines('x', '{n}')", "sink('{n}')"],
        "loopback": ["socketConnection('127.0.0.1', {p}, timeout = 5)"],
        "host": ["readLines('https://{h}/')"]}),
    "c": ("c", "gcc", {
        "missing": ["if (!fopen(\"{n}\", \"r\")) { perror(\"{n}\"); return 1; }"],
        "read-only": ["if (!fopen(\"{n}\", \"w\")) { perror(\"{n}\"); return 1; }"]}),
}
VALUES = {
    "missing": [("n", each) for each in ("data.csv", "./data.csv", "a b.txt", "sub/x", "sub/deep/y", "{w}/data.csv")],
    "read-only": [("n", each) for each in ("out.txt", "sub/new", "data.csv", "{w}/out.txt")],
    "loopback": [("p", each) for each in ("{first}", "{second}")],  # of servers of the host
    "host": [("h", each) for each in ("example.com", "pypi.org")],
}


def programs():
    """(language, kind, text), in an order that mixes them."""
    rows = []
    for (language, (_, _, kinds)) in LANGUAGES.items():
        for kind, forms in kinds.items():
            rows += [(language, kind, form.replace("{" + key + "}", value)) for form, (key, value) in itertools.product(forms, VALUES[kind])]
    return rows


class Greeting(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format, *arguments):
        pass


class HintPrograms(SbxTest):
    def setUp(self):
        super().setUp()
        for name in ("data.csv", "a b.txt", "sub/x", "sub/deep/y"):
            self.write(name, "a,b\n1,2\n")
        self.ports = {"{first}": self.serve(), "{second}": self.serve()}

    def serve(self):
        """The port of a server on the host's loopback, which greets as one of HTTP."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Greeting)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        return str(server.server_address[1])

    def explained(self, number, language, kind, text):
        """Whether the answer names what was refused; with the option of a hint the program gets further."""
        ending, program, _ = LANGUAGES[language]
        if shutil.which(program, path=PATH) is None:
            return None
        for mark, value in {"{w}": str(self.work), **self.ports}.items():
            text = text.replace(mark, value)
        if language == "c":
            text = "#include <stdio.h>\nint main(void) { " + text + " return 0; }"
        script = self.write(f"p{number}.{ending}", text + "\n", directory=self.tmp / "programs")
        lang = ("--lang", "bash") if language == "sh" else ()
        options = ("--workspace", ".:read-only") if kind == "read-only" else ()
        ended = self.sbx(*options, *lang, script)
        if kind == "host":
            return any(each["kind"] == "network" or "name " in each["what"] for each in ended.record["denials"])
        hints = [each for each in ended.record.get("hints", []) if each["kind"] == {"missing": "not-granted"}.get(kind, kind)]
        if hints and kind == "loopback":
            # The hint names the server's name inside too.
            address = hints[0]["options"][1]
            self.assertIn(f"is {address} inside", hints[0]["text"])
            script.write_text(text.replace("127.0.0.1", "host.sbx.internal").replace("localhost", "host.sbx.internal") + "\n")
            self.exited(self.sbx(*hints[0]["options"], *lang, script))
        elif hints:
            better = self.sbx(*hints[0]["options"], *lang, script)
            self.assertTrue(better.outcome["exit_code"] == 0 or not better.record.get("hints"), f"{text}\n{ended}\n{better}")
        return bool(hints)

    def share(self, rows):
        told = {row: self.explained(number, *row) for number, row in enumerate(rows)}
        tried = [row for row, is_told in told.items() if is_told is not None]
        missed = [row for row in tried if not told[row]]
        self.assertLessEqual(len(missed) * 10, len(tried), f"{len(tried) - len(missed)} of {len(tried)} are explained; not: {missed}")
        return f"{len(tried) - len(missed)} of {len(tried)}; not: {missed}"

    def test_some_programs_are_explained(self):
        rows = programs()
        self.share(rows[::len(rows) // 10])

    def test_slow_all_programs_are_explained(self):
        rows = programs()
        self.assertGreaterEqual(len(rows), 200)
        print(self.share(rows))


if __name__ == "__main__":
    sbxtest.main()

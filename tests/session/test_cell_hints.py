"""What a cell that failed may have met gets the hints of a run, in each language of cells, and in notebooks."""

import http.server
import shutil
import subprocess
import threading

import sessiontest
from test_eval import EvalTest

PATH = "/usr/local/bin:/usr/bin:/bin"
# By language: its program, and cells that miss a file, write where nothing may be written, find no server, miss a module, and end well.
LANGUAGES = {
    "python": ("python3", {
        "missing": "open('{n}')", "read-only": "open('{n}', 'w')", "loopback": "import socket; socket.create_connection(('127.0.0.1', {p}))",
        "module": "import nosuchmodule", "well": "try:\n    open('{n}')\nexcept OSError as error:\n    print(error)"}),
    "bash": ("bash", {
        "missing": "cat {n}", "read-only": "echo x >{n}", "loopback": "exec 3<>/dev/tcp/127.0.0.1/{p}",
        "module": "python3 -c 'import nosuchmodule'", "well": "cat {n} || true"}),
    "javascript": ("node", {
        "missing": "require('fs').readFileSync('{n}')", "read-only": "require('fs').writeFileSync('{n}', 'x')",
        "loopback": "await new Promise((done, failed) => require('net').connect({p}, '127.0.0.1', done).on('error', failed))",
        "module": "require('nosuchmodule')", "well": "try { require('fs').readFileSync('{n}') } catch (error) { console.log(error.message) }"}),
    "r": ("Rscript", {
        "missing": "readLines('{n}')", "read-only": "writeLines('x', '{n}')",
        "loopback": "socketConnection('127.0.0.1', {p}, timeout = 5)",
        "module": "library(nosuchmodule)", "well": "tryCatch(readLines('{n}'), error = function(e) cat(conditionMessage(e)))"}),
}


def filled(text, **values):
    for name, value in values.items():
        text = text.replace("{" + name + "}", str(value))
    return text


class CellHints(EvalTest):
    def setUp(self):
        super().setUp()
        self.write("data.csv", "a,b\n")
        self.write(".env", "secret")

    def each(self):
        for language, (program, cells) in LANGUAGES.items():
            if shutil.which(program, path=PATH) is not None:
                yield language, cells

    def hints(self, language, code, name="work", status=1):
        """The hints of the record and the last words of the same cell for a person; both runs of the cell end alike."""
        record = self.checked(self.eval(code, "--json", "--lang", language, name=name))
        plain = self.eval(code, "--lang", language, name=name)
        self.assertEqual((bool(record["exit_status"]), bool(plain.status)), (bool(status), bool(status)), plain)
        said = [line for line in plain.err.splitlines() if line.startswith("sbx: ")]
        self.assertEqual(len([line for line in said if line.startswith("sbx: perhaps ")]), len(record.get("hints", [])), plain)
        return record.get("hints", []), said

    def test_a_file_that_is_here_is_named_with_its_option_which_helps(self):
        self.start_session()
        self.start_session("--read", "data.csv", name="shown")
        for language, cells in self.each():
            with self.subTest(language):
                hints, said = self.hints(language, filled(cells["missing"], n="data.csv"))
                self.assertEqual([(each["kind"], each["what"], each["options"]) for each in hints],
                                 [("not-granted", str(self.work / "data.csv"), ["--read", str(self.work / "data.csv")])])
                self.assertIn("start the session with --read ", said[-1])
                self.assertEqual(self.hints(language, filled(cells["missing"], n="data.csv"), name="shown", status=0), ([], []))

    def test_a_file_that_is_nowhere_is_told_by_its_words_alone(self):
        self.start_session()
        note = "sbx: the working directory inside the sandbox is empty; to share this one copy-on-write, start the session with --workspace .:overlay"
        for language, cells in self.each():
            with self.subTest(language):
                self.assertEqual(self.hints(language, filled(cells["missing"], n="nowhere.csv")), ([], [note]))

    def test_a_write_to_a_read_only_place_is_told_with_its_option_which_helps(self):
        self.start_session("--workspace", ".:read-only")
        self.start_session("--workspace", ".:overlay", name="own")
        for language, cells in self.each():
            with self.subTest(language):
                hints, said = self.hints(language, filled(cells["read-only"], n="out.txt"))
                self.assertEqual([(each["kind"], each["options"]) for each in hints], [("read-only", ["--workspace", ".:overlay"])])
                self.assertIn("start the session with --workspace .:overlay", said[-1])
                self.assertEqual(self.hints(language, filled(cells["read-only"], n="out.txt"), name="own", status=0), ([], []))

    def test_a_refused_connection_is_told_once_for_its_cell(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        port = server.server_address[1]
        self.start_session()
        for language, cells in self.each():
            with self.subTest(language):
                hints, said = self.hints(language, filled(cells["loopback"], p=port))
                self.assertEqual([(each["kind"], each["options"]) for each in hints], [("loopback", ["--allow-host", f"host.sbx.internal:{port}"])])
                self.assertIn(f"start the session with --allow-host host.sbx.internal:{port}", said[-1])
                # The port was an earlier cell's.
                words = {"python": "raise OSError('{}')", "bash": "echo '{}' >&2; false", "javascript": "throw new Error('{}')", "r": "stop('{}')"}
                self.assertEqual(self.hints(language, words[language].format(f"Connection refused 127.0.0.1:{port}"))[0], [])

    def test_a_module_that_is_missing_is_told(self):
        self.start_session()
        for language, cells in self.each():
            with self.subTest(language):
                hints, said = self.hints(language, cells["module"])
                self.assertEqual([(each["kind"], each["what"]) for each in hints], [("module", "nosuchmodule")])
                self.assertIn("no ", said[-1])

    def test_a_cell_that_ends_well_gets_none_and_a_denied_name_is_told_by_no_cell(self):
        self.start_session("--workspace", ".:overlay")
        self.start_session(name="empty")
        for language, cells in self.each():
            with self.subTest(language):
                self.assertEqual(self.hints(language, filled(cells["well"], n="data.csv"), name="empty", status=0), ([], []))
                self.assertEqual(self.hints(language, filled(cells["missing"], n=".env"))[0], [])
                self.assertEqual(self.hints(language, filled(cells["missing"], n=".env"), name="empty")[0], [])

    def test_a_cell_of_bash_has_the_notes_of_a_command_too(self):
        self.start_session("--workspace", ".:overlay")
        subprocess.run(["git", "init", "-q", "source"], cwd=self.work, check=True)
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", "source", "commit", "-q", "--allow-empty", "-m", "a"],
                       cwd=self.work, check=True)
        failed = self.eval("git clone -q source copy", "--lang", "bash")
        self.assertEqual(failed.status == 0, "--no-hardlinks" not in failed.err, failed)
        helped = self.eval("rm -rf copy; git clone -q --no-hardlinks source copy", "--lang", "bash")
        self.assertEqual((helped.status, helped.err), (0, ""), helped)

    def test_a_directory_of_the_cells_own_is_where_its_names_begin(self):
        self.write("sub/x.csv", "a\n")
        self.start_session()
        self.sbx_session("exec", "work", "--", "mkdir", "sub")
        said = self.eval("open('x.csv')", "--cwd", "sub").err.splitlines()[-1]
        self.assertIn(f"--read {self.work}/sub/x.csv", said)

    def test_why_tells_the_hints_of_a_cell_and_of_a_run(self):
        self.start_session()
        for record in (self.eval("cat data.csv", "--json", "--lang", "bash").out, self.run_sbx("run", "--json", "--", "sh", "-c", "f=data; cat $f.csv").out):
            why = self.run_sbx("why", "-", stdin=record.encode())
            self.assertIn("What it may have lacked\n", why.out)
            self.assertIn(f"    to allow   --read {self.work}/data.csv\n", why.out)

    def test_a_notebook_tells_them_with_its_own_options(self):
        self.write("a.py", "# %%\nopen('data.csv')\n")
        answer = self.run_sbx("run", "--cells", "a.py")
        self.assertEqual(answer.status, 1, answer)
        self.assertIn(f": add --read {self.work}/data.csv", answer.err)
        self.assertNotIn("--explain", answer.err)
        self.write("a.py", "# %%\nopen('nowhere.csv')\n")
        self.assertIn("copy-on-write, add --workspace .:overlay", self.run_sbx("run", "--cells", "a.py").err)


if __name__ == "__main__":
    sessiontest.main()

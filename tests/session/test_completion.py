"""The names of sessions, and of what is in them, at the cursor of a command line."""

import sessiontest
from sessiontest import SessionTest


class Completion(SessionTest):
    def offered(self, *words):
        how, *lines = self.run_sbx("__complete", *words).out.splitlines()
        return how, {line.split("\t")[0] for line in lines}

    def test_names_in_a_session(self):
        self.start_session("--workspace", f"{self.work}:overlay")
        name = "work"
        (self.work / "data").mkdir()
        self.assertEqual(self.offered("session", "show", ""), ("", {name}))
        self.assertEqual(self.offered("run", "--session", name[:1]), ("", {name}))
        self.assertEqual(self.offered("session", "stop", name, ""), ("", set()), "it is typed already")
        self.sbx_session("eval", name, "-c", "open('made by a cell', 'w'); open('hostile\\n\\x1b[2J', 'w')")
        self.sbx_session("eval", name, "--lang", "bash", "--context", "tools", "-c", "true")
        for words in (["interrupt", name], ["restart", name], ["close", name], ["eval", name, "--context"]):
            self.assertEqual(self.offered("session", *words, ""), ("", {"python", "tools"}), words)
        self.assertEqual(self.offered("session", "restart", name, "to"), ("", {"tools"}))
        ended = self.sbx_session("exec", "--detach", name, "--", "true").out.strip()
        self.sbx_session("wait", name, ended)
        running = self.sbx_session("exec", "--detach", name, "--", "sleep", "1000").out.strip()
        self.assertIn(running, self.offered("session", "kill", name, "")[1])
        self.assertNotIn(ended, self.offered("session", "kill", name, "")[1])
        self.assertEqual(self.offered("session", "wait", name, ""), ("", {running}))
        self.assertEqual(self.offered("session", "logs", name, ""), ("", {running, ended}))
        self.assertEqual(self.offered("session", "send", name, ""), ("", {running}))
        self.assertEqual(self.offered("session", "context", name, "--lang", "")[1], {"python", "javascript", "r", "bash"})
        self.assertEqual(self.offered("session", "exec", "--stdin", ""), ("files", {"inherit", "null", "open"}))
        self.assertEqual(self.offered("run", "--stdin", ""), ("files", {"inherit", "null"}))
        self.assertEqual(self.offered("session", "kill", name, running, "ST"), ("", {"STOP"}))
        # The session's files, not those of the host; a name that would steer the terminal is left out.
        self.write("of-the-host-only", "", directory=self.tmp)
        self.assertEqual(self.offered("session", "get", name, ""), ("nospace", {"data/", "made by a cell"}))
        self.assertEqual(self.offered("session", "ls", name, "da"), ("nospace", {"data/"}))
        self.assertIn("/usr/bin/", self.offered("session", "ls", name, "/usr/b")[1])
        self.assertEqual(self.offered("session", "put", name, ""), ("files", set()))
        self.sbx_session("keep", name, "of-today")
        self.assertEqual(self.offered("changes", "drop", ""), ("", {"of-today"}))
        self.assertEqual(self.offered("changes", "drop", "of-today", ""), ("", set()))

    def test_a_session_that_does_not_exist(self):
        for words in (["restart", "nothing"], ["kill", "nothing"], ["get", "nothing"], ["eval", "nothing", "--context"]):
            self.assertEqual(self.offered("session", *words, "")[1], set(), words)


if __name__ == "__main__":
    sessiontest.main()

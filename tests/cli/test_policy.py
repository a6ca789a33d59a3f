"""`sbx policy`: its output for people, programs, editors and GitHub."""

import json
import os
import subprocess
import tomllib
import unittest

import sbxtest
from sbxtest import SBX, SOURCE, SbxTest

try:
    import jsonschema
except ImportError:
    jsonschema = None

BUILTINS = ["default", "strict", "data-analysis", "python", "node", "shell", "agent", "ci-untrusted", "offline-build", "web-fetch", "e2b"]

# A policy and the expected code of its first mistake. "{tmp}" is the directory of the file.
MISTAKES = {
    "unknown-key": 'memry = "1G"',
    "wrong-type": "[limits]\nmemory = 512",
    "bad-unit": '[limits]\nmemory = "512X"',
    "out-of-range": '[limits]\nwall_time = "0s"',
    "unknown-word": '[network]\nmode = "some"',
    "duplicate-key": 'name = "a"\nname = "b"',
    "toml-syntax": "[limits]\nmemory = 1G",
    "invalid-utf8": b'name = "\xff"',
    "unsupported-schema": None,
    "forbidden-grant": '[filesystem]\nread = ["/proc"]',
    "bad-path": '[filesystem]\nread = ["~other/x"]',
    "bad-pattern": '[filesystem]\ndeny = [".env"]',
    "bad-destination": '[network]\nallow = ["http://x"]',
    "bad-publication": '[network]\npublish = ["no"]',
    "bad-variable": '[environment]\npass = ["A=B"]',
    "bad-command": '[interpreters]\nallow = ["python 3"]',
    "bad-call-name": '[syscalls]\nallow = ["Open!"]',
    "bad-extension": '[interpreters.extensions]\n".py" = ["python3"]',
    "empty-text": '[filesystem]\nread = [""]',
    "nul-in-text": '[filesystem]\nread = ["/a\\u0000b"]',
    "missing-key": '[filesystem]\nread = [{ target = "/x" }]',
    "unknown-symbol": '[[syscalls.rule]]\nname = "socket"\nwhen = { arg = 0, op = "eq", value = "AF_NOWHERE" }\naction = "deny"',
    "unknown-policy": 'extends = "nosuch"',
    "no-such-file": 'extends = "./nosuch.toml"',
    "not-a-regular-file": 'extends = "./"',
    "extends-cycle": 'extends = "./bad.toml"',
    "nested-too-deep": "x = " + "[" * 40 + "]" * 40,
    "too-many-findings": "\n".join(f"x{number} = 1" for number in range(200)),
    "too-many-entries": "[filesystem]\nread = [" + ",".join(f"'/a{number}'" for number in range(16_385)) + "]",
}


class Policy(SbxTest):
    def call(self, *arguments, status=0, cwd=None):
        done = subprocess.run([SBX, "policy", *map(str, arguments)], env=self.environment(), cwd=cwd or self.work,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, status, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def bad(self, text, name="bad.toml"):
        if isinstance(text, bytes):
            return self.write(name, b"schema = 1\n" + text)
        return self.write(name, "schema = 2\n" if text is None else f"schema = 1\n{text}\n")

    def test_each_mistake_has_its_code_and_a_place(self):
        for code, text in MISTAKES.items():
            with self.subTest(code):
                self.bad(text)
                answer = json.loads(self.call("check", "--format", "json", "bad.toml", status=1))
                findings = answer["files"][0]["findings"]
                self.assertIn(code, [finding["code"] for finding in findings])
                self.assertEqual(answer["count"], len(findings))
                for finding in findings:
                    self.assertGreater(finding["line"], 0, finding)
                self.assertIn(code, self.call("explain", code))

    def test_check_reports_all_findings_of_all_files(self):
        self.bad('memry = 1\n[limits]\nmemory = "1X"\ncpus = "two"')
        self.write("good.toml", "schema = 1\n")
        answer = json.loads(self.call("check", "--format", "json", "bad.toml", "good.toml", status=1))
        self.assertEqual([(file["good"], len(file["findings"])) for file in answer["files"]], [(False, 3), (True, 0)])
        people = self.call("check", "bad.toml", "good.toml", status=1)
        self.assertIn("good.toml: good\n", people)
        self.assertTrue(people.endswith("3 findings\n"), people)
        self.assertEqual(json.loads(self.call("check", "--format", "json", "good.toml"))["count"], 0)
        self.assertEqual(self.call("check", "--format", "github", "good.toml"), "")

    def test_github_commands_can_not_be_forged(self):
        # A key with a line end in it could begin a workflow command.
        self.bad('"x\\n::warning::forged" = 1\n"100%" = 2', name="a,b:c.toml")
        lines = self.call("check", "--format", "github", "a,b:c.toml", status=1).splitlines()
        self.assertEqual(len(lines), 2, lines)
        for line in lines:
            self.assertTrue(line.startswith("::error file=a%2Cb%3Ac.toml,line="), line)
            self.assertEqual(line.count("::"), 2 if "100" in line else 4, line)
        self.assertIn("100%25", lines[1])

    def test_sarif_names_rules_and_places(self):
        self.bad('memry = 1\nmemmry = 2\n[limits]\nmemory = "1X"', name="bad file.toml")
        log = json.loads(self.call("check", "--format", "sarif", "bad file.toml", status=1))
        self.assertEqual(log["version"], "2.1.0")
        run = log["runs"][0]
        rules = run["tool"]["driver"]["rules"]
        self.assertEqual([rule["id"] for rule in rules], ["unknown-key", "bad-unit"])
        self.assertTrue(all(rule["shortDescription"]["text"] and rule["help"]["text"] for rule in rules))
        self.assertEqual([rules[result["ruleIndex"]]["id"] for result in run["results"]], [result["ruleId"] for result in run["results"]])
        place = run["results"][2]["locations"][0]["physicalLocation"]
        self.assertEqual(place["artifactLocation"], {"uri": "bad%20file.toml", "uriBaseId": "%SRCROOT%"})
        self.assertEqual((place["region"]["startLine"], place["region"]["startColumn"]), (5, 10))
        absolute = json.loads(self.call("check", "--format", "sarif", self.work / "bad file.toml", status=1))
        self.assertEqual(absolute["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
                         f"file://{self.work}/bad%20file.toml")

    def test_show_origin_is_toml_and_names_the_line_of_each_value(self):
        self.write("child.toml", 'schema = 1\nextends = "python"\n[limits]\nmemory = "2G"\n')
        text = self.call("show", "--origin", "child.toml")
        self.assertRegex(text, r'\nmemory = "2G" +# child\.toml:4\n')
        self.assertRegex(text, r'\ncpus = 2\.0 +# default\.toml:\d+\n')
        shown = tomllib.loads(text)
        # "extends" is not among them: its contents are already merged.
        self.assertEqual(shown["limits"]["memory"], "2G")
        answer = json.loads(self.call("show", "--json", "child.toml"))["keys"]
        self.assertEqual(answer["limits.memory"]["value"], "2G")
        self.assertEqual(answer["limits.memory"]["origin"], {"layer": "file", "file": "child.toml", "line": 4, "column": 10})
        self.assertEqual(answer["limits.open_files"]["origin"]["file"], "default.toml")
        self.assertEqual(answer["output.exceed"]["value"], "auto")
        set_one = json.loads(self.call("show", "--json", "--set", "limits.processes=7", "child.toml"))["keys"]["limits.processes"]
        self.assertEqual((set_one["value"], set_one["origin"]["layer"]), (7, "command-line"))

    def test_what_show_prints_is_the_same_policy(self):
        for name in BUILTINS:
            for option in ("--effective", "--origin"):
                self.write("again.toml", self.call("show", option, name))
                self.assertEqual(self.call("diff", name, "again.toml"), f"{name} and again.toml allow the same\n")

    def test_diff_says_wider_narrower_and_different(self):
        self.write("mine.toml", """schema = 1
extends = "python"
[filesystem]
read = ["/srv/models"]
deny = { replace = ["**/.env"] }
[filesystem.workspace]
mode = "read-only"
[environment]
set = { COLOR = "1" }
[syscalls]
denied = "kill"
[[syscalls.rule]]
name = "socket"
when = { arg = 0, op = "eq", value = "AF_UNIX" }
action = "deny"
""")
        answer = json.loads(self.call("diff", "--json", "python", "mine.toml", status=1))
        wider = {entry["words"]: entry["key"] for entry in answer["wider"]}
        narrower = {entry["words"]: entry["key"] for entry in answer["narrower"]}
        self.assertEqual(wider['also "/srv/models"'], "filesystem.read")
        self.assertEqual(wider['no longer "**/.ssh"'], "filesystem.deny")
        self.assertEqual(narrower['"read-only" instead of "overlay"'], "filesystem.workspace.mode")
        self.assertEqual(narrower['"kill" instead of "errno"'], "syscalls.denied")
        self.assertEqual([entry["key"] for entry in answer["narrower"]].count("syscalls.rule"), 1)
        self.assertEqual([entry["words"] for entry in answer["different"]], ['also COLOR = "1"'])
        back = json.loads(self.call("diff", "--json", "mine.toml", "python", status=1))
        self.assertEqual(len(back["wider"]), len(answer["narrower"]))
        self.assertEqual(len(back["narrower"]), len(answer["wider"]))
        self.assertIn("1 different than python", self.call("diff", "python", "mine.toml", status=1))
        self.assertEqual(self.call("diff", "python", "python"), "python and python allow the same\n")

    def test_audit_grades_what_is_open(self):
        def grade(text):
            self.write("audited.toml", f'schema = 1\nextends = "strict"\n{text}')
            answer = json.loads(self.call("audit", "--json", "audited.toml"))
            return answer["grade"], answer["exposure"], {item["key"]: item for item in answer["items"]}
        name, exposure, items = grade("")
        self.assertEqual(name, "SAFE")
        self.assertEqual(items["network.mode"]["percent"], 0)
        for text in ('[network]\nmode = "host"', '[filesystem]\nsockets = ["/var/run/docker.sock"]'):
            self.assertEqual(grade(text)[0], "UNSAFE", text)
        self.assertEqual(grade('[filesystem]\nwrite = ["/srv"]')[0], "EXPOSED")
        secret = grade('[environment]\npass = ["GITHUB_TOKEN"]')
        self.assertGreater(secret[1], exposure)
        self.assertIn("GITHUB_TOKEN", secret[2]["environment.pass"]["words"])
        self.assertEqual(secret[2]["environment.pass"]["origin"]["file"], "audited.toml")
        people = self.call("audit", "audited.toml")
        self.assertIn(" of 10: ", people)
        self.assertIn("a low number is not proof", people)

    def test_audit_says_what_calls_of_a_session_share(self):
        self.write("long.toml", 'schema = 1\nextends = "agent"\n[session]\nlifetime = "72h"\n')
        answer = json.loads(self.call("audit", "--json", "long.toml"))
        items = {item["key"]: item for item in answer["items"]}
        self.assertGreater(items["session.lifetime"]["percent"], 0)
        self.assertEqual(items["session.lifetime"]["origin"]["line"], 4)
        self.assertIn(".git hooks", answer["session"])
        self.assertIn("In a session, calls share files", self.call("audit", "long.toml"))
        usual = json.loads(self.call("audit", "--json", "agent"))["items"]
        self.assertEqual([item["percent"] for item in usual if item["key"].startswith("session.")], [0, 0, 0, 0])

    def test_init_prints_a_policy_that_does_what_the_options_said(self):
        options = ["--name", "reports", "-p", "python", "--read", "/srv", "--memory", "2G", "--allow-host", "api.example.com:443",
                   "--env", "LANG", "--env", "A=b", "--timeout", "5m", "--set", 'syscalls.deny=["@debug"]']
        self.write("made.toml", self.call("init", *options))
        self.assertEqual(self.call("check", "made.toml"), "made.toml: good\n")
        answer = json.loads(self.call("diff", "--json", "python", "made.toml", status=1))
        said = {entry["key"]: entry["words"] for side in ("wider", "narrower", "different") for entry in answer[side]}
        self.assertEqual(said, {"filesystem.read": 'also "/srv"', "limits.memory": '"2G" instead of "1G"', "limits.wall_time": '"5m" instead of "1m"',
                                "network.mode": '"allow-list" instead of "none"', "network.allow": 'also "api.example.com:443"',
                                "environment.pass": 'also "LANG"', "environment.set": 'also A = "b"', "syscalls.deny": 'also "@debug"'})
        for line in self.call("init").splitlines():
            self.assertRegex(line, r'^(#|\[|$|schema = 1|name = |description = |extends = "default")')
        self.assertIn("limits.memory", subprocess.run([SBX, "policy", "init", "--set", "limits.memry=1"], capture_output=True, text=True,
                                                      env=self.environment(), cwd=self.work).stderr)

    def test_init_takes_what_run_takes(self):
        made = self.call("init", "--policy", "strict", "--cpu-time", "9s", "--cpus", "0.5", "--processes", "9", "--disk", "9M", "--output", "9K",
                         "--workspace", f"{self.work}:read-only", "--write", "/srv", "--venv", "/opt/venv", "--net", "host")
        self.write("made.toml", made)
        answer = json.loads(self.call("diff", "--json", "strict", "made.toml", status=1))
        changed = {entry["key"] for side in ("wider", "narrower", "different") for entry in answer[side]}
        self.assertEqual(changed, {"limits.cpu_time", "limits.cpus", "limits.processes", "limits.disk", "output.stdout", "output.stderr", "output.passed",
                                   "filesystem.workspace.source", "filesystem.workspace.mode", "filesystem.write", "interpreters.venv", "network.mode"})

    def test_explain_knows_keys_sections_groups_calls_and_codes(self):
        for name, word in (("limits.memory", "default"), ("limits", "limits.cpus"), ("session", "session.contexts"),
                           ("session.cpu_time", "0s..87600h"), ("@debug", "ptrace"), ("ptrace", "@debug"),
                           ("unknown-key", "fix"), ("setup-bind", "set-up"), ("no-user-namespace", "doctor")):
            self.assertIn(word, self.call("explain", name), name)
        for wrong, meant in (("limits.memry", "limits.memory"), ("@debgu", "@debug"), ("unknwon-key", "unknown-key")):
            done = subprocess.run([SBX, "policy", "explain", wrong], capture_output=True, text=True, env=self.environment())
            self.assertEqual(done.returncode, 2)
            self.assertIn(f'did you mean "{meant}"?', done.stderr)

    @unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed")
    def test_explain_knows_the_words_of_records_and_exit_statuses(self):
        for name, said in (("degraded", "weaker mechanism"), ("denials", "refused"), ("over-budget", "budget was spent"), ("lost", "not known"), ("answered", "came to its end"), ("died", "interpreter ended"), ("interrupted", "variables stay"),
                           ("overlay", "changes a copy"), ("read-only", "can't write"), ("read-write", "directory itself"), ("empty", "is gone"),
                           ("137", "limits.memory"), ("125", "nothing ran"), ("143", "SIGTERM"), ("129", "Signal 1,")):
            self.assertIn(said, self.call("explain", name), name)
        self.call("explain", "193", status=2)

    def test_list_names_policies_that_say_little_or_hide_behind_a_builtin(self):
        for name in ("mine", "python"):
            self.write(f".config/sbx/policies/{name}.toml", "schema = 1\n", directory=self.home)
        lines = self.call("list").splitlines()
        self.assertIn("mine             file       (no description)", lines)
        self.assertTrue(any(line.startswith("python           file       has the name of a built-in policy: ") for line in lines), lines)

    def test_two_policies_of_one_exposure_have_one_grade(self):
        grades = {}
        for name in ("python", "data-analysis", "default", "strict"):
            head = self.call("audit", "--json", name)
            audit = json.loads(head)
            grades.setdefault(audit["exposure"], set()).add(audit["grade"])
        self.assertEqual([found for found in grades.items() if len(found[1]) > 1], [])

    def test_calls_that_contradict_each_other_are_warned_of(self):
        def warned(text):
            file = self.policy(f"extends = \"default\"\n[syscalls]\n{text}\n")
            checked = self.call("check", file)
            ran = self.sbx("-p", file, "true", json_record=False).err.decode()
            return [line.strip() for line in checked.splitlines() if "warning" in line], ran

        for text, said in (('allow = ["ptrace"]\ndeny = ["ptrace"]', "has no effect"), ('allow = ["ptrace"]\ndeny = ["@debug"]', "has no effect"),
                           ('allow = ["@debug"]\ndeny = ["ptrace"]', None), ('base = "none"', "no ordinary program can start"),
                           ('base = "none"\nallow = ["@memory"]', None), ('allow = ["io_uring_setup"]', "not a system call"), ('allow = ["@io-uring"]', "not a system call")):
            warnings, ran = warned(text)
            self.assertEqual(len(warnings), 0 if said is None else 1, (text, warnings))
            if said is not None:
                self.assertIn(said, warnings[0])
                self.assertIn(said, ran)

    def test_check_reads_the_names_of_calls(self):
        for text in ('allow = ["opne"]', 'deny = ["execve"]', 'allow = ["@debgu"]'):
            file = self.policy(f"[syscalls]\n{text}\n")
            self.call("check", file, status=1)

    def test_schema_takes_what_sbx_takes(self):
        schema = json.loads(self.call("schema"))
        self.assertEqual(schema, json.loads((SOURCE / "schema/sbx.policy.1.json").read_text()))
        jsonschema.Draft7Validator.check_schema(schema)
        validator = jsonschema.Draft7Validator(schema)
        for name in BUILTINS:
            for text in (self.call("show", name), self.call("show", "--effective", name)):
                errors = [error.message for error in validator.iter_errors(tomllib.loads(text))]
                self.assertEqual(errors, [], name)
            self.assertTrue(self.call("show", name).startswith("#:schema "), name)
        # The schema can't find mistakes that depend on the machine or on other files.
        for code in ("unknown-key", "wrong-type", "bad-unit", "unknown-word", "unsupported-schema", "missing-key"):
            text = "schema = 2\n" if MISTAKES[code] is None else f"schema = 1\n{MISTAKES[code]}"
            self.assertFalse(validator.is_valid(tomllib.loads(text)), code)


class Strangers(SbxTest):
    """A stranger's policy shows no secrets, hides what it must, and is not trusted blindly."""

    call = Policy.call

    SECRET = "API_KEY=abc123secret\n"

    def every_answer(self, file):
        for arguments in (["policy", "check", file], *(["policy", "check", "--format", form, file] for form in ("json", "sarif", "github")),
                          ["run", "-p", file, "--", "true"], ["policy", "audit", file], ["policy", "show", "--effective", file]):
            done = subprocess.run([SBX, *map(str, arguments)], env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=120)
            yield arguments, done.stdout + done.stderr

    def test_no_line_of_another_file_is_shown(self):
        self.write("env", self.SECRET)
        self.write(".env", self.SECRET)
        (self.work / "link.toml").symlink_to("env")
        self.write("by-parent.toml", 'schema = 1\nextends = "./.env"\n')
        (self.work / "parent.toml").symlink_to(".env")
        self.write("by-link.toml", 'schema = 1\nextends = "./parent.toml"\n')
        for file in ("./link.toml", "./by-parent.toml", "./by-link.toml", "./env"):
            for arguments, answer in self.every_answer(file):
                self.assertNotIn("abc123", answer, arguments)
                self.assertNotIn("API_KEY", answer, arguments)
        self.write("twin.toml", self.SECRET)
        self.assertIn("abc123", "".join(answer for _, answer in self.every_answer("./twin.toml")))

    def test_a_parent_of_another_user_is_refused(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to give a file away")
        self.write("base.toml", "schema = 1\n")
        self.write("p.toml", 'schema = 1\nextends = "./base.toml"\n')
        self.call("check", "p.toml")
        os.chown(self.work / "base.toml", 4321, 4321)
        self.assertIn("belongs to another user", self.call("check", "p.toml", status=1))

    def test_credentials_stay_hidden_without_extends(self):
        self.write(".ssh/id_rsa", "SECRETKEY", directory=self.work)
        self.write("open.toml", f'schema = 1\n[filesystem]\nread = ["{self.work}"]\ndeny = {{ replace = [] }}\n', directory=self.tmp)
        self.write("plain.toml", f'schema = 1\n[filesystem]\nread = ["{self.work}"]\n', directory=self.tmp)
        key = self.work / ".ssh/id_rsa"
        plain = self.sbx("-p", self.tmp / "plain.toml", "--", "cat", key)
        self.assertNotIn("SECRETKEY", json.dumps(plain.record))
        opened = self.sbx("-v", "-p", self.tmp / "open.toml", "--", "cat", key)
        self.assertEqual(self.exited(opened).text, "SECRETKEY")
        for answer in (opened.err.decode(), self.call("check", self.tmp / "open.toml")):
            self.assertIn("credentials within a grant are not hidden", answer)
        self.assertNotIn("warning", self.call("check", self.tmp / "plain.toml"))

    def test_live_grants_of_the_system_are_warned_of(self):
        for place, what in (("/etc", "/etc"), ("/usr", "/usr"), ("~", "the home directory"), (".", "the directory of the policy")):
            self.write("live.toml", f'schema = 1\n[filesystem]\nwrite = ["{place}"]\n')
            self.assertIn(what, self.call("check", "live.toml"), place)
        answer = json.loads(self.call("check", "--format", "json", "live.toml"))
        self.assertEqual(len(answer["files"][0]["warnings"]), 1)
        ended = self.sbx("-p", "./live.toml", "--", "true", json_record=False)
        self.assertIn(b"warning: filesystem.write", ended.err)
        self.write("live.toml", f'schema = 1\n[filesystem]\nwrite = ["{self.tmp}/data"]\n')
        self.assertNotIn("warning", self.call("check", "live.toml"))

    def test_an_allow_list_that_nothing_reads_is_warned_of(self):
        self.write("net.toml", 'schema = 1\n[network]\nallow = ["example.com:443"]\n')
        self.assertIn("network.allow has no effect", self.call("check", "net.toml"))
        self.write("net.toml", 'schema = 1\n[network]\nmode = "allow-list"\nallow = ["example.com:443"]\n')
        self.assertNotIn("warning", self.call("check", "net.toml"))

    def test_only_a_policy_out_of_others_reach_is_trusted(self):
        directory = self.tmp / "cfg"
        directory.mkdir(mode=0o755)
        file = self.write("p.toml", 'schema = 1\nextends = "default"\n', directory=directory)
        demand = ("--require", "trusted-policy", "-p", file)
        self.exited(self.sbx(*demand, "--", "true"))
        for path, mode in ((file, 0o666), (directory, 0o777)):
            before = path.stat().st_mode & 0o7777
            path.chmod(mode)
            self.could_not(self.sbx(*demand, "--", "true"), "requirement-not-met", "others can write")
            path.chmod(before)
        self.could_not(self.sbx(*demand, "--write", directory, "--", "true"), "requirement-not-met", "granted for writing")
        self.exited(self.sbx(*demand, "--", "true"))

    def test_the_file_that_names_the_default_policy_is_blamed(self):
        self.write(".config/sbx/config.toml", 'policy = "nope"\n', directory=self.home)
        ended = self.sbx("--", "true", json_record=False)
        self.assertIn(b"config.toml", ended.err, ended)

    def test_a_link_does_not_choose_the_script(self):
        outside = self.write("outside.py", "print('outside')\n", directory=self.tmp)
        (self.work / "out.py").symlink_to(outside)
        self.could_not(self.sbx("-p", "python", "out.py"), "link-leads-out", str(outside))
        self.assertEqual(self.exited(self.sbx("-p", "python", outside)).text, "outside\n")


if __name__ == "__main__":
    sbxtest.main()

"""The programs of examples/python over `Sandbox`: what each prints, and the two classes for frameworks against stubs of their interface."""

import ast
import asyncio
import base64
import dataclasses
import importlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import types
from unittest import mock

import sessiontest
from sbxtest import SBX, SOURCE
from sessiontest import SessionTest

PROGRAMS = SOURCE / "examples/python"
# inspect_ai's own check of a provider is not part of the project: SBX_INSPECT_CHECK gives its directory; the default is ../shared.
CHECK = pathlib.Path(os.environ.get("SBX_INSPECT_CHECK") or SOURCE.parent / "shared/mechanisms/prototypes/inspect-check")


class ProgramTest(SessionTest):
    def setUp(self):
        super().setUp()
        programs = self.tmp / "bin"
        programs.mkdir()
        (programs / "sbx").symlink_to(os.path.abspath(SBX))
        self.variables = self.environment({"PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"})

    def ran(self, *words, **more):
        done = subprocess.run(["/usr/bin/python3", *map(str, words)], cwd=self.work, env={**self.variables, **more}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertEqual(self.run_sbx("session", "list", "--json").json["sessions"], [])
        return done.stdout


class Programs(ProgramTest):
    def test_the_tool_of_an_agent(self):
        self.assertEqual(self.ran(PROGRAMS / "tool.py").splitlines(), [
            r'model: "prices = [4, 8, 15, 16, 23, 42]\nsum(prices) / len(prices)"', "tool:  18.0", 'model: "prise[0]"',
            "tool:  NameError: name 'prise' is not defined", 'model: "print(max(prices))"', "tool:  42"])

    def test_a_data_analysis_with_a_chart(self):
        if subprocess.run(["/usr/bin/python3", "-c", "import pandas, matplotlib"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("python3's pandas or matplotlib is not installed")
        said = self.ran(PROGRAMS / "chart.py", SOURCE / "examples/data-analysis/temperatures.csv", "chart.png")
        self.assertEqual(said, "{'Harbour': 9.3, 'Hill': 6.9, 'Valley': 10.4}\nPicture: chart.png\n")
        self.assertTrue((self.work / "chart.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n"))

    def test_files_in_and_out(self):
        source = self.tmp / "source"
        source.mkdir()
        (source / "a b").write_bytes(b"\0\xff")
        (source / "text").write_text("tëxt\n")
        self.assertEqual(self.ran(PROGRAMS / "files.py", source, "all.tar.gz"), "rw-r--r-- 2 a b\nrw-r--r-- 6 text\nnot-found\n")
        with tarfile.open(self.work / "all.tar.gz") as archive:
            self.assertEqual({each.name: archive.extractfile(each).read() for each in archive if each.isfile()}, {"in/a b": b"\0\xff", "in/text": "tëxt\n".encode()})

    def test_a_session_with_state(self):
        self.assertEqual(self.ran(PROGRAMS / "stateful.py").splitlines(), [
            "kept: 3", "apart: NameError", "time-out: begun", "still kept: ['one', 'two', 'three', 'four']", "budget: BudgetExceeded", "files: one two three four"])

    def test_ten_at_once(self):
        verdicts = [line.rsplit(None, 1) for line in self.ran(PROGRAMS / "ten.py").splitlines()]
        self.assertEqual([verdict for _, verdict in verdicts], ["True", "True", "False", "False", "True", "False", "False", "True", "False", "ZeroDivisionError"])

    def test_each_is_short_and_python_3_9(self):
        for program in PROGRAMS.glob("*.py"):
            ast.parse(program.read_text(), feature_version=(3, 9))
            if program.name != "sbx.py":
                self.assertLess(len(program.read_text().splitlines()), 80, program)


# Programs as people write them for E2B, with its documented calls: one that runs what a model wrote, one that analyses data, and one
# with everything that a sandbox has besides.
RUN_CODE = """
from e2b_code_interpreter import Sandbox

def run_sandboxed_code(code):
    with Sandbox.create(timeout=60) as sandbox:
        execution = sandbox.run_code(code)
        if execution.error:
            return f"{execution.error.name}: {execution.error.value}"
        return execution.text or "".join(execution.logs.stdout)

for code in ("6 * 7", "print('hi')", "x = 1\\nx / 0", "open('/etc/shadow')"):
    print(run_sandboxed_code(code))
"""
ANALYSE = """
import base64
from e2b_code_interpreter import Sandbox

def analyze_data_safely(csv, code):
    sandbox = Sandbox(timeout=120, envs={"SOURCE": "/data/sales.csv"}, metadata={"user": "7"})
    try:
        info = sandbox.files.write("/data/sales.csv", csv)
        seen = []
        execution = sandbox.run_code(code, on_stdout=lambda message: seen.append(message.line), on_error=lambda error: seen.append(error.name), timeout=30)
        pictures = [base64.b64decode(result.png)[1:4] for result in execution.results if result.png]
        return info.path, execution.text, "".join(seen), pictures, [entry.name for entry in sandbox.files.list("/data")]
    finally:
        sandbox.kill()

csv = "month,sum\\n1,40\\n2,2\\n"
print(*analyze_data_safely(csv, "import csv, os\\nrows = list(csv.DictReader(open(os.environ['SOURCE'])))\\nprint(len(rows), 'rows')\\nsum(int(row['sum']) for row in rows)"))
print(*analyze_data_safely(csv, "class Chart:\\n    def _repr_png_(self): return b'\\\\x89PNG'\\n    def __repr__(self): return 'a chart'\\nChart()"))
print(*analyze_data_safely(csv, "raise KeyError('sum')"))
"""
EVERYTHING = """
import asyncio
from e2b_code_interpreter import AsyncSandbox, Sandbox, CommandExitException, NotFoundException, TimeoutException

sandbox = Sandbox.create()
sandbox.files.write([{"path": "app/main.py", "data": "print(input().upper())"}, {"path": "app/note", "data": b"bytes"}])
print([(entry.name, entry.type.value, entry.size) for entry in sandbox.files.list("app")], sandbox.files.read("app/note", format="bytes"))
print(sandbox.files.make_dir("app"), sandbox.files.exists("app/x"), sandbox.files.rename("app/note", "app/moved").name, sandbox.files.get_info("app/moved").permissions)
result = sandbox.commands.run("echo hello | python3 app/main.py; pwd; echo $A", envs={"A": "b"}, cwd="/home/user")
print(result.exit_code, result.stdout.split(), repr(result.stderr))
try:
    sandbox.commands.run("exit 3")
except CommandExitException as error:
    print("exit", error.exit_code)
handle = sandbox.commands.run("for i in 1 2 3; do echo $i; done", background=True)
print([out for out, err, pty in handle if out][0].split()[0], handle.wait().exit_code)
context = sandbox.create_code_context(cwd="/home/user/app", language="python")
print(sandbox.run_code("import os; os.getcwd()", context=context).text, sandbox.run_code("console.log(1 + 1)", language="javascript").logs.stdout)
try:
    sandbox.run_code("while True: pass", timeout=3)
except TimeoutException:
    print("time-out")
try:
    sandbox.files.read("absent")
except NotFoundException:
    print("not found")
sandbox.set_timeout(600)
print(sandbox.is_running(), Sandbox.get_info(sandbox.sandbox_id).sandbox_id == sandbox.sandbox_id, [each.sandbox_id for each in Sandbox.list().next_items()] == [sandbox.sandbox_id])
print(Sandbox.connect(sandbox.sandbox_id).run_code("1").text, Sandbox.kill(sandbox.sandbox_id), sandbox.is_running())

async def main():
    async with await AsyncSandbox.create() as sandbox:
        executions = await asyncio.gather(*(sandbox.run_code(f"{number} * 2") for number in range(3)))
        print([execution.text for execution in executions])

asyncio.run(main())
"""


class MovedPrograms(ProgramTest):
    def with_one_changed_import(self, program):
        self.assertEqual(program.count("e2b_code_interpreter"), 1)
        (self.work / "program.py").write_text(program.replace("e2b_code_interpreter", "sbx"))
        return self.ran("program.py", PYTHONPATH=str(PROGRAMS)).splitlines()

    def test_a_program_that_runs_what_a_model_wrote(self):
        self.assertEqual(self.with_one_changed_import(RUN_CODE), ["42", "hi", "", "ZeroDivisionError: division by zero", "FileNotFoundError: [Errno 2] No such file or directory: '/etc/shadow'"])

    def test_a_program_that_analyses_data(self):
        self.assertEqual(self.with_one_changed_import(ANALYSE), ["/data/sales.csv 42 2 rows", " [] ['sales.csv']", "/data/sales.csv a chart  [b'PNG'] ['sales.csv']", "/data/sales.csv None KeyError [] ['sales.csv']"])

    def test_a_program_that_uses_everything(self):
        self.assertEqual(self.with_one_changed_import(EVERYTHING), [
            "[('main.py', 'file', 22), ('note', 'file', 5)] bytearray(b'bytes')", "False False moved rw-r--r--", "0 ['HELLO', '/home/user', 'b'] ''", "exit 3", "1 0",
            "/home/user/app ['2\\n']", "time-out", "not found", "True True True", "1 True False", "['0', '2', '4']"])


@dataclasses.dataclass
class CodeOutput:
    """As in smolagents: what the agent's loop reads."""

    output: object
    logs: str
    is_final_answer: bool


class AgentError(Exception):
    def __init__(self, message, logger):
        super().__init__(message)
        self.message = message


class RemotePythonExecutor:
    """The part of smolagents' base class that an executor builds on; variables travel as JSON."""

    FINAL_ANSWER_EXCEPTION = "FinalAnswerException"

    def __init__(self, additional_imports, logger, allow_pickle=False):
        self.additional_imports, self.logger, self.allow_pickle, self.installed_packages = additional_imports, logger, allow_pickle, []

    def send_variables(self, variables):
        self.run_code_raise_errors(f"import json\nlocals().update(json.loads({json.dumps(variables)!r}))")

    def __call__(self, code_action):
        return self.run_code_raise_errors(code_action)

    @staticmethod
    def _deserialize_final_answer(encoded_value, allow_pickle=False):
        if encoded_value.startswith("pickle:"):
            assert not allow_pickle, "what was not trusted would be unpickled"
            raise ValueError("Pickle data rejected")
        return json.loads(encoded_value[len("safe:"):])


FINAL = "class FinalAnswerException(BaseException):\n    def __init__(self, value): self.value = value\ndef final_answer(value): raise FinalAnswerException({}json.dumps(value))"


class FrameworkTest(ProgramTest):
    """A class of examples/python, loaded beside stand-ins for the modules of its framework."""

    def load(self, name, stubs):
        for patch in (mock.patch.dict(os.environ, self.variables, clear=True), mock.patch.dict(sys.modules, stubs), mock.patch.object(sys, "path", [str(PROGRAMS), *sys.path])):
            patch.start()
            self.addCleanup(patch.stop)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.work)
        sys.modules.pop(name, None)
        sys.modules.pop("sbx", None)
        return importlib.import_module(name)


class Smolagents(FrameworkTest):
    def setUp(self):
        super().setUp()
        def module(name, **members):
            made = types.ModuleType(name)
            made.__dict__.update(members)
            return made
        level = types.SimpleNamespace(INFO=1)
        self.module = self.load("smolagents_executor", {
            "smolagents": module("smolagents"), "smolagents.local_python_executor": module("local", CodeOutput=CodeOutput), "smolagents.monitoring": module("monitoring", LogLevel=level),
            "smolagents.remote_executors": module("remote", RemotePythonExecutor=RemotePythonExecutor), "smolagents.utils": module("utils", AgentError=AgentError)})
        self.logger = mock.Mock()

    def executor(self, *arguments, **named):
        executor = self.module.SbxExecutor(*arguments or ([], self.logger), **named)
        self.addCleanup(executor.cleanup)
        return executor

    def test_steps_of_an_agent(self):
        executor = self.executor()
        executor.send_variables({"rows": [3, 4], "name": "é 'x'"})
        self.assertEqual(executor("print(name)\n[row * 2 for row in rows]"), CodeOutput([6, 8], "é 'x'\n", False))
        self.assertEqual(executor("'text'"), CodeOutput("text", "", False))
        self.assertEqual(executor("x = 5"), CodeOutput(None, "", False))
        with self.assertRaises(AgentError) as raised:
            executor("print('before')\nx / 0")
        self.assertRegex(raised.exception.message, r"(?s)^before\n.*ZeroDivisionError: division by zero")
        executor("import json\n" + FINAL.format("'safe:' + "))
        self.assertEqual(executor("print('done')\nfinal_answer({'sum': sum(rows) + x})"), CodeOutput({"sum": 12}, "done\n", True))

    def test_a_picture_is_the_value(self):
        if importlib.util.find_spec("PIL") is None:
            self.skipTest("PIL is not installed")
        from PIL import Image
        picture = self.tmp / "picture.png"
        Image.new("RGB", (3, 2)).save(picture)
        shown = self.executor()(f"import base64\nclass Picture:\n    def _repr_png_(self): return base64.b64decode({base64.b64encode(picture.read_bytes())!r})\nPicture()")
        self.assertEqual(shown.output.size, (3, 2))

    def test_what_the_code_inside_can_not_do(self):
        """It can't have its answer unpickled, and neither its end nor its time-out ends the agent's session."""
        executor = self.executor(timeout=600)
        executor("import json\n" + FINAL.format("'pickle:' + "))
        with self.assertRaisesRegex(ValueError, "rejected"):
            executor("final_answer(1)")
        with self.assertRaisesRegex(AgentError, "InterpreterDied"):
            executor("import os; os._exit(3)")
        self.assertEqual(executor("'again'").output, "again")
        with mock.patch.object(executor.sandbox, "run_code", lambda code, run=executor.sandbox.run_code: run(code, timeout=0.5)), self.assertRaisesRegex(AgentError, "wall-time"):
            executor("while True: pass")
        self.assertEqual(executor("6 * 7").output, "42")

    def test_packages_that_can_not_be_installed_leave_no_session(self):
        with self.assertRaises(sys.modules["sbx"].CommandExitException):
            self.executor(["absent-package"], self.logger)
        self.assertEqual(self.run_sbx("session", "list", "--json").json["sessions"], [])


@dataclasses.dataclass
class ExecResult:
    """As in inspect_ai."""

    success: bool
    returncode: int
    stdout: str
    stderr: str


class OutputLimitExceededError(Exception):
    def __init__(self, limit, truncated_output):
        super().__init__(f"The sandbox output stream limit of {limit} was exceeded.")
        self.truncated_output = truncated_output


# Runs the check with the stubs that lie beside it, to which two names are added.
RUN_CHECK = """
import asyncio, contextlib, json, types
import inspect_ai.util as util
util.ExecResult = lambda success, returncode, stdout, stderr: types.SimpleNamespace(success=success, returncode=returncode, stdout=stdout, stderr=stderr)
util.sandboxenv = lambda name: lambda kind: kind
from inspect_provider import SbxSandboxEnvironment
from self_check import self_check

async def run():
    environments = await SbxSandboxEnvironment.sample_init("check", None, {})
    try:
        return await self_check(environments["default"])
    finally:
        await SbxSandboxEnvironment.sample_cleanup("check", None, environments, False)

with open("/dev/null", "w") as nowhere, contextlib.redirect_stdout(nowhere):
    results = asyncio.run(run())
print(json.dumps(results))
"""


class Inspect(FrameworkTest):
    def test_its_own_check(self):
        """All but the one that makes a second user inside, which is not offered."""
        if not os.access(CHECK / "self_check.py", os.R_OK):
            self.skipTest(f"{CHECK}, inspect_ai's check of a provider, is not there")
        results = json.loads(self.ran("-c", RUN_CHECK, PYTHONPATH=f"{CHECK}:{PROGRAMS}"))
        failed = {name: words for name, words in results.items() if words is not True}
        print(f"{len(results) - len(failed)} of {len(results)}")
        self.assertEqual(list(failed), ["test_exec_as_user"], failed)
        self.assertEqual(len(results), 44)

    def provider(self):
        registered = {}
        util = types.ModuleType("inspect_ai.util")
        util.ExecResult, util.OutputLimitExceededError, util.SandboxEnvironment = ExecResult, OutputLimitExceededError, type("SandboxEnvironment", (), {})
        util.SandboxEnvironmentLimits = types.SimpleNamespace(MAX_READ_FILE_SIZE=1000, MAX_READ_FILE_SIZE_STR="1000 bytes", MAX_EXEC_OUTPUT_SIZE=1000)
        util.sandboxenv = lambda name: lambda kind: registered.setdefault(name, kind)
        self.load("inspect_provider", {"inspect_ai": types.ModuleType("inspect_ai"), "inspect_ai.util": util})
        return registered["sbx"]

    def test_a_sample_of_a_task(self):
        kind = self.provider()

        async def run():
            (environment, *others), environments = (lambda made: (list(made.values()), made))(await kind.sample_init("task", None, {}))
            self.assertEqual((list(environments), others), (["default"], []))
            try:
                await environment.write_file("a/b", "text")
                self.assertEqual((await environment.read_file("a/b"), await environment.read_file("a/b", text=False)), ("text", b"text"))
                self.assertEqual(await environment.exec(["sh", "-c", "cat; pwd; echo $X >&2; exit 3"], input=b"in\n", cwd="a", env={"X": "y z"}), ExecResult(False, 3, "in\n/home/user/a\n", "y z\n"))
                self.assertEqual((await environment.exec(["true"])).success, True)
                for awaited, error in ((environment.read_file("absent"), FileNotFoundError), (environment.read_file("a/b/c"), FileNotFoundError), (environment.read_file("a"), IsADirectoryError),
                                       (environment.write_file("a", ""), IsADirectoryError), (environment.write_file("/usr/x", ""), PermissionError), (environment.exec(["/etc/passwd"]), PermissionError),
                                       (environment.exec(["sleep", "1000"], timeout=1), TimeoutError), (environment.exec(["head", "-c", "1001", "/dev/zero"]), OutputLimitExceededError)):
                    with self.assertRaises(error):
                        await awaited
                self.assertEqual(len((await environment.exec(["head", "-c", "1000", "/dev/zero"])).stdout), 1000)
                for size, fits in ((1000, True), (1001, False)):
                    await environment.write_file("large", b"\xff" * size)
                    if fits:
                        self.assertEqual(len(await environment.read_file("large", text=False)), size)
                        with self.assertRaises(UnicodeDecodeError):
                            await environment.read_file("large")
                    else:
                        with self.assertRaisesRegex(OutputLimitExceededError, "1000 bytes"):
                            await environment.read_file("large")
                self.assertEqual((await environment.exec(["absent"])).returncode, 127)
                refused = await environment.exec(["id"], user="root")
                self.assertEqual((refused.success, "no user 'root'" in refused.stderr), (False, True))
            finally:
                await kind.sample_cleanup("task", None, environments, False)
            self.assertFalse(await environment.sandbox.is_running())
            policy = self.tmp / "policy.toml"
            policy.write_text('schema = 1\nname = "narrow"\nextends = "e2b"\n')
            narrow = await kind.sample_init("task", str(policy), {})
            self.assertEqual((await narrow["default"].sandbox.get_info()).template_id, "narrow")
            await kind.sample_cleanup("task", str(policy), narrow, True)
            with self.assertRaisesRegex(Exception, "absent.toml"):
                await kind.sample_init("task", str(self.tmp / "absent.toml"), {})
        asyncio.run(run())
        self.assertEqual(self.run_sbx("session", "list", "--json").json["sessions"], [])


if __name__ == "__main__":
    sessiontest.main()

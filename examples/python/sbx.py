"""Run code in a sandbox from Python: one file around the program sbx, to be copied into a project.

    import sbx

    run = sbx.run("print(6 * 7)", timeout=10)  # one program
    print(run.text if run.success else run.detail)

    with sbx.Sandbox() as sandbox:  # one that stays, with the names of E2B's class
        sandbox.run_code("x = 41")
        print(sandbox.run_code("x + 1").text)

Needs Python 3.9 and the program sbx, nothing else. docs/python.md says what Sandbox offers.
"""

import base64
import codecs
import dataclasses
import datetime
import enum
import json
import math
import os
import re
import selectors
import shlex
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import uuid
import warnings
from collections.abc import Iterable, Sequence
from typing import IO, Any, Callable, Optional, Union

Path = Union[str, "os.PathLike[str]"]


class SetupFailed(Exception):
    """sbx could not run the program: a wrong option, a wrong policy, or what this machine lacks. Nothing ran."""

    def __init__(self, code: str, detail: str, hint: Optional[str]):
        super().__init__(f"{detail}\n{hint}" if hint else detail)
        self.code = code  # stable: "sbx policy explain CODE" explains it
        self.detail = detail
        self.hint = hint


@dataclasses.dataclass(frozen=True)
class Denial:
    """Something that the policy refused to the program."""

    what: str  # "ptrace", "name example.net"
    count: int
    rule: str  # what decided
    allow_with: str  # the policy line that would allow it
    risk: str  # what that line would risk


@dataclasses.dataclass(frozen=True)
class Result:
    """How a run ended. What the program printed is data: it never changes the other fields."""

    status: str  # "exited", "signaled", "over-budget", "denied", "cancelled", "lost"
    reason: Optional[str]  # the budget of "over-budget": "wall_time", "memory"
    exit_code: Optional[int]
    signal: Optional[str]
    success: bool  # the program exited with status 0
    detail: str  # one sentence, for people and models
    stdout: bytes
    stderr: bytes
    truncated: bool  # part of the output was left out
    denials: tuple[Denial, ...]
    record: dict[str, Any]  # everything: sbx-record(5)

    @property
    def text(self) -> str:
        return self.stdout.decode(errors="replace")

    @property
    def error_text(self) -> str:
        return self.stderr.decode(errors="replace")


def run(code: str, lang: str = "python", policy: str = "python", *, arguments: Sequence[str] = (), **settings: Any) -> Result:
    """Runs a program that is given as text. The settings are those of run_command()."""
    return _run(["--lang", lang, "-", *arguments], policy, code.encode(), **settings)


def run_command(command: Sequence[str], policy: str = "shell", *, input: bytes = b"", **settings: Any) -> Result:
    """Runs a command, a list of words, with `input` on its standard input.

    Settings: `workspace` (a directory; the policy says how it is given), `timeout` (seconds of wall time), `memory` (bytes),
    `allow_hosts` ("HOST:PORT"), `environment` (a dict), `options` (further options of sbx run), `program` (the sbx to start).
    """
    return _run(["--", *command], policy, input, **settings)


def _run(operands: Sequence[str], policy: str, input: bytes, *, workspace: Optional[Path] = None, timeout: Optional[float] = None, memory: Optional[int] = None,
         allow_hosts: Iterable[str] = (), environment: Optional[dict[str, str]] = None, options: Sequence[str] = (), program: Path = "sbx") -> Result:
    words: list[Path] = [program, "run", "--json", "--policy", policy]
    if timeout is not None:
        words += ["--timeout", f"{round(timeout * 1000)}ms"]
    if memory is not None:
        words += ["--memory", f"{memory}B"]
    for host in allow_hosts:
        words += ["--allow-host", host]
    with _Variables(environment) as inherited:  # values on the command line could be read by every user of the machine
        words += [*inherited.options, *options, *operands]
        done = subprocess.run(words, cwd=workspace, input=input, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=inherited.descriptors,
                              check=False)
    try:
        return _result(json.loads(done.stdout))
    except ValueError:
        message = done.stderr.decode(errors="replace").strip()
        raise RuntimeError(f"{program} wrote no record (exit status {done.returncode}): {message}") from None


class _Variables:
    """An open, nameless file of NAME=VALUE for --env-fd."""

    def __init__(self, environment: Optional[dict[str, str]]):
        self.descriptors: tuple[int, ...] = ()
        self.options: list[str] = []
        text = "".join(f"{name}={value}\0" for name, value in (environment or {}).items())
        if text:
            descriptor = os.memfd_create("variables")
            os.write(descriptor, text.encode())
            os.lseek(descriptor, 0, os.SEEK_SET)
            self.descriptors, self.options = (descriptor,), ["--env-fd", str(descriptor)]

    def __enter__(self) -> "_Variables":
        return self

    def __exit__(self, *_: Any) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)


def _bytes_of(stream: dict[str, Any]) -> bytes:
    text = stream["text"] or ""
    return base64.b64decode(text) if stream.get("encoding") == "base64" else text.encode()


def _result(record: dict[str, Any]) -> Result:
    outcome = record["outcome"]
    if outcome["status"] == "setup-failed":
        raise SetupFailed(outcome["code"], outcome["detail"], outcome["hint"])
    denials = tuple(Denial(**{field.name: denial[field.name] for field in dataclasses.fields(Denial)}) for denial in record["denials"])
    return Result(status=outcome["status"], reason=outcome["reason"], exit_code=outcome["exit_code"], signal=outcome["signal"],
                  success=outcome["success"], detail=outcome["detail"], stdout=_bytes_of(record["stdout"]), stderr=_bytes_of(record["stderr"]),
                  truncated=record["stdout"]["truncated"] or record["stderr"]["truncated"], denials=denials, record=record)

# A sandbox that stays, with the names of E2B's classes.


class SandboxException(Exception):
    """Something that a sandbox could not do; the base of the others."""

    kind: Optional[str] = None  # what stood in the way: "not-found", "no-space", ...: sbx-record(5)


class TimeoutException(SandboxException):
    """The time that the caller gave is over. `execution` or `result` has what came until then."""

    execution: "Optional[Execution]" = None
    result: "Optional[CommandResult]" = None


class InvalidArgumentException(SandboxException):
    """An argument that is wrong, or that asks for what is not offered here."""


class NotEnoughSpaceException(SandboxException):
    """The private disk is full."""


class NotFoundException(SandboxException):
    """What was named is not there."""


class FileNotFoundException(NotFoundException):
    """There is no such file in the sandbox."""


class SandboxNotFoundException(NotFoundException):
    """The sandbox has ended."""


class AuthenticationException(SandboxException):
    """Never raised: there is no account."""


class RateLimitException(SandboxException):
    """More calls, cells or contexts at once than the policy allows."""


class CommandExitException(SandboxException):
    """A command ended with another status than 0."""

    def __init__(self, stdout: str, stderr: str, exit_code: int, error: Optional[str]):
        super().__init__(error or f"the command exited with status {exit_code}\n{stderr}".rstrip())
        self.stdout, self.stderr, self.exit_code, self.error = stdout, stderr, exit_code, error


_BY_CODE: dict[str, type[SandboxException]] = {
    "no-such-session": SandboxNotFoundException, "session-gone": SandboxNotFoundException, "call-lost": SandboxNotFoundException,
    "no-such-call": NotFoundException, "call-ended": NotFoundException, "no-such-context": NotFoundException,
    "too-many-calls": RateLimitException, "too-many-contexts": RateLimitException, "context-busy": RateLimitException,
    "usage": InvalidArgumentException, "bad-value": InvalidArgumentException,
    "unknown-language": InvalidArgumentException, "no-context-language": InvalidArgumentException, "other-language": InvalidArgumentException,
    "bad-context-name": InvalidArgumentException, "widens-session": InvalidArgumentException}


# By what stood in the way, which the kernel told.
_BY_KIND: dict[str, type[SandboxException]] = {
    "not-found": FileNotFoundException, "no-space": NotEnoughSpaceException, "no-session": SandboxNotFoundException, "time-out": TimeoutException,
    **dict.fromkeys(("exists", "is-directory", "not-a-directory", "not-permitted", "too-large"), InvalidArgumentException)}


def _failure(fields: dict[str, Any], detail: str) -> SandboxException:
    """Of an error or the outcome of a record."""
    known = _BY_CODE.get(fields.get("code") or "") or (_BY_KIND.get(fields["kind"]) if fields.get("side") == "sandbox" else None)
    error = (known or SandboxException)(f"{detail}\n{fields['hint']}" if fields.get("hint") else detail)
    error.kind = fields.get("kind")
    return error


def _not_offered(name: str, instead: str) -> SandboxException:
    return SandboxException(f"{name} is not offered: {instead}")


@dataclasses.dataclass(frozen=True)
class OutputMessage:
    line: str
    timestamp: int  # nanoseconds
    error: bool  # it is of stderr

    def __str__(self) -> str:
        return self.line


@dataclasses.dataclass(frozen=True)
class ExecutionError:
    """Why a cell did not succeed: an exception of its own, "BudgetExceeded", or how its interpreter ended."""

    name: str
    value: str
    traceback: str


@dataclasses.dataclass
class Logs:
    stdout: list[str] = dataclasses.field(default_factory=list)
    stderr: list[str] = dataclasses.field(default_factory=list)


_FORMS = {"text": "text/plain", "html": "text/html", "markdown": "text/markdown", "svg": "image/svg+xml", "png": "image/png", "jpeg": "image/jpeg",
          "pdf": "application/pdf", "latex": "text/latex", "json": "application/json", "javascript": "application/javascript"}
_TABLE = "application/vnd.sbx.table+json"


class CellResult:
    """One value that a cell showed. A form that it does not have is None: text, html, markdown, svg, png, jpeg, pdf, latex, json, javascript.

    `data` has the columns of a table, `raw` the text with its quotes, `extra` forms of other types by their MIME type."""

    chart = None  # charts come as pictures

    def __init__(self, forms: dict[str, Any], is_main: bool):
        self.is_main_result = is_main
        self.raw: Optional[str] = forms.get("text/plain")
        self.extra = {mime: form for mime, form in forms.items() if mime not in _FORMS.values() and mime != _TABLE}
        table = forms.get(_TABLE)
        self.data: Optional[dict[str, list[Any]]] = None
        if table is not None:
            self.data = {column["name"]: [row[at] for row in table["rows"]] for at, column in enumerate(table["columns"]) if not column.get("index")}
        self._forms = {name: forms[mime] for name, mime in _FORMS.items() if mime in forms}
        if self.raw is not None and len(self.raw) > 1 and self.raw[0] == self.raw[-1] and self.raw[0] in "'\"":
            self._forms["text"] = self.raw[1:-1]

    def __getattr__(self, name: str) -> Any:
        if name in _FORMS:
            return self.__dict__.get("_forms", {}).get(name)
        raise AttributeError(name)

    def __getitem__(self, name: str) -> Any:
        return self.data if name == "data" else getattr(self, name)

    def formats(self) -> list[str]:
        return [*self._forms, *(["data"] if self.data is not None else []), *self.extra]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {_FORMS[name]: form for name, form in self._forms.items()}

    def __repr__(self) -> str:
        return f"Result({self.text or ', '.join(self.formats())})"


@dataclasses.dataclass
class Execution:
    """What a cell gave. `record` is all that sbx says of it: sbx-record(5)."""

    results: list[CellResult] = dataclasses.field(default_factory=list)
    logs: Logs = dataclasses.field(default_factory=Logs)
    error: Optional[ExecutionError] = None
    execution_count: Optional[int] = None
    record: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def text(self) -> Optional[str]:
        return next((result.text for result in self.results if result.is_main_result), None)

    def to_json(self) -> str:
        return json.dumps({"results": [{name: result[name] for name in result.formats() if name not in result.extra} for result in self.results],
                           "logs": dataclasses.asdict(self.logs), "error": dataclasses.asdict(self.error) if self.error else None})


@dataclasses.dataclass(frozen=True)
class Context:
    """An interpreter that keeps its state."""

    id: str
    language: str
    cwd: Optional[str] = None


Contexts = list[Context]


class FileType(str, enum.Enum):
    FILE = "file"
    DIR = "dir"


@dataclasses.dataclass(frozen=True)
class EntryInfo:
    name: str
    type: Optional[FileType]  # None: neither file nor directory
    path: str
    size: int
    mode: int
    permissions: str
    modified_time: datetime.datetime


Entries = list[EntryInfo]


@dataclasses.dataclass(frozen=True)
class WriteInfo:
    name: str
    path: str
    type: FileType = FileType.FILE


@dataclasses.dataclass(frozen=True)
class CommandResult:
    stdout: str
    stderr: str
    exit_code: int
    error: Optional[str]  # why sbx ended it


@dataclasses.dataclass(frozen=True)
class ProcessInfo:
    pid: int  # the number of the call
    cmd: str


@dataclasses.dataclass(frozen=True)
class SandboxInfo:
    sandbox_id: str
    template_id: str  # the policy
    metadata: dict[str, str]
    started_at: datetime.datetime
    end_at: datetime.datetime


@dataclasses.dataclass(frozen=True)
class SandboxMetrics:
    timestamp: datetime.datetime
    cpu_count: float
    cpu_used_pct: float  # on average since the start
    mem_used: int
    mem_total: int
    disk_used: int
    disk_total: int


Metrics = list[SandboxMetrics]


def _time(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)


def _duration(seconds: float) -> str:
    return f"{max(1, round(seconds * 1000))}ms"


class _Session:
    """The commands of one session."""

    def __init__(self, name: str, program: str):
        self.name, self.program = name, program

    def words(self, command: str, *rest: str) -> list[str]:
        return [self.program, "session", command, self.name, *rest]

    def ask(self, command: str, *rest: str) -> dict[str, Any]:
        return _ask(self.words(command, "--json", *rest))


def _ask(words: list[str], **options: Any) -> dict[str, Any]:
    done = subprocess.run(words, **{"stdin": subprocess.DEVNULL, **options}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise SandboxException(f"{words[0]} gave no answer (exit status {done.returncode}): {done.stderr.decode(errors='replace').strip()}") from None
    if "error" in answer:
        error = answer["error"]
        raise _failure(error, error["message"])
    return dict(answer)


class _Files:
    """`sandbox.files`: paths are inside, relative ones from the working directory on."""

    def __init__(self, session: _Session):
        self._session = session

    def read(self, path: str, format: str = "text") -> Any:
        """A str, a bytearray ("bytes") or an iterator of bytes ("stream")."""
        if format not in ("text", "bytes", "stream"):
            raise InvalidArgumentException(f'format is "text", "bytes" or "stream", not {format!r}')
        with tempfile.TemporaryDirectory(prefix="sbx-") as directory:
            place = os.path.join(directory, "file")
            self._session.ask("get", "--as", place, "--", path)
            with open(place, "rb") as file:
                content = file.read()
        if format == "text":
            return content.decode(errors="replace")
        return bytearray(content) if format == "bytes" else iter([content])

    def write(self, path: str, data: Union[str, bytes, bytearray, IO[bytes]]) -> WriteInfo:
        """Writes a file, and makes the directories on the way to it."""
        name = os.path.basename(path)
        if name in ("", ".", ".."):
            raise InvalidArgumentException(f"{path!r} does not name a file")
        with tempfile.TemporaryFile() as source:
            if isinstance(data, (str, bytes, bytearray)):
                source.write(data.encode() if isinstance(data, str) else data)
            else:
                shutil.copyfileobj(data, source)
            source.seek(0)
            _ask(self._session.words("put", "--json", "--", "-", path), stdin=source)
        return WriteInfo(name, path)

    def write_files(self, files: list[dict[str, Any]]) -> list[WriteInfo]:
        return [self.write(each["path"], each["data"]) for each in files]

    def list(self, path: str, depth: int = 1) -> Entries:
        """What is in a directory, and so many levels of directories in all."""
        answer = self._session.ask("ls", "--depth", str(depth), "--", path)
        if answer["left"] and not answer["entries"]:
            left = answer["left"][0]
            raise _failure(left, f"'{path}': {left['why']}")
        if answer["is_cut"]:
            raise SandboxException(f"'{path}' has more entries than a list holds; commands.run({'ls -f ' + shlex.quote(path)!r}) prints them")
        return [_entry(os.path.join(path, each["name"]), each) for each in answer["entries"]]

    def exists(self, path: str) -> bool:
        try:
            self.get_info(path)
        except SandboxException as error:
            if error.kind in ("not-found", "not-a-directory"):
                return False
            raise
        return True

    def get_info(self, path: str) -> EntryInfo:
        return _entry(path, self._session.ask("stat", "--", path))

    def remove(self, path: str) -> None:
        """A file, or a directory with what is in it."""
        self._session.ask("rm", "--recursive", "--", path)

    def rename(self, old_path: str, new_path: str) -> EntryInfo:
        self._session.ask("mv", "--", old_path, new_path)
        return self.get_info(new_path)

    def make_dir(self, path: str) -> bool:
        """Makes the directories on the way to it too. False: it is there."""
        try:
            self._session.ask("mkdir", "--", path)
        except SandboxException as error:
            if error.kind == "exists" and self.get_info(path).type is FileType.DIR:
                return False
            raise
        return True

    def watch_dir(self, path: str, **_: Any) -> Any:
        raise _not_offered("files.watch_dir", "list() tells what is there")


def _entry(path: str, found: dict[str, Any]) -> EntryInfo:
    mode = int(found["mode"], 8)
    types = {"file": FileType.FILE, "directory": FileType.DIR}
    name = os.path.basename(os.path.normpath(path))
    return EntryInfo(name, types.get(found["type"]), path, found["bytes"], mode, stat.filemode(mode)[1:], _time(found["modified"]))


OnText = Optional[Callable[[str], Any]]


class _Reader:
    """Reads the two streams of a process as they come, and keeps the text."""

    def __init__(self, process: "subprocess.Popen[bytes]", on_stdout: OnText, on_stderr: OnText):
        self.kept: tuple[list[str], list[str]] = ([], [])
        with selectors.DefaultSelector() as selector:
            for pipe, kept, callback in ((process.stdout, self.kept[0], on_stdout), (process.stderr, self.kept[1], on_stderr)):
                assert pipe is not None
                selector.register(pipe, selectors.EVENT_READ, (codecs.getincrementaldecoder("utf-8")("replace"), kept, callback))
            while selector.get_map():
                for key, _ in selector.select():
                    decoder, kept, callback = key.data
                    data = os.read(key.fd, 1 << 16)
                    text = decoder.decode(data, final=not data)
                    if text:
                        kept.append(text)
                        if callback is not None:
                            callback(text)
                    if not data:
                        selector.unregister(key.fileobj)

    @property
    def texts(self) -> tuple[str, str]:
        return "".join(self.kept[0]), "".join(self.kept[1])


def _result_of(record: dict[str, Any], stdout: str, stderr: str) -> CommandResult:
    outcome = record["outcome"]
    if outcome["status"] == "setup-failed":
        raise _failure(outcome, outcome["detail"])
    if outcome["status"] == "exited":
        return CommandResult(stdout, stderr, outcome["exit_code"], None)
    number = outcome["signal"] or int(signal.SIGKILL)
    result = CommandResult(stdout, stderr, 128 + number, outcome["detail"])
    if outcome["status"] == "over-budget" and outcome["reason"] == "wall_time":
        error = TimeoutException(outcome["detail"])
        error.result = result
        raise error
    return result


def _checked(result: CommandResult) -> CommandResult:
    if result.exit_code != 0:
        raise CommandExitException(result.stdout, result.stderr, result.exit_code, result.error)
    return result


class CommandHandle:
    """A command in the background. `pid` is the number of its call in the session."""

    def __init__(self, session: _Session, pid: int):
        self._session, self.pid = session, pid

    def wait(self, on_stdout: OnText = None, on_stderr: OnText = None) -> CommandResult:
        """All that it writes, what it has written already included, until it ends."""
        with subprocess.Popen(self._session.words("logs", str(self.pid), "--follow"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as logs:
            stdout, stderr = _Reader(logs, on_stdout, on_stderr).texts
        return _checked(_result_of(self._session.ask("wait", str(self.pid)), stdout, stderr))

    def kill(self) -> bool:
        try:
            self._session.ask("kill", str(self.pid), "KILL")
        except SandboxNotFoundException:
            raise
        except NotFoundException:
            return False
        return True

    def disconnect(self) -> None:
        """Nothing to do: the command runs on."""

    def send_stdin(self, data: str) -> None:
        raise _not_offered("send_stdin", "a background command reads what its line gives it: commands.run('command < file', background=True)")


class _Commands:
    """`sandbox.commands`."""

    def __init__(self, session: _Session, most: float):
        self._session, self._most = session, most

    def run(self, cmd: str, background: bool = False, envs: Optional[dict[str, str]] = None, user: Optional[str] = None, cwd: Optional[str] = None,
            on_stdout: OnText = None, on_stderr: OnText = None, stdin: Optional[bool] = None, timeout: Optional[float] = 60,
            request_timeout: Optional[float] = None) -> Any:
        """Runs a line of bash: a CommandResult, or a CommandHandle in the background."""
        if user not in (None, "user"):
            raise InvalidArgumentException("there is one user in the sandbox, and no root")
        if stdin:
            raise _not_offered("stdin=True", "give the input in the line: commands.run('command <<< text')")
        words = self._session.words("exec", "--quiet", "--stdin", "null")
        if cwd is not None:
            words += ["--cwd", cwd]
        if timeout and not background and timeout < self._most:
            words += ["--timeout", _duration(timeout)]
        with _Variables(envs) as variables:
            words += variables.options
            command = ["--", "bash", "-c", cmd]
            if background:
                return CommandHandle(self._session, _ask([*words, "--detach", "--json", *command], pass_fds=variables.descriptors)["call"])
            with open(os.memfd_create("report"), "r+b") as report:
                words += ["--report-fd", str(report.fileno()), *command]
                with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[*variables.descriptors, report.fileno()]) as process:
                    stdout, stderr = _Reader(process, on_stdout, on_stderr).texts
                report.seek(0)
                text = report.read()
        if not text:
            raise SandboxException(f"{words[0]} wrote no record (exit status {process.returncode}): {stderr.strip()}")
        return _checked(_result_of(json.loads(text), stdout, stderr))

    def list(self) -> list[ProcessInfo]:
        return [ProcessInfo(each["call"], each["command"]) for each in self._session.ask("calls")["calls"] if each["background"] and each["state"] == "running"]

    def kill(self, pid: int) -> bool:
        return CommandHandle(self._session, pid).kill()

    def connect(self, pid: int) -> CommandHandle:
        if all(each.pid != pid for each in self.list()):
            raise NotFoundException(f"no background command {pid} runs")
        return CommandHandle(self._session, pid)

    def send_stdin(self, pid: int, data: str) -> None:
        CommandHandle(self._session, pid).send_stdin(data)


class _Pty:
    def create(self, *_: Any, **__: Any) -> Any:
        raise _not_offered("pty.create", "sbx session exec -i NAME bash gives a terminal")


@dataclasses.dataclass
class _Cell:
    """A cell while its events come."""

    execution: Execution
    on_stdout: Optional[Callable[[OutputMessage], Any]]
    on_stderr: Optional[Callable[[OutputMessage], Any]]
    on_result: Optional[Callable[[CellResult], Any]]
    on_error: Optional[Callable[[ExecutionError], Any]]

    def take(self, event: dict[str, Any]) -> None:
        kind, execution = event["event"], self.execution
        if kind in ("stdout", "stderr"):
            text = base64.b64decode(event["text"]).decode(errors="replace") if event["encoding"] == "base64" else event["text"]
            (execution.logs.stdout if kind == "stdout" else execution.logs.stderr).append(text)
            callback = self.on_stdout if kind == "stdout" else self.on_stderr
            if callback:
                callback(OutputMessage(text, time.time_ns(), kind == "stderr"))
        elif kind == "result":
            execution.results.append(CellResult(event["data"], event["main"]))
            if self.on_result:
                self.on_result(execution.results[-1])
        elif kind == "error":
            execution.error = ExecutionError(event["name"], event["value"], event["traceback"])
        elif kind == "end":
            self.end(event["record"])

    def end(self, record: dict[str, Any]) -> None:
        execution, outcome = self.execution, record["outcome"]
        execution.record = record
        if outcome["status"] == "setup-failed":
            raise _failure(outcome, outcome["detail"])
        if record["answer"] is not None:
            execution.execution_count = record["answer"]["count"]
        if outcome["status"] == "over-budget" and outcome["reason"] == "wall_time":
            error = TimeoutException(outcome["detail"])
            error.execution = execution
            raise error
        names = {"over-budget": "BudgetExceeded", "died": "InterpreterDied", "interrupted": "Interrupted", "cancelled": "Cancelled", "denied": "Denied"}
        if outcome["status"] in names:
            execution.error = ExecutionError(names[outcome["status"]], outcome["detail"], execution.error.traceback if execution.error else "")
        if execution.error and self.on_error:
            self.on_error(execution.error)


class SandboxPaginator:
    """What Sandbox.list() gives: one page."""

    def __init__(self, found: list[SandboxInfo]):
        self._found, self.has_next, self.next_token = found, True, None

    def next_items(self) -> list[SandboxInfo]:
        self.has_next = False
        return self._found


def _info(facts: dict[str, Any], metadata: dict[str, str]) -> SandboxInfo:
    return SandboxInfo(facts["name"], facts["policy"]["name"], metadata, _time(facts["started"]), _time(facts["expires"]))


class _Kill:
    """Sandbox.kill(id) and sandbox.kill()."""

    def __get__(self, sandbox: "Optional[Sandbox]", _: Any) -> Callable[..., bool]:
        if sandbox is not None:
            return sandbox.close
        return lambda sandbox_id, *, program="sbx": _stop(_Session(sandbox_id, program))


def _stop(session: _Session) -> bool:
    try:
        session.ask("stop")
    except SandboxNotFoundException:
        return False
    return True


_WARNED: set[str] = set()


def _check_compatible(arguments: dict[str, Any]) -> list[str]:
    """What E2B's constructor takes besides: without effect here, refused, or an option of session start."""
    for name in ("network", "mcp", "volume_mounts"):
        if arguments.pop(name, None):
            raise InvalidArgumentException(f"{name} is not offered: what a sandbox may reach is in its policy")
    for name in ("api_key", "domain"):
        if arguments.pop(name, None) and name not in _WARNED:
            _WARNED.add(name)
            warnings.warn(f"{name} has no effect: the code runs on this machine, not in a cloud", stacklevel=4)
    closed = arguments.pop("allow_internet_access", True) is False
    for name in ("secure", "request_timeout", "proxy"):
        arguments.pop(name, None)
    if arguments:
        raise TypeError(f"Sandbox takes no argument {sorted(arguments)[0]!r}")
    return ["--net", "none"] if closed else []


def _is_policy(name: str, program: str) -> bool:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        return False
    return subprocess.run([program, "policy", "show", "--", name], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


class Sandbox:
    """A sandbox that stays: `with Sandbox() as sandbox: sandbox.run_code("1 + 1").text`.

    It ends with the process that made it. Without `policy`: "agent" over an empty directory, which has no network."""

    def __init__(self, template: Optional[str] = None, timeout: Optional[float] = 300, metadata: Optional[dict[str, str]] = None, envs: Optional[dict[str, str]] = None, *,
                 policy: Optional[str] = None, workspace: Optional[str] = None, program: str = "sbx", **compatible: Any):
        options = _check_compatible(compatible)
        if policy is None and template is not None and _is_policy(template, program):
            policy = template
        if workspace is not None:
            options += ["--workspace", workspace]
        elif policy is None:
            options += ["--workspace", ".:empty"]
        with _Variables(envs) as variables:
            words = [program, "session", "start", "--json", "--die-with-parent", "--policy", policy or "agent", *options, *variables.options]
            self._begin(_ask(words, pass_fds=variables.descriptors), program, metadata or {})
        if timeout:
            try:
                self.set_timeout(timeout)
            except InvalidArgumentException:  # the policy's lifetime is shorter
                pass

    def _begin(self, facts: dict[str, Any], program: str, metadata: dict[str, str]) -> None:
        self.sandbox_id: str = facts["name"]
        self._session, self._metadata = _Session(self.sandbox_id, program), metadata
        self._most = (facts["limits"]["wall_time_ms"] or math.inf) / 1000
        self.files, self.commands, self.pty = _Files(self._session), _Commands(self._session, self._most), _Pty()

    @classmethod
    def create(cls, *arguments: Any, **named: Any) -> "Sandbox":
        return cls(*arguments, **named)

    @classmethod
    def connect(cls, sandbox_id: str, timeout: Optional[float] = None, *, program: str = "sbx", **compatible: Any) -> "Sandbox":
        """One that lives. It does not end with this process."""
        _check_compatible(compatible)
        sandbox = cls.__new__(cls)
        sandbox._begin(_Session(sandbox_id, program).ask("show"), program, {})
        if timeout:
            sandbox.set_timeout(timeout)
        return sandbox

    @staticmethod
    def list(*, program: str = "sbx", **_: Any) -> SandboxPaginator:
        return SandboxPaginator([_info(each, {}) for each in _ask([program, "session", "list", "--json"])["sessions"]])

    kill = _Kill()

    def close(self, **_: Any) -> bool:
        """Ends it. False: it had ended."""
        return _stop(self._session)

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def run_code(self, code: str, language: Optional[str] = None, context: Optional[Context] = None, on_stdout: Optional[Callable[[OutputMessage], Any]] = None,
                 on_stderr: Optional[Callable[[OutputMessage], Any]] = None, on_result: Optional[Callable[[CellResult], Any]] = None,
                 on_error: Optional[Callable[[ExecutionError], Any]] = None, envs: Optional[dict[str, str]] = None, timeout: Optional[float] = 60,
                 request_timeout: Optional[float] = None) -> Execution:
        """Runs a cell. timeout: seconds, which may only be less than the policy's; 0 or None: the policy's."""
        if language is not None and context is not None:
            raise InvalidArgumentException("language and context exclude each other")
        words = self._session.words("eval", "--stream", "--quiet")
        if language is not None:
            words += ["--lang", language]
        if context is not None:
            words += ["--context", context.id, "--lang", context.language]
        if timeout and timeout < self._most:
            words += ["--timeout", _duration(timeout)]
        cell = _Cell(Execution(), on_stdout, on_stderr, on_result, on_error)
        with tempfile.TemporaryFile() as source, _Variables(envs) as variables:
            source.write(code.encode("utf-8", "surrogatepass"))
            source.seek(0)
            with subprocess.Popen([*words, *variables.options], stdin=source, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, pass_fds=variables.descriptors) as process:
                assert process.stdout is not None
                for line in process.stdout:
                    cell.take(json.loads(line))
        if not cell.execution.record:
            raise SandboxException(f"{words[0]} gave no answer (exit status {process.returncode})")
        return cell.execution

    def create_code_context(self, cwd: Optional[str] = None, language: Optional[str] = None, **_: Any) -> Context:
        """An interpreter of its own, which is started now."""
        if cwd is not None:
            raise _not_offered("the cwd of a context", "its first cell can change the directory")
        language = language or "python"
        context = Context(f"context-{uuid.uuid4().hex[:12]}", language)
        self.run_code("", context=context)
        return context

    def list_code_contexts(self) -> Contexts:
        return [Context(each["context"], each["language"]) for each in self._session.ask("contexts")["contexts"]]

    def remove_code_context(self, context: Union[Context, str]) -> None:
        """Ends its interpreter."""
        self._session.ask("restart", context if isinstance(context, str) else context.id)

    def restart_code_context(self, context: Union[Context, str]) -> None:
        """Ends its interpreter; the next cell finds a new one."""
        self.remove_code_context(context)

    def is_running(self, **_: Any) -> bool:
        try:
            self._session.ask("show")
        except SandboxNotFoundException:
            return False
        return True

    def set_timeout(self, timeout: float, **_: Any) -> None:
        """It lives for so many seconds from now, session.lifetime of its policy at most."""
        self._session.ask("extend", f"{max(1, math.ceil(timeout))}s")

    def get_info(self, **_: Any) -> SandboxInfo:
        return _info(self._session.ask("show"), self._metadata)

    def get_metrics(self, **_: Any) -> Metrics:
        facts = self._session.ask("stats")
        cpus, elapsed = facts["limits"]["cpus"], max(1.0, time.time() - facts["started"])
        return [SandboxMetrics(_time(time.time()), cpus, 0.1 * facts["cpu_ms"] / elapsed / cpus, facts["memory_bytes"], facts["memory_limit_bytes"], facts["disk_bytes"], facts["disk_limit_bytes"])]

    def get_host(self, port: int) -> str:
        raise _not_offered("get_host", f"a policy with network.publish = [{port}] makes the port reachable at 127.0.0.1:{port}")

    def pause(self, **_: Any) -> str:
        raise _not_offered("pause", "there are no snapshots of memory; sbx session keep saves the files")

    def create_snapshot(self, **_: Any) -> Any:
        return self.pause()

    def fork(self, **_: Any) -> Any:
        return self.pause()

"""Run code in a sandbox from Python: one file around the program sbx, to be copied into a project.

    import sbx

    run = sbx.run("print(6 * 7)", timeout=10)  # one program
    print(run.text if run.success else run.detail)

    with sbx.Sandbox() as sandbox:  # one that stays, with the names of E2B's class
        sandbox.run_code("x = 41")
        print(sandbox.run_code("x + 1").text)

Needs Python 3.9 and the program sbx, nothing else. docs/python.md says what Sandbox offers.
"""

import asyncio
import base64
import codecs
import contextlib
import dataclasses
import datetime
import enum
import fcntl
import functools
import inspect
import io
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
import warnings
from collections.abc import AsyncIterator, Coroutine, Generator, Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, Callable, Optional, TypeVar, Union

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")
T = TypeVar("T")
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
        try:
            done = subprocess.run(words, cwd=workspace, input=input, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=inherited.descriptors,
                                  check=False)
        except OSError as error:
            if workspace is not None and not os.path.isdir(workspace):
                raise
            raise SetupFailed("no-program", _no_program(program, error), _INSTALL) from error
    try:
        return _result(json.loads(done.stdout))
    except ValueError:
        message = done.stderr.decode(errors="replace").strip()
        raise RuntimeError(f"{program} wrote no record (exit status {done.returncode}): {message}") from None


_INSTALL = "install sbx, or name it with program="


def _no_program(program: Path, error: OSError) -> str:
    missing = f"there is no program {os.fspath(program)!r}" + ("" if os.sep in os.fspath(program) else " on PATH")
    return missing if isinstance(error, FileNotFoundError) else f"the program {os.fspath(program)!r} can't be started: {error.strerror}"


def _memory_file(name: str) -> int:
    """A descriptor that is no standard stream of a child, even where this process has closed its own."""
    descriptor = os.memfd_create(name)
    if descriptor > 2:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(descriptor)


class _Variables:
    """An open, nameless file of NAME=VALUE for --env-fd."""

    def __init__(self, environment: Optional[dict[str, str]]):
        self.descriptors: tuple[int, ...] = ()
        self.options: list[str] = []
        for name, value in (environment or {}).items():
            if not name or "=" in name or "\0" in name + value:
                raise InvalidArgumentException(f"{name!r} can't be the name of a variable: it is empty or has a '=' or a NUL" if "\0" not in value else
                                               f"the variable {name!r} has a NUL in its value")
        text = "".join(f"{name}={value}\0" for name, value in (environment or {}).items())
        if text:
            descriptor = _memory_file("variables")
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
    "input-not-open": InvalidArgumentException, "input-ended": InvalidArgumentException, "too-many-senders": RateLimitException,
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
    owner: str  # a name; the number where the sandbox knows none
    group: str
    modified_time: datetime.datetime
    symlink_target: Optional[str] = None  # of a link, as it is written there


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


Processes = list[ProcessInfo]


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


def _seconds(timeout: float) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout >= 0:
        raise InvalidArgumentException(f"timeout is a number of seconds, not {timeout!r}")
    return timeout


def _duration(seconds: float) -> str:
    return f"{max(1, round(seconds * 1000))}ms"


Calls = Iterable[tuple[Callable[[Any], Any], Any]]


def _keeps(_: bool, __: bytes) -> Calls:
    return ()


@dataclasses.dataclass
class _Process:
    """One sbx that is to run. Sandbox runs it with subprocess, AsyncSandbox with asyncio; all else of both is the same code."""

    words: list[str]
    stdin: Optional[IO[bytes]] = None  # None: nothing
    descriptors: Sequence[int] = ()  # that it inherits
    take: Callable[[bool, bytes], Calls] = _keeps  # gets a piece of stdout or, with True, of stderr, b"" at the end; gives the callbacks that are due
    timeout: Optional[float] = None  # seconds until it is ended, with TimeoutException


@dataclasses.dataclass
class _Done:
    status: int
    stdout: bytes
    stderr: bytes


Steps = Generator[_Process, _Done, T]  # what a method does, without the waiting


@contextlib.contextmanager
def _starting(program: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, PermissionError) as error:
        raise SandboxException(f"{_no_program(program, error)}: {_INSTALL}") from error


def _too_slow(process: _Process) -> TimeoutException:
    return TimeoutException(f"{' '.join(process.words[1:3])} took longer than {process.timeout:g} s")


def _begun(process: _Process) -> "subprocess.Popen[bytes]":
    with _starting(process.words[0]):
        return subprocess.Popen(process.words, stdin=process.stdin or subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                pass_fds=process.descriptors)


def _pieces(process: _Process) -> Generator[tuple[bool, bytes], None, int]:
    """What it writes, as it comes; then its exit status."""
    with _begun(process) as running, selectors.DefaultSelector() as selector:
        assert running.stdout is not None and running.stderr is not None
        selector.register(running.stdout, selectors.EVENT_READ, False)
        selector.register(running.stderr, selectors.EVENT_READ, True)
        until = time.monotonic() + (process.timeout or math.inf)
        try:
            while selector.get_map():
                ready = selector.select(None if math.isinf(until) else max(0.0, until - time.monotonic()))
                if not ready and time.monotonic() >= until:
                    raise _too_slow(process)
                for key, _ in ready:
                    data = os.read(key.fd, 1 << 16)
                    if not data:
                        selector.unregister(key.fileobj)
                    yield key.data, data
        except BaseException:  # a callback's, or nobody wants the rest
            running.terminate()
            raise
        return running.wait()


def _run_process(process: _Process) -> _Done:
    kept: tuple[list[bytes], list[bytes]] = ([], [])
    pieces = _pieces(process)
    try:
        while True:
            is_error, data = next(pieces)
            if is_error or process.take is _keeps:
                kept[is_error].append(data)
            for callback, argument in process.take(is_error, data):
                callback(argument)
    except StopIteration as end:
        return _Done(end.value, b"".join(kept[0]), b"".join(kept[1]))
    finally:
        pieces.close()


async def _run_process_async(process: _Process) -> _Done:
    with _starting(process.words[0]):
        running = await asyncio.create_subprocess_exec(*process.words, stdin=process.stdin or subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                                       pass_fds=process.descriptors)
    kept: tuple[list[bytes], list[bytes]] = ([], [])

    async def read(stream: asyncio.StreamReader, is_error: bool) -> None:
        data = b"more"
        while data:
            data = await stream.read(1 << 16)
            if is_error or process.take is _keeps:
                kept[is_error].append(data)
            for callback, argument in process.take(is_error, data):
                result = callback(argument)
                if inspect.isawaitable(result):
                    await result

    async def forget(stream: asyncio.StreamReader) -> None:
        while await stream.read(1 << 16):
            pass

    assert running.stdout is not None and running.stderr is not None
    readers = [asyncio.ensure_future(read(running.stdout, False)), asyncio.ensure_future(read(running.stderr, True))]
    try:
        await asyncio.wait_for(asyncio.gather(*readers), process.timeout or None)
        status = await running.wait()
    except BaseException as error:  # a callback's, or the task was cancelled
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        with contextlib.suppress(ProcessLookupError):
            running.terminate()
        await asyncio.gather(forget(running.stdout), forget(running.stderr), running.wait())
        if process.timeout and isinstance(error, asyncio.TimeoutError):
            raise _too_slow(process) from None
        raise
    return _Done(status, b"".join(kept[0]), b"".join(kept[1]))


def _drive(steps: Steps[T]) -> T:
    try:
        process = next(steps)
        while True:
            process = steps.send(_run_process(process))
    except StopIteration as end:
        value: T = end.value
        return value
    finally:
        steps.close()


async def _drive_async(steps: Steps[T]) -> T:
    try:
        process = next(steps)
        while True:
            done = await _run_process_async(process)
            process = steps.send(done)
    except StopIteration as end:
        value: T = end.value
        return value
    finally:
        steps.close()


def _sync(steps: "Callable[P, Steps[T]]") -> "Callable[P, T]":
    """A method of Sandbox."""

    @functools.wraps(steps)
    def method(*arguments: "P.args", **named: "P.kwargs") -> T:
        return _drive(steps(*arguments, **named))

    return method


def _async(steps: "Callable[P, Steps[T]]") -> "Callable[P, Coroutine[Any, Any, T]]":
    """The same of AsyncSandbox."""

    @functools.wraps(steps)
    async def method(*arguments: "P.args", **named: "P.kwargs") -> T:
        return await _drive_async(steps(*arguments, **named))

    return method


def _answer(words: list[str], stdin: Optional[IO[bytes]] = None, descriptors: Sequence[int] = (), timeout: Optional[float] = None) -> Steps[dict[str, Any]]:
    """Of a command with --json."""
    done = yield _Process(words, stdin, descriptors, timeout=timeout)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise SandboxException(f"{words[0]} gave no answer (exit status {done.status}): {done.stderr.decode(errors='replace').strip()}") from None
    if "error" in answer:
        error = answer["error"]
        raise _failure(error, error["message"])
    return dict(answer)


class _Session:
    """The commands of one session."""

    def __init__(self, name: str, program: str, facts: Optional[dict[str, Any]] = None):
        self.name, self.program = name, program
        self.most = ((facts["limits"]["wall_time_ms"] if facts else None) or math.inf) / 1000  # seconds of a call
        self.lifetime: float = (facts or {}).get("lifetime", math.inf)  # seconds; known of those that this process has started

    def words(self, command: str, *rest: str) -> list[str]:
        return [self.program, "session", command, self.name, *rest]

    def ask(self, command: str, *rest: str) -> Steps[dict[str, Any]]:
        return _answer(self.words(command, "--json", *rest))

    def time(self, timeout: Optional[float]) -> list[str]:
        """0 and None are the policy's, and so is what is longer."""
        return ["--timeout", _duration(timeout)] if timeout and _seconds(timeout) < self.most else []


def _file_of(data: Any) -> IO[bytes]:
    if isinstance(data, io.TextIOBase):
        data = data.read()
    if not isinstance(data, (str, bytes, bytearray)) and not hasattr(data, "read"):
        raise InvalidArgumentException(f"a str, bytes or an open file is wanted, not {type(data).__name__}")
    source = tempfile.TemporaryFile()
    if isinstance(data, (str, bytes, bytearray)):
        source.write(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
    else:
        shutil.copyfileobj(data, source)
    source.seek(0)
    return source


def _check_line(cmd: Any) -> None:
    if not isinstance(cmd, (str, list, tuple)):
        raise InvalidArgumentException(f"a command is a line of bash or a list of words, not {type(cmd).__name__}")


def _check_user(user: Optional[str]) -> None:
    if user not in (None, "user"):
        raise InvalidArgumentException("there is one user in the sandbox, and no root")


class _OfSession:
    """A part of a sandbox."""

    def __init__(self, session: _Session):
        self._session = session


class _FileSteps(_OfSession):
    """`sandbox.files`: paths are inside, relative ones from the working directory on."""

    def read(self: _OfSession, path: str, format: str = "text", user: Optional[str] = None, request_timeout: Optional[float] = None) -> Steps[Any]:
        """A str, a bytearray ("bytes") or an iterator of bytes ("stream")."""
        _check_user(user)
        if format not in ("text", "bytes", "stream"):
            raise InvalidArgumentException(f'format is "text", "bytes" or "stream", not {format!r}')
        with tempfile.TemporaryDirectory(prefix="sbx-") as directory:
            place = os.path.join(directory, "file")
            yield from self._session.ask("get", "--as", place, "--", path)
            file = open(place, "rb")
        if format == "stream":
            return _blocks(file)  # without a name it lives as long as it is read
        with file:
            content = file.read()
        return content.decode(errors="replace") if format == "text" else bytearray(content)

    def write(self: _OfSession, path: Union[str, Sequence[dict[str, Any]]], data: Union[str, bytes, bytearray, IO[bytes], IO[str], None] = None, user: Optional[str] = None,
              request_timeout: Optional[float] = None) -> Steps[Any]:
        """Writes a file, and makes the directories on the way to it: a WriteInfo. A list of {"path": …, "data": …} as write_files()."""
        if not isinstance(path, str):
            return (yield from _FileSteps.write_files(self, path, user))
        _check_user(user)
        name = os.path.basename(path)
        if name in ("", ".", ".."):
            raise InvalidArgumentException(f"{path!r} does not name a file")
        with _file_of(data) as source:
            yield from _answer(self._session.words("put", "--json", "--", "-", path), source)
        return WriteInfo(name, path)

    def write_files(self: _OfSession, files: Sequence[dict[str, Any]], user: Optional[str] = None, request_timeout: Optional[float] = None) -> Steps[list[WriteInfo]]:
        if not isinstance(files, (list, tuple)) or not all(isinstance(each, dict) and isinstance(each.get("path"), str) and "data" in each for each in files):
            raise InvalidArgumentException('files are a list of {"path": …, "data": …}')
        written = []
        for each in files:
            written.append((yield from _FileSteps.write(self, each["path"], each["data"], user)))
        return written

    def list(self: _OfSession, path: str, depth: int = 1, user: Optional[str] = None, request_timeout: Optional[float] = None) -> Steps[Entries]:
        """What is in a directory, and so many levels of directories in all."""
        _check_user(user)
        answer = yield from self._session.ask("ls", "--depth", str(depth), "--", path)
        if answer["left"] and not answer["entries"]:
            left = answer["left"][0]
            raise _failure(left, f"'{path}': {left['why']}")
        if answer["is_cut"]:
            raise SandboxException(f"'{path}' has more entries than a list holds; commands.run({'ls -f ' + shlex.quote(path)!r}) prints them")
        entries = answer["entries"]
        if [each["name"] for each in entries] == [os.path.basename(path)] and (yield from _FileSteps.get_info(self, path)).type is FileType.FILE:
            raise _failure({"kind": "not-a-directory", "side": "sandbox"}, f"'{path}' is a file: get_info() tells of it")
        return [_entry(os.path.join(path, each["name"]), each) for each in entries]

    def exists(self: _OfSession, path: str, user: Optional[str] = None, request_timeout: Optional[float] = None) -> Steps[bool]:
        try:
            yield from _FileSteps.get_info(self, path, user)
        except SandboxException as error:
            if error.kind in ("not-found", "not-a-directory"):
                return False
            raise
        return True

    def get_info(self: _OfSession, path: str, user: Optional[str] = None, request_timeout: Optional[float] = None) -> Steps[EntryInfo]:
        _check_user(user)
        return _entry(path, (yield from self._session.ask("stat", "--", path)))

    def remove(self: _OfSession, path: str, user: Optional[str] = None, request_timeout: Optional[float] = None) -> Steps[None]:
        """A file, or a directory with what is in it."""
        _check_user(user)
        yield from self._session.ask("rm", "--recursive", "--", path)

    def rename(self: _OfSession, old_path: str, new_path: str, user: Optional[str] = None, request_timeout: Optional[float] = None) -> Steps[EntryInfo]:
        _check_user(user)
        yield from self._session.ask("mv", "--", old_path, new_path)
        return (yield from _FileSteps.get_info(self, new_path))

    def make_dir(self: _OfSession, path: str, user: Optional[str] = None, request_timeout: Optional[float] = None) -> Steps[bool]:
        """Makes the directories on the way to it too. False: it is there."""
        _check_user(user)
        try:
            yield from self._session.ask("mkdir", "--", path)
        except SandboxException as error:
            if error.kind == "exists" and (yield from _FileSteps.get_info(self, path)).type is FileType.DIR:
                return False
            raise
        return True

    def watch_dir(self: _OfSession, path: str, *_: Any, **__: Any) -> Steps[Any]:
        raise _not_offered("files.watch_dir", "list() tells what is there")
        yield


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while block := file.read(1 << 16):
            yield block


class Files(_OfSession):
    """`sandbox.files`: paths are inside, relative ones from the working directory on."""

    read, write, write_files = _sync(_FileSteps.read), _sync(_FileSteps.write), _sync(_FileSteps.write_files)
    list, exists, get_info = _sync(_FileSteps.list), _sync(_FileSteps.exists), _sync(_FileSteps.get_info)
    remove, rename, make_dir, watch_dir = _sync(_FileSteps.remove), _sync(_FileSteps.rename), _sync(_FileSteps.make_dir), _sync(_FileSteps.watch_dir)


class AsyncFiles(_OfSession):
    """The same with coroutines."""

    read, write, write_files = _async(_FileSteps.read), _async(_FileSteps.write), _async(_FileSteps.write_files)
    list, exists, get_info = _async(_FileSteps.list), _async(_FileSteps.exists), _async(_FileSteps.get_info)
    remove, rename, make_dir, watch_dir = _async(_FileSteps.remove), _async(_FileSteps.rename), _async(_FileSteps.make_dir), _async(_FileSteps.watch_dir)


def _entry(path: str, found: dict[str, Any]) -> EntryInfo:
    mode = int(found["mode"], 8)
    types = {"file": FileType.FILE, "directory": FileType.DIR}
    name = os.path.basename(os.path.normpath(path))
    target = os.fsdecode(base64.b64decode(found["target_b64"])) if "target_b64" in found else found.get("target")
    return EntryInfo(name, types.get(found["type"]), path, found["bytes"], mode, stat.filemode(mode)[1:], found["owner"], found["group"], _time(found["modified"]),
                     target)


OnText = Optional[Callable[[str], Any]]
Line = Union[str, Sequence[str]]  # of bash, or the words of one command, which no shell reads
Input = Union[bool, str, bytes, None]


class _Text:
    """The two streams of a command as text, whatever bytes it is cut at."""

    def __init__(self, on_stdout: OnText = None, on_stderr: OnText = None):
        self._decoders = [codecs.getincrementaldecoder("utf-8")("replace") for _ in range(2)]
        self._callbacks = (on_stdout, on_stderr)
        self._kept: tuple[list[str], list[str]] = ([], [])

    def decode(self, is_error: bool, data: bytes) -> str:
        return self._decoders[is_error].decode(data, final=not data)

    def take(self, is_error: bool, data: bytes) -> Calls:
        text, callback = self.decode(is_error, data), self._callbacks[is_error]
        self._kept[is_error].append(text)
        return [(callback, text)] if text and callback is not None else []

    @property
    def texts(self) -> tuple[str, str]:
        return "".join(self._kept[0]), "".join(self._kept[1])


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


class _OfCall(_OfSession):
    """A command in the background. `pid` is the number of its call in the session."""

    def __init__(self, session: _Session, pid: int):
        super().__init__(session)
        self.pid = pid

    def _log(self) -> _Process:
        return _Process(self._session.words("logs", str(self.pid), "--follow"))


class _CallSteps(_OfCall):
    def wait(self: _OfCall, on_stdout: OnText = None, on_stderr: OnText = None) -> Steps[CommandResult]:
        """All that it writes, what it has written already included, until it ends."""
        text, process = _Text(on_stdout, on_stderr), self._log()
        process.take = text.take
        yield process
        return _checked(_result_of((yield from self._session.ask("wait", str(self.pid))), *text.texts))

    def kill(self: _OfCall) -> Steps[bool]:
        try:
            yield from self._session.ask("kill", str(self.pid), "KILL")
        except SandboxNotFoundException:
            raise
        except NotFoundException:
            return False
        return True

    def send_stdin(self: _OfCall, data: Union[str, bytes], request_timeout: Optional[float] = 60) -> Steps[None]:
        """To one that was begun with stdin=True. Returns when the sandbox has taken it; a command that never reads takes about 200 kB.

        request_timeout: seconds, after which a part has been sent; 0 or None: as long as the command lives."""
        with _file_of(data) as source:
            yield from _answer(self._session.words("send", "--json", str(self.pid), "-"), source, timeout=_seconds(request_timeout or 0))

    def close_stdin(self: _OfCall, request_timeout: Optional[float] = None) -> Steps[None]:
        """The command meets the end of its input."""
        yield from self._session.ask("send", str(self.pid), "--end")

    def disconnect(self: _OfCall) -> Steps[None]:
        """Nothing to do: the command runs on."""
        return
        yield


class CommandHandle(_OfCall):
    """A command in the background. `pid` is the number of its call in the session.

    Iterating gives (stdout, stderr, None), one of them None, as it comes."""

    wait, kill, disconnect = _sync(_CallSteps.wait), _sync(_CallSteps.kill), _sync(_CallSteps.disconnect)
    send_stdin, close_stdin = _sync(_CallSteps.send_stdin), _sync(_CallSteps.close_stdin)

    def __iter__(self) -> Iterator[tuple[Optional[str], Optional[str], None]]:
        text = _Text()
        for is_error, data in _pieces(self._log()):
            piece = text.decode(is_error, data)
            if piece:
                yield (None, piece, None) if is_error else (piece, None, None)


class AsyncCommandHandle(_OfCall):
    """The same with coroutines, and `async for`."""

    wait, kill, disconnect = _async(_CallSteps.wait), _async(_CallSteps.kill), _async(_CallSteps.disconnect)
    send_stdin, close_stdin = _async(_CallSteps.send_stdin), _async(_CallSteps.close_stdin)

    async def __aiter__(self) -> AsyncIterator[tuple[Optional[str], Optional[str], None]]:
        text, process = _Text(), self._log()
        pieces: asyncio.Queue[Optional[tuple[bool, bytes]]] = asyncio.Queue(16)
        process.take = lambda is_error, data: [(pieces.put, (is_error, data))]
        reading = asyncio.ensure_future(_run_process_async(process))
        reading.add_done_callback(lambda _: ends.set())
        ends = asyncio.Event()
        try:
            while not (ends.is_set() and pieces.empty()):
                waiting = [asyncio.ensure_future(pieces.get()), asyncio.ensure_future(ends.wait())]
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                waiting[1].cancel()
                if not waiting[0].done():
                    waiting[0].cancel()
                    continue
                got = waiting[0].result()
                assert isinstance(got, tuple)
                piece = text.decode(*got)
                if piece:
                    yield (None, piece, None) if got[0] else (piece, None, None)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


class _CommandSteps(_OfSession):
    """`sandbox.commands`."""

    def begin(self: _OfSession, cmd: Line, envs: Optional[dict[str, str]], user: Optional[str], cwd: Optional[str], stdin: Input) -> Steps[int]:
        """In the background: its number."""
        _check_line(cmd)
        if isinstance(stdin, (str, bytes)):
            raise _not_offered("input given at once in the background", "with stdin=True the handle has send_stdin() and close_stdin()")
        with _Variables(envs) as variables:
            words = self._session.words("exec", "--quiet", "--stdin", "open" if stdin else "null", *_place(user, cwd), *variables.options)
            return int((yield from _answer([*words, "--detach", "--json", "--", *_command(cmd)], descriptors=variables.descriptors))["call"])

    def run(self: _OfSession, cmd: Line, envs: Optional[dict[str, str]], user: Optional[str], cwd: Optional[str], on_stdout: OnText, on_stderr: OnText,
            stdin: Input, timeout: Optional[float]) -> Steps[CommandResult]:
        _check_line(cmd)
        if stdin is True:
            raise _not_offered("stdin=True in the foreground", "with background=True the handle has send_stdin() and close_stdin(); or give all of the input: commands.run('command', stdin='text')")
        text = _Text(on_stdout, on_stderr)
        with _Variables(envs) as variables, open(_memory_file("report"), "r+b") as report, _file_of(stdin or "") as source:
            words = self._session.words("exec", "--quiet", *_place(user, cwd), *self._session.time(timeout), *variables.options)
            done = yield _Process([*words, "--report-fd", str(report.fileno()), "--", *_command(cmd)], source if isinstance(stdin, (str, bytes)) else None,
                                  [*variables.descriptors, report.fileno()], text.take)
            report.seek(0)
            record = report.read()
        if not record:
            raise SandboxException(f"{words[0]} wrote no record (exit status {done.status}): {text.texts[1].strip()}")
        return _checked(_result_of(json.loads(record), *text.texts))

    def list(self: _OfSession, request_timeout: Optional[float] = None) -> Steps[Processes]:
        calls = (yield from self._session.ask("calls"))["calls"]
        return [ProcessInfo(each["call"], each["command"]) for each in calls if each["background"] and each["state"] == "running"]

    def kill(self: _OfSession, pid: int, request_timeout: Optional[float] = None) -> Steps[bool]:
        return _CallSteps.kill(_OfCall(self._session, pid))

    def send_stdin(self: _OfSession, pid: int, data: Union[str, bytes], request_timeout: Optional[float] = 60) -> Steps[None]:
        return _CallSteps.send_stdin(_OfCall(self._session, pid), data, request_timeout)

    def close_stdin(self: _OfSession, pid: int, request_timeout: Optional[float] = None) -> Steps[None]:
        return _CallSteps.close_stdin(_OfCall(self._session, pid))

    def find(self: _OfSession, pid: int) -> Steps[None]:
        if all(each.pid != pid for each in (yield from _CommandSteps.list(self))):
            raise NotFoundException(f"no background command {pid} runs")


def _command(cmd: Line) -> list[str]:
    return ["bash", "-c", cmd] if isinstance(cmd, str) else list(cmd)


def _place(user: Optional[str], cwd: Optional[str]) -> list[str]:
    _check_user(user)
    return ["--cwd", cwd] if cwd is not None else []


class Commands(_OfSession):
    """`sandbox.commands`."""

    def run(self, cmd: Line, background: bool = False, envs: Optional[dict[str, str]] = None, user: Optional[str] = None, cwd: Optional[str] = None,
            on_stdout: OnText = None, on_stderr: OnText = None, stdin: Input = None, timeout: Optional[float] = 60,
            request_timeout: Optional[float] = None) -> Any:
        """Runs a line of bash, or the words of a command: a CommandResult, or a CommandHandle in the background. It reads `stdin`, a str or bytes."""
        if background:
            return CommandHandle(self._session, _drive(_CommandSteps.begin(self, cmd, envs, user, cwd, stdin)))
        return _drive(_CommandSteps.run(self, cmd, envs, user, cwd, on_stdout, on_stderr, stdin, timeout))

    list, kill, send_stdin, close_stdin = _sync(_CommandSteps.list), _sync(_CommandSteps.kill), _sync(_CommandSteps.send_stdin), _sync(_CommandSteps.close_stdin)

    def connect(self, pid: int, **_: Any) -> CommandHandle:
        _drive(_CommandSteps.find(self, pid))
        return CommandHandle(self._session, pid)


class AsyncCommands(_OfSession):
    """The same with coroutines."""

    async def run(self, cmd: Line, background: bool = False, envs: Optional[dict[str, str]] = None, user: Optional[str] = None, cwd: Optional[str] = None,
                  on_stdout: OnText = None, on_stderr: OnText = None, stdin: Input = None, timeout: Optional[float] = 60,
                  request_timeout: Optional[float] = None) -> Any:
        """Runs a line of bash, or the words of a command: a CommandResult, or an AsyncCommandHandle in the background. It reads `stdin`, a str or bytes."""
        if background:
            return AsyncCommandHandle(self._session, await _drive_async(_CommandSteps.begin(self, cmd, envs, user, cwd, stdin)))
        return await _drive_async(_CommandSteps.run(self, cmd, envs, user, cwd, on_stdout, on_stderr, stdin, timeout))

    list, kill, send_stdin, close_stdin = _async(_CommandSteps.list), _async(_CommandSteps.kill), _async(_CommandSteps.send_stdin), _async(_CommandSteps.close_stdin)

    async def connect(self, pid: int, **_: Any) -> AsyncCommandHandle:
        await _drive_async(_CommandSteps.find(self, pid))
        return AsyncCommandHandle(self._session, pid)


class _Pty:
    def create(self, *_: Any, **__: Any) -> Any:
        raise _not_offered("pty.create", "sbx session exec -i NAME bash gives a terminal")


class _Cell:
    """A cell while its events come."""

    def __init__(self, on_stdout: "Optional[Callable[[OutputMessage], Any]]", on_stderr: "Optional[Callable[[OutputMessage], Any]]",
                 on_result: "Optional[Callable[[CellResult], Any]]", on_error: "Optional[Callable[[ExecutionError], Any]]"):
        self.execution = Execution()
        self.failure: Optional[SandboxException] = None
        self._on_output, self._on_result, self._on_error = (on_stdout, on_stderr), on_result, on_error
        self._begun = b""  # a line

    def take(self, is_error: bool, data: bytes) -> Calls:
        if is_error:
            return
        *lines, self._begun = (self._begun + data).split(b"\n") if b"\n" in data else [self._begun + data]
        for line in lines:
            yield from self._hear(json.loads(line))

    def _hear(self, event: dict[str, Any]) -> Calls:
        kind, execution = event["event"], self.execution
        if kind in ("stdout", "stderr"):
            text = base64.b64decode(event["text"]).decode(errors="replace") if event["encoding"] == "base64" else event["text"]
            (execution.logs.stdout if kind == "stdout" else execution.logs.stderr).append(text)
            callback = self._on_output[kind == "stderr"]
            if callback:
                yield callback, OutputMessage(text, time.time_ns(), kind == "stderr")
        elif kind == "result":
            execution.results.append(CellResult(event["data"], event["main"]))
            if self._on_result:
                yield self._on_result, execution.results[-1]
        elif kind == "error":
            execution.error = ExecutionError(event["name"], event["value"], event["traceback"])
        elif kind == "end":
            self._end(event["record"])
            if execution.error and self._on_error and not self.failure:
                yield self._on_error, execution.error

    def _end(self, record: dict[str, Any]) -> None:
        execution, outcome = self.execution, record["outcome"]
        execution.record = record
        if outcome["status"] == "setup-failed":
            self.failure = _failure(outcome, outcome["detail"])
            return
        if record["answer"] is not None:
            execution.execution_count = record["answer"]["count"]
        if outcome["status"] == "over-budget" and outcome["reason"] == "wall_time":
            self.failure = error = TimeoutException(outcome["detail"])
            error.execution = execution
            return
        names = {"over-budget": "BudgetExceeded", "died": "InterpreterDied", "interrupted": "Interrupted", "cancelled": "Cancelled", "denied": "Denied"}
        if outcome["status"] in names:
            execution.error = ExecutionError(names[outcome["status"]], outcome["detail"], execution.error.traceback if execution.error else "")


class SandboxPaginator:
    """What Sandbox.list() gives: one page."""

    def __init__(self, found: list[SandboxInfo]):
        self._found, self.has_next, self.next_token = found, True, None

    def next_items(self) -> list[SandboxInfo]:
        self.has_next = False
        return self._found


class AsyncSandboxPaginator:
    """What AsyncSandbox.list() gives, with `await` and without: one page."""

    def __init__(self, program: str):
        self._program, self.has_next, self.next_token = program, True, None

    async def next_items(self) -> list[SandboxInfo]:
        self.has_next = False
        return (await _drive_async(_list(program=self._program))).next_items()

    async def _itself(self) -> "AsyncSandboxPaginator":
        return self

    def __await__(self) -> Generator[Any, None, "AsyncSandboxPaginator"]:
        return self._itself().__await__()


def _info(facts: dict[str, Any], metadata: dict[str, str]) -> SandboxInfo:
    return SandboxInfo(facts["name"], facts["policy"]["name"], metadata, _time(facts["started"]), _time(facts["expires"]))


def _stop(session: _Session) -> Steps[bool]:
    try:
        yield from session.ask("stop")
    except SandboxNotFoundException:
        return False
    return True


class _ById:
    """A method of a sandbox, and of the class with an id before the other arguments: sandbox.kill() and Sandbox.kill(id)."""

    def __init__(self, run: Callable[[Steps[Any]], Any], steps: Callable[..., Steps[Any]]):
        self._run, self._steps = run, steps

    def __get__(self, sandbox: Optional[_OfSession], _: Any) -> Callable[..., Any]:
        if sandbox is not None:
            return functools.partial(self._drive, sandbox)

        @functools.wraps(self._steps)
        def of_class(sandbox_id: str, *arguments: Any, program: str = "sbx", **named: Any) -> Any:
            return self._drive(_OfSession(_Session(sandbox_id, program)), *arguments, **named)

        return of_class

    def _drive(self, sandbox: _OfSession, *arguments: Any, **named: Any) -> Any:
        return self._run(self._steps(sandbox, *arguments, **named))


_WARNED: set[str] = set()


def _check_compatible(arguments: dict[str, Any]) -> list[str]:
    """What E2B's constructor takes besides: without effect here, refused, or an option of session start."""
    for name in ("network", "mcp", "volume_mounts"):
        if arguments.pop(name, None) is not None:
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


def _is_policy(name: str, program: str) -> Steps[bool]:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        return False
    return (yield _Process([program, "policy", "show", "--", name])).status == 0


_MODES = (":overlay", ":read-only", ":read-write", ":empty")


class _Begun(_OfSession):
    """What is the same in Sandbox and AsyncSandbox."""

    def __init__(self, facts: dict[str, Any], program: str, metadata: dict[str, str]):
        super().__init__(_Session(facts["name"], program, facts))
        self.sandbox_id: str = facts["name"]
        self._metadata, self._published = metadata, facts["published"]

    pty = _Pty()

    def get_host(self, port: int) -> str:
        """Where a port of the sandbox can be reached."""
        for each in self._published:
            host, _, inside = each.rpartition(":")
            if inside == str(port):
                return str(host)
        raise _not_offered("get_host", f'a policy with network.publish = ["{port}:{port}"] makes the port reachable at 127.0.0.1:{port}')

    def upload_url(self, *_: Any, **__: Any) -> Any:
        raise _not_offered("upload_url", "files.write() takes an open file too")

    def download_url(self, *_: Any, **__: Any) -> Any:
        raise _not_offered("download_url", 'files.read(path, "stream") gives the bytes')

    def get_mcp_url(self, *_: Any, **__: Any) -> Any:
        raise _not_offered("get_mcp_url", "sbx mcp is a server for one client, on its standard streams")


def _extend(session: _Session, timeout: float) -> Steps[dict[str, Any]]:
    """By the lifetime of its policy at most, where that is known."""
    if math.isinf(min(timeout, session.lifetime)):
        raise InvalidArgumentException("timeout is a number of seconds, not inf")
    return session.ask("extend", f"{max(1, math.ceil(min(timeout, session.lifetime)))}s")


def _start(template: Optional[str], timeout: Optional[float], envs: Optional[dict[str, str]], policy: Optional[str], workspace: Optional[str], program: str,
           compatible: dict[str, Any]) -> Steps[dict[str, Any]]:
    options = _check_compatible(compatible)
    _seconds(timeout or 0)  # what is no number is an error before anything is started
    if policy is None and template is not None and (yield from _is_policy(template, program)):
        policy = template
    if workspace is not None:
        options += ["--workspace", workspace if policy or workspace.endswith(_MODES) else workspace + ":overlay"]
    with _Variables(envs) as variables:
        words = [program, "session", "start", "--json", "--die-with-parent", "--policy", policy or 'e2b', *options, *variables.options]
        facts = yield from _answer(words, descriptors=variables.descriptors)
    facts["lifetime"] = max(1, facts["expires"] - facts["started"] - 1)  # both are rounded
    if timeout:
        yield from _extend(_Session(facts["name"], program, facts), timeout)
    return facts


def _find(sandbox_id: str, timeout: Optional[float], program: str, compatible: dict[str, Any]) -> Steps[dict[str, Any]]:
    _check_compatible(compatible)
    _seconds(timeout or 0)
    facts = yield from _Session(sandbox_id, program).ask("show")
    if timeout:
        yield from _extend(_Session(sandbox_id, program, facts), timeout)
    return facts


def _list(*, program: str = "sbx", **_: Any) -> Steps[SandboxPaginator]:
    return SandboxPaginator([_info(each, {}) for each in (yield from _answer([program, "session", "list", "--json"]))["sessions"]])


def _known_context(sandbox: _Begun, name: str) -> Steps[Context]:
    for each in (yield from _SandboxSteps.list_code_contexts(sandbox)):
        if each.id == name:
            return each
    raise NotFoundException(f"there is no context {name!r}")


class _SandboxSteps(_Begun):
    def run_code(self: _Begun, code: str, language: Optional[str] = None, context: Union[Context, str, None] = None, on_stdout: Optional[Callable[[OutputMessage], Any]] = None,
                 on_stderr: Optional[Callable[[OutputMessage], Any]] = None, on_result: Optional[Callable[[CellResult], Any]] = None,
                 on_error: Optional[Callable[[ExecutionError], Any]] = None, envs: Optional[dict[str, str]] = None, timeout: Optional[float] = 60,
                 request_timeout: Optional[float] = None) -> Steps[Execution]:
        """Runs a cell. timeout: seconds, which may only be less than the policy's; 0 or None: the policy's."""
        if language is not None and context is not None:
            raise InvalidArgumentException("language and context exclude each other")
        if isinstance(context, str):
            context = yield from _known_context(self, context)
        words = self._session.words("eval", "--stream", "--quiet", *self._session.time(timeout))
        if language is not None:
            words += ["--lang", language]
        if context is not None:
            words += ["--context", context.id, "--lang", context.language]
        cell = _Cell(on_stdout, on_stderr, on_result, on_error)
        with _file_of(code) as source, _Variables(envs) as variables:
            done = yield _Process([*words, *variables.options], source, variables.descriptors, cell.take)
        if cell.failure:
            raise cell.failure
        if not cell.execution.record:
            raise SandboxException(f"{words[0]} gave no answer (exit status {done.status}): {done.stderr.decode(errors='replace').strip()}")
        return cell.execution

    def create_code_context(self: _Begun, cwd: Optional[str] = None, language: Optional[str] = None, request_timeout: Optional[float] = None) -> Steps[Context]:
        """An interpreter of its own, which is started now, in a directory inside."""
        options = ["--cwd", cwd] if cwd is not None else []
        made = yield from self._session.ask("context", "--lang", language or "python", *options)
        return Context(made["context"], made["language"], cwd)

    def list_code_contexts(self: _Begun, request_timeout: Optional[float] = None) -> Steps[Contexts]:
        return [Context(each["context"], each["language"], each["directory"] or None) for each in (yield from self._session.ask("contexts"))["contexts"]]

    def remove_code_context(self: _Begun, context: Union[Context, str], request_timeout: Optional[float] = None) -> Steps[None]:
        """Ends its interpreter."""
        yield from self._session.ask("close", context if isinstance(context, str) else context.id)

    def restart_code_context(self: _Begun, context: Union[Context, str], request_timeout: Optional[float] = None) -> Steps[None]:
        """Ends its interpreter; the next cell finds a new one, in the same directory."""
        yield from self._session.ask("restart", context if isinstance(context, str) else context.id)

    def is_running(self: _Begun, request_timeout: Optional[float] = None) -> Steps[bool]:
        try:
            yield from self._session.ask("show")
        except SandboxNotFoundException:
            return False
        return True

    def kill(self: _OfSession, **_: Any) -> Steps[bool]:
        """Ends it. False: it had ended."""
        return _stop(self._session)

    def set_timeout(self: _OfSession, timeout: float, request_timeout: Optional[float] = None) -> Steps[None]:
        """It lives for so many seconds from now, session.lifetime of its policy at most."""
        yield from _extend(self._session, _seconds(timeout))

    def get_info(self: _OfSession, request_timeout: Optional[float] = None) -> Steps[SandboxInfo]:
        return _info((yield from self._session.ask("show")), self._metadata if isinstance(self, _Begun) else {})

    def get_metrics(self: _OfSession, **_: Any) -> Steps[Metrics]:
        facts = yield from self._session.ask("stats")
        cpus, elapsed = facts["limits"]["cpus"], max(1.0, time.time() - facts["started"])
        return [SandboxMetrics(_time(time.time()), cpus, 0.1 * facts["cpu_ms"] / elapsed / cpus, facts["memory_bytes"], facts["memory_limit_bytes"], facts["disk_bytes"], facts["disk_limit_bytes"])]

    def pause(self: _Begun, **_: Any) -> Steps[Any]:
        raise _not_offered("pause", "there are no snapshots of memory; sbx session keep saves the files")
        yield

    def exec_cell(self: _Begun, code: str, kernel_id: Optional[str] = None, on_stdout: Optional[Callable[[OutputMessage], Any]] = None,
                  on_stderr: Optional[Callable[[OutputMessage], Any]] = None, on_result: Optional[Callable[[CellResult], Any]] = None, timeout: Optional[float] = 60,
                  **_: Any) -> Steps[Execution]:
        return (yield from _SandboxSteps.run_code(self, code, None, kernel_id, on_stdout, on_stderr, on_result, None, None, timeout))


def _warn_of_v0(old: str, new: str) -> None:
    warnings.warn(f"{old} is of E2B's first version: use {new}", DeprecationWarning, stacklevel=3)


class _Notebook:
    def __init__(self, exec_cell: Callable[..., Any]):
        self.exec_cell = exec_cell


class Sandbox(_Begun):
    """A sandbox that stays: `with Sandbox() as sandbox: sandbox.run_code("1 + 1").text`.

    It ends with the process that made it. Without `policy`: "e2b", which shows nothing of yours and has no network."""

    def __init__(self, template: Optional[str] = None, timeout: Optional[float] = 300, metadata: Optional[dict[str, str]] = None, envs: Optional[dict[str, str]] = None, *,
                 policy: Optional[str] = None, workspace: Optional[str] = None, program: str = "sbx", **compatible: Any):
        self._begin(_drive(_start(template, timeout, envs, policy, workspace, program, compatible)), program, metadata or {})

    def _begin(self, facts: dict[str, Any], program: str, metadata: dict[str, str]) -> None:
        super().__init__(facts, program, metadata)
        self.files, self.commands = Files(self._session), Commands(self._session)

    @classmethod
    def create(cls, *arguments: Any, **named: Any) -> "Sandbox":
        return cls(*arguments, **named)

    @classmethod
    def connect(cls, sandbox_id: str, timeout: Optional[float] = None, *, program: str = "sbx", **compatible: Any) -> "Sandbox":
        """One that lives. It does not end with this process."""
        sandbox = cls.__new__(cls)
        sandbox._begin(_drive(_find(sandbox_id, timeout, program, compatible)), program, {})
        return sandbox

    list = staticmethod(_sync(_list))
    kill, get_info = _ById(_drive, _SandboxSteps.kill), _ById(_drive, _SandboxSteps.get_info)
    set_timeout, get_metrics = _ById(_drive, _SandboxSteps.set_timeout), _ById(_drive, _SandboxSteps.get_metrics)

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    run_code, close = _sync(_SandboxSteps.run_code), _sync(_SandboxSteps.kill)
    create_code_context, list_code_contexts = _sync(_SandboxSteps.create_code_context), _sync(_SandboxSteps.list_code_contexts)
    remove_code_context, restart_code_context = _sync(_SandboxSteps.remove_code_context), _sync(_SandboxSteps.restart_code_context)
    is_running = _sync(_SandboxSteps.is_running)
    pause = create_snapshot = fork = _sync(_SandboxSteps.pause)

    @property
    def notebook(self) -> _Notebook:
        _warn_of_v0("sandbox.notebook.exec_cell", "sandbox.run_code")
        return _Notebook(functools.partial(_sync(_SandboxSteps.exec_cell), self))

    @property
    def filesystem(self) -> Files:
        _warn_of_v0("sandbox.filesystem", "sandbox.files")
        return self.files


class AsyncSandbox(_Begun):
    """The same with coroutines: `async with await AsyncSandbox.create() as sandbox: (await sandbox.run_code("1 + 1")).text`.

    Callbacks may be coroutines. A task that is cancelled cancels its cell or command."""

    def __init__(self, *_: Any, **__: Any):
        raise InvalidArgumentException("AsyncSandbox() can't wait for the start: use await AsyncSandbox.create()")

    @classmethod
    def _of(cls, facts: dict[str, Any], program: str, metadata: dict[str, str]) -> "AsyncSandbox":
        sandbox = cls.__new__(cls)
        _Begun.__init__(sandbox, facts, program, metadata)
        sandbox.files, sandbox.commands = AsyncFiles(sandbox._session), AsyncCommands(sandbox._session)
        return sandbox

    files: AsyncFiles
    commands: AsyncCommands

    @classmethod
    async def create(cls, template: Optional[str] = None, timeout: Optional[float] = 300, metadata: Optional[dict[str, str]] = None, envs: Optional[dict[str, str]] = None, *,
                     policy: Optional[str] = None, workspace: Optional[str] = None, program: str = "sbx", **compatible: Any) -> "AsyncSandbox":
        return cls._of(await _drive_async(_start(template, timeout, envs, policy, workspace, program, compatible)), program, metadata or {})

    @classmethod
    async def connect(cls, sandbox_id: str, timeout: Optional[float] = None, *, program: str = "sbx", **compatible: Any) -> "AsyncSandbox":
        """One that lives. It does not end with this process."""
        return cls._of(await _drive_async(_find(sandbox_id, timeout, program, compatible)), program, {})

    @staticmethod
    def list(*, program: str = "sbx", **_: Any) -> AsyncSandboxPaginator:
        return AsyncSandboxPaginator(program)

    kill, get_info = _ById(_drive_async, _SandboxSteps.kill), _ById(_drive_async, _SandboxSteps.get_info)
    set_timeout, get_metrics = _ById(_drive_async, _SandboxSteps.set_timeout), _ById(_drive_async, _SandboxSteps.get_metrics)

    async def __aenter__(self) -> "AsyncSandbox":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    run_code, close = _async(_SandboxSteps.run_code), _async(_SandboxSteps.kill)
    create_code_context, list_code_contexts = _async(_SandboxSteps.create_code_context), _async(_SandboxSteps.list_code_contexts)
    remove_code_context, restart_code_context = _async(_SandboxSteps.remove_code_context), _async(_SandboxSteps.restart_code_context)
    is_running = _async(_SandboxSteps.is_running)
    pause = create_snapshot = fork = _async(_SandboxSteps.pause)

    @property
    def notebook(self) -> _Notebook:
        _warn_of_v0("sandbox.notebook.exec_cell", "sandbox.run_code")
        return _Notebook(functools.partial(_async(_SandboxSteps.exec_cell), self))

    @property
    def filesystem(self) -> AsyncFiles:
        _warn_of_v0("sandbox.filesystem", "sandbox.files")
        return self.files

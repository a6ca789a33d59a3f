"""Run code in a sandbox from Python: one file around `sbx run --json`, to be copied into a project.

    import sbx

    run = sbx.run("print(6 * 7)", timeout=10)
    print(run.text if run.success else run.detail)

Needs Python 3.9 and the program sbx, nothing else.
"""

import base64
import dataclasses
import json
import os
import subprocess
from typing import Optional


class SetupFailed(Exception):
    """sbx could not run the program: a wrong option, a wrong policy, or what this machine lacks. Nothing ran."""

    def __init__(self, code, detail, hint):
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
    denials: tuple
    record: dict  # everything: sbx-record(5)

    @property
    def text(self):
        return self.stdout.decode(errors="replace")

    @property
    def error_text(self):
        return self.stderr.decode(errors="replace")


def run(code, lang="python", policy="python", *, arguments=(), **settings):
    """Runs a program that is given as text. The settings are those of run_command()."""
    return _run(["--lang", lang, "-", *arguments], policy, code.encode(), **settings)


def run_command(command, policy="shell", *, input=b"", **settings):
    """Runs a command, a list of words, with `input` on its standard input.

    Settings: `workspace` (a directory; the policy says how it is given), `timeout` (seconds of wall time), `memory` (bytes),
    `allow_hosts` ("HOST:PORT"), `environment` (a dict), `options` (further options of sbx run), `program` (the sbx to start).
    """
    return _run(["--", *command], policy, input, **settings)


def _run(operands, policy, input, *, workspace=None, timeout=None, memory=None, allow_hosts=(), environment=None, options=(), program="sbx"):
    words = [program, "run", "--json", "--policy", policy]
    if timeout is not None:
        words += ["--timeout", f"{round(timeout * 1000)}ms"]
    if memory is not None:
        words += ["--memory", f"{memory}B"]
    for host in allow_hosts:
        words += ["--allow-host", host]
    variables = "".join(f"{name}={value}\0" for name, value in (environment or {}).items())
    with _Variables(variables) as inherited:  # values on the command line could be read by every user of the machine
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

    def __init__(self, text):
        self.descriptors, self.options = (), []
        if text:
            descriptor = os.memfd_create("variables")
            os.write(descriptor, text.encode())
            os.lseek(descriptor, 0, os.SEEK_SET)
            self.descriptors, self.options = (descriptor,), ["--env-fd", str(descriptor)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for descriptor in self.descriptors:
            os.close(descriptor)


def _bytes_of(stream):
    text = stream["text"] or ""
    return base64.b64decode(text) if stream.get("encoding") == "base64" else text.encode()


def _result(record):
    outcome = record["outcome"]
    if outcome["status"] == "setup-failed":
        raise SetupFailed(outcome["code"], outcome["detail"], outcome["hint"])
    denials = tuple(Denial(**{field.name: denial[field.name] for field in dataclasses.fields(Denial)}) for denial in record["denials"])
    return Result(status=outcome["status"], reason=outcome["reason"], exit_code=outcome["exit_code"], signal=outcome["signal"],
                  success=outcome["success"], detail=outcome["detail"], stdout=_bytes_of(record["stdout"]), stderr=_bytes_of(record["stderr"]),
                  truncated=record["stdout"]["truncated"] or record["stderr"]["truncated"], denials=denials, record=record)

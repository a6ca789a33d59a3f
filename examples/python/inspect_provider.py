"""A sandbox provider for inspect_ai: once this module is imported, Task(..., sandbox="sbx"), or sandbox=("sbx", "policy.toml")
with a policy that lies beside the task."""

from inspect_ai.util import ExecResult, OutputLimitExceededError, SandboxEnvironment, SandboxEnvironmentLimits, sandboxenv

from sbx import AsyncSandbox, CommandExitException, SandboxException, TimeoutException

# By what the kernel told, never by the words of a message.
ERRORS = {"not-found": FileNotFoundError, "not-a-directory": FileNotFoundError, "is-directory": IsADirectoryError, "not-permitted": PermissionError}


def as_builtin(error):
    return ERRORS.get(error.kind, RuntimeError)(str(error))


@sandboxenv(name="sbx")
class SbxSandboxEnvironment(SandboxEnvironment):
    def __init__(self, sandbox):
        self.sandbox = sandbox

    @classmethod
    async def sample_init(cls, task_name, config, metadata):
        return {"default": cls(await AsyncSandbox.create(policy=config, timeout=None))}

    @classmethod
    async def sample_cleanup(cls, task_name, config, environments, interrupted):
        for environment in environments.values():
            await environment.sandbox.kill()

    async def exec(self, cmd, input=None, cwd=None, env={}, user=None, timeout=None, timeout_retry=True, concurrency=True):
        if user not in (None, "user"):
            return ExecResult(False, 126, "", f"there is no user {user!r} in the sandbox, only 'user'\n")
        try:
            done = await self.sandbox.commands.run(cmd, envs=env, cwd=cwd, stdin=input, timeout=timeout)
        except CommandExitException as error:
            done = error
        except TimeoutException as error:
            raise TimeoutError(str(error)) from None
        except SandboxException as error:
            if error.kind == "not-found":  # as a shell tells it: the program, or the directory
                return ExecResult(False, 127, "", f"{error}\n")
            raise as_builtin(error) from None
        for text in (done.stdout, done.stderr):
            if len(text.encode()) > SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE:
                raise OutputLimitExceededError(f"{SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE} bytes", text)
        return ExecResult(done.exit_code == 0, done.exit_code, done.stdout, done.stderr)

    async def write_file(self, file, contents):
        try:
            await self.sandbox.files.write(file, contents)
        except SandboxException as error:
            raise as_builtin(error) from None

    async def read_file(self, file, text=True):
        content = bytearray()
        try:
            for piece in await self.sandbox.files.read(file, "stream"):
                content += piece
                if len(content) > SandboxEnvironmentLimits.MAX_READ_FILE_SIZE:
                    raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None)
        except SandboxException as error:
            raise as_builtin(error) from None
        return content.decode() if text else bytes(content)

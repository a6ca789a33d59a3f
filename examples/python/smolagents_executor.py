"""An executor for smolagents: CodeAgent(..., executor=SbxExecutor([], logger)). What the agent writes runs in a Sandbox."""

import base64
import io

from smolagents.local_python_executor import CodeOutput
from smolagents.monitoring import LogLevel
from smolagents.remote_executors import RemotePythonExecutor
from smolagents.utils import AgentError

from sbx import Sandbox, TimeoutException


class SbxExecutor(RemotePythonExecutor):
    """`settings` are those of Sandbox: policy, workspace, timeout, envs. The code inside is not trusted, so nothing of it is unpickled."""

    def __init__(self, additional_imports, logger, **settings):
        super().__init__(additional_imports, logger, allow_pickle=False)
        self.sandbox = Sandbox(**settings)
        try:
            self.installed_packages = self.install_packages(additional_imports)
        except BaseException:
            self.cleanup()
            raise
        self.logger.log("sbx is running", level=LogLevel.INFO)

    def run_code_raise_errors(self, code):
        try:
            execution = self.sandbox.run_code(code)
        except TimeoutException as error:
            raise AgentError(f"{''.join(error.execution.logs.stdout)}\n{error}", self.logger) from None
        logs = "".join(execution.logs.stdout)
        if execution.error:
            if execution.error.name == self.FINAL_ANSWER_EXCEPTION:
                return CodeOutput(output=self._deserialize_final_answer(execution.error.value, allow_pickle=False), logs=logs, is_final_answer=True)
            raise AgentError(f"{logs}\n{execution.error.name}: {execution.error.value}\n{execution.error.traceback}", self.logger)
        return CodeOutput(output=self._value(execution), logs=logs, is_final_answer=False)

    def _value(self, execution):
        """The cell's value: a picture if it has one, what JSON can say, else its text."""
        for result in execution.results:
            if result.is_main_result:
                if result.png:
                    import PIL.Image

                    return PIL.Image.open(io.BytesIO(base64.b64decode(result.png)))
                return result.json if result.json is not None else result.text
        return None

    def install_packages(self, packages):
        """With pip, inside: the policy must name its hosts."""
        if packages:
            self.sandbox.commands.run(["python3", "-m", "pip", "install", *packages], timeout=None)
        return packages

    def cleanup(self):
        self.sandbox.kill()

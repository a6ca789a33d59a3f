#!/usr/bin/env python3
"""An agent's tool: a model gives Python code, and reads what became of it. State stays between the calls."""

import json

from sbx import Sandbox, TimeoutException

TOOL = {"name": "run_python", "description": "Runs Python code in a sandbox without network. Variables and files stay between calls.",
        "input_schema": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}}
MOST = 10_000  # characters of an answer


def run_python(sandbox, code):
    """What the model reads: output, value and error; the same shape whatever happened."""
    try:
        execution = sandbox.run_code(code, timeout=10)
    except TimeoutException as error:  # the interpreter keeps its state
        return f"{''.join(error.execution.logs.stdout)[:MOST]}\n{error}".strip()
    parts = ["".join(execution.logs.stdout), "".join(execution.logs.stderr), execution.text or ""]
    if execution.error:
        parts.append(execution.error.traceback or f"{execution.error.name}: {execution.error.value}")
    return "\n".join(part.strip() for part in parts if part.strip())[:MOST] or "(no output)"


def canned_model():
    """In place of a model that was given TOOL: the calls that it makes."""
    yield {"name": TOOL["name"], "input": {"code": "prices = [4, 8, 15, 16, 23, 42]\nsum(prices) / len(prices)"}}
    yield {"name": TOOL["name"], "input": {"code": "prise[0]"}}
    yield {"name": TOOL["name"], "input": {"code": "print(max(prices))"}}


with Sandbox() as sandbox:
    for call in canned_model():
        print("model:", json.dumps(call["input"]["code"]))
        print("tool: ", run_python(sandbox, **call["input"]).splitlines()[-1])

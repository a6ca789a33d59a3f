#!/usr/bin/env python3
"""Ten sandboxes from one event loop: candidates of a model, each judged in a place of its own."""

import asyncio

from sbx import AsyncSandbox

CANDIDATES = [f"def square(x): return {body}" for body in ("x * x", "x ** 2", "x + x", "x * 2", "pow(x, 2)", "x ^ 2", "sum([x] * x)", "abs(x) * abs(x)", "x", "x / 0")]
TEST = "[square(x) == x * x for x in (-3, 0, 2, 5)]"


async def judge(code):
    async with await AsyncSandbox.create() as sandbox:
        await sandbox.run_code(code)
        execution = await sandbox.run_code(TEST)
        return execution.error.name if execution.error else all(execution.results[0].json)


async def main():
    verdicts = await asyncio.gather(*(judge(code) for code in CANDIDATES))
    for code, verdict in zip(CANDIDATES, verdicts):
        print(code.partition("return ")[2].ljust(16), verdict)


asyncio.run(main())

#!/usr/bin/env python3
"""A stateful session: variables stay, contexts are apart, and neither an error nor a time-out loses anything."""

from sbx import Sandbox, TimeoutException

with Sandbox(timeout=600) as sandbox:
    sandbox.run_code("words = ['one', 'two']")
    sandbox.run_code("words.append('three')")
    print("kept:", sandbox.run_code("len(words)").text)

    apart = sandbox.create_code_context()
    print("apart:", sandbox.run_code("words", context=apart).error.name)

    sandbox.run_code("words.append('four'); 1 / 0")
    try:
        sandbox.run_code("print('begun', flush=True)\nwhile True: pass", timeout=2)
    except TimeoutException as error:
        print("time-out:", "".join(error.execution.logs.stdout).strip())
    print("still kept:", sandbox.run_code("words").text)

    # A budget ends the interpreter: the next cell finds a new one, and the files are there.
    sandbox.run_code("open('words', 'w').write(' '.join(words))")
    print("budget:", sandbox.run_code("hoard = []\nwhile True: hoard.append(bytearray(1 << 20))").error.name)
    print("files:", sandbox.run_code("open('words').read()").text)

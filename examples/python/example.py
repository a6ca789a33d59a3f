#!/usr/bin/env python3
"""Three programs of a model: one that works, one that never ends, one that does what the policy refuses."""

import sbx

for code in ("print(6 * 7)", "while True: pass", "import ctypes; print(ctypes.CDLL(None).ptrace(0, 0, 0, 0)); raise SystemExit(1)"):
    run = sbx.run(code, timeout=1)
    print(run.text.strip() if run.success else run.detail)
    for denial in run.denials:
        print("  refused:", denial.what, "-", denial.rule)

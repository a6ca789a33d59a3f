#!/usr/bin/env python3
"""A data analysis with a chart: a file goes in, a model's code draws, the picture comes out. Usage: chart.py CSV PNG"""

import base64
import pathlib
import sys

from sbx import Sandbox

CODE = """
import matplotlib.pyplot as plt
import pandas

table = pandas.read_csv("data.csv", parse_dates=["date"])
months = table.groupby([table["date"].dt.strftime("%Y-%m"), "station"])["temperature_c"].mean().unstack()
months.plot(figsize=(8, 4), ylabel="°C", xlabel="", grid=True)
plt.show()
table.groupby("station")["temperature_c"].mean().round(1).to_dict()
"""

table, picture = map(pathlib.Path, sys.argv[1:])
with Sandbox() as sandbox:
    sandbox.files.write("data.csv", table.read_bytes())
    execution = sandbox.run_code(CODE)
if execution.error:
    raise SystemExit(execution.error.traceback)
print(execution.text)
(drawn,) = [result.png for result in execution.results if result.png]
picture.write_bytes(base64.b64decode(drawn))
print("Picture:", picture)

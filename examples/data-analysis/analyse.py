#!/usr/bin/python3
"""Monthly means of a table of measurements: prints them, and draws them into temperatures.png."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd

table = pd.read_csv("temperatures.csv", parse_dates=["date"])
monthly = (
    table.assign(month=table["date"].dt.to_period("M"))
    .pivot_table(index="month", columns="station", values="temperature_c", aggfunc="mean")
    .round(1)
)
summary = table.groupby("station").agg(
    measurements=("temperature_c", "size"),
    mean_c=("temperature_c", "mean"),
    coldest_c=("temperature_c", "min"),
    warmest_c=("temperature_c", "max"),
    rain_mm=("rain_mm", "sum"),
)

print(summary.round(1).to_string())
warmest = monthly.stack().idxmax()
print(f"\nWarmest month: {warmest[0]} at {warmest[1]}, {monthly.loc[warmest[0], warmest[1]]} °C")

axes = monthly.plot(figsize=(8, 4), ylabel="mean temperature, °C", xlabel="", grid=True)
axes.figure.tight_layout()
# No date in the file: two runs give the same bytes.
axes.figure.savefig("temperatures.png", dpi=100, metadata={"Software": None})
print("Picture: temperatures.png")

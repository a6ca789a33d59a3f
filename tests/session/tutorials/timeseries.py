# A year of daily readings: resampling, shifting, comparing months.
# %%
import numpy as np
import pandas as pd
import matplotlib.pyplot as plt
# %%
days = pd.date_range("2023-01-01", "2023-12-31", freq="D")
readings = pd.Series(np.arange(len(days), dtype=float), index=days, name="reading")
# %% table
readings.head()
# %% table
weekly = readings.resample("W").mean()
weekly.tail(2)
# %% table
months = readings.resample("MS").agg(["min", "max", "count"])
months
# %% table
readings["2023-02-27":"2023-03-02"]
# %% table
readings.diff().describe()
# %% table
pd.DataFrame({"today": readings, "a week ago": readings.shift(7)}).dropna().iloc[:2]
# %% figure text
fig, ax = plt.subplots(figsize=(6, 2))
ax.plot(readings.index, readings)
ax.plot(weekly.index, weekly, "--")
ax.set_ylabel("reading")
# %% text
readings.groupby(readings.index.day_name()).count()["Sunday"]
# %%
assert len(months) == 12 and months["count"].sum() == 365
assert months.loc["2023-02-01", "count"] == 28
assert (readings.diff().dropna() == 1).all()

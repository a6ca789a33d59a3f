# Dates and times: parsing, parts, differences, time zones, business days.
# %%
import pandas as pd
from datetime import date, timedelta
# %% table
log = pd.DataFrame({"begin": ["2024-02-28 23:30", "2024-03-31 00:45", "not a date"], "minutes": [90, 120, 5]})
log
# %% table
log["begin"] = pd.to_datetime(log.begin, errors="coerce")
log["end"] = log.begin + pd.to_timedelta(log.minutes, unit="min")
log
# %% table
log.begin.dt.day_name()
# %% table
log.dropna().assign(year=log.begin.dt.year, quarter=log.begin.dt.quarter, leap=log.begin.dt.is_leap_year)
# %% text
log.end.max() - log.begin.min()
# %% table
berlin = log.begin.dropna().dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")
berlin
# %% text
pd.bdate_range("2024-05-01", "2024-05-10").strftime("%d %a").tolist()
# %% text
date(2024, 3, 1) - timedelta(days=1)
# %% error
pd.to_datetime("not a date")
# %%
assert log.end[0] == pd.Timestamp("2024-02-29 01:00") and log.begin.isna().sum() == 1
assert berlin[1].hour == 1 and berlin[0].hour == 0
assert len(pd.bdate_range("2024-05-01", "2024-05-10")) == 8

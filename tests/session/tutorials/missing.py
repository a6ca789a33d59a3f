# Holes in a table: finding, dropping, filling and interpolating them.
# %%
import numpy as np
import pandas as pd
# %% table
weather = pd.DataFrame({"rain": [0.0, np.nan, 3.0, np.nan, 9.0], "wind": [5, None, None, 2, 1], "note": ["dry", None, "wet", "wet", ""]})
weather
# %% table
weather.isna().sum()
# %% table
weather.dropna()
# %% table
weather.dropna(thresh=2)
# %% table
weather.fillna({"rain": weather.rain.mean(), "wind": 0, "note": "?"})
# %% table
weather.rain.interpolate()
# %% table
weather.ffill().bfill()
# %% text
weather.rain.mean(), weather.rain.sum(), weather.rain.count()
# %% output
weather.info()
# %% table
weather.replace({"note": {"": pd.NA}}).assign(wind=weather.wind.astype("Int64"))
# %%
assert weather.isna().sum().to_dict() == {"rain": 2, "wind": 2, "note": 1}
assert weather.rain.interpolate().tolist() == [0, 1.5, 3, 6, 9]
assert len(weather.dropna()) == 2

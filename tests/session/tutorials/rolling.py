# Moving windows over a made-up price: means, extremes, expanding sums, weights.
# %%
import numpy as np
import pandas as pd
import matplotlib.pyplot as plt
# %% table
price = pd.Series([10.0, 12, 11, 15, 14, 13, 18, 17], index=pd.date_range("2024-01-01", periods=8), name="price")
price
# %% table
windows = pd.DataFrame({"price": price, "mean3": price.rolling(3).mean(), "max3": price.rolling(3).max()})
windows
# %% table
price.expanding().sum()
# %% table
price.ewm(span=3, adjust=False).mean().round(3)
# %% table
price.rolling("2D").sum()
# %% table
price.pct_change().mul(100).round(1)
# %% text
drop = (price / price.cummax() - 1).min()
f"{drop:.1%}"
# %% figure
ax = windows.plot(style=["o-", "-", ":"])
ax.legend(loc="upper left")
plt.show()
# %% table
price.rolling(3, min_periods=1).apply(lambda part: np.ptp(part))
# %%
assert windows.mean3.isna().sum() == 2 and windows.mean3[2] == 11
assert price.expanding().sum()[-1] == 110 and price.rolling("2D").sum()[1] == 22
assert abs(drop - (13 / 15 - 1)) < 1e-12

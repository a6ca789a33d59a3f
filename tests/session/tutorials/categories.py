# Categories with an order, bins of numbers, and codes for a model.
# %%
import pandas as pd
import matplotlib.pyplot as plt
# %% table
shirts = pd.DataFrame({"size": ["M", "S", "L", "M", "XL", "S"], "cm": [70, 66, 74, 71, 79, 65]})
shirts
# %% table
order = pd.CategoricalDtype(["S", "M", "L", "XL"], ordered=True)
shirts["size"] = shirts["size"].astype(order)
shirts.sort_values(["size", "cm"])
# %% text
shirts["size"].min(), shirts["size"].max()
# %% table
shirts[shirts["size"] > "M"]
# %% table
shirts["size"].value_counts(sort=False)
# %% table
shirts["length"] = pd.cut(shirts.cm, bins=[60, 68, 75, 90], labels=["short", "usual", "long"])
shirts
# %% table
pd.get_dummies(shirts["size"], prefix="is").astype(int)
# %% text
shirts["size"].cat.codes.tolist()
# %% figure
shirts.groupby("length", observed=False).cm.mean().plot.bar()
plt.show()
# %%
assert shirts["size"].cat.codes.tolist() == [1, 0, 2, 1, 3, 0]
assert shirts.length.tolist() == ["usual", "short", "usual", "usual", "long", "short"]

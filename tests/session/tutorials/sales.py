# Which region sells what: a table from lists, grouped, sorted and drawn.
# %%
import pandas as pd
import matplotlib.pyplot as plt
# %% table
sales = pd.DataFrame({
    "region": ["north", "south", "north", "west", "south", "west", "north"],
    "product": ["pen", "pen", "ink", "ink", "paper", "pen", "paper"],
    "pieces": [10, 4, 3, 8, 20, 6, 15],
    "price": [1.5, 1.5, 4.0, 4.0, 0.1, 1.5, 0.1],
})
sales
# %% table
sales["total"] = sales.pieces * sales.price
sales.head(3)
# %% text
sales.dtypes.to_dict()
# %% table
by_region = sales.groupby("region").total.sum()
by_region
# %% table
by_region.sort_values(ascending=False).to_frame("turnover").reset_index()
# %% table
sales.groupby("product").agg(pieces=("pieces", "sum"), mean_price=("price", "mean"), buyers=("region", "nunique"))
# %% figure
by_region.plot.bar(title="Turnover by region")
plt.tight_layout()
plt.show()
# %% text
best = by_region.idxmax()
f"{best}: {by_region.max():.2f}"
# %%
assert best == "west" and abs(by_region["west"] - 41.0) < 1e-9
assert by_region.round(2).to_dict() == {"north": 28.5, "south": 8.0, "west": 41.0}

# Customers and their orders: inner, left and outer joins, and who has ordered nothing.
# %%
import pandas as pd
# %% table
customers = pd.DataFrame({"id": [1, 2, 3, 4], "name": ["Ada", "Ben", "Cleo", "Dan"]})
customers
# %% table
orders = pd.DataFrame({"order": [100, 101, 102, 103], "customer": [1, 1, 3, 9], "amount": [20.0, 5.5, 7.0, 1.0]})
orders
# %% table
inner = customers.merge(orders, left_on="id", right_on="customer")
inner
# %% table
left = customers.merge(orders, how="left", left_on="id", right_on="customer", indicator=True)
left[["name", "amount", "_merge"]]
# %% text
idle = left.loc[left._merge == "left_only", "name"].tolist()
idle
# %% table
outer = customers.merge(orders, how="outer", left_on="id", right_on="customer")
outer[outer.id.isna()]
# %% table
more = pd.concat([orders, orders.assign(order=orders.order + 10)], ignore_index=True)
more
# %% table
customers.set_index("id").join(more.groupby("customer").amount.sum().rename("sum")).fillna({"sum": 0})
# %% error
customers.merge(customers.assign(id=1), on="id", validate="one_to_one")
# %%
assert idle == ["Ben", "Dan"] and len(inner) == 3 and len(outer) == 6
assert more.groupby("customer").amount.sum()[1] == 51.0

# The usual pictures: histogram, scatter, bars, subplots, a saved file.
# %%
import numpy as np
import matplotlib.pyplot as plt
# %%
numbers = np.random.default_rng(7).normal(size=1000)
# %% figure
counts, edges, _ = plt.hist(numbers, bins=20, color="tab:green")
plt.title("A thousand numbers")
plt.show()
# %% figure
x = np.linspace(0, 2 * np.pi, 50)
points = plt.scatter(x, np.sin(x), c=np.cos(x), cmap="coolwarm")
plt.colorbar(points, label="cosine")
plt.show()
# %% figure
fig, axes = plt.subplots(2, 2, sharex=True)
for degree, ax in enumerate(axes.flat, 1):
    ax.plot(x, x ** degree)
    ax.set_title(f"$x^{degree}$")
fig.suptitle("Powers")
plt.show()
# %% figure
bars = plt.barh(["one", "two", "three"], [1, 2, 3])
plt.bar_label(bars);
# %% figure
parts = plt.pie([1, 2, 3], labels=list("abc"), autopct="%d%%")
# %% figure
fig, ax = plt.subplots()
ax.boxplot([numbers, numbers * 2])
fig
# %%
fig.savefig("box.png", dpi=50)
fig.savefig("box.svg")
plt.close("all")
# %% text
import os
sorted(os.listdir("."))
# %%
assert counts.sum() == 1000 and len(edges) == 21
assert open("box.png", "rb").read(4) == b"\x89PNG" and "<svg" in open("box.svg").read()

# Arrays: shapes, masks, broadcasting, linear algebra, a simulation, a heat map.
# %%
import numpy as np
import matplotlib.pyplot as plt
# %% text
table = np.arange(12).reshape(3, 4)
table
# %% text
table[table % 2 == 0]
# %% text
table - table.mean(axis=1, keepdims=True)
# %% text
a = np.array([[3.0, 1.0], [1.0, 2.0]])
solution = np.linalg.solve(a, [9, 8])
solution
# %% figure
heat = np.add.outer(np.sin(np.linspace(0, 6, 40)), np.cos(np.linspace(0, 6, 60)))
plt.imshow(heat, aspect="auto", cmap="magma")
plt.colorbar();
# %% figure
rng = np.random.default_rng(1)
walks = rng.choice([-1, 1], size=(5, 200)).cumsum(axis=1)
lines = plt.plot(walks.T, alpha=0.7)
plt.axhline(0, color="black", lw=0.5)
plt.show()
# %% output
print(f"furthest: {np.abs(walks).max():d} steps")
# %% error
a @ np.ones(3)
# %% text
np.polyfit([0, 1, 2], [1, 3, 5], 1).round(6).tolist()
# %%
assert np.allclose(solution, [2, 3]) and table[table % 2 == 0].sum() == 30
assert heat.shape == (40, 60) and walks.shape == (5, 200)

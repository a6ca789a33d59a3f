# From long to wide and back: pivot tables, crosstab, melt, stack.
# %%
import pandas as pd
import matplotlib.pyplot as plt
# %% table
marks = pd.DataFrame([(pupil, subject, term, len(pupil) + len(subject) + term)
                      for pupil in ("Eve", "Finn") for subject in ("art", "maths") for term in (1, 2)],
                     columns=["pupil", "subject", "term", "mark"])
marks
# %% table
wide = marks.pivot_table(index="pupil", columns=["subject", "term"], values="mark")
wide
# %% table
marks.pivot_table(index="pupil", columns="subject", values="mark", aggfunc="mean", margins=True)
# %% table
pd.crosstab(marks.pupil, marks.subject)
# %% table
back = wide.stack(["subject", "term"]).rename("mark").reset_index()
back
# %% table
wide.T
# %% table
flat = wide["art"].reset_index().melt(id_vars="pupil", var_name="term", value_name="art")
flat
# %% figure
picture = plt.imshow(wide.to_numpy(), cmap="viridis")
plt.colorbar(picture)
plt.show()
# %%
assert wide.shape == (2, 4) and wide.loc["Eve", ("art", 1)] == 7
assert back.mark.astype(int).tolist() == marks.mark.tolist()
assert len(flat) == 4

# Tidying columns of text: case, parts, patterns, counting words.
# %%
import re
from collections import Counter
import pandas as pd
# %% table
people = pd.DataFrame({"who": ["  GRACE hopper ", "alan TURING", "Katherine johnson"], "mail": ["grace@navy.example", "alan@park.example", "none"]})
people
# %% table
people["who"] = people.who.str.strip().str.title()
people
# %% table
people[["first", "last"]] = people.who.str.split(" ", n=1, expand=True)
people
# %% table
people.mail.str.extract(r"(?P<user>\w+)@(?P<host>[\w.]+)")
# %% table
people[people.mail.str.contains("@")]
# %% text
"; ".join(people["last"].str.upper())
# %% output
for row in people.itertuples():
    print(f"{row.first:>10} | {row.last:<8} | {len(row.who):3d}")
# %% text
words = Counter(re.findall(r"[a-z]+", "the cat and the dog and the Übermut".lower()))
words.most_common(2)
# %% table
pd.Series(words).sort_values(ascending=False).rename("times")
# %%
assert people["last"].tolist() == ["Hopper", "Turing", "Johnson"]
assert words["the"] == 3 and people.mail.str.contains("@").sum() == 2

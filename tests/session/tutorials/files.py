# Out to files in the working directory and back: CSV, JSON, gzip, in pieces.
# %%
import json
from pathlib import Path
import pandas as pd
# %% table
towns = pd.DataFrame({"town": ["Köln", "Łódź", 'said "so", he'], "people": [1087353, 655279, 1], "area": [405.02, 293.25, None]})
towns
# %% output
towns.to_csv("towns.csv", index=False)
print(Path("towns.csv").read_text())
# %% table
again = pd.read_csv("towns.csv")
again
# %%
pd.testing.assert_frame_equal(towns, again)
# %% output
import subprocess
assert subprocess.run(["head", "-n", "1", "towns.csv"]).returncode == 0
# %% text
towns.to_json("towns.json", orient="records")
json.loads(Path("towns.json").read_text())[0]["town"]
# %%
towns.to_csv("towns.csv.gz", index=False, compression="gzip")
pd.testing.assert_frame_equal(towns, pd.read_csv("towns.csv.gz"))
# %% output text
total = 0
for piece in pd.read_csv("towns.csv", chunksize=2):
    print(len(piece), "rows")
    total += piece.people.sum()
int(total)
# %% table
towns.to_pickle("towns.pickle")
pd.read_pickle("towns.pickle").query("people > 10")
# %% error
pd.read_csv("absent.csv")
# %% text
sorted(path.name for path in Path(".").glob("towns*"))
# %%
assert total == 1742633 and Path("towns.csv.gz").read_bytes()[:2] == b"\x1f\x8b"

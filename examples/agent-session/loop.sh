#!/bin/sh
# Edits, tests and commits a project in one session, then decides by what changed. Run it in a git repository.
set -eu
session=agent-$$
sbx session start "$session" --policy agent >/dev/null
trap 'sbx session stop "$session"' EXIT

in_session() { sbx session exec "$session" -- "$@"; }

# What a model would do, step by step: look, edit, test again, commit.
in_session python3 -m unittest -q || echo "the tests fail: the agent edits" >&2
sbx session exec "$session" --lang python - <<'STEP'
import pathlib
file = pathlib.Path("calculator.py")
file.write_text(file.read_text().replace(" + 1", ""))
STEP
in_session python3 -m unittest -q
in_session git -c user.name=Agent -c user.email=agent@example.org commit -qam "Give the mean without adding one"

# The host decides: nothing but the one file and git's own records may have changed.
sbx session diff "$session"
others=$(sbx session changes --json "$session" | python3 -c '
import json, sys
for each in json.load(sys.stdin)["changes"]:
    path = each["path"]
    if path != "calculator.py" and path.split("/")[0] not in (".git", "__pycache__"):
        print(path)')
if [ -n "$others" ]; then
  echo "not applied: also changed: $others" >&2
  exit 1
fi
sbx session apply --yes "$session" calculator.py '.git/**'

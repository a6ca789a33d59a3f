#!/bin/sh
# An agent's loop around sbx in shell; needs jq. See loop.py, which does the same.
set -eu

sbx=${SBX:-sbx}
programs=$(dirname "$0")/programs.json
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# One line for the model; status 0: it is solved, 1: try again, 2: trying again can't help.
feedback() {
  jq -r '
    def last_line: (.stderr.text | rtrimstr("\n") | split("\n") | last) // .outcome.detail;
    if .outcome.success then "0 \(.stdout.text | rtrimstr("\n"))"
    elif ([.denials[] | select(.kind != "path")] | length) > 0 then
      "2 This is policy, retrying can'"'"'t help. Refused: \([.denials[] | select(.kind != "path") | "\(.what): \(.rule)"] | join("; "))"
    elif .outcome.status == "over-budget" then "1 Stopped: \(.outcome.detail). Write a program that needs less."
    elif .outcome.status == "lost" then "2 It was ended from outside, and what it did until then is done: \(.outcome.detail)"
    elif .outcome.status == "setup-failed" then "2 sbx could not run it, which is not the program'"'"'s fault: \(.outcome.detail)"
    elif (.stderr.text | test("name resolution|service not known|unreachable")) then
      "2 This is policy, retrying can'"'"'t help: the program has no network."
    else "1 It failed: \(last_line)" end' "$1"
}

solved=0
tasks=$(jq length "$programs")
task=0
while [ "$task" -lt "$tasks" ]; do
  jq -r --argjson t "$task" '"task: \(.[$t].task)"' "$programs"
  attempts=$(jq --argjson t "$task" '.[$t].programs | length' "$programs")
  attempt=0
  while [ "$attempt" -lt "$attempts" ]; do
    jq -rj --argjson t "$task" --argjson a "$attempt" '.[$t].programs[$a]' "$programs" >"$directory/program.py"
    "$sbx" run --json -p python --workspace "$directory:overlay" --timeout 30s --cpu-time "${CPU_TIME:-1s}" --memory 256M --output 64K \
      "$directory/program.py" </dev/null >"$directory/record" || [ -s "$directory/record" ]
    words=$(feedback "$directory/record")
    attempt=$((attempt + 1))
    echo "  attempt $attempt: ${words#? }"
    case $words in
      0*) solved=$((solved + 1)) && break ;;
      2*) break ;;
    esac
  done
  task=$((task + 1))
done
echo "solved $solved of $tasks"

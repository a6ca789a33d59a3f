# The cost of a start with cgroup v2 budgets, compared with one without: printed, not judged.
. /src/tests/vm/guest.sh
delegate_to_tester
in_group delegated/shell
check "what a start costs" /src/tests/run-as user /usr/bin/python3 /src/tests/bench/budgets.py $SBX 100
cat "$output"
finish

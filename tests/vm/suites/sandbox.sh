# All of tests/sandbox for both callers, with cgroups delegated, except races.sh. The tests themselves skip, visibly,
# what needs programs that a guest lacks (compilers, node, the HumanEval problems).
. /src/tests/vm/guest.sh
delegate_to_tester
both $(scripts sandbox)
alone sandbox/test_kill.py sandbox/test_cost.py
finish

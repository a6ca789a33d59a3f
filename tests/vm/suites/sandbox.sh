# The whole of tests/sandbox for both callers, with cgroups delegated; but for races.sh. What a guest does not have (compilers,
# node, the HumanEval problems) is skipped by the tests themselves, and said.
. /src/tests/vm/guest.sh
delegate_to_tester
both $(scripts sandbox)
alone sandbox/test_kill.py sandbox/test_cost.py
finish

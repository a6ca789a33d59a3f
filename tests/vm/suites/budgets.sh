# Budgets by real cgroup v2, delegated to uid 1000: a part of the matrix. The whole of it, for both callers: matrix.sh.
. /src/tests/vm/guest.sh
delegate_to_tester
in_group delegated/shell
tests user budget/test_matrix.py test_memory_beyond_the_budget test_processes_beyond_the_budget
finish

# The whole matrix of budgets on cgroup v2: delegated to uid 1000, as root, and by polling where nothing is delegated.
. /src/tests/vm/guest.sh
delegate_to_tester
tests root budget/test_matrix.py
in_group delegated/shell
tests user budget/test_matrix.py
in_group plain
tests user budget/test_matrix.py
finish

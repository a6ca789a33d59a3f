# Real cgroup v2: the root of the hierarchy, a subtree delegated to uid 1000, a group that is not, and a container.
. /src/tests/vm/guest.sh
delegate_to_tester

in_group /
check "root, below the hierarchy's root" $SBX run --require memory.cgroup --require cpu.cgroup --require processes.cgroup -- true
tests root sandbox/test_memory.py

in_group /delegated/shell
check "user, beside the own group" /src/tests/run-as user $SBX run --require memory.cgroup --require cpu.cgroup --require processes.cgroup -- true
tests user sandbox/test_memory.py

in_group /plain
check "user without a delegated group" /src/tests/run-as user sh -c "$SBX run --json -- true | grep -q polled"

in_group /
tests root vm/inside/test_container.py
finish

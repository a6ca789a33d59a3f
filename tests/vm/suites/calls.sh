# What depends most on the architecture: the filter, modes that calls set, the walls around the host; for both callers, with cgroups
# delegated.
. /src/tests/vm/guest.sh
delegate_to_tester
both escape/test_calls.py escape/test_traps.py escape/test_host.py
finish

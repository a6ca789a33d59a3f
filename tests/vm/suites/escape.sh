# All of tests/escape for both callers, with cgroups delegated.
. /src/tests/vm/guest.sh
delegate_to_tester
both $(scripts escape)
tests root privileged/test_identity.py
finish

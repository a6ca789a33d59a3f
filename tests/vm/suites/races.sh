# tests/sandbox/test_races.py for both callers: each cause fewer times than elsewhere.
. /src/tests/vm/guest.sh
delegate_to_tester
export SBX_RACES=10
alone sandbox/test_races.py
finish

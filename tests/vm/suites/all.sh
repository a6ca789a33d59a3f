# The whole of tests/sandbox and tests/escape, for both callers, with cgroups delegated.
. /src/tests/vm/guest.sh
delegate_to_tester
for caller in root user; do
  [ $caller = root ] && in_group / || in_group delegated/shell
  for script in verdicts memory streams workspace; do
    tests $caller sandbox/test_$script.py
  done
  for script in host calls proc endings outputs callers; do
    tests $caller escape/test_$script.py
  done
done
tests root privileged/test_identity.py
finish

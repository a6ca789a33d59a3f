# The whole of tests/sandbox and tests/escape, for both callers, with cgroups delegated. What a guest does not have (compilers,
# node, the HumanEval problems) is skipped by the tests themselves, and said.
. /src/tests/vm/guest.sh
delegate_to_tester
for caller in root user; do
  [ $caller = root ] && in_group / || in_group delegated/shell
  for file in /src/tests/sandbox/test_*.py /src/tests/escape/test_*.py; do
    tests $caller ${file#/src/tests/}
  done
done
tests root privileged/test_identity.py
finish

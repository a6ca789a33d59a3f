# The minimum: the guest boots, and a program runs under sbx for both callers.
. /src/tests/vm/guest.sh
for caller in root user; do
  check "true ($caller)" /src/tests/run-as $caller $SBX run -- true
  check "python ($caller)" /src/tests/run-as $caller $SBX run --lang python -c 'print(6*7)'
done
finish

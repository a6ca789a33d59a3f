# A kernel whose memory controller is switched off, as on a Raspberry Pi: memory is polled, runs and sbx doctor name the cause.
# kernel: cgroup_disable=memory
. /src/tests/vm/guest.sh
delegate_to_tester 2>/dev/null
for caller in root user; do
  check "memory is polled, and why ($caller)" /src/tests/run-as $caller sh -c \
    "$SBX run --json -- true | grep -q 'memory controller is switched off'"
  check "doctor says how to switch it on ($caller)" /src/tests/run-as $caller sh -c "$SBX doctor | grep -q cgroup_enable=memory"
  check "a run beyond its memory ends ($caller)" /src/tests/run-as $caller sh -c \
    "$SBX run --memory 64M --lang python -c 'x = bytearray(200 << 20)'; test \$? = 137"
done
finish

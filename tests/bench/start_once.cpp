// The computation of one start, to count its instructions under valgrind:
// tests/bench/count_instructions.
#include "start.hpp"

int main() {
  const sbx::host::CannedHost canned;
  return sbx::bench::start(canned.host) > 0 ? 0 : 1;
}

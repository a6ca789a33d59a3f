#include "base/random.hpp"

#include <sys/random.h>

#include <cstdint>

namespace sbx {

std::string random_hex() {
  std::uint64_t number = 0;
  // Up to 256 bytes are given whole, and no signal interrupts that.
  (void)!::getrandom(&number, sizeof number, 0);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits += kDigits[(number >> shift) & 15U];
  return digits;
}

}  // namespace sbx

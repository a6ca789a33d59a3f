#pragma once

#include <string>

namespace sbx {

/// 64 random bits of getrandom(2) as 16 lower-case hexadecimal digits: for names that no other
/// process chooses. Blocks only before the kernel's pool is ready, soon after boot.
[[nodiscard]] std::string random_hex();

}  // namespace sbx

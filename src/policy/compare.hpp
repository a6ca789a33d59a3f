#pragma once

#include <string>
#include <vector>

#include "policy/keys.hpp"

/// What one finished policy allows that another does not, by the order in the key table.
namespace sbx::policy {

enum class Direction : std::uint8_t {
  wider,      ///< the second allows more
  narrower,   ///< the second allows less
  different,  ///< no order says which
};

/// One value, or one entry of a list or table, that is not the same in both.
struct Difference {
  const Key* key = nullptr;
  Direction direction = Direction::different;
  std::string words;  ///< `also "/srv/models"`, `"4G" instead of "1G"`
  Origin at;          ///< where the second says so; of what it lacks, where the first said it
};

/// In the order of the key table. Names and descriptions say nothing about what is allowed, so they
/// are left out.
[[nodiscard]] std::vector<Difference> compare(const Policy& first, const Policy& second);

}  // namespace sbx::policy

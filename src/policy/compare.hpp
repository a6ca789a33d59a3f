#pragma once

#include <string>
#include <vector>

#include "policy/keys.hpp"

/// What one finished policy allows that another does not, by the order in the key table.
namespace sbx::policy {

enum class Direction : std::uint8_t {
  wider,      ///< the second allows more
  narrower,   ///< the second allows less
  different,  ///< neither allows less than the other
};

/// One value, or one entry of a list or table, that is not the same in both.
struct Difference {
  const Key* key = nullptr;
  Direction direction = Direction::different;
  std::string words;  ///< `also "/srv/models"`, `"4G" instead of "1G"`
  Origin at;          ///< the line of the second policy; of what it lacks, that of the first
};

/// In the order of the key table. Names and descriptions allow nothing, so they are left out.
[[nodiscard]] std::vector<Difference> compare(const Policy& first, const Policy& second);

}  // namespace sbx::policy

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/policy.hpp"

/// Rules that are valid and most likely a mistake.
namespace sbx::policy {

enum class Weight : std::uint8_t {
  told_when_asked,  ///< `policy check`, `policy audit`, `run -v`
  always_told,      ///< every run too
};

struct Warning {
  std::string message;  ///< with the place
  Weight weight = Weight::always_told;
};

/// Live grants of the system, of the home or of the policy's own directory; credentials that are
/// not hidden; an allow-list that nothing reads.
[[nodiscard]] std::vector<Warning> warnings(const Policy& policy, const std::string& home);

}  // namespace sbx::policy

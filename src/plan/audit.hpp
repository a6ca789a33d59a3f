#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.hpp"

/// What a policy leaves open, graded: a count of doors, in the manner of systemd-analyze security.
/// It knows what a policy says, not what lies behind a grant or what the program does.
namespace sbx::plan {

/// One thing that a policy may leave open.
struct AuditItem {
  std::string_view key;
  int weight = 0;   ///< what it counts when it is wide open, 1 to 10
  int percent = 0;  ///< how open it is, 0 to 100
  std::string words;
  Origin at;  ///< where the policy says so
};

enum class Grade : std::uint8_t { safe, ok, medium, exposed, unsafe };

struct Audit {
  std::vector<AuditItem> items;  ///< in the order of the policy's sections
  double exposure = 0;           ///< 0.0 to 10.0
  Grade grade = Grade::safe;
};

[[nodiscard]] Audit audit(const policy::Policy& policy);
/// "SAFE", "OK", "MEDIUM", "EXPOSED", "UNSAFE".
[[nodiscard]] std::string_view grade_name(Grade grade);

}  // namespace sbx::plan

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.hpp"

/// Grades what a policy leaves open, item by item, in the manner of systemd-analyze security. It
/// reads the policy alone: it doesn't know what a grant contains or what the program does.
namespace sbx::plan {

/// One thing that a policy may leave open.
struct AuditItem {
  std::string_view key;
  int weight = 0;   ///< weight when wide open, 1 to 10
  int percent = 0;  ///< how open it is, 0 to 100
  std::string words;
  Origin at;  ///< the policy line that decides it
};

enum class Grade : std::uint8_t { safe, ok, medium, exposed, unsafe };

struct Audit {
  std::vector<AuditItem> items;  ///< in the order of the policy's sections
  double exposure = 0;           ///< 0.0 to 10.0
  Grade grade = Grade::safe;
  /// What a session under this policy leaves open that a run does not; it is not graded.
  std::string session;
};

[[nodiscard]] Audit audit(const policy::Policy& policy);
/// "SAFE", "OK", "MEDIUM", "EXPOSED", "UNSAFE".
[[nodiscard]] std::string_view grade_name(Grade grade);

}  // namespace sbx::plan

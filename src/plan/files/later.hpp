#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/files/deny.hpp"
#include "plan/plan.hpp"

/// Denied names that the host made after a session began. What hides names is made at its start.
namespace sbx::plan {

/// More entries than this are not looked through before each call.
inline constexpr std::uint64_t kMostLookedAtAgain = 10'000;

/// A directory as it was when its names were looked through. A new name moves its ctime, which no
/// call can set back, so one that is the same needs no second look.
struct LookedThrough {
  FileId file{};
  std::int64_t changed = 0;    ///< st_ctime in nanoseconds
  std::int64_t looked_at = 0;  ///< in nanoseconds since the epoch; 0: never
  std::uint64_t entries = 0;
  std::vector<std::string> subdirectories{};  ///< names
};

class LaterNames {
 public:
  /// A second look through the directories that are shown through overlayfs, as far as there are
  /// not too many entries: then `degraded` gets a line. In a live grant names of the program's own
  /// can't be told from others: `degraded` has its line from the start. Errors: host
  /// "denied-later", with the name; also where a directory can't be looked through, or a shown one
  /// is no longer at its path.
  [[nodiscard]] Status look(const Plan& plan, const host::Host& host,
                            std::vector<Degraded>& degraded);

 private:
  [[nodiscard]] const DenyRules& denials(const Plan& plan, const host::Host& host);

  std::vector<std::string> names_;  ///< what `denials_` hides
  std::optional<DenyRules> denials_;
  std::unordered_map<std::string, LookedThrough> known_;  ///< by path on the host
};

}  // namespace sbx::plan

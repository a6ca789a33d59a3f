#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "host/host.hpp"
#include "plan/plan.hpp"

/// Protected names (plan/files/protected.hpp) that a program makes in a live directory. Nothing
/// keeps it from making them, so they are renamed before somebody works there.
namespace sbx::workspace {

/// No program of the host takes a name with this end for one that it runs or follows.
inline constexpr std::string_view kRefusedEnd = ".sbx-refused";

struct NewName {
  std::string path;  ///< below its live directory, as bytes
  std::string_view why;
  std::string now;  ///< the name that it has now; empty: `error`
  int error = 0;    ///< errno
};

/// Renames what was not there at the start, whoever made it. The names that were there are
/// read-only, and so is the way to them.
class NewNames {
 public:
  /// Holds the live directories of the plan. Errors: host.
  [[nodiscard]] static Result<NewNames> of(const plan::Plan& plan);

  [[nodiscard]] bool watches() const { return !roots_.empty(); }
  /// What was found and is still there. A directory that the caller may not list is left out: no
  /// program of the caller's looks into it either.
  [[nodiscard]] std::vector<NewName> put_aside(const host::Files& files) const;

 private:
  struct Root {
    plan::LiveDirectory directory;
    UniqueFd held;
  };

  std::vector<Root> roots_;
};

}  // namespace sbx::workspace

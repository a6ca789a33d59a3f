#pragma once

#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "plan/plan.hpp"

namespace sbx::workspace {

/// What sbx makes in a .git of a live grant so that there is something to seal,
/// plan/files/protected.hpp. It is removed with this object, by the last sbx that uses it: a shared
/// lock on each says that one does.
class Placeholders {
 public:
  /// Makes those that the plan names. Where one can't be made, its step is taken out of the plan:
  /// the name can appear then, as others can.
  explicit Placeholders(plan::Plan& plan);
  Placeholders(const Placeholders&) = delete;
  Placeholders& operator=(const Placeholders&) = delete;
  ~Placeholders();

 private:
  struct Made {
    UniqueFd directory;
    std::string name;
    UniqueFd lock;
    bool is_ours = false;  ///< made by an sbx: to be removed
    bool is_directory = false;
  };
  static bool make(const plan::PlannedPlaceholder& planned, Made& made);
  static bool open(const plan::PlannedPlaceholder& planned, Made& made);
  static void remove(const Made& made);

  std::vector<Made> all_;
};

}  // namespace sbx::workspace

#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace sbx::workspace {

struct Lost {
  std::vector<std::string> names;  ///< directories end with "/"
  bool are_all = true;
};

/// Names that the program made at the top of its working directory, and that go with its private
/// disk, `scratch`. No name that begins with a dot, and no `__pycache__`. Looks at `most` names.
/// Call it after the end of PID 1.
[[nodiscard]] Lost lost_names(const plan::Plan& plan, int scratch, std::size_t most);

}  // namespace sbx::workspace

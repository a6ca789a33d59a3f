#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace sbx::workspace {

struct Lost {
  std::vector<std::string> names;  ///< directories end with "/"
  bool are_all = true;
  std::vector<std::string> changed;  ///< files that were there, with other content
};

/// Names that the program made in its working directory, and that go with its private disk,
/// `scratch`; those of a new directory are not named by themselves. No name that begins with a dot,
/// and no `__pycache__`. Looks at `most` names at the top, and further where few of them are new.
/// Call it after the end of PID 1.
[[nodiscard]] Lost lost_names(const plan::Plan& plan, int scratch, std::size_t most);

}  // namespace sbx::workspace

#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.hpp"
#include "workspace/copy.hpp"

namespace sbx::workspace {

struct Lost {
  std::vector<std::string> names;  ///< directories end with "/"
  bool are_all = true;
  std::vector<std::string> changed;  ///< files that were there, with other content
  std::vector<std::string> in_home;  ///< as `names`, "~/a"; looked for where those are few
};

/// No part of the path begins with a dot or is `__pycache__`: somebody may miss it.
[[nodiscard]] bool may_be_missed(std::string_view path);

/// Names that the program made in its working directory or at the top of its home, and that go with
/// its private disk, `scratch`; those of a new directory are not named by themselves, nor what is
/// in /tmp. Looks at `most` names at the top, and further where few of them are new. `describe`
/// tells what was copied in, as OwnDisk does. Call it after the end of PID 1.
[[nodiscard]] Lost lost_names(const plan::Plan& plan, int scratch, std::size_t most,
                              const std::function<void(Copy&)>& describe);

}  // namespace sbx::workspace

#pragma once

#include <sys/types.h>

#include "base/result.hpp"
#include "plan/plan.hpp"

namespace sbx::workspace {

/// Makes what a plan with a private directory has in it, less the contents of copies, in the empty
/// directory `root`. It belongs to the program. Errors: setup "no-private-directory".
[[nodiscard]] Status make_private_places(const plan::Plan& plan, int root, uid_t uid, gid_t gid);

}  // namespace sbx::workspace

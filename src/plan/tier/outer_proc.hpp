#pragma once

#include "plan/plan.hpp"

namespace sbx::plan {

/// Shows the caller's /proc in place of one of the sandbox's own, behind Landlock, and says so in
/// `degraded`. For containers that hide parts of /proc: there the kernel refuses a fresh one,
/// mount_namespaces(7). Needs `landlock_files` and a kernel with Landlock. Errors: as
/// compile_filter().
[[nodiscard]] Status show_outer_proc(Plan& plan);

}  // namespace sbx::plan

#pragma once

#include <memory>

#include "plan/plan.hpp"
#include "plan/sight.hpp"

namespace sbx::plan {

/// The files that the program sees, as steps of building a root of its own, and the command that is
/// found among them. Returns what is shown and denied, which borrows `host`. Errors: as
/// make_plan().
[[nodiscard]] Result<std::shared_ptr<const Sight>> lay_out_files(const policy::Policy& policy,
                                                                 const host::Host& host,
                                                                 const RunRequest& request,
                                                                 Plan& plan);
/// The same, with the rights that are left where one lies in another.
[[nodiscard]] Status lay_out_mounts(const policy::Policy& policy, const host::Host& host,
                                    const RunRequest& request, Plan& plan);

}  // namespace sbx::plan

#pragma once

#include "plan/plan.hpp"
#include "plan/tier/private_names.hpp"

/// Without namespaces, for containers that refuse them: Landlock decides which of the machine's own
/// files the program reaches. Run by root, it has a uid of the machine to itself; else the
/// caller's.
namespace sbx::plan {

/// Decides as lay_out_mounts() does, then turns mounts into what is reached, and what is private
/// into parts of one directory, which paths name from then on. Errors: as make_plan(), and
/// "needs-namespaces" for what the policy says and can't be kept.
[[nodiscard]] Status lay_out_rules(const policy::Policy& policy, const host::Host& host,
                                   const RunRequest& request, Plan& plan);
/// Where a step of such a plan lies, below the private directory; empty: nowhere.
[[nodiscard]] std::string place_in_private(const Plan& plan, const Mount& step);

}  // namespace sbx::plan

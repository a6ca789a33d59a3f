#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/files/deny.hpp"
#include "plan/files/steps.hpp"
#include "plan/plan.hpp"

/// From what a policy grants to resolved sources.
namespace sbx::plan {

/// What a grant lets the program do there, weakest first: at one place the strongest stands.
enum class Access : std::uint8_t { empty, read, copy, live };

struct Grant {
  Access access{};
  std::string source;  ///< canonical; for `empty` the place that is not shown
  std::string target;  ///< inside, normal
  host::FileFacts facts;
  Origin origin;
  bool chosen_target = false;  ///< the policy names it; else it is where the source is on the host
  bool special = false;        ///< live: FIFOs and sockets may be made in it
};

/// Nothing for a missing path that is optional.
/// Errors: policy "missing-grant", "forbidden-grant", "not-grantable", "unreadable-grant".
[[nodiscard]] Result<std::optional<Grant>> resolve_grant(
    const host::Host& host, const policy::Sourced<policy::PathGrant>& grant, Access access);

/// A socket of the host that may be connected to. Errors: policy, as above and "not-a-socket".
[[nodiscard]] Result<Grant> resolve_socket(const host::Host& host,
                                           const policy::Sourced<std::string>& socket);

/// The workspace: its grant, the working directory inside, and what there is to say about it.
struct WorkspaceChoice {
  Grant grant;
  std::string working_directory;
  std::string note;
};
/// Errors: policy "unfit-workspace", "missing-workspace".
[[nodiscard]] Result<WorkspaceChoice> choose_workspace(const host::Host& host,
                                                       const policy::Workspace& workspace,
                                                       const Denials& denials);

/// Why `place`, a path of the host below `top`, can't be made in a private copy of `top`: a link or a
/// file stands on the way. Empty when nothing does.
[[nodiscard]] std::string obstacle_on_the_way(const host::Host& host, const std::string& place,
                                              const std::string& top);

/// True for /, /proc, /sys, /dev and what is below the last three: they are the kernel's and never
/// granted.
[[nodiscard]] bool is_forbidden(const std::string& path);

/// "read-only", "copy-on-write", …
[[nodiscard]] const char* describe(Access access);

}  // namespace sbx::plan

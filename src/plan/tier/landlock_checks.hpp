#pragma once

#include <expected>
#include <string>

#include "plan/plan.hpp"
#include "plan/request.hpp"
#include "policy/policy.hpp"

/// What can't be kept without namespaces, before anything is laid out.
namespace sbx::plan {

/// The ways out that errors name.
inline constexpr const char* kWithNamespaces =
    "isolation = \"namespaces\", where the machine gives them";
inline constexpr const char* kAsOverlay =
    "--workspace DIR:overlay, and --apply for what is to stay";

/// Policy "needs-namespaces". `what`: begins the message.
[[nodiscard]] std::unexpected<Error> needs_namespaces(const std::string& what, const Origin& origin,
                                                      std::string hint);

/// Decides whether the program's unix sockets get names. Errors: host "no-landlock-tier" for the
/// machine; policy "needs-namespaces" for what the request and the policy ask for.
[[nodiscard]] Status check_without_namespaces(const policy::Policy& policy, const host::Host& host,
                                              const RunRequest& request, Plan& plan);

/// Whether programs can have the caller's own uid on this machine.
[[nodiscard]] bool serves_callers_uid(const host::Host& host);

}  // namespace sbx::plan

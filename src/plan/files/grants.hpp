#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/files/deny.hpp"
#include "plan/files/steps.hpp"
#include "plan/plan.hpp"

/// Resolves what a policy grants to sources on the host.
namespace sbx::plan {

/// What a grant permits, weakest first; at one target the strongest wins.
enum class GrantKind : std::uint8_t { empty, read, copy, live };

struct Grant {
  GrantKind kind{};
  std::string source;  ///< canonical; for `empty` the directory that is not shown
  std::string target;  ///< inside, normalized
  host::FileFacts facts;
  Origin origin;
  bool chosen_target = false;  ///< the policy names it; otherwise it equals the host path
  bool special = false;        ///< live: FIFOs and sockets are allowed in it
};

/// `home`: inside. Empty for an optional path that is missing. Errors: policy "missing-grant",
/// "forbidden-grant", "not-grantable", "unreadable-grant".
[[nodiscard]] Result<std::optional<Grant>> resolve_grant(
    const host::Host& host, const policy::Sourced<policy::PathGrant>& grant, GrantKind kind,
    const std::string& home);

/// A socket of the host that the program may connect to. Errors: policy, as above and
/// "not-a-socket".
[[nodiscard]] Result<Grant> resolve_socket(const host::Host& host,
                                           const policy::Sourced<std::string>& socket);

/// What lets the caller read `path`: the mode that is missing, of it or of the directory on the way
/// that may not be searched, as the line that its owner types.
[[nodiscard]] std::string cure_of_unreadable(const host::Host& host, const std::string& path);

/// The same, or how to leave out what `origin` grants.
[[nodiscard]] std::string cure_of_unreadable(const host::Host& host, const std::string& path,
                                             const Origin& origin);

/// Why `place`, a host path below `top`, can't be created in a private copy of `top`: a link or a
/// file is in the way. Empty if nothing is.
[[nodiscard]] std::string obstacle_on_the_way(const host::Host& host, const std::string& place,
                                              const std::string& top);

/// True for /, /proc, /sys, /dev and everything below the last three: they belong to the kernel and
/// are never granted.
[[nodiscard]] bool is_forbidden(const std::string& path);

/// "read-only", "copy-on-write", …
[[nodiscard]] const char* describe(GrantKind kind);

}  // namespace sbx::plan

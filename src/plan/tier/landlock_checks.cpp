#include "plan/tier/landlock_checks.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "plan/enforcement.hpp"

namespace sbx::plan {
namespace {

/// ABI 2 moves files between directories (Linux 5.19).
constexpr int kLeastLandlock = 2;

std::unexpected<Error> not_on_this_machine(std::string message, std::string hint) {
  return fail({.kind = ErrorKind::host,
               .code = "no-landlock-tier",
               .message = std::move(message),
               .hint = std::move(hint)});
}

Status check_landlock(const host::Host& host, bool callers_own) {
  const int least = callers_own ? kLandlockScopes : kLeastLandlock;
  if (host.landlock_abi >= least) return {};
  if (host.landlock_abi == 0)
    return not_on_this_machine(
        "isolation = \"landlock\": there is no Landlock here, or a system-call filter refuses its "
        "calls (Docker before 20.10.18)",
        "a kernel of Linux 6.1 or later, with landlock among the names of lsm=");
  if (!callers_own)
    return not_on_this_machine(
        fmt::format("isolation = \"landlock\": this kernel's Landlock has ABI {}, and {} is needed",
                    host.landlock_abi, least),
        "a kernel of Linux 6.1 or later");
  return not_on_this_machine(
      fmt::format("isolation = \"landlock\": this kernel's Landlock has no scopes for signals (ABI "
                  "{}, they came with {}), and without them a program with the caller's own uid "
                  "could kill the caller's processes",
                  host.landlock_abi, least),
      "a kernel of Linux 6.12 or later; or run sbx as root of the container, with CAP_CHOWN, "
      "CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_SETGID, CAP_SETUID and CAP_SETPCAP, which Docker and "
      "podman leave by default");
}

/// kernel.yama.ptrace_scope where only root may look at processes that it has started; else empty.
std::string yama_in_the_way(const host::Host& host) {
  const auto scope = host.files->read_head("/proc/sys/kernel/yama/ptrace_scope", 16);
  return !scope || scope->empty() || scope->front() < '2' ? std::string() : scope->substr(0, 1);
}

/// The supervisor reads the arguments of calls that it answers.
Status check_looking(const host::Host& host) {
  const std::string scope = yama_in_the_way(host);
  if (scope.empty()) return {};
  return not_on_this_machine("isolation = \"landlock\": kernel.yama.ptrace_scope is " + scope +
                                 ", so that sbx can't look at the processes of its own sandbox",
                             "sysctl kernel.yama.ptrace_scope=1");
}

/// It does the calls with the program's ids: another user than root would keep its capabilities
/// then, capabilities(7). And what it connects are unix sockets only: no other call of connect(2)
/// and bind(2) may go on beside them, because each reads its address from memory.
bool can_name_sockets(const policy::Policy& policy, const host::Host& host, bool callers_own) {
  return policy.network.mode.value == policy::NetworkMode::none && yama_in_the_way(host).empty() &&
         (callers_own || host.uid == 0);
}

Status check_machine(const host::Host& host, bool callers_own) {
  SBX_TRY(check_landlock(host, callers_own));
  return callers_own ? check_looking(host) : Status();
}

Status check_asked(const RunRequest& request) {
  if (request.hold)
    return needs_namespaces(
        "a sandbox that stays, for a session or --cells,", {},
        std::string(kWithNamespaces) + "; without a session or --cells sbx run runs one command");
  if (request.interactive)
    return needs_namespaces("a terminal of the sandbox's own (-i)", {}, "leave out -i");
  if (request.explain) return needs_namespaces("what --explain reports", {}, "leave out --explain");
  return {};
}

Status check_policy(const policy::Policy& policy, const Plan& plan) {
  const bool callers_own = plan.tier == TierKind::same_uid;
  const policy::Filesystem& files = policy.filesystem;
  if (files.system.value != "host")
    return needs_namespaces("filesystem.system = \"" + files.system.value + "\"",
                            files.system.origin, "filesystem.system = \"host\"");
  if (!files.landlock.value)
    return needs_namespaces("filesystem.landlock = false", files.landlock.origin,
                            "filesystem.landlock = true");
  // Only the caller's own uid writes there as the caller does.
  if (!callers_own && !files.write.empty())
    return needs_namespaces("the grant of '" + files.write.front().value.source + "' for writing",
                            files.write.front().origin, kAsOverlay);
  if (!callers_own && files.workspace.mode.value == policy::WorkspaceMode::read_write)
    return needs_namespaces("a workspace that is changed in place", files.workspace.mode.origin,
                            kAsOverlay);
  if (!files.sockets.empty() && !plan.names_sockets)
    return needs_namespaces("the grant of the socket '" + files.sockets.front().value + "'",
                            files.sockets.front().origin,
                            policy.network.mode.value == policy::NetworkMode::host
                                ? "network.mode = \"none\" (--net none)"
                                : kWithNamespaces);
  if (policy.network.mode.value == policy::NetworkMode::allow_list)
    return needs_namespaces("network.mode = \"allow-list\"", policy.network.mode.origin,
                            "network.mode = \"none\" (--net none), or \"host\"");
  if (!policy.network.publish.empty())
    return needs_namespaces("network.publish", policy.network.publish.front().origin,
                            kWithNamespaces);
  return {};
}

}  // namespace

std::unexpected<Error> needs_namespaces(const std::string& what, const Origin& origin,
                                        std::string hint) {
  return fail({.kind = ErrorKind::policy,
               .code = "needs-namespaces",
               .message = what + " can't be kept without namespaces (isolation = \"landlock\")",
               .origin = origin.file.empty() ? std::nullopt : std::optional(origin),
               .hint = std::move(hint)});
}

Status check_without_namespaces(const policy::Policy& policy, const host::Host& host,
                                const RunRequest& request, Plan& plan) {
  const bool callers_own = plan.tier == TierKind::same_uid;
  SBX_TRY(check_machine(host, callers_own));
  SBX_TRY(check_asked(request));
  plan.names_sockets = can_name_sockets(policy, host, callers_own);
  return check_policy(policy, plan);
}

bool serves_callers_uid(const host::Host& host) {
  return check_machine(host, true).has_value();
}

}  // namespace sbx::plan

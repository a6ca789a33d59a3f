#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.hpp"
#include "host/host.hpp"
#include "plan/request.hpp"
#include "plan/tier/kind.hpp"
#include "policy/policy.hpp"

/// In what the ways to wall a program off differ. make_plan() chooses one; nothing later asks which
/// it was, but the child for its table of stages (spawn/child_stages.cpp).
namespace sbx::plan {

struct Plan;

/// namespaces(7)
enum class Namespace : std::uint8_t { user, mount, pid, net, ipc, uts, cgroup };
/// As in the record.
[[nodiscard]] constexpr std::string_view name_of(Namespace space) {
  switch (space) {
    case Namespace::user:
      return "user";
    case Namespace::mount:
      return "mount";
    case Namespace::pid:
      return "pid";
    case Namespace::net:
      return "net";
    case Namespace::ipc:
      return "ipc";
    case Namespace::uts:
      return "uts";
    case Namespace::cgroup:
      return "cgroup";
  }
  return "";
}

struct Tier {
  TierKind kind{};
  std::string_view name;  ///< of the tier, as in the record
  std::string_view form;  ///< the tier's form; empty where it has one only
  /// Those that it makes; `net` only where the policy wants a network of the sandbox's own.
  std::span<const Namespace> namespaces;
  /// Decides the files: mounts, access, and the command that is found among them. Errors: as
  /// make_plan().
  Status (*lay_out)(const policy::Policy&, const host::Host&, const RunRequest&, Plan&);
  /// Adds to `degraded` what it keeps by weaker means on this machine.
  void (*note_weaker)(const host::Host&, Plan&);
};

}  // namespace sbx::plan

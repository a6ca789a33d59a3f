#include "plan/filter/outside.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

namespace sbx::plan {
namespace {

/// Each has calls that name an object of the machine or another process.
constexpr std::array kRefusedGroups{
    Group::ipc, Group::keyring,  Group::debug,   Group::io_uring,   Group::numa, Group::handle,
    Group::bpf, Group::fanotify, Group::profile, Group::namespace_, Group::mount};

struct OfProcess {
  std::string_view name;
  unsigned argument;
};
constexpr std::array<OfProcess, 6> kOfProcess{{{"setpriority", 1},
                                               {"sched_setparam", 0},
                                               {"sched_setscheduler", 0},
                                               {"sched_setattr", 0},
                                               {"sched_setaffinity", 0},
                                               {"ioprio_set", 1}}};

Action quietly(int error) {
  return {.kind = Action::Kind::quiet,
          .error = static_cast<std::uint16_t>(error),
          .cause = Cause::outside};
}

}  // namespace

std::optional<Action> refused_outside(const Call& call) {
  const std::string_view name = call.name;
  // Landlock restricts no watches, and events tell what others do with a file. Programs then poll.
  if (name.starts_with("inotify_")) return quietly(ENOSYS);
  // Landlock has no right for extended attributes: those of any file could be read, and those of a
  // file that everybody may write be written.
  if (name.contains("xattr")) return quietly(EOPNOTSUPP);
  // clone3 has its flags in memory, where no filter sees namespaces.
  if (name == "process_madvise" || name == "clone3") return quietly(ENOSYS);
  if (std::ranges::find(kRefusedGroups, call.group) == kRefusedGroups.end()) return std::nullopt;
  // As programs know it from a kernel without the call, or from the base's own answer.
  if (call.decision.standing == Standing::quiet || call.decision.standing == Standing::absent)
    return quietly(call.decision.quiet_errno);
  if (call.decision.standing != Standing::denied) return quietly(ENOSYS);
  return Action{.kind = Action::Kind::deny, .error = EPERM, .cause = Cause::outside};
}

std::optional<unsigned> own_process_argument(const Call& call) {
  const auto* const found =
      std::ranges::find(kOfProcess, std::string_view(call.name), &OfProcess::name);
  if (found == kOfProcess.end()) return std::nullopt;
  return found->argument;
}

std::vector<std::string> allowed_in_vain(const policy::Syscalls& syscalls) {
  std::vector<std::string> found;
  for (const auto& item : syscalls.allow) {
    const auto group = find_group(item.value);
    const Call* const call = group ? nullptr : find_call(item.value);
    const bool is_refused = group
                                ? std::ranges::find(kRefusedGroups, *group) != kRefusedGroups.end()
                                : call != nullptr && refused_outside(*call).has_value();
    if (is_refused) found.push_back(item.value);
  }
  return found;
}

}  // namespace sbx::plan

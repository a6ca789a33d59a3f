#include "plan/filter/outside.hpp"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/resource.h>
#include <sys/syscall.h>

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

/// `which` says whether `process` is one, or stands for a group or user, in calls that have it
/// before.
struct OfProcess {
  std::string_view name;
  std::uint8_t process;
  std::optional<std::uint64_t> which = std::nullopt;
};
constexpr std::uint64_t kIoprioWhoProcess = 1;  // ioprio_set(2); in no header of the C library
constexpr std::array<OfProcess, 7> kOfProcess{{{"setpriority", 1, PRIO_PROCESS},
                                               {"sched_setparam", 0},
                                               {"sched_setscheduler", 0},
                                               {"sched_setattr", 0},
                                               {"sched_setaffinity", 0},
                                               {"prlimit64", 0},
                                               {"ioprio_set", 1, kIoprioWhoProcess}}};

constexpr int kServed[] = {
#if defined(__x86_64__)
    SYS_chmod,  SYS_chown,    SYS_lchown,
    SYS_utime,  SYS_utimes,   SYS_futimesat,
#endif
    SYS_fchmod, SYS_fchmodat, 452 /* fchmodat2, Linux 6.6 */,
    SYS_fchown, SYS_fchownat, SYS_utimensat};
constexpr int kServedSockets[] = {SYS_socket, SYS_connect, SYS_bind};
constexpr int kServedTasks[] = {
#if defined(__x86_64__)
    SYS_fork, SYS_vfork,
#endif
    SYS_clone, SYS_clone3};

Condition word_equals(std::uint8_t argument, std::uint64_t value) {
  return {.argument = argument, .bits = 32, .value = value};
}

Action quietly(int error) {
  return {.kind = Action::Kind::quiet,
          .error = static_cast<std::uint16_t>(error),
          .cause = Cause::outside};
}

}  // namespace

std::optional<Action> refused_outside(const Call& call, const FilterContext& context) {
  const std::string_view name = call.name;
  if (context.truncates_unasked && name == "openat2") return quietly(ENOSYS);
  if (context.truncates_unasked && name == "truncate") return quietly(EPERM);
  // Landlock restricts no watches, and events tell what others do with a file. Programs then poll.
  if (name.starts_with("inotify_")) return quietly(ENOSYS);
  // Landlock has no right for extended attributes: those of any file could be read, and those of a
  // file that everybody may write be written.
  if (name.contains("xattr")) return quietly(EOPNOTSUPP);
  // Flags of an inode, by its path: as programs know it from an older kernel.
  if (name == "file_setattr") return quietly(ENOSYS);
  // clone3 has its flags in memory, where no filter sees namespaces.
  if (name == "process_madvise" || name == "clone3") return quietly(ENOSYS);
  if (std::ranges::find(kRefusedGroups, call.group) == kRefusedGroups.end()) return std::nullopt;
  // As programs know it from a kernel without the call, or from the base's own answer.
  if (call.decision.standing == Standing::quiet || call.decision.standing == Standing::absent)
    return quietly(call.decision.quiet_errno);
  if (call.decision.standing != Standing::denied) return quietly(ENOSYS);
  return Action{.kind = Action::Kind::deny, .error = EPERM, .cause = Cause::outside};
}

std::vector<Condition> names_itself(const Call& call) {
  const auto* const found =
      std::ranges::find(kOfProcess, std::string_view(call.name), &OfProcess::name);
  if (found == kOfProcess.end()) return {};
  std::vector<Condition> all{word_equals(found->process, 0)};
  if (found->which) all.push_back(word_equals(0, *found->which));
  return all;
}

std::vector<Condition> refused_forms(const Call& call, const FilterContext& context) {
  const std::string_view name = call.name;
  if (name == "fcntl") return {word_equals(1, F_SETLEASE), word_equals(1, F_NOTIFY)};
  if (!context.truncates_unasked || (name != "open" && name != "openat")) return {};
  const auto truncates = [&](std::uint64_t access) {
    return Condition{.argument = static_cast<std::uint8_t>(name == "open" ? 1 : 2),
                     .bits = 32,
                     .compare = Compare::masked_equal,
                     .value = access | O_TRUNC,
                     .mask = O_ACCMODE | O_TRUNC};
  };
  // The access mode 3 asks for neither reading nor writing (OPEN_FMODE).
  return {truncates(O_RDONLY), truncates(O_ACCMODE)};
}

std::vector<Condition> harmless_requests() {
  const auto of_kind = [](std::uint64_t kind) {
    return Condition{.argument = 1,
                     .bits = 32,
                     .compare = Compare::masked_equal,
                     .value = kind << 8U,
                     .mask = 0xff00};
  };
  constexpr std::uint64_t kTerminals = 'T';  // and FIONREAD, FIONBIO, FIOCLEX and their kind
  constexpr std::uint64_t kSockets = 0x89;
  return {of_kind(kTerminals),
          of_kind(kSockets),
          word_equals(1, FICLONE),
          word_equals(1, FICLONERANGE),
          word_equals(1, FS_IOC_GETFLAGS),
          word_equals(1, FS_IOC_FIEMAP),
          word_equals(1, FIGETBSZ)};
}

std::span<const int> served_outside() {
  return kServed;
}

std::span<const int> served_sockets() {
  return kServedSockets;
}

std::span<const int> served_tasks() {
  return kServedTasks;
}

std::vector<std::string> allowed_in_vain(const Filter& filter) {
  std::vector<std::string> found;
  for (const auto& item : filter.syscalls.allow) {
    const auto group = find_group(item.value);
    const Call* const call = group ? nullptr : find_call(item.value);
    const bool is_refused =
        group ? std::ranges::find(kRefusedGroups, *group) != kRefusedGroups.end()
              : call != nullptr && refused_outside(*call, filter.context).has_value();
    if (is_refused) found.push_back(item.value);
  }
  return found;
}

}  // namespace sbx::plan

#include "supervise/owner_calls.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <climits>
#include <span>

#include "base/held.hpp"

namespace sbx::supervise {
namespace {

constexpr int kFchmodat2 = 452;  // Linux 6.6

/// The ids that a call sets are in registers: nothing is to be done where they are the caller's.
int change_owner(std::uint64_t uid, std::uint64_t gid) {
  const auto stays = [](std::uint64_t wanted, std::uint32_t own) {
    const auto id = static_cast<std::uint32_t>(wanted);
    return id == own || id == static_cast<std::uint32_t>(-1);
  };
  return stays(uid, ::geteuid()) && stays(gid, ::getegid()) ? 0 : EPERM;
}

}  // namespace

Result<OwnerCalls> OwnerCalls::make(const std::vector<std::string>& places) {
  OwnerCalls calls;
  calls.paths_ = SBX_TRY(CallerPaths::make(places));
  return calls;
}

std::vector<Note> OwnerCalls::notes() {
  constexpr int kNumbers[] = {
#if defined(__x86_64__)
      SYS_chmod,  SYS_chown,    SYS_lchown, SYS_utime,  SYS_utimes,   SYS_futimesat,
#endif
      SYS_fchmod, SYS_fchmodat, kFchmodat2, SYS_fchown, SYS_fchownat, SYS_utimensat};
  std::vector<Note> notes;
  for (const int number : kNumbers)
    notes.push_back({.number = number,
                     .look = {},
                     .answer = [this](const NotedCall& call, const CallerMemory& memory) {
                       return answer(call, memory);
                     }});
  return notes;
}

std::optional<int> OwnerCalls::answer(const NotedCall& call, const CallerMemory& memory) {
  const auto& a = call.arguments;
  constexpr auto kHere = static_cast<std::uint64_t>(AT_FDCWD);
  switch (call.number) {
#if defined(__x86_64__)
    case SYS_chmod:
      return change_mode(by_path(memory, kHere, a[0], 0), a[1]);
    case SYS_chown:
    case SYS_lchown:
      return change_owner(a[1], a[2]);
    case SYS_utime:
    case SYS_utimes:
    case SYS_futimesat:  // C libraries have used utimensat(2) for long
      return ENOSYS;
#endif
    case SYS_fchmod:
      return change_mode(paths_.by_descriptor(memory, a[0]), a[1]);
    case SYS_fchmodat:
      return change_mode(by_path(memory, a[0], a[1], 0), a[2]);
    case kFchmodat2:
      return change_mode(by_path(memory, a[0], a[1], a[3]), a[2]);
    case SYS_fchown:
      return change_owner(a[1], a[2]);
    case SYS_fchownat:
      return change_owner(a[2], a[3]);
    case SYS_utimensat:
      return change_times(call, memory);
    default:
      return EPERM;
  }
}

int OwnerCalls::change_mode(const CallerPaths::Found& found, std::uint64_t mode) const {
  if (found.error != 0) return found.error;
  constexpr std::uint64_t kSetsIds = S_ISUID | S_ISGID;
  if ((mode & kSetsIds) != 0) return EPERM;
  return held::set_mode(found.file.get(), static_cast<mode_t>(mode & 01777)) ? 0 : errno;
}

/// utimensat(directory, path, times, flags); without a path: of the descriptor itself.
int OwnerCalls::change_times(const NotedCall& call, const CallerMemory& memory) const {
  const auto& a = call.arguments;
  timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_NOW}, {.tv_sec = 0, .tv_nsec = UTIME_NOW}};
  if (a[2] != 0 && !memory.read(a[2], std::as_writable_bytes(std::span(times)))) return EFAULT;
  const CallerPaths::Found found =
      a[1] == 0 ? paths_.by_descriptor(memory, a[0]) : by_path(memory, a[0], a[1], a[3]);
  if (found.error != 0) return found.error;
  return held::set_times(found.file.get(), times) ? 0 : errno;
}

CallerPaths::Found OwnerCalls::by_path(const CallerMemory& memory, std::uint64_t directory,
                                       std::uint64_t address, std::uint64_t flags) const {
  const auto path = memory.text(address, PATH_MAX);
  if (!path) return {.file = {}, .error = EFAULT};
  return paths_.by_path(memory, directory, *path, flags);
}

}  // namespace sbx::supervise

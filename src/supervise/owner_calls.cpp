#include "supervise/owner_calls.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <span>
#include <utility>

#include "base/held.hpp"
#include "base/message.hpp"
#include "base/sys.hpp"

namespace sbx::supervise {
namespace {

constexpr int kFchmodat2 = 452;  // Linux 6.6
constexpr std::uint64_t kNoFollow = AT_SYMLINK_NOFOLLOW;
constexpr std::uint64_t kEmptyPath = AT_EMPTY_PATH;

std::string own_link(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

/// Where a link of /proc leads; empty if that can't be told.
std::string read_link(const std::string& link) {
  std::array<char, PATH_MAX> text;
  const ssize_t length = ::readlink(link.c_str(), text.data(), text.size());
  const bool is_whole = length > 0 && static_cast<std::size_t>(length) < text.size();
  return is_whole ? std::string(text.data(), static_cast<std::size_t>(length)) : std::string();
}

std::string of_thread(const CallerMemory& memory, const std::string& what) {
  return "/proc/" + std::to_string(memory.thread()) + "/" + what;
}

/// The number in "/proc/self/fd/N", as C libraries write it to reach what a descriptor holds.
std::optional<int> named_descriptor(std::string_view path) {
  for (const std::string_view prefix : {"/proc/self/fd/", "/dev/fd/", "/proc/thread-self/fd/"}) {
    if (!path.starts_with(prefix)) continue;
    int number = 0;
    const char* const end = path.data() + path.size();
    const auto [next, error] = std::from_chars(path.data() + prefix.size(), end, number);
    if (error == std::errc() && next == end && number >= 0) return number;
  }
  return std::nullopt;
}

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
  for (const std::string& path : places)
    calls.places_.push_back(
        {path, SBX_TRY(sys::open_resolved(AT_FDCWD, path, O_PATH | O_DIRECTORY,
                                          RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS))});
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
      return change_mode(by_descriptor(memory, a[0]), a[1]);
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

int OwnerCalls::change_mode(const Found& found, std::uint64_t mode) const {
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
  const Found found = a[1] == 0 ? by_descriptor(memory, a[0]) : by_path(memory, a[0], a[1], a[3]);
  if (found.error != 0) return found.error;
  return held::set_times(found.file.get(), times) ? 0 : errno;
}

/// The kernel says where it lies, in the supervisor's own view, which the program shares.
OwnerCalls::Found OwnerCalls::by_descriptor(const CallerMemory& memory, std::uint64_t fd) const {
  const std::string link = of_thread(memory, "fd/" + std::to_string(static_cast<int>(fd)));
  UniqueFd file(::open(link.c_str(), O_PATH | O_CLOEXEC));
  if (!file.valid()) return {.file = {}, .error = errno == ENOENT ? EBADF : EPERM};
  if (!memory.still_waits() || place_of(read_link(own_link(file.get()))) == nullptr)
    return {.file = {}, .error = EPERM};
  return {.file = std::move(file)};
}

OwnerCalls::Found OwnerCalls::by_path(const CallerMemory& memory, std::uint64_t directory,
                                      std::uint64_t address, std::uint64_t flags) const {
  if ((flags & ~(kNoFollow | kEmptyPath)) != 0) return {.file = {}, .error = EINVAL};
  const auto path = memory.text(address, PATH_MAX);
  if (!path) return {.file = {}, .error = EFAULT};
  const bool is_here = static_cast<int>(directory) == AT_FDCWD;
  if (path->empty()) {
    if ((flags & kEmptyPath) == 0) return {.file = {}, .error = ENOENT};
    if (!is_here) return by_descriptor(memory, directory);
  }
  if (const auto number = named_descriptor(*path))
    return by_descriptor(memory, static_cast<std::uint64_t>(*number));
  if (path->starts_with('/')) return beneath(*path, (flags & kNoFollow) == 0);
  const std::string base = read_link(
      of_thread(memory, is_here ? "cwd" : "fd/" + std::to_string(static_cast<int>(directory))));
  if (!memory.still_waits()) return {.file = {}, .error = EPERM};
  return beneath(base + "/" + *path, (flags & kNoFollow) == 0);
}

/// Whatever the path says, what is found lies below the place: the kernel sees to that.
OwnerCalls::Found OwnerCalls::beneath(std::string_view path, bool follows) const {
  const Place* const place = place_of(path);
  if (place == nullptr) return {.file = {}, .error = EPERM};
  std::string rest(path.substr(place->path.size()));
  rest.erase(0, std::min(rest.find_first_not_of('/'), rest.size()));
  if (rest.empty()) rest = ".";
  open_how how{
      .flags = O_PATH | O_CLOEXEC, .mode = 0, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
  if (!follows) how.flags |= O_NOFOLLOW;
  constexpr int kTries = 16;  // EAGAIN: something was renamed meanwhile, anywhere
  for (int i = 0; i < kTries; ++i) {
    UniqueFd file(static_cast<int>(
        ::syscall(SYS_openat2, place->directory.get(), rest.c_str(), &how, sizeof how)));
    if (file.valid()) return {.file = std::move(file)};
    if (errno != EAGAIN) return {.file = {}, .error = errno == EXDEV ? EPERM : errno};
  }
  return {.file = {}, .error = EPERM};
}

/// The deepest that holds the path, as it is written.
const OwnerCalls::Place* OwnerCalls::place_of(std::string_view path) const {
  const Place* best = nullptr;
  for (const Place& each : places_) {
    const bool holds = path.starts_with(each.path) &&
                       (path.size() == each.path.size() || path[each.path.size()] == '/');
    if (holds && (best == nullptr || each.path.size() > best->path.size())) best = &each;
  }
  return best;
}

}  // namespace sbx::supervise

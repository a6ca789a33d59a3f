#include "supervise/caller_paths.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <utility>

#include "base/message.hpp"
#include "base/sys.hpp"

namespace sbx::supervise {
namespace {

constexpr std::uint64_t kNoFollow = AT_SYMLINK_NOFOLLOW;
constexpr std::uint64_t kEmptyPath = AT_EMPTY_PATH;

bool is_here(std::uint64_t directory) {
  return static_cast<int>(directory) == AT_FDCWD;
}

std::string name_of_descriptor(std::uint64_t fd) {
  return "fd/" + std::to_string(static_cast<int>(fd));
}

}  // namespace

std::string own_link(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

std::string read_link(const std::string& link) {
  std::array<char, PATH_MAX> text;
  const ssize_t length = ::readlink(link.c_str(), text.data(), text.size());
  const bool is_whole = length > 0 && static_cast<std::size_t>(length) < text.size();
  return is_whole ? std::string(text.data(), static_cast<std::size_t>(length)) : std::string();
}

std::string of_thread(const CallerMemory& caller, const std::string& what) {
  return "/proc/" + std::to_string(caller.thread()) + "/" + what;
}

std::optional<NamedDescriptor> named_descriptor(std::string_view path) {
  for (const std::string_view prefix : {"/proc/self/fd/", "/dev/fd/", "/proc/thread-self/fd/"}) {
    if (!path.starts_with(prefix)) continue;
    int number = 0;
    const char* const end = path.data() + path.size();
    const auto [next, error] = std::from_chars(path.data() + prefix.size(), end, number);
    if (error == std::errc() && number >= 0 && (next == end || *next == '/'))
      return NamedDescriptor{.number = number,
                             .rest = path.substr(static_cast<std::size_t>(next - path.data()))};
  }
  return std::nullopt;
}

Result<CallerPaths> CallerPaths::make(const std::vector<std::string>& places) {
  CallerPaths paths;
  for (const std::string& path : places)
    paths.places_.push_back(
        {path, SBX_TRY(sys::open_resolved(AT_FDCWD, path, O_PATH | O_DIRECTORY,
                                          RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS))});
  return paths;
}

/// The kernel says where it lies, in the supervisor's own view, which the program shares.
CallerPaths::Found CallerPaths::by_descriptor(const CallerMemory& caller, std::uint64_t fd) const {
  const std::string link = of_thread(caller, name_of_descriptor(fd));
  UniqueFd file(::open(link.c_str(), O_PATH | O_CLOEXEC));
  if (!file.valid()) return {.file = {}, .error = errno == ENOENT ? EBADF : EPERM};
  if (!caller.still_waits() || !is_below(read_link(own_link(file.get()))))
    return {.file = {}, .error = EPERM};
  return {.file = std::move(file)};
}

std::optional<std::string> CallerPaths::absolute(const CallerMemory& caller,
                                                 std::uint64_t directory, const std::string& path) {
  std::string link;
  std::string_view rest = path;
  if (const auto named = named_descriptor(path)) {
    link = name_of_descriptor(static_cast<std::uint64_t>(named->number));
    rest = named->rest;
  } else if (path.starts_with('/')) {
    return path;
  } else {
    link = is_here(directory) ? "cwd" : name_of_descriptor(directory);
  }
  std::string base = read_link(of_thread(caller, link));
  if (!caller.still_waits()) return std::nullopt;
  return base + "/" + std::string(rest);
}

CallerPaths::Found CallerPaths::by_path(const CallerMemory& caller, std::uint64_t directory,
                                        const std::string& path, std::uint64_t flags) const {
  if ((flags & ~(kNoFollow | kEmptyPath)) != 0) return {.file = {}, .error = EINVAL};
  if (path.empty()) {
    if ((flags & kEmptyPath) == 0) return {.file = {}, .error = ENOENT};
    if (!is_here(directory)) return by_descriptor(caller, directory);
  }
  if (const auto named = named_descriptor(path); named && named->rest.empty())
    return by_descriptor(caller, static_cast<std::uint64_t>(named->number));
  const auto whole = absolute(caller, directory, path);
  if (!whole) return {.file = {}, .error = EPERM};
  return beneath(*whole, (flags & kNoFollow) == 0);
}

/// Whatever the path says, what is found lies below the place: the kernel sees to that.
CallerPaths::Found CallerPaths::beneath(std::string_view path, bool follows) const {
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
const CallerPaths::Place* CallerPaths::place_of(std::string_view path) const {
  const Place* best = nullptr;
  for (const Place& each : places_) {
    const bool holds = path.starts_with(each.path) &&
                       (path.size() == each.path.size() || path[each.path.size()] == '/');
    if (holds && (best == nullptr || each.path.size() > best->path.size())) best = &each;
  }
  return best;
}

std::vector<int> CallerPaths::directories() const {
  std::vector<int> all;
  for (const Place& each : places_) all.push_back(each.directory.get());
  return all;
}

}  // namespace sbx::supervise

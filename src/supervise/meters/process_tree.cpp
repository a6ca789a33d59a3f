#include "supervise/meters/process_tree.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/unique_fd.hpp"

namespace sbx::supervise {

std::string process_directory(pid_t process) {
  return "/proc/" + std::to_string(process);
}

bool tree_is_visible() {
  std::array<char, 16> self{};
  const ssize_t length = ::readlink("/proc/self", self.data(), self.size());
  return length > 0 &&
         std::string_view(self.data(), static_cast<std::size_t>(length)) ==
             std::to_string(::getpid()) &&
         ::access("/proc/thread-self/children", R_OK) == 0;
}

std::string_view read_small(int directory, const std::string& path, std::span<char> room) {
  const UniqueFd file(::openat(directory, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return {};
  std::size_t length = 0;
  while (length < room.size()) {
    const ssize_t got = ::read(file.get(), room.data() + length, room.size() - length);
    if (got <= 0) break;
    length += static_cast<std::size_t>(got);
  }
  return {room.data(), length};
}

std::uint64_t kilobytes_of(std::string_view text, std::string_view name) {
  const auto at = text.find(name);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + name.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

int proc_of(int processes) {
  return processes >= 0 ? processes : AT_FDCWD;
}

}  // namespace sbx::supervise

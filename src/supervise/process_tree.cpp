#include "supervise/process_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <memory>

#include "base/unique_fd.hpp"

namespace sbx::supervise {
namespace {

constexpr std::size_t kUsualList = 2048;
constexpr std::size_t kLongestList = 65536;

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

Folder open_folder(int at, const std::string& path) {
  const int fd = ::openat(at, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  Folder folder(::fdopendir(fd));
  if (!folder) ::close(fd);
  return folder;
}

std::vector<pid_t> numbers(std::string_view text) {
  std::vector<pid_t> found;
  while (!text.empty()) {
    pid_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc{}) found.push_back(number);
    text.remove_prefix(std::min(text.find(' '), text.size() - 1) + 1);
  }
  return found;
}

}  // namespace

std::string process_folder(pid_t process) {
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

std::vector<std::string> numbers_in(int at, const std::string& folder) {
  std::vector<std::string> names;
  const Folder opened = open_folder(at, folder);
  while (const dirent* const entry = opened ? ::readdir(opened.get()) : nullptr)
    if (*entry->d_name >= '0' && *entry->d_name <= '9') names.emplace_back(entry->d_name);
  return names;
}

std::string_view read_small(int folder, const std::string& path, std::span<char> room) {
  const UniqueFd file(::openat(folder, path.c_str(), O_RDONLY | O_CLOEXEC));
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

std::vector<pid_t> threads_of(pid_t process) {
  std::vector<pid_t> threads;
  for (const std::string& name : numbers_in(AT_FDCWD, process_folder(process) + "/task"))
    threads.push_back(static_cast<pid_t>(std::atoi(name.c_str())));
  std::ranges::sort(threads);
  return threads;
}

std::vector<pid_t> children_of(pid_t process, const std::vector<pid_t>& threads) {
  std::vector<pid_t> children;
  std::array<char, kUsualList> usual;
  for (const pid_t thread : threads) {
    const std::string path =
        process_folder(process) + "/task/" + std::to_string(thread) + "/children";
    std::string_view list = read_small(AT_FDCWD, path, usual);
    std::vector<char> long_list;
    if (list.size() == usual.size()) {
      long_list.resize(kLongestList);
      list = read_small(AT_FDCWD, path, long_list);
    }
    std::ranges::copy(numbers(list), std::back_inserter(children));
  }
  std::ranges::sort(children);
  return children;
}

int proc_of(int processes) {
  return processes >= 0 ? processes : AT_FDCWD;
}

}  // namespace sbx::supervise

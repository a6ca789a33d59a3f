#include "supervise/cpu_meter.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"

namespace sbx::supervise {
namespace {

constexpr std::size_t kMostProcesses = 65536;

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

bool is_number(const char* name) {
  return *name >= '0' && *name <= '9';
}

template <std::size_t N>
std::string_view read_at(int folder, const std::string& path, std::array<char, N>& text) {
  const UniqueFd file(::openat(folder, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return {};
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  return got > 0 ? std::string_view(text.data(), static_cast<std::size_t>(got))
                 : std::string_view();
}

/// Adds fields 14 to 17 of /proc/PID/stat: utime, stime, cutime, cstime.
void add_times(int proc, const std::string& process, CpuTime& sum) {
  static const auto microseconds_per_tick =
      static_cast<std::uint64_t>(1'000'000 / std::max(::sysconf(_SC_CLK_TCK), 1L));
  std::array<char, 1024> buffer;
  std::string_view text = read_at(proc, process + "/stat", buffer);
  const auto name_end = text.rfind(')');  // the name may hold anything, a ')' too
  if (name_end == std::string_view::npos) return;
  text.remove_prefix(name_end + 1);
  for (int field = 3; !text.empty() && field <= 17; ++field) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    std::uint64_t ticks = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ticks);
    if (field >= 14 && error == std::errc{})
      (field % 2 == 0 ? sum.user_microseconds : sum.system_microseconds) +=
          ticks * microseconds_per_tick;
    text.remove_prefix(std::min(text.find(' '), text.size()));
  }
}

/// Appends the children of every thread of a process: /proc/PID/task/TID/children, proc(5).
void add_children(const std::string& process, std::vector<std::string>& found) {
  const std::string tasks = process + "/task";
  const Folder folder = open_folder(AT_FDCWD, tasks);
  if (!folder) return;
  while (const dirent* const entry = ::readdir(folder.get())) {
    if (!is_number(entry->d_name)) continue;
    std::array<char, 16384> buffer;
    std::string_view text = read_at(AT_FDCWD, tasks + "/" + entry->d_name + "/children", buffer);
    while (!text.empty()) {
      const auto space = std::min(text.find(' '), text.size());
      if (space > 0) found.push_back("/proc/" + std::string(text.substr(0, space)));
      text.remove_prefix(std::min(space + 1, text.size()));
    }
  }
}

}  // namespace

CpuTime CpuMeter::by_process() const {
  CpuTime sum;
  if (processes_ >= 0) {
    const Folder folder = open_folder(processes_, ".");
    while (const dirent* const entry = folder ? ::readdir(folder.get()) : nullptr)
      if (is_number(entry->d_name)) add_times(processes_, entry->d_name, sum);
    return sum;
  }
  std::vector<std::string> tree{"/proc/" + std::to_string(pid1_)};
  for (std::size_t at = 0; at < tree.size() && tree.size() < kMostProcesses; ++at) {
    const std::string process = tree[at];
    add_times(AT_FDCWD, process, sum);
    add_children(process, tree);
  }
  return sum;
}

std::uint64_t CpuMeter::total() {
  std::uint64_t now = 0;
  std::uint64_t nanoseconds = 0;
  if (clock_ >= 0 && ::read(clock_, &nanoseconds, sizeof nanoseconds) == sizeof nanoseconds) {
    now = nanoseconds / 1000;
  } else {
    clock_ = -1;
    now = by_process().total();
  }
  most_ = std::max(most_, now);
  return most_;
}

}  // namespace sbx::supervise

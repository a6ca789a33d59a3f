#include "workspace/used_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "base/entries.hpp"
#include "base/sys.hpp"

namespace sbx::workspace {
namespace {

constexpr std::size_t kMostMaps = std::size_t{256} << 20;  // bytes
constexpr int kHexadecimal = 16;
constexpr int kDecimal = 10;

bool is_number(std::string_view name) {
  return std::ranges::all_of(name, [](unsigned char each) { return std::isdigit(each) != 0; });
}

/// It was looked at, or it has ended.
bool is_known(int error) {
  return error == 0 || error == ENOENT || error == ESRCH;
}

/// The next number of a line, and what follows it and one more character.
std::uint64_t take(std::string_view& line, int base) {
  std::uint64_t value = 0;
  const char* const end = line.data() + line.size();
  const auto [next, error] = std::from_chars(line.data(), end, value, base);
  if (error != std::errc())
    line = {};
  else
    line.remove_prefix(std::min(static_cast<std::size_t>(next - line.data()) + 1, line.size()));
  return value;
}

}  // namespace

void UsedFiles::look() {
  const UniqueFd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::string own = std::to_string(::getpid());
  const bool is_whole =
      proc.valid() && sys::read_entries<16'384>(proc.get(), [&](const dirent64& entry) {
        const std::string name(static_cast<const char*>(entry.d_name));
        if (is_number(name) && name != own) look_at(proc.get(), name);
        return true;
      });
  some_is_closed_ = some_is_closed_ || !is_whole;
}

/// A process whose files in /proc belong to root can't be looked at by its own user: one that has
/// changed its ids, or keeps secrets (PR_SET_DUMPABLE). Such a one is passed over.
void UsedFiles::look_at(int proc, const std::string& process) {
  if (look_at_descriptors(proc, process) && look_at_maps(proc, process)) return;
  // The directory of the process itself belongs to its user even so (task_dump_owner).
  struct stat facts{};
  const bool is_callers =
      ::fstatat(proc, (process + "/fd").c_str(), &facts, 0) == 0 && facts.st_uid == ::geteuid();
  some_is_closed_ = some_is_closed_ || is_callers;
}

bool UsedFiles::look_at_descriptors(int proc, const std::string& process) {
  const UniqueFd held(
      ::openat(proc, (process + "/fd").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!held.valid()) return is_known(errno);
  const bool is_whole = sys::read_entries<4096>(held.get(), [&](const dirent64& entry) {
    struct stat facts{};
    if (::fstatat(held.get(), entry.d_name, &facts, 0) == 0) note({facts.st_dev, facts.st_ino});
    return true;
  });
  return is_whole || is_known(errno);
}

/// Lines of proc_pid_maps(5): "START-END PERMISSIONS OFFSET MAJOR:MINOR INODE PATH", numbers in
/// hexadecimal but for the inode.
bool UsedFiles::look_at_maps(int proc, const std::string& process) {
  const UniqueFd file(::openat(proc, (process + "/maps").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return is_known(errno);
  const auto text = sys::read_all(file.get(), kMostMaps);
  if (!text) return is_known(text.error().errno_value);
  std::string_view rest = *text;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    line.remove_prefix(std::min(line.find(' ') + 1, line.size()));  // addresses
    line.remove_prefix(std::min(line.find(' ') + 1, line.size()));  // permissions
    take(line, kHexadecimal);
    const auto major = static_cast<unsigned>(take(line, kHexadecimal));
    const auto minor = static_cast<unsigned>(take(line, kHexadecimal));
    note({makedev(major, minor), take(line, kDecimal)});
  }
  return true;
}

}  // namespace sbx::workspace

#pragma once

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string_view>

/// The entries of an open directory, read by getdents64(2): readdir(3) would allocate for each
/// directory.
namespace sbx::sys {

/// Calls `each` with every entry (a dirent64), until it returns false; `.` and `..` are left out.
/// `kRoom`: bytes that one call of the kernel may fill. Returns false with errno where the
/// directory can't be read on.
template <std::size_t kRoom, typename Each>
[[nodiscard]] bool read_entries(int directory, Each&& each) {
  alignas(dirent64) std::array<char, kRoom> buffer;
  for (;;) {
    const long got = ::syscall(SYS_getdents64, directory, buffer.data(), buffer.size());
    if (got <= 0) return got == 0;
    for (long at = 0; at < got;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(buffer.data() + at);
      at += entry->d_reclen;
      const std::string_view name(static_cast<const char*>(entry->d_name));
      if (name != "." && name != ".." && !each(*entry)) return true;
    }
  }
}

}  // namespace sbx::sys

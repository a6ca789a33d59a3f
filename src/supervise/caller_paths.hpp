#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "supervise/meters/caller_memory.hpp"

namespace sbx::supervise {

/// Where a link of /proc leads; empty if that can't be told, with errno.
[[nodiscard]] std::string read_link(const std::string& link);
/// "/proc/self/fd/N" of this process.
[[nodiscard]] std::string own_link(int fd);
/// "/proc/THREAD/what" of the caller.
[[nodiscard]] std::string of_thread(const CallerMemory& caller, const std::string& what);

/// "/proc/self/fd/N" and what follows it, as C libraries write it to reach what a descriptor holds.
struct NamedDescriptor {
  int number = 0;
  std::string_view rest;  ///< empty, or from the slash on
};
[[nodiscard]] std::optional<NamedDescriptor> named_descriptor(std::string_view path);

/// Opens in a caller's place what it names, below one of the directories that are the program's own
/// and nowhere else: what the program does to its memory or its directories meanwhile makes no
/// difference.
class CallerPaths {
 public:
  /// A descriptor (O_PATH), or the errno.
  struct Found {
    UniqueFd file;
    int error = 0;
  };
  /// `places`: directories without links. Errors: setup (one can't be opened).
  static Result<CallerPaths> make(const std::vector<std::string>& places);

  [[nodiscard]] Found by_descriptor(const CallerMemory& caller, std::uint64_t fd) const;
  /// `directory`: of the caller's, or AT_FDCWD. `flags`: AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH.
  [[nodiscard]] Found by_path(const CallerMemory& caller, std::uint64_t directory,
                              const std::string& path, std::uint64_t flags) const;
  /// The path from the root on, as it is written; nothing where the caller has ended.
  [[nodiscard]] static std::optional<std::string> absolute(const CallerMemory& caller,
                                                           std::uint64_t directory,
                                                           const std::string& path);
  /// Whether the path, as it is written, begins with one of the places.
  [[nodiscard]] bool is_below(std::string_view path) const { return place_of(path) != nullptr; }
  /// The places.
  [[nodiscard]] std::vector<int> directories() const;

 private:
  struct Place {
    std::string path;
    UniqueFd directory;
  };
  [[nodiscard]] Found beneath(std::string_view path, bool follows) const;
  [[nodiscard]] const Place* place_of(std::string_view path) const;

  std::vector<Place> places_;
};

}  // namespace sbx::supervise

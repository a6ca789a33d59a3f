#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace sbx::plan {

/// Which file it is, under whatever name.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  auto operator<=>(const FileId&) const = default;
};

/// What a directory of the host held when the plan was made, by paths below it. While the program
/// runs, the user may remove a name or move something else to it.
class SeenTree {
 public:
  struct Directory {
    FileId file{};
    mode_t mode = 0;
    std::size_t first = 0;  ///< of its names
    std::size_t end = 0;
  };

  void add_directory(const std::string& path, const FileId& file, mode_t mode) {
    directories_.insert_or_assign(path, Directory{.file = file, .mode = mode});
  }
  /// A name of something else than a directory. Those of one directory come one after the other.
  void add_name(std::string_view directory, std::string_view name);

  /// Null: there was no such directory.
  [[nodiscard]] const Directory* directory(const std::string& path) const;
  /// There was a file, a link or a special file.
  [[nodiscard]] bool has_name(const std::string& path) const;

 private:
  /// One string for all: a walk through 100,000 files must not allocate for each.
  std::string names_;
  std::unordered_map<std::string, Directory> directories_;
  std::string last_path_;
  Directory* last_ = nullptr;
};

}  // namespace sbx::plan

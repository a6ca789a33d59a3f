#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/host.hpp"

/// Finds programs by reading the file system. All paths are the host's; those of another system
/// (filesystem.system) begin with its root.
namespace sbx::plan {

/// A symbolic link on the way: its path and its text.
using Hop = std::pair<std::string, std::string>;

class Lookup {
 public:
  /// `root` is empty for the host's own system; `path` lists the directories that are searched for
  /// names.
  Lookup(const host::Files& files, std::string root, std::vector<std::string> path)
      : files_(files), root_(std::move(root)), path_(std::move(path)) {}

  /// Searches `directory` first for python, for programs that the search path lacks, and for
  /// programs that are Python scripts in `directory` too. So a project can't shadow the caller's
  /// `git`.
  void prefer_for_python(std::string directory) { environment_ = std::move(directory); }

  [[nodiscard]] const host::Files& files() const { return files_; }
  [[nodiscard]] const std::vector<std::string>& path() const { return path_; }

  /// The path with links resolved; links of another system stay within its root. Asked for the same
  /// path again, it answers the same: a plan is of one moment.
  [[nodiscard]] Result<std::string> real(const std::string& path) const;
  /// The same, and lists every link on the way. Slower.
  [[nodiscard]] Result<std::string> walk(const std::string& path, std::vector<Hop>& hops) const;
  /// The host path of an absolute path from the system's own files.
  [[nodiscard]] std::string in_system(const std::string& path) const;
  /// The first executable regular file of that name.
  [[nodiscard]] std::optional<std::string> find(std::string_view name) const;
  /// The same, except in one directory.
  [[nodiscard]] std::optional<std::string> find_beyond(std::string_view name,
                                                       std::string_view left_out) const;
  [[nodiscard]] bool is_executable_file(const std::string& path) const;
  [[nodiscard]] bool is_directory(const std::string& path) const;
  [[nodiscard]] bool has_search_path() const { return !path_.empty(); }
  /// The most similar name on the search path; empty if none is similar.
  [[nodiscard]] std::string similar(std::string_view name) const;
  /// `typed` with its last part replaced by the most similar name beside it, a regular file that no
  /// dot hides; empty if none is similar. `path` is where it would be.
  [[nodiscard]] std::string similar_file(std::string_view typed, std::string_view path) const;

 private:
  [[nodiscard]] bool is_python_program(const std::string& path) const;

  const host::Files& files_;
  std::string root_;
  std::vector<std::string> path_;
  mutable std::pair<std::string, std::string> last_;  ///< real(first) is second
  std::string environment_;  ///< directory with the programs of a virtual environment
};

}  // namespace sbx::plan

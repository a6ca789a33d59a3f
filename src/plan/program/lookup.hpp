#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/host.hpp"

/// Finding programs by reading. All paths are the host's; those of another system
/// (filesystem.system) begin with its root.
namespace sbx::plan {

/// A symbolic link that was met on the way: where it is, and its text.
using Hop = std::pair<std::string, std::string>;

class Lookup {
 public:
  /// `root` is empty for the host's own system; `path` are the folders in which names are searched.
  Lookup(const host::Files& files, std::string root, std::vector<std::string> path)
      : files_(files), root_(std::move(root)), path_(std::move(path)) {}

  /// Looks in `folder` first for python, for programs that the search path lacks, and for those that
  /// are Python programs there too. A project can't put its own `git` before the caller's.
  void prefer_for_python(std::string folder) { environment_ = std::move(folder); }

  [[nodiscard]] const host::Files& files() const { return files_; }
  [[nodiscard]] const std::vector<std::string>& path() const { return path_; }

  /// The path with links resolved; links of another system lead within its root.
  [[nodiscard]] Result<std::string> real(const std::string& path) const;
  /// The same, telling every link on the way. Slower.
  [[nodiscard]] Result<std::string> walk(const std::string& path, std::vector<Hop>& hops) const;
  /// Where an absolute path that the system's own files name lies on the host.
  [[nodiscard]] std::string in_system(const std::string& path) const;
  /// The first regular executable file of that name.
  [[nodiscard]] std::optional<std::string> find(std::string_view name) const;
  /// The same, leaving out one folder.
  [[nodiscard]] std::optional<std::string> find_beyond(std::string_view name,
                                                       std::string_view left_out) const;
  [[nodiscard]] bool is_executable_file(const std::string& path) const;
  [[nodiscard]] bool is_folder(const std::string& path) const;
  [[nodiscard]] bool has_search_path() const { return !path_.empty(); }
  /// The name on the search path that looks most like `name`; empty when none does.
  [[nodiscard]] std::string similar(std::string_view name) const;

 private:
  [[nodiscard]] bool is_python_program(const std::string& path) const;

  const host::Files& files_;
  std::string root_;
  std::vector<std::string> path_;
  std::string environment_;  ///< the programs of a virtual environment
};

}  // namespace sbx::plan

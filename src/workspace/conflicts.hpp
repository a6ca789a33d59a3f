#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

#include "workspace/changes.hpp"
#include "workspace/host_names.hpp"

namespace sbx::workspace {

[[nodiscard]] inline bool is_directory(const Change& change) {
  return change.type == FileType::directory;
}

/// A change that is to be made, and what its name was when that was decided.
struct Step {
  const Change* change = nullptr;
  bool exists = false;
  struct stat before{};
  bool is_over = false;  ///< done, or left

  [[nodiscard]] bool replaces_file() const {
    return exists && !is_directory(*change) && !S_ISDIR(before.st_mode);
  }
};

/// What stands against changes on the host, and which are made there already.
class Conflicts {
 public:
  /// `changes`: all, in the order of their paths. `umask`: of those who get the files.
  Conflicts(const Copy& copy, mode_t umask) : copy_(copy), umask_(umask) {}
  void note(const std::vector<Change>& changes);

  /// What stands against a change; nothing when it can be done.
  [[nodiscard]] std::optional<const char*> of(const Step& step) const;
  /// What stands against new permissions of a directory.
  [[nodiscard]] std::optional<const char*> of_directory(const Change& change,
                                                        const struct stat& now) const;
  /// True if a killed sbx, or the user, made this change before.
  [[nodiscard]] bool is_done(const Step& step, const Spot& spot) const;
  /// A directory in place of the file that goes, or the other way round, from an earlier
  /// application.
  [[nodiscard]] bool is_replaced_already(const Step& step) const;
  /// The path or a directory above it is deleted and made anew as something else.
  [[nodiscard]] bool is_in_replaced(std::string path) const;
  /// What the umask takes stays only where the file had it: no program opens a file to others.
  [[nodiscard]] mode_t permissions(const Change& change, mode_t before) const;

 private:
  [[nodiscard]] bool is_replaced(const std::string& path) const;

  const Copy& copy_;
  mode_t umask_;
  std::vector<std::string> replaced_;  ///< deleted and made anew as something else; by path
};

}  // namespace sbx::workspace

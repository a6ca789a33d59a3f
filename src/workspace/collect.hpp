#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "workspace/allowance.hpp"
#include "workspace/changes.hpp"
#include "workspace/put.hpp"

/// `--out DIR`: copies the files that a run made to a directory of the host.
namespace sbx::workspace {

struct Collecting {
  std::vector<std::string> patterns;  ///< none: every regular file that was created
  OutLimits limits;
  /// The run's own and the links to them, canonical. None is brought out, and none is replaced.
  std::vector<std::string> policy_files;
  Waiting waiting;  ///< while another sbx brings files out there
};

struct Collected {
  std::vector<Change> files;
  std::vector<Left> left;
  /// files that were created and match no pattern; `left` has the first
  std::uint64_t unmatched = 0;
  std::vector<std::string> unmet;  ///< patterns that match nothing with content
  /// Files that existed before, were changed and not copied: the first ones, and how many.
  std::vector<std::string> changed;
  std::uint64_t changed_count = 0;
};

/// A directory for files that are brought out. If it was made for them and none came, it goes with
/// this object.
class OutDirectory {
 public:
  OutDirectory() = default;
  /// `above`: the directory in which `name` was made; invalid: it was there.
  OutDirectory(UniqueFd directory, UniqueFd above, std::string name);
  OutDirectory(OutDirectory&&) noexcept = default;
  OutDirectory& operator=(OutDirectory&& other) noexcept;
  ~OutDirectory();

  [[nodiscard]] int get() const { return directory_.get(); }
  [[nodiscard]] bool valid() const { return directory_.valid(); }

 private:
  UniqueFd directory_;
  UniqueFd above_;
  std::string name_;
  pid_t maker_ = 0;  ///< a process that was forked from it removes nothing
};

/// Opens the directory; makes it when only its last part is missing. Errors: usage.
[[nodiscard]] Result<OutDirectory> prepare_target(const std::string& directory);

/// Copies each created or modified file that a pattern matches. What can't be, or may not be, is in
/// `left` with the reason; no failure of one file keeps back another. Errors: host.
[[nodiscard]] Result<Collected> collect(const Copy& copy, const ChangeSet& changes, int target,
                                        const Collecting& what);

}  // namespace sbx::workspace

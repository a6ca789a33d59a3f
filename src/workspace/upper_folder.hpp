#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace sbx::workspace {

/// Whether a new tmpfs keeps user.* attributes, in which overlayfs notes what was replaced: since
/// Linux 6.6. Found out by setting one.
[[nodiscard]] bool tmpfs_keeps_attributes();

/// A 0700 folder below the state home that holds what is written over granted folders, where the
/// private tmpfs can't. Removed with all that is in it at the end; one whose supervisor was killed
/// goes with the next run that makes one.
class UpperFolder {
 public:
  UpperFolder() = default;
  /// `owner`: who writes in it, or -1 for the caller. Errors: host (no state home, not writable).
  [[nodiscard]] static Result<UpperFolder> make(const std::string& state_folder, uid_t owner);

  UpperFolder(UpperFolder&& other) noexcept;
  UpperFolder& operator=(UpperFolder&& other) noexcept;
  ~UpperFolder();

  /// -1: there is none.
  [[nodiscard]] int get() const { return folder_.valid() ? folder_.get() : -1; }

 private:
  UniqueFd parent_;
  UniqueFd folder_;  // locked while its supervisor lives
  std::string name_;
};

}  // namespace sbx::workspace

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "supervise/caller_paths.hpp"
#include "supervise/settings.hpp"

namespace sbx::supervise {

/// Answers calls of a program that has the caller's own uid, where no wall stands before them:
/// Landlock does not see modes, owners and times of files.
///
/// A path is read once. What it leads to is opened here, below one of the program's own
/// directories, and changed through that descriptor: what the program does to its memory or its
/// directories meanwhile makes no difference. A call that reads memory never continues.
class OwnerCalls {
 public:
  /// `places`: directories that the program may change, without links. Errors: setup (one can't be
  /// opened).
  static Result<OwnerCalls> make(const std::vector<std::string>& places);
  /// One for each call of plan::served_outside(). They refer to this object.
  [[nodiscard]] std::vector<Note> notes();

 private:
  [[nodiscard]] std::optional<int> answer(const NotedCall& call, const CallerMemory& memory);
  [[nodiscard]] int change_mode(const CallerPaths::Found& found, std::uint64_t mode) const;
  [[nodiscard]] int change_times(const NotedCall& call, const CallerMemory& memory) const;
  [[nodiscard]] CallerPaths::Found by_path(const CallerMemory& memory, std::uint64_t directory,
                                           std::uint64_t address, std::uint64_t flags) const;

  CallerPaths paths_;
};

}  // namespace sbx::supervise

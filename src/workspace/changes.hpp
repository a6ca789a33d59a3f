#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/result.hpp"
#include "workspace/copy.hpp"
#include "workspace/links.hpp"

namespace sbx::workspace {

/// Something that was not done, and why.
struct Left {
  std::string path;
  std::string why;
  bool failed = false;  ///< it was tried; else it was never meant to be done
  bool partly = false;  ///< it was done, except for the part that `why` names
  /// Applying ends with 1 for it: a deletion that would have taken the last copy of something, or
  /// what a kept set has lost.
  bool holds = false;
  std::string_view guard{};  ///< of a protected name: what the host's programs do with it
  Obstacle obstacle = Obstacle::none;
  Side side = Side::host;  ///< where that stood
};

struct ChangeSet {
  std::vector<Change> changes;  ///< by path
  std::uint64_t left_out = 0;   ///< beyond MostFound; without what new directories hold
  std::vector<Left> unread;     ///< directories that could not be looked into
  /// Made under names that filesystem.deny hides: the sandbox's own. Or lost by a kept set.
  std::vector<Left> hidden;
  /// Deleted files of which only a hidden name has what they held; `why` is that name.
  std::vector<Left> held;
  Links links;                     ///< of changed names
  std::uint64_t linked_files = 0;  ///< numbers given to Linked::file
};

/// Bounds the memory of a list that a hostile program makes long. A tree of 500,000 files with
/// names of 130 bytes fits.
struct MostFound {
  std::uint64_t changes = 500'000;
  std::uint64_t name_bytes = std::uint64_t{64} << 20;  ///< of all paths together
};

/// Compares a copy with the directories of the host below it, name by name. A file that was only
/// copied up, or written with the bytes that it had, is not a change. Never changes the host.
/// Errors: host.
[[nodiscard]] Result<ChangeSet> read_changes(const Copy& copy, MostFound most = {});

}  // namespace sbx::workspace

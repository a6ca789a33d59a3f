#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/files/deny.hpp"
#include "plan/files/grants.hpp"
#include "plan/mount.hpp"

/// One walk through a granted directory that collects everything needed before it is shown.
namespace sbx::plan {

/// A name below the surveyed directory, relative to it.
struct Hidden {
  std::string path;
  bool is_directory = false;
  bool is_link = false;
  bool is_there = true;
};
struct Linked {
  std::string path;
  FileId file;
  std::uint64_t links = 0;
  std::uint64_t size = 0;
  std::uint64_t stored = 0;  ///< bytes that it takes up
  std::int64_t modified = 0;
  mode_t mode = 0;
};

struct Survey {
  std::vector<Hidden> hidden;        ///< topmost names that match filesystem.deny
  std::vector<Linked> linked;        ///< other files with more than one link
  std::vector<FileId> hidden_files;  ///< files hidden by name with more than one link
  std::vector<std::string> sockets;
  std::vector<std::string> protected_;    ///< protected.hpp
  std::vector<std::string> repositories;  ///< directories .git, and .git/worktrees/NAME
  std::vector<std::string> git_settings;  ///< files with git settings
  std::vector<std::string> half_hidden;   ///< directories that can be searched but not listed
  SeenTree seen;                          ///< of a copy-on-write view
  std::string foreign;  ///< a name whose owner or group has no id inside; empty if none
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;  ///< stored
};

/// A granted directory, or a mount in one, and the step that shows it.
struct Shown {
  Grant grant;
  std::size_t step = 0;  ///< index into the list of steps
  bool layered = false;  ///< through overlayfs: a layer on top hides names
  std::optional<Survey> survey{};
};

/// Walks through the source of a directory grant, without submounts. Directories that belong to the
/// caller and that it can't list count as hidden: the program could chmod them. Errors: policy
/// "too-many-entries", "unreadable-grant"; host.
[[nodiscard]] Result<Survey> survey(const host::Host& host, const Grant& grant,
                                    const DenyRules& denials,
                                    const policy::Sourced<std::uint64_t>& most);

/// Adds the files with several links in a hidden place, so that their other names can be found.
/// Errors: as survey().
[[nodiscard]] Status add_linked_files(const host::Host& host, const std::string& place,
                                      const policy::Sourced<std::uint64_t>& most,
                                      std::vector<FileId>& files);

/// True if files of that owner and group can be changed through a copy-on-write view of a
/// directory.
[[nodiscard]] bool has_ids_inside(const host::Host& host, const host::FileFacts& directory,
                                  const host::FileFacts& file);

}  // namespace sbx::plan

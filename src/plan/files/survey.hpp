#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/files/deny.hpp"
#include "plan/files/grants.hpp"

/// One walk through a granted folder, for everything that must be known of it before it is shown.
namespace sbx::plan {

/// A file by what it is, whatever it is called.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  auto operator<=>(const FileId&) const = default;
};

/// A name below the surveyed folder, relative to it.
struct Hidden {
  std::string path;
  bool is_folder = false;
  bool is_link = false;
  bool is_there = true;
};
struct Linked {
  std::string path;
  FileId file;
};

struct Survey {
  std::vector<Hidden> hidden;        ///< names that filesystem.deny means, nothing below them
  std::vector<Linked> linked;        ///< other files that have a second name somewhere
  std::vector<FileId> hidden_files;  ///< what is hidden by name and has a second name
  std::vector<std::string> sockets;
  std::vector<std::string> protected_;    ///< protected.hpp
  std::vector<std::string> git_settings;  ///< files in which git keeps settings
  std::vector<std::string> half_hidden;   ///< folders that can be entered but not listed
  std::string foreign;  ///< a name whose owner or group has no id inside; empty when there is none
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;  ///< stored
};

/// Walks through the source of a folder grant, without what is mounted in it. Folders of the caller
/// that it can't list count as hidden: the program could open them to itself.
/// Errors: policy "too-many-entries", "unreadable-grant"; host.
[[nodiscard]] Result<Survey> survey(const host::Host& host, const Grant& grant,
                                    const Denials& denials,
                                    const policy::Sourced<std::uint64_t>& most);

/// Files with several names in a hidden place, for finding their other names elsewhere.
/// Errors: as survey().
[[nodiscard]] Status add_linked_files(const host::Host& host, const std::string& place,
                                      const policy::Sourced<std::uint64_t>& most,
                                      std::vector<FileId>& files);

/// Whether files of that owner and group can be changed through a copy-on-write view of a folder.
[[nodiscard]] bool has_ids_inside(const host::Host& host, const host::FileFacts& folder,
                                  const host::FileFacts& file);

}  // namespace sbx::plan

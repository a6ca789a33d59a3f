#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "changes/kept_facts.hpp"
#include "workspace/changes.hpp"

/// Change sets that outlive their run: `--keep NAME` and `sbx changes`. A set is a directory of the
/// store with a manifest and, under numbers, the files: no name that the program chose is
/// ever given to a file there.
namespace sbx::changes {

using workspace::ChangeSet;
using workspace::Copy;

struct Kept {
  KeptFacts facts;
  ChangeSet changes;
  Copy copy;  ///< its lower directories are not open before open_directories()
  std::vector<DirectoryLine> directories;
};

/// The directory of all sets of one user. Every function cleans up after a sbx that was killed.
class Store {
 public:
  /// `missing`: an empty store is not made to be looked at. Errors: host.
  [[nodiscard]] static Result<Store> open_or_make(const std::string& state_directory);
  /// Nothing when there is none yet.
  [[nodiscard]] static Result<Store> open(const std::string& state_directory);

  [[nodiscard]] bool has(const std::string& name) const;
  /// Writes a set under `facts.name`, or under "NAME-2" and so on where that came to be taken, in
  /// one step; gives what is known of it then. Changes whose content can't be kept are left out and
  /// stand in `lost`, and so do deletions of files that are nowhere else then. Errors: host
  /// (nothing is kept).
  [[nodiscard]] Result<KeptFacts> keep(KeptFacts facts, const Copy& copy,
                                       const ChangeSet& changes) const;
  /// Newest last. A set that can't be read has only a name and `outcome`, the reason.
  [[nodiscard]] Result<std::vector<KeptFacts>> list() const;
  /// A set stays whole while it is held. Errors: usage "no-such-set", host.
  [[nodiscard]] Result<Kept> load(const std::string& name) const;
  /// Notes that changes of a set were applied. Errors: usage "no-such-set", host.
  [[nodiscard]] Status note_applied(const std::string& name, std::int64_t when,
                                    std::uint64_t count) const;
  /// Writes a set without contents: how names of the host are. Errors: host.
  using Notes = std::map<std::string, std::optional<struct stat>>;  ///< by path; none: it is gone
  [[nodiscard]] Status replace_notes(const std::string& name, const Copy& copy,
                                     const Notes& notes) const;
  /// Errors: usage "no-such-set", host "set-in-use".
  [[nodiscard]] Status drop(const std::string& name) const;

 private:
  explicit Store(UniqueFd directory) : directory_(std::move(directory)) {}
  void remove_leftovers() const;
  Result<UniqueFd> open_set(const std::string& name) const;

  UniqueFd directory_;  ///< invalid: there is none
};

/// Letters, digits, '.', '_' and '-', 64 at most, a letter or digit first. Errors: usage.
[[nodiscard]] Status check_set_name(std::string_view name);

/// Opens the directories of the host that a set was made against. Errors: host "workspace-gone",
/// "workspace-replaced".
[[nodiscard]] Status open_directories(Kept& kept);

}  // namespace sbx::changes

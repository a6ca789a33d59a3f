#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "workspace/changes.hpp"

/// Which deletions would take the last copy of something: a file was moved to a name that is not
/// brought out, and only the deletion of its old name would be.
namespace sbx::workspace {

class LastCopies {
 public:
  explicit LastCopies(const Copy& copy) : copy_(copy) {}

  /// A file of the program that is not brought out. `is_new`: the host has no file of this name
  /// that the program saw.
  void add_left_out(const std::string& path, std::uint64_t bytes, bool is_new);
  /// One that is brought out: what it holds has a copy.
  void add_brought_out(const std::string& path, std::uint64_t bytes) {
    brought_out_[bytes].push_back(path);
  }
  [[nodiscard]] bool empty() const { return left_out_.empty(); }

  /// Of some deleted files of the host, those that must stay, and the name, left out, under which
  /// the program has what they hold. Where a file was moved and then written to, its beginning
  /// tells which one it was; where nothing tells, all stay that have no other copy. `others`:
  /// deleted files that stay anyway.
  [[nodiscard]] std::vector<Left> held(const std::vector<const Change*>& deleted,
                                       const std::vector<const Change*>& others = {}) const;

 private:
  using Paths = std::unordered_map<std::uint64_t, std::vector<std::string>>;  ///< by size
  struct Moved {
    std::string path;
    std::uint64_t bytes = 0;
    bool is_new = false;
  };
  [[nodiscard]] UniqueFd open_deleted(const Change& deleted) const;
  /// The left-out name that has what was in a deleted file; empty if there is none.
  [[nodiscard]] std::string holder_of(const Change& deleted, int file) const;
  [[nodiscard]] std::string same_in(const Paths& paths, std::uint64_t bytes, int file) const;
  /// Whether it is a file of the host, under a new name perhaps, not one that the program made.
  [[nodiscard]] bool is_of_host(const std::string& path, int file) const;
  [[nodiscard]] bool begins_alike(const Moved& moved, std::uint64_t bytes, int file) const;

  const Copy& copy_;
  Paths left_out_;
  Paths brought_out_;
  std::vector<Moved> moved_;
};

/// Notes in `changes` the deletions whose content is under hidden names.
void note_held(const Copy& copy, ChangeSet& changes);

}  // namespace sbx::workspace

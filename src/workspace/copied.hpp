#pragma once

#include <sys/stat.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

/// What a copied workspace held when it was filled. The directory of the host can't tell later: the
/// user goes on working in it.
namespace sbx::workspace {

/// One name. Small: a workspace may have hundreds of thousands.
class CopiedEntry {
 public:
  /// `host`: what was copied. `copy`: the inode of the copy. `from_veil`: another content was put
  /// in its place, without credentials.
  CopiedEntry(std::string name, const struct stat& host, ino_t copy, bool from_veil);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] ino_t copy() const { return copy_; }
  [[nodiscard]] bool from_veil() const { return from_veil_; }
  /// Type, mode, size, names and identity of what was copied. Nothing else is set.
  [[nodiscard]] struct stat host() const;

 private:
  std::string name_;
  ino_t copy_;
  dev_t device_;
  ino_t inode_;
  off_t size_;
  nlink_t links_;
  mode_t mode_;
  bool from_veil_;
};

/// The names of one copied directory and of all below it. Paths are relative to it; "." is it.
class CopiedTree {
 public:
  explicit CopiedTree(const struct stat& root) : root_(root) {}
  /// The names of one directory come in their order.
  void add(const std::string& directory, CopiedEntry entry) {
    directories_[directory].push_back(std::move(entry));
  }
  /// The directory itself, as it was on the host.
  [[nodiscard]] const struct stat& root() const { return root_; }
  /// By name; nothing for what is not a directory of the copy.
  [[nodiscard]] std::span<const CopiedEntry> names_in(const std::string& directory) const;
  /// Null for what was not copied.
  [[nodiscard]] const CopiedEntry* find(const std::string& directory,
                                        const std::string& name) const;

 private:
  struct stat root_;
  std::unordered_map<std::string, std::vector<CopiedEntry>> directories_;
};

/// By where they are mounted.
using CopiedTrees = std::map<std::string, std::shared_ptr<const CopiedTree>>;

}  // namespace sbx::workspace

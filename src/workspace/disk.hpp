#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

/// A directory of the state home that serves one run as its private disk.
namespace sbx::workspace {

class DiskDirectory {
 public:
  /// Makes one below `state` (~/.local/state/sbx), readable for the caller only, writable for the
  /// sandbox's ids on the host. Errors: host "no-disk-directory", with the cure.
  [[nodiscard]] static Result<DiskDirectory> make(const std::string& state, uid_t uid, gid_t gid);
  /// Makes the private directory of a plan, in a directory where everybody may make some. It is the
  /// caller's; the program reaches what lies in it by its path, and nobody else does. Errors: host
  /// "no-private-directory", with the cure.
  [[nodiscard]] static Result<DiskDirectory> make_private(const std::string& path, uid_t uid,
                                                          gid_t gid);
  DiskDirectory(DiskDirectory&& other) noexcept;
  DiskDirectory& operator=(DiskDirectory&&) = delete;
  ~DiskDirectory();  ///< removes it and everything in it

  /// Notes PID 1 of the sandbox, a process of this PID namespace, before a program starts: while
  /// its namespace lives, no sweep removes the directory.
  void note_init(pid_t pid) const;
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Whether its file system can hold what an overlay writes: another overlay can't.
  [[nodiscard]] bool takes_overlays() const { return takes_overlays_; }
  /// Whether it can hold what hides a name in the lower layer of an overlay: before Linux 6.7
  /// another overlay can't.
  [[nodiscard]] bool takes_whiteouts() const { return takes_whiteouts_; }
  [[nodiscard]] std::uint64_t device() const { return device_; }
  [[nodiscard]] std::uint64_t inode() const { return inode_; }

 private:
  DiskDirectory() = default;
  /// Notes which directory path() names.
  Status note_place(int files);
  UniqueFd disks_;  ///< the directory that holds those of all runs
  UniqueFd lock_;  ///< held as long as the run: another sbx that gets it knows that the run is dead
  bool is_own_lock_ = false;  ///< `lock_` is the directory itself, and not a file beside it
  std::string name_;
  std::string path_;
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
  bool takes_overlays_ = false;
  bool takes_whiteouts_ = false;
};

/// Removes the directories of sandboxes whose supervisor and whose processes are dead. Costs one
/// failed open(2) where there are none. Waits up to a second for the processes of a supervisor that
/// was killed a moment ago.
void sweep_disk_directories(const std::string& state);

/// The same of private directories. `died` is told the uid that the program of such a one had to
/// itself; where it returns false the directory stays, by which a later sweep knows of that
/// program.
void sweep_private_directories(const std::function<bool(uid_t)>& died);

/// Removes `name` in `directory` and everything below it, however deep, with 64 descriptors at
/// most. What another process moves about meanwhile stays, or is removed; nothing outside the tree
/// is touched. True if nothing has the name any more.
bool remove_tree(int directory, const std::string& name);

}  // namespace sbx::workspace

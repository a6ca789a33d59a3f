#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace sbx::cgroup {

/// A control group that sbx made: its directory, held by a descriptor, and removed by the
/// destructor.
///
/// An extended attribute marks the group as sbx's: another program could use the same name. An
/// flock(2) on the directory shows that its supervisor lives, because it ends with the supervisor's
/// descriptor: pids are reused and mean nothing in another PID namespace, while every mount of a
/// hierarchy, in whatever namespace, shows the same inodes and so the same lock. sbx locks a group
/// before it marks it, and examines marked groups only, so that no other sbx removes a group that
/// is just being made.
class OwnedDirectory {
 public:
  OwnedDirectory() = default;
  OwnedDirectory(OwnedDirectory&&) noexcept = default;
  OwnedDirectory& operator=(OwnedDirectory&& other) noexcept;
  ~OwnedDirectory() { (void)remove(); }

  /// Makes `parent`/`name`. Errors: host, with errno (EACCES and EROFS: not ours to use; EEXIST;
  /// EAGAIN: cgroup.max.descendants; EOPNOTSUPP: no attributes).
  [[nodiscard]] static Result<OwnedDirectory> make(const std::string& parent,
                                                   const std::string& name);
  /// Makes a group inside this one, which has to live longer.
  [[nodiscard]] Result<OwnedDirectory> make_inner(const std::string& name) const;

  [[nodiscard]] bool valid() const { return directory_.valid(); }
  [[nodiscard]] int fd() const { return directory_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }

  /// Gives the descriptor away without removing the group: its new holder does.
  [[nodiscard]] int release();

  /// Removes the group, waiting up to 50 ms for its last processes to be gone (EBUSY).
  [[nodiscard]] bool remove();

 private:
  OwnedDirectory(std::string path, UniqueFd directory, int around = -1)
      : path_(std::move(path)), directory_(std::move(directory)), around_(around) {}
  [[nodiscard]] static Result<OwnedDirectory> make_in(int holder, std::string path);

  std::string path_;
  UniqueFd directory_;
  int around_ = -1;  ///< the group around it, borrowed; -1: the path leads to it
};

/// A name that no other group has: "sbx-" and 16 hexadecimal digits of getrandom(2).
[[nodiscard]] std::string unique_name();

/// Removes the groups below `parent` that a dead sbx left: marked as sbx's, not locked, empty. The
/// kernel refuses to remove a group with processes.
void sweep(const std::string& parent);

}  // namespace sbx::cgroup

#pragma once

#include <sys/types.h>

#include <vector>

#include "base/result.hpp"

namespace sbx::supervise {

/// The ids with which the supervisor does what a program asks for: those of the program. A wrong
/// check then gives the program no more than it has, and peers of its sockets see it, SO_PEERCRED.
class ProgramIds {
 public:
  /// The supervisor's own: nothing changes.
  ProgramIds() = default;
  /// Tried once. Errors: setup "setup-identity" where a capability stays with the other ids.
  [[nodiscard]] static Result<ProgramIds> make(uid_t uid, gid_t gid);
  /// For a process that only does one thing and ends. Child-safe.
  [[nodiscard]] bool take_for_good() const;

 private:
  friend class ActingAs;
  bool changes_ = false;
  uid_t uid_ = 0;
  gid_t gid_ = 0;
  uid_t own_uid_ = 0;
  gid_t own_gid_ = 0;
  std::vector<gid_t> own_groups_;
};

/// For a while: the effective ids, and no other groups. The real and the saved uid stay root's, so
/// that the program can't signal the supervisor, kill(2), or trace it. Not nested.
class ActingAs {
 public:
  explicit ActingAs(const ProgramIds& ids);
  ActingAs(const ActingAs&) = delete;
  ActingAs& operator=(const ActingAs&) = delete;
  ~ActingAs();
  /// False: do nothing.
  [[nodiscard]] bool is() const { return is_; }

 private:
  const ProgramIds& ids_;
  bool is_ = true;
};

}  // namespace sbx::supervise

#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "supervise/acting_as.hpp"

namespace sbx::supervise {

/// Binds unix sockets to paths in a program's place. A socket keeps the address by which it was
/// bound, and programs pass on what getsockname(2) says: the path has to be resolved as it is
/// written. So a process of its own does it, in the program's directory, behind rules of Landlock
/// that let it make sockets in the program's own directories and nowhere else, whatever the program
/// does to the path meanwhile. The loop goes on.
class SocketBinder {
 public:
  struct Work {
    UniqueFd socket;
    UniqueFd directory;  ///< the caller's, for what the path leaves open
    std::string path;
    mode_t umask = 077;
    std::function<void(int error)> done;
  };

  /// `directories`: those where sockets may be made; borrowed only here. Errors: setup.
  static Result<SocketBinder> make(const std::vector<int>& directories, const ProgramIds& ids);
  void attach(EventLoop& loop) { loop_ = &loop; }
  /// What is not done stays undone. Before the loop is gone.
  void detach();
  [[nodiscard]] bool is_busy() const { return worker_.valid(); }
  /// Not while it is busy, and not within ActingAs.
  void start(Work work);

 private:
  void ended();

  EventLoop* loop_ = nullptr;
  UniqueFd rules_;  ///< of Landlock
  ProgramIds ids_;
  Work work_;
  UniqueFd worker_;  ///< a pidfd
};

}  // namespace sbx::supervise

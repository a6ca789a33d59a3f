#pragma once

#include <sys/types.h>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "cli/invocation.hpp"
#include "cli/run_command.hpp"
#include "session/start.hpp"

namespace sbx::cli {

/// Starts a session from a process that was forked before this one read anything: PID 1 of the
/// sandbox is a copy of its copy. The session ends with this process, however this one ends.
class Starter {
 public:
  static Result<Starter> fork(const Invocation& typed, const OwnProcess& process);
  Starter(Starter&& other) noexcept;
  Starter& operator=(Starter&&) = delete;
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;
  ~Starter();

  /// The exit status, and what the session says of itself. Once.
  Result<session::StartAnswer> start();

 private:
  Starter(UniqueFd socket, pid_t pid) : socket_(std::move(socket)), pid_(pid) {}
  void end();

  UniqueFd socket_;
  pid_t pid_;
};

}  // namespace sbx::cli

#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "run/launch.hpp"

/// For a front end that lives longer than one run, or has several at once. A sandbox's PID 1 is a copy of the process
/// that clones it, memory included, so a process that holds other runs' outputs must not clone. It keeps a fork server:
/// a process forked before the front end knows anything, which forks one worker for each sandbox. A worker is a
/// `sbx run` without the exec: it launches one request, supervises it and ends.
namespace sbx::worker {

/// The program's standard streams, handed over.
struct Streams {
  UniqueFd in;
  UniqueFd out;
  UniqueFd err;
};

/// How a worker ended.
struct Finished {
  int exit_status = 0;  ///< of `sbx run`, sbx-run(1)
  std::string record;   ///< sbx-record(5)
};

/// One run in a worker. Letting go of it cancels the run.
class Worker {
 public:
  /// Readable when wait() will not wait.
  [[nodiscard]] int fd() const { return socket_.get(); }
  /// Of the process that supervises. It is not a child of this one.
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// As SIGTERM to `sbx run`: the command gets SIGTERM, 2 s later everything of it is killed. A run that has not begun
  /// does not begin.
  void cancel() const;
  /// Waits for the end. Call it once. Errors: internal "worker-lost" (the worker was killed; its sandbox with it).
  [[nodiscard]] Result<Finished> wait() const;

 private:
  friend class ForkServer;
  Worker(UniqueFd socket, pid_t pid) : socket_(std::move(socket)), pid_(pid) {}
  UniqueFd socket_;
  pid_t pid_;
};

/// The client of the fork server. When it goes, the server ends; workers end with their own clients.
class ForkServer {
 public:
  /// Forks the server. Call it before the process has threads, secrets or other runs. Errors: host.
  [[nodiscard]] static Result<ForkServer> start();

  /// Starts one run. The sources of variables are read here; `request.policy`, readers, parent, cancel and arguments
  /// are not used: they belong to one process. Relative paths mean the working directory that this process had at
  /// start(). Errors: usage (variables), host (the server is gone, or can't fork).
  [[nodiscard]] Result<Worker> launch(run::Request request, Streams streams) const;

 private:
  explicit ForkServer(UniqueFd socket) : socket_(std::move(socket)) {}
  UniqueFd socket_;
};

}  // namespace sbx::worker

#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "run/launch.hpp"

/// For a front end that outlives one run, or has several at once. A sandbox's PID 1 is a copy of
/// the process that clones it, memory included, so a process that holds other runs' output must not
/// clone. Such a front end keeps a fork server: a process forked before the front end holds any
/// data, which forks one worker for each sandbox. A worker is `sbx run` without the exec: it
/// launches one request, supervises it and ends.
namespace sbx::worker {

/// The program's standard streams; ownership is transferred.
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

/// One run in a worker. Destroying this object cancels the run.
class Worker {
 public:
  /// Readable when wait() will not block.
  [[nodiscard]] int fd() const { return socket_.get(); }
  /// The pid of the supervising process, which is not a child of this one.
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Like SIGTERM to `sbx run`: the command gets SIGTERM, and 2 s later all its processes are
  /// killed. A run that has not begun does not begin.
  void cancel() const;
  /// Waits for the end. Call it once. Errors: internal "worker-lost" (the worker was killed, and
  /// its sandbox with it).
  [[nodiscard]] Result<Finished> wait() const;

 private:
  friend class ForkServer;
  Worker(UniqueFd socket, pid_t pid) : socket_(std::move(socket)), pid_(pid) {}
  UniqueFd socket_;
  pid_t pid_;
};

/// The client of the fork server. The server ends with this object; workers end with their own
/// clients.
class ForkServer {
 public:
  /// Forks the server. Call it before the process has threads, secrets or other runs. `arguments`:
  /// argument_area() of this process, which each sandbox's PID 1 wipes. Errors: host.
  [[nodiscard]] static Result<ForkServer> start(ArgumentArea arguments);

  /// Starts one run. Reads the sources of variables here. Ignores `request.policy`, readers,
  /// parent, cancel, arguments, events, call and started_microseconds: they belong to one process.
  /// Relative paths start from the working directory of this process at start(). Errors: usage
  /// (variables), host (the server is gone, or can't fork).
  [[nodiscard]] Result<Worker> launch(run::Request request, Streams streams) const;

 private:
  explicit ForkServer(UniqueFd socket) : socket_(std::move(socket)) {}
  UniqueFd socket_;
};

}  // namespace sbx::worker

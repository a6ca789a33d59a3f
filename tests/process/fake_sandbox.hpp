#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "supervise/supervisor.hpp"

/// A supervised run without a sandbox: a forked supervisor process, a forked PID 1 that speaks
/// base/control.hpp, and a function as the main process.
namespace sbx::test {

inline constexpr int kClosed = -1;
inline constexpr int kNull = -2;

/// What a supervisor may grow by. The address sanitizer keeps freed memory on top of it.
#ifdef __SANITIZE_ADDRESS__
inline constexpr std::int64_t kMostGrowthKib = std::int64_t{64} * 1024;
#else
inline constexpr std::int64_t kMostGrowthKib = std::int64_t{8} * 1024;
#endif

struct FakeRun {
  std::function<int()> main;  ///< in the main process; its value is the exit status
  supervise::Settings settings{
      .stdout_cap = Bytes{1 << 20}, .stderr_cap = Bytes{1 << 20}, .passed_cap = Bytes{1 << 20}};
  int in = kNull;  ///< descriptors 0 to 2 of the supervisor
  int out = kNull;
  int err = kNull;
  supervise::StdinFrom from = supervise::StdinFrom::inherit;
  std::string stdin_file;
  bool listener = false;                     ///< main calls send_listener()
  bool terminal = false;                     ///< a pty, as with -i
  bool reports = true;                       ///< false: PID 1 ends without a word
  bool init_stays = false;                   ///< PID 1 reports the end and then doesn't exit
  std::vector<int> not_in_supervisor;        ///< the test's ends of pipes
  std::function<void()> before_supervising;  ///< in the supervisor process
  std::function<void(supervise::Watched&)> adjust;
};

/// What the supervisor process saw.
struct Seen {
  std::string verdict;  ///< "exited 3", "signaled 13", "over-budget wall_time", "lost"
  std::string detail;
  std::string notes;     ///< one a line
  std::string denials;   ///< "what*count@process errno-free", one a line
  std::string limits;    ///< "disk=value", one a line
  std::string degraded;  ///< "what: why", one a line
  std::string cpu_time_means;
  Stream out;
  Stream err;
  std::string write_error;  ///< "stdout 28"; empty when there was none
  Usage usage;
  std::uint64_t elapsed_ms = 0;
  std::uint64_t cpu_ms = 0;    ///< of the supervisor process
  std::int64_t grown_kib = 0;  ///< peak memory of the supervisor process over what it began with
};

class Running {
 public:
  Running(pid_t supervisor, UniqueFd answer)
      : supervisor_(supervisor), answer_(std::move(answer)) {}
  Running(Running&&) = default;
  Running(const Running&) = delete;
  [[nodiscard]] pid_t supervisor() const { return supervisor_; }
  /// Waits for the end.
  [[nodiscard]] Seen finish();

 private:
  pid_t supervisor_;
  UniqueFd answer_;
};

[[nodiscard]] Running start(const FakeRun& run);
[[nodiscard]] inline Seen run_to_end(const FakeRun& run) {
  return start(run).finish();
}

/// In the main process: `number` is from now on answered by the supervisor. False: no seccomp here.
[[nodiscard]] bool send_listener(int number);

/// A process under such a filter without a supervisor: for tests that drive a loop of their own.
struct Filtered {
  Filtered(int number, const std::function<void()>& main);
  ~Filtered();
  Filtered(const Filtered&) = delete;
  pid_t pid = -1;
  UniqueFd listener;  ///< invalid: no seccomp here
};

/// From now on this process gets `error` for the call `number`. False: no seccomp here.
bool refuse_call(int number, int error);

/// A pipe of the test; both ends close-on-exec.
struct TestPipe {
  TestPipe();
  UniqueFd read;
  UniqueFd write;
  void fill() const;  ///< until it takes no more; the flags stay as they were
  [[nodiscard]] std::string read_all() const;
};

/// A file without a name, open for reading and writing with `flags`.
[[nodiscard]] UniqueFd temporary_file(int flags = 0);
[[nodiscard]] std::string content_of(int fd);

}  // namespace sbx::test

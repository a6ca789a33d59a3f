#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "supervise/supervisor.hpp"

/// A supervised run without a sandbox: a forked supervisor process, a forked PID 1 that implements
/// base/control.hpp, and a function as the main process.
namespace sbx::test {

inline constexpr int kClosed = -1;
inline constexpr int kNull = -2;

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SBX_ADDRESS_SANITIZER  // clang's way to say it
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SBX_ADDRESS_SANITIZER
#endif

/// What a supervisor may grow by. The address sanitizer keeps freed memory on top of it.
/// How much more CPU time it may use: the sanitizer's checks cost as much again. On what ships,
/// escape.calls.flood_costs_the_supervisor_little compares it with what the program's own calls
/// cost.
#ifdef SBX_ADDRESS_SANITIZER
inline constexpr std::int64_t kMostGrowthKib = std::int64_t{64} * 1024;
inline constexpr int kTimesCpu = 2;
#else
inline constexpr std::int64_t kMostGrowthKib = std::int64_t{8} * 1024;
inline constexpr int kTimesCpu = 1;
#endif

struct FakeRun {
  std::function<int()> main;  ///< in the main process; returns the exit status
  supervise::Settings settings{
      .stdout_cap = Bytes{1 << 20}, .stderr_cap = Bytes{1 << 20}, .passed_cap = Bytes{1 << 20}};
  int in = kNull;  ///< descriptors 0 to 2 of the supervisor
  int out = kNull;
  int err = kNull;
  supervise::StdinFrom from = supervise::StdinFrom::inherit;
  std::string stdin_file;
  bool listener = false;                     ///< main calls send_listener()
  bool terminal = false;                     ///< a pty, as with -i
  bool reports = true;                       ///< false: PID 1 ends without a report
  bool init_stays = false;                   ///< PID 1 reports the end and then doesn't exit
  std::vector<int> not_in_supervisor;        ///< the test's ends of pipes
  std::function<void()> before_supervising;  ///< in the supervisor process
  /// Of what the supervisor has of PID 1, and the private disk.
  std::function<void(supervise::Tree::Handles&, int& scratch)> adjust;
};

/// The results of the supervisor process.
struct Seen {
  std::string verdict;  ///< "exited 3", "signaled 13", "over-budget wall_time", "lost"
  std::string detail;
  std::string notes;     ///< one per line
  std::string denials;   ///< "what*count@process errno-free", one per line
  std::string limits;    ///< "disk=value", one per line
  std::string degraded;  ///< "what: why", one per line
  std::string cpu_time_means;
  Stream out;
  Stream err;
  std::string write_error;  ///< "stdout 28"; empty if there was none
  Usage usage;
  std::uint64_t elapsed_ms = 0;
  std::uint64_t cpu_ms = 0;    ///< of the supervisor process
  std::int64_t grown_kib = 0;  ///< growth of the supervisor process's peak memory
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
  /// The bytes of its answer.
  [[nodiscard]] std::string answer();

 private:
  pid_t supervisor_;
  UniqueFd answer_;
};

[[nodiscard]] Running start(const FakeRun& run);
[[nodiscard]] inline Seen run_to_end(const FakeRun& run) {
  return start(run).finish();
}

/// Two sandboxes that one supervisor process has in one event loop, to the end of both.
[[nodiscard]] std::array<Seen, 2> run_together(const FakeRun& first, const FakeRun& second);

/// In the main process: `number` is from now on answered by the supervisor. False: no seccomp here.
[[nodiscard]] bool send_listener(int number);
/// Exit status of a main process without seccomp.
inline constexpr int kNoSeccomp = 77;

/// A process under such a filter without a supervisor, for tests with a loop of their own.
struct Filtered {
  Filtered(int number, const std::function<void()>& main);
  ~Filtered();
  Filtered(const Filtered&) = delete;
  pid_t pid = -1;
  UniqueFd listener;  ///< invalid: no seccomp here
};

/// From now on the call `number` fails with `error` in this process. False: no seccomp here.
bool refuse_call(int number, int error);

/// A pipe for the test; both ends are close-on-exec.
struct TestPipe {
  TestPipe();
  UniqueFd read;
  UniqueFd write;
  void fill() const;  ///< until it is full; restores the flags
  [[nodiscard]] std::string read_all() const;
};

/// An unnamed file, open for reading and writing with `flags`.
[[nodiscard]] UniqueFd temporary_file(int flags = 0);
[[nodiscard]] std::string content_of(int fd);

}  // namespace sbx::test

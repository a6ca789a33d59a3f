#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/unique_fd.hpp"
#include "protocol/answers.hpp"
#include "session/call_input.hpp"
#include "session/call_output.hpp"
#include "session/worker.hpp"

namespace sbx::session {

/// One call, as the session's process knows it.
struct Call {
  std::uint64_t number = 0;
  bool is_background = false;
  bool is_context = false;
  std::string command;     ///< for people, one line
  std::int64_t since = 0;  ///< CLOCK_REALTIME, seconds
  std::uint64_t began_microseconds = 0;
  Worker worker;  ///< that supervises it; invalid: it has ended
  pid_t init = -1;
  std::uint64_t kill_requested_at =
      0;  ///< when it was told that a budget of the session is spent; 0: it was not
  std::optional<int> status;  ///< exit status; empty: it runs
  std::uint64_t ended_microseconds = 0;
  std::string record;           ///< of a context: its end in words
  std::vector<Denial> refused;  ///< by the session's network, while it ran
  /// Those of its network before it, or before its last cell.
  std::vector<NetworkFailure> failed_before;
  std::vector<UniqueFd> waiters;       ///< hear of its end
  std::unique_ptr<CallOutput> output;  ///< only a background call has that
  std::unique_ptr<CallInput> input;    ///< null: its standard input was not left open

  [[nodiscard]] bool runs() const { return worker.process.valid(); }
  /// The entry to which such an attempt belongs; null: none yet.
  [[nodiscard]] Denial* find_refused(const Denial& denial);
  /// After a number of different ones, one entry counts all others.
  void add_refused(Denial denial, std::uint64_t count, const std::string& process);
  [[nodiscard]] bool is_drained() const { return output == nullptr || output->is_drained(); }
};

/// For `calls` and `show`.
[[nodiscard]] protocol::CallFacts facts_of(const Call& call);

/// Calls by number: all that run, and the last ones that have ended.
class Calls {
 public:
  [[nodiscard]] Call& add();
  [[nodiscard]] Call* find(std::uint64_t number);
  /// Those that run and are not contexts.
  [[nodiscard]] std::size_t running() const;
  /// With contexts.
  [[nodiscard]] std::size_t living() const;
  [[nodiscard]] std::map<std::uint64_t, std::unique_ptr<Call>>& all() { return all_; }
  /// True if there was one of that number.
  [[nodiscard]] bool had(std::uint64_t number) const { return number > 0 && number <= last_; }
  /// Forgets the oldest ended calls beyond what is kept: 64 of the background, 64 others, 64 MiB of
  /// logs.
  void forget_old();

 private:
  std::map<std::uint64_t, std::unique_ptr<Call>> all_;
  std::uint64_t last_ = 0;
};

}  // namespace sbx::session

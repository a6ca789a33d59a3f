#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <sbx/outcome.hpp>

#include "run/call.hpp"
#include "session/calls.hpp"
#include "session/context_requests.hpp"

namespace sbx::session {

/// To which call belongs what happens in what all share: the network, memory and processes.
class Attribution {
 public:
  /// What the processes below a call's init have.
  struct Meters {
    std::function<std::uint64_t(pid_t init)> memory;
    std::function<std::uint64_t(pid_t init)> tasks;
  };
  Attribution(Calls& calls, ContextRequests& contexts, std::string session, Meters meters)
      : calls_(calls),
        contexts_(contexts),
        session_(std::move(session)),
        meters_(std::move(meters)) {}

  /// The network has refused something, to all that run: whose it was is not known.
  /// `process_name`: looks for the name of the process.
  void refused(const Denial& denial, std::uint64_t count,
               const std::function<std::string()>& process_name);
  /// What the network refused to the call, and where it failed, since the last time; `now`: all
  /// failures so far.
  [[nodiscard]] run::NetworkTrouble take_trouble(Call& call, std::vector<NetworkFailure> now);
  /// The call or context that has most processes.
  [[nodiscard]] run::MostProcesses most_processes();
  /// The call that holds most memory, which ends for that; null where there is none, or one is
  /// dying already.
  [[nodiscard]] Call* most_memory(std::uint64_t now_microseconds);

 private:
  [[nodiscard]] bool does_something(const Call& call);

  Calls& calls_;
  ContextRequests& contexts_;
  std::string session_;
  Meters meters_;
};

}  // namespace sbx::session

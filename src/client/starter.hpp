#pragma once

#include <functional>
#include <string>

#include "base/event_loop.hpp"
#include "base/person.hpp"
#include "base/process.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "protocol/answers.hpp"
#include "run/launch.hpp"

namespace sbx::client {

/// Starts sessions from a process that was forked before this one read anything: PID 1 of a sandbox
/// is a copy of its copy. It ends with this process, however this one ends.
class Starter {
 public:
  using Ended = std::function<void(Result<protocol::SessionFacts>)>;

  /// `request`: of each session. `person`: the operator, who is told why a session was not started;
  /// the client only hears that there is none. Errors: host.
  [[nodiscard]] static Result<Starter> fork(const run::Request& request, const Person& person);
  Starter(Starter&&) noexcept = default;
  Starter& operator=(Starter&&) = delete;
  ~Starter() = default;

  /// One at a time. `keep_as`: the set in which an end that nobody asked for keeps the changes;
  /// empty: none. Errors: host.
  [[nodiscard]] Status start(EventLoop& loop, const std::string& name, const std::string& keep_as,
                             Ended ended);

 private:
  Starter(UniqueFd socket, process::Child child)
      : socket_(std::move(socket)), child_(std::move(child)) {}

  UniqueFd socket_;
  process::Child child_;
};

}  // namespace sbx::client

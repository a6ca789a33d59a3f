#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "protocol/requests.hpp"
#include "record/cell.hpp"
#include "run/call.hpp"
#include "run/cell_output.hpp"
#include "session/cell_answer.hpp"
#include "session/cell_sandbox.hpp"
#include "session/drivers.hpp"
#include "session/worker_state.hpp"

namespace sbx::session {

/// A cell in the worker of its context: from the client's request to the record.
class OpenCell {
 public:
  /// `fds`: the client's connection, and its standard output and error. Errors: internal
  /// "bad-message".
  [[nodiscard]] static Result<OpenCell> receive(protocol::EvalRequest request,
                                                std::vector<UniqueFd> fds);

  [[nodiscard]] int client() const { return client_.get(); }
  [[nodiscard]] const std::string& code() const { return request_.code; }
  void name(const ContextOfWorker& context, const run::CallName& call,
            const std::vector<Degraded>& degraded);
  /// What it can find, if it runs now. `count`: cells that the interpreter has run.
  void name_state(const ContextOfWorker& context, std::uint64_t count);
  /// What its options leave of the session's policy. Errors: policy (they widen it).
  Status narrow(const policy::Policy& policy, const std::string& session);
  [[nodiscard]] Milliseconds wall_time() const { return record.policy->limits.wall_time.value; }
  [[nodiscard]] run::CellOutput::Target target(std::function<void()> exceeded,
                                               std::function<void()> left) const;
  /// Begins to listen for the driver's answer; returns the request to the driver.
  [[nodiscard]] std::string begin(std::uint64_t count, const Driver& driver);

  /// The first reason counts; false: there was one.
  bool decide(record::CellEnd end);
  [[nodiscard]] bool is_decided() const { return decided_; }
  /// Passes on what the driver has just said, for a client that follows: it comes after so many
  /// bytes of stdout and stderr.
  void tell(const run::OutputPosition& after);
  /// The exit status of its answer, as far as it is decided.
  [[nodiscard]] int status();
  /// Takes what it was refused and what it met, and looks for more where its code failed.
  void keep_findings(CellSandbox& sandbox, const run::OfCell& of_cell);
  /// The last word to the client.
  void answer();
  void answer(const Error& error);

  record::Cell record;  ///< what is known so far
  std::optional<CellAnswer> said;
  std::uint64_t began_microseconds = 0;
  std::uint64_t cpu_before = 0;

 private:
  OpenCell() = default;
  void explain(const run::OfCell& of_cell);
  [[nodiscard]] Status check_own() const;
  [[nodiscard]] std::string plain_request(const std::string& nonce, std::uint64_t count) const;
  UniqueFd client_;
  UniqueFd out_;
  UniqueFd err_;
  protocol::EvalRequest request_;
  bool decided_ = false;
  std::vector<std::string> notes_;
};

}  // namespace sbx::session

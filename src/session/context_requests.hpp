#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "policy/policy.hpp"
#include "session/contexts.hpp"
#include "session/worker_protocol.hpp"

namespace sbx::session {

/// The processes in which interpreters live. The tests have some without processes.
class Interpreters {
 public:
  Interpreters() = default;
  Interpreters(const Interpreters&) = delete;
  Interpreters& operator=(const Interpreters&) = delete;
  virtual ~Interpreters() = default;

  struct Started {
    std::uint64_t call = 0;
    std::int64_t since = 0;  ///< CLOCK_REALTIME, seconds
  };
  /// Errors: policy (a budget is spent), host.
  [[nodiscard]] virtual Result<Started> start(const Context& context) = 0;

  enum class Passed : std::uint8_t {
    taken,
    full,   ///< its worker has no time
    ended,  ///< it is just ending
  };
  /// A cell, or a question about code, with its client.
  [[nodiscard]] virtual Passed pass_on(std::uint64_t call, const protocol::Request& request,
                                       const Asker& client) = 0;
  virtual void tell(std::uint64_t call, Note::What what) = 0;
  /// From the start: the session may be ending, or busy with something else.
  virtual void handle_again(protocol::Request request, Asker client) = 0;
};

/// What clients ask of contexts: starts interpreters, passes cells on to them, ends them.
class ContextRequests {
 public:
  ContextRequests(Interpreters& interpreters, policy::Sourced<std::uint64_t> most,
                  std::string session)
      : interpreters_(interpreters), most_(std::move(most)), session_(std::move(session)) {}

  void answer(protocol::EvalRequest request, Asker client);
  void answer(protocol::InspectRequest request, Asker client);
  void answer(protocol::OpenContextRequest request, Asker client);
  void answer(const protocol::ContextsRequest& request, UniqueFd connection);
  void answer(const protocol::InterruptRequest& request, UniqueFd connection);
  void answer(const protocol::RestartRequest& request, UniqueFd connection);
  void answer(const protocol::CloseContextRequest& request, UniqueFd connection);

  /// What the worker of the call says.
  void on_note(std::uint64_t call, Note::What what);
  void on_end(std::uint64_t call, const std::string& why);

  [[nodiscard]] Context* of_call(std::uint64_t call) { return contexts_.of_call(call); }
  [[nodiscard]] std::size_t living() const { return contexts_.living(); }
  [[nodiscard]] bool is_busy() const { return contexts_.is_busy(); }

 private:
  template <class Asked>
  void ask(Asked request, Asker client);
  [[nodiscard]] Result<Context*> context_for(const std::string& name, std::string language);
  Status start(Context& context);
  template <class Asked>
  void pass_on(Context& context, Asked request, Asker client);
  [[nodiscard]] Context* named(const std::string& name, int connection);
  void end(Context& context, UniqueFd connection);
  void restart_opened(Context& context);

  Interpreters& interpreters_;
  policy::Sourced<std::uint64_t> most_;
  std::string session_;
  Contexts contexts_;
};

}  // namespace sbx::session

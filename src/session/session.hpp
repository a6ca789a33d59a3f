#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "protocol/packet.hpp"
#include "protocol/requests.hpp"
#include "run/held_sandbox.hpp"
#include "session/attribution.hpp"
#include "session/background.hpp"
#include "session/bring_out_worker.hpp"
#include "session/calls.hpp"
#include "session/clocks.hpp"
#include "session/connections.hpp"
#include "session/context_requests.hpp"
#include "session/contexts.hpp"
#include "session/end_note.hpp"
#include "session/ending.hpp"
#include "session/session_directory.hpp"
#include "session/spare_contexts.hpp"
#include "session/worker.hpp"
#include "session/worker_pool.hpp"
#include "session/worker_protocol.hpp"
#include "session/worker_state.hpp"

namespace sbx::session {

/// The session's process: holds the sandbox, answers requests, starts calls and ends them.
class Session : private Interpreters {
 public:
  Session(SessionDirectory place, std::unique_ptr<run::HeldSandbox> held, std::string policy_sha256,
          EventLoop loop);

  /// `owner`: a pidfd; the session stops when that process ends. Invalid: it has no owner.
  /// `keep_as`: the set in which the changes are kept at an end that nobody asked for; empty: they
  /// go.
  Status begin(UniqueFd owner, std::string keep_as);
  void run();
  [[nodiscard]] protocol::SessionFacts info() const;

 private:
  void handle(protocol::Request request, Asker client);
  static void refuse(int connection, const Error& error);
  void answer(protocol::CallRequest request, Asker client);
  void answer(protocol::FilesRequest request, Asker client);
  void answer(const protocol::InfoRequest& request, UniqueFd connection);
  void answer(const protocol::PolicyRequest& request, UniqueFd connection);
  void answer(const protocol::StatsRequest& request, UniqueFd connection);
  void answer(const protocol::StopRequest& request, UniqueFd connection);
  void answer(const protocol::CallsRequest& request, UniqueFd connection);
  void answer(const protocol::LogsRequest& request, UniqueFd connection);
  void answer(const protocol::WaitRequest& request, UniqueFd connection);
  void answer(const protocol::KillRequest& request, UniqueFd connection);
  void answer(const protocol::SendRequest& request, UniqueFd connection);
  [[nodiscard]] Call* named_call(std::uint64_t number, int connection);
  [[nodiscard]] Error has_ended(std::uint64_t call) const;
  /// It takes no more work.
  [[nodiscard]] static Error ends();

  /// Contexts answer it.
  template <class Asked>
  void answer(Asked request, Asker client)
    requires requires(ContextRequests& contexts) { contexts.answer(Asked(), Asker()); }
  {
    contexts_.answer(std::move(request), std::move(client));
  }
  template <class Asked>
  void answer(const Asked& request, UniqueFd connection)
    requires requires(ContextRequests& contexts) { contexts.answer(Asked(), UniqueFd()); }
  {
    contexts_.answer(request, std::move(connection));
  }

  // Contexts: session_cells.cpp
  [[nodiscard]] Result<Started> start(const Context& context) override;
  /// True: the call has an interpreter that was started ahead.
  [[nodiscard]] bool take_spare(Call& call, const Context& context);
  [[nodiscard]] bool rests();
  [[nodiscard]] bool has_room_for_spares() const;
  void note_use_of(const Call& context);
  [[nodiscard]] Passed pass_on(std::uint64_t number, const protocol::Request& request,
                               const Asker& client) override;
  void tell(std::uint64_t number, Note::What what) override;
  void handle_again(protocol::Request request, Asker client) override;

  // Calls: session_calls.cpp
  /// `own_title`: names code of sbx's own, which the call runs; empty: it runs a program. Takes the
  /// client only where it succeeds.
  Status start_call(protocol::CallRequest request, const std::string& own_title, Asker& client);
  void begin_call(protocol::CallRequest request, const std::string& own_title, Asker client);
  [[nodiscard]] Status check_cpu_is_left() const;
  [[nodiscard]] Result<int> image();
  [[nodiscard]] Background background_of(Call& call);
  Status watch(Call& call);
  /// A call that could not begin; its worker may be there.
  void forget_unbegun(Call& call);
  bool on_worker_message(Call& call);
  void answer_question(Call& call);
  /// What appeared is a refusal to all that run.
  void put_aside();
  void watch_new_names();
  /// Allowed attempts of the network that led nowhere, so far.
  [[nodiscard]] std::vector<NetworkFailure> failures();
  [[nodiscard]] Worker leave(Call& call);
  void worker_ended(Call& call);
  void ended(Call& call);
  void settle(Call& call);
  static void answer_waiter(const Call& call, int connection);

  // The workspace, budgets, and the end: session.cpp
  void answer(const protocol::ChangesRequest& request, Asker client);
  void answer(const protocol::SnapshotRequest& request, Asker client);
  void answer(const protocol::KeepRequest& request, Asker client);
  void answer(const protocol::BringOutRequest& request, Asker client);
  enum class When : std::uint8_t { asked, at_end };
  void bring_out(ChangesTask task, Asker client, When when = When::asked);
  void reader_ended();
  void spent(Budget budget);
  static void request_kill(Call& call, Budget budget);
  void end_workers();
  void resume();
  void rest_between_calls();
  [[nodiscard]] bool is_used() const;
  void answer(const protocol::ExtendRequest& request, UniqueFd connection);
  void end_calls(EndCause cause);
  [[nodiscard]] bool all_is_told();
  enum class Expired : std::uint8_t { no, yes };
  /// `why`, as Remains::cause.
  void end(EndCause cause, std::string why, Expired expired = Expired::no);
  [[nodiscard]] bool keep(const std::string& set);
  void handle_signals();
  void look_for_place();

  EventLoop loop_;
  SessionDirectory directory_;
  std::string id_;
  std::int64_t started_;
  std::string policy_sha256_;
  std::unique_ptr<run::HeldSandbox> held_;
  UniqueFd signals_;
  UniqueFd owner_;
  UniqueFd removal_;  ///< tells that its directory may be gone
  UniqueFd image_;
  Clocks clocks_;
  Connections connections_;
  Calls calls_;
  WorkerPool workers_;
  Ending ending_;
  ContextRequests contexts_;
  SpareContexts spares_;
  Attribution attribution_;
  std::vector<PendingRequest> pending_requests_;  ///< what came while changes are read
  UniqueFd reader_;  ///< pidfd of the process that reads changes while the calls are stopped
  EventLoop::TimerId new_names_ = EventLoop::kNoTimer;
  bool cpu_is_spent_ = false;
  EndNote end_note_;
};

}  // namespace sbx::session

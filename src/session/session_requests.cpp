#include <sys/socket.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "base/text.hpp"
#include "policy/write.hpp"
#include "session/session.hpp"
#include "session/worker_protocol.hpp"

namespace sbx::session {
void Session::refuse(int connection, const Error& error) {
  (void)protocol::send(connection, error);
}

void Session::handle(protocol::Request request, Asker client) {
  const bool is_for_the_end = std::holds_alternative<protocol::StopRequest>(request) ||
                              std::holds_alternative<protocol::LogsRequest>(request);
  if (ending_.has_begun() && !is_for_the_end) return refuse(client.connection.get(), ends());
  std::visit(
      [&]<class Asked>(Asked& asked) {
        if constexpr (!protocol::Works<Asked>)
          answer(asked, std::move(client.connection));
        else if (reader_.valid())
          pending_requests_.emplace_back(std::move(asked), std::move(client));
        else
          answer(std::move(asked), std::move(client));
      },
      request);
}

void Session::answer(const protocol::InfoRequest& /*request*/, UniqueFd connection) {
  (void)protocol::send(connection.get(), info());
}

void Session::answer(const protocol::PolicyRequest& /*request*/, UniqueFd connection) {
  (void)protocol::send(connection.get(),
                       protocol::PolicyAnswer{.text = policy::write(held_->policy())});
}

void Session::answer(const protocol::StopRequest& /*request*/, UniqueFd connection) {
  ending_.stop(std::move(connection));
}

void Session::answer(protocol::CallRequest request, Asker client) {
  begin_call(std::move(request), "", std::move(client));
}

void Session::answer(protocol::FilesRequest request, Asker client) {
  protocol::CallRequest call{.id = std::move(request.id), .program = {.operands = {"sbx-inside"}}};
  std::ranges::move(request.words, std::back_inserter(call.program.operands));
  begin_call(std::move(call), request.title.empty() ? "files" : printable(request.title),
             std::move(client));
}

void Session::begin_call(protocol::CallRequest request, const std::string& own_title,
                         Asker client) {
  resume();
  if (spares_.has_any() && !has_room_for_spares()) spares_.end_all();
  if (const Status begun = start_call(std::move(request), own_title, client); !begun)
    refuse(client.connection.get(), begun.error());
  rest_between_calls();
}

Call* Session::named_call(std::uint64_t number, int connection) {
  Call* const found = calls_.find(number);
  if (found == nullptr)
    refuse(connection,
           {.kind = ErrorKind::usage,
            .code = "no-such-call",
            .message = calls_.had(number)
                           ? "call " + std::to_string(number) + " has ended, and is no longer kept"
                           : "the session has no call " + std::to_string(number),
            .hint = "sbx session calls " + directory_.name() + " lists them"});
  return found;
}

Error Session::ends() {
  return {.kind = ErrorKind::host, .code = "session-gone", .message = "the session is ending"};
}

Error Session::has_ended(std::uint64_t call) const {
  return {.kind = ErrorKind::usage,
          .code = "call-ended",
          .message = "call " + std::to_string(call) + " has ended",
          .hint = "sbx session calls " + directory_.name() + " lists how calls ended"};
}

void Session::answer(const protocol::CallsRequest& /*request*/, UniqueFd connection) {
  protocol::CallsAnswer answer;
  for (const auto& [number, each] : calls_.all()) answer.calls.push_back(facts_of(*each));
  (void)protocol::send(connection.get(), answer);
}

void Session::answer(const protocol::LogsRequest& request, UniqueFd connection) {
  Call* const call = named_call(request.call, connection.get());
  if (call == nullptr) return;
  if (call->output != nullptr) return call->output->answer(request, std::move(connection));
  refuse(connection.get(),
         {.kind = ErrorKind::usage,
          .code = "not-in-background",
          .message = "call " + std::to_string(call->number) + " had a client, which got its output",
          .hint = "exec -d keeps a call's output"});
}

void Session::answer_waiter(const Call& call, int connection) {
  protocol::CallEnded answer{.status = call.status.value_or(exit_status::kCouldNot)};
  if (call.is_background && !call.record.empty()) answer.record.emplace(call.record);
  (void)protocol::send(connection, answer);
}

void Session::answer(const protocol::WaitRequest& request, UniqueFd connection) {
  Call* const call = named_call(request.call, connection.get());
  if (call == nullptr) return;
  if (request.record && !call->is_background)
    return refuse(connection.get(), {.kind = ErrorKind::usage,
                                     .code = "not-in-background",
                                     .message = "call " + std::to_string(call->number) +
                                                " had a client, which got its record",
                                     .hint = "wait without --json waits for its end"});
  if (!call->runs()) return answer_waiter(*call, connection.get());
  call->waiters.push_back(std::move(connection));
}

void Session::answer(const protocol::KillRequest& request, UniqueFd connection) {
  Call* const call = named_call(request.call, connection.get());
  if (call == nullptr) return;
  if (!call->runs()) return refuse(connection.get(), has_ended(call->number));
  const int number = request.signal.value_or(0);
  const Note note = number == 0
                        ? Note{Note::What::cancel, static_cast<std::int32_t>(EndCause::kill)}
                        : Note{Note::What::signal, number};
  (void)::send(call->worker.link.get(), &note, sizeof note, MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)protocol::send(connection.get(), protocol::DoneAnswer{});
}

void Session::answer(const protocol::SendRequest& request, UniqueFd connection) {
  Call* const call = named_call(request.call, connection.get());
  if (call == nullptr) return;
  if (!call->runs()) return refuse(connection.get(), has_ended(call->number));
  if (call->input != nullptr) return call->input->add(std::move(connection));
  refuse(connection.get(),
         {.kind = ErrorKind::usage,
          .code = "input-not-open",
          .message = "the standard input of call " + std::to_string(call->number) + " is not open",
          .hint = "begin a call with exec -d --stdin open to send it something"});
}

void Session::answer(const protocol::StatsRequest& /*request*/, UniqueFd connection) {
  const run::HeldSandbox::Use use = held_->use();
  const plan::Plan& plan = held_->plan();
  Outcome network;
  held_->put_network_into(network);
  const protocol::StatsAnswer answer{
      .session = info(),
      .use = {.memory_bytes = use.memory_bytes,
              .memory_limit_bytes = plan.budgets.memory.count,
              .disk_bytes = use.disk_bytes,
              .disk_limit_bytes = plan.budgets.disk.count,
              .processes = use.processes,
              .processes_limit = plan.budgets.processes,
              .cpu_ms = use.cpu_microseconds / 1000,
              .network = std::move(network.network_used),
              .network_failed = std::move(network.network_failures)}};
  (void)protocol::send(connection.get(), answer);
}

}  // namespace sbx::session

// What background calls read. The session passes no byte on: it gives its end of a socket to one
// sender after another. A program that reads nothing keeps its sender waiting, and nobody else.

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "protocol/packet.hpp"
#include "session/session.hpp"

namespace sbx::session {
namespace {

/// Each holds a descriptor.
constexpr std::size_t kMostSenders = 64;

Error no_input(const Call& call) {
  const std::string number = std::to_string(call.number);
  if (call.had_input)
    return {.kind = ErrorKind::usage,
            .code = "input-ended",
            .message = "the standard input of call " + number + " has ended"};
  return {.kind = ErrorKind::usage,
          .code = "input-not-open",
          .message = "the standard input of call " + number + " is not open",
          .hint = "begin a call with exec -d --stdin open to send it something"};
}

Error too_many_senders(const Call& call) {
  return {.kind = ErrorKind::usage,
          .code = "too-many-senders",
          .message = std::to_string(call.senders.size()) +
                     " senders write to the standard input of call " + std::to_string(call.number) +
                     " or wait for their turn",
          .hint = "wait; one sends after another"};
}

bool has_left(const UniqueFd& sender) {
  pollfd state{.fd = sender.get(), .events = 0, .revents = 0};
  return ::poll(&state, 1, 0) == 1;  // POLLHUP
}

/// The end of the first one is watched; nobody hears of those that wait for their turn.
void forget_those_that_left(std::vector<UniqueFd>& senders) {
  std::erase_if(senders,
                [&](const UniqueFd& each) { return &each != &senders.front() && has_left(each); });
}

}  // namespace

void Session::answer(const protocol::SendRequest& request, UniqueFd connection) {
  Call* const call = named_call(request.call, connection.get());
  if (call == nullptr) return;
  if (!call->runs()) return refuse(connection.get(), has_ended(call->number));
  if (!call->input.valid()) return refuse(connection.get(), no_input(*call));
  if (call->senders.size() >= kMostSenders) forget_those_that_left(call->senders);
  if (call->senders.size() >= kMostSenders)
    return refuse(connection.get(), too_many_senders(*call));
  call->senders.push_back(std::move(connection));
  if (call->senders.size() == 1) give_turn(*call);
}

/// To the first one that is still there.
void Session::give_turn(Call& call) {
  while (!call.senders.empty()) {
    const int sender = call.senders.front().get();
    const int input = call.input.get();
    if (protocol::send(sender, protocol::InputTurn{.call = call.number}, std::span(&input, 1)) &&
        loop_.watch(sender, EPOLLIN, [this, &call](std::uint32_t) { end_turn(call); }))
      return;
    call.senders.erase(call.senders.begin());
  }
}

/// The sender has written all, or it has left; then the program has what it wrote until then.
void Session::end_turn(Call& call) {
  const UniqueFd sender = std::move(call.senders.front());
  call.senders.erase(call.senders.begin());
  loop_.forget(sender.get());
  clocks_.note_use();
  auto packet = protocol::receive(sender.get());
  const auto written = packet ? read_fields<protocol::InputWritten>(std::move(packet->body))
                              : Result<protocol::InputWritten>(fail(std::move(packet).error()));
  if (written) {
    if (written->end) {
      // For every copy of it: a sender that was stopped may have one.
      (void)::shutdown(call.input.get(), SHUT_WR);
      call.input.reset();
    }
    (void)protocol::send(sender.get(), protocol::DoneAnswer{});
  }
  if (call.input.valid()) return give_turn(call);
  refuse_senders(call, no_input(call));
}

void Session::refuse_senders(Call& call, const Error& error) {
  for (const UniqueFd& each : std::exchange(call.senders, {})) {
    loop_.forget(each.get());
    refuse(each.get(), error);
  }
}

void Session::end_input(Call& call) {
  call.input.reset();
  refuse_senders(call, has_ended(call.number));
}

}  // namespace sbx::session

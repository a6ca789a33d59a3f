#include "session/call_input.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <chrono>
#include <span>
#include <string>

#include "protocol/packet.hpp"
#include "protocol/requests.hpp"

namespace sbx::session {
namespace {

/// Each holds a descriptor.
constexpr std::size_t kMostSenders = 64;
/// A program that has ended has closed its input too; that its call has ended is known a moment
/// later.
constexpr std::chrono::milliseconds kEndsSoon{200};

Error too_many_senders(std::size_t count, std::uint64_t call) {
  return {.kind = ErrorKind::usage,
          .code = "too-many-senders",
          .message = std::to_string(count) + " senders write to the standard input of call " +
                     std::to_string(call) + " or wait for their turn",
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

CallInput::~CallInput() {
  loop_.cancel(closed_);
  if (!senders_.empty()) loop_.forget(senders_.front().get());
}

Error CallInput::ended() const {
  return {.kind = ErrorKind::usage,
          .code = "input-ended",
          .message = "the standard input of call " + std::to_string(call_) + " has ended"};
}

Error CallInput::closed_by_program() const {
  return {
      .kind = ErrorKind::usage,
      .code = "input-ended",
      .message = "the program of call " + std::to_string(call_) + " has closed its standard input"};
}

void CallInput::add(UniqueFd sender) {
  if (!end_.valid()) return (void)protocol::send(sender.get(), ended());
  if (senders_.size() >= kMostSenders) forget_those_that_left(senders_);
  if (senders_.size() >= kMostSenders)
    return (void)protocol::send(sender.get(), too_many_senders(senders_.size(), call_));
  senders_.push_back(std::move(sender));
  if (senders_.size() == 1) give_turn();
}

/// To the first one that is still there.
void CallInput::give_turn() {
  while (!senders_.empty()) {
    const int sender = senders_.front().get();
    const int end = end_.get();
    if (protocol::send(sender, protocol::InputTurn{.call = call_}, std::span(&end, 1)) &&
        loop_.watch(sender, EPOLLIN, [this](std::uint32_t) { end_turn(); }))
      return;
    senders_.erase(senders_.begin());
  }
}

/// The sender has written all, or it has left; then the program has what it wrote until then.
void CallInput::end_turn() {
  UniqueFd sender = std::move(senders_.front());
  senders_.erase(senders_.begin());
  loop_.forget(sender.get());
  used_();
  auto packet = protocol::receive(sender.get());
  const auto written = packet ? read_fields<protocol::InputWritten>(std::move(packet->body))
                              : Result<protocol::InputWritten>(fail(std::move(packet).error()));
  if (written && written->refused) {
    senders_.insert(senders_.begin(), std::move(sender));
    closed_ = loop_.after(kEndsSoon, [this] { close(closed_by_program()); });
    return;
  }
  if (written) {
    if (written->end) {
      // For every copy of it: a sender that was stopped may have one.
      (void)::shutdown(end_.get(), SHUT_WR);
      end_.reset();
    }
    (void)protocol::send(sender.get(), protocol::DoneAnswer{});
  }
  if (end_.valid()) return give_turn();
  refuse_senders(ended());
}

void CallInput::refuse_senders(const Error& error) {
  for (const UniqueFd& each : std::exchange(senders_, {})) {
    loop_.forget(each.get());
    (void)protocol::send(each.get(), error);
  }
}

void CallInput::close(const Error& why) {
  end_.reset();
  refuse_senders(why);
}

}  // namespace sbx::session

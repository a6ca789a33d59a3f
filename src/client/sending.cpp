#include "client/sending.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "client/task.hpp"

namespace sbx::client {
namespace {

constexpr std::size_t kBlock = std::size_t{64} << 10;
constexpr std::uint32_t kNoReader = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

}  // namespace

Status Sending::attach(EventLoop& loop, Hooks hooks) {
  hooks_ = std::move(hooks);
  connection_.never_wait();
  SBX_TRY(connection_.send(protocol::SendRequest{.call = call_}));
  SBX_TRY(loop.watch(connection_.fd(), EPOLLIN, [this](std::uint32_t) { hear(); }));
  loop_ = &loop;
  return {};
}

void Sending::hear() {
  auto packet = connection_.next_packet();
  if (packet && !to_.valid() && !packet->body.contains("error")) return begin(std::move(*packet));
  auto done = packet ? protocol::answer_from<protocol::DoneAnswer>(std::move(packet->body))
                     : Result<protocol::DoneAnswer>(fail(std::move(packet).error()));
  if (done) return end(taken_);
  // The program may end as soon as it has the last byte.
  const std::string& code = done.error().code;
  if (is_written_ && (code == "call-ended" || code == "session-gone")) return end(taken_);
  if (taken_ > 0) done.error().message += "; " + std::to_string(taken_) + " bytes were sent before";
  end(fail(std::move(done).error()));
}

void Sending::begin(protocol::Packet packet) {
  const auto turn = protocol::answer_from<protocol::InputTurn>(std::move(packet.body));
  if (!turn || packet.fds.size() != 1) return end(protocol::garbled());
  to_ = std::move(packet.fds.front());
  Status watched = loop_->watch(to_.get(), 0, [this](std::uint32_t events) {
    if ((events & kNoReader) != 0) return stop_writing();
    write();
  });
  if (watched && input_.source >= 0)
    watched = loop_->watch(input_.source, 0, [this](std::uint32_t) { read(); });
  if (!watched) return end(fail(std::move(watched).error()));
  write();
}

void Sending::write() {
  while (at_ < input_.text.size()) {
    const ssize_t sent = ::send(to_.get(), input_.text.data() + at_, input_.text.size() - at_,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return loop_->set_events(to_.get(), EPOLLOUT);
    if (sent < 0) return stop_writing();
    at_ += static_cast<std::size_t>(sent);
    taken_ += static_cast<std::uint64_t>(sent);
  }
  if (input_.source < 0) return finish();
  // Nothing is to be written until the source has more, which may take for ever.
  loop_->set_events(to_.get(), EPOLLRDHUP);
  loop_->set_events(input_.source, EPOLLIN);
}

void Sending::read() {
  input_.text.resize(kBlock);
  at_ = 0;
  const ssize_t got = ::read(input_.source, input_.text.data(), kBlock);
  const int error = errno;
  input_.text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  if (got < 0 && (error == EAGAIN || error == EINTR)) return;
  if (got < 0)
    return end(fail(Error{.kind = ErrorKind::host,
                          .code = "cannot-read",
                          .message = "cannot read what is to be sent",
                          .errno_value = error}));
  loop_->set_events(input_.source, 0);
  if (got > 0) return write();
  loop_->forget(input_.source);
  input_.source = -1;
  finish();
}

/// Nobody reads any more, because the call has ended or its program has closed the input: the
/// session says which.
void Sending::stop_writing() {
  loop_->set_events(to_.get(), 0);
  loop_->set_events(input_.source, 0);
  (void)connection_.send(protocol::InputWritten{.refused = true});
}

void Sending::finish() {
  is_written_ = true;
  loop_->set_events(to_.get(), 0);
  // Where it can't be sent, the session's end of the connection says why.
  (void)connection_.send(protocol::InputWritten{.end = input_.end});
}

void Sending::end(Ended ended) {
  leave();
  hooks_.ended(std::move(ended));
}

void Sending::leave() {
  if (loop_ == nullptr) return;
  loop_->forget(connection_.fd());
  if (to_.valid()) loop_->forget(to_.get());
  if (input_.source >= 0) loop_->forget(input_.source);
  loop_ = nullptr;
}

Sending::Ended Sending::run() {
  EventLoop loop = SBX_TRY(EventLoop::make());
  std::optional<Ended> result;
  SBX_TRY(attach(loop, {.ended = [&](Ended ended) { result.emplace(std::move(ended)); }}));
  return run_until(loop, result);
}

}  // namespace sbx::client

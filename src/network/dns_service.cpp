#include "network/dns_service.hpp"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "base/sys.hpp"
#include "network/packet_info.hpp"
#include "network/socket_address.hpp"

namespace sbx::network {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kQuestionWindowMicroseconds = 10'000;
constexpr auto kStreamLife = 30s;
constexpr int kQuestionsPerTurn = 32;

}  // namespace

/// One TCP connection: questions in, answers out, both bounded.
struct DnsService::Stream {
  UniqueFd socket;
  dns::Stream questions;
  dns::Bytes waiting;  ///< answers that the client has not taken yet
  bool ended = false;  ///< nothing more will be asked
  EventLoop::TimerId life = EventLoop::kNoTimer;
  std::uint64_t asked_at = 0;  ///< when it came, or asked a whole question last
};

DnsService::DnsService(EventLoop& loop, Answerer answerer)
    : loop_(loop), answer_(std::move(answerer)) {}

DnsService::~DnsService() {
  loop_.cancel(resume_);
  for (const UniqueFd& socket : udp_) loop_.forget(socket.get());
  for (const UniqueFd& socket : listeners_) loop_.forget(socket.get());
  while (!streams_.empty()) close_stream(streams_.begin()->first);
}

Status DnsService::serve_udp(UniqueFd socket) {
  const int fd = socket.get();
  // The one of the other family is refused.
  (void)set_option(fd, SOL_IP, IP_PKTINFO, 1);
  (void)set_option(fd, SOL_IPV6, IPV6_RECVPKTINFO, 1);
  SBX_TRY(loop_.watch(fd, EPOLLIN, [this, fd](std::uint32_t) { datagrams(fd); }));
  udp_.push_back(std::move(socket));
  return {};
}

Status DnsService::serve_tcp(UniqueFd listener) {
  const int fd = listener.get();
  SBX_TRY(loop_.watch(fd, EPOLLIN, [this, fd](std::uint32_t) { accept_streams(fd); }));
  listeners_.push_back(std::move(listener));
  return {};
}

bool DnsService::may_answer() {
  const std::uint64_t now = sys::now_microseconds();
  if (now - window_start_ >= kQuestionWindowMicroseconds) {
    window_start_ = now;
    answered_ = 0;
  }
  if (answered_++ < kAnswersPerWindow) return true;
  pause();
  return false;
}

/// Until the window is over nothing is read: the kernel drops what its queue can't hold.
void DnsService::pause() {
  if (resume_ != EventLoop::kNoTimer) return;
  for (const UniqueFd& socket : udp_) loop_.set_events(socket.get(), 0);
  for (const auto& [fd, stream] : streams_) loop_.set_events(fd, 0);
  resume_ = loop_.at(window_start_ + kQuestionWindowMicroseconds, [this] { resume(); });
}

void DnsService::resume() {
  resume_ = EventLoop::kNoTimer;
  for (const UniqueFd& socket : udp_) loop_.set_events(socket.get(), EPOLLIN);
  for (const auto& [fd, stream] : streams_)
    loop_.set_events(fd, stream->waiting.empty() ? EPOLLIN : EPOLLOUT);
}

dns::Bytes DnsService::answer_to(std::span<const std::uint8_t> message, bool over_udp) {
  auto query = dns::parse_query(message);
  if (!query) return std::move(query.error().answer);
  if (!over_udp) query->largest_answer = dns::kLargestMessage;
  const auto own = dns::own_name(*query);
  return dns::write_answer(*query, own ? *own : answer_(*query));
}

void DnsService::datagrams(int socket) {
  for (int i = 0; i < kQuestionsPerTurn; ++i)
    if (!may_answer() || !datagram(socket)) return;
}

/// False: there is none.
bool DnsService::datagram(int socket) {
  std::array<std::uint8_t, 4096> bytes;  // a question of a longer name does not exist
  DatagramMessage question(bytes);
  const ssize_t got = ::recvmsg(socket, question.header(), MSG_DONTWAIT);
  if (got < 0) return errno == EINTR;
  dns::Bytes text = answer_to(std::span(bytes).first(static_cast<std::size_t>(got)), true);
  const auto asked = question.destination();
  if (text.empty() || !asked) return true;
  DatagramMessage answer(text);
  answer.address_to(question.peer(), *asked);
  (void)::sendmsg(socket, answer.header(), MSG_DONTWAIT | MSG_NOSIGNAL);  // lost like any datagram
  return true;
}

void DnsService::accept_streams(int listener) {
  UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.valid()) return;
  if (streams_.size() >= kMostStreams) close_quietest();
  const int fd = socket.get();
  auto stream = std::make_unique<Stream>();
  stream->socket = std::move(socket);
  stream->asked_at = sys::now_microseconds();
  stream->life = loop_.after(kStreamLife, [this, fd] { close_stream(fd); });
  if (!loop_.watch(fd, EPOLLIN, [this, fd](std::uint32_t) { read_stream(fd); }))
    return loop_.cancel(stream->life);
  streams_.emplace(fd, std::move(stream));
}

void DnsService::read_stream(int socket) {
  Stream& stream = *streams_.at(socket);
  if (stream.waiting.empty() && !stream.ended) {
    std::array<std::uint8_t, 4096> bytes;
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    stream.ended = got <= 0;
    if (got > 0 && !stream.questions.add(std::span(bytes).first(static_cast<std::size_t>(got))))
      return close_stream(socket);
  }
  for (;;) {
    if (!stream.waiting.empty()) {
      const ssize_t sent =
          ::send(socket, stream.waiting.data(), stream.waiting.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return close_stream(socket);
      if (sent > 0) stream.waiting.erase(stream.waiting.begin(), stream.waiting.begin() + sent);
      if (!stream.waiting.empty()) return loop_.set_events(socket, EPOLLOUT);
    }
    const auto question = stream.questions.next();
    if (!question) break;
    stream.asked_at = sys::now_microseconds();
    (void)may_answer();  // this one is answered; when they are too many, the next ones wait
    stream.waiting = dns::framed(answer_to(*question, false));
  }
  if (stream.ended) return close_stream(socket);
  if (resume_ == EventLoop::kNoTimer) loop_.set_events(socket, EPOLLIN);
}

/// Half a question, or none, for ever: that must not keep others from asking.
void DnsService::close_quietest() {
  const auto quietest = std::ranges::min_element(
      streams_, {}, [](const auto& each) { return each.second->asked_at; });
  reset_on_close(quietest->first);
  close_stream(quietest->first);
}

void DnsService::close_stream(int socket) {
  const auto found = streams_.find(socket);
  if (found == streams_.end()) return;
  loop_.cancel(found->second->life);
  loop_.forget(socket);
  streams_.erase(found);
}

}  // namespace sbx::network

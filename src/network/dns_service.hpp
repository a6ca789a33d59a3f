#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/event_loop.hpp"
#include "base/unique_fd.hpp"
#include "network/dns_message.hpp"

namespace sbx::network {

/// Answers DNS on sockets that are bound already, over UDP and TCP. Every question is answered at
/// once and by the given function: nothing is forwarded. A flood is answered late or, over UDP, not
/// at all, so that the supervisor stays awake for others.
class DnsService {
 public:
  using Answerer = std::function<dns::Answer(const dns::Query&)>;
  static constexpr int kAnswersPerWindow = 100;  ///< of 10 ms: 10,000 a second
  /// At a time; the one that has not asked anything for longest gives way.
  static constexpr std::size_t kMostStreams = 32;

  DnsService(EventLoop& loop, Answerer answerer);
  DnsService(const DnsService&) = delete;
  DnsService& operator=(const DnsService&) = delete;
  ~DnsService();

  /// Sockets are non-blocking. Of a UDP socket that answers for many addresses IP_PKTINFO or
  /// IPV6_RECVPKTINFO is switched on: an answer comes from where the question went.
  [[nodiscard]] Status serve_udp(UniqueFd socket);
  [[nodiscard]] Status serve_tcp(UniqueFd listener);

 private:
  struct Stream;
  void datagrams(int socket);
  bool datagram(int socket);
  void accept_streams(int listener);
  void read_stream(int socket);
  void close_stream(int socket);
  void close_quietest();
  [[nodiscard]] dns::Bytes answer_to(std::span<const std::uint8_t> message, bool over_udp);
  bool may_answer();
  void pause();
  void resume();

  EventLoop& loop_;
  Answerer answer_;
  std::vector<UniqueFd> udp_;
  std::vector<UniqueFd> listeners_;
  std::map<int, std::unique_ptr<Stream>> streams_;
  std::uint64_t window_start_ = 0;
  int answered_ = 0;
  EventLoop::TimerId resume_ = EventLoop::kNoTimer;
};

}  // namespace sbx::network

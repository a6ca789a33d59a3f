#include "network/tcp_service.hpp"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "network/denials.hpp"
#include "network/sni.hpp"
#include "network/socket_address.hpp"
#include "policy/network_match.hpp"

namespace sbx::network {
namespace {

using namespace std::chrono_literals;
using policy::NetworkRule;
using policy::PlacedRule;
using policy::Transport;

constexpr int kAcceptsPerTurn = 64;
constexpr int kBacklog = 4096;  ///< more can't wait at a listener
constexpr auto kHelloTime = 10s;
constexpr auto kRest = 50ms;
constexpr std::uint16_t kTlsPort = 443;
/// Bytes for each of the four socket buffers of a connection. No budget of the sandbox counts them,
/// so they are bounded here. The first connections get buffers as large as the kernel makes them;
/// many get less, so that all together stay below 2 GiB (the kernel allocates twice the value).
struct Share {
  std::size_t from;  ///< so many connections
  int bytes;         ///< 0: the kernel's own bounds
};
constexpr std::array<Share, 3> kShares = {{{256, 32 * 1024}, {16, 256 * 1024}, {0, 0}}};
constexpr std::size_t kOtherDescriptors = 128;
constexpr std::size_t kDescriptorsEach = 3;

std::size_t most_connections() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const std::size_t left =
      files.rlim_cur > kOtherDescriptors ? files.rlim_cur - kOtherDescriptors : 0;
  return std::clamp<std::size_t>(left / kDescriptorsEach, 4, TcpService::kMostConnections);
}

int share_of(std::size_t connections) {
  return std::ranges::find_if(kShares,
                              [&](const Share& share) { return connections >= share.from; })
      ->bytes;
}

void bound_buffers(int socket, int bytes) {
  if (bytes == 0) return;
  (void)set_option(socket, SOL_SOCKET, SO_RCVBUF, bytes);
  (void)set_option(socket, SOL_SOCKET, SO_SNDBUF, bytes);
}

}  // namespace

/// One connection from its acceptance to its end: looked at where TLS must name the dialled host,
/// dialled at the same time, then relayed.
class TcpService::Connection {
 public:
  Connection(TcpService& service, UniqueFd near, Destination destination, int buffer)
      : service_(service),
        near_(std::move(near)),
        destination_(std::move(destination)),
        buffer_(buffer) {}

  ~Connection() {
    service_.dialer_.cancel(dial_);
    service_.loop_.cancel(hello_timer_);
    if (near_.valid()) service_.loop_.forget(near_.get());
    count();
  }

  void start() {
    bound_buffers(near_.get(), buffer_);
    const NetworkRule& rule = destination_.rule->rule;
    const bool named =
        rule.kind == NetworkRule::Kind::name || rule.kind == NetworkRule::Kind::wildcard;
    hello_seen_ = !(service_.plan_.match_sni && named && destination_.port == kTlsPort);
    dial_ = service_.dialer_.dial(destination_, [this](std::expected<UniqueFd, Unreached> answer) {
      dial_ = 0;
      answer ? reached(std::move(*answer)) : unreached(answer.error());
    });
    if (!hello_seen_) watch_hello();
  }

  [[nodiscard]] bool sends() const { return !relay_ || relay_->sends(); }

  void count() {
    if (!use_ || !relay_) return;
    const Relay::Bytes bytes = relay_->take_bytes();
    service_.tally_.passed(*use_, bytes.from_far, bytes.from_near);
  }

 private:
  void watch_hello() {
    hello_timer_ = service_.loop_.after(kHelloTime, [this] {
      hello_timer_ = EventLoop::kNoTimer;
      refuse_hello("no TLS handshake within 10 s");
    });
    // Edge-triggered: what was looked at stays in the socket.
    if (!service_.loop_.watch(near_.get(), EPOLLIN | EPOLLRDHUP | EPOLLET,
                              [this](std::uint32_t) { look_at_hello(); }))
      abandon();
  }

  void look_at_hello() {
    const auto room = std::make_unique_for_overwrite<std::uint8_t[]>(kLargestHello);
    const std::span bytes(room.get(), kLargestHello);
    const ssize_t got = ::recv(near_.get(), bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return abandon();  // it sent nothing and closed
    const ClientHello hello = read_client_hello(bytes.first(static_cast<std::size_t>(got)));
    switch (hello.state) {
      case ClientHello::State::more:
        return;
      case ClientHello::State::named:
        if (hello.name == destination_.name) return accept_hello();
        return refuse_hello("TLS name " + hello.name, hello.name);
      case ClientHello::State::no_name:
        return refuse_hello("TLS without a name");
      case ClientHello::State::bad_name:
        return refuse_hello("TLS with a malformed name");
      case ClientHello::State::not_tls:
        return refuse_hello("no TLS");
      case ClientHello::State::too_large:
        return refuse_hello("a TLS handshake over 16 KiB");
    }
  }

  void accept_hello() {
    hello_seen_ = true;
    service_.loop_.cancel(std::exchange(hello_timer_, EventLoop::kNoTimer));
    service_.loop_.forget(near_.get());
    join();
  }

  void refuse_hello(const std::string& what, const std::string& name = {}) {
    Denial denial{
        .kind = DenialKind::network,
        .what = what + " at " + destination_.text(),
        .rule = service_.plan_.match_sni_rule,
        .allow_with =
            name.empty() ? "network.match_sni = false" : "network.allow = [\"" + name + ":443\"]",
        .risk = "servers that share the address of " + destination_.name + " can be reached by it"};
    service_.tally_.deny(std::move(denial));
    abandon();
  }

  void reached(UniqueFd far) {
    far_ = std::move(far);
    bound_buffers(far_.get(), buffer_);
    join();
  }

  void unreached(const Unreached& failure) {
    tell(service_.tally_, service_.plan_, destination_, failure);
    abandon();
  }

  void join() {
    if (!hello_seen_ || !far_.valid()) return;
    use_ = service_.tally_.use(destination_.rule->rule.text());
    service_.tally_.connected(*use_);
    relay_.emplace(service_.loop_, service_.pipes_, std::move(near_), std::move(far_),
                   [this] { service_.remove(*this); });
    if (!relay_->start()) service_.remove(*this);
  }

  /// The program sees a reset, as from a host that refuses.
  void abandon() {
    reset_on_close(near_.get());
    service_.remove(*this);
  }

  TcpService& service_;
  UniqueFd near_;
  UniqueFd far_;
  Destination destination_;
  int buffer_;  ///< bytes; 0: the kernel's own bounds
  bool hello_seen_ = true;
  Dialer::DialId dial_ = 0;
  EventLoop::TimerId hello_timer_ = EventLoop::kNoTimer;
  std::optional<Tally::UseId> use_;
  std::optional<Relay> relay_;
};

TcpService::TcpService(EventLoop& loop, const plan::NetworkPlan& plan, Dialer& dialer, Tally& tally)
    : loop_(loop), plan_(plan), dialer_(dialer), tally_(tally), most_(most_connections()) {}

TcpService::~TcpService() {
  for (const auto& [fd, timer] : resting_) loop_.cancel(timer);
}

Status TcpService::serve(Listener& listener) {
  return loop_.watch(listener.socket.get(), EPOLLIN,
                     [this, &listener](std::uint32_t) { accept_from(listener, kAcceptsPerTurn); });
}

void TcpService::release(Listener& listener) {
  const int fd = listener.socket.get();
  accept_from(listener, kBacklog);
  if (const auto resting = resting_.find(fd); resting != resting_.end()) {
    loop_.cancel(resting->second);
    resting_.erase(resting);
  }
  loop_.forget(fd);
}

void TcpService::accept_from(const Listener& listener, int most) {
  for (int i = 0; i < most; ++i) {
    UniqueFd socket(
        ::accept4(listener.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) {
      if (errno == ECONNABORTED || errno == EINTR) continue;
      if (errno != EAGAIN) rest(listener.socket.get());
      return;
    }
    take(listener, std::move(socket));
  }
}

/// The supervisor is short of descriptors or memory: what waits to be accepted would wake it for
/// ever.
void TcpService::rest(int listener) {
  if (resting_.contains(listener)) return;
  loop_.set_events(listener, 0);
  resting_[listener] = loop_.after(kRest, [this, listener] {
    resting_.erase(listener);
    loop_.set_events(listener, EPOLLIN);
  });
}

void TcpService::take(const Listener& listener, UniqueFd socket) {
  if (connections_.size() >= most_) {
    reset_on_close(socket.get());
    return tally_.deny({.kind = DenialKind::network,
                        .what = "tcp connections over " + std::to_string(most_) + " at a time",
                        .rule = "a limit of sbx"});
  }
  Destination destination{.rule = listener.rule, .port = listener.port};
  if (listener.name != nullptr) {
    destination.name = listener.name->name;
  } else {
    destination.address = local_address(socket.get()).address();
    // What stands for a name is that name's own, on its own ports.
    if (destination.rule == nullptr && !is_synthetic(destination.address))
      destination.rule = policy::rule_for_address(plan_.rules, Transport::tcp, destination.address,
                                                  destination.port);
    if (destination.rule == nullptr) {
      reset_on_close(socket.get());
      return tally_.deny(
          refused_address(plan_, Transport::tcp, destination.address, destination.port));
    }
  }
  auto connection = std::make_unique<Connection>(*this, std::move(socket), std::move(destination),
                                                 share_of(connections_.size()));
  Connection& started = *connection;
  connections_.emplace(&started, std::move(connection));
  started.start();
}

void TcpService::remove(const Connection& connection) {
  connections_.erase(&connection);
}

bool TcpService::sends() const {
  return std::ranges::any_of(connections_, [](const auto& each) { return each.second->sends(); });
}

void TcpService::count() {
  for (const auto& [key, connection] : connections_) connection->count();
}

}  // namespace sbx::network

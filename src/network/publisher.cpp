#include "network/publisher.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <optional>

#include "network/socket_address.hpp"

namespace sbx::network {
namespace {

using policy::Address;
using policy::Family;

constexpr int kPublishedBacklog = 128;
constexpr int kCallersPerTurn = 16;

/// Programs listen on 127.0.0.1, on every address, or on ::1 only.
const std::array<Address, 2>& loopbacks() {
  static const std::array<Address, 2> both = {
      Address::v4(127, 0, 0, 1),
      {.family = Family::v6, .bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}};
  return both;
}

}  // namespace

/// One connection from outside: accepted, led into the sandbox, relayed.
class Publisher::Connection {
 public:
  Connection(Publisher& publisher, UniqueFd outside, const policy::Publication& publication)
      : publisher_(publisher),
        loop_(*publisher.loop_),
        outside_(std::move(outside)),
        publication_(publication) {}

  ~Connection() {
    loop_.forget(inside_.get());
    count();
  }

  void start() { try_next(); }

  /// The kernel may have accepted for a program that then answered and ended.
  [[nodiscard]] bool sends() const { return relay_ ? relay_->sends() : inside_.valid(); }

  void count() {
    if (!use_ || !relay_) return;
    const Relay::Bytes bytes = relay_->take_bytes();
    publisher_.tally_.passed(*use_, bytes.from_far, bytes.from_near);
  }

 private:
  void try_next() {
    loop_.forget(inside_.get());
    inside_.reset();
    while (next_ < loopbacks().size())
      if (connect_to(loopbacks()[next_++])) return;
    give_up();
  }

  /// Nobody listens inside: the client outside sees a reset.
  void give_up() {
    reset_on_close(outside_.get());
    publisher_.remove(*this);
  }

  bool connect_to(const Address& address) {
    auto socket = publisher_.pool_->take(domain_of(address.family), SOCK_STREAM);
    if (!socket) return false;
    inside_ = std::move(*socket);
    const SocketAddress to(address, publication_.port);
    (void)set_option(inside_.get(), SOL_TCP, TCP_NODELAY, 1);
    if (::connect(inside_.get(), to.data(), to.size()) != 0 && errno != EINPROGRESS) return false;
    return loop_.watch(inside_.get(), EPOLLOUT, [this](std::uint32_t) { connected(); }).has_value();
  }

  void connected() {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(inside_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return try_next();
    loop_.forget(inside_.get());
    use_ = publisher_.tally_.use(publication_.text());
    publisher_.tally_.connected(*use_);
    relay_.emplace(loop_, publisher_.pipes_, std::move(inside_), std::move(outside_),
                   [this] { publisher_.remove(*this); });
    if (!relay_->start()) publisher_.remove(*this);
  }

  Publisher& publisher_;
  EventLoop& loop_;
  UniqueFd outside_;
  UniqueFd inside_;
  const policy::Publication& publication_;
  std::size_t next_ = 0;
  std::optional<Tally::UseId> use_;
  std::optional<Relay> relay_;
};

Publisher::~Publisher() {
  detach();
}

Result<std::unique_ptr<Publisher>> Publisher::make(const plan::NetworkPlan& plan) {
  std::unique_ptr<Publisher> publisher(new Publisher);
  for (const auto& [publication, origin] : plan.published) {
    const SocketAddress place(publication.address, publication.host_port);
    UniqueFd listener(::socket(domain_of(publication.address.family),
                               SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    // One run after the other may publish the same port; two at a time may not.
    (void)set_option(listener.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    (void)set_option(listener.get(), SOL_TCP, TCP_NODELAY, 1);
    if (!listener.valid() || ::bind(listener.get(), place.data(), place.size()) != 0 ||
        ::listen(listener.get(), kPublishedBacklog) != 0)
      return fail({.kind = ErrorKind::setup,
                   .code = "cannot-publish",
                   .message = "cannot publish \"" + publication.text() + "\"",
                   .errno_value = errno,
                   .origin = origin,
                   .hint = errno == EADDRINUSE ? "another program has that port: choose another one"
                           : errno == EACCES   ? "ports below 1024 are root's: choose another one"
                                               : ""});
    publisher->ports_.push_back({.listener = std::move(listener), .publication = publication});
  }
  return publisher;
}

Status Publisher::attach(EventLoop& loop) {
  loop_ = &loop;
  for (const Port& port : ports_)
    SBX_TRY(loop.watch(port.listener.get(), EPOLLIN,
                       [this, &port](std::uint32_t) { accept_from(port); }));
  return {};
}

bool Publisher::sends() const {
  return std::ranges::any_of(connections_, [](const auto& each) { return each.second->sends(); });
}

void Publisher::detach() {
  if (loop_ == nullptr) return;
  connections_.clear();
  for (const Port& port : ports_) loop_->forget(port.listener.get());
  ports_.clear();
  loop_ = nullptr;
}

void Publisher::accept_from(const Port& port) {
  for (int i = 0; i < kCallersPerTurn; ++i) {
    UniqueFd socket(::accept4(port.listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) return;
    if (connections_.size() >= kMostConnections) {
      reset_on_close(socket.get());
      continue;
    }
    auto connection = std::make_unique<Connection>(*this, std::move(socket), port.publication);
    Connection& started = *connection;
    connections_.emplace(&started, std::move(connection));
    started.start();
  }
}

void Publisher::remove(const Connection& connection) {
  connections_.erase(&connection);
}

}  // namespace sbx::network

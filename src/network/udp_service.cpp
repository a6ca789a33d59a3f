#include "network/udp_service.hpp"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "base/sys.hpp"
#include "network/denials.hpp"
#include "network/packet_info.hpp"
#include "policy/network_match.hpp"

namespace sbx::network {
namespace {

using policy::Address;
using policy::PlacedRule;
using policy::Transport;

constexpr int kDatagramsPerTurn = 64;
constexpr std::uint64_t kIdleMicroseconds = 60'000'000;
constexpr unsigned kLooksWhileIdle = 6;
/// An answer comes sooner.
constexpr std::uint64_t kAnswerMicroseconds = 5'000'000;
/// Of flows whose destination is still being looked up: datagrams of one, bytes of all.
constexpr std::size_t kMostWaiting = 64;
constexpr std::size_t kMostWaitingBytes = std::size_t{4} << 20;

/// A test may not want to wait for a minute.
std::uint64_t idle_microseconds() {
#ifdef SBX_FAULTS
  if (const char* const text = std::getenv("SBX_TEST_UDP_IDLE_MS"))
    return std::strtoull(text, nullptr, 10) * 1000;
#endif
  return kIdleMicroseconds;
}

/// For one datagram.
class Room {
 public:
  [[nodiscard]] std::span<std::uint8_t> span() const { return {bytes_.get(), kSize}; }

 private:
  static constexpr std::size_t kSize = 65'536;
  std::unique_ptr<std::uint8_t[]> bytes_ = std::make_unique_for_overwrite<std::uint8_t[]>(kSize);
};

std::string key_of(int listener, const SocketAddress& client, const SocketAddress& to) {
  std::string key(reinterpret_cast<const char*>(&listener), sizeof listener);
  key.append(reinterpret_cast<const char*>(client.data()), client.size());
  key.append(reinterpret_cast<const char*>(to.data()), to.size());
  return key;
}

}  // namespace

struct UdpService::Flow {
  std::string key;
  Listener* listener = nullptr;
  SocketAddress client;
  Address to;
  Destination destination;
  Dialer::DialId dial = 0;
  UniqueFd far;
  std::vector<std::vector<std::uint8_t>> waiting;
  std::uint64_t last_used = 0;
  Tally::UseId use = 0;
};

UdpService::UdpService(EventLoop& loop, const plan::NetworkPlan& plan, Dialer& dialer, Tally& tally,
                       const NetworkNamespace& space)
    : loop_(loop),
      plan_(plan),
      dialer_(dialer),
      tally_(tally),
      unreachable_(space),
      idle_(idle_microseconds()) {}

UdpService::~UdpService() {
  loop_.cancel(expiry_);
  while (!flows_.empty()) remove(std::string(flows_.begin()->first));
}

Status UdpService::serve(Listener& listener) {
  return loop_.watch(listener.socket.get(), EPOLLIN,
                     [this, &listener](std::uint32_t) { datagrams(listener); });
}

void UdpService::datagrams(Listener& listener) {
  for (int i = 0; i < kDatagramsPerTurn; ++i)
    if (!datagram(listener)) return;
}

/// False: there is none.
bool UdpService::datagram(Listener& listener) {
  const Room room;
  const std::span<std::uint8_t> bytes = room.span();
  DatagramMessage message(bytes);
  const ssize_t got = ::recvmsg(listener.socket.get(), message.header(), MSG_DONTWAIT);
  if (got < 0) return errno == EINTR;
  // What came before `opened_at` is taken from the raw socket, which sees each datagram too. The
  // kernel gives a datagram one time for both; the bind came before that moment, so both may have
  // it.
  if (message.came_at() < listener.opened_at) return true;
  if (const auto to = message.destination())
    take(listener, message.peer(), *to, bytes.first(static_cast<std::size_t>(got)));
  return true;
}

void UdpService::take(Listener& listener, const SocketAddress& client, const Address& to,
                      std::span<const std::uint8_t> data) {
  Flow* const flow = flow_of(listener, client, SocketAddress(to, listener.port));
  if (flow == nullptr) return;
  // One that led nowhere is tried anew some time, however often it is used.
  if (!flow->far.valid() && flow->dial == 0) return tell_client(*flow);
  flow->last_used = sys::now_microseconds();
  flow->far.valid() ? send(*flow, data) : keep_waiting(*flow, data);
}

void UdpService::send(Flow& flow, std::span<const std::uint8_t> data) {
  const auto try_once = [&] {
    return ::send(flow.far.get(), data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  };
  ssize_t sent = try_once();
  if (sent < 0 && errno == ECONNREFUSED) {  // that is about an earlier one
    refused_there(flow);
    sent = try_once();
  }
  if (sent >= 0) tally_.passed(flow.use, 0, data.size());
}

void UdpService::refused_there(Flow& flow) {
  tally_.fail("udp://" + flow.destination.text(), "refused there");
  tell_client(flow);
}

void UdpService::tell_client(const Flow& flow) {
  unreachable_.tell(flow.client, SocketAddress(flow.to, flow.listener->port));
}

/// What is too much is lost, like any datagram.
void UdpService::keep_waiting(Flow& flow, std::span<const std::uint8_t> data) {
  const bool lost =
      flow.waiting.size() >= kMostWaiting || waiting_bytes_ + data.size() > kMostWaitingBytes;
  if (lost) return;
  waiting_bytes_ += data.size();
  flow.waiting.emplace_back(data.begin(), data.end());
}

std::vector<std::vector<std::uint8_t>> UdpService::take_waiting(Flow& flow) {
  for (const auto& data : flow.waiting) waiting_bytes_ -= data.size();
  return std::exchange(flow.waiting, {});
}

void UdpService::release(Listener& listener) {
  datagrams(listener);
  std::vector<std::string> ending;
  for (const auto& [key, flow] : flows_)
    if (flow->listener == &listener) ending.push_back(key);
  for (const std::string& key : ending) remove(key);
  loop_.forget(listener.socket.get());
}

/// The flow of a datagram, begun with the first one; null when it may not pass.
UdpService::Flow* UdpService::flow_of(Listener& listener, const SocketAddress& client,
                                      const SocketAddress& to) {
  std::string key = key_of(listener.socket.get(), client, to);
  if (const auto known = flows_.find(key); known != flows_.end()) return known->second.get();
  Destination destination{.rule = listener.rule, .port = listener.port};
  if (listener.name != nullptr) {
    destination.name = listener.name->name;
  } else {
    destination.address = to.address();
    if (destination.rule == nullptr && !is_synthetic(destination.address))
      destination.rule = policy::rule_for_address(plan_.rules, Transport::udp, destination.address,
                                                  destination.port);
  }
  if (destination.rule == nullptr) {
    tally_.deny(refused_address(plan_, Transport::udp, destination.address, destination.port));
    unreachable_.tell(client, to);
    return nullptr;
  }
  if (flows_.size() >= kMostFlows && !make_room()) {
    tally_.deny({.kind = DenialKind::network,
                 .what = "udp flows over " + std::to_string(kMostFlows) + " at a time",
                 .rule = "a limit of sbx"});
    unreachable_.tell(client, to);
    return nullptr;
  }
  auto flow = std::make_unique<Flow>();
  flow->key = key;
  flow->listener = &listener;
  flow->client = client;
  flow->to = to.address();
  flow->destination = std::move(destination);
  flow->dial = dialer_.dial(
      flow->destination,
      [this, key](std::expected<UniqueFd, Unreached> answer) { reached(key, std::move(answer)); });
  if (expiry_ == EventLoop::kNoTimer) expire_later();
  return flows_.emplace(std::move(key), std::move(flow)).first->second.get();
}

void UdpService::reached(const std::string& key, std::expected<UniqueFd, Unreached> answer) {
  Flow& flow = *flows_.at(key);
  flow.dial = 0;
  if (!answer) {
    tell(tally_, plan_, flow.destination, answer.error());
    (void)take_waiting(flow);
    return tell_client(flow);  // the flow stays, so that each datagram is not looked up again
  }
  flow.use = tally_.use(flow.destination.rule->rule.text());
  tally_.connected(flow.use);
  flow.far = std::move(*answer);
  for (const auto& data : take_waiting(flow)) send(flow, data);
  if (!loop_.watch(flow.far.get(), EPOLLIN, [this, &flow](std::uint32_t) { answers(flow); }))
    remove(std::string(key));
}

void UdpService::answers(Flow& flow) {
  const Room room;
  const std::span<std::uint8_t> bytes = room.span();
  for (int i = 0; i < kDatagramsPerTurn; ++i) {
    const ssize_t got = ::recv(flow.far.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && errno == ECONNREFUSED) {
      refused_there(flow);
      continue;
    }
    if (got < 0) return;
    flow.last_used = sys::now_microseconds();
    // From where the program sent to: a socket that is connected takes nothing else.
    DatagramMessage message(bytes.first(static_cast<std::size_t>(got)));
    message.address_to(flow.client, flow.to);
    if (::sendmsg(flow.listener->socket.get(), message.header(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
      tally_.passed(flow.use, static_cast<std::uint64_t>(got), 0);
  }
}

void UdpService::remove(const std::string& key) {
  const auto found = flows_.find(key);
  if (found == flows_.end()) return;
  dialer_.cancel(found->second->dial);
  (void)take_waiting(*found->second);
  loop_.forget(found->second->far.get());
  flows_.erase(found);
}

/// A flow that may still have an answer under way stays.
bool UdpService::make_room() {
  const auto oldest =
      std::ranges::min_element(flows_, {}, [](const auto& each) { return each.second->last_used; });
  if (sys::now_microseconds() - oldest->second->last_used < kAnswerMicroseconds) return false;
  remove(std::string(oldest->first));
  return true;
}

void UdpService::expire() {
  expiry_ = EventLoop::kNoTimer;
  const std::uint64_t now = sys::now_microseconds();
  std::vector<std::string> idle;
  for (const auto& [key, flow] : flows_)
    if (flow->dial == 0 && now - flow->last_used >= idle_) idle.push_back(key);
  for (const std::string& key : idle) remove(key);
  if (!flows_.empty()) expire_later();
}

void UdpService::expire_later() {
  expiry_ = loop_.after(std::chrono::microseconds(idle_ / kLooksWhileIdle), [this] { expire(); });
}

}  // namespace sbx::network

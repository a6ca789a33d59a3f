#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "network/names.hpp"
#include "network/pool.hpp"
#include "policy/network_match.hpp"

namespace sbx::network {

/// A socket of the gateway that takes what the program sends to one place, or to one port of every
/// address.
struct Listener {
  UniqueFd socket;
  policy::Transport transport{};
  std::uint16_t port = 0;
  const Name* name = nullptr;                ///< the name whose address it is on
  const policy::PlacedRule* rule = nullptr;  ///< null: each destination decides
  /// Of one that came during the run: it takes datagrams from this moment on, in nanoseconds of
  /// CLOCK_REALTIME.
  std::uint64_t opened_at = 0;
};

/// The sockets on which the gateway listens. The kernel refuses every other destination at once
/// (ECONNREFUSED).
///
/// A rule with more ports than policy::kMostPortsFromStart has no listeners of its own from the
/// start: one is opened for each place that the program is about to reach, and the one that was
/// asked for least recently is closed when there are too many.
class Listeners {
 public:
  /// Opened at a time for wide rules.
  static constexpr std::size_t kMostOpened = 512;
  using OnListener = std::function<void(Listener&)>;

  /// All is borrowed.
  Listeners(SocketPool& pool, const std::vector<policy::PlacedRule>& rules, const Names& names);

  /// How many sockets the rules need from the start, by domain and type: for the pool.
  static std::vector<SocketRequest> requests(std::span<const policy::PlacedRule> rules, bool ipv6);

  /// Listens for what the rules about addresses name. Errors: setup.
  [[nodiscard]] Status listen_for_addresses(bool ipv6);
  /// Listens on a name's address, once. Errors: host (no more sockets), setup.
  [[nodiscard]] Status listen_for(const Name& name);
  /// The listener of a place that a wide rule has, opened if it is not there; null where no wide
  /// rule has the place, and where it has a listener from the start. Errors: host, setup.
  [[nodiscard]] Result<Listener*> open(policy::Transport transport, const policy::Address& address,
                                       std::uint16_t port);
  /// Calls `added` for each listener, present and future, and `closing` before each one is closed.
  void tell(OnListener added, OnListener closing);
  /// True if a socket of the gateway receives what the program sends there. Port 53 has one.
  [[nodiscard]] bool has(policy::Transport transport, const policy::Address& address,
                         std::uint16_t port) const;
  /// Whether a connection or datagram waits to be taken.
  [[nodiscard]] bool anything_waits() const;
  [[nodiscard]] std::list<Listener>& all() { return listeners_; }

 private:
  struct Endpoint {
    policy::Transport transport;
    policy::Family family;
    bool every_address;
    policy::Address address;
    std::uint16_t port;
  };
  using Listed = std::list<Listener>::iterator;
  static std::string key_of(const Endpoint& place);
  Result<UniqueFd> listening_socket(const Endpoint& place);
  Status add(const Endpoint& place, const Name* name, const policy::PlacedRule* rule);
  Status add_ports(const policy::PlacedRule& placed, Endpoint place, const Name* name,
                   const policy::PlacedRule* decided);
  [[nodiscard]] const policy::PlacedRule* wide_rule(const Endpoint& place, const Name* name) const;
  void close_oldest();

  SocketPool& pool_;
  const std::vector<policy::PlacedRule>& rules_;
  const Names& names_;
  bool any_wide_;
  std::list<Listener> listeners_;  ///< their places in memory stay
  std::unordered_set<std::string> taken_;
  std::unordered_set<const Name*> listened_;
  /// For wide rules, the least recently asked for first.
  struct Opened {
    std::string key;
    Listed listener;
  };
  std::list<Opened> opened_;
  std::unordered_map<std::string, std::list<Opened>::iterator> opened_at_;
  OnListener added_;
  OnListener closing_;
};

}  // namespace sbx::network

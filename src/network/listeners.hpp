#pragma once

#include <deque>
#include <functional>
#include <span>
#include <unordered_set>

#include "network/names.hpp"
#include "network/pool.hpp"

namespace sbx::network {

/// A socket of the gateway that takes what the program sends to one place, or to one port of every
/// address.
struct Listener {
  UniqueFd socket;
  policy::Transport transport{};
  std::uint16_t port = 0;
  const Name* name = nullptr;                ///< the name whose address it is on
  const policy::PlacedRule* rule = nullptr;  ///< null: each destination decides
};

/// Everything that the gateway listens on. What it does not listen on the kernel refuses at once
/// (ECONNREFUSED).
class Listeners {
 public:
  /// Ports of one rule: more would cost each start milliseconds.
  static constexpr std::size_t kMostPorts = 256;
  using Added = std::function<void(Listener&)>;

  Listeners(SocketPool& pool, const std::vector<policy::PlacedRule>& rules)
      : pool_(pool), rules_(rules) {}

  /// How many sockets the rules need from the start, by domain and type: for the pool.
  static std::vector<SocketWish> wishes(std::span<const policy::PlacedRule> rules, bool ipv6);

  /// Listens for what the rules about addresses name. Errors: policy (a rule with too many ports),
  /// setup.
  [[nodiscard]] Status listen_for_addresses(bool ipv6);
  /// Listens on a name's address, once. Errors: host (no more sockets), setup.
  [[nodiscard]] Status listen_for(const Name& name);
  /// Told of each listener there is and of each that comes.
  void on_added(Added added);
  /// Whether what the program sends there is somebody's. Port 53 is.
  [[nodiscard]] bool has(policy::Transport transport, const policy::Address& address,
                         std::uint16_t port) const;
  [[nodiscard]] std::deque<Listener>& all() { return listeners_; }

 private:
  struct Place {
    policy::Transport transport;
    policy::Family family;
    bool every_address;
    policy::Address address;
    std::uint16_t port;
  };
  static std::string key_of(const Place& place);
  Status add(const Place& place, const Name* name, const policy::PlacedRule* rule);
  Status add_ports(const policy::PlacedRule& placed, Place place, const Name* name,
                   const policy::PlacedRule* decided);

  SocketPool& pool_;
  const std::vector<policy::PlacedRule>& rules_;
  std::deque<Listener> listeners_;  ///< their places in memory stay
  std::unordered_set<std::string> taken_;
  std::unordered_set<const Name*> names_;
  Added added_;
};

}  // namespace sbx::network

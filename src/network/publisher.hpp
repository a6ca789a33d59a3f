#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/event_loop.hpp"
#include "network/pool.hpp"
#include "network/relay.hpp"
#include "network/tally.hpp"
#include "plan/plan.hpp"

namespace sbx::network {

/// network.publish: ports of the host's loopback that lead to ports of the sandbox's.
class Publisher {
 public:
  static constexpr std::size_t kMostConnections = 512;

  /// The plan is borrowed. Listens on the host, where it is called. Errors: setup (the port is
  /// taken: with the rule's place).
  [[nodiscard]] static Result<std::unique_ptr<Publisher>> make(const plan::NetworkPlan& plan);
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;
  ~Publisher();

  /// The sandbox's namespace, once there is one.
  void lead_into(NetworkNamespace space) { pool_.emplace(std::move(space)); }
  [[nodiscard]] Status attach(EventLoop& loop);
  /// An answer of the program is still on its way to a client: the loop passes it on.
  [[nodiscard]] bool sends() const;
  void detach();
  void put_into(Outcome& outcome) { tally_.put_into(outcome); }

 private:
  class Connection;
  struct Port {
    UniqueFd listener;
    policy::Publication publication;
  };
  Publisher() = default;
  void accept_from(const Port& port);
  void remove(const Connection& connection);

  std::vector<Port> ports_;
  std::optional<SocketPool> pool_;
  EventLoop* loop_ = nullptr;
  Tally tally_;
  Pipes pipes_;
  std::unordered_map<const Connection*, std::unique_ptr<Connection>> connections_;
};

}  // namespace sbx::network

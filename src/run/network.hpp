#pragma once

#include <memory>

#include <sbx/outcome.hpp>

#include "base/result.hpp"
#include "network/gateway.hpp"
#include "network/offline.hpp"
#include "network/publisher.hpp"
#include "plan/plan.hpp"
#include "spawn/network.hpp"
#include "supervise/settings.hpp"

namespace sbx::run {

/// The network of one run, from before the sandbox exists to its record. It connects spawn
/// (namespaces), network (sockets) and supervise (event loop).
class RunNetwork {
 public:
  /// Borrows the plan. `counts_sockets`: measure the memory of its sockets.
  RunNetwork(const plan::NetworkPlan& plan, bool counts_sockets)
      : plan_(plan), counts_sockets_(counts_sockets && plan.own_namespace) {}
  RunNetwork(const RunNetwork&) = delete;
  RunNetwork& operator=(const RunNetwork&) = delete;

  /// Does everything that can fail before anything is created. Errors: setup.
  [[nodiscard]] Status prepare();
  /// What spawn does for the network. Valid as long as this object.
  [[nodiscard]] const spawn::NetworkRequest& request() const { return request_; }
  /// Adds the network to what lives in the supervisor's loop.
  void live_in(supervise::Settings& settings, Events* events);
  /// Borrowed: valid as long as this is.
  [[nodiscard]] supervise::SocketDiagnosis sockets() const;
  void put_into(Outcome& outcome);

  /// For what lives in another loop than a supervisor's (a session): the same three in turn.
  [[nodiscard]] Status attach(EventLoop& loop, const network::HearsRefusals& hears);
  void detach();
  /// The program is about to reach this place (connect_note.hpp).
  void expect(const policy::Address& address, std::uint16_t port);

 private:
  Status take(spawn::NetworkEnds ends);
  Status attach(EventLoop& loop);
  [[nodiscard]] bool sends() const;

  const plan::NetworkPlan& plan_;
  const bool counts_sockets_;
  spawn::NetworkRequest request_;
  Events* events_ = nullptr;
  UniqueFd diagnosis_;
  std::unique_ptr<network::Publisher> publisher_;
  std::unique_ptr<network::Gateway> gateway_;
  std::unique_ptr<network::Offline> offline_;
};

}  // namespace sbx::run

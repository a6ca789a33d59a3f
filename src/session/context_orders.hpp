#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/unique_fd.hpp"
#include "protocol/requests.hpp"
#include "session/worker_protocol.hpp"

namespace sbx::session {

/// What the session sends the worker of a context, over their link.
class ContextOrders {
 public:
  struct Hooks {
    std::function<void(protocol::EvalRequest request, std::vector<UniqueFd> fds)> cell;
    std::function<void(protocol::InspectRequest request, std::vector<UniqueFd> fds)> question;
    std::function<void()> garbled;  ///< a request of another kind, which counts as answered
    std::function<void()> interrupt;
    std::function<void(Budget budget)> spend;
    std::function<void(int signal)> signal;
    std::function<void(EndCause cause)> cancel;
    std::function<void()> end;
    std::function<void()> claim;   ///< a spare becomes a context
    std::function<void()> closed;  ///< nothing more comes
  };
  /// `link` is borrowed.
  ContextOrders(int link, Hooks hooks) : link_(link), hooks_(std::move(hooks)) {}

  /// The next one, which is there.
  void take();
  /// The cells and questions among those that are left.
  void take_cells();

 private:
  void take_request();

  int link_;
  Hooks hooks_;
};

}  // namespace sbx::session

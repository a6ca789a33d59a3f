#pragma once

#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "protocol/requests.hpp"
#include "session/contexts.hpp"

namespace sbx::session {

/// Those who connect to a session, until they have said what they want. Whoever keeps silent, or
/// opens more connections than there are descriptors, keeps nobody else out.
class Connections {
 public:
  struct Hooks {
    std::function<void()> used;  ///< somebody says something
    std::function<void(protocol::Request request, Asker client)> request;
  };
  Connections(EventLoop& loop, Hooks hooks) : loop_(loop), hooks_(std::move(hooks)) {}

  /// `socket` listens and never waits. Errors: host, internal.
  Status begin(UniqueFd socket);
  /// Nobody gets a connection any more. In a fork too: the loop stays as it is.
  void close() { socket_.reset(); }
  /// Reads a request of a client that is connected. False where that is not possible.
  [[nodiscard]] bool await(UniqueFd client);
  /// The same of one who will ask for the rest of a log: the session does not end before.
  [[nodiscard]] bool await_follower(UniqueFd client);
  [[nodiscard]] bool has_any() const { return !silent_.empty(); }
  [[nodiscard]] bool has_followers() const { return !following_.empty(); }

 private:
  void accept_all();
  void drop_oldest();
  void turn_one_away();
  void read(int fd);

  EventLoop& loop_;
  Hooks hooks_;
  UniqueFd socket_;
  UniqueFd spare_;  ///< given up to accept a connection when there are no descriptors left
  std::vector<UniqueFd> silent_;  ///< the oldest first
  std::set<int> following_;
};

}  // namespace sbx::session

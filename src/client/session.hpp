#pragma once

#include <unistd.h>

#include <array>
#include <list>
#include <memory>
#include <span>
#include <string>

#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "client/cell.hpp"
#include "client/listing.hpp"
#include "client/task.hpp"
#include "host/host.hpp"

namespace sbx::client {

/// A session as a front end uses it: begins what runs there and holds it until it has ended, in the
/// front end's event loop.
class Session {
 public:
  /// The streams of this process.
  static constexpr std::array kOwnStreams{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};

  Session(EventLoop& loop, host::Host host, std::string name)
      : loop_(loop), host_(std::move(host)), name_(std::move(name)) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // What they return is there until the last hook has returned. A request without an id gets one.
  // Errors: usage (the session is not there), host, internal; then no hook is called.
  [[nodiscard]] Result<Cell*> eval(protocol::EvalRequest request, Cell::Hooks hooks);
  [[nodiscard]] Result<Call*> call(protocol::CallRequest request, Call::Hooks hooks,
                                   std::span<const int> streams = kOwnStreams);
  [[nodiscard]] Result<Listing*> list(const std::string& path, Listing::Hooks hooks);

  /// Runs the loop until nothing of that runs any more.
  [[nodiscard]] Status finish();
  /// Ends the session. Its process has ended when this returns.
  [[nodiscard]] Status stop();

 private:
  struct Running {
    std::shared_ptr<void> object;
    bool has_ended = false;
  };
  [[nodiscard]] Result<session::Client> connect() const;
  template <class Object, class... Streams>
  [[nodiscard]] Result<Object*> begin(std::shared_ptr<Object> object, typename Object::Hooks hooks,
                                      Streams... streams);
  void forget_ended();

  EventLoop& loop_;
  host::Host host_;
  std::string name_;
  std::list<Running> running_;
};

}  // namespace sbx::client

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace sbx::session {

/// The two pipes between the worker of a context and its driver. Everything that comes from the
/// driver may be forged: sizes, depth, number of values and time are limited, and anything that is
/// no message breaks the channel for good.
class DriverChannel {
 public:
  /// `owner`: the uid on the host of the sandbox's processes, which may reopen their ends; -1: the
  /// caller's. Errors: host.
  [[nodiscard]] static Result<DriverChannel> make(uid_t owner);

  /// The driver's ends: descriptors 3 and 4 of its program.
  [[nodiscard]] std::vector<int> driver_ends() const {
    return {driver_requests_.get(), driver_replies_.get()};
  }
  void close_driver_ends();

  struct Hooks {
    /// Bytes are there and not yet read. A driver may wait for the reading, so what it does next
    /// can't have begun.
    std::function<void()> arrived;
    std::function<void(const Json& message)> message;
    /// Once: nothing more will come. `why` is empty at end of file.
    std::function<void(const std::string& why)> broken;
  };
  [[nodiscard]] Status attach(EventLoop& loop, Hooks hooks);
  void detach();
  /// Takes what a driver that has ended has left behind, and detaches.
  void take_rest();
  /// What the driver does not read yet is kept.
  void send_text(std::string_view message);
  /// Nothing is kept: the pipe took all.
  [[nodiscard]] bool sent_all() const { return unsent_.empty(); }

 private:
  DriverChannel() = default;
  void read_and_rest();
  void read();
  bool read_once();
  void write();
  bool take_messages();
  void break_off(const std::string& why);

  UniqueFd requests_;
  UniqueFd replies_;
  UniqueFd driver_requests_;
  UniqueFd driver_replies_;
  EventLoop* loop_ = nullptr;
  Hooks hooks_;
  std::string unread_;
  std::string unsent_;
  std::size_t sent_ = 0;
  /// Microseconds of CPU time spent on messages, less the driver's share of the time since.
  std::uint64_t owed_ = 0;
  std::uint64_t read_at_ = 0;
  EventLoop::TimerId resting_ = EventLoop::kNoTimer;
};

}  // namespace sbx::session

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "session/client.hpp"

namespace sbx::client {

/// What a background call gets to read.
struct Input {
  std::string text;
  int source = -1;   ///< a descriptor that is read to its end, after `text`; -1: none. Borrowed
  bool end = false;  ///< nothing comes after it
};

/// Writes to the standard input of a background call that was left open, as fast as the call takes
/// it. It holds a block at a time, whatever the source has.
class Sending {
 public:
  /// The bytes that the call has taken over, though its program need not have read them yet.
  /// Errors: those of the session, host (the source can't be read).
  using Ended = Result<std::uint64_t>;
  struct Hooks {
    std::function<void(Ended ended)> ended;
  };

  Sending(session::Client connection, std::uint64_t call, Input input)
      : connection_(std::move(connection)), call_(call), input_(std::move(input)) {}
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;
  ~Sending() { leave(); }

  /// Errors: host; then no hook is called.
  [[nodiscard]] Status attach(EventLoop& loop, Hooks hooks);
  /// For who does nothing else: waits for the end.
  [[nodiscard]] Ended run();

 private:
  void hear();
  void begin(protocol::Packet packet);
  void write();
  void read();
  void finish();
  void stop_writing();
  void end(Ended ended);
  void leave();

  session::Client connection_;
  std::uint64_t call_;
  Input input_;
  Hooks hooks_;
  EventLoop* loop_ = nullptr;
  UniqueFd to_;         ///< invalid: its turn has not come
  std::size_t at_ = 0;  ///< in input_.text
  std::uint64_t taken_ = 0;
  bool is_written_ = false;
};

}  // namespace sbx::client

#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace sbx::mcp {

/// The client's end of standard input and output: a line for each message. Nothing else of this
/// process, or of what it starts, can read or write there.
class Wire {
 public:
  static constexpr std::size_t kLongestLine = std::size_t{64} << 20;
  struct Hooks {
    std::function<void(const std::string& line)> line;
    std::function<void()> too_long;  ///< a line of more bytes was skipped
    std::function<void()> ended;     ///< the client writes no more; it may still read
    std::function<void()> gone;      ///< it does not read any more: nothing is called after that
  };

  /// Moves both to descriptors of its own; 0 is then /dev/null and 1 is standard error. Errors:
  /// host, internal.
  [[nodiscard]] static Result<Wire> take();
  Wire(UniqueFd in, UniqueFd out) : in_(std::move(in)), out_(std::move(out)) {}
  Wire(Wire&&) noexcept = default;
  Wire& operator=(Wire&&) = delete;
  ~Wire() = default;

  [[nodiscard]] Status attach(EventLoop& loop, Hooks hooks);
  /// Queues one line, without its line feed.
  void send(const std::string& text);
  /// Writes what is queued, as long as the client reads it.
  void finish();

 private:
  void read();
  void take_lines();
  void write();
  [[nodiscard]] bool write_some();
  void end_input();
  void end();

  UniqueFd in_;
  UniqueFd out_;
  Hooks hooks_;
  EventLoop* loop_ = nullptr;
  std::string unread_;    ///< a line whose end has not come
  std::size_t seen_ = 0;  ///< bytes of it without a line feed
  bool skips_ = false;    ///< it is too long
  std::string unwritten_;
  std::size_t written_ = 0;  ///< of that
  bool gone_ = false;
};

}  // namespace sbx::mcp

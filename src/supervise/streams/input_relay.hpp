#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/event_loop.hpp"
#include "base/unique_fd.hpp"
#include "supervise/streams/block.hpp"

namespace sbx::supervise {

/// Passes standard input to the sandbox as fast as the sandbox reads it. A run never waits for its
/// end.
class InputRelay {
 public:
  struct Options {
    int source = -1;           ///< borrowed; its flags don't change
    bool to_terminal = false;  ///< the destination is a pty: end of file is a character
    /// The source is a socket that nobody else reads: whoever writes to it learns when the sandbox
    /// has closed its end. Without a gauge.
    bool is_sent = false;
    UniqueFd gauge;  ///< a read end of the pipe: what is unread stays the caller's
    /// Called when the source has given something, before that is passed to a terminal.
    std::function<void()> before_typed;
  };

  InputRelay(EventLoop& loop, UniqueFd destination, Options options);
  InputRelay(const InputRelay&) = delete;
  InputRelay& operator=(const InputRelay&) = delete;
  ~InputRelay();

  [[nodiscard]] Status start();

 private:
  enum class Step : std::uint8_t { again, wait_source, wait_destination, end };

  void pump();
  Step step();
  Step step_lend();
  Step stop_lending();
  Step step_splice();
  Step step_copy();
  Step flush();
  void wait_for(Step what);
  [[nodiscard]] std::uint32_t idle_events() const;
  void finish();
  void give_back();
  ssize_t copy_ahead();
  std::size_t settle(std::size_t left);
  [[nodiscard]] int untaken() const;

  EventLoop& loop_;
  UniqueFd destination_;
  Options options_;
  bool may_splice_ = false;
  bool is_socket_ = false;
  bool at_end_ = false;
  bool lends_ = false;     ///< a pipe or a stream: what the program reads leaves it afterwards
  int capacity_ = 0;       ///< of the program's pipe, before it became small
  std::size_t lent_ = 0;   ///< bytes that the program has or may take, and the source has as well
  std::size_t taken_ = 0;  ///< bytes that the program took
  UniqueFd null_;
  Block block_;
  std::size_t block_at_ = 0;
  std::size_t block_end_ = 0;
};

}  // namespace sbx::supervise

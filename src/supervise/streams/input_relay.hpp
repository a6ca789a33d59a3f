#pragma once

#include <cstddef>
#include <cstdint>

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
    UniqueFd gauge;            ///< a read end of the pipe: at the end, unread input is given back
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
  Step step_splice();
  Step step_copy();
  Step flush();
  void wait_for(Step what);
  void finish();
  void give_back();

  EventLoop& loop_;
  UniqueFd destination_;
  Options options_;
  bool may_splice_ = false;
  bool is_socket_ = false;
  bool at_end_ = false;
  Block block_;
  std::size_t block_at_ = 0;
  std::size_t block_end_ = 0;
};

}  // namespace sbx::supervise

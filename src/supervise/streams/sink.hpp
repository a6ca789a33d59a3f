#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/unique_fd.hpp"

namespace sbx::supervise {

enum class SinkState : std::uint8_t {
  ready,
  full,    ///< wait for EPOLLOUT on fd()
  gone,    ///< nobody will ever read it (EPIPE, hang-up)
  failed,  ///< the bytes are lost (ENOSPC, EFBIG …); errno in Taken
};

struct Taken {
  std::size_t count = 0;
  SinkState state = SinkState::ready;
  int error = 0;
};

/// A descriptor of the caller that output goes to. Never blocks on it where the kernel lets us
/// know, and never changes its O_NONBLOCK: that flag is shared with the caller's shell.
class Sink {
 public:
  /// The descriptor is borrowed. -1, or one that can't be written to, takes everything and drops
  /// it: so that a command doesn't fail only because its caller had closed fd 1 or 2.
  explicit Sink(int fd);

  [[nodiscard]] int fd() const { return own_.valid() ? own_.get() : fd_; }
  [[nodiscard]] bool is_terminal() const { return kind_ == Kind::terminal; }
  [[nodiscard]] bool discards() const { return kind_ == Kind::nothing; }
  [[nodiscard]] bool takes_splice() const { return kind_ == Kind::pipe && may_splice_; }

  /// Moves from a pipe. `full` also when the source is what is empty and the sink has no room;
  /// count 0 and `ready`: the source is empty (or at its end: at_end).
  struct Spliced : Taken {
    bool at_end = false;
  };
  [[nodiscard]] Spliced splice_from(int source, std::size_t limit);
  [[nodiscard]] Taken write(std::string_view bytes);

 private:
  enum class Kind : std::uint8_t { nothing, pipe, socket, file, terminal, device };
  [[nodiscard]] bool writable() const;
  [[nodiscard]] static Taken failure(int error);

  int fd_;
  UniqueFd own_;  ///< a terminal opened once more, for an O_NONBLOCK of our own
  Kind kind_ = Kind::nothing;
  bool may_splice_ = true;
};

}  // namespace sbx::supervise

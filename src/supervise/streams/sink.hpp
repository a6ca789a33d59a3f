#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/unique_fd.hpp"

namespace sbx::supervise {

enum class SinkState : std::uint8_t {
  ready,
  full,    ///< wait for EPOLLOUT on fd()
  gone,    ///< nobody will read it (EPIPE, hang-up)
  failed,  ///< the bytes are lost (ENOSPC, EFBIG …); errno in Taken
};

struct Taken {
  std::size_t count = 0;
  SinkState state = SinkState::ready;
  int error = 0;
};

/// A descriptor of the caller that receives output. Never blocks if the kernel can tell, and never
/// changes O_NONBLOCK: the caller's shell shares that flag.
class Sink {
 public:
  /// Borrows the descriptor. -1 accepts and drops everything. One that isn't writable fails at the
  /// first byte: a caller who had closed fd 1 learns that output is lost, and a command without
  /// output doesn't fail for it.
  explicit Sink(int fd);

  [[nodiscard]] int fd() const { return own_.valid() ? own_.get() : fd_; }
  [[nodiscard]] bool is_terminal() const { return kind_ == Kind::terminal; }
  [[nodiscard]] bool discards() const { return kind_ == Kind::nothing; }
  [[nodiscard]] bool takes_splice() const { return kind_ == Kind::pipe && may_splice_; }

  /// Moves data from a pipe. Also `full` if the source is empty and the sink has no room; count 0
  /// and `ready`: the source is empty (or at its end: at_end).
  struct Spliced : Taken {
    bool at_end = false;
  };
  [[nodiscard]] Spliced splice_from(int source, std::size_t limit);
  [[nodiscard]] Taken write(std::string_view bytes);

 private:
  enum class Kind : std::uint8_t { nothing, closed, pipe, socket, file, terminal, device };
  [[nodiscard]] bool writable() const;
  [[nodiscard]] static Taken failure(int error);

  int fd_;
  UniqueFd own_;  ///< a terminal opened again, for our own O_NONBLOCK
  Kind kind_ = Kind::nothing;
  bool may_splice_ = true;
};

}  // namespace sbx::supervise

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace sbx::cli {

/// One stream of a cell, read by its client in step with the cell's events, each of which names how
/// much of the stream comes before it. The session sends an event before it passes on what was
/// written later: whoever has read the stream looks for events before delivering.
class CellStream {
 public:
  using Deliver = std::function<void(std::string_view bytes)>;

  /// Returns the writing end, for the session. Errors: internal.
  [[nodiscard]] Result<UniqueFd> open(Deliver deliver);
  [[nodiscard]] int fd() const { return from_.get(); }

  /// Reads what is there, at most a block. False at the end.
  bool read();
  /// True if something is read and not delivered.
  [[nodiscard]] bool has_some() const { return !read_.empty(); }
  /// Delivers what was written before an event, to the byte `position`; waits for it a moment where
  /// it is on its way.
  void deliver_until(std::uint64_t position);
  /// Delivers what has been read.
  void deliver();

 private:
  void deliver(std::size_t count);

  UniqueFd from_;
  Deliver deliver_;
  std::string read_;
  std::uint64_t delivered_ = 0;
};

}  // namespace sbx::cli

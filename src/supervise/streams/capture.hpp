#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sbx/outcome.hpp>
#include <sbx/units.hpp>

#include "supervise/streams/block.hpp"

namespace sbx::supervise {

/// Keeps the first and the last half of `cap` of a stream, however long it is.
class Capture {
 public:
  explicit Capture(Bytes cap);
  /// Keeps `head` bytes of the beginning and `tail` bytes of the end.
  Capture(Bytes head, Bytes tail);

  /// A buffer for reading the next bytes in place; never empty. Then commit what was read.
  [[nodiscard]] std::span<char> space();
  void commit(std::size_t count);
  void append(std::string_view bytes);

  /// Head and tail without a gap, and the counts. The caller decides how to show the gap and where
  /// to cut text.
  [[nodiscard]] Stream take();

 private:
  std::size_t head_cap_;
  std::size_t ring_cap_;
  std::string head_;
  std::vector<char> ring_;
  std::size_t ring_at_ = 0;  ///< position of the oldest byte once the ring is full
  std::uint64_t total_ = 0;
  Block block_;
};

}  // namespace sbx::supervise

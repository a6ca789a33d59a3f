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

/// Keeps the first and the last half of `cap` of a stream, whatever its length.
class Capture {
 public:
  explicit Capture(Bytes cap);
  /// Keeps so much of the beginning and so much of the end.
  Capture(Bytes head, Bytes tail);

  /// Where the next bytes may be read to directly; never empty. Then commit what was read.
  [[nodiscard]] std::span<char> space();
  void commit(std::size_t count);
  void append(std::string_view bytes);

  /// Head and tail without a gap, and the counts. What stands in the gap, and where a text may be
  /// cut, is the business of whoever shows it.
  [[nodiscard]] Stream take();

 private:
  std::size_t head_cap_;
  std::size_t ring_cap_;
  std::string head_;
  std::vector<char> ring_;
  std::size_t ring_at_ = 0;  ///< where the oldest byte is once the ring is full
  std::uint64_t total_ = 0;
  Block block_;
};

}  // namespace sbx::supervise

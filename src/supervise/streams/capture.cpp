#include "supervise/streams/capture.hpp"

#include <algorithm>
#include <cstring>

namespace sbx::supervise {
namespace {

constexpr std::size_t kWorthwhile = 16384;  // below it, reading in place means many small reads

}  // namespace

Capture::Capture(Bytes cap) : Capture(Bytes{cap.count - cap.count / 2}, Bytes{cap.count / 2}) {}

Capture::Capture(Bytes head, Bytes tail)
    : head_cap_(static_cast<std::size_t>(head.count)),
      ring_cap_(static_cast<std::size_t>(tail.count)) {}

std::span<char> Capture::space() {
  const bool into_ring = head_.size() == head_cap_ && ring_.size() == ring_cap_;
  const std::size_t room = into_ring ? ring_cap_ - ring_at_ : 0;
  if (room >= kWorthwhile) return {ring_.data() + ring_at_, std::min(room, Block::kSize)};
  return {block_.data(), Block::kSize};
}

void Capture::commit(std::size_t count) {
  const std::span<char> where = space();
  if (where.data() == block_.data()) return append({block_.data(), count});
  total_ += count;
  ring_at_ = (ring_at_ + count) % ring_cap_;
}

void Capture::append(std::string_view bytes) {
  total_ += bytes.size();
  const std::size_t to_head = std::min(bytes.size(), head_cap_ - head_.size());
  head_.append(bytes.substr(0, to_head));
  bytes.remove_prefix(to_head);
  if (ring_.size() < ring_cap_) {
    const std::size_t grow = std::min(bytes.size(), ring_cap_ - ring_.size());
    ring_.insert(ring_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(grow));
    bytes.remove_prefix(grow);
  }
  if (ring_cap_ == 0) return;
  if (bytes.size() > ring_cap_) bytes.remove_prefix(bytes.size() - ring_cap_);
  while (!bytes.empty()) {
    const std::size_t step = std::min(bytes.size(), ring_cap_ - ring_at_);
    std::memcpy(ring_.data() + ring_at_, bytes.data(), step);
    ring_at_ = (ring_at_ + step) % ring_cap_;
    bytes.remove_prefix(step);
  }
}

Stream Capture::take() {
  Stream stream{.bytes = total_,
                .truncated = total_ > head_cap_ + ring_cap_,
                .head_bytes = head_.size(),
                .tail_bytes = ring_.size()};
  const auto oldest = static_cast<std::ptrdiff_t>(ring_at_);
  std::string text = std::move(head_);
  text.append(ring_.begin() + oldest, ring_.end());
  text.append(ring_.begin(), ring_.begin() + oldest);
  stream.text = std::move(text);
  return stream;
}

}  // namespace sbx::supervise

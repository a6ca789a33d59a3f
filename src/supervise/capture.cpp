#include "supervise/capture.hpp"

#include <algorithm>
#include <cstring>

namespace sbx::supervise {
namespace {

constexpr std::size_t kBlock = 65536;       // a pipe holds no more
constexpr std::size_t kWorthwhile = 16384;  // below it, reading into place is many small reads

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

std::size_t character_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte >= 0xf0) return 4;
  if (byte >= 0xe0) return 3;
  return byte >= 0xc0 ? 2 : 1;
}

/// Bytes at the end that begin a character without finishing it.
std::size_t unfinished_at_end(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const char byte = text[text.size() - back];
    if (!continues(byte)) return character_length(byte) > back ? back : 0;
  }
  return 0;
}

/// Bytes at the start that end a character begun before.
std::size_t left_over_at_start(std::string_view text) {
  std::size_t count = 0;
  while (count < std::min<std::size_t>(3, text.size()) && continues(text[count])) ++count;
  return count;
}

}  // namespace

Capture::Capture(Bytes cap)
    : head_cap_(static_cast<std::size_t>(cap.count - cap.count / 2)),
      ring_cap_(static_cast<std::size_t>(cap.count / 2)) {}

std::span<char> Capture::space() {
  const bool into_ring = head_.size() == head_cap_ && ring_.size() == ring_cap_;
  const std::size_t room = into_ring ? ring_cap_ - ring_at_ : 0;
  if (room >= kWorthwhile) return {ring_.data() + ring_at_, std::min(room, kBlock)};
  block_.resize(kBlock);
  return block_;
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
  Stream stream{.bytes = total_, .truncated = total_ > head_cap_ + ring_cap_};
  std::rotate(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(ring_at_), ring_.end());
  std::string_view head(head_);
  std::string_view tail(ring_.data(), ring_.size());
  if (stream.truncated) {
    head.remove_suffix(unfinished_at_end(head));
    tail.remove_prefix(left_over_at_start(tail));
  }
  stream.head_bytes = head.size();
  stream.tail_bytes = tail.size();
  std::string text(head);
  if (stream.truncated) {
    if (!text.empty() && text.back() != '\n') text += '\n';
    text += "… " + std::to_string(total_ - head.size() - tail.size()) + " bytes left out …\n";
  }
  text += tail;
  stream.text = std::move(text);
  return stream;
}

}  // namespace sbx::supervise

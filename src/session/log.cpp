#include "session/log.hpp"

#include <algorithm>

namespace sbx::session {

void Log::add(std::string_view bytes) {
  written_ += bytes.size();
  const std::size_t room = std::min<std::size_t>(half_ - head_.size(), bytes.size());
  head_ += bytes.substr(0, room);
  bytes.remove_prefix(room);
  if (bytes.size() > half_) bytes.remove_prefix(bytes.size() - half_);
  tail_ += bytes;
  // Cut now and then: each cut moves what stays.
  if (tail_.size() > 2 * half_) tail_.erase(0, tail_.size() - half_);
}

void Log::close() {
  if (tail_.size() > half_) tail_.erase(0, tail_.size() - half_);
  head_.shrink_to_fit();
  tail_.shrink_to_fit();
}

std::string Log::since(std::uint64_t offset) const {
  if (offset >= written_) return {};
  const std::string_view tail =
      std::string_view(tail_).substr(tail_.size() - std::min<std::size_t>(tail_.size(), half_));
  const std::uint64_t tail_begin = written_ - tail.size();
  std::string text;
  if (offset < head_.size()) text = head_.substr(offset);
  const std::uint64_t reached = std::max<std::uint64_t>(offset, head_.size());
  if (reached >= written_) return text;
  if (reached < tail_begin)
    text += "\n... " + std::to_string(tail_begin - reached) + " bytes left out ...\n";
  text += tail.substr(reached > tail_begin ? reached - tail_begin : 0);
  return text;
}

}  // namespace sbx::session

#include "record/captured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text.hpp"

namespace sbx::record {
namespace {

constexpr std::size_t kLongestSequence = 4;

/// Removes a character at the end that was cut.
std::string_view without_partial_end(std::string_view head) {
  for (std::size_t back = 1; back <= std::min(kLongestSequence - 1, head.size()); ++back) {
    const auto byte = static_cast<unsigned char>(head[head.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;
    if (byte >= 0xc0 && sequence_length(head.substr(head.size() - back)) == 0)
      head.remove_suffix(back);
    break;
  }
  return head;
}

/// Removes the rest of a character whose beginning was cut.
std::string_view without_partial_start(std::string_view tail) {
  for (std::size_t i = 1; i < kLongestSequence && !tail.empty(); ++i) {
    if ((static_cast<unsigned char>(tail.front()) & 0xc0) != 0x80) break;
    tail.remove_prefix(1);
  }
  return tail;
}

Captured as_base64(const Stream& stream) {
  return {.text = base64(*stream.text),
          .is_base64 = true,
          .head_bytes = stream.head_bytes,
          .tail_bytes = stream.tail_bytes};
}

}  // namespace

Captured captured_text(const Stream& stream) {
  if (!stream.text)
    return {.text = std::nullopt, .head_bytes = stream.head_bytes, .tail_bytes = stream.tail_bytes};
  const std::string& bytes = *stream.text;
  if (!stream.truncated) {
    if (!is_utf8(bytes)) return as_base64(stream);
    return {.text = bytes, .head_bytes = bytes.size(), .tail_bytes = 0};
  }
  const std::size_t cut = std::min<std::size_t>(stream.head_bytes, bytes.size());
  const std::string_view head = without_partial_end(std::string_view(bytes).substr(0, cut));
  const std::string_view tail = without_partial_start(std::string_view(bytes).substr(cut));
  if (!is_utf8(head) || !is_utf8(tail)) return as_base64(stream);
  const std::uint64_t left_out = stream.bytes - head.size() - tail.size();
  std::string text(head);
  text += fmt::format("{}… {} bytes left out …\n", head.empty() || head.ends_with('\n') ? "" : "\n",
                      left_out);
  text += tail;
  return {.text = std::move(text), .head_bytes = head.size(), .tail_bytes = tail.size()};
}

}  // namespace sbx::record

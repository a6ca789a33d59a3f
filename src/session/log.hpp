#pragma once

#include <cstdint>
#include <string>

namespace sbx::session {

/// What a background call wrote to one stream: the first and the last half of the cap.
class Log {
 public:
  explicit Log(std::uint64_t cap) : half_(cap / 2) {}

  void add(std::string_view bytes);
  /// Nothing more comes: gives back the memory that only growing needs.
  void close();
  [[nodiscard]] std::size_t memory() const { return head_.capacity() + tail_.capacity(); }
  [[nodiscard]] std::uint64_t written() const { return written_; }
  /// What was written from this offset on; a line tells where a part is left out.
  [[nodiscard]] std::string since(std::uint64_t offset) const;

 private:
  std::uint64_t half_;
  std::uint64_t written_ = 0;
  std::string head_;
  std::string tail_;  ///< the last bytes, up to twice half_ before they are cut
};

}  // namespace sbx::session

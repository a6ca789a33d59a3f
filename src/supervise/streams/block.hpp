#pragma once

#include <cstddef>
#include <memory>

namespace sbx::supervise {

/// A buffer for one read, allocated on demand. Not zeroed: unused pages are never touched, and most
/// runs need less than a page.
class Block {
 public:
  static constexpr std::size_t kSize = 65536;  ///< bytes: the default capacity of a pipe

  [[nodiscard]] char* data() {
    if (!room_) room_ = std::make_unique_for_overwrite<char[]>(kSize);
    return room_.get();
  }

 private:
  std::unique_ptr<char[]> room_;
};

}  // namespace sbx::supervise

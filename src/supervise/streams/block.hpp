#pragma once

#include <cstddef>
#include <memory>

namespace sbx::supervise {

/// Room for one read, made when it is asked for. Not zeroed: a page that nothing is read into is
/// never touched, and most runs end with less than a page.
class Block {
 public:
  static constexpr std::size_t kSize = 65536;  ///< bytes: a pipe holds no more

  [[nodiscard]] char* data() {
    if (!room_) room_ = std::make_unique_for_overwrite<char[]>(kSize);
    return room_.get();
  }

 private:
  std::unique_ptr<char[]> room_;
};

}  // namespace sbx::supervise

#pragma once

#include <cstdint>
#include <functional>

namespace sbx {

/// Hears of work that copies files: so many bytes more were copied; 0: the work is over. May be
/// empty.
using Copied = std::function<void(std::uint64_t bytes)>;

/// Says that the work is over, whichever way it ends and before anything else is said.
class CopyingEnds {
 public:
  explicit CopyingEnds(const Copied& copied) : copied_(copied) {}
  CopyingEnds(const CopyingEnds&) = delete;
  CopyingEnds& operator=(const CopyingEnds&) = delete;
  ~CopyingEnds() {
    if (copied_) copied_(0);
  }

 private:
  const Copied& copied_;
};

}  // namespace sbx

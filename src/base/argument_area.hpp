#pragma once

#include <cstddef>

namespace sbx {

/// argv and environ of this process, contiguous in memory: the sandbox's PID 1 wipes its copy.
struct ArgumentArea {
  char* begin = nullptr;
  std::size_t size = 0;
};

}  // namespace sbx

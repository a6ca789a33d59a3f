#pragma once

#include <cstddef>
#include <string>

#include "base/result.hpp"

namespace sbx::sys {

/// As read_all(), from a descriptor that the caller has opened: it may be non-blocking, and then
/// this waits.
[[nodiscard]] Result<std::string> read_stream(int fd, std::size_t limit);

}  // namespace sbx::sys

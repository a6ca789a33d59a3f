#pragma once

#include <cstdint>

namespace sbx::supervise {

/// Whether a file below `folder` is exactly `size` bytes long: a write that RLIMIT_FSIZE stops fills
/// the file up to the limit first. Looks at 4,096 entries, 16 folders deep, and follows no link.
[[nodiscard]] bool has_file_of_size(int folder, std::uint64_t size);

}  // namespace sbx::supervise

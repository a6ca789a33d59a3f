#pragma once

#include <cstdint>

namespace sbx::supervise {

/// True if a file below `directory` is exactly `size` bytes long: a write that exceeds RLIMIT_FSIZE
/// first fills the file up to the limit. Examines 4,096 entries, 16 directories deep, and follows
/// no links.
[[nodiscard]] bool has_file_of_size(int directory, std::uint64_t size);

}  // namespace sbx::supervise

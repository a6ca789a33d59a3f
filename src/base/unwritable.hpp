#pragma once

#include <string>

namespace sbx {

/// What lets the caller make files in `directory` where the kernel answered `errno_value`: the line
/// to type where there is one, else which directory to name. Never empty.
[[nodiscard]] std::string cure_of_unwritable(const std::string& directory, int errno_value);

}  // namespace sbx

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sbx::policy {

/// The number of a constant that system calls take ("AF_UNIX", "PROT_READ|PROT_EXEC"); nothing when
/// one is not known.
[[nodiscard]] std::optional<std::uint64_t> symbol_value(std::string_view text);
/// The constant that was probably meant, or empty.
[[nodiscard]] std::string_view suggest_symbol(std::string_view text);

}  // namespace sbx::policy

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Names of kernel constants, for argument rules and for the record.
namespace sbx::plan {

/// "AF_UNIX", "16", "0x5412", "-1", or several joined by '|'. Empty if a part is unknown.
[[nodiscard]] std::optional<std::uint64_t> resolve_symbol(std::string_view text);

/// The symbol nearest to a misspelled one; empty if none is near.
[[nodiscard]] std::string_view nearest_symbol(std::string_view text);

/// The constant with this prefix ("AF_") and value; empty if there is none.
[[nodiscard]] std::string_view symbol_name(std::string_view prefix, std::uint64_t value);

/// The single-bit constants of `prefix` that are set in `flags`, joined by '|'.
[[nodiscard]] std::string flag_names(std::string_view prefix, std::uint64_t flags);

/// Edits needed to turn one word into the other; large when a word is longer than any name.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace sbx::plan

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Which port of a host a program means: a question for its name has none.
namespace sbx::hints {

/// What a text says: 80 of "http://NAME/x", 8080 of "NAME:8080", 25 of "('NAME', 25)". The case of
/// letters does not count.
[[nodiscard]] std::optional<std::uint16_t> port_in(std::string_view text, std::string_view name);

/// What the words of a command say: also 80 of "curl NAME", and 25 of "nc NAME 25".
[[nodiscard]] std::optional<std::uint16_t> port_in(const std::vector<std::string>& command,
                                                   std::string_view name);

}  // namespace sbx::hints

#pragma once

#include <string>
#include <string_view>

/// Pieces of a policy's text, for messages and for writing policies.
namespace sbx::policy {

/// A basic string with everything escaped that must be.
[[nodiscard]] std::string quoted(std::string_view text);

/// A key as TOML writes it: bare where it can be.
[[nodiscard]] std::string key_text(std::string_view name);

/// The text of one line, without its end.
[[nodiscard]] std::string_view line_of(std::string_view text, int line);

}  // namespace sbx::policy

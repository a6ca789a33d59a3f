#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// What a program has written, on its way to somebody who reads it as text and can't see what it
/// hides.
namespace sbx {

/// Controls, escape sequences, and characters that are invisible or reorder text, as \u{…}; the
/// rest as it is.
[[nodiscard]] std::string visible_text(std::string_view text);
/// The same in one line of ours.
[[nodiscard]] std::string visible_line(std::string_view text, std::size_t most = 200);

}  // namespace sbx

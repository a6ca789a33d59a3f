#pragma once

#include <optional>
#include <string>
#include <string_view>

/// Bytes from outside on their way to a terminal or a JSON text.
namespace sbx {

[[nodiscard]] bool is_utf8(std::string_view bytes);
/// Each byte that is not part of valid UTF-8 becomes U+FFFD.
[[nodiscard]] std::string lossy_utf8(std::string_view bytes);
[[nodiscard]] std::string base64(std::string_view bytes);
/// Nothing where the text is not base64; line feeds in it are allowed.
[[nodiscard]] std::optional<std::string> base64_bytes(std::string_view text);
/// For messages: control characters (C0, DEL, C1), characters that nobody sees or that reorder the
/// text around them, and bytes that are not UTF-8 as \xNN, so that no text from inside the sandbox
/// can steer a terminal or fake a line of ours.
[[nodiscard]] std::string printable(std::string_view bytes);
/// At most `most` bytes (100 at least) where one long word makes it longer: the middle of that is
/// left out. What is more than twice as long is cut whatever its words.
[[nodiscard]] std::string shortened(std::string text, std::size_t most);
/// Length of the valid UTF-8 sequence at the start of `bytes`, 0 if there is none.
[[nodiscard]] std::size_t sequence_length(std::string_view bytes);
/// Lower-case hexadecimal SHA-256.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

/// Letters, digits and '_', no digit first: what a shell takes for the name of a variable.
[[nodiscard]] bool is_variable_name(std::string_view word);
/// A word as it is typed in a shell: in quotes where it needs them, in $'…' what printable()
/// changes.
[[nodiscard]] std::string shell_word(const std::string& word);

}  // namespace sbx

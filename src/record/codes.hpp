#pragma once

#include <span>
#include <string>
#include <string_view>

#include <sbx/error.hpp>

/// The meaning of each stable error code, for `sbx policy explain CODE`, `check --format sarif` and
/// sbx-record(5).
namespace sbx::record {

enum class CodeOf : std::uint8_t { command_line, policy, files, machine, setup, internal };

struct CodeText {
  std::string_view code;
  CodeOf of;
  std::string_view meaning;  ///< a sentence without a full stop
  std::string_view cure;     ///< how to fix it; empty if only a bug report helps
};

[[nodiscard]] std::span<const CodeText> codes();
/// The entry of a code; all "setup-STAGE" codes share one entry. Null if there is no such code.
[[nodiscard]] const CodeText* find_code(std::string_view code);
/// The error's own hint; otherwise, unless the mistake is in the command line or its files, the
/// code's fix.
[[nodiscard]] std::string hint_of(const Error& error);
/// "the command line", "the policy": where the mistake is.
[[nodiscard]] std::string_view place_name(CodeOf place);

}  // namespace sbx::record

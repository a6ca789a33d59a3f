#pragma once

#include <span>
#include <string>
#include <string_view>

#include <sbx/error.hpp>

/// What the stable code of an error stands for: for `sbx policy explain CODE`, `check --format sarif`
/// and sbx-record(5).
namespace sbx::record {

enum class CodeOf : std::uint8_t { command_line, policy, files, machine, setup, internal };

struct CodeText {
  std::string_view code;
  CodeOf of;
  std::string_view meaning;  ///< a sentence without a full stop
  std::string_view cure;     ///< what to do; empty where only a report of the error helps
};

[[nodiscard]] std::span<const CodeText> codes();
/// The entry of a code; every "setup-STAGE" has one entry. Null when there is no such code.
[[nodiscard]] const CodeText* find_code(std::string_view code);
/// The error's own hint; for what lies outside of the command line and its files else the code's cure.
[[nodiscard]] std::string hint_of(const Error& error);
/// "the command line", "the policy": where the mistake lies.
[[nodiscard]] std::string_view place_name(CodeOf place);

}  // namespace sbx::record

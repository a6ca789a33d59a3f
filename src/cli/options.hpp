#pragma once

#include <span>
#include <string_view>

#include "base/result.hpp"
#include "cli/invocation.hpp"

/// Options and commands as rows. cli/app builds the CLI11 tree from them; help and man pages walk
/// that tree, and completions walk the rows.
namespace sbx::cli {

/// one_value: two different ones are an error. It is for what is to be run: who names two programs
/// wants both.
enum class Repeat : std::uint8_t { last_wins, each_counts, one_value };
inline constexpr auto kOnce = Repeat::last_wins;

struct OptionRow {
  const char* names;  ///< CLI11 form: "-p,--policy"
  /// Empty for a switch; "a|b" (lower case) for a closed choice; in brackets if the value is
  /// optional.
  const char* value;
  const char* group;
  Repeat repeat;
  const char* text;  ///< one or two sentences for help and man page
  Status (*take)(Invocation& typed, std::string_view value);
};

/// The group of `run` options that control the answer.
inline constexpr std::string_view kAnswerGroup = "The answer";
[[nodiscard]] std::span<const OptionRow> run_options();

}  // namespace sbx::cli

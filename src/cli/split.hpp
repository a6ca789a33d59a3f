#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"

namespace sbx::cli {

/// argv in two parts: sbx's own, with an option and its value as two strings, and the program's,
/// byte for byte. CLI11 2.1 would reorder and drop arguments of the program, so it gets only `own`.
struct Split {
  std::vector<std::string> own;
  std::vector<const OptionRow*> used;  ///< each row that occurs in `own`, once
  std::vector<std::string> operands;
  bool after_dashes = false;
  std::size_t before_dashes = 0;  ///< operands before "--", where there is one
};

enum class UnknownOption : std::uint8_t { is_error, is_skipped };

/// Errors: usage (unknown option, with a suggestion; a missing or unexpected value).
[[nodiscard]] Result<Split> split_arguments(const CommandRow& command,
                                            std::span<const char* const> arguments,
                                            UnknownOption unknown);

/// The row with this name ("-p" or "--policy"), or null.
[[nodiscard]] const OptionRow* find_option(const CommandRow& command, std::string_view name);

}  // namespace sbx::cli

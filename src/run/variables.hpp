#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace sbx::run {

/// The sources of the child's variables, in the order typed: later ones win.
struct VariableSource {
  enum class Kind : std::uint8_t { assignment, file, descriptor };
  Kind kind = Kind::assignment;
  std::string text;  ///< NAME=VALUE, or the file's name
  int descriptor = -1;
};

using Variables = std::vector<std::pair<std::string, std::string>>;

/// Parses NAME=VALUE lines; `#` begins a comment line. If there is a NUL anywhere, NULs separate
/// the entries instead (env -0) and every entry counts. Errors name `from`, never values. Errors:
/// usage.
[[nodiscard]] Result<Variables> parse_variables(std::string_view text, std::string_view from);

/// Errors: usage, for a name that no shell can set.
[[nodiscard]] Status check_variable_name(std::string_view name, std::string_view option);

/// Reads --env NAME=VALUE, --env-file and --env-fd in the order typed. Reads a descriptor to its
/// end and closes it.
[[nodiscard]] Result<Variables> read_variables(const std::vector<VariableSource>& sources);

}  // namespace sbx::run

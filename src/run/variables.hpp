#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace sbx::run {

/// Where variables of the child come from, in the order typed: later ones win.
struct VariableSource {
  enum class Kind : std::uint8_t { assignment, file, descriptor };
  Kind kind = Kind::assignment;
  std::string text;  ///< NAME=VALUE, the file's name
  int descriptor = -1;
};

using Variables = std::vector<std::pair<std::string, std::string>>;

/// NAME=VALUE lines; `#` begins a comment line. With a zero byte anywhere, zero bytes divide
/// instead (env -0) and every entry counts. `from` is named in errors, values never are. Errors:
/// usage.
[[nodiscard]] Result<Variables> parse_variables(std::string_view text, std::string_view from);

/// Errors: usage, for a name that no shell could set.
[[nodiscard]] Status check_variable_name(std::string_view name, std::string_view option);

/// Reads --env NAME=VALUE, --env-file and --env-fd in the order typed. A descriptor is read to its
/// end and closed.
[[nodiscard]] Result<Variables> read_variables(const std::vector<VariableSource>& sources);

}  // namespace sbx::run

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "cli/invocation.hpp"

namespace sbx::cli {

using Variables = std::vector<std::pair<std::string, std::string>>;

/// NAME=VALUE lines; `#` begins a comment line. With a zero byte anywhere, zero bytes divide
/// instead (env -0) and every entry counts. `from` is named in errors, values never are. Errors:
/// usage.
[[nodiscard]] Result<Variables> parse_variables(std::string_view text, std::string_view from);

/// Reads --env NAME=VALUE, --env-file and --env-fd in the order typed. A descriptor is read to its
/// end and closed.
[[nodiscard]] Result<Variables> read_variables(const std::vector<VariableSource>& sources);

}  // namespace sbx::cli

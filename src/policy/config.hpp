#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace sbx::policy {

/// ~/.config/sbx/config.toml: one key, `policy = "NAME"`, the policy of a run without --policy.
/// Empty when it is not set. Errors: policy (syntax, another key, another type), with the place.
[[nodiscard]] Result<std::string> parse_config(std::string_view text, std::string_view file_name);

}  // namespace sbx::policy

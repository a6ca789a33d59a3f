#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "policy/policy.hpp"

namespace sbx::policy {

/// ~/.config/sbx/config.toml.
struct Config {
  std::string policy;        ///< `policy = "NAME"`: of a run without --policy; empty when not set
  bool keep_record = false;  ///< `record = "keep"`: the last record is kept, for `sbx why`
  std::optional<Sourced<Isolation>> isolation;  ///< `isolation = "auto"`
};

/// Errors: policy (syntax, another key, another type, another word), with the place.
[[nodiscard]] Result<Config> parse_config(std::string_view text, std::string_view file_name);

}  // namespace sbx::policy

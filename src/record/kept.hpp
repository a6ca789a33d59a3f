#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

/// The record of the last run, kept when the user's config.toml says `record = "keep"`: one file,
/// readable by its owner only.
namespace sbx::record {

/// Replaces the kept record in one step. Creates `directory` with mode 0700 if it is missing.
/// Errors: host.
[[nodiscard]] Status keep_record(const std::string& directory, std::string_view record);

/// The kept record. Errors: usage ("no-record-kept", with the fix), host.
[[nodiscard]] Result<std::string> kept_record(const std::string& directory);

}  // namespace sbx::record

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

/// Generates parts of the documents from the tables. Linked into sbx-docs only.
namespace sbx::cli {

/// Regenerates a page's generated regions and puts this version into its line `.Os`. A region lies
/// between the comment lines `.\" generated: NAME` and `.\" end generated`. Errors: internal
/// (unknown region, no end).
[[nodiscard]] Result<std::string> with_generated_regions(std::string_view page);

/// The region names for with_generated_regions().
[[nodiscard]] std::vector<std::string_view> generated_regions();

/// Everything that a user can type or read, one "KIND NAME" per line: command, option (with its
/// command), key, group, code, status.
[[nodiscard]] std::string everything_named();

}  // namespace sbx::cli

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

/// The parts of the documents that come from tables. Linked into sbx-docs only.
namespace sbx::cli {

/// A page with its generated regions made anew, and this version in its line `.Os`. A region lies
/// between the comment lines `.\" generated: NAME` and `.\" end generated`. Errors: internal (unknown region, no end).
[[nodiscard]] Result<std::string> with_generated_regions(std::string_view page);

/// The names that with_generated_regions() knows.
[[nodiscard]] std::vector<std::string_view> generated_regions();

/// Everything that a user can type or read, "KIND NAME" a line: command, option (with its command),
/// key, group, code, status.
[[nodiscard]] std::string everything_named();

}  // namespace sbx::cli

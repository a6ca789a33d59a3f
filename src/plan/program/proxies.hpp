#pragma once

#include <optional>
#include <string>

#include "plan/program/shims.hpp"

/// Version managers whose shims are links to one program of their own: rustup, volta, mise.
namespace sbx::plan {

/// Nothing when the program at `path`, links resolved `real`, is no such link.
/// Errors: not_found, when the chosen version lacks the program.
[[nodiscard]] Result<std::optional<ShimTarget>> read_proxy(const std::string& path,
                                                           const std::string& real,
                                                           const Lookup& lookup,
                                                           const ShimContext& context);

}  // namespace sbx::plan

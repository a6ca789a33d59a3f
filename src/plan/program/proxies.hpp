#pragma once

#include <optional>
#include <string>

#include "plan/program/shims.hpp"

/// Version managers whose shims are links to a single program: rustup, volta, mise.
namespace sbx::plan {

/// Empty if the program at `path`, which resolves to `real`, is no such link. Errors: not_found, if
/// the chosen version lacks the program.
[[nodiscard]] Result<std::optional<ShimTarget>> read_proxy(const std::string& path,
                                                           const std::string& real,
                                                           const Lookup& lookup,
                                                           const ShimContext& context);

}  // namespace sbx::plan

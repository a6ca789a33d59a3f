#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "plan/program/lookup.hpp"
#include "plan/program/shim_context.hpp"

/// Version managers put a small script in front of each program. sbx finds the program behind it by
/// reading the same files.
namespace sbx::plan {

struct ShimTarget {
  std::string path;    ///< the program behind the shim
  std::string reason;  ///< "shim of pyenv, version 3.11.7 of /home/me/.pyenv/version"
};

/// Empty if `head`, the start of the file at `path`, is not a known shim. Errors: not_found, if the
/// chosen version lacks the program.
[[nodiscard]] Result<std::optional<ShimTarget>> read_shim(const std::string& path,
                                                          std::string_view head,
                                                          const Lookup& lookup,
                                                          const ShimContext& context);

}  // namespace sbx::plan

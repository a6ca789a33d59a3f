#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace sbx::cli::mcp_install {

/// Where a path below a root leads.
struct Place {
  UniqueFd directory;                ///< O_PATH, the last one that is there
  std::vector<std::string> missing;  ///< directories that are not
  std::string name;                  ///< of the file: no link, or not there
};

/// Goes down from a held directory and follows links, relative ones and those that name the root as
/// `root`, but never above it. Errors: usage "not-editable"; host "cannot-open".
[[nodiscard]] Result<Place> walk(const std::string& root, const std::string& below);

}  // namespace sbx::cli::mcp_install

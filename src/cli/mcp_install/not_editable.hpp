#pragma once

#include <string>
#include <utility>

#include "cli/usage.hpp"

namespace sbx::cli::mcp_install {

/// Why a file of settings is left alone; the user is told what to put into it.
[[nodiscard]] inline std::unexpected<Error> not_editable(std::string why, std::string fix = {}) {
  return usage("not-editable", std::move(why), std::move(fix));
}

}  // namespace sbx::cli::mcp_install

#pragma once

#include <span>

#include "cli/options.hpp"

/// The options of the server for agents, and of its registration. The rows are made on demand.
namespace sbx::cli {

[[nodiscard]] std::span<const OptionRow> mcp_options();
[[nodiscard]] std::span<const OptionRow> mcp_tools_options();
[[nodiscard]] std::span<const OptionRow> mcp_install_options();
[[nodiscard]] std::span<const OptionRow> mcp_remove_options();
[[nodiscard]] std::span<const OptionRow> mcp_check_options();

}  // namespace sbx::cli

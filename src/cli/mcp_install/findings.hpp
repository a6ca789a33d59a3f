#pragma once

#include <vector>

#include "doctor/doctor.hpp"

namespace sbx::cli::mcp_install {

/// The clients of agents that are installed or that start sbx, for the self-test: weaker where a
/// client that does has its own shell besides.
[[nodiscard]] std::vector<doctor::Finding> examine_clients(const host::Host& host);

}  // namespace sbx::cli::mcp_install

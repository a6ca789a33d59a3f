#pragma once

#include "agent/facts.hpp"

/// An MCP server on standard input and output.
namespace sbx::mcp {

/// Serves until the client ends it: a signal, the end of the process `options.parent` or of its
/// reading, or that of standard input, after which it answers what comes to its end at once.
/// Returns the exit status; what kept it from beginning is on standard error.
[[nodiscard]] int serve(agent::Options options);

}  // namespace sbx::mcp

#pragma once

#include "mcp/facts.hpp"

/// An MCP server on standard input and output.
namespace sbx::mcp {

/// Serves until the client ends it: the end of standard input, a signal, the end of the process
/// `options.parent`. Returns the exit status; what kept it from beginning is on standard error.
[[nodiscard]] int serve(Options options);

}  // namespace sbx::mcp

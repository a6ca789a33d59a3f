#pragma once

#include "cli/invocation.hpp"
#include "cli/mcp_install/registration.hpp"

namespace sbx::cli::mcp_install {

/// What was typed as a registration: the binary's own path, and the options of `sbx mcp`, which are
/// read as that would read them. Errors: usage, policy.
[[nodiscard]] Result<Registration> wanted_of(const Invocation& typed, const host::Host& host);

/// The words as `sbx mcp` would read them. Errors: usage: they are no such command.
[[nodiscard]] Result<Invocation> server_line(const std::vector<std::string>& arguments);

/// Errors: usage: a client could not take it for a name.
[[nodiscard]] Status check_server_name(const std::string& name);

}  // namespace sbx::cli::mcp_install

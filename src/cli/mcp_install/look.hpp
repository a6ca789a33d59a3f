#pragma once

#include <string>
#include <vector>

#include "cli/mcp_install/clients.hpp"

namespace sbx::cli::mcp_install {

/// What a client's files say about a server of sbx and about the client's own shell.
struct Seen {
  std::string path;                ///< of the file that registers servers
  std::vector<std::string> words;  ///< that start it; empty: not registered
  bool is_off = false;
  bool denies_shell = false;
  std::string shell_path;  ///< of the file that denies it
};

/// For a project the user's own settings count too, as far as the project's say nothing else.
/// Errors: those of Target and found_in(); they name the file.
[[nodiscard]] Result<Seen> look(const Client& client, const std::string& name, Scope scope,
                                const host::Host& host);

}  // namespace sbx::cli::mcp_install

#pragma once

#include <string>
#include <vector>

#include "cli/mcp_install/change.hpp"

/// What the commands print for people.
namespace sbx::cli::mcp_install {

/// The line that starts the server, as it is typed in a shell.
[[nodiscard]] std::string command_line(const std::vector<std::string>& words);

[[nodiscard]] std::string installed_words(const Client& client, const Registration& wanted,
                                          Scope scope, const std::vector<Edit>& edits);
[[nodiscard]] std::string removed_words(const Client& client, const Registration& wanted,
                                        const std::vector<Edit>& edits);
/// Each file with what it must say.
[[nodiscard]] std::string paste_words(const Client& client, const std::vector<File>& files,
                                      const Registration& wanted);

}  // namespace sbx::cli::mcp_install

#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "cli/mcp_install/clients.hpp"

/// What a client's settings say about a server of sbx, and how a text comes to say it.
namespace sbx::cli::mcp_install {

struct Registration {
  std::string name = "sbx";
  std::vector<std::string> words;  ///< the binary, "mcp", and its options
  bool replaces_shell = false;
  bool is_live = false;       ///< the model can change the user's own files, or that is not known
  bool allows_apply = false;  ///< it may write to them

  /// Whether the client shall call tools without asking the user.
  [[nodiscard]] bool is_approved() const { return !is_live && !allows_apply; }
};

/// A settings file and what stands in it.
struct File {
  Location location;
  bool registers = false;  ///< it has the table of servers
  bool permits = false;    ///< it has permissions, and what denies the client's own shell
};
/// In the order in which an installation writes them: what permits less comes first. Errors:
/// locate().
[[nodiscard]] Result<std::vector<File>> files_of(const Client& client, Scope scope,
                                                 const host::Host& host);

enum class Change : std::uint8_t { install, remove };
/// A file's text after the change. Errors: usage "not-editable".
[[nodiscard]] Result<std::string> changed_text(const Client& client, const File& file,
                                               const Registration& wanted, Change change,
                                               const std::string& text);
/// What the file must say, for a user who writes it himself.
[[nodiscard]] std::string text_to_paste(const Client& client, const File& file,
                                        const Registration& wanted);
/// The same for any other client.
[[nodiscard]] std::string generic_text(const Registration& wanted);

/// What a text says.
struct Found {
  std::vector<std::string> words;  ///< that start the server; empty: none of that name
  bool is_off = false;
  bool denies_shell = false;
  bool decides_shell = false;  ///< it says something about the client's own shell
};
/// Errors: usage "not-editable".
[[nodiscard]] Result<Found> found_in(const Client& client, const std::string& name,
                                     const std::string& text);

/// Whether these words start a server of sbx.
[[nodiscard]] bool starts_server(const std::vector<std::string>& words);

}  // namespace sbx::cli::mcp_install

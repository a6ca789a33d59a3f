#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "cli/mcp_install/json_edit.hpp"
#include "host/host.hpp"

/// What differs from one client to the next, as far as it can be said in a table.
namespace sbx::cli::mcp_install {

enum class Scope : std::uint8_t { user, project };
enum class Format : std::uint8_t { json, toml };

/// A settings file. `variable` names the directory that takes the place of the home's part.
struct SettingsFile {
  const char* below_home;
  const char* variable;        ///< empty: none
  const char* below_variable;  ///< used where the variable is set
  const char* in_project;
};

/// The form of the object that registers a server.
enum class Entry : std::uint8_t {
  plain,      ///< command, args
  typed,      ///< with type "stdio"
  claude,     ///< typed, with alwaysLoad and timeout
  gemini,     ///< plain, with timeout, and trust where that is given
  one_list,   ///< command and arguments as one list
  toml_table  ///< of Codex
};

struct Client {
  const char* name;
  const char* title;
  const char* command;  ///< as it is found on PATH
  Format format;
  Entry entry;
  const char* servers;       ///< the table of servers
  SettingsFile registering;  ///< that has it
  SettingsFile settings;     ///< that has permissions
  const char* shell_key;  ///< "permissions.deny"; empty: no setting is known that denies its shell
  const char* shell_value;  ///< JSON: a word of that list, or the key's value
  bool shell_is_list;
  const char* allowed_key;  ///< a list of tools that it calls without a question; empty: none
  bool is_tried;            ///< with the client itself
};

[[nodiscard]] std::span<const Client> clients();
/// Null where there is none.
[[nodiscard]] const Client* find_client(std::string_view name);
/// "claude, codex, ...".
[[nodiscard]] std::string client_names();

/// A directory, and the file's path below it.
struct Location {
  std::string root;
  std::string below;
  [[nodiscard]] std::string path() const { return root + "/" + below; }
};
/// Errors: usage: no home, or the client's variable leads out of it.
[[nodiscard]] Result<Location> locate(const SettingsFile& file, Scope scope,
                                      const host::Host& host);

/// "a.b" as names.
[[nodiscard]] Names names_of(std::string_view dotted);

}  // namespace sbx::cli::mcp_install

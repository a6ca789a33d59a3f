#include "cli/mcp_install/clients.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cli/mcp_install/not_editable.hpp"
#include "cli/usage.hpp"
#include "host/state.hpp"

namespace sbx::cli::mcp_install {
namespace {

constexpr SettingsFile kCodex{".codex/config.toml", "CODEX_HOME", "config.toml",
                              ".codex/config.toml"};
constexpr SettingsFile kGemini{".gemini/settings.json", "GEMINI_CLI_HOME", ".gemini/settings.json",
                               ".gemini/settings.json"};
constexpr SettingsFile kOpenCode{".config/opencode/opencode.json", "XDG_CONFIG_HOME",
                                 "opencode/opencode.json", "opencode.json"};
constexpr SettingsFile kCursor{".cursor/mcp.json", "", "", ".cursor/mcp.json"};
constexpr SettingsFile kCode{".config/Code/User/mcp.json", "XDG_CONFIG_HOME", "Code/User/mcp.json",
                             ".vscode/mcp.json"};

constexpr Client kClients[] = {
    {.name = "claude",
     .title = "Claude Code",
     .command = "claude",
     .format = Format::json,
     .entry = Entry::claude,
     .servers = "mcpServers",
     .registering = {".claude.json", "CLAUDE_CONFIG_DIR", ".claude.json", ".mcp.json"},
     .settings = {".claude/settings.json", "CLAUDE_CONFIG_DIR", "settings.json",
                  ".claude/settings.json"},
     .shell_key = "permissions.deny",
     .shell_value = "\"Bash\"",
     .shell_is_list = true,
     .allowed_key = "permissions.allow",
     .is_tried = true},
    {.name = "codex",
     .title = "Codex",
     .command = "codex",
     .format = Format::toml,
     .entry = Entry::toml_table,
     .servers = "mcp_servers",
     .registering = kCodex,
     .settings = kCodex,
     .shell_key = "features.shell_tool",
     .shell_value = "false",
     .shell_is_list = false,
     .allowed_key = "",
     .is_tried = true},
    {.name = "gemini",
     .title = "Gemini CLI",
     .command = "gemini",
     .format = Format::json,
     .entry = Entry::gemini,
     .servers = "mcpServers",
     .registering = kGemini,
     .settings = kGemini,
     .shell_key = "tools.exclude",
     .shell_value = "\"run_shell_command\"",
     .shell_is_list = true,
     .allowed_key = "",
     .is_tried = true},
    {.name = "opencode",
     .title = "OpenCode",
     .command = "opencode",
     .format = Format::json,
     .entry = Entry::one_list,
     .servers = "mcp",
     .registering = kOpenCode,
     .settings = kOpenCode,
     .shell_key = "permission.bash",
     .shell_value = "\"deny\"",
     .shell_is_list = false,
     .allowed_key = "",
     .is_tried = true},
    {.name = "cursor",
     .title = "Cursor",
     .command = "cursor",
     .format = Format::json,
     .entry = Entry::plain,
     .servers = "mcpServers",
     .registering = kCursor,
     .settings = kCursor,
     .shell_key = "",
     .shell_value = "",
     .shell_is_list = false,
     .allowed_key = "",
     .is_tried = false},
    {.name = "vscode",
     .title = "VS Code",
     .command = "code",
     .format = Format::json,
     .entry = Entry::typed,
     .servers = "servers",
     .registering = kCode,
     .settings = kCode,
     .shell_key = "",
     .shell_value = "",
     .shell_is_list = false,
     .allowed_key = "",
     .is_tried = false},
};

}  // namespace

std::span<const Client> clients() {
  return kClients;
}

const Client* find_client(std::string_view name) {
  const auto* const found =
      std::ranges::find_if(kClients, [&](const Client& each) { return name == each.name; });
  return found == std::end(kClients) ? nullptr : found;
}

std::string client_names() {
  std::string names;
  for (const Client& each : kClients) names += (names.empty() ? "" : ", ") + std::string(each.name);
  return names;
}

Result<Location> locate(const SettingsFile& file, Scope scope, const host::Host& host) {
  if (scope == Scope::project && host.working_directory.empty())
    return usage("usage", "the working directory has no path", "cd to the project");
  if (scope == Scope::project) return Location{host.working_directory, file.in_project};
  if (host.home.empty())
    return usage("no-home", "this user has no home directory of its own",
                 "--scope project, or --print");
  const auto set = host.environment.find(file.variable);
  if (set == host.environment.end() || set->second.empty())
    return Location{host.home, file.below_home};
  if (set->second == host.home) return Location{host.home, file.below_variable};
  if (!host::lies_below(set->second, host.home))
    return not_editable(std::string(file.variable) + "=" + printable(set->second) +
                            " is where this client has its settings, and lies outside of the home",
                        "--print gives the text to paste");
  return Location{host.home, set->second.substr(host.home.size() + 1) + "/" + file.below_variable};
}

Names names_of(std::string_view dotted) {
  Names names;
  while (!dotted.empty()) {
    const std::size_t end = std::min(dotted.find('.'), dotted.size());
    names.emplace_back(dotted.substr(0, end));
    dotted.remove_prefix(std::min(end + 1, dotted.size()));
  }
  return names;
}

}  // namespace sbx::cli::mcp_install

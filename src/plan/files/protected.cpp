#include "plan/files/protected.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace sbx::plan {
namespace {

// git runs these by itself, or takes from them what to run (core.fsmonitor, filters, aliases).
constexpr std::array<std::string_view, 4> kOfGit = {"hooks", "config", "config.worktree",
                                                    "modules"};

// Read by shells, direnv, editors and agents that a person starts in the directory.
constexpr auto kAnywhere = std::to_array<std::string_view>({
    // start-up files of shells and the files they read
    ".envrc",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".login",
    ".cshrc",
    ".tcshrc",
    ".kshrc",
    ".mkshrc",
    ".inputrc",
    ".xprofile",
    ".xsession",
    ".xinitrc",
    ".pam_environment",
    // editors
    ".vscode",
    ".idea",
    ".vimrc",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".vim",
    ".dir-locals.el",
    ".zed",
    ".fleet",
    ".sublime-project",
    // agents
    ".claude",
    ".cursor",
    ".codex",
    ".gemini",
    ".windsurf",
    ".continue",
    ".aider.conf.yml",
    ".mcp.json",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    "CLAUDE.md",
    "AGENTS.md",
    "GEMINI.md",
    ".gitconfig",
    ".emacs.d",
});

bool is_secret(std::string_view key) {
  std::string lower(key);
  std::ranges::transform(lower, lower.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return std::ranges::any_of(
      std::array<std::string_view, 5>{"extraheader", "password", "passwd", "token", "secret"},
      [&](std::string_view word) { return lower.contains(word); });
}

/// "https://user:word@host/x" becomes "https://host/x"; a user alone ("git@") is no secret and stays.
std::string without_password(std::string_view line) {
  std::string text(line);
  for (auto at = text.find("://"); at != std::string::npos; at = text.find("://", at + 3)) {
    const auto end = text.find_first_of("/ \t\"", at + 3);
    const auto sign = text.rfind('@', end == std::string::npos ? text.size() : end);
    if (sign == std::string::npos || sign < at + 3) continue;
    const std::string_view user = std::string_view(text).substr(at + 3, sign - at - 3);
    const bool ssh = text.substr(0, at).ends_with("ssh");
    if (user.contains(':') || !ssh) text.erase(at + 3, sign - at - 2);
  }
  return text;
}

/// Length of the first line with its newline, and of the lines that backslashes join to it.
std::size_t logical_line(std::string_view text) {
  std::size_t at = 0;
  for (;;) {
    const auto end = text.find('\n', at);
    if (end == std::string_view::npos) return text.size();
    const bool goes_on =
        text.substr(0, end).ends_with('\\') || text.substr(0, end).ends_with("\\\r");
    if (!goes_on) return end + 1;
    at = end + 1;
  }
}

}  // namespace

bool is_protected(std::string_view folder_name, std::string_view name) {
  if (folder_name == ".git") return std::ranges::find(kOfGit, name) != kOfGit.end();
  if (folder_name == ".config" && name == "fish") return true;
  return std::ranges::find(kAnywhere, name) != kAnywhere.end();
}

bool is_guarded(std::string_view folder_name, std::string_view name, bool is_folder) {
  return is_protected(folder_name, name) || (name == ".git" && !is_folder);
}

std::optional<std::string> without_credentials(std::string_view git_config) {
  std::string clean;
  std::string_view rest = git_config;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, logical_line(rest));
    const auto equals = line.find('=');
    if (equals != std::string_view::npos && is_secret(line.substr(0, equals)))
      clean += "\t# left out by sbx: a credential\n";
    else
      clean += without_password(line);
    rest.remove_prefix(line.size());
  }
  if (clean == git_config) return std::nullopt;
  return clean;
}

}  // namespace sbx::plan

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "policy/policy.hpp"

/// What surrounds the reading of policies: where they are looked for, what the command line adds,
/// what is wrong with them.
namespace sbx::policy {

/// Everything that is wrong, in the order of the text. Never empty when returned.
using Findings = std::vector<Error>;

/// What surrounds the policies of one invocation.
struct LoadContext {
  std::string home;               ///< for "~"; empty when the caller has none
  std::string working_directory;  ///< for paths typed on the command line
  /// Directories of named policies, after the built-ins: {"/etc/sbx/policies",
  /// "~/.config/sbx/policies" resolved}.
  std::vector<std::string> policy_directories;
  /// The default policy named in ~/.config/sbx/config.toml; empty for "default".
  std::string default_policy;
  std::string default_policy_file = "--policy";  ///< what names it, for messages
  /// Of ~/.config/sbx/config.toml: for policies that are not locked and whose files don't say it.
  std::optional<Sourced<Isolation>> isolation;
  /// ~/.config/sbx/config.toml, canonical, if it was read, and the links on the way to it: for
  /// Policy::ways.
  std::vector<std::string> settings_files;
};

/// One layer of the command line, in the order typed.
struct PolicyOperand {
  std::string text;  ///< NAME or FILE of -p/--policy
};
/// `--set KEY=TOML`, or what a named option means as such: {"limits.wall_time", "\"30s\"",
/// "--timeout"}.
struct Override {
  std::string key;      ///< dotted
  std::string toml;     ///< the value as TOML text
  std::string option;   ///< "--set", "--timeout": the origin
  bool append = false;  ///< lists: append (named options) instead of replace (--set)
};

}  // namespace sbx::policy

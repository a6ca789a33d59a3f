#pragma once

#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "policy/policy.hpp"

namespace sbx::policy {

/// Everything that is wrong, in the order of the text. Never empty when returned.
using Findings = std::vector<Error>;

/// What surrounds the policies of one invocation.
struct LoadContext {
  std::string home;               ///< for "~"; empty when the caller has none
  std::string working_directory;  ///< for paths typed on the command line
  /// Folders of named policies, after the built-ins: {"/etc/sbx/policies", "~/.config/sbx/policies"
  /// resolved}.
  std::vector<std::string> policy_folders;
  /// The default policy named in ~/.config/sbx/config.toml; empty for "default".
  std::string default_policy;
  std::string default_policy_file = "--policy";  ///< what names it, for messages
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

/// Reads, merges and validates: key defaults, `extends`, each file, each override. Reads only the
/// named files.
[[nodiscard]] std::expected<Policy, Findings> load(const std::vector<PolicyOperand>& policies,
                                                   const std::vector<Override>& overrides,
                                                   const LoadContext& context);

/// Parses one self-contained text (no file access but `extends` of built-ins); for tests, `check`
/// and fuzzing.
[[nodiscard]] std::expected<Policy, Findings> parse_text(std::string_view text,
                                                         std::string_view file_name,
                                                         const LoadContext& context);

/// The policy as complete TOML, every key written; `parse_text(write(p))` has the same rules.
[[nodiscard]] std::string write(const Policy& policy);

/// The policies compiled in, `default` first.
struct Builtin {
  std::string_view name;
  std::string_view toml;
};
[[nodiscard]] std::vector<Builtin> builtins();

}  // namespace sbx::policy

#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/host.hpp"
#include "policy/policy.hpp"

/// filesystem.deny: the names of the host that stay hidden.
namespace sbx::plan {

/// One entry, ready for matching.
struct DenyRule {
  std::string pattern;  ///< "**/.env", or a canonical path; parts of both may have wildcards
  Origin origin;
  bool own_state = false;  ///< part of sbx's state; may appear after the plan is made
};

/// "filesystem.deny "**/.env" (default.toml:31)".
[[nodiscard]] std::string describe(const DenyRule& rule);
/// "cannot DOING: …" with the fix; code "denied-grant".
[[nodiscard]] std::unexpected<Error> denied_grant(const std::string& doing, const DenyRule& rule,
                                                  const Origin& origin);

/// The rules of a policy with links resolved (if "~/.ssh" is a link to dotfiles/ssh, both are
/// hidden), plus a rule for sbx's own state: kept changes, records, the private disks of other
/// runs.
[[nodiscard]] std::vector<DenyRule> resolve_deny(const policy::SourcedList<std::string>& deny,
                                                 const host::Host& host);

class DenyRules {
 public:
  /// With `files`, a directory called ".env" that contains a pyvenv.cfg is recognised as a virtual
  /// environment: it holds no secrets, and the built-in rule doesn't apply to it.
  explicit DenyRules(std::vector<DenyRule> rules, const host::Files* files = nullptr);
  DenyRules(const DenyRules&) = delete;  // literals_ points into rules_
  DenyRules& operator=(const DenyRules&) = delete;

  [[nodiscard]] bool empty() const { return rules_.empty(); }
  /// The rule that hides `name` in the absolute directory `directory`; null if none does. Doesn't
  /// check the directories above. Fast enough to call for every entry of a tree.
  [[nodiscard]] const DenyRule* hides(std::string_view directory, std::string_view name) const;
  /// The rule that hides a path or a directory above it.
  [[nodiscard]] const DenyRule* covers(std::string_view path) const;
  /// The rule without wildcards that hides a path or a directory above it.
  [[nodiscard]] const DenyRule* covers_literally(std::string_view path) const;
  [[nodiscard]] const std::vector<DenyRule>& rules() const { return rules_; }
  /// Paths without wildcards; they stay hidden whether they exist or not.
  [[nodiscard]] const std::vector<const DenyRule*>& literals() const { return literals_; }
  /// Names that a rule of the form "**/NAME" hides everywhere.
  [[nodiscard]] std::vector<std::string> names_anywhere() const;
  /// Some rule of the form "**/" has a wildcard in its last part, so directories must be listed to
  /// find its matches.
  [[nodiscard]] bool needs_lists() const;

 private:
  struct Parsed {
    std::vector<std::string> parts;
    std::string last;       ///< the last part
    bool anywhere = false;  ///< "**/NAME"
    bool wild = false;      ///< the last part has wildcards
  };
  [[nodiscard]] static bool matches(const Parsed& rule, std::string_view directory,
                                    std::string_view name);
  [[nodiscard]] bool is_environment(const DenyRule& rule, std::string_view directory,
                                    std::string_view name) const;

  std::vector<DenyRule> rules_;
  const host::Files* files_;
  using Named = std::pair<std::string_view, std::size_t>;
  std::vector<Parsed> parsed_;
  std::vector<Named> by_last_;     ///< rules without wildcards in their last part, keyed by it
  std::vector<std::size_t> wild_;  ///< the other rules
  std::vector<const DenyRule*> literals_;
  std::array<bool, 256> begins_{};  ///< first bytes of the rules' last parts
};

}  // namespace sbx::plan

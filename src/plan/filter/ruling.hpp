#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "plan/filter/filter.hpp"
#include "plan/filter/table.hpp"
#include "plan/filter/tree.hpp"
#include "policy/policy.hpp"

/// What a policy's lists and rules decide for each call, with names resolved to numbers.
namespace sbx::plan {

class Ruling {
 public:
  /// Checks every name, group, symbol and argument. Uses only the first `rule_count` of
  /// syscalls.rules. Errors: policy.
  static Result<Ruling> resolve(const policy::Syscalls& syscalls, const FilterContext& context,
                                std::size_t rule_count = SIZE_MAX);
  /// Resolves a valid policy for one call only: fast enough for a flood of denied calls.
  static Result<Ruling> resolve_one(const policy::Syscalls& syscalls, const FilterContext& context,
                                    const Call& call);

  /// The decision for a call without an argument rule or guard; with one it is `conditional`, and
  /// tree() decides.
  struct Verdict {
    bool conditional = false;
    Action action;
  };
  [[nodiscard]] Verdict verdict(const Call& call) const;
  /// The complete decision for a call.
  [[nodiscard]] Tree::Id tree(Tree& tree, const Call& call) const;

 private:
  struct Entry {
    bool is_group = false;
    Group group{};
    std::uint16_t number = 0;
    std::uint32_t index = kNoIndex;  ///< index in the policy's list
    Cause cause = Cause::deny_entry;
  };
  struct Rule {
    std::uint16_t number = 0;
    bool denies = false;
    bool negated = false;  ///< the rule matches when no condition holds
    /// Eq and in: an allow rule lifts the guard's check of this argument.
    bool names_values = false;
    std::uint8_t argument = 0;
    std::uint32_t index = 0;
    std::vector<Condition> conditions{};
  };
  struct Standpoint {
    Action action;  ///< allow, or the refusal when no rule admits the call
    bool final = false;
    bool by_name = false;
    bool spawns = true;
    Action spawn_refusal{};
  };
  struct Walk;

  Status add_allow(const policy::Sourced<std::string>& item);
  Status add_deny(const policy::Sourced<std::string>& item, std::uint32_t index);
  Status add_rule(const policy::Sourced<policy::SyscallRule>& item, std::uint32_t index);
  /// A denial must not vanish where C libraries use another call: whoever denies an absent call
  /// must restrict its successor.
  [[nodiscard]] Status check_absent() const;
  /// True if the call is refused, altogether or by a rule, or processes of the "@group" can't be
  /// made.
  [[nodiscard]] bool restricts(std::string_view name) const;
  [[nodiscard]] Standpoint standpoint(const Call& call) const;
  /// Where the program is in the machine's own namespaces: names_itself().
  [[nodiscard]] std::vector<Condition> own_process(const Call& call) const;
  [[nodiscard]] std::vector<Condition> refused_there(const Call& call) const;
  void apply_allow(Standpoint& standpoint, const Call& call) const;
  void apply_deny(Standpoint& standpoint, const Call& call) const;

  FilterContext context_;
  policy::SyscallBase base_{};
  std::vector<Entry> allow_;
  std::vector<Entry> deny_;
  std::vector<Rule> rules_;
  std::vector<policy::Sourced<std::string>> denied_absent_;  ///< calls of other architectures only
};

}  // namespace sbx::plan

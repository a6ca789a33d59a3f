#include "plan/filter/ruling.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>

#include "base/letters.hpp"
#include "plan/filter/assembler.hpp"
#include "plan/filter/guards.hpp"
#include "plan/filter/outside.hpp"
#include "plan/filter/symbols.hpp"

namespace sbx::plan {
namespace {

using policy::RuleOperator;

std::unexpected<Error> refuse_rule(std::string code, std::string message, const Origin& origin,
                                   std::string hint = {}) {
  return fail(Error{.kind = ErrorKind::policy,
                    .code = std::move(code),
                    .message = std::move(message),
                    .origin = origin,
                    .hint = std::move(hint)});
}

std::unexpected<Error> unknown_name(std::string_view name, const Origin& origin) {
  const std::string_view near = nearest_name(name);
  std::string hint = near.empty()
                         ? "the kernel's name of a call, as in syscalls(2), or a group, as @debug"
                         : "did you mean " + double_quoted(near) + "?";
  const bool group = name.starts_with('@');
  return refuse_rule(
      group ? "unknown-syscall-group" : "unknown-syscall",
      std::string(group ? "unknown group of system calls " : "unknown system call ") +
          double_quoted(name),
      origin, std::move(hint));
}

std::unexpected<Error> needed(std::string_view what, const Origin& origin) {
  return refuse_rule(
      "needed-syscall-denied",
      double_quoted(what) +
          " can't be denied: sbx or the kernel needs it to start and end the command",
      origin, "remove it from the policy");
}

/// Truncates the value to what the kernel reads from a register of `bits`; false if it doesn't fit.
bool fit(std::uint64_t& value, unsigned bits) {
  if (bits == 64) return true;
  const std::uint64_t width = (std::uint64_t{1} << bits) - 1;
  const bool fits = value <= width || value >= ~(width >> 1);  // second condition: negative numbers
  value &= width;
  return fits;
}

Result<std::vector<std::uint64_t>> values_of(const policy::SyscallRule& rule,
                                             const Origin& origin) {
  std::vector<std::uint64_t> values = rule.values;
  if (values.size() < rule.symbols.size()) values.resize(rule.symbols.size());
  for (std::size_t i = 0; i < rule.symbols.size(); ++i) {
    if (rule.symbols[i].empty()) continue;
    const auto value = resolve_symbol(rule.symbols[i]);
    if (!value) {
      const std::string_view near = nearest_symbol(rule.symbols[i]);
      return refuse_rule(
          "unknown-symbol",
          "unknown symbol " + double_quoted(rule.symbols[i]) + " in the rule for " +
              double_quoted(rule.name),
          origin, near.empty() ? "write the number" : "did you mean " + double_quoted(near) + "?");
    }
    values[i] = *value;
  }
  return values;
}

Status check_argument(const policy::SyscallRule& rule, const Call& call, const Origin& origin) {
  if (is_hot(call)) {
    return refuse_rule(
        "rule-on-hot-call",
        "no argument rule can stand on " + double_quoted(rule.name) +
            ": it would slow down every such call",
        origin, "allow or deny the call as a whole, or use the filesystem and limits sections");
  }
  if (argument_bits(call, rule.argument) == 0) {
    return refuse_rule("no-such-argument",
                       double_quoted(rule.name) + " has " +
                           std::to_string(std::string_view(call.arguments).size()) +
                           " arguments, counted from 0: there is no argument " +
                           std::to_string(rule.argument),
                       origin);
  }
  return {};
}

/// The rule's values as the kernel reads them: for masked_eq, a mask and a value.
Result<std::vector<std::uint64_t>> checked_values(const policy::SyscallRule& rule, const Call& call,
                                                  const Origin& origin) {
  std::vector<std::uint64_t> values = SBX_TRY(values_of(rule, origin));
  const bool masked = rule.op == RuleOperator::masked_eq;
  const bool many = rule.op == RuleOperator::in;
  if (many ? values.empty() : values.size() != (masked ? 2U : 1U)) {
    return refuse_rule("wrong-value-count",
                       "the rule for " + double_quoted(rule.name) + " needs " +
                           (many     ? "at least one value"
                            : masked ? "a mask and a value"
                                     : "one value"),
                       origin);
  }
  if (values.size() > Assembler::kMostInstructions) {
    return refuse_rule(
        "filter-too-long",
        "the rule for " + double_quoted(rule.name) + " does not fit the kernel's 4096 instructions",
        origin);
  }
  const auto bits = static_cast<unsigned>(argument_bits(call, rule.argument));
  bool possible = true;
  for (std::uint64_t& value : values) possible = fit(value, bits) && possible;
  if (!possible) {
    return refuse_rule("rule-never-matches",
                       "the rule for " + double_quoted(rule.name) +
                           " can never match: the kernel reads only " + std::to_string(bits) +
                           " bits of argument " + std::to_string(rule.argument),
                       origin);
  }
  if (masked && (values[1] & ~values[0]) != 0) {
    return refuse_rule("rule-never-matches",
                       "the rule for " + double_quoted(rule.name) +
                           " can never match: its value has bits that its mask leaves out",
                       origin);
  }
  return values;
}

/// For ne, le and lt: the condition of their opposite.
std::vector<Condition> conditions_of(const policy::SyscallRule& rule, const Call& call,
                                     const std::vector<std::uint64_t>& values) {
  Condition condition{.argument = static_cast<std::uint8_t>(rule.argument),
                      .bits = static_cast<std::uint8_t>(argument_bits(call, rule.argument))};
  if (rule.op == RuleOperator::masked_eq) {
    condition.compare = Compare::masked_equal;
    condition.mask = values[0];
    condition.value = values[1];
    return {condition};
  }
  if (rule.op == RuleOperator::gt || rule.op == RuleOperator::le)
    condition.compare = Compare::greater;
  if (rule.op == RuleOperator::ge || rule.op == RuleOperator::lt)
    condition.compare = Compare::greater_equal;
  std::vector<Condition> conditions;
  for (const std::uint64_t value : values) {
    condition.value = value;
    conditions.push_back(condition);
  }
  return conditions;
}

/// A name in allow, deny or a rule.
struct Named {
  const Call* call = nullptr;  ///< of this architecture, or of others only
  bool absent = false;         ///< of others only
};

std::optional<Named> call_named(std::string_view name) {
  if (const Call* call = find_call(name)) return Named{.call = call};
  if (const Call* call = find_absent_call(name)) return Named{.call = call, .absent = true};
  return std::nullopt;
}

std::unexpected<Error> absent_call(const std::string& name, std::string_view successor,
                                   const Origin& origin) {
  return refuse_rule("absent-syscall",
                     "this machine's architecture has no system call " + double_quoted(name) +
                         ", and programs use " + double_quoted(successor) +
                         ", which the policy does not deny",
                     origin, "deny " + double_quoted(successor) + " too");
}

Action not_in_base() {
  return {.kind = Action::Kind::deny, .error = EPERM, .cause = Cause::not_in_base};
}

}  // namespace

Result<Ruling> Ruling::resolve(const policy::Syscalls& syscalls, const FilterContext& context,
                               std::size_t rule_count) {
  Ruling ruling;
  ruling.context_ = context;
  ruling.base_ = syscalls.base.value;
  for (const auto& item : syscalls.allow) SBX_TRY(ruling.add_allow(item));
  for (std::uint32_t i = 0; i < syscalls.deny.size(); ++i)
    SBX_TRY(ruling.add_deny(syscalls.deny[i], i));
  const std::size_t count = std::min(rule_count, syscalls.rules.size());
  for (std::uint32_t i = 0; i < count; ++i) SBX_TRY(ruling.add_rule(syscalls.rules[i], i));
  if (count == syscalls.rules.size()) SBX_TRY(ruling.check_absent());
  return ruling;
}

Status Ruling::check_absent() const {
  for (const policy::Sourced<std::string>& denied : denied_absent_) {
    const std::string_view successor = used_instead(denied.value);
    if (!successor.empty() && !restricts(successor))
      return absent_call(denied.value, successor, denied.origin);
  }
  return {};
}

bool Ruling::restricts(std::string_view name) const {
  if (const auto group = find_group(name)) {
    return std::ranges::any_of(calls(), [&](const Call& call) {
      if (call.group != *group || call.decision.guard != ArgumentGuard::clone) return false;
      const Standpoint view = standpoint(call);
      return view.action.kind != Action::Kind::allow || !view.spawns;
    });
  }
  const Call* const call = find_call(name);
  return standpoint(*call).action.kind != Action::Kind::allow ||
         std::ranges::any_of(
             rules_, [&](const Rule& rule) { return rule.denies && rule.number == call->number; });
}

Result<Ruling> Ruling::resolve_one(const policy::Syscalls& syscalls, const FilterContext& context,
                                   const Call& call) {
  const auto concerns = [&](const std::string& name) {
    return name == call.name || name == text_of(call.group).name;
  };
  Ruling ruling;
  ruling.context_ = context;
  ruling.base_ = syscalls.base.value;
  for (const auto& item : syscalls.allow) {
    if (concerns(item.value)) SBX_TRY(ruling.add_allow(item));
  }
  for (std::uint32_t i = 0; i < syscalls.deny.size(); ++i) {
    if (concerns(syscalls.deny[i].value)) SBX_TRY(ruling.add_deny(syscalls.deny[i], i));
  }
  for (std::uint32_t i = 0; i < syscalls.rules.size(); ++i) {
    if (concerns(syscalls.rules[i].value.name)) SBX_TRY(ruling.add_rule(syscalls.rules[i], i));
  }
  return ruling;
}

Status Ruling::add_allow(const policy::Sourced<std::string>& item) {
  if (const auto group = find_group(item.value)) {
    allow_.push_back({.is_group = true, .group = *group});
  } else if (const auto named = call_named(item.value)) {
    if (!named->absent) allow_.push_back({.number = named->call->number});
  } else {
    return unknown_name(item.value, item.origin);
  }
  return {};
}

Status Ruling::add_deny(const policy::Sourced<std::string>& item, std::uint32_t index) {
  if (const auto group = find_group(item.value)) {
    if (*group == Group::always) return needed(item.value, item.origin);
    deny_.push_back({.is_group = true, .group = *group, .index = index});
  } else if (const auto named = call_named(item.value)) {
    if (named->call->decision.standing == Standing::own) return needed(item.value, item.origin);
    if (named->absent) {
      denied_absent_.push_back(item);
    } else {
      deny_.push_back({.number = named->call->number, .index = index});
    }
  } else {
    return unknown_name(item.value, item.origin);
  }
  return {};
}

Status Ruling::add_rule(const policy::Sourced<policy::SyscallRule>& item, std::uint32_t index) {
  const policy::SyscallRule& rule = item.value;
  const auto named = call_named(rule.name);
  if (!named) return unknown_name(rule.name, item.origin);
  const Call* const call = named->call;
  const bool denies = rule.action == policy::RuleAction::deny;
  if (denies && call->decision.standing == Standing::own) return needed(rule.name, item.origin);
  std::vector<std::uint64_t> values;
  if (rule.has_condition) {
    SBX_TRY(check_argument(rule, *call, item.origin));
    values = SBX_TRY(checked_values(rule, *call, item.origin));
  }
  if (named->absent) {
    if (denies) denied_absent_.push_back({rule.name, item.origin});
    return {};
  }
  if (!rule.has_condition) {
    (denies ? deny_ : allow_)
        .push_back({.number = call->number, .index = index, .cause = Cause::rule});
    return {};
  }
  const RuleOperator op = rule.op;
  rules_.push_back(
      {.number = call->number,
       .denies = denies,
       .negated = op == RuleOperator::ne || op == RuleOperator::le || op == RuleOperator::lt,
       .names_values = op == RuleOperator::eq || op == RuleOperator::in,
       .argument = static_cast<std::uint8_t>(rule.argument),
       .index = index,
       .conditions = conditions_of(rule, *call, values)});
  return {};
}

void Ruling::apply_allow(Standpoint& standpoint, const Call& call) const {
  for (const Entry& entry : allow_) {
    if (entry.is_group ? entry.group != call.group : entry.number != call.number) continue;
    if (call.decision.standing == Standing::absent) continue;
    // clone3 passes its flags in memory: granting it with its group would undo the guard on clone.
    if (entry.is_group && call.decision.standing == Standing::quiet &&
        call.group == Group::process_spawn)
      continue;
    standpoint.action = {};
    standpoint.final = false;
    standpoint.by_name |= !entry.is_group;
    standpoint.spawns = true;
  }
}

void Ruling::apply_deny(Standpoint& standpoint, const Call& call) const {
  for (const Entry& entry : deny_) {
    if (entry.is_group ? entry.group != call.group : entry.number != call.number) continue;
    const Action refusal{
        .kind = Action::Kind::deny, .error = EPERM, .cause = entry.cause, .index = entry.index};
    if (entry.is_group && call.decision.guard == ArgumentGuard::clone) {
      // Threads are not processes: clone stays allowed for them.
      standpoint.spawns = false;
      standpoint.spawn_refusal = {.kind = Action::Kind::deny,
                                  .error = EPERM,
                                  .cause = Cause::new_process,
                                  .index = entry.index};
      continue;
    }
    // A quiet answer already refuses the call; and glibc falls back to clone only if clone3 fails
    // with ENOSYS.
    const bool quiet =
        call.decision.standing == Standing::quiet || call.decision.standing == Standing::absent;
    standpoint.action = quiet ? Action{.kind = Action::Kind::quiet,
                                       .error = call.decision.quiet_errno,
                                       .cause = Cause::quiet_table}
                              : refusal;
    standpoint.final = true;
    return;
  }
}

Ruling::Standpoint Ruling::standpoint(const Call& call) const {
  Standpoint standpoint;
  const Standing last_admitted = base_ == policy::SyscallBase::none      ? Standing::own
                                 : base_ == policy::SyscallBase::minimal ? Standing::minimal
                                                                         : Standing::standard;
  switch (call.decision.standing) {
    case Standing::quiet:
    case Standing::absent:
      standpoint.action = {.kind = Action::Kind::quiet,
                           .error = call.decision.quiet_errno,
                           .cause = Cause::quiet_table};
      break;
    case Standing::denied:
      standpoint.action = not_in_base();
      break;
    default:
      if (call.decision.standing > last_admitted) standpoint.action = not_in_base();
  }
  if (call.decision.guard == ArgumentGuard::clone && base_ != policy::SyscallBase::default_) {
    standpoint.spawns = false;
    standpoint.spawn_refusal = {
        .kind = Action::Kind::deny, .error = EPERM, .cause = Cause::new_process};
  }
  if (context_.outside_namespaces) {
    if (const auto refusal = refused_outside(call, context_)) {
      standpoint.action = *refusal;
      standpoint.final = true;
      return standpoint;
    }
  }
  apply_allow(standpoint, call);
  apply_deny(standpoint, call);
  return standpoint;
}

std::vector<Condition> Ruling::own_process(const Call& call) const {
  return context_.outside_namespaces ? names_itself(call) : std::vector<Condition>();
}

std::vector<Condition> Ruling::refused_there(const Call& call) const {
  return context_.outside_namespaces ? refused_forms(call, context_) : std::vector<Condition>();
}

Ruling::Verdict Ruling::verdict(const Call& call) const {
  const Standpoint view = standpoint(call);
  if (view.final) return {.action = view.action};
  const bool ruled =
      std::ranges::any_of(rules_, [&](const Rule& rule) { return rule.number == call.number; });
  const bool guarded = (may_refuse(call.decision.guard, context_) || !own_process(call).empty() ||
                        !refused_there(call).empty()) &&
                       view.action.kind == Action::Kind::allow;
  return {.conditional = ruled || guarded, .action = view.action};
}

/// Arranges the allow rules of one call argument by argument: the rules that matched decide what
/// the guard still checks.
struct Ruling::Walk {
  const Ruling& ruling;
  Tree& tree;
  const Call& call;
  const Standpoint& view;

  [[nodiscard]] Tree::Id end(unsigned vouched, bool granted) const {
    if (view.action.kind != Action::Kind::allow && !granted) return tree.leaf(view.action);
    return guard_tree(tree, {.call = call,
                             .context = ruling.context_,
                             .vouched = vouched,
                             .by_name = view.by_name,
                             .spawns = view.spawns,
                             .spawn_refusal = view.spawn_refusal});
  }

  [[nodiscard]] Tree::Id match(const Rule& rule, Tree::Id yes, Tree::Id no) const {
    return rule.negated ? tree.any(rule.conditions, no, yes) : tree.any(rule.conditions, yes, no);
  }

  [[nodiscard]] bool concerns(const Rule& rule, unsigned argument, bool names_values) const {
    return rule.number == call.number && !rule.denies && rule.argument == argument &&
           rule.names_values == names_values;
  }

  /// The subtree for `argument` and the following ones.
  [[nodiscard]] Tree::Id from(unsigned argument, unsigned vouched, bool granted) const {
    const bool admitted = granted || view.action.kind == Action::Kind::allow;
    if (argument == 6 || (admitted && call.decision.guard == ArgumentGuard::none))
      return end(vouched, granted);
    bool naming = false;
    bool other = false;
    for (const Rule& rule : ruling.rules_) {
      naming |= concerns(rule, argument, true);
      other |= concerns(rule, argument, false);
    }
    Tree::Id node = from(argument + 1, vouched, granted);
    if (other && !granted) node = chain(argument, false, from(argument + 1, vouched, true), node);
    if (naming)
      node = chain(argument, true, from(argument + 1, vouched | 1U << argument, true), node);
    return node;
  }

  [[nodiscard]] Tree::Id chain(unsigned argument, bool names_values, Tree::Id yes,
                               Tree::Id no) const {
    for (const Rule& rule : ruling.rules_) {
      if (concerns(rule, argument, names_values)) no = match(rule, yes, no);
    }
    return no;
  }
};

Tree::Id Ruling::tree(Tree& tree, const Call& call) const {
  const Standpoint view = standpoint(call);
  if (view.final) return tree.leaf(view.action);
  const Walk walk{*this, tree, call, view};
  Tree::Id node = walk.from(0, 0, false);
  for (const Rule& rule : rules_) {
    if (rule.number != call.number || !rule.denies) continue;
    const Tree::Id refusal = tree.leaf(
        {.kind = Action::Kind::deny, .error = EPERM, .cause = Cause::rule, .index = rule.index});
    node = walk.match(rule, refusal, node);
  }
  for (const Condition& own : own_process(call))
    node = tree.branch(
        own, node,
        tree.leaf({.kind = Action::Kind::deny, .error = EPERM, .cause = Cause::outside}));
  for (const Condition& form : refused_there(call))
    node = tree.branch(
        form, tree.leaf({.kind = Action::Kind::quiet, .error = EINVAL, .cause = Cause::outside}),
        node);
  return node;
}

}  // namespace sbx::plan

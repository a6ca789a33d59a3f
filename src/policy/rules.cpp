#include "policy/rules.hpp"

#include <algorithm>
#include <array>

#include "policy/symbols.hpp"

namespace sbx::policy {
namespace {

constexpr auto kOperators =
    std::to_array<std::string_view>({"eq", "ne", "lt", "le", "gt", "ge", "in", "masked-eq"});
constexpr auto kActions = std::to_array<std::string_view>({"allow", "deny"});
constexpr std::size_t kMostValues = 256;

/// Reads the members of one rule; `right` stays true while nothing was reported.
class RuleReader {
 public:
  RuleReader(const Node& node, Reading& reading) : node_(node), reading_(reading) {}

  std::optional<SyscallRule> read() {
    const auto* table = node_.as<Node::Table>();
    if (table == nullptr) {
      wrong(node_, "wrong-type", "a rule is a table, not " + std::string(kind_name(node_)),
            "write [[syscalls.rule]] above its name");
      return std::nullopt;
    }
    constexpr auto kKnown = std::to_array<std::string_view>({"name", "when", "action", "reason"});
    report_unknown(*table, kKnown, "syscalls.rule", reading_);
    read_name();
    read_action();
    read_reason();
    if (const Member* when = node_.member("when")) read_condition(when->value);
    return right_ ? std::optional(std::move(rule_)) : std::nullopt;
  }

 private:
  void wrong(const Node& at, std::string code, std::string message, std::string hint) {
    right_ = false;
    reading_.report(at, {std::move(code), "syscalls.rule: " + std::move(message), std::move(hint)});
  }

  /// A string member; null when there is none or it was reported.
  const std::string* text_of(const Node& table, std::string_view name, bool required,
                             std::string_view hint) {
    const Member* member = table.member(name);
    if (member == nullptr) {
      if (required)
        wrong(table, "missing-key", "a rule without " + std::string(name), std::string(hint));
      return nullptr;
    }
    const auto* text = member->value.as<std::string>();
    if (text == nullptr) {
      wrong(member->value, "wrong-type",
            std::string(name) + " = " + short_text(member->value) + " is not a string",
            std::string(hint));
    }
    return text;
  }

  void read_name() {
    const auto* name = text_of(node_, "name", true, "write name = \"socket\"");
    if (name == nullptr) return;
    auto checked = check_entry(Entry::call, *name, {});
    if (checked && name->starts_with('@')) {
      checked = std::unexpected(
          Problem{"bad-call-name", quoted(*name) + " is a group, a rule is about one system call",
                  "groups go to syscalls.allow and syscalls.deny"});
    }
    if (!checked) {
      const Problem& problem = checked.error();
      return wrong(node_.member("name")->value, problem.code, problem.message, problem.hint);
    }
    rule_.name = *name;
  }

  template <std::size_t N>
  std::optional<std::size_t> word(const Node& table, std::string_view name,
                                  const std::array<std::string_view, N>& known) {
    std::string list;
    for (const std::string_view one : known) list += (list.empty() ? "" : ", ") + quoted(one);
    const auto* text = text_of(table, name, true, "one of " + list);
    if (text == nullptr) return std::nullopt;
    const auto found = std::ranges::find(known, *text);
    if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
    const std::string_view meant = nearest(*text, known);
    const Node& value = table.member(name)->value;
    wrong(value, "unknown-word",
          std::string(name) + " = " + short_text(value) + " is not one of " + list,
          meant.empty() ? "write " + std::string(name) + " = " + quoted(known[0])
                        : "did you mean " + quoted(meant) + "?");
    return std::nullopt;
  }

  void read_action() {
    if (const auto index = word(node_, "action", kActions))
      rule_.action = static_cast<RuleAction>(*index);
  }

  void read_reason() {
    if (const auto* reason = text_of(node_, "reason", false, "write reason = \"…\""))
      rule_.reason = *reason;
  }

  void read_condition(const Node& when) {
    const auto* table = when.as<Node::Table>();
    if (table == nullptr) {
      return wrong(when, "wrong-type", "when is a table, not " + std::string(kind_name(when)),
                   "write when = { arg = 0, op = \"eq\", value = \"AF_UNIX\" }");
    }
    constexpr auto kKnown = std::to_array<std::string_view>({"arg", "op", "value"});
    report_unknown(*table, kKnown, "syscalls.rule.when", reading_);
    rule_.has_condition = true;
    read_argument(when);
    const auto index = word(when, "op", kOperators);
    if (!index) return;
    rule_.op = static_cast<RuleOperator>(*index);
    if (const Member* value = when.member("value")) return read_values(value->value);
    wrong(when, "missing-key", "a condition without value", "write value = \"AF_UNIX\"");
  }

  void read_argument(const Node& when) {
    constexpr std::int64_t kLastArgument = 5;
    const Member* member = when.member("arg");
    if (member == nullptr)
      return wrong(when, "missing-key", "a condition without arg", "write arg = 0 for the first");
    const auto* number = member->value.as<std::int64_t>();
    if (number == nullptr) {
      return wrong(member->value, "wrong-type",
                   "arg = " + short_text(member->value) + " is not an integer",
                   "write arg = 0 for the first");
    }
    if (*number < 0 || *number > kLastArgument) {
      return wrong(member->value, "out-of-range",
                   "arg = " + short_text(member->value) + " is not from 0 to 5",
                   "write arg = 0 for the first");
    }
    rule_.argument = static_cast<int>(*number);
  }

  void read_values(const Node& value) {
    const auto* list = value.as<Node::List>();
    const bool wants_list = rule_.op == RuleOperator::in || rule_.op == RuleOperator::masked_eq;
    if ((list != nullptr) != wants_list ||
        (list != nullptr && (list->empty() || list->size() > kMostValues))) {
      return wrong(value, "wrong-type",
                   "value = " + short_text(value) + " does not fit the operator",
                   wants_list ? "write a list, as value = [1, 2]"
                              : "write one value, or op = \"in\" for several");
    }
    if (rule_.op == RuleOperator::masked_eq && list->size() != 2) {
      return wrong(value, "wrong-type", "masked-eq takes a mask and a value",
                   "write value = [0xFF, 1]");
    }
    if (list == nullptr) return read_number(value);
    for (const Node& item : *list) read_number(item);
  }

  void read_number(const Node& node) {
    if (const auto* number = node.as<std::int64_t>()) {
      // Arguments are registers: -1 is all ones there too.
      rule_.values.push_back(static_cast<std::uint64_t>(*number));
      rule_.symbols.push_back(std::to_string(*number));
      return;
    }
    const auto* symbol = node.as<std::string>();
    const auto number = symbol != nullptr ? symbol_value(*symbol) : std::nullopt;
    if (!number) {
      const std::string_view meant =
          symbol != nullptr ? suggest_symbol(*symbol) : std::string_view{};
      return wrong(node, symbol != nullptr ? "unknown-symbol" : "wrong-type",
                   short_text(node) + " is not a value of an argument",
                   meant.empty() ? "write the number" : "did you mean " + quoted(meant) + "?");
    }
    rule_.values.push_back(*number);
    rule_.symbols.push_back(*symbol);
  }

  const Node& node_;
  Reading& reading_;
  SyscallRule rule_;
  bool right_ = true;
};

}  // namespace

std::optional<SyscallRule> read_rule(const Node& node, Reading& reading) {
  return RuleReader(node, reading).read();
}

std::string rule_toml(const SyscallRule& rule) {
  std::string text = "{ name = " + quoted(rule.name);
  if (rule.has_condition) {
    text += ", when = { arg = " + std::to_string(rule.argument) +
            ", op = " + quoted(kOperators.at(static_cast<std::size_t>(rule.op))) + ", value = ";
    std::string values;
    for (std::size_t i = 0; i < rule.values.size(); ++i) {
      const bool symbolic =
          i < rule.symbols.size() && symbol_value(rule.symbols[i]) == rule.values[i];
      values += i == 0 ? "" : ", ";
      values += symbolic ? quoted(rule.symbols[i])
                         : std::to_string(static_cast<std::int64_t>(rule.values[i]));
    }
    const bool list = rule.op == RuleOperator::in || rule.op == RuleOperator::masked_eq;
    text += (list ? "[" + values + "]" : values) + " }";
  }
  text += ", action = " + quoted(kActions.at(static_cast<std::size_t>(rule.action)));
  if (!rule.reason.empty()) text += ", reason = " + quoted(rule.reason);
  return text + " }";
}

}  // namespace sbx::policy

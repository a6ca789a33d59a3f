#include "policy/compare.hpp"

#include <algorithm>
#include <type_traits>

#include "policy/syntax.hpp"
#include "policy/values.hpp"
#include "policy/write.hpp"

namespace sbx::policy {
namespace {

template <class T>
bool contains(const SourcedList<T>& list, const T& value) {
  return std::ranges::any_of(list, [&](const auto& entry) { return entry.value == value; });
}

/// Compares one key.
class KeyComparison {
 public:
  KeyComparison(const Key& key, std::vector<Difference>& list) : key_(key), list_(list) {}

  template <class T>
  void scalar(const T& first, const T& second, const Origin& at, const std::string& first_toml,
              const std::string& second_toml) {
    if (first == second) return;
    add(!is_ordered(key_.order)                  ? Direction::different
        : allows_more(key_.order, first, second) ? Direction::wider
                                                 : Direction::narrower,
        said(second_toml) + " instead of " + said(first_toml), at);
  }

  template <class T>
  void list(const SourcedList<T>& first, const SourcedList<T>& second) {
    if (key_.order == Order::subset_of_all && first.empty() != second.empty()) {
      const bool any = second.empty();
      add(any ? Direction::wider : Direction::narrower, any ? "any" : "only " + all(second),
          any ? first.front().origin : second.front().origin);
      return;
    }
    for (const auto& entry : second)
      if (!covers(first, entry.value)) added(entry);
    for (const auto& entry : first)
      if (!covers(second, entry.value)) gone(entry);
  }

  template <class Table>
  void table(const Table& first, const Table& second) {
    for (const auto& [name, value] : second) {
      const auto before = first.find(name);
      if (before == first.end())
        add(Direction::different, "also " + name + " = " + text(value.value), value.origin);
      else if (before->second.value != value.value)
        add(Direction::different,
            name + " = " + text(value.value) + " instead of " + text(before->second.value),
            value.origin);
    }
    for (const auto& [name, value] : first)
      if (!second.contains(name)) add(Direction::different, "no longer " + name, value.origin);
  }

 private:
  /// The same entry, or the same grant that allows more.
  template <class T>
  static bool covers(const SourcedList<T>& list, const T& value) {
    if (contains(list, value)) return true;
    if constexpr (std::is_same_v<T, PathGrant>) {
      T wider = value;
      wider.special = true;
      return contains(list, wider);
    }
    return false;
  }

  static std::string said(const std::string& toml) { return toml.empty() ? "nothing" : toml; }
  static std::string text(const std::string& value) { return quoted(value); }
  static std::string text(const std::vector<std::string>& values) {
    std::string list;
    for (const std::string& value : values) (list += list.empty() ? "" : ", ") += quoted(value);
    return "[" + list + "]";
  }

  template <class T>
  static std::string all(const SourcedList<T>& list) {
    std::string text;
    for (const auto& entry : list) (text += text.empty() ? "" : ", ") += entry_toml(entry.value);
    return text;
  }

  /// Whether an entry takes something away: a hidden name, a denied call, a rule that denies.
  template <class T>
  [[nodiscard]] bool takes_away(const T& value) const {
    if constexpr (std::is_same_v<T, SyscallRule>) return value.action == RuleAction::deny;
    return key_.order == Order::superset;
  }

  template <class T>
  void added(const Sourced<T>& entry) {
    const auto direction = takes_away(entry.value) ? Direction::narrower : Direction::wider;
    add(key_.order == Order::fixed ? Direction::different : direction,
        "also " + entry_toml(entry.value), entry.origin);
  }

  template <class T>
  void gone(const Sourced<T>& entry) {
    const auto direction = takes_away(entry.value) ? Direction::wider : Direction::narrower;
    add(key_.order == Order::fixed ? Direction::different : direction,
        "no longer " + entry_toml(entry.value), entry.origin);
  }

  void add(Direction direction, std::string words, const Origin& at) {
    list_.push_back({.key = &key_, .direction = direction, .words = std::move(words), .at = at});
  }

  const Key& key_;
  std::vector<Difference>& list_;
};

}  // namespace

std::vector<Difference> compare(const Policy& first, const Policy& second) {
  std::vector<Difference> list;
  for (const Key& key : keys()) {
    if (key.order == Order::free) continue;
    KeyComparison comparison(key, list);
    const Slot before = slot_of(key, first);
    const Slot after = slot_of(key, second);
    std::visit(
        [&](const auto& at) {
          using At = std::decay_t<decltype(at)>;
          if constexpr (std::is_same_v<At, std::monostate>)
            return;
          else if constexpr (std::is_same_v<At, Choice>)
            comparison.scalar(*std::get<Choice>(before).value, *at.value, *at.origin,
                              scalar_toml(key, before), scalar_toml(key, after));
          else if constexpr (requires { at->value; })
            comparison.scalar(std::get<At>(before)->value, at->value, at->origin,
                              scalar_toml(key, before), scalar_toml(key, after));
          else if constexpr (requires { at->contains(""); })
            comparison.table(*std::get<At>(before), *at);
          else
            comparison.list(*std::get<At>(before), *at);
        },
        after);
  }
  return list;
}

}  // namespace sbx::policy

#include "policy/narrowing.hpp"

#include <algorithm>
#include <type_traits>

#include "policy/network_match.hpp"
#include "policy/rules.hpp"
#include "policy/syntax.hpp"
#include "policy/values.hpp"
#include "policy/write.hpp"

namespace sbx::policy {
namespace {

/// Collects what one key widens.
class KeyCheck {
 public:
  KeyCheck(const Key& key, const Seal& seal, const Origin& layer, Findings& findings)
      : key_(key), seal_(seal), layer_(layer), findings_(findings) {}

  template <class T>
  void scalar(const T& sealed, const Origin& sealed_at, const T& now, const Origin& now_at,
              const std::string& sealed_toml, const std::string& now_toml) {
    const bool ordered = is_ordered(key_.order);
    const bool wider = ordered ? allows_more(key_.order, sealed, now) : now != sealed;
    if (!wider) return;
    add(now_at, now_toml + (ordered ? " allows more than " : " changes ") + sealed_toml, sealed_at);
  }

  template <class T>
  void list(const SourcedList<T>& sealed, const SourcedList<T>& now) {
    const bool from_all = key_.order == Order::subset_of_all && sealed.empty();
    if (key_.order == Order::subset_of_all && !sealed.empty() && now.empty()) {
      add(layer_, "the empty list allows more than the one", sealed.front().origin);
    }
    if (key_.order == Order::subset || (key_.order == Order::subset_of_all && !from_all))
      only_sealed(sealed, now);
    if (key_.order == Order::superset || key_.order == Order::rules) all_sealed(sealed, now);
    if constexpr (std::is_same_v<T, SyscallRule>) {
      for (const auto& rule : now) {
        if (rule.value.action == RuleAction::allow && !contains(sealed, rule.value))
          add_entry(rule);
      }
    }
  }

  template <class Table>
  void table(const Table& sealed, const Table& now) {
    for (const auto& [name, value] : now) {
      const auto before = sealed.find(name);
      if (before == sealed.end()) {
        add(value.origin, name + " is new", seal_.place);
      } else if (before->second.value != value.value) {
        add(value.origin, name + " changes", before->second.origin);
      }
    }
    for (const auto& [name, value] : sealed) {
      if (!now.contains(name)) add(layer_, name + " is removed", value.origin);
    }
  }

 private:
  template <class T>
  static bool contains(const SourcedList<T>& list, const T& value) {
    return std::ranges::any_of(list, [&](const auto& there) {
      // `optional` does not change what a grant allows.
      if constexpr (std::is_same_v<T, PathGrant>)
        return there.value.source == value.source && there.value.target == value.target &&
               there.value.special >= value.special;
      else
        return there.value == value;
    });
  }

  template <class T>
  void add_entry(const Sourced<T>& entry) {
    add(entry.origin, entry_toml(entry.value) + " is not in what was locked", seal_.place);
  }

  /// Destinations are compared by what they reach: a name below a wildcard, an inner prefix and
  /// fewer ports narrow.
  void only_reached(const SourcedList<std::string>& sealed, const SourcedList<std::string>& now) {
    std::vector<NetworkRule> rules;
    for (const auto& entry : sealed) {
      if (auto rule = parse_network_rule(entry.value)) rules.push_back(std::move(*rule));
    }
    for (const auto& entry : now) {
      const auto rule = parse_network_rule(entry.value);
      if (!rule || !covered(*rule, rules)) add_entry(entry);
    }
  }

  template <class T>
  void only_sealed(const SourcedList<T>& sealed, const SourcedList<T>& now) {
    if constexpr (std::is_same_v<T, std::string>) {
      if (key_.entry == Entry::destination) return only_reached(sealed, now);
    }
    for (const auto& entry : now) {
      if (!contains(sealed, entry.value)) add_entry(entry);
    }
  }

  template <class T>
  void all_sealed(const SourcedList<T>& sealed, const SourcedList<T>& now) {
    // A list that was replaced lacks all of them: that is one finding.
    const auto is_gone = [&](const auto& entry) { return !contains(now, entry.value); };
    const auto gone = std::ranges::count_if(sealed, is_gone);
    for (const auto& entry : sealed) {
      if (!is_gone(entry)) continue;
      const std::string others =
          gone > 1 ? " and " + std::to_string(gone - 1) + " others are gone" : " is gone";
      return add(layer_, entry_toml(entry.value) + others, entry.origin);
    }
  }

  void add(const Origin& at, const std::string& what, const Origin& sealed_at) {
    std::string message = std::string(key_.name) + ": " + what + " of " + sealed_at.text();
    if (sealed_at == seal_.place) message = std::string(key_.name) + ": " + what;
    findings_.push_back(
        Error{.kind = ErrorKind::policy,
              .code = "widens-locked",
              .message = message + ", and the policy is locked at " + seal_.place.text(),
              .origin = at,
              .hint = "a layer after a locked policy can only narrow it: leave this out"});
  }

  const Key& key_;
  const Seal& seal_;
  const Origin& layer_;
  Findings& findings_;
};

}  // namespace

Findings widenings(const Seal& seal, const Policy& now, const Origin& layer) {
  Findings findings;
  for (const Key& key : keys()) {
    if (key.order == Order::free) continue;
    KeyCheck check(key, seal, layer, findings);
    const Slot before = slot_of(key, seal.policy);
    const Slot after = slot_of(key, now);
    std::visit(
        [&](const auto& at) {
          using At = std::decay_t<decltype(at)>;
          if constexpr (std::is_same_v<At, std::monostate>)
            return;
          else if constexpr (std::is_same_v<At, Choice>) {
            const auto& sealed = std::get<Choice>(before);
            check.scalar(*sealed.value, *sealed.origin, *at.value, *at.origin,
                         scalar_toml(key, before), scalar_toml(key, after));
          } else {
            const auto& sealed = *std::get<At>(before);
            if constexpr (requires { at->value; }) {
              check.scalar(sealed.value, sealed.origin, at->value, at->origin,
                           scalar_toml(key, before), scalar_toml(key, after));
            } else if constexpr (requires { at->contains(""); })
              check.table(sealed, *at);
            else
              check.list(sealed, *at);
          }
        },
        after);
  }
  return findings;
}

}  // namespace sbx::policy

#include "policy/write.hpp"

#include <type_traits>

#include "policy/apply.hpp"
#include "policy/keys.hpp"
#include "policy/rules.hpp"
#include "policy/syntax.hpp"
#include "policy/values.hpp"

namespace sbx::policy {
namespace {

std::string list_toml(const std::vector<std::string>& entries) {
  std::string text;
  for (const std::string& entry : entries) (text += text.empty() ? "" : ", ") += entry;
  return "[" + text + "]";
}

template <class T>
std::string list_toml(const SourcedList<T>& list) {
  constexpr std::size_t kFitsOneLine = 3;
  std::vector<std::string> entries;
  for (const auto& entry : list) entries.push_back(entry_toml(entry.value));
  if (entries.size() <= kFitsOneLine && !std::is_same_v<T, SyscallRule>) return list_toml(entries);
  std::string text = "[";
  for (const std::string& entry : entries) (text += "\n  ") += entry + ",";
  return text + (entries.empty() ? "]" : "\n]");
}

std::string member_toml(const std::string& value) {
  return quoted(value);
}
std::string member_toml(const std::vector<std::string>& value) {
  std::vector<std::string> entries;
  for (const std::string& one : value) entries.push_back(quoted(one));
  return list_toml(entries);
}

/// Writes the entries of a table, and the entries of the key's default that it lacks.
template <class Table>
std::string table_toml(const Table& table, const Table& initial) {
  std::vector<std::string> removed;
  for (const auto& [name, value] : initial) {
    if (!table.contains(name)) removed.push_back(quoted(name));
  }
  std::string text;
  if (!removed.empty()) text = "unset = " + list_toml(removed);
  for (const auto& [name, value] : table) {
    ((text += text.empty() ? "" : ", ") += key_text(name)) += " = " + member_toml(value.value);
  }
  return text.empty() ? "{}" : "{ " + text + " }";
}

std::string value_beside(const Key& key, const Policy& policy, const Policy& initial) {
  if (key.type == Type::schema) return "1";
  const Slot slot = slot_of(key, policy);
  return std::visit(
      [&](const auto& at) -> std::string {
        using At = std::decay_t<decltype(at)>;
        if constexpr (std::is_same_v<At, TextTable*> || std::is_same_v<At, ListTable*>)
          return table_toml(*at, *std::get<At>(slot_of(key, initial)));
        else if constexpr (requires { list_toml(*at); })
          return key.entry == Entry::hidden ? "{ replace = " + list_toml(*at) + " }"
                                            : list_toml(*at);
        else
          return scalar_toml(key, slot);
      },
      slot);
}

template <class Left, class Right>
bool same_values(const Left& left, const Right& right) {
  if constexpr (requires { left.value; })
    return left.value == right.value;
  else if constexpr (requires { left.contains(""); })
    return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                      [](const auto& a, const auto& b) {
                        return a.first == b.first && a.second.value == b.second.value;
                      });
  else
    return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                      [](const auto& a, const auto& b) { return a.value == b.value; });
}

}  // namespace

std::string entry_toml(const std::string& text) {
  return quoted(text);
}

std::string entry_toml(const PathGrant& grant) {
  if (grant.target.empty() && !grant.optional && !grant.special) return quoted(grant.source);
  std::string text = "{ source = " + quoted(grant.source);
  if (!grant.target.empty()) text += ", target = " + quoted(grant.target);
  if (grant.optional) text += ", optional = true";
  if (grant.special) text += ", special = true";
  return text + " }";
}

std::string entry_toml(const SyscallRule& rule) {
  return rule_toml(rule);
}

std::string value_toml(const Key& key, const Policy& policy) {
  return key.type == Type::parents ? "[]" : value_beside(key, policy, initial_policy());
}

std::vector<SaidValue> said_values(const Key& key, const Policy& policy) {
  std::vector<SaidValue> list;
  const Slot slot = slot_of(key, policy);
  std::visit(
      [&](const auto& at) {
        using At = std::decay_t<decltype(at)>;
        if constexpr (std::is_same_v<At, std::monostate>)
          return;
        else if constexpr (std::is_same_v<At, Choice>)
          list.push_back({.name = {}, .toml = scalar_toml(key, slot), .at = *at.origin});
        else if constexpr (requires { at->value; })
          list.push_back({.name = {}, .toml = scalar_toml(key, slot), .at = at->origin});
        else if constexpr (requires { at->contains(""); }) {
          for (const auto& [name, value] : *at)
            list.push_back(
                {.name = key_text(name), .toml = member_toml(value.value), .at = value.origin});
        } else {
          for (const auto& entry : *at)
            list.push_back({.name = {}, .toml = entry_toml(entry.value), .at = entry.origin});
        }
      },
      slot);
  return list;
}

std::string write(const Policy& policy) {
  const Policy initial = initial_policy();
  std::string text;
  std::string_view section;
  for (const Key& key : keys()) {
    if (key.type == Type::parents) continue;  // their settings are in the policy already
    const auto dot = key.name.rfind('.');
    const std::string_view key_section =
        dot == std::string_view::npos ? std::string_view{} : key.name.substr(0, dot);
    if (key_section != section) text += "\n[" + std::string(key_section) + "]\n";
    section = key_section;
    text += std::string(key.name.substr(dot == std::string_view::npos ? 0 : dot + 1)) + " = " +
            value_beside(key, policy, initial) + "\n";
  }
  return text;
}

namespace {

/// The directory that "~" meant in default.toml; empty if the policy doesn't have its list.
std::string home_in(const Policy& policy) {
  constexpr std::string_view kInHome = "/.config/git/credentials";  // the first of them
  for (const Sourced<std::string>& path : policy.filesystem.deny)
    if (path.origin.layer == Layer::builtin && path.value.ends_with(kInHome))
      return path.value.substr(0, path.value.size() - kInHome.size());
  return {};
}

}  // namespace

std::string write_for_hash(const Policy& policy) {
  const std::string text = write(policy);
  const std::string home = quoted(home_in(policy));
  const std::string_view begins(home.data(), home.size() - 1);  // with its first quotation mark
  if (begins.size() < 2) return text;
  std::string folded;
  std::size_t done = 0;
  for (auto at = text.find(begins); at != std::string::npos; at = text.find(begins, at + 1)) {
    const char next = text[at + begins.size()];
    if (next != '/' && next != '"') continue;
    folded += text.substr(done, at - done) + "\"~";
    done = at + begins.size();
  }
  return folded + text.substr(done);
}

std::string initial_toml(const Key& key) {
  if (key.type == Type::parents) return "[]";
  const Policy initial = initial_policy();
  return value_beside(key, initial, Policy{});
}

bool same_rules(const Policy& left, const Policy& right) {
  for (const Key& key : keys()) {
    const Slot one = slot_of(key, left);
    const Slot other = slot_of(key, right);
    const bool same = std::visit(
        [&](const auto& at) {
          using At = std::decay_t<decltype(at)>;
          if constexpr (std::is_same_v<At, std::monostate>)
            return true;
          else if constexpr (std::is_same_v<At, Choice>)
            return *at.value == *std::get<Choice>(other).value;
          else
            return same_values(*at, *std::get<At>(other));
        },
        one);
    if (!same) return false;
  }
  return true;
}

}  // namespace sbx::policy

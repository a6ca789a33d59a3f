#include "policy/enforceable.hpp"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "policy/keys.hpp"
#include "policy/values.hpp"

namespace sbx::policy {
namespace {

bool asked_for(const Origin& origin) {
  return origin.layer == Layer::file || origin.layer == Layer::command_line;
}

bool is_inert(const Key& key, const Slot& slot) {
  std::string text = scalar_toml(key, slot);
  if (text.size() >= 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
  if (text.empty()) return true;  // a path that was not given
  return std::ranges::any_of(split(key.missing.inert, '|'),
                             [&](std::string_view inert) { return inert == text; });
}

/// The place that the value in force comes from, the user's before others; nothing when there is no
/// value to enforce.
std::optional<Origin> place_in_force(const Key& key, const Policy& policy) {
  const Slot slot = slot_of(key, policy);
  return std::visit(
      [&](const auto& at) -> std::optional<Origin> {
        using At = std::decay_t<decltype(at)>;
        if constexpr (std::is_same_v<At, std::monostate>)
          return std::nullopt;
        else if constexpr (std::is_same_v<At, Choice>)
          return is_inert(key, slot) ? std::nullopt : std::optional(*at.origin);
        else if constexpr (requires { at->origin; })
          return is_inert(key, slot) ? std::nullopt : std::optional(at->origin);
        else if constexpr (requires { at->front(); }) {
          if (at->empty()) return std::nullopt;
          const auto users =
              std::ranges::find_if(*at, [](const auto& entry) { return asked_for(entry.origin); });
          return users == at->end() ? at->front().origin : users->origin;
        } else
          return at->empty() ? std::nullopt : std::optional(at->begin()->second.origin);
      },
      slot);
}

}  // namespace

std::vector<NotYet> not_yet(const Policy& policy) {
  std::vector<NotYet> list;
  for (const Key& key : keys()) {
    if (key.enforced()) continue;
    auto origin = place_in_force(key, policy);
    if (!origin) continue;
    list.push_back({.key = std::string(key.name),
                    .origin = *origin,
                    .why = std::string(key.missing.why),
                    .instead = std::string(key.missing.instead),
                    .from_user = asked_for(*origin)});
  }
  return list;
}

}  // namespace sbx::policy

#include "plan/files/deny.hpp"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>

#include "host/state.hpp"
#include "plan/files/path_text.hpp"
#include "plan/files/pattern.hpp"

namespace sbx::plan {
namespace {

struct Directory {
  std::string real;
  bool missing = false;
};

/// Canonical paths of directories, each looked up once: many rules lie in ~/.config.
class Directories {
 public:
  explicit Directories(const host::Files& files) : files_(files) {}

  /// Resolves the links in the part that exists; keeps the rest as written.
  const Directory& find(const std::string& path) {
    const auto known = known_.find(path);
    if (known != known_.end()) return known->second;
    return known_.emplace(path, look_up(path)).first->second;
  }

 private:
  Directory look_up(const std::string& path) {
    if (path == "/") return {.real = path};
    const Directory& above = find(parent_of(path));
    bool missing = above.missing;
    if (!missing) {
      auto found = files_.canonical(path);
      if (found) return {.real = std::move(*found)};
      // An unreadable directory is not missing: its entries may still be reachable by name.
      missing = found.error().errno_value == ENOENT;
    }
    return {.real = joined(above.real, base_name(path)), .missing = missing};
  }

  const host::Files& files_;
  std::map<std::string, Directory> known_;
};

/// The directory above the first wildcard, and the rest.
std::pair<std::string, std::string> split_at_wildcard(const std::string& path) {
  const std::size_t wild = find_wild(path);
  const std::size_t slash = path.rfind('/', wild);
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

/// Each pattern once, with the origin of its first mention.
class Rules {
 public:
  DenyRule& add(std::string pattern, const Origin& origin) {
    const auto [known, is_new] = known_.emplace(pattern, rules_.size());
    if (is_new) rules_.push_back({std::move(pattern), origin});
    return rules_[known->second];
  }
  [[nodiscard]] std::vector<DenyRule> take() { return std::move(rules_); }

 private:
  std::vector<DenyRule> rules_;
  std::map<std::string, std::size_t> known_;
};

}  // namespace

std::string describe(const DenyRule& rule) {
  return "filesystem.deny \"" + rule.pattern + "\" (" + rule.origin.text() + ")";
}

std::unexpected<Error> denied_grant(const std::string& doing, const DenyRule& rule,
                                    const Origin& origin) {
  return fail({.kind = ErrorKind::policy,
               .code = "denied-grant",
               .message = "cannot " + doing + ": " + describe(rule) + " hides it",
               .origin = origin,
               .hint = rule.own_state
                           ? "sbx keeps changes and records there; grant another directory"
                           : "deny wins over every grant; filesystem.deny = { replace = [ … ] } "
                             "names what stays hidden instead"});
}

std::vector<DenyRule> resolve_deny(const policy::SourcedList<std::string>& deny,
                                   const host::Host& host) {
  Rules rules;
  Directories directories(*host.files);
  for (const auto& each : deny) {
    if (!each.value.starts_with('/')) {
      rules.add(each.value, each.origin);
      continue;
    }
    const auto [directory, rest] = split_at_wildcard(each.value);
    const Directory& above = directories.find(directory);
    const std::string place = joined(above.real, rest);
    rules.add(place, each.origin);
    if (is_wild(rest)) {
      rules.add(each.value, each.origin);  // the wildcard may be part of a file's name
      continue;
    }
    if (above.missing) continue;
    const auto facts = host.files->look(place);
    if (!facts || facts->type != host::FileType::symlink) continue;
    if (auto target = host.files->canonical(place)) rules.add(std::move(*target), each.origin);
  }
  for (const std::string& state : host::state_directories(host)) {
    const Origin origin{.file = "sbx's own state", .layer = Layer::builtin};
    const std::string place = joined(directories.find(parent_of(state)).real, base_name(state));
    rules.add(place, origin).own_state = true;
    const auto facts = host.files->look(place);
    if (!facts || facts->type != host::FileType::symlink) continue;
    if (auto target = host.files->canonical(place))
      rules.add(std::move(*target), origin).own_state = true;
  }
  return rules.take();
}

DenyRules::DenyRules(std::vector<DenyRule> rules, const host::Files* files)
    : rules_(std::move(rules)), files_(files) {
  for (const DenyRule& rule : rules_) {
    Parsed parsed{.parts = parts_of(rule.pattern)};
    const std::string& last = parsed.last = parsed.parts.empty() ? "**" : parsed.parts.back();
    parsed.anywhere = parsed.parts.size() == 2 && parsed.parts.front() == "**" && last != "**";
    parsed.wild = is_wild(last);
    if (parsed.wild) wild_.push_back(parsed_.size());
    if (find_wild(last) == 0) begins_.fill(true);
    begins_.at(static_cast<unsigned char>(last.front())) = true;
    if (rule.pattern.starts_with('/') && std::ranges::none_of(parsed.parts, is_wild))
      literals_.push_back(&rule);
    parsed_.push_back(std::move(parsed));
  }
  for (std::size_t i = 0; i < parsed_.size(); ++i)
    if (!parsed_[i].wild) by_last_.emplace_back(parsed_[i].last, i);
  std::ranges::sort(by_last_);
}

bool DenyRules::matches(const Parsed& rule, std::string_view directory, std::string_view name) {
  if (!rule.wild && rule.last != name) return false;
  if (rule.parts.empty()) return true;
  if (rule.last != "**" && !name_matches(rule.last, std::string(name))) return false;
  if (rule.anywhere) return true;
  std::vector<std::string> path = parts_of(directory);
  path.emplace_back(name);
  if (rule.last != "**") return parts_match(rule.parts, path);
  // "a/**" matches everything below a, but not a itself.
  const std::vector<std::string> front(rule.parts.begin(), rule.parts.end() - 1);
  for (std::size_t length = 0; length < path.size(); ++length)
    if (parts_match(front, {path.begin(), path.begin() + static_cast<std::ptrdiff_t>(length)}))
      return true;
  return false;
}

const DenyRule* DenyRules::hides(std::string_view directory, std::string_view name) const {
  if (name.empty() || !begins_.at(static_cast<unsigned char>(name.front()))) return nullptr;
  const auto first_of = [&](const auto& candidates, const auto& position) {
    for (const auto& each : candidates)
      if (const std::size_t i = std::invoke(position, each);
          matches(parsed_[i], directory, name) && !is_environment(rules_[i], directory, name))
        return i;
    return rules_.size();
  };
  const std::size_t first = std::min(
      first_of(std::ranges::equal_range(by_last_, name, {}, &Named::first), &Named::second),
      first_of(wild_, std::identity{}));
  return first == rules_.size() ? nullptr : &rules_[first];
}

/// A program can't unhide a directory by adding a pyvenv.cfg: names that match a rule are never
/// brought out.
bool DenyRules::is_environment(const DenyRule& rule, std::string_view directory,
                               std::string_view name) const {
  if (files_ == nullptr || name != ".env" || rule.origin.layer != Layer::builtin) return false;
  const std::string place = joined(directory, name);
  const auto facts = files_->look(place);
  if (!facts || facts->type != host::FileType::directory) return false;
  const auto settings = files_->look(joined(place, "pyvenv.cfg"));
  return settings && settings->type == host::FileType::regular;
}

const DenyRule* DenyRules::covers(std::string_view path) const {
  std::string place(path);
  while (!empty() && place != "/" && !place.empty()) {
    if (const DenyRule* rule = hides(parent_of(place), base_name(place))) return rule;
    place = parent_of(place);
  }
  return nullptr;
}

const DenyRule* DenyRules::covers_literally(std::string_view path) const {
  for (const DenyRule* rule : literals_)
    if (is_within(path, rule->pattern)) return rule;
  return nullptr;
}

std::vector<std::string> DenyRules::names_anywhere() const {
  std::vector<std::string> names;
  for (const Parsed& rule : parsed_)
    if (rule.anywhere && !rule.wild) names.push_back(rule.parts.back());
  return names;
}

bool DenyRules::needs_lists() const {
  return std::ranges::any_of(parsed_, [](const Parsed& rule) {
    return rule.wild || (!rule.parts.empty() && rule.parts.front() == "**" && !rule.anywhere);
  });
}

}  // namespace sbx::plan

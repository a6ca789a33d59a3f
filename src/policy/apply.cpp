#include "policy/apply.hpp"

#include <algorithm>
#include <map>
#include <type_traits>

#include "policy/rules.hpp"
#include "policy/values.hpp"

namespace sbx::policy {
namespace {

constexpr std::size_t kMostEntries = 16'384;

template <class T>
void set_scalar(const Key& key, const Node& node, Reading& reading, T& value, Origin& origin) {
  if (auto read = read_value<T>(key, node, reading)) {
    value = std::move(*read);
    origin = reading.origin(node);
  }
}

/// A text of a list or table, checked; nothing when it was reported.
std::optional<std::string> read_entry(const Key& key, Entry entry, const Node& node,
                                      Reading& reading) {
  const auto* text = node.as<std::string>();
  if (text == nullptr) {
    const bool has_ports = entry == Entry::destination || entry == Entry::publication;
    reading.report(key, node,
                   {"wrong-type", expected_text("a string", node),
                    has_ports ? reading.cure(key.name, example(key)) : "put it in quotes"});
    return std::nullopt;
  }
  auto checked = check_entry(entry, *text, reading.base());
  if (!checked) {
    // Without a home there is nothing in it for a built-in to hide or to copy.
    const bool homeless =
        checked.error().code == "no-home" && reading.place().layer == Layer::builtin;
    if (!homeless) reading.report(key, node, std::move(checked).error());
    return std::nullopt;
  }
  return std::move(*checked);
}

std::optional<std::string> grant_path(const Key& key, const Node& node, Reading& reading) {
  auto path = read_entry(key, Entry::path, node, reading);
  if (!path) return std::nullopt;
  if (auto grantable = check_grantable(*path); !grantable) {
    reading.report(key, node, std::move(grantable).error());
    return std::nullopt;
  }
  return path;
}

std::optional<std::string> grant_target(const Key& key, const Node& node, Reading& reading) {
  const auto* text = node.as<std::string>();
  if (text != nullptr && !text->empty() && (*text)[0] != '/') {
    reading.report(key, node,
                   {"bad-path", "target " + short_text(node) + " is not absolute",
                    "a target is a path inside the sandbox, as \"/data\""});
    return std::nullopt;
  }
  return grant_path(key, node, reading);
}

/// Sets `flag` if the table has it; false when it is not a boolean.
bool read_flag(const Key& key, const Node& table, std::string_view name, bool& flag,
               Reading& reading) {
  const Member* const member = table.member(name);
  if (member == nullptr) return true;
  const auto* value = member->value.as<bool>();
  if (value == nullptr) {
    reading.report(key, member->value,
                   {"wrong-type",
                    std::string(name) + " = " + short_text(member->value) + " is not true or false",
                    "write " + std::string(name) + " = true"});
    return false;
  }
  flag = *value;
  return true;
}

/// "PATH" or { source = "PATH", target = "PATH", optional = true, special = true }.
std::optional<PathGrant> read_grant(const Key& key, const Node& node, Reading& reading) {
  const auto* table = node.as<Node::Table>();
  if (table == nullptr) {
    auto source = grant_path(key, node, reading);
    return source ? std::optional(PathGrant{.source = std::move(*source)}) : std::nullopt;
  }
  constexpr auto kKnown =
      std::to_array<std::string_view>({"source", "target", "optional", "special"});
  report_unknown(*table, kKnown, key.name, reading);
  PathGrant grant;
  bool right = true;
  if (const Member* member = node.member("source")) {
    auto source = grant_path(key, member->value, reading);
    right = source.has_value();
    grant.source = std::move(source).value_or("");
  } else {
    reading.report(key, node,
                   {"missing-key", "a grant without source", "write { source = \"/srv/data\" }"});
    right = false;
  }
  if (const Member* member = node.member("target")) {
    auto target = grant_target(key, member->value, reading);
    right = right && target.has_value();
    grant.target = std::move(target).value_or("");
    if (grant.target == grant.source) grant.target.clear();
  }
  right = read_flag(key, node, "optional", grant.optional, reading) && right;
  right = read_flag(key, node, "special", grant.special, reading) && right;
  if (grant.special && key.name != "filesystem.write") {
    reading.report(key, node.member("special")->value,
                   {"wrong-type", "special = true has no meaning in " + std::string(key.name),
                    "only filesystem.write lets the program make FIFOs and sockets on the host"});
    right = false;
  }
  return right ? std::optional(std::move(grant)) : std::nullopt;
}

template <class T>
std::optional<T> read_item(const Key& key, const Node& node, Reading& reading) {
  if constexpr (std::is_same_v<T, std::string>) return read_entry(key, key.entry, node, reading);
  if constexpr (std::is_same_v<T, PathGrant>) return read_grant(key, node, reading);
  if constexpr (std::is_same_v<T, SyscallRule>) return read_rule(node, reading);
}

/// Two entries of a list that name the same thing: a repeated grant replaces its `optional` and
/// `special`.
template <class T>
bool same_entry(const T& left, const T& right) {
  if constexpr (std::is_same_v<T, PathGrant>)
    return left.source == right.source && left.target == right.target;
  else
    return left == right;
}

/// The same for the same entries.
std::string index_of(const std::string& entry) {
  return entry;
}

std::string index_of(const PathGrant& grant) {
  return grant.source;
}

std::string index_of(const SyscallRule& rule) {
  std::string text = rule.name;
  for (const std::uint64_t value : rule.values) text += ' ' + std::to_string(value);
  return text;
}

/// Finds the same entry in a list that grows at its end. A long one is not looked through for each
/// new entry, a short one is not worth an index.
template <class T>
class SameEntry {
 public:
  explicit SameEntry(SourcedList<T>& list) : list_(list) {}

  auto find(const T& entry) {
    constexpr std::size_t kShort = 64;
    if (list_.size() < kShort)
      return std::ranges::find_if(
          list_, [&](const auto& there) { return same_entry(there.value, entry); });
    for (; indexed_ < list_.size(); ++indexed_)
      positions_.emplace(index_of(list_[indexed_].value), indexed_);
    const auto [first, last] = positions_.equal_range(index_of(entry));
    const auto found = std::find_if(
        first, last, [&](const auto& at) { return same_entry(list_[at.second].value, entry); });
    return found == last ? list_.end() : list_.begin() + static_cast<std::ptrdiff_t>(found->second);
  }

 private:
  SourcedList<T>& list_;
  std::multimap<std::string, std::size_t> positions_;
  std::size_t indexed_ = 0;
};

template <class T>
void append(const Key& key, const Node::List& items, Reading& reading, SourcedList<T>& list) {
  SameEntry<T> same_entries(list);
  for (const Node& item : items) {
    if (reading.overwhelmed()) return;
    auto read = read_item<T>(key, item, reading);
    if (!read) continue;
    if (const auto same = same_entries.find(*read); same != list.end()) {
      if (!(same->value == *read)) *same = {std::move(*read), reading.origin(item)};
      continue;
    }
    if (list.size() >= kMostEntries) {
      reading.report(key, item,
                     {"too-many-entries", "more than " + std::to_string(kMostEntries) + " entries",
                      "name directories instead of files, groups instead of names"});
      return;
    }
    list.push_back({std::move(*read), reading.origin(item)});
  }
}

/// The items of a list value, which may stand in { replace = […] }; null when it was reported.
const Node::List* list_items(const Key& key, const Node& value, Reading& reading, bool& replaces) {
  if (const auto* items = value.as<Node::List>()) return items;
  if (const Member* replace = value.member("replace")) {
    constexpr auto kKnown = std::to_array<std::string_view>({"replace"});
    report_unknown(*value.as<Node::Table>(), kKnown, key.name, reading);
    if (const auto* items = replace->value.as<Node::List>()) {
      replaces = true;
      return items;
    }
  }
  const bool one = value.as<std::string>() != nullptr;
  reading.report(
      key, value,
      {"wrong-type", expected_text(type_name(key), value),
       reading.cure(key.name, one ? "[" + short_text(value) + "]" : std::string(example(key)))});
  return nullptr;
}

template <class T>
void set_list(const Key& key, const Node& value, ListMode mode, Reading& reading,
              SourcedList<T>& list) {
  bool replaces = mode == ListMode::replace;
  // A named option may give one entry as it is: --read PATH.
  const bool bare = reading.typed() && mode == ListMode::append &&
                    value.as<Node::List>() == nullptr && value.member("replace") == nullptr;
  const Node::List single = bare ? Node::List{value} : Node::List{};
  const Node::List* items = bare ? &single : list_items(key, value, reading, replaces);
  if (items == nullptr) return;
  if (replaces) list.clear();
  append(key, *items, reading, list);
}

std::optional<std::string> read_member(const Key& key, const Node& node, Reading& reading,
                                       std::string_view) {
  const auto* text = node.as<std::string>();
  if (text != nullptr && text->find('\0') == std::string::npos) return *text;
  if (text != nullptr) {
    reading.report(
        key, node,
        {"nul-in-text", short_text(node) + " has a NUL in it", "the kernel ends every text there"});
  } else {
    reading.report(key, node, {"wrong-type", expected_text("a string", node), "put it in quotes"});
  }
  return std::nullopt;
}

std::optional<std::vector<std::string>> read_member_list(const Key& key, const Node& node,
                                                         Reading& reading, std::string_view name) {
  const auto* items = node.as<Node::List>();
  if (items == nullptr || items->empty()) {
    const bool one = node.as<std::string>() != nullptr;
    reading.report(key, node,
                   {"wrong-type", short_text(node) + " is not a list of program names",
                    reading.cure(name, one ? "[" + short_text(node) + "]" : "[\"python3\"]")});
    return std::nullopt;
  }
  std::vector<std::string> list;
  for (const Node& item : *items) {
    auto text = read_entry(key, key.entry, item, reading);
    if (!text) return std::nullopt;
    list.push_back(std::move(*text));
  }
  return list;
}

bool check_name(const Key& key, const Member& member, Reading& reading) {
  if (key.type == Type::text_table) {
    auto checked = check_entry(Entry::variable, member.name, {});
    if (checked) return true;
    reading.report(member.line, member.column, std::move(checked).error());
    return false;
  }
  const bool right =
      !member.name.empty() && member.name.find_first_of("./ \t\n") == std::string::npos;
  if (!right) {
    reading.report(
        member.line, member.column,
        {"bad-extension", short_text(Node{.value = member.name}) + " is not a file name extension",
         "write it without the dot, as py"});
  }
  return right;
}

/// unset = ["NAME"]; a variable can still be called "unset": its value is a string.
template <class Table>
void unset(const Key& key, const Node& value, Reading& reading, Table& table) {
  for (const Node& item : *value.as<Node::List>()) {
    if (const auto name = read_entry(key, Entry::any, item, reading)) table.erase(*name);
  }
}

template <class Table, class Read>
void set_table(const Key& key, const Node& value, Reading& reading, Table& table, Read read) {
  const auto* members = value.as<Node::Table>();
  if (members == nullptr) {
    reading.report(
        key, value,
        {"wrong-type", expected_text(type_name(key), value), reading.cure(key.name, example(key))});
    return;
  }
  for (const Member& member : *members) {
    if (reading.overwhelmed()) return;
    if (member.name == "unset" && member.value.as<Node::List>() != nullptr) {
      unset(key, member.value, reading, table);
      continue;
    }
    if (!check_name(key, member, reading)) continue;
    if (table.size() >= kMostEntries) {
      reading.report(
          key, member.value,
          {"too-many-entries", "more than " + std::to_string(kMostEntries) + " entries"});
      return;
    }
    if (auto text = read(key, member.value, reading, member.name)) {
      table[member.name] = {std::move(*text), reading.origin(member.line, member.column)};
    }
  }
}

struct Setter {
  const Key& key;
  const Node& value;
  ListMode mode;
  Reading& reading;

  void operator()(std::monostate) const {}
  template <class T>
  void operator()(Sourced<T>* at) const {
    set_scalar(key, value, reading, at->value, at->origin);
  }
  void operator()(Choice at) const { set_scalar(key, value, reading, *at.value, *at.origin); }
  template <class T>
  void operator()(SourcedList<T>* at) const {
    set_list(key, value, mode, reading, *at);
  }
  void operator()(TextTable* at) const { set_table(key, value, reading, *at, read_member); }
  void operator()(ListTable* at) const { set_table(key, value, reading, *at, read_member_list); }
};

}  // namespace

void apply(const Key& key, const Node& value, ListMode mode, Reading& reading, Policy& policy) {
  std::visit(Setter{key, value, mode, reading}, key.slot(policy));
}

Policy initial_policy() {
  Policy policy;
  for (const Key& key : keys()) set_initial(key, policy);
  return policy;
}

}  // namespace sbx::policy

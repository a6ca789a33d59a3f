#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policy/policy.hpp"

/// The one table of policy keys. Parser, writer, merge, locks, documentation, completions and
/// `--set` all read it.
namespace sbx::policy {

/// The TOML form of a value.
enum class Type : std::uint8_t {
  schema,   ///< the number of the format; of the text, not of the policy
  parents,  ///< `extends`; of the text too
  boolean,
  count,     ///< an integer
  number,    ///< may have a fraction
  size,      ///< "64K", "512M"
  duration,  ///< "250ms", "30s"
  word,      ///< one of a few
  text,
  texts,       ///< a list of strings
  grants,      ///< a list of paths or {source, target, optional}
  rules,       ///< [[syscalls.rule]]
  text_table,  ///< NAME = "text"
  list_table,  ///< NAME = ["text"]
};

/// What the strings in a value are.
enum class Entry : std::uint8_t {
  any,
  command,      ///< what may be typed as the top-level command
  variable,     ///< the name of an environment variable
  user,         ///< the name of the user inside
  call,         ///< a system call or @group
  destination,  ///< policy/network_rules
  publication,  ///< [ADDRESS:]HOST_PORT:PORT
  path,         ///< resolved to an absolute path
  inside,       ///< an absolute path of the sandbox's own view
  system,       ///< "host" or a path
  source,       ///< of the workspace: relative ones are kept, they are plan's to resolve
  hidden,       ///< a path or a pattern beginning with "**/"
  collected,    ///< a pattern relative to the workspace
};

/// How a later layer may change a key once a policy is locked.
enum class Order : std::uint8_t {
  free,     ///< allows nothing: may change
  fixed,    ///< has no order: can't change
  smaller,  ///< sizes, times, counts; words in the order of the table; false before true
  smaller_of_unlimited,  ///< as smaller, but 0 means unlimited
  larger,                ///< true before false
  subset,                ///< may only lose entries
  subset_of_all,         ///< as subset, but an empty list stands for everything
  superset,              ///< may only gain entries
  rules,                 ///< keeps every rule, may gain ones that deny
};

/// True if the values themselves have an order.
[[nodiscard]] constexpr bool is_ordered(Order order) {
  return order == Order::smaller || order == Order::smaller_of_unlimited || order == Order::larger;
}

/// True if `now` allows more than `before`; false for orders that are not of the values themselves.
template <class T>
[[nodiscard]] bool allows_more(Order order, const T& before, const T& now) {
  switch (order) {
    case Order::smaller:
      return now > before;
    case Order::smaller_of_unlimited:
      return before != T{} && (now == T{} || now > before);
    case Order::larger:
      return now < before;
    default:
      return false;
  }
}

/// An enumeration's place in a Policy: its underlying byte, which is an index into the key's words.
struct Choice {
  unsigned char* value = nullptr;
  Origin* origin = nullptr;
};
using TextTable = std::map<std::string, Sourced<std::string>>;
using ListTable = std::map<std::string, Sourced<std::vector<std::string>>>;

/// Where a key lives in a Policy.
using Slot = std::variant<std::monostate, Sourced<bool>*, Sourced<std::uint64_t>*, Sourced<double>*,
                          Sourced<Bytes>*, Sourced<Milliseconds>*, Sourced<std::string>*, Choice,
                          SourcedList<std::string>*, SourcedList<PathGrant>*,
                          SourcedList<SyscallRule>*, TextTable*, ListTable*>;

struct Key {
  std::string_view name;  ///< dotted: "limits.memory"
  Type type;
  Order order;
  Slot (*slot)(Policy& policy);
  /// the default, as TOML writes it but without quotes; of tables "name:value name:value"
  std::string_view initial;
  std::string_view accepts;        ///< "none|allow-list|host" of a word; "1ms..365d" of a quantity
  std::string_view documentation;  ///< one line
  Entry entry = Entry::any;

  [[nodiscard]] bool is_list() const {
    return type == Type::texts || type == Type::grants || type == Type::rules;
  }
  [[nodiscard]] bool is_table() const {
    return type == Type::text_table || type == Type::list_table;
  }
  /// "schema" and "extends" belong to a text; they can't be set on the command line.
  [[nodiscard]] bool of_text() const { return type == Type::schema || type == Type::parents; }
};

[[nodiscard]] std::span<const Key> keys();
/// The key with this dotted name, or null.
[[nodiscard]] const Key* find_key(std::string_view name);
/// True for "limits", "filesystem.workspace": a table that holds keys.
[[nodiscard]] bool is_section(std::string_view name);
/// The dotted name that was probably meant, or empty. `name` is dotted too.
[[nodiscard]] std::string_view suggest_key(std::string_view name);
/// The candidate nearest to `text` when it is near enough to be meant, else empty.
[[nodiscard]] std::string_view nearest(std::string_view text,
                                       std::span<const std::string_view> candidates);

/// "size", "list of paths": for documentation and messages.
[[nodiscard]] std::string_view type_name(const Key& key);
/// A value that would be right: `"512M"`, `["ptrace"]`.
[[nodiscard]] std::string_view example(const Key& key);
/// The words of a Type::word key, in the order of its enumeration.
[[nodiscard]] std::vector<std::string_view> words(const Key& key);
/// Splits at a separator; no parts for an empty text.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

/// The key's value in a finished policy, for reading only.
[[nodiscard]] Slot slot_of(const Key& key, const Policy& policy);

}  // namespace sbx::policy

#include "policy/keys.hpp"

#include <algorithm>
#include <array>

namespace sbx::policy {
namespace {

template <class T>
Slot slot(T& member) {
  return &member;
}
// Each of these enumerations has unsigned char under it, and a char may alias anything.
template <class T>
  requires std::is_enum_v<T>
Slot slot(Sourced<T>& member) {
  static_assert(std::is_same_v<std::underlying_type_t<T>, unsigned char>);
  return Choice{reinterpret_cast<unsigned char*>(&member.value), &member.origin};
}

#define SBX_AT(member) [](Policy& p) -> Slot { return slot(p.member); }
constexpr auto kOfText = [](Policy&) -> Slot { return std::monostate{}; };

// clang-format off: one key is one entry, in the order of sbx-policy(5).
constexpr auto kKeys = std::to_array<Key>({
  {"schema", Type::schema, Order::free, kOfText, "1", "1..1", "version of the format"},
  {"name", Type::text, Order::free, SBX_AT(name), "", "", "what the policy is called in records and messages; a file without it has its own name"},
  {"description", Type::text, Order::free, SBX_AT(description), "", "", "one sentence about what the policy is for"},
  {"extends", Type::parents, Order::free, kOfText, "", "", "policies to start from: built-in names, or paths relative to this file"},
  {"locked", Type::boolean, Order::larger, SBX_AT(locked), "false", "", "true seals what stands so far: later layers may only narrow it"},
  {"enforcement", Type::word, Order::smaller, SBX_AT(enforcement), "strict", "strict|best-effort", "what to do when this machine can't enforce a rule: strict refuses to run; best-effort is for rules that a run can do without, and this version has none: it refuses too"},
  {"isolation", Type::word, Order::smaller, SBX_AT(isolation), "namespaces", "namespaces|auto|landlock", "how a program is walled off: in namespaces; auto: in what this machine gives, namespaces first; landlock: without namespaces, behind Landlock, with a uid of its own for root in a container and else the caller's; sbx-security(7) says what that does not hold"},

  {"interpreters.allow", Type::texts, Order::subset_of_all, SBX_AT(interpreters.allow), "", "", "when not empty: only these may be the top-level command", Entry::command},
  {"interpreters.venv", Type::text, Order::fixed, SBX_AT(interpreters.venv), "", "", "a virtual environment whose interpreter and packages are used, read-only; empty: the project's own .venv, if the workspace shows one", Entry::path},
  {"interpreters.extensions", Type::list_table, Order::fixed, SBX_AT(interpreters.extensions),
    "R:Rscript bash:bash cjs:node js:node lua:lua mjs:node php:php pl:perl py:python3 r:Rscript rb:ruby sh:sh ts:tsx", "", "which interpreter runs a script with this file name extension", Entry::command},

  {"filesystem.system", Type::text, Order::fixed, SBX_AT(filesystem.system), "host", "", "\"host\": /usr, /bin, /lib* and a curated /etc, read-only; or a directory that holds a root file system", Entry::system},
  {"filesystem.read", Type::grants, Order::subset, SBX_AT(filesystem.read), "", "", "files and directories that can be read", Entry::path},
  {"filesystem.write", Type::grants, Order::subset, SBX_AT(filesystem.write), "", "", "files and directories that are changed on the host for real, while it runs", Entry::path},
  {"filesystem.deny", Type::texts, Order::superset, SBX_AT(filesystem.deny), "", "", "names and paths that stay hidden within what is granted; wins; by default the list of credentials of the policy default, to which others are added", Entry::hidden},
  {"filesystem.sockets", Type::texts, Order::subset, SBX_AT(filesystem.sockets), "", "", "unix sockets of the host that may be connected to", Entry::path},
  {"filesystem.scan", Type::count, Order::smaller, SBX_AT(filesystem.scan), "200000", "1..100000000", "entries looked at for denied names, hard links and foreign groups"},
  {"filesystem.landlock", Type::boolean, Order::larger, SBX_AT(filesystem.landlock), "true", "", "a second wall around files; false leaves its scopes only, and each open is 0.3 µs cheaper"},
  {"filesystem.seed", Type::texts, Order::subset, SBX_AT(filesystem.seed), "", "", "files copied into the new home, never brought back; of git's settings only the identity", Entry::path},
  {"filesystem.private", Type::texts, Order::subset, SBX_AT(filesystem.private_), "", "", "directories inside, absolute, that are empty at the beginning, can be written and are gone at the end, beside home and /tmp", Entry::inside},

  {"filesystem.workspace.source", Type::text, Order::fixed, SBX_AT(filesystem.workspace.source), ".", "", "the directory that is worked in, at the same path as on the host; relative to the working directory; where it is empty, also the home inside", Entry::source},
  {"filesystem.workspace.mode", Type::word, Order::smaller, SBX_AT(filesystem.workspace.mode), "empty", "empty|read-only|overlay|read-write", "what the program sees of it: nothing, the files, a copy-on-write view, or the live directory"},
  {"filesystem.outputs.collect", Type::texts, Order::subset, SBX_AT(filesystem.outputs.collect), "", "", "patterns below the workspace that --out may bring out", Entry::collected},
  {"filesystem.outputs.max_bytes", Type::size, Order::smaller, SBX_AT(filesystem.outputs.max_bytes), "256M", "0B..1024T", "most bytes that are brought out", Entry::any},
  {"filesystem.outputs.max_files", Type::count, Order::smaller, SBX_AT(filesystem.outputs.max_files), "1000", "0..100000000", "most files that are brought out", Entry::any},
  {"filesystem.outputs.max_depth", Type::count, Order::smaller, SBX_AT(filesystem.outputs.max_depth), "16", "1..1000", "deepest directory that is brought out", Entry::any},

  {"environment.user", Type::text, Order::fixed, SBX_AT(environment.user), "sandbox", "", "the name of the user inside, whose home is /home/NAME", Entry::user},
  {"environment.pass", Type::texts, Order::subset, SBX_AT(environment.pass), "", "", "variables taken by name from the caller; nothing else is inherited", Entry::variable},
  {"environment.set", Type::text_table, Order::fixed, SBX_AT(environment.set), "", "", "variables and their values", Entry::variable},

  {"syscalls.base", Type::word, Order::smaller, SBX_AT(syscalls.base), "default", "none|minimal|default", "the system calls to start from"},
  {"syscalls.allow", Type::texts, Order::subset, SBX_AT(syscalls.allow), "", "", "system calls and @groups added to the base", Entry::call},
  {"syscalls.deny", Type::texts, Order::superset, SBX_AT(syscalls.deny), "", "", "system calls and @groups taken away; wins over allow", Entry::call},
  {"syscalls.denied", Type::word, Order::smaller, SBX_AT(syscalls.denied), "errno", "kill|errno", "what a denied call does: end the run, or fail"},
  {"syscalls.rule", Type::rules, Order::rules, SBX_AT(syscalls.rules), "", "", "rules about the arguments of a system call"},

  {"network.mode", Type::word, Order::smaller, SBX_AT(network.mode), "none", "none|allow-list|host", "loopback only; named destinations; or the host's own network", Entry::any},
  {"network.allow", Type::texts, Order::subset, SBX_AT(network.allow), "", "", "destinations: \"api.example.com:443\", \"*.example.org:443\", \"10.1.0.0/16:5432\", \"udp://ntp.example.org:123\"", Entry::destination},
  {"network.private", Type::boolean, Order::smaller, SBX_AT(network.private_), "false", "", "may an allowed name lead to a private address?", Entry::any},
  {"network.match_sni", Type::boolean, Order::larger, SBX_AT(network.match_sni), "true", "", "on port 443 the TLS name must be the name that was dialled", Entry::any},
  {"network.publish", Type::texts, Order::subset, SBX_AT(network.publish), "", "", "ports of the sandbox on the host's loopback: \"127.0.0.1:8080:80\"", Entry::publication},
  {"network.named", Type::boolean, Order::larger, SBX_AT(network.named), "true", "", "name refused destinations in the record"},

  {"limits.wall_time", Type::duration, Order::smaller, SBX_AT(limits.wall_time), "30s", "1ms..8760h", "time from start to kill"},
  {"limits.cpu_time", Type::duration, Order::smaller, SBX_AT(limits.cpu_time), "30s", "1ms..8760h", "CPU time of all processes together"},
  {"limits.cpus", Type::number, Order::smaller, SBX_AT(limits.cpus), "1.0", "0.01..4096", "CPUs that can be busy at a time"},
  {"limits.memory", Type::size, Order::smaller, SBX_AT(limits.memory), "256M", "1M..1024T", "memory of all processes together, tmpfs included"},
  {"limits.processes", Type::count, Order::smaller, SBX_AT(limits.processes), "64", "1..4194303", "processes at a time; threads count"},
  {"limits.open_files", Type::count, Order::smaller, SBX_AT(limits.open_files), "256", "16..1048576", "files a process can have open"},
  {"limits.file_size", Type::size, Order::smaller, SBX_AT(limits.file_size), "64M", "0B..1024T", "largest file that can be written"},
  {"limits.disk", Type::size, Order::smaller, SBX_AT(limits.disk), "64M", "64K..1024T", "the private tmpfs: /tmp, home, /dev/shm and what is written over the workspace; it is memory too; what is written into live grants counts as well, in a host's tmpfs by its growth"},
  {"limits.disk_files", Type::count, Order::smaller, SBX_AT(limits.disk_files), "10000", "64..1000000000", "files and directories on it; new ones in live grants count as well"},
  {"limits.disk_on", Type::word, Order::fixed, SBX_AT(limits.disk_on), "memory", "memory|directory", "where it lies: memory, or a directory of the state home for builds larger than memory"},
  {"limits.grace", Type::duration, Order::smaller, SBX_AT(limits.grace), "0s", "0s..1h", "SIGTERM this long before the kill when wall_time ends"},

  {"output.stdout", Type::size, Order::smaller, SBX_AT(output.stdout_), "1M", "0B..1024T", "bytes of standard output that are captured (--json): the first and the last half"},
  {"output.stderr", Type::size, Order::smaller, SBX_AT(output.stderr_), "1M", "0B..1024T", "bytes of standard error that are captured (--json): the first and the last half"},
  {"output.passed", Type::size, Order::smaller, SBX_AT(output.passed), "256M", "0B..1024T", "bytes of each stream that are passed through at once"},
  {"output.exceed", Type::word, Order::smaller, SBX_AT(output.exceed), "auto", "kill|auto|truncate", "what more output does: end the run, get counted and dropped, or auto: end the run if the output is passed into a file or a pipe, else be dropped"},

  {"output.results", Type::size, Order::smaller, SBX_AT(output.results), "8M", "0B..8M", "bytes of all values that one cell of a session shows (sbx session eval); larger ones are left out and named"},
  {"session.idle", Type::duration, Order::smaller, SBX_AT(session.idle), "30m", "1ms..8760h", "a session ends when nobody used it for that long; a call that runs is use"},
  {"session.lifetime", Type::duration, Order::smaller, SBX_AT(session.lifetime), "8h", "1ms..8760h", "a session ends this long after its start, whatever runs in it"},
  {"session.calls", Type::count, Order::smaller, SBX_AT(session.calls), "16", "1..256", "calls of a session at a time, background ones included"},
  {"session.contexts", Type::count, Order::smaller, SBX_AT(session.contexts), "8", "0..64", "interpreters that keep their state in a session at a time"},
  {"session.cpu_time", Type::duration, Order::smaller_of_unlimited, SBX_AT(session.cpu_time), "0s", "0s..87600h", "CPU time of all calls of a session together; 0s: unlimited, and limits.cpu_time holds for each call"},
  {"session.log", Type::size, Order::smaller, SBX_AT(session.log), "8M", "0B..1024T", "bytes of output that are kept of each background call: the first and the last half"},
  {"session.put_aside", Type::boolean, Order::larger, SBX_AT(session.put_aside), "false", "", "rename a protected name that appears in a live directory to NAME.sbx-refused, every second and at the end of each call, whoever made it"},
});
// clang-format on
#undef SBX_AT

#define SBX_BUDGET(budget, type, initial, form) \
  static_assert(std::ranges::count(kKeys, "limits." #budget, &Key::name) == 1);
SBX_BUDGETS(SBX_BUDGET)
#undef SBX_BUDGET

struct Alias {
  std::string_view typed;
  std::string_view meant;
};
/// What other tools call it.
constexpr auto kAliases = std::to_array<Alias>({{"timeout", "limits.wall_time"},
                                                {"time", "limits.wall_time"},
                                                {"ram", "limits.memory"},
                                                {"mem", "limits.memory"},
                                                {"cpu", "limits.cpus"},
                                                {"pids", "limits.processes"},
                                                {"nproc", "limits.processes"},
                                                {"nofile", "limits.open_files"},
                                                {"env", "environment.set"},
                                                {"net", "network.mode"},
                                                {"hosts", "network.allow"},
                                                {"venv", "interpreters.venv"},
                                                {"inherits", "extends"}});

std::string_view last_part(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

/// The key that ends in `last`, of several the one that begins most like `name`.
std::string_view with_last_part(std::string_view last, std::string_view name) {
  std::string_view best;
  std::ptrdiff_t best_common = -1;
  for (const Key& key : kKeys) {
    if (last.empty() || last_part(key.name) != last) continue;
    const auto common = std::ranges::mismatch(key.name, name).in1 - key.name.begin();
    if (common > best_common) best = key.name;
    best_common = std::max(best_common, common);
  }
  return best;
}

/// Levenshtein with swaps of neighbours; both texts are short.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

}  // namespace

std::span<const Key> keys() {
  return kKeys;
}

const Key* find_key(std::string_view name) {
  const auto found = std::ranges::find(kKeys, name, &Key::name);
  return found == kKeys.end() ? nullptr : &*found;
}

bool is_section(std::string_view name) {
  return std::ranges::any_of(kKeys, [&](const Key& key) {
    return key.name.size() > name.size() && key.name.starts_with(name) &&
           key.name[name.size()] == '.';
  });
}

std::string_view nearest(std::string_view text, std::span<const std::string_view> candidates) {
  constexpr std::size_t kLongest = 64;
  if (text.empty() || text.size() > kLongest) return {};
  std::string_view best;
  // The dashes of an option are not part of what can be mistaken.
  const std::size_t size = text.size() - std::min(text.find_first_not_of('-'), text.size());
  std::size_t best_distance = std::max<std::size_t>(1, std::min<std::size_t>(3, size / 3)) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t steps = distance(text, candidate);
    if (steps >= best_distance) continue;
    best = candidate;
    best_distance = steps;
  }
  return best;
}

std::string_view suggest_key(std::string_view name) {
  const std::string_view last = last_part(name);
  const std::string_view section = name.substr(0, name.size() - last.size());
  std::vector<std::string_view> siblings;
  std::vector<std::string_view> names;
  std::vector<std::string_view> lasts;
  for (const Key& key : kKeys) {
    names.push_back(key.name);
    lasts.push_back(last_part(key.name));
    const std::string_view key_section = key.name.substr(0, key.name.size() - lasts.back().size());
    if (key_section == section) siblings.push_back(lasts.back());
    if (!key_section.empty()) names.push_back(key_section.substr(0, key_section.size() - 1));
  }
  if (const auto sibling = nearest(last, siblings); !sibling.empty()) {
    // A sibling is a view of the end of its key's name.
    return {sibling.data() - section.size(), section.size() + sibling.size()};
  }
  const auto alias = std::ranges::find(kAliases, last, &Alias::typed);
  if (alias != kAliases.end()) return alias->meant;
  if (const auto there = with_last_part(last, name); !there.empty()) return there;
  if (const auto whole = nearest(name, names); !whole.empty()) return whole;
  return with_last_part(nearest(last, lasts), name);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  if (text.empty()) return parts;
  for (auto end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

std::vector<std::string_view> words(const Key& key) {
  return split(key.accepts, '|');
}

Slot slot_of(const Key& key, const Policy& policy) {
  // The slots of a policy point to its members; a reader of this one does not write through them.
  return key.slot(const_cast<Policy&>(policy));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

std::string_view type_name(const Key& key) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"an integer", "a name or a list of names", "true or false", "an integer", "a number",
       "a size", "a duration", "a word", "a string", "a list of strings", "a list of paths",
       "a list of rules", "a table of strings", "a table of lists"});
  return kNames.at(static_cast<std::size_t>(key.type));
}

namespace {

std::string_view example_of(Entry entry) {
  switch (entry) {
    case Entry::any:
      break;
    case Entry::command:
      return "[\"python3\"]";
    case Entry::variable:
      return "[\"LANG\"]";
    case Entry::user:
      return "[\"user\"]";
    case Entry::call:
      return "[\"ptrace\"]";
    case Entry::destination:
      return "[\"api.example.com:443\"]";
    case Entry::publication:
      return "[\"127.0.0.1:8080:80\"]";
    case Entry::inside:
      return "[\"/data\"]";
    case Entry::path:
    case Entry::system:
    case Entry::source:
      return "[\"/srv/data\"]";
    case Entry::hidden:
      return "[\"**/.env\"]";
    case Entry::collected:
      return "[\"*.png\"]";
  }
  return "[\"name\"]";
}

}  // namespace

std::string_view example(const Key& key) {
  if (key.type == Type::texts) return example_of(key.entry);
  constexpr auto kExamples = std::to_array<std::string_view>(
      {"1", "\"default\"", "true", "100", "1.5", "\"512M\"", "\"30s\"", "", "\"name\"", "",
       "[\"/srv/data\"]", "[{ name = \"socket\", action = \"deny\" }]", "{ NAME = \"value\" }",
       "{ py = [\"python3\"] }"});
  return kExamples.at(static_cast<std::size_t>(key.type));
}

}  // namespace sbx::policy

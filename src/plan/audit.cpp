#include "plan/audit.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>

#include "plan/filter/table.hpp"
#include "policy/keys.hpp"
#include "policy/load.hpp"

namespace sbx::plan {
namespace {

using policy::Policy;
using policy::SourcedList;

/// How open one item is, and the words for it.
struct Opening {
  int percent = 0;
  std::string words;
  Origin at{};
};

template <class T>
Origin first_origin(const SourcedList<T>& list) {
  return list.empty() ? Origin{} : list.front().origin;
}

std::string listed(const SourcedList<std::string>& list) {
  std::string text;
  for (const auto& entry : list) (text += text.empty() ? "" : ", ") += entry.value;
  return text;
}

std::string listed(const SourcedList<policy::PathGrant>& list) {
  std::string text;
  for (const auto& entry : list) (text += text.empty() ? "" : ", ") += entry.value.source;
  return text;
}

bool holds_secret(std::string_view name) {
  constexpr auto kParts = std::to_array<std::string_view>(
      {"TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "API_KEY", "APIKEY", "PRIVATE_KEY",
       "ACCESS_KEY", "SSH_AUTH_SOCK"});
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return std::ranges::any_of(
      kParts, [&](std::string_view part) { return upper.find(part) != std::string::npos; });
}

Opening enforcement(const Policy& policy) {
  const bool strict = policy.enforcement.value == policy::Enforcement::strict;
  return {strict ? 0 : 100,
          strict ? "a rule that can't be enforced stops the run"
                 : "a later version may leave out what can't be enforced; this one never does",
          policy.enforcement.origin};
}

Opening lock(const Policy& policy) {
  return {policy.locked.value ? 0 : 100,
          policy.locked.value ? "later layers may only narrow it" : "later layers may widen it",
          policy.locked.origin};
}

Opening interpreters(const Policy& policy) {
  if (policy.interpreters.allow.empty()) return {100, "any program may be the command"};
  return {20, "only " + listed(policy.interpreters.allow), first_origin(policy.interpreters.allow)};
}

Opening venv(const Policy& policy) {
  const auto& environment = policy.interpreters.venv;
  if (environment.value.empty()) return {0, "no code from a virtual environment"};
  return {100, "code of " + environment.value + " is used", environment.origin};
}

/// A grant of the home directory, of a directory above it, or of a whole system directory.
bool is_broad(const std::string& source) {
  return std::ranges::count(source, '/') <= 2 &&
         (source.starts_with("/home") || source == "/root" || source == "/etc" ||
          source == "/var" || source == "/run" || source == "/srv" || source == "/mnt" ||
          source == "/tmp");
}

template <class List>
bool any_broad(const List& list) {
  return std::ranges::any_of(list, [](const auto& entry) { return is_broad(entry.value.source); });
}

Opening read(const Policy& policy) {
  const auto& list = policy.filesystem.read;
  if (list.empty()) return {0, "no file beyond the system and the workspace is readable"};
  return {any_broad(list) ? 100 : 50, "readable: " + listed(list), first_origin(list)};
}

Opening write(const Policy& policy) {
  const auto& list = policy.filesystem.write;
  if (list.empty()) return {0, "nothing outside the workspace is changed on the host"};
  const bool special =
      std::ranges::any_of(list, [](const auto& entry) { return entry.value.special; });
  return {any_broad(list) ? 100 : 70,
          "changed on the host for real: " + listed(list) +
              (special ? "; FIFOs and sockets can be made there" : ""),
          first_origin(list)};
}

Opening sockets(const Policy& policy) {
  const auto& list = policy.filesystem.sockets;
  if (list.empty()) return {0, "no service of the host is reachable by a socket"};
  return {100, "services of the host: " + listed(list) + "; docker.sock is as good as root",
          first_origin(list)};
}

Opening workspace(const Policy& policy) {
  const auto& mode = policy.filesystem.workspace.mode;
  switch (mode.value) {
    case policy::WorkspaceMode::empty:
      return {0, "the program sees an empty directory", mode.origin};
    case policy::WorkspaceMode::read_only:
      return {30, "the program reads the working directory", mode.origin};
    case policy::WorkspaceMode::overlay:
      return {40, "the program reads the working directory; its changes vanish", mode.origin};
    case policy::WorkspaceMode::read_write:
      return {100, "the program changes the working directory for real", mode.origin};
  }
  return {};
}

bool shows_files(const Policy& policy) {
  return policy.filesystem.workspace.mode.value != policy::WorkspaceMode::empty ||
         !policy.filesystem.read.empty() || !policy.filesystem.write.empty();
}

/// Compares with the deny list of the built-in `default`. Only patterns count: "~" may be another
/// user's home here.
Opening deny(const Policy& policy) {
  if (!shows_files(policy)) return {0, "no directory is shown that could hold credentials"};
  const auto usual = policy::load({{"default"}}, {}, {.home = "/home/user"});
  if (!usual) return {};
  int patterns = 0;
  int missing = 0;
  std::string first;
  for (const auto& name : usual->filesystem.deny) {
    if (!name.value.starts_with("**/")) continue;
    ++patterns;
    const bool hidden = std::ranges::any_of(
        policy.filesystem.deny, [&](const auto& entry) { return entry.value == name.value; });
    if (hidden) continue;
    if (missing++ == 0) first = name.value;
  }
  if (missing == 0)
    return {0, "names of credentials stay hidden", first_origin(policy.filesystem.deny)};
  return {
      patterns > 0 ? missing * 100 / patterns : 0,
      "not hidden: " + first +
          (missing > 1 ? " and " + std::to_string(missing - 1) + " more of the usual names" : ""),
      first_origin(policy.filesystem.deny)};
}

Opening landlock(const Policy& policy) {
  const auto& on = policy.filesystem.landlock;
  return {on.value ? 0 : 100, on.value ? "a second wall around files" : "mounts are the only wall",
          on.origin};
}

Opening collect(const Policy& policy) {
  const auto& list = policy.filesystem.outputs.collect;
  if (list.empty()) return {0, "nothing is brought out"};
  const bool all = std::ranges::any_of(
      list, [](const auto& entry) { return entry.value == "**" || entry.value == "*"; });
  return {all ? 100 : 40, "what it made may be brought out: " + listed(list), first_origin(list)};
}

Opening pass(const Policy& policy) {
  const auto& list = policy.environment.pass;
  if (list.empty()) return {0, "no variable of the caller is inherited"};
  const auto secret =
      std::ranges::find_if(list, [](const auto& entry) { return holds_secret(entry.value); });
  if (secret != list.end())
    return {100, secret->value + " of the caller is visible to the program", secret->origin};
  return {20, "variables of the caller: " + listed(list), first_origin(list)};
}

Opening set(const Policy& policy) {
  for (const auto& [name, value] : policy.environment.set)
    if (holds_secret(name))
      return {100, name + " stands in the policy file for everybody to read", value.origin};
  return {0, "no variable that looks like a secret is set"};
}

Opening base(const Policy& policy) {
  switch (policy.syscalls.base.value) {
    case policy::SyscallBase::none:
      return {0, "no system call but those that are named", policy.syscalls.base.origin};
    case policy::SyscallBase::minimal:
      return {20, "what a computation calls", policy.syscalls.base.origin};
    case policy::SyscallBase::default_:
      return {50, "what honest programs call", policy.syscalls.base.origin};
  }
  return {};
}

Opening allowed_calls(const Policy& policy) {
  const auto& list = policy.syscalls.allow;
  if (list.empty()) return {0, "no call is added to the base"};
  for (const auto& entry : list)
    if (const auto group = find_group(entry.value); group && text_of(*group).risk[0] != '\0')
      return {100, entry.value + ": " + text_of(*group).risk, entry.origin};
  return {60, "added: " + listed(list), first_origin(list)};
}

Opening rules(const Policy& policy) {
  for (const auto& rule : policy.syscalls.rules)
    if (rule.value.action == policy::RuleAction::allow)
      return {60, "a rule admits " + rule.value.name, rule.origin};
  return {0, "no rule admits more"};
}

Opening spawn(const Policy& policy) {
  for (const auto& entry : policy.syscalls.deny)
    if (entry.value == "@process-spawn") return {0, "no new processes", entry.origin};
  return {100, "it may start other programs of the system"};
}

Opening network(const Policy& policy) {
  const auto& mode = policy.network.mode;
  switch (mode.value) {
    case policy::NetworkMode::none:
      return {0, "loopback only", mode.origin};
    case policy::NetworkMode::allow_list:
      if (policy.network.allow.empty()) return {5, "an empty list: loopback only", mode.origin};
      return {40, "what it reads can go to " + listed(policy.network.allow), mode.origin};
    case policy::NetworkMode::host:
      return {100, "the host's whole network, its loopback services included", mode.origin};
  }
  return {};
}

Opening wildcards(const Policy& policy) {
  for (const auto& entry : policy.network.allow) {
    const bool wide = entry.value.find('*') != std::string::npos ||
                      entry.value.find('/', entry.value.find("//") == std::string::npos
                                                ? 0
                                                : entry.value.find("//") + 2) != std::string::npos;
    if (wide)
      return {60, entry.value + " is more than one host: names below it can carry data out",
              entry.origin};
  }
  return {0, "each destination is one host"};
}

Opening private_names(const Policy& policy) {
  const auto& on = policy.network.private_;
  return {on.value ? 100 : 0,
          on.value ? "an allowed name may lead into the local network"
                   : "no name leads into the local network",
          on.origin};
}

Opening sni(const Policy& policy) {
  const auto& on = policy.network.match_sni;
  return {on.value ? 0 : 100,
          on.value ? "the TLS name must be the one that was dialled"
                   : "one allowed name carries connections to others on its address",
          on.origin};
}

Opening publish(const Policy& policy) {
  const auto& list = policy.network.publish;
  if (list.empty()) return {0, "no port of it is reachable from the host"};
  return {100, "reachable from the host: " + listed(list), first_origin(list)};
}

/// In percent: 0 at `usual` and below, 100 at ten times that, linear between.
int excess(double value, double usual) {
  if (value <= usual) return 0;
  return static_cast<int>(std::min(100.0, (value / usual - 1) / 9 * 100));
}

template <class T>
Opening limit(double value, double usual, const T& said, const std::string& text) {
  const int percent = excess(value, usual);
  return {percent, percent == 0 ? "bounded: " + text : "bounded, but far: " + text, said.origin};
}

Opening wall_time(const Policy& policy) {
  const auto& said = policy.limits.wall_time;
  return limit(static_cast<double>(said.value.count()), 600'000, said, to_text(said.value));
}
Opening cpu(const Policy& policy) {
  const auto& said = policy.limits.cpu_time;
  return limit(static_cast<double>(said.value.count()), 600'000, said, to_text(said.value));
}
Opening memory(const Policy& policy) {
  const auto& said = policy.limits.memory;
  return limit(static_cast<double>(said.value.count), 1ULL << 30, said, to_text(said.value));
}
Opening processes(const Policy& policy) {
  const auto& said = policy.limits.processes;
  return limit(static_cast<double>(said.value), 256, said, std::to_string(said.value));
}
Opening disk(const Policy& policy) {
  const auto& said = policy.limits.disk;
  return limit(static_cast<double>(said.value.count), 1ULL << 30, said, to_text(said.value));
}

// --- sessions

double hours(Milliseconds time) {
  return static_cast<double>(time.count()) / 3'600'000;
}

Opening idle(const Policy& policy) {
  constexpr double kUsual = 4;
  constexpr int kOutlived = 20;
  const auto& said = policy.session.idle;
  const auto& lifetime = policy.session.lifetime;
  if (said.value > lifetime.value && hours(lifetime.value) > 1)
    return {std::max(kOutlived, excess(hours(lifetime.value), kUsual)),
            "a session that nobody uses lasts to the end of session.lifetime, " +
                to_text(lifetime.value),
            said.origin};
  const Milliseconds until = std::min(said.value, lifetime.value);
  return limit(hours(until), kUsual, said, to_text(until) + " without use end a session");
}

Opening lifetime(const Policy& policy) {
  constexpr double kUsual = 24;
  const auto& said = policy.session.lifetime;
  return limit(hours(said.value), kUsual, said,
               "what one call left behind is there for others for " + to_text(said.value));
}

Opening calls_at_a_time(const Policy& policy) {
  constexpr double kUsual = 32;
  const auto& said = policy.session.calls;
  return limit(static_cast<double>(said.value), kUsual, said,
               std::to_string(said.value) + " calls share a session at a time");
}

/// Without a sum the lifetime bounds it.
Opening cpu_of_all(const Policy& policy) {
  constexpr double kUsual = 48;
  const auto& said = policy.session.cpu_time;
  const double most = hours(policy.session.lifetime.value) * policy.limits.cpus.value;
  if (said.value.count() > 0 && hours(said.value) <= most)
    return limit(hours(said.value), kUsual, said, to_text(said.value) + " for all calls together");
  return limit(most, kUsual, said, "session.lifetime times limits.cpus for all calls together");
}

/// What every session shares that two runs don't. Not graded: it does not depend on the policy how
/// much it is.
std::string shared_by_calls(const Policy& policy) {
  const bool own_network = policy.network.mode.value != policy::NetworkMode::host;
  const bool files = policy.filesystem.workspace.mode.value > policy::WorkspaceMode::read_only;
  std::string text = "calls share files, /dev/shm, IPC, ";
  text += own_network ? "the loopback network" : "the host's network";
  text +=
      " and the budgets of memory, processes, CPUs and disk, and a call can leave traps for the "
      "next";
  text += files ? " (FIFOs, programs on PATH, sitecustomize, .git hooks)"
                : " (FIFOs, programs on PATH, sitecustomize)";
  return text + ": sbx-security(7), SESSIONS";
}

struct Check {
  std::string_view key;
  int weight;
  Opening (*look)(const Policy& policy);
};
/// Weights: 10 for the host itself, 5 for somebody's data, 1 for comfort.
constexpr auto kChecks = std::to_array<Check>({
    {"locked", 1, lock},
    {"enforcement", 6, enforcement},
    {"interpreters.allow", 1, interpreters},
    {"interpreters.venv", 1, venv},
    {"filesystem.read", 6, read},
    {"filesystem.write", 9, write},
    {"filesystem.deny", 6, deny},
    {"filesystem.sockets", 10, sockets},
    {"filesystem.landlock", 2, landlock},
    {"filesystem.workspace.mode", 8, workspace},
    {"filesystem.outputs.collect", 2, collect},
    {"environment.pass", 6, pass},
    {"environment.set", 3, set},
    {"syscalls.base", 4, base},
    {"syscalls.allow", 8, allowed_calls},
    {"syscalls.rule", 4, rules},
    {"syscalls.deny", 2, spawn},
    {"network.mode", 10, network},
    {"network.allow", 4, wildcards},
    {"network.private", 5, private_names},
    {"network.match_sni", 2, sni},
    {"network.publish", 3, publish},
    {"limits.wall_time", 1, wall_time},
    {"limits.cpu_time", 1, cpu},
    {"limits.memory", 2, memory},
    {"limits.processes", 1, processes},
    {"limits.disk", 1, disk},
    {"session.idle", 1, idle},
    {"session.lifetime", 1, lifetime},
    {"session.calls", 1, calls_at_a_time},
    {"session.cpu_time", 1, cpu_of_all},
});

/// Graded as shown, with one decimal: policies that show the same number get the same grade.
Grade grade_of(double exposure) {
  exposure = std::round(exposure * 10) / 10;
  if (exposure < 1.0) return Grade::safe;
  if (exposure < 2.5) return Grade::ok;
  if (exposure < 4.0) return Grade::medium;
  return exposure < 6.0 ? Grade::exposed : Grade::unsafe;
}

/// One item that is wide open sets a minimum for the exposure, however tight the rest is.
double floor_of(const AuditItem& item) {
  return item.percent == 100 && item.weight >= 8 ? 4.0 + (item.weight - 8) : 0.0;
}

}  // namespace

Audit audit(const Policy& policy) {
  Audit result;
  double open = 0;
  double whole = 0;
  double least = 0;
  for (const Check& check : kChecks) {
    Opening opening = check.look(policy);
    AuditItem& item = result.items.emplace_back(AuditItem{.key = check.key,
                                                          .weight = check.weight,
                                                          .percent = opening.percent,
                                                          .words = std::move(opening.words),
                                                          .at = std::move(opening.at)});
    open += item.weight * item.percent / 100.0;
    whole += item.weight;
    least = std::max(least, floor_of(item));
  }
  result.exposure = std::max(least, open / whole * 10);
  result.grade = grade_of(result.exposure);
  result.session = shared_by_calls(policy);
  return result;
}

std::string_view grade_name(Grade grade) {
  constexpr auto kNames =
      std::to_array<std::string_view>({"SAFE", "OK", "MEDIUM", "EXPOSED", "UNSAFE"});
  return kNames.at(static_cast<std::size_t>(grade));
}

}  // namespace sbx::plan

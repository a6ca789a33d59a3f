#include "plan/call_warnings.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "plan/filter/table.hpp"

namespace sbx::plan {
namespace {

using Entry = policy::Sourced<std::string>;

bool is_group(std::string_view entry) {
  return entry.starts_with('@');
}

/// True if an entry, a call or a @group, covers a call.
bool names_call(std::string_view entry, const Call& call) {
  return is_group(entry) ? find_group(entry) == call.group : entry == call.name;
}

/// True if a deny entry revokes the whole of an allow entry.
bool takes_back(std::string_view deny, std::string_view allow) {
  if (deny == allow) return true;
  const Call* const call = is_group(allow) ? nullptr : find_call(allow);
  return call != nullptr && names_call(deny, *call);
}

std::string at(const Origin& origin) {
  return " (" + origin.text() + ")";
}

/// Reports a contradiction only within one file: a later file is meant to change an earlier one.
void note_contradictions(const policy::Syscalls& syscalls, std::vector<policy::Warning>& list) {
  for (const Entry& allow : syscalls.allow)
    for (const Entry& deny : syscalls.deny)
      if (allow.origin.file == deny.origin.file && takes_back(deny.value, allow.value))
        list.push_back({"syscalls.allow = \"" + allow.value + "\"" + at(allow.origin) +
                        " has no effect: syscalls.deny = \"" + deny.value + "\"" + at(deny.origin) +
                        " wins"});
}

/// The calls of the dynamic loader and the C library before main.
void note_nothing_starts(const policy::Syscalls& syscalls, std::vector<policy::Warning>& list) {
  if (syscalls.base.value != policy::SyscallBase::none) return;
  constexpr auto kNeeded = std::to_array<std::string_view>({"brk", "mmap"});
  for (const std::string_view needed : kNeeded) {
    const Call* const call = find_call(needed);
    const auto names = [&](const Entry& entry) { return names_call(entry.value, *call); };
    if (std::ranges::any_of(syscalls.allow, names)) return;
  }
  list.push_back(
      {"syscalls.base = \"none\" allows neither brk nor mmap" + at(syscalls.base.origin) +
       ": no ordinary program can start; base = \"minimal\" has what every program needs"});
}

void note_unfiltered(const policy::Syscalls& syscalls, std::vector<policy::Warning>& list) {
  const Call* const setup = find_call("io_uring_setup");
  for (const Entry& allow : syscalls.allow)
    if (names_call(allow.value, *setup))
      list.push_back({"syscalls.allow = \"" + allow.value + "\"" + at(allow.origin) +
                      ": what a ring does is not a system call; syscalls.deny, rules and denials "
                      "don't see it"});
}

/// What other architectures have and this one lacks is not a mistake: machines share policies.
void note_absent(const policy::Syscalls& syscalls, std::vector<policy::Warning>& list) {
  const auto note = [&](const std::string& key, const std::string& name, const Origin& origin) {
    if (find_absent_call(name) == nullptr) return;
    std::string message = key + " = \"" + name + "\"" + at(origin) +
                          " has no effect: this machine's architecture has no such call";
    if (const std::string_view successor = used_instead(name); !successor.empty())
      message.append("; programs use \"").append(successor).append("\"");
    list.push_back({std::move(message), policy::Weight::told_when_asked});
  };
  for (const Entry& allow : syscalls.allow) note("syscalls.allow", allow.value, allow.origin);
  for (const auto& rule : syscalls.rules)
    if (rule.value.action == policy::RuleAction::allow)
      note("syscalls.rules.name", rule.value.name, rule.origin);
}

}  // namespace

std::vector<policy::Warning> call_warnings(const policy::Syscalls& syscalls) {
  std::vector<policy::Warning> list;
  note_contradictions(syscalls, list);
  note_nothing_starts(syscalls, list);
  note_unfiltered(syscalls, list);
  note_absent(syscalls, list);
  return list;
}

}  // namespace sbx::plan

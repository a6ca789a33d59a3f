#include "plan/filter/filter.hpp"
#include "plan/filter/table.hpp"

/// The table as documentation, completions and messages use it.
namespace sbx::plan {
namespace {

std::string_view standing_name(Standing standing) {
  switch (standing) {
    case Standing::own:
      return "always";
    case Standing::minimal:
      return "minimal";
    case Standing::standard:
      return "default";
    case Standing::denied:
      return "denied";
    case Standing::quiet:
      return "quiet";
    case Standing::absent:
      return "absent";
  }
  return "denied";
}

}  // namespace

std::string syscall_name(int number) {
  const Call* call = find_call(number);
  return call != nullptr ? std::string(call->name) : "system call " + std::to_string(number);
}

std::vector<SyscallGroup> syscall_groups() {
  std::vector<SyscallGroup> groups;
  for (std::size_t i = 0; i < group_count(); ++i) {
    const GroupText& text = text_of(static_cast<Group>(i));
    groups.push_back({.name = text.name, .description = text.description, .members = {}});
  }
  for (const Call& call : calls()) {
    groups[static_cast<std::size_t>(call.group)].members.emplace_back(call.name);
  }
  return groups;
}

std::vector<SyscallText> syscall_table() {
  std::vector<SyscallText> lines;
  for (const Call& call : calls()) {
    lines.push_back({.number = call.number,
                     .name = call.name,
                     .group = text_of(call.group).name,
                     .standing = standing_name(call.decision.standing),
                     .guarded = call.decision.guard != ArgumentGuard::none,
                     .reason = call.reason});
  }
  return lines;
}

}  // namespace sbx::plan

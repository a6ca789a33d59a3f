#include "changes/apply_files.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "changes/hazards.hpp"
#include "changes/words.hpp"
#include "workspace/copy.hpp"

namespace sbx::changes {
namespace {

std::unexpected<Error> refused(const std::string& path, std::string_view why) {
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "usage",
                    .message = "'" + printable(path) + "': " + std::string(why)});
}

/// A pattern that matches this path only, and does not count as naming it.
std::string literal(std::string_view path) {
  constexpr std::string_view kWild = "*?[\\";
  std::string pattern;
  for (const char each : path) {
    if (pattern.empty() || kWild.contains(each)) pattern += '\\';
    pattern += each;
  }
  return pattern;
}

/// What of the selection a person decides.
Status check_each(const workspace::Copy& copy, const workspace::Selection& selection) {
  for (const Change& each : selection.changes) {
    if (each.type != FileType::link || each.change == ChangeKind::deleted) continue;
    const std::string to = SBX_TRY(workspace::link_content(copy, each));
    if (const std::string why = danger_of_link(copy, each, to); !why.empty())
      return refused(each.path, "it is " + why);
  }
  return {};
}

}  // namespace

Result<workspace::Applied> apply_files(const Kept& kept, const std::vector<std::string>& paths,
                                       const std::string& state_directory) {
  const ChangeSet& changes = kept.changes;
  if (const std::string why = incomplete_words(changes); !why.empty())
    return refused(kept.facts.directory, why);
  std::vector<std::string> patterns;
  for (const std::string& path : paths) {
    // One for what was removed, perhaps, and one for what is there instead.
    bool is_changed = false;
    for (const Change& each : changes.changes) {
      if (each.path != path) continue;
      is_changed = true;
      if (each.type == FileType::directory) return refused(path, "it is a directory: name files");
    }
    if (!is_changed) return refused(path, "it was not changed");
    patterns.push_back(literal(path));
  }
  const workspace::Selection selection =
      workspace::select(kept.copy, changes, patterns, kept.facts.policy_files);
  if (!selection.left.empty()) {
    const workspace::Left& first = selection.left.front();
    if (first.guard.empty()) return refused(first.path, first.why);
    return refused(first.path, "a protected name (" + std::string(first.guard) + ")");
  }
  SBX_TRY(check_each(kept.copy, selection));
  SBX_TRY(workspace::check_in_place(kept.copy));
  const auto conflicts = workspace::conflicts_now(kept.copy, selection.changes, selection.links);
  if (!conflicts.empty()) return refused(conflicts.front().path, conflicts.front().why);
  return workspace::apply(kept.copy, selection,
                          {.waits = [] {}, .stop = {}, .state_directory = state_directory});
}

}  // namespace sbx::changes

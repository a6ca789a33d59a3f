#include "workspace/worktrees.hpp"

#include "base/sys.hpp"
#include "plan/files/path_text.hpp"
#include "plan/files/protected.hpp"
#include "workspace/names.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

/// Where a file .git leads, below the workspace; empty if it leads elsewhere.
/// gitrepository-layout(5): one line, "gitdir: PATH".
std::string target_of(const Copy& copy, const Change& change) {
  constexpr std::string_view kBegin = "gitdir: ";
  constexpr std::size_t kLongest = 8192;
  const LayerPath place = place_of(copy, change.path);
  const auto file = change.change == ChangeKind::deleted
                        ? open_file(place.layer->lower.get(), place.path)
                        : open_content(copy, change);
  if (!file) return {};
  const auto text = sys::read_all(file->get(), kLongest);
  if (!text || !text->starts_with(kBegin)) return {};
  const std::string directory = copy.directory + "/" + directory_of(change.path);
  const std::string line = text->substr(kBegin.size(), text->find('\n') - kBegin.size());
  const std::string target = plan::normal(plan::joined(directory, line));
  const std::string above = copy.directory + "/";
  return target.starts_with(above) ? target.substr(above.size()) : std::string();
}

}  // namespace

bool is_worktree(const std::string& path) {
  return plan::is_repository(directory_of(path), name_of(path)) && !plan::is_dot_git(name_of(path));
}

Worktrees::Worktrees(const Copy& copy, const ChangeSet& changes,
                     const std::vector<std::string>& patterns) {
  for (const Change& each : changes.changes)
    if (each.type == FileType::directory && is_worktree(each.path) &&
        !is_named(patterns, each.path)) {
      if (each.change == ChangeKind::created) added_.insert(each.path);
      if (each.change == ChangeKind::deleted) removed_.insert(each.path);
    }
  if (added_.empty() && removed_.empty()) return;
  for (const Change& each : changes.changes) {
    if (each.type != FileType::file || !plan::is_dot_git(name_of(each.path))) continue;
    const std::string target = target_of(copy, each);
    if (added_.contains(target) || removed_.contains(target))
      trees_.insert(directory_of(each.path));
  }
}

std::string Worktrees::holder_of(const std::string& path) const {
  std::string holder;
  if (added_.empty() && removed_.empty()) return holder;
  for (std::string at = path; at != "."; at = directory_of(at))
    if (added_.contains(at) || removed_.contains(at) || trees_.contains(at)) holder = at;
  return holder;
}

Left Worktrees::left(const std::string& holder) const {
  std::string_view guard = "of a worktree that stays out";
  if (added_.contains(holder))
    guard = "a worktree is added whole or not at all: git worktree add on the host makes it";
  if (removed_.contains(holder))
    guard = "a worktree is removed whole or not at all: git worktree remove on the host does it";
  return {.path = holder,
          .why = protected_words(guard, "left out unless it is named itself"),
          .guard = guard};
}

}  // namespace sbx::workspace

#include "workspace/select.hpp"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "plan/files/protected.hpp"
#include "workspace/last_copy.hpp"
#include "workspace/names.hpp"
#include "workspace/put.hpp"
#include "workspace/tree.hpp"
#include "workspace/worktrees.hpp"

namespace sbx::workspace {
namespace {

/// A pattern that matches a directory selects everything in it.
bool is_meant(const std::vector<std::string>& patterns, const std::string& path) {
  if (patterns.empty() || matches_any(patterns, path)) return true;
  const std::string directory = directory_of(path);
  return directory != "." && is_meant(patterns, directory);
}

/// Directories without which what the patterns mean has no place; the protected ones only if
/// something in them is named.
std::unordered_set<std::string> new_directories_above(const ChangeSet& changes,
                                                      const std::vector<std::string>& patterns) {
  std::unordered_set<std::string> directories;
  if (patterns.empty()) return directories;
  for (const Change& change : changes.changes) {
    if (change.change != ChangeKind::created || !is_meant(patterns, change.path)) continue;
    if (!reason_to_protect({}, change.path, change.type).empty() &&
        !is_named(patterns, change.path))
      continue;
    for (std::string at = directory_of(change.path); at != "."; at = directory_of(at))
      if (!directories.insert(at).second) break;
  }
  return directories;
}

/// What was deleted by deleting a directory above it.
class Deletions {
 public:
  Deletions(const ChangeSet& changes, const std::vector<std::string>& patterns) {
    for (const Change& change : changes.changes) {
      if (change.change != ChangeKind::deleted) continue;
      if (!patterns.empty()) all_.insert(change.path);
      if (change.type == FileType::directory && plan::is_dot_git(name_of(change.path)))
        repositories_.insert(change.path);
    }
  }

  /// The .git that was deleted whole with this path, or is it; empty if none was. Half a repository
  /// would be left of it if some of it were deleted and some not.
  [[nodiscard]] std::string repository_of(const Change& change) const {
    if (repositories_.empty() || change.change != ChangeKind::deleted) return {};
    for (std::string at = change.path; at != "."; at = directory_of(at))
      if (repositories_.contains(at)) return at;
    return {};
  }

  /// A pattern names this change, or the worktree that holds it, or the deletion of a directory
  /// above it.
  [[nodiscard]] bool is_named(const std::vector<std::string>& patterns,
                              const Change& change) const {
    if (workspace::is_named(patterns, change.path)) return true;
    const std::string directory = directory_of(change.path);
    if (is_worktree(directory) && workspace::is_named(patterns, directory)) return true;
    if (change.change != ChangeKind::deleted) return false;
    for (std::string at = directory_of(change.path); all_.contains(at); at = directory_of(at))
      if (workspace::is_named(patterns, at)) return true;
    return false;
  }

 private:
  std::unordered_set<std::string> all_;
  std::unordered_set<std::string> repositories_;
};

/// Why a protected name is left out; no path: it isn't.
Left protection_of(const Copy& copy, const Change& change, const Deletions& deletions,
                   const std::vector<std::string>& patterns) {
  std::string_view guard = reason_to_protect(copy.directory, change.path, change.type);
  const std::string repository = deletions.repository_of(change);
  if ((guard.empty() && repository.empty()) || deletions.is_named(patterns, change)) return {};
  std::string cure = "left out unless it is named itself";
  if (!repository.empty()) {
    guard = "a repository is deleted whole or not at all";
    cure = "left out unless \"" + repository + "\" is named";
  }
  return {.path = change.path, .why = protected_words(guard, cure), .guard = guard};
}

std::string reason_against(const Copy& copy, const Change& change,
                           const std::vector<std::string>& policy_files) {
  if (has_temporary_name(change.path)) return kTemporaryName;
  if (change.type == FileType::fifo || change.type == FileType::socket ||
      change.type == FileType::device)
    return change.change == ChangeKind::deleted ? std::string() : describe(change.type);
  if (std::ranges::find(policy_files, join(copy.directory, change.path)) != policy_files.end())
    return "a policy file of this run";
  return {};
}

bool is_file_with_content(const Change& change) {
  return change.type == FileType::file &&
         (change.change == ChangeKind::created || change.change == ChangeKind::modified);
}

/// A deletion stays out when what it takes is only under a name that stays out.
void hold_last_copies(const Copy& copy, const ChangeSet& changes,
                      const std::vector<const Change*>& left_out, Selection& selection) {
  const auto is_deletion = [](const Change& each) {
    return each.change == ChangeKind::deleted && each.type == FileType::file;
  };
  if (std::ranges::none_of(selection.changes, is_deletion)) return;
  LastCopies copies(copy);
  for (const Change* each : left_out)
    if (is_file_with_content(*each))
      copies.add_left_out(each->path, each->bytes, each->change == ChangeKind::created);
  if (copies.empty() && changes.held.empty()) return;
  std::vector<const Change*> deleted;
  std::vector<const Change*> others;
  for (const Change* each : left_out)
    if (is_deletion(*each)) others.push_back(each);
  for (const Change& each : selection.changes) {
    if (is_file_with_content(each)) copies.add_brought_out(each.path, each.bytes);
    if (is_deletion(each)) deleted.push_back(&each);
  }
  std::map<std::string, std::string> held;
  for (const std::vector<Left>& list : {copies.held(deleted, others), changes.held})
    for (const Left& each : list) held.emplace(each.path, each.why);
  std::erase_if(selection.changes, [&](const Change& change) {
    const auto found = is_deletion(change) ? held.find(change.path) : held.end();
    if (found == held.end()) return false;
    selection.left.push_back({.path = change.path,
                              .why = "stays, because what it holds was moved to '" + found->second +
                                     "', which is left out",
                              .holds = true});
    return true;
  });
}

}  // namespace

Selection select(const Copy& copy, const ChangeSet& changes,
                 const std::vector<std::string>& patterns,
                 const std::vector<std::string>& policy_files) {
  Selection selection;
  for (const Left& each : changes.hidden)
    if (is_meant(patterns, each.path)) selection.left.push_back(each);
  const std::unordered_set<std::string> needed = new_directories_above(changes, patterns);
  const Deletions deletions(changes, patterns);
  const Worktrees worktrees(copy, changes, patterns);
  std::unordered_set<std::string> holders;
  std::vector<const Change*> left_out;
  for (const Change& change : changes.changes) {
    const bool is_needed = change.change == ChangeKind::created && needed.contains(change.path);
    if (!is_needed && !is_meant(patterns, change.path)) {
      left_out.push_back(&change);
      continue;
    }
    if (const std::string holder = worktrees.holder_of(change.path); !holder.empty()) {
      left_out.push_back(&change);
      if (holders.insert(holder).second) selection.left.push_back(worktrees.left(holder));
      continue;
    }
    Left left{.path = {}, .why = {}};
    if (std::string why = reason_against(copy, change, policy_files); !why.empty())
      left = {.path = change.path, .why = std::move(why)};
    else
      left = protection_of(copy, change, deletions, patterns);
    if (left.path.empty() || is_needed) {
      selection.changes.push_back(change);
      continue;
    }
    left_out.push_back(&change);
    selection.left.push_back(std::move(left));
  }
  hold_last_copies(copy, changes, left_out, selection);
  selection.links = changes.links;
  for (auto& [path, linked] : selection.links)
    if (std::ranges::find(policy_files, join(copy.directory, linked.to)) != policy_files.end())
      linked.to.clear();
  return selection;
}

std::vector<std::string> without_meaning(const ChangeSet& changes,
                                         const std::vector<std::string>& patterns) {
  std::vector<std::string> nothing;
  for (const std::string& pattern : patterns) {
    const auto meant = [&](const auto& each) { return is_meant({pattern}, each.path); };
    if (std::ranges::none_of(changes.changes, meant) && std::ranges::none_of(changes.hidden, meant))
      nothing.push_back(pattern);
  }
  return nothing;
}

}  // namespace sbx::workspace

#include "workspace/select.hpp"

#include <algorithm>
#include <unordered_set>

#include "workspace/names.hpp"
#include "workspace/put.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

/// A pattern that matches a directory selects everything in it.
bool is_meant(const std::vector<std::string>& patterns, const std::string& path) {
  if (patterns.empty() || matches_any(patterns, path)) return true;
  const std::string folder = folder_of(path);
  return folder != "." && is_meant(patterns, folder);
}

/// Directories without which what the patterns mean has no place; the protected ones only if something
/// in them is named.
std::unordered_set<std::string> new_folders_above(const ChangeSet& changes,
                                                  const std::vector<std::string>& patterns) {
  std::unordered_set<std::string> folders;
  if (patterns.empty()) return folders;
  for (const Change& change : changes.changes) {
    if (change.change != ChangeKind::created || !is_meant(patterns, change.path)) continue;
    if (is_protected(change.path, change.type) && !is_named(patterns, change.path)) continue;
    for (std::string at = folder_of(change.path); at != "."; at = folder_of(at))
      if (!folders.insert(at).second) break;
  }
  return folders;
}

std::string reason_against(const Copy& copy, const Change& change,
                           const std::vector<std::string>& patterns,
                           const std::vector<std::string>& policy_files) {
  if (has_temporary_name(change.path)) return kTemporaryName;
  if (change.type == FileType::fifo || change.type == FileType::socket ||
      change.type == FileType::device)
    return change.change == ChangeKind::deleted ? std::string() : describe(change.type);
  if (std::ranges::find(policy_files, join(copy.folder, change.path)) != policy_files.end())
    return "a policy file of this run";
  if (is_protected(change.path, change.type) && !is_named(patterns, change.path))
    return "a protected name: left out unless it is named itself";
  return {};
}

}  // namespace

Selection select(const Copy& copy, const ChangeSet& changes,
                 const std::vector<std::string>& patterns,
                 const std::vector<std::string>& policy_files) {
  Selection selection;
  for (const Left& each : changes.hidden)
    if (is_meant(patterns, each.path)) selection.left.push_back(each);
  const std::unordered_set<std::string> needed = new_folders_above(changes, patterns);
  for (const Change& change : changes.changes) {
    const bool is_needed = change.change == ChangeKind::created && needed.contains(change.path);
    if (!is_needed && !is_meant(patterns, change.path)) continue;
    std::string why = reason_against(copy, change, patterns, policy_files);
    if (why.empty() || is_needed)
      selection.changes.push_back(change);
    else
      selection.left.push_back({change.path, std::move(why)});
  }
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

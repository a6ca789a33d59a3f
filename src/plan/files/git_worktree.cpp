#include "plan/files/git_worktree.hpp"

#include <string_view>

#include "plan/files/path_text.hpp"

namespace sbx::plan {
namespace {

constexpr std::size_t kPathLimit = 4096 + 16;

/// The path after `prefix` in the first line of a git file; empty if the line begins differently.
std::string path_in(const host::Files& files, const std::string& file, std::string_view prefix) {
  const auto facts = files.look(file);
  if (!facts || facts->type != host::FileType::regular) return {};
  const std::string text = files.read_head(file, kPathLimit).value_or(std::string());
  const std::string_view line = std::string_view(text).substr(0, text.find('\n'));
  return line.starts_with(prefix) ? std::string(line.substr(prefix.size())) : std::string();
}

bool is(const host::Files& files, const std::string& path, host::FileType type) {
  const auto facts = files.look(path);
  return facts && facts->type == type;
}

}  // namespace

std::string worktree_repository(const host::Files& files, const std::string& folder) {
  const std::string file = joined(folder, ".git");
  const std::string named = path_in(files, file, "gitdir: ");
  if (named.empty()) return {};
  const auto own = files.canonical(joined(folder, named));
  if (!own || is_within(*own, folder)) return {};

  const std::string back = path_in(files, joined(*own, "gitdir"), "");
  const auto worktree =
      back.empty() ? Result<std::string>(std::string()) : files.canonical(joined(*own, back));
  if (!worktree || *worktree != file) return {};

  const std::string common = path_in(files, joined(*own, "commondir"), "");
  const auto repository =
      common.empty() ? Result<std::string>(std::string()) : files.canonical(joined(*own, common));
  if (!repository || parent_of(*own) != joined(*repository, "worktrees")) return {};
  const bool complete = is(files, joined(*repository, "HEAD"), host::FileType::regular) &&
                        is(files, joined(*repository, "objects"), host::FileType::directory) &&
                        is(files, joined(*repository, "refs"), host::FileType::directory);
  return complete ? *repository : std::string();
}

std::string repository_around(const host::Files& files, std::string folder) {
  for (; !folder.empty(); folder = parent_of(folder)) {
    if (files.look(joined(folder, ".git"))) return folder;
    if (folder == "/") break;
  }
  return {};
}

}  // namespace sbx::plan

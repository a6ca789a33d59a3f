#include "plan/files/git_worktree.hpp"

#include <algorithm>
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

bool is_git_directory(const host::Files& files, const std::string& directory) {
  return is(files, joined(directory, "HEAD"), host::FileType::regular) &&
         is(files, joined(directory, "objects"), host::FileType::directory) &&
         is(files, joined(directory, "refs"), host::FileType::directory);
}

/// Where a `.git` leads: the canonical path of the directory that git works with; empty if it leads
/// nowhere.
std::string git_directory_of(const host::Files& files, const std::string& directory) {
  const std::string dot_git = joined(directory, ".git");
  const std::string named = path_in(files, dot_git, "gitdir: ");
  return files.canonical(named.empty() ? dot_git : joined(directory, named)).value_or("");
}

/// The directories of objects that a repository borrows, gitrepository-layout(5),
/// "objects/info/alternates".
void add_borrowed(const host::Files& files, const std::string& repository,
                  std::vector<std::string>& found) {
  const std::string objects = joined(repository, "objects");
  const auto text = files.read_head(joined(objects, "info/alternates"), kPathLimit);
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.empty() || line.starts_with('#')) continue;
    const auto place = files.canonical(joined(objects, line));
    if (place && base_name(*place) == "objects" && is_git_directory(files, parent_of(*place)))
      found.push_back(*place);
  }
}

}  // namespace

std::vector<std::string> git_elsewhere(const host::Files& files, const std::string& directory) {
  std::vector<std::string> found;
  const std::string own = git_directory_of(files, directory);
  if (own.empty()) return found;
  const std::string common = path_in(files, joined(own, "commondir"), "");
  const std::string repository =
      common.empty() ? own : files.canonical(joined(own, common)).value_or("");
  if (repository.empty() || !is_git_directory(files, repository)) return found;
  if (!is_within(repository, directory)) found.push_back(repository);
  add_borrowed(files, repository, found);
  std::erase_if(found, [&](const std::string& place) { return is_within(place, directory); });
  return found;
}

std::string worktree_repository(const host::Files& files, const std::string& directory) {
  const std::string file = joined(directory, ".git");
  const std::string named = path_in(files, file, "gitdir: ");
  if (named.empty()) return {};
  const auto own = files.canonical(joined(directory, named));
  if (!own || is_within(*own, directory)) return {};

  const std::string back = path_in(files, joined(*own, "gitdir"), "");
  const auto worktree =
      back.empty() ? Result<std::string>(std::string()) : files.canonical(joined(*own, back));
  if (!worktree || *worktree != file) return {};

  const std::string common = path_in(files, joined(*own, "commondir"), "");
  const auto repository =
      common.empty() ? Result<std::string>(std::string()) : files.canonical(joined(*own, common));
  if (!repository || parent_of(*own) != joined(*repository, "worktrees")) return {};
  return is_git_directory(files, *repository) ? *repository : std::string();
}

std::string repository_around(const host::Files& files, std::string directory) {
  for (; !directory.empty(); directory = parent_of(directory)) {
    if (files.look(joined(directory, ".git"))) return directory;
    if (directory == "/") break;
  }
  return {};
}

}  // namespace sbx::plan

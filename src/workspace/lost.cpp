#include "workspace/lost.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

#include "workspace/changes.hpp"
#include "workspace/copy.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

constexpr std::size_t kFew = 3;  // new names at the top; more are enough to be told of

bool is_of_interest(const std::string& name) {
  return !name.starts_with('.') && name != "__pycache__";
}

bool is_path_of_interest(const std::string& path) {
  return std::ranges::all_of(std::views::split(path, '/'), [](const auto& part) {
    return is_of_interest(std::string(part.begin(), part.end()));
  });
}

/// What read_changes() finds: names in directories that were there, or in the place of another
/// type, and other content.
void add_changes(const Copy& copy, std::size_t most, Lost& lost) {
  const auto changes = read_changes(copy);
  if (!changes) return;
  std::set<std::string> lost_directories;  // what is in them is lost with them
  for (const Change& each : changes->changes) {
    const bool is_directory = each.type == FileType::directory;
    if ((!is_directory && each.type != FileType::file) || !is_path_of_interest(each.path)) continue;
    const bool is_new = each.change == ChangeKind::created;
    if (!is_new && each.change != ChangeKind::modified) continue;
    if (is_directory) lost_directories.insert(each.path);
    const std::size_t slash = each.path.rfind('/');
    if (slash != std::string::npos && lost_directories.contains(each.path.substr(0, slash)))
      continue;
    std::string name = is_directory ? each.path + "/" : each.path;
    if (std::ranges::find(lost.names, name) != lost.names.end()) continue;
    if (lost.names.size() + lost.changed.size() >= most) {
      lost.are_all = false;
      return;
    }
    (is_new ? lost.names : lost.changed).push_back(std::move(name));
  }
}

}  // namespace

Lost lost_names(const plan::Plan& plan, int scratch, std::size_t most) {
  Lost lost;
  auto lowers = open_lowers(plan);
  if (!lowers) return lost;
  const auto copy = open_copy(plan, scratch, {}, std::move(*lowers));
  if (!copy || copy->layers.empty() || copy->directory != plan.working_directory) return lost;
  const Layer& layer = copy->layers.front();
  const auto names = read_names(layer.upper.get());
  if (!names) return lost;
  std::size_t looked = 0;
  for (const std::string& name : *names) {
    if (!is_of_interest(name) || std::ranges::binary_search(layer.made, name)) continue;
    if (++looked > most) {
      lost.are_all = false;
      break;
    }
    struct stat facts{};
    if (::fstatat(layer.upper.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) continue;
    struct stat before{};
    const bool is_new = !layer.lower.valid() || ::fstatat(layer.lower.get(), name.c_str(), &before,
                                                          AT_SYMLINK_NOFOLLOW) != 0;
    if (is_new && (S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode)))
      lost.names.push_back(S_ISDIR(facts.st_mode) ? name + "/" : name);
  }
  if (lost.names.size() < kFew && lost.are_all) add_changes(*copy, most, lost);
  return lost;
}

}  // namespace sbx::workspace

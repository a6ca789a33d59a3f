#include "workspace/lost.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

#include "base/private_disk.hpp"
#include "plan/tier/landlock.hpp"
#include "workspace/changes.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

constexpr std::size_t kFew = 3;  // new names at the top; more are enough to be told of

/// A regular file or a directory.
void add_name(int directory, const std::string& name, std::string_view before,
              std::vector<std::string>& names) {
  struct stat facts{};
  if (::fstatat(directory, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode))
    names.push_back(std::string(before) + name + (S_ISDIR(facts.st_mode) ? "/" : ""));
}

/// What read_changes() finds: names in directories that were there, or in the place of another
/// type, and other content.
void add_changes(const Copy& copy, std::size_t most, Lost& lost) {
  const auto changes = read_changes(copy);
  if (!changes) return;
  std::set<std::string> lost_directories;  // what is in them is lost with them
  for (const Change& each : changes->changes) {
    const bool is_directory = each.type == FileType::directory;
    if ((!is_directory && each.type != FileType::file) || !may_be_missed(each.path)) continue;
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

/// Where the sandbox has no root of its own, the working directory is the private one itself.
bool is_working_directory(const plan::Plan& plan, const std::string& target) {
  if (plan.private_directory.empty()) return target == plan.working_directory;
  const auto mount = std::ranges::find(plan.mounts, target, &plan::Mount::target);
  if (mount == plan.mounts.end()) return false;
  return plan.working_directory ==
         plan.private_directory + "/" + plan::place_in_private(plan, *mount);
}

/// What is new at the top of a layer, and what was done further down.
void add_of_workspace(const Copy& copy, std::size_t most, Lost& lost) {
  const Layer& layer = copy.layers.front();
  const auto names = read_names(layer.upper.get());
  if (!names) return;
  std::size_t looked = 0;
  for (const std::string& name : *names) {
    if (!may_be_missed(name) || std::ranges::binary_search(layer.made, name)) continue;
    if (++looked > most) {
      lost.are_all = false;
      break;
    }
    struct stat before{};
    const bool is_new = !layer.lower.valid() || ::fstatat(layer.lower.get(), name.c_str(), &before,
                                                          AT_SYMLINK_NOFOLLOW) != 0;
    if (is_new) add_name(layer.upper.get(), name, "", lost.names);
  }
  if (lost.names.size() < kFew && lost.are_all) add_changes(copy, most, lost);
}

void add_of_home(const plan::Plan& plan, int scratch, std::size_t most, Lost& lost) {
  const auto home = std::ranges::find_if(plan.mounts, [](const plan::Mount& mount) {
    return mount.kind() == plan::MountKind::scratch && mount.source() == private_disk::kHome;
  });
  if (home == plan.mounts.end()) return;
  auto opened = open_private_directory(scratch, private_disk::kHome);
  if (!opened) return;
  const UniqueFd directory = std::move(*opened).release();
  const auto names = read_names(directory.get());
  if (!names || std::ranges::none_of(*names, may_be_missed)) return;
  const std::vector<std::string> made = made_names(plan, home->target, directory.get());
  for (const std::string& name : *names)
    if (may_be_missed(name) && !std::ranges::binary_search(made, name) &&
        lost.in_home.size() < most)
      add_name(directory.get(), name, "~/", lost.in_home);
}

}  // namespace

bool may_be_missed(std::string_view path) {
  return std::ranges::all_of(std::views::split(path, '/'), [](const auto& part) {
    const std::string_view name(part.begin(), part.end());
    return !name.starts_with('.') && name != "__pycache__";
  });
}

Lost lost_names(const plan::Plan& plan, int scratch, std::size_t most,
                const std::function<void(Copy&)>& describe) {
  Lost lost;
  auto lowers = open_lowers(plan);
  if (!lowers) return lost;
  auto copy = open_copy(plan, scratch, {}, std::move(*lowers));
  if (copy && !copy->layers.empty() && is_working_directory(plan, copy->directory)) {
    describe(*copy);
    add_of_workspace(*copy, most, lost);
  }
  if (lost.names.size() + lost.changed.size() < kFew) add_of_home(plan, scratch, most, lost);
  return lost;
}

}  // namespace sbx::workspace

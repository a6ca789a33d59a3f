#include "plan/files/steps.hpp"

#include <algorithm>

#include "plan/files/path_text.hpp"

namespace sbx::plan {

void View::add(Cover cover) {
  last_at_.insert_or_assign(cover.target, covers_.size());
  covers_.push_back(std::move(cover));
}

std::string View::inside(const std::string& host_path) const {
  for (auto cover = covers_.rbegin(); cover != covers_.rend(); ++cover) {
    if (cover->source.empty() || !is_within(host_path, cover->source)) continue;
    std::string path = cover->target == "/" ? std::string() : cover->target;
    path += below(host_path, cover->source);
    // A deeper mount may cover this path and show something else.
    const Cover* shown = over(path);
    if (shown == &*cover || (shown != nullptr && is_within(host_path, shown->source) &&
                             below(host_path, shown->source) == below(path, shown->target)))
      return path;
  }
  return {};
}

void View::add_link(std::string place, const std::string& text) {
  std::string target = normal(joined(parent_of(place), text));
  links_.emplace_back(std::move(place), std::move(target));
}

std::string View::settled(const std::string& inside_path) const {
  for (const auto& [place, target] : links_) {
    if (!is_within(inside_path, place)) continue;
    std::string path = target;
    path += below(inside_path, place);
    return path;
  }
  return inside_path;
}

Status View::check_not_hidden(const std::string& doing, const std::string& host_path,
                              bool literally) const {
  const DenyRule* rule =
      literally ? denials_.covers_literally(host_path) : denials_.covers(host_path);
  if (rule == nullptr) return {};
  return denied_grant(doing, *rule, rule->origin);
}

const Cover* View::over(const std::string& inside_path) const {
  std::string_view place = inside_path;
  for (;;) {
    if (const auto found = last_at_.find(place); found != last_at_.end())
      return &covers_[found->second];
    const std::size_t slash = place.rfind('/');
    if (place == "/" || slash == std::string_view::npos) return nullptr;
    place = place.substr(0, std::max<std::size_t>(slash, 1));
  }
}

Mount bind_step(const std::string& source, const std::string& target,
                const host::FileFacts& facts) {
  const bool is_directory = facts.type == host::FileType::directory;
  return {.target = target,
          .payload = mount::Bind{.source = {.path = source,
                                            .device = facts.device,
                                            .inode = facts.inode,
                                            .is_directory = is_directory,
                                            .is_socket = facts.type == host::FileType::socket,
                                            .others_may_use = others_may_use(facts),
                                            .owner_uid = facts.uid,
                                            .owner_gid = facts.gid},
                                 .recursive = is_directory}};
}

Mount directory_step(std::string target, mode_t mode) {
  return {.target = std::move(target), .payload = mount::Directory{mode}};
}

Mount symlink_step(std::string text, std::string target) {
  return {.target = std::move(target), .payload = mount::Symlink{std::move(text)}};
}

Mount file_step(std::string content, std::string target, mode_t mode) {
  return {.target = std::move(target),
          .payload = mount::File{.content = std::move(content), .mode = mode}};
}

Mount plain_step(mount::Payload payload, std::string target) {
  return {.target = std::move(target), .payload = std::move(payload), .rights = kWritable};
}

bool others_may_use(const host::FileFacts& facts) {
  const mode_t wanted =
      facts.type == host::FileType::directory || (facts.mode & 0111U) != 0 ? 05 : 04;
  return (facts.mode & wanted) == wanted;
}

void sort_by_depth(std::vector<Mount>& mounts) {
  std::ranges::stable_sort(mounts, {}, [](const Mount& mount) { return depth_of(mount.target); });
}

}  // namespace sbx::plan

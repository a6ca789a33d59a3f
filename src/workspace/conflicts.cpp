#include "workspace/conflicts.hpp"

#include <algorithm>
#include <cstdint>

#include "workspace/copy.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {

void Conflicts::note(const std::vector<Change>& changes) {
  for (std::size_t i = 1; i < changes.size(); ++i)
    if (changes[i].path == changes[i - 1].path) replaced_.push_back(changes[i].path);
}

bool Conflicts::is_replaced(const std::string& path) const {
  return std::ranges::binary_search(replaced_, path);
}

bool Conflicts::is_replaced_already(const Step& step) const {
  return S_ISDIR(step.before.st_mode) != is_directory(*step.change) &&
         is_replaced(step.change->path);
}

bool Conflicts::is_in_replaced(std::string path) const {
  while (!replaced_.empty() && path != ".") {
    if (is_replaced(path)) return true;
    path = directory_of(path);
  }
  return false;
}

std::optional<const char*> Conflicts::of_directory(const Change& change,
                                                   const struct stat& now) const {
  const LayerPath place = place_of(copy_, change.path);
  if (!is_as_seen(*place.layer, place.path, now)) return "something else is there on the host";
  const auto seen = directory_seen(*place.layer, place.path);
  const bool is_done = (now.st_mode & 0777) == permissions(change, now.st_mode);
  if (seen && !is_done && seen->mode != (now.st_mode & 07777))
    return "its permissions changed on the host since the run began";
  return std::nullopt;
}

std::optional<const char*> Conflicts::of(const Step& step) const {
  const Change& change = *step.change;
  const bool is_directory_now = step.exists && S_ISDIR(step.before.st_mode);
  switch (change.change) {
    case ChangeKind::deleted:
      if (is_directory(change) && !is_directory_now) return "it is not a directory on the host now";
      if (is_directory(change)) return std::nullopt;
      if (is_directory_now) return "a directory on the host now";
      break;
    case ChangeKind::created:
      if (!step.exists || (is_directory_now && is_directory(change))) return std::nullopt;
      if (is_replaced(change.path) && is_directory_now != is_directory(change)) return std::nullopt;
      if (is_directory(change)) return "something else is there on the host";
      return changed_on_host(copy_, change.path, step.before)
                 ? "created on the host too since the run began"
                 : "there on the host already, where the run did not see it";
    case ChangeKind::modified:
    case ChangeKind::links:
      if (!step.exists) return "deleted on the host since the run began";
      break;
    case ChangeKind::mode:
      if (!step.exists) return "deleted on the host since the run began";
      if (type_of(step.before.st_mode) != change.type) return "something else is there on the host";
      if (is_directory_now) return of_directory(change, step.before);
      break;
  }
  if (changed_on_host(copy_, change.path, step.before))
    return "changed on the host since the run began";
  return std::nullopt;
}

bool Conflicts::is_done(const Step& step, const Spot& spot) const {
  const Change& change = *step.change;
  if (!step.exists || type_of(step.before.st_mode) != change.type ||
      change.change == ChangeKind::deleted)
    return false;
  if (change.type == FileType::link) {
    const auto here = read_link(spot.directory, spot.name);
    const auto wanted = link_content(copy_, change);
    return change.change != ChangeKind::mode && here && wanted && *here == *wanted;
  }
  const mode_t now = step.before.st_mode & 0777;
  const mode_t wanted = change.mode & 0777;
  if (change.type != FileType::file || (now & ~wanted) != 0 || (wanted & ~umask_ & ~now) != 0)
    return false;
  if (change.change == ChangeKind::mode) return now == wanted;
  if (static_cast<std::uint64_t>(step.before.st_size) != change.bytes) return false;
  const auto here = open_file(spot.directory, spot.name);
  const auto content = open_content(copy_, change);
  return here && content && same_content(here->get(), content->get(), step.before.st_size);
}

mode_t Conflicts::permissions(const Change& change, mode_t before) const {
  return change.mode & 0777 & (~umask_ | before);
}

}  // namespace sbx::workspace

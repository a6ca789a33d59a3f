#include "workspace/copy.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <optional>
#include <utility>

#include "base/held.hpp"
#include "base/private_disk.hpp"
#include "base/sys.hpp"
#include "plan/files/disk.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

using plan::Mount;
using plan::MountKind;

bool is_copy_on_write(const Mount& mount) {
  return (mount.kind() == MountKind::overlay || mount.kind() == MountKind::copy) &&
         !mount.read_only();
}

bool is_empty_workspace(const Mount& mount) {
  return mount.kind() == MountKind::scratch && mount.source() == private_disk::kWorkspace;
}

/// "b/c" of /a/b/c below /a; "." of /a itself; nothing outside.
std::optional<std::string> below(const std::string& path, const std::string& directory) {
  if (path == directory) return ".";
  if (path.size() <= directory.size() || !path.starts_with(directory) ||
      path[directory.size()] != '/')
    return std::nullopt;
  return path.substr(directory.size() + 1);
}

/// A file that lost names since the start and nothing else: an application that was killed took
/// them. The loss moves ctime.
bool has_only_lost_names(const Copy& copy, const std::string& path, const struct stat& now) {
  const Layer* layer = place_of(copy, path).layer;
  if (layer == nullptr || !S_ISREG(now.st_mode)) return false;
  const std::int64_t modified = now.st_mtim.tv_sec * 1'000'000'000 + now.st_mtim.tv_nsec;
  return std::ranges::any_of(layer->linked, [&](const plan::LinkedFile& was) {
    return was.file == plan::FileId{now.st_dev, now.st_ino} && now.st_nlink < was.links &&
           was.size == static_cast<std::uint64_t>(now.st_size) && was.modified == modified;
  });
}

bool is_as_applied(const Copy& copy, const std::string& path, const struct stat& now) {
  const LayerPath place = place_of(copy, path);
  const Noted* const note = place.layer == nullptr ? nullptr : note_of(*place.layer, place.path);
  return note != nullptr && is_as_noted(*note, now);
}

/// The directory that holds it was moved there since the start, or one above it: the times of what
/// it holds are older and tell nothing.
bool is_in_other_directory(const Copy& copy, const std::string& path) {
  const LayerPath place = place_of(copy, path);
  const std::string directory = directory_of(place.path);
  if (directory == ".") return false;
  const auto opened = held::open_beneath(place.layer->lower.get(), directory, O_PATH | O_DIRECTORY);
  struct stat facts{};
  return !opened || ::fstat(opened->get(), &facts) != 0 ||
         !is_as_seen(*place.layer, directory, facts);
}

/// A file that was copied in before the start is as it was then, or gone.
bool is_as_made(int upper, const std::string& path, const plan::mount::File& made) {
  const auto place = held::open_beneath(upper, path, O_PATH);
  if (!place) return place.error().errno_value == ENOENT || place.error().errno_value == ENOTDIR;
  struct stat facts{};
  if (::fstat(place->get(), &facts) != 0 || !S_ISREG(facts.st_mode) ||
      (facts.st_mode & 07777) != made.mode ||
      static_cast<std::uint64_t>(facts.st_size) != made.content.size())
    return false;
  const auto file = open_private_file(upper, path);
  return file && has_content(file->get(), made.content);
}

}  // namespace

std::vector<std::string> made_names(const plan::Plan& plan, const std::string& target,
                                    int directory) {
  std::vector<std::string> names;
  for (const Mount& mount : plan.mounts) {
    auto name = below(mount.target, target);
    const auto* file = mount.as<plan::mount::File>();
    if (name && file != nullptr && !is_as_made(directory, *name, *file))
      *name = directory_of(*name);
    while (name && *name != ".") {
      names.push_back(*name);
      *name = directory_of(*name);
    }
  }
  if (auto name = below(plan.working_directory, target)) names.push_back(std::move(*name));
  std::ranges::sort(names);
  return names;
}

// A directory that was replaced meanwhile is not the one that was planned with.
Result<UniqueFd> open_lower(const plan::HostSource& source) {
  UniqueFd lower =
      SBX_TRY(sys::open_at(AT_FDCWD, source.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  struct stat facts{};
  if (::fstat(lower.get(), &facts) != 0 || facts.st_dev != source.device ||
      facts.st_ino != source.inode)
    return fail(
        Error{.kind = ErrorKind::host,
              .code = "workspace-replaced",
              .message = "the directory '" + source.path + "' was replaced during the run"});
  return lower;
}

Result<std::vector<UniqueFd>> open_lowers(const plan::Plan& plan) {
  std::vector<UniqueFd> lowers;
  for (const Mount& mount : plan.mounts)
    if (is_copy_on_write(mount)) lowers.push_back(SBX_TRY(open_lower(*mount.host_source())));
  return lowers;
}

Status check_in_place(const Copy& copy) {
  for (const Layer& layer : copy.layers) {
    if (!layer.lower.valid()) continue;
    const std::string path = !layer.source.empty() ? layer.source
                             : layer.prefix == "." ? copy.directory
                                                   : join(copy.directory, layer.prefix);
    const auto there = sys::open_resolved(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW,
                                          RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    struct stat now{};
    struct stat then{};
    if (there && ::fstat(there->get(), &now) == 0 && ::fstat(layer.lower.get(), &then) == 0 &&
        now.st_dev == then.st_dev && now.st_ino == then.st_ino)
      continue;
    const bool is_gone = !there && there.error().errno_value == ENOENT;
    return fail(Error{.kind = ErrorKind::host,
                      .code = is_gone ? "workspace-gone" : "workspace-replaced",
                      .message = "the workspace '" + path + "' was " +
                                 (is_gone ? "renamed or removed" : "replaced") +
                                 " after the run began"});
  }
  return {};
}

bool has_overlay(const plan::Plan& plan) {
  return std::ranges::any_of(plan.mounts, is_copy_on_write);
}

bool has_copy(const plan::Plan& plan) {
  return has_overlay(plan) || std::ranges::any_of(plan.mounts, is_empty_workspace);
}

Result<Copy> open_copy(const plan::Plan& plan, int scratch, timespec started,
                       std::vector<UniqueFd> lowers) {
  Copy copy{.started = started};
  std::vector<plan::DenyRule> rules;
  for (const std::string& pattern : plan.hidden_names) rules.push_back({pattern, {}});
  copy.hidden = std::make_unique<plan::DenyRules>(std::move(rules));
  auto lower = lowers.begin();
  for (const Mount& mount : plan.mounts) {
    const plan::mount::Layered* over = is_copy_on_write(mount) ? mount.layered() : nullptr;
    if (over == nullptr && !is_empty_workspace(mount)) continue;
    UniqueFd below_it;
    if (over != nullptr) below_it = std::move(*lower++);
    if (copy.layers.empty()) copy.directory = mount.target;
    const auto prefix = below(mount.target, copy.directory);
    if (!prefix) continue;
    Layer layer{.source = over != nullptr ? over->source.path : mount.target, .prefix = *prefix};
    const std::string own = over != nullptr ? plan::place_on_disk(*over) : "";
    layer.upper =
        SBX_TRY(open_private_directory(scratch, over != nullptr ? own + private_disk::kUpper
                                                                : private_disk::kWorkspace))
            .release();
    layer.made = made_names(plan, mount.target, layer.upper.get());
    if (over != nullptr) {
      layer.linked = over->linked;
      layer.unlinked = over->unlinked;
      layer.seen = over->seen;
      struct stat marker{};
      if (::fstatat(scratch, (own + private_disk::kLinked).c_str(), &marker, AT_SYMLINK_NOFOLLOW) ==
          0)
        layer.linked_at = marker.st_ctim;
    }
    if (over != nullptr && !over->veils.empty())
      layer.veil = SBX_TRY(open_private_directory(scratch, own + private_disk::kVeil)).release();
    layer.lower = std::move(below_it);
    copy.is_overlay |= over != nullptr;
    copy.layers.push_back(std::move(layer));
  }
  return copy;
}

LayerPath place_of(const Copy& copy, const std::string& path) {
  LayerPath best;
  std::size_t longest = 0;
  for (const Layer& layer : copy.layers) {
    const auto rest = layer.prefix == "." ? std::optional(path) : below(path, layer.prefix);
    const std::size_t length = layer.prefix == "." ? 0 : layer.prefix.size();
    if (!rest || (best.layer != nullptr && length < longest)) continue;
    best = {&layer, *rest};
    longest = length;
  }
  return best;
}

Result<UniqueFd> open_content(const Copy& copy, const Change& change) {
  if (copy.stored) {
    const auto found = copy.stored->content_of.find(change.path);
    if (found != copy.stored->content_of.end())
      return open_private_file(copy.stored->contents.get(), found->second);
  } else if (const LayerPath place = place_of(copy, change.path); place.layer != nullptr) {
    return open_private_file(place.layer->upper.get(), place.path);
  }
  return fail(Error{.kind = ErrorKind::host,
                    .code = "no-content",
                    .message = "the content of '" + change.path + "' was not kept"});
}

Result<std::string> link_content(const Copy& copy, const Change& change) {
  if (copy.stored) {
    const UniqueFd file = SBX_TRY(open_content(copy, change));
    return sys::read_all(file.get(), PATH_MAX);
  }
  const LayerPath place = place_of(copy, change.path);
  return read_private_link(place.layer->upper.get(), place.path);
}

std::optional<DirectorySeen> directory_seen(const Layer& layer, const std::string& path) {
  constexpr mode_t kPermissions = 07777;
  const auto seen = [](const struct stat& facts) {
    return DirectorySeen{.file = {facts.st_dev, facts.st_ino},
                         .mode = facts.st_mode & kPermissions};
  };
  if (layer.copied) {
    if (path == ".") return seen(layer.copied->root());
    const CopiedEntry* const entry = layer.copied->find(directory_of(path), name_of(path));
    if (entry == nullptr || !S_ISDIR(entry->host().st_mode)) return std::nullopt;
    return seen(entry->host());
  }
  const auto* const known = layer.seen ? layer.seen->directory(path) : nullptr;
  if (known == nullptr || note_of(layer, path) != nullptr) return std::nullopt;
  return DirectorySeen{.file = known->file, .mode = known->mode & kPermissions};
}

bool is_as_seen(const Layer& layer, const std::string& path, const struct stat& now) {
  if (path == "." || (!layer.copied && !layer.seen)) return true;
  const auto seen = directory_seen(layer, path);
  return seen && seen->file == plan::FileId{now.st_dev, now.st_ino};
}

bool is_other_directory(const Layer& layer, const std::string& path, const struct stat& now) {
  return path != "." && directory_seen(layer, path) && !is_as_seen(layer, path, now);
}

const Noted* note_of(const Layer& layer, const std::string& path) {
  if (!layer.applied) return nullptr;
  const auto found = layer.applied->find(layer.prefix == "." ? path : join(layer.prefix, path));
  return found == layer.applied->end() ? nullptr : &found->second;
}

bool had_name(const Layer& layer, const std::string& path) {
  if (const Noted* const note = note_of(layer, path)) return note->inode != 0;
  return layer.seen && layer.seen->has_name(path);
}

Noted noted(const struct stat& now) {
  return {.inode = now.st_ino,
          .bytes = static_cast<std::uint64_t>(now.st_size),
          .modified = now.st_mtim,
          .changed = now.st_ctim,
          .links = now.st_nlink};
}

bool is_as_noted(const Noted& was, const struct stat& now) {
  const auto same = [](const timespec& one, const timespec& other) {
    return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
  };
  return now.st_ino == was.inode && static_cast<std::uint64_t>(now.st_size) == was.bytes &&
         same(now.st_mtim, was.modified) &&
         (same(now.st_ctim, was.changed) || now.st_nlink < was.links);
}

bool changed_on_host(const Copy& copy, const std::string& path, const struct stat& now) {
  const auto is_later = [](const timespec& one, const timespec& other) {
    return std::pair(one.tv_sec, one.tv_nsec) > std::pair(other.tv_sec, other.tv_nsec);
  };
  if (!copy.stored)
    return (is_later(now.st_ctim, copy.started) && !is_as_applied(copy, path, now) &&
            !has_only_lost_names(copy, path, now)) ||
           is_in_other_directory(copy, path);
  const auto found = copy.stored->before.find(path);
  return found == copy.stored->before.end() || found->second.disturbed ||
         !is_as_noted(found->second, now);
}

timespec file_clock() {
  timespec now{};
  // The fine clock: since Linux 6.13 a file may be stamped with it, ahead of the coarse one.
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now;
}

}  // namespace sbx::workspace

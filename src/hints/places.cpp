#include "hints/places.hpp"

#include <algorithm>
#include <array>

#include "plan/files/grants.hpp"
#include "plan/files/path_text.hpp"

namespace sbx::hints {
namespace {

using plan::MountKind;

/// Looking at a name of one of these waits for no other machine and no other process.
constexpr auto kLocal = std::to_array<std::string_view>(
    {"ext2",     "ext3",   "ext4",     "xfs",   "btrfs", "bcachefs", "f2fs",
     "jfs",      "nilfs2", "reiserfs", "zfs",   "tmpfs", "ramfs",    "overlay",
     "squashfs", "erofs",  "vfat",     "exfat", "ntfs3", "iso9660",  "udf"});

constexpr auto kNever =
    std::to_array<std::string_view>({"/proc", "/sys", "/dev", "/run", "/root", "/etc"});

constexpr int kMostLinks = 40;

bool shows_something(const plan::Mount& mount) {
  const MountKind kind = mount.kind();
  return kind == MountKind::bind || kind == MountKind::overlay || kind == MountKind::copy ||
         kind == MountKind::scratch || kind == MountKind::file || kind == MountKind::proc ||
         kind == MountKind::outer_proc;
}

/// The mount that a path is on; null: the sandbox's own root.
const plan::Mount* mount_of(const plan::Plan& plan, const std::string& path) {
  const plan::Mount* deepest = nullptr;
  for (const plan::Mount& mount : plan.mounts)
    if (shows_something(mount) && plan::is_within(path, mount.target) &&
        (deepest == nullptr || mount.target.size() >= deepest->target.size()))
      deepest = &mount;
  return deepest;
}

bool has_dotted_part(std::string_view below) {
  return below.contains("/.");
}

bool is_plain(host::FileType type) {
  return type == host::FileType::regular || type == host::FileType::directory;
}

}  // namespace

Places::Places(const policy::Policy& policy, const plan::Plan& plan, const host::Host& host,
               const std::vector<std::string>& typed, Reader reader)
    : plan_(plan),
      host_(host),
      typed_(typed),
      reader_(reader),
      hidden_(plan::resolve_deny(policy.filesystem.deny, host), host.files.get()) {
  if (auto mounts = host::mounts(*host.files)) mounts_ = std::move(*mounts);
}

std::string Places::inside(std::string_view name) const {
  return plan::normal(plan::joined(plan_.working_directory, name));
}

bool Places::is_shown(const std::string& path) const {
  const plan::Mount* const mount = mount_of(plan_, path);
  return mount != nullptr && mount->kind() != MountKind::scratch;
}

bool Places::is_typed(const std::string& path) const {
  return std::ranges::any_of(typed_, [&](const std::string& name) {
    return !name.empty() && name.front() != '-' &&
           plan::normal(plan::joined(host_.working_directory, name)) == path;
  });
}

bool Places::may_be_told(const std::string& path) const {
  const std::string& here = host_.working_directory;
  const std::string& home = host_.home;
  if (path == "/" || path == home || plan::is_within(here, path) || hidden_.covers(path) != nullptr)
    return false;
  const bool is_in_home = !home.empty() && plan::is_within(path, home);
  if (is_in_home && has_dotted_part(plan::below(path, home))) return false;
  // A working directory that is the root, or a home with everything in it, is not a workspace.
  if (here != "/" && plan::is_within(path, here)) return true;
  if (reader_ != Reader::person) return false;
  if (std::ranges::any_of(kNever, [&](auto place) { return plan::is_within(path, place); }))
    return false;
  return is_in_home || is_typed(path);
}

bool Places::is_local(const std::string& path) const {
  const host::MountPoint* deepest = nullptr;
  for (const host::MountPoint& mount : mounts_)
    if (plan::is_within(path, mount.path) &&
        (deepest == nullptr || mount.path.size() >= deepest->path.size()))
      deepest = &mount;
  return deepest != nullptr && std::ranges::find(kLocal, deepest->type) != kLocal.end();
}

// realpath(3) by hand: it would enter whatever a link leads to, an automounter's directory too.
std::optional<Places::Seen> Places::look(const std::string& path) const {
  std::string rest = plan::normal(path).substr(1);
  Seen seen{.path = "/", .type = host::FileType::directory};
  int links = 0;
  while (!rest.empty()) {
    const auto slash = rest.find('/');
    const std::string next = plan::joined(seen.path, rest.substr(0, slash));
    rest = slash == std::string::npos ? std::string() : rest.substr(slash + 1);
    if (!is_local(next)) return std::nullopt;
    const auto facts = host_.files->look(next);
    if (!facts) return std::nullopt;
    if (facts->type == host::FileType::symlink) {
      const auto target = host_.files->link_target(next);
      if (!target || ++links > kMostLinks) return std::nullopt;
      const std::string whole = plan::normal(plan::joined(plan::joined(seen.path, *target), rest));
      rest = whole == "/" ? std::string() : whole.substr(1);
      seen = {.path = "/", .type = host::FileType::directory};
      continue;
    }
    seen = {.path = next, .type = facts->type};
  }
  return seen;
}

std::string Places::not_granted(std::string_view name) const {
  if (name.empty() || name.front() == '-' || host_.working_directory.empty()) return {};
  const std::string path = plan::normal(plan::joined(host_.working_directory, name));
  if (is_shown(inside(name)) || !may_be_told(path)) return {};
  const auto seen = look(path);
  if (!seen || !is_plain(seen->type)) return {};
  return seen->path == path || may_be_told(seen->path) ? path : std::string();
}

std::optional<Places::ReadOnly> Places::read_only(const std::string& path_inside) const {
  const plan::Mount* const mount = mount_of(plan_, path_inside);
  if (mount == nullptr) return ReadOnly{};
  if (!mount->read_only()) return std::nullopt;
  ReadOnly result{.is_workspace = plan::is_within(path_inside, plan_.working_directory) &&
                                  plan::is_within(plan_.working_directory, mount->target),
                  .grant = {},
                  .target = mount->target};
  const plan::HostSource* const source = mount->host_source();
  if (source != nullptr && !mount->origin.file.empty() && !plan::is_forbidden(source->path) &&
      may_be_told(source->path))
    result.grant = source->path;
  return result;
}

}  // namespace sbx::hints

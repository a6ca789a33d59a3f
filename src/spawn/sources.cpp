#include "spawn/sources.hpp"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.hpp"
#include "spawn/rights.hpp"

namespace sbx::spawn {
namespace {

using plan::Mount;
using plan::MountKind;

constexpr std::size_t kLargestContent = 64U << 20;
constexpr unsigned long kMsPrivate = 1UL << 18;

Error about(const Mount& mount, std::string code, std::string message, int error) {
  return Error{.kind = ErrorKind::setup,
               .code = std::move(code),
               .message = std::move(message),
               .errno_value = error,
               .origin = mount.origin};
}

/// Any uid can read the operating system's files, so the child binds them itself, as for every
/// caller.
bool parent_opens(const Mount& mount) {
  if (mount.kind() != MountKind::bind && mount.kind() != MountKind::overlay) return false;
  const plan::HostSource& source = *mount.host_source();
  for (const std::string_view prefix : {"/usr/", "/etc/", "/lib", "/bin", "/sbin"})
    if (source.path.starts_with(prefix) && !source.needs_idmap) return false;
  return source.path != "/usr";
}

/// An overlay's lower layer is bound without the mounts in it.
bool is_recursive(const Mount& mount) {
  const auto* bind = mount.as<plan::mount::Bind>();
  return bind != nullptr && bind->recursive;
}

Result<UniqueFd> open_checked(const Mount& mount) {
  auto source = sys::open_resolved(AT_FDCWD, mount.source(), O_PATH,
                                   RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  if (!source)
    return fail(about(mount, "cannot-open-source", "cannot open '" + mount.source() + "'",
                      source.error().errno_value));
  struct stat facts{};
  if (::fstat(source->get(), &facts) != 0 || facts.st_dev != mount.host_source()->device ||
      facts.st_ino != mount.host_source()->inode)
    return fail(
        about(mount, "changed-during-set-up", "'" + mount.source() + "' changed during set-up", 0));
  return source;
}

Status set_attributes(const Mount& mount, int tree) {
  mount_attr change{};
  change.attr_set = mount_attributes(mount.rights);
  change.propagation = kMsPrivate;
  const unsigned flags = AT_EMPTY_PATH | (is_recursive(mount) ? AT_RECURSIVE : 0U);
  if (::syscall(SYS_mount_setattr, tree, "", flags, &change, sizeof change) != 0)
    return fail(about(mount, "cannot-bind",
                      "cannot set the mount flags of '" + mount.source() + "'", errno));
  return {};
}

Result<UniqueFd> detach(const Mount& mount) {
  const UniqueFd source = SBX_TRY(open_checked(mount));
  const unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH |
                         (is_recursive(mount) ? AT_RECURSIVE : 0U);
  const long tree = ::syscall(SYS_open_tree, source.get(), "", flags);
  if (tree < 0)
    return fail(about(mount, "cannot-bind", "cannot bind '" + mount.source() + "'", errno));
  UniqueFd owned(static_cast<int>(tree));
  // An overlay's own mount carries the flags; its lower layer is covered by it.
  SBX_TRY(set_attributes(mount, owned.get()));
  return owned;
}

Result<std::string> content_of(const Mount& mount) {
  auto text = sys::read_file(mount.source(), kLargestContent + 1);
  if (!text || text->size() > kLargestContent)
    return fail(
        about(mount, "cannot-idmap",
              "'" + mount.source() +
                  "' is on a file system without idmapped mounts and can't be handed in by content",
              text ? EFBIG : text.error().errno_value));
  return text;
}

/// True if mapped; false if the file system has no idmapped mounts (overlay, proc, and tmpfs before
/// Linux 6.3).
Result<bool> idmap(const Mount& mount, int tree, IdMaps& maps) {
  mount_attr change{};
  change.attr_set = MOUNT_ATTR_IDMAP;
  change.userns_fd = static_cast<std::uint64_t>(
      SBX_TRY(maps.for_owner(mount.host_source()->owner_uid, mount.host_source()->owner_gid)));
  if (::syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &change, sizeof change) == 0)
    return true;
  if (errno == EINVAL) return false;
  return fail(about(mount, "cannot-idmap", "cannot idmap '" + mount.source() + "'", errno));
}

bool open_to_all(int fd) {
  struct stat facts{};
  return ::fstat(fd, &facts) == 0 && (facts.st_mode & 05) == 05;
}

Result<Source> prepare(const Mount& mount, IdMaps& maps) {
  Source source{.tree = SBX_TRY(detach(mount))};
  if (!mount.host_source()->needs_idmap || SBX_TRY(idmap(mount, source.tree.get(), maps)))
    return source;
  if (!mount.host_source()->is_directory)
    return Source{.content = SBX_TRY(content_of(mount)), .by_content = true};
  if (mount.read_only() && open_to_all(source.tree.get())) return source;  // readable without a map
  const bool copied_instead = mount.kind() == MountKind::overlay && !mount.read_only();
  Error error = about(
      mount, copied_instead ? "no-overlay" : "cannot-idmap",
      "'" + mount.source() +
          "' is on a file system without idmapped mounts, which callers with root's rights need",
      EINVAL);
  if (copied_instead) error.retry = Retry::with_copies;
  error.hint =
      "run sbx as the owner of the directory, or copy it to a file system that has them (ext4, "
      "xfs, "
      "btrfs)";
  return fail(std::move(error));
}

}  // namespace

Result<std::vector<Source>> open_sources(const plan::Plan& plan, const MappedIdentity& identity) {
  std::vector<Source> sources(plan.mounts.size());
  if (!identity.changes_ids) return sources;
  IdMaps maps(identity.base);
  for (std::size_t i = 0; i < plan.mounts.size(); ++i)
    if (parent_opens(plan.mounts[i])) sources[i] = SBX_TRY(prepare(plan.mounts[i], maps));
  return sources;
}

}  // namespace sbx::spawn

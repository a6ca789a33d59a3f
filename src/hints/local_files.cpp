#include "hints/local_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "plan/files/path_text.hpp"

namespace sbx::hints {
namespace {

/// Looking at a name of one of these waits for no other machine and no other process.
constexpr auto kLocal = std::to_array<std::string_view>(
    {"ext2",     "ext3",   "ext4",     "xfs",   "btrfs", "bcachefs", "f2fs",
     "jfs",      "nilfs2", "reiserfs", "zfs",   "tmpfs", "ramfs",    "overlay",
     "squashfs", "erofs",  "vfat",     "exfat", "ntfs3", "iso9660",  "udf"});

constexpr int kMostLinks = 40;

std::unexpected<Error> not_looked_at(const std::string& path, int why) {
  return fail_errno(ErrorKind::host, "cannot-look", "cannot look at '" + path + "'", why);
}

}  // namespace

LocalFiles::LocalFiles(std::shared_ptr<const host::Files> all) : all_(std::move(all)) {
  if (auto mounts = host::mounts(*all_)) mounts_ = std::move(*mounts);
}

bool LocalFiles::is_local(const std::string& path) const {
  const host::MountPoint* deepest = nullptr;
  for (const host::MountPoint& mount : mounts_)
    if (plan::is_within(path, mount.path) &&
        (deepest == nullptr || mount.path.size() >= deepest->path.size()))
      deepest = &mount;
  return deepest != nullptr && std::ranges::find(kLocal, deepest->type) != kLocal.end();
}

Result<host::FileFacts> LocalFiles::look(const std::string& path) const {
  const std::string place =
      plan::joined(SBX_TRY(canonical(plan::parent_of(path))), plan::base_name(path));
  return all_->look(SBX_TRY(reach(place)));
}

Result<std::string> LocalFiles::reach(const std::string& path) const {
  // The kernel would look at what stands before the NUL.
  if (path.contains('\0')) return not_looked_at(path, EINVAL);
  if (!is_local(path)) return not_looked_at(path, EREMOTE);
  return path;
}

// realpath(3) by hand: it would enter whatever a link leads to, an automounter's directory too.
Result<std::string> LocalFiles::canonical(const std::string& path) const {
  std::string rest = path;
  std::string place = "/";
  int links = 0;
  while (!rest.empty()) {
    const auto slash = rest.find('/');
    const std::string part = rest.substr(0, slash);
    rest = slash == std::string::npos ? std::string() : rest.substr(slash + 1);
    if (part == "..") place = plan::parent_of(place);
    if (part.empty() || part == "." || part == "..") continue;
    const std::string next = SBX_TRY(reach(plan::joined(place, part)));
    if (SBX_TRY(all_->look(next)).type != host::FileType::symlink) {
      place = next;
      continue;
    }
    if (++links > kMostLinks) return not_looked_at(path, ELOOP);
    const std::string target = SBX_TRY(all_->link_target(next));
    if (target.starts_with('/')) place.resize(1);  // the root
    rest = fmt::format("{}/{}", target, rest);
  }
  return place;
}

Result<std::string> LocalFiles::link_target(const std::string& path) const {
  const std::string place =
      plan::joined(SBX_TRY(canonical(plan::parent_of(path))), plan::base_name(path));
  return all_->link_target(SBX_TRY(reach(place)));
}

Result<std::string> LocalFiles::read_head(const std::string& path, std::size_t limit) const {
  const std::string place = SBX_TRY(canonical(path));
  if (SBX_TRY(all_->look(place)).type != host::FileType::regular)
    return not_looked_at(path, EINVAL);
  return all_->read_head(place, limit);
}

Result<std::vector<host::Entry>> LocalFiles::list(const std::string& path,
                                                  const host::Wanted& wanted) const {
  return all_->list(SBX_TRY(canonical(path)), wanted);
}

Status LocalFiles::walk(const std::string& root, const host::Visit& visit,
                        const host::Shut& shut) const {
  return all_->walk(SBX_TRY(canonical(root)), visit, shut);
}

bool LocalFiles::may_read(const std::string& path) const {
  const auto place = canonical(path);
  return place && all_->may_read(*place);
}

bool LocalFiles::may_execute(const std::string& path) const {
  const auto place = canonical(path);
  return place && all_->may_execute(*place);
}

host::Host local_view(const host::Host& host) {
  host::Host view = host;
  view.files = std::make_shared<const LocalFiles>(host.files);
  return view;
}

}  // namespace sbx::hints

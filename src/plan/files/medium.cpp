#include "plan/files/medium.hpp"

#include <algorithm>
#include <string_view>

#include "plan/files/path_text.hpp"

namespace sbx::plan {
namespace {

/// The mount with the longest matching path; among equals the last, which covers the others.
const host::MountPoint* mount_over(std::string_view path,
                                   const std::vector<host::MountPoint>& mounts) {
  const host::MountPoint* found = nullptr;
  for (const host::MountPoint& mount : mounts)
    if (is_within(path, mount.path) &&
        (found == nullptr || mount.path.size() >= found->path.size()))
      found = &mount;
  return found;
}

/// The value of "NAME=VALUE" in a comma-separated list; empty if it is missing.
std::string_view option(std::string_view options, std::string_view name) {
  while (!options.empty()) {
    const std::string_view each = options.substr(0, options.find(','));
    options.remove_prefix(std::min(each.size() + 1, options.size()));
    if (each.starts_with(name)) return each.substr(name.size());
  }
  return {};
}

constexpr int kMostLayers = 3;  // the kernel stacks two (FILESYSTEM_MAX_STACK_DEPTH)

}  // namespace

Medium medium_of(const std::string& path, const std::vector<host::MountPoint>& mounts) {
  std::string_view place = path;
  Medium otherwise = Medium::disk;
  for (int layer = 0; layer < kMostLayers; ++layer) {
    const host::MountPoint* const mount = mount_over(place, mounts);
    if (mount == nullptr) return otherwise;
    // Without a size the kernel doesn't count usage (shmem_statfs).
    if (mount->type == "tmpfs" || mount->type == "devtmpfs")
      return option(mount->options, "size=") == "0k" ? Medium::uncountable : Medium::memory;
    if (mount->type == "rootfs")
      return Medium::memory;  // a tmpfs; if it doesn't count, the start of the run notices
    if (mount->type == "ramfs" || mount->type == "hugetlbfs") return Medium::uncountable;
    if (mount->type != "overlay") return otherwise;
    place = option(mount->options, "upperdir=");
    if (place.empty()) return otherwise;
    // The path held when and where the overlay was mounted; on a live system or in a container it
    // no longer does.
    otherwise = Medium::unseen;
  }
  return otherwise;
}

}  // namespace sbx::plan

#include "plan/files/medium.hpp"

#include <algorithm>
#include <string_view>

#include "plan/files/path_text.hpp"

namespace sbx::plan {
namespace {

/// The last of those with the longest path: what was mounted later lies above.
const host::MountPoint* mount_over(std::string_view path,
                                   const std::vector<host::MountPoint>& mounts) {
  const host::MountPoint* found = nullptr;
  for (const host::MountPoint& mount : mounts)
    if (is_within(path, mount.path) &&
        (found == nullptr || mount.path.size() >= found->path.size()))
      found = &mount;
  return found;
}

/// The value of "NAME=VALUE" among options with commas between them; empty when it is not there.
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
    // Without a size the kernel keeps no count (shmem_statfs).
    if (mount->type == "tmpfs" || mount->type == "devtmpfs")
      return option(mount->options, "size=") == "0k" ? Medium::uncountable : Medium::memory;
    if (mount->type == "rootfs")
      return Medium::memory;  // a tmpfs, or no count is found at the start
    if (mount->type == "ramfs" || mount->type == "hugetlbfs") return Medium::uncountable;
    if (mount->type != "overlay") return otherwise;
    place = option(mount->options, "upperdir=");
    if (place.empty()) return otherwise;
    // As a path it was right when it was mounted, and there: a live system's, a container's is not.
    otherwise = Medium::unseen;
  }
  return otherwise;
}

}  // namespace sbx::plan

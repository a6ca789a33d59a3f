#include "spawn/rights.hpp"

#include <linux/mount.h>

#include "spawn/landlock.hpp"

namespace sbx::spawn {
namespace {

namespace landlock = child::landlock;

std::uint64_t landlock_rights(const plan::Access& access, std::uint64_t handled) {
  const plan::Rights& rights = access.rights;
  if (access.lists_only) return landlock::read_dir & handled;
  if (access.holds_only) return landlock::execute & handled;
  std::uint64_t all = landlock::read_file | landlock::read_dir;
  if (rights.execute) all |= landlock::execute;
  if (rights.write) all |= landlock::write_file | landlock::truncate | landlock::ioctl_dev;
  if (rights.plain) {
    // Within one directory link(2) and rename(2) need no more (current_check_refer_path).
    all &= ~landlock::ioctl_dev;
    if (rights.make) all |= landlock::make_reg | landlock::remove_file;
    return all & handled;
  }
  if (rights.make)
    all |= landlock::remove_dir | landlock::remove_file | landlock::make_dir | landlock::make_reg |
           landlock::make_sym | landlock::refer;
  if (rights.make && rights.special) all |= landlock::make_fifo | landlock::make_sock;
  if (!access.is_directory) all &= landlock::kRightsOfFile;
  return all & handled;
}

}  // namespace

std::uint64_t mount_attributes(const plan::Rights& rights) {
  std::uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (!rights.write) attributes |= MOUNT_ATTR_RDONLY;
  if (!rights.execute) attributes |= MOUNT_ATTR_NOEXEC;
  return attributes;
}

std::vector<LandlockRule> landlock_rules(const plan::Plan& plan) {
  if (plan.landlock_abi == 0 || !plan.landlock_files) return {};
  const std::uint64_t handled = landlock::file_rights(plan.landlock_abi);
  std::vector<LandlockRule> rules;
  std::uint64_t everywhere = 0;
  for (const plan::Access& access : plan.access) {
    const std::uint64_t rights = landlock_rights(access, handled);
    if ((rights & ~everywhere) == 0) continue;
    if (access.path == "/") everywhere = rights;
    rules.push_back({access.path, rights});
  }
  return rules;
}

}  // namespace sbx::spawn

#include "host/process_view.hpp"

#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace sbx::host {
namespace {

/// hidepid hides what the caller may not trace, ptrace(2).
bool traces_all() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  return ::syscall(SYS_capget, &header, sets) == 0 &&
         (sets[CAP_TO_INDEX(CAP_SYS_PTRACE)].effective & CAP_TO_MASK(CAP_SYS_PTRACE)) != 0;
}

/// Shown by the init of this PID namespace, which belongs to somebody else. Where it is the
/// caller's own, as it may be in a container, nobody can tell.
bool shows_others() {
  struct stat facts{};
  return ::stat("/proc/1/task", &facts) == 0 && facts.st_uid != ::geteuid();
}

}  // namespace

bool lists_processes() {
  return ::access("/proc/thread-self/children", R_OK) == 0 && (traces_all() || shows_others());
}

Result<bool> hides_processes(const Files& files) {
  if (::access("/proc/thread-self/children", R_OK) != 0) return true;
  if (traces_all()) return false;
  const std::vector<MountPoint> all = SBX_TRY(mounts(files));
  const auto last = std::ranges::find(all.rbegin(), all.rend(), "/proc", &MountPoint::path);
  return last == all.rend() || last->options.contains("hidepid=");
}

}  // namespace sbx::host

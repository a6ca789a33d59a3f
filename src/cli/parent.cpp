#include "cli/parent.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace sbx::cli {

UniqueFd open_parent() {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, ::getppid(), 0)));
}

}  // namespace sbx::cli

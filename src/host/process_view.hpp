#pragma once

#include "host/host.hpp"

namespace sbx::host {

/// Whether the supervisor finds a sandbox's processes in the caller's /proc, from PID 1 down.
/// Otherwise PID 1 hands over a procfs of its own, which costs each start 40 to 100 us. False
/// without CONFIG_PROC_CHILDREN, and where /proc is mounted with hidepid, which hides PID 1 because
/// it is not dumpable, proc(5).
[[nodiscard]] bool lists_processes();

/// Whether the supervisor surely does not find them there: /proc is mounted with hidepid, or has no
/// lists of children. In a container lists_processes() is mostly false, and so is this. Errors:
/// host.
[[nodiscard]] Result<bool> hides_processes(const Files& files);

}  // namespace sbx::host

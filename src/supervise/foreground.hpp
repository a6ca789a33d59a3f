#pragma once

#include <sys/types.h>

#include <cstdint>

namespace sbx::supervise {

/// Kills what the main process of a call waits for: the other processes of its group that began
/// since that moment of sys::now_microseconds(). What it keeps in the background from before stays.
/// `init`: that of the call, as the host's /proc names it; where that hides processes, nothing is
/// killed.
void kill_foreground(pid_t init, std::uint64_t since_microseconds);

}  // namespace sbx::supervise

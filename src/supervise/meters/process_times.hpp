#pragma once

#include <sys/types.h>

#include <string>

#include "base/cpu_time.hpp"

/// CPU times of one process from /proc/PID/stat, in whole ticks.
namespace sbx::supervise {

/// The first of two fields: utime and stime, cutime and cstime, proc(5).
enum class Fields : int { own = 14, reaped = 16 };

/// Adds the times of the process in the directory `process` of `proc` (AT_FDCWD: an absolute path).
/// Adds nothing if it has ended.
void add_times(int proc, const std::string& process, Fields fields, CpuTime& sum);

/// The times of the children that a process has waited for.
[[nodiscard]] CpuTime reaped_children_of(pid_t process);

}  // namespace sbx::supervise

#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>

/// Processes by their numbers on the host, out of /proc. All of it may be gone a moment later.
namespace sbx::supervise {

/// "/proc/PID".
[[nodiscard]] std::string process_folder(pid_t process);

/// Whether /proc shows this PID namespace and lists children (CONFIG_PROC_CHILDREN).
[[nodiscard]] bool tree_is_visible();

/// What paths below a procfs of the sandbox are relative to; -1: those below the host's.
[[nodiscard]] int proc_of(int processes);

/// The content of a file of /proc as far as `room` goes; empty when it can't be read.
[[nodiscard]] std::string_view read_small(int folder, const std::string& path,
                                          std::span<char> room);

/// The number after `name` ("Pss_Anon:") in a file of /proc, in kB; 0 when it is not there.
[[nodiscard]] std::uint64_t kilobytes_of(std::string_view text, std::string_view name);

}  // namespace sbx::supervise

#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Processes by their numbers on the host, out of /proc. All of it may be gone a moment later.
namespace sbx::supervise {

/// "/proc/PID".
[[nodiscard]] std::string process_folder(pid_t process);

/// Whether /proc shows this PID namespace and lists children (CONFIG_PROC_CHILDREN).
[[nodiscard]] bool tree_is_visible();

/// Empty when the process is gone.
[[nodiscard]] std::vector<pid_t> threads_of(pid_t process);

/// Children of these threads of a process, sorted.
[[nodiscard]] std::vector<pid_t> children_of(pid_t process, const std::vector<pid_t>& threads);

/// "/proc/PID" of every process below this one, itself left out.
[[nodiscard]] std::vector<std::string> folders_below(pid_t process);

/// The processes of a sandbox without PID 1, which is sbx's own, as folders below proc_of(): of a
/// procfs of the sandbox where there is one, else found from PID 1 in the host's /proc.
[[nodiscard]] std::vector<std::string> processes_of(pid_t pid1, int processes);
/// What these folders are relative to.
[[nodiscard]] int proc_of(int processes);

/// The content of a file of /proc as far as `room` goes; empty when it can't be read.
[[nodiscard]] std::string_view read_small(int folder, const std::string& path,
                                          std::span<char> room);

/// The names in a folder that are numbers.
[[nodiscard]] std::vector<std::string> numbers_in(int at, const std::string& folder);

}  // namespace sbx::supervise

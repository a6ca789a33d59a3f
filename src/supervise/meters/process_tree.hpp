#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>

/// Processes of the host's /proc by number. Every result may be outdated a moment later.
namespace sbx::supervise {

/// "/proc/PID".
[[nodiscard]] std::string process_directory(pid_t process);

/// True if /proc shows this PID namespace and lists children (CONFIG_PROC_CHILDREN).
[[nodiscard]] bool tree_is_visible();

/// The directory descriptor for paths below a procfs of the sandbox; -1: the host's /proc.
[[nodiscard]] int proc_of(int processes);

/// The contents of a file of /proc, as much as fits into `room`; empty if it can't be read.
[[nodiscard]] std::string_view read_small(int directory, const std::string& path,
                                          std::span<char> room);

/// The number after `name` ("Pss_Anon:") in a file of /proc, in kB; 0 if missing.
[[nodiscard]] std::uint64_t kilobytes_of(std::string_view text, std::string_view name);

}  // namespace sbx::supervise

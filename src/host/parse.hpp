#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "host/host.hpp"

/// Parses texts of the kernel and of /etc. Reads no files.
namespace sbx::host {

/// True for the map of the initial user namespace, user_namespaces(7): one line "0 0 4294967295".
[[nodiscard]] bool is_full_id_map(std::string_view uid_map);
/// True if the uid is 0 in the outer user namespace. Of namespaces around that one nothing can be
/// seen from inside.
[[nodiscard]] bool is_root_outside(std::string_view uid_map, uid_t uid);
/// The sixth field of the uid's line; empty when there is none or it is not absolute.
[[nodiscard]] std::string home_in_passwd(std::string_view passwd, uid_t uid);
/// Entries of a PATH that begin with '/', in order.
[[nodiscard]] std::vector<std::string> absolute_entries(std::string_view path);
/// MemAvailable of /proc/meminfo in bytes; 0 when it is missing.
[[nodiscard]] std::uint64_t memory_available(std::string_view meminfo);
/// True if /proc/self/fdinfo/N of a pidfd shows the process `pid` of this PID namespace itself.
/// "NSpid:" has a number for each namespace from this one down to the process's own; -1 once the
/// process is reaped, 0 for one that is not below this namespace, pidfd_open(2).
[[nodiscard]] bool is_of_this_pid_namespace(std::string_view pidfd_facts, pid_t pid);
/// Mount points of /proc/self/mountinfo in its order, with \040 and its like decoded.
[[nodiscard]] std::vector<MountPoint> mounts_in(std::string_view mountinfo);

}  // namespace sbx::host

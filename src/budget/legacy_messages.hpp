#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>

/// What the supervisor and the attacher of cgroup v1 say to each other, each a whole struct on a
/// SOCK_SEQPACKET pair. Their memory is the same program's, so plain structs do.
namespace sbx::budget {

enum class Controller : std::uint8_t { memory, pids, cpu, cpuacct };
inline constexpr std::size_t kControllers = 4;

/// From the attacher, with the folders' descriptors (SCM_RIGHTS) in the order of Controller; those of
/// one hierarchy with two controllers come twice.
struct GroupsMade {
  std::array<bool, kControllers> made{};
  std::array<std::array<char, 512>, kControllers> paths{};
  bool has_memory_granted = false;
  bool has_processes_granted = false;
  bool has_cpus_granted = false;
  std::uint64_t memory_granted = 0;
  std::uint64_t processes_granted = 0;
  double cpus_granted = 0;
  std::array<char, 256> why{};
};

/// From the supervisor: put this process into the groups.
struct Attach {
  pid_t process;
};

/// From the attacher, which then ends.
struct Attached {
  int error;  ///< errno; 0: done
};

}  // namespace sbx::budget

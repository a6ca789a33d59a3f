#include "plan/path_calls.hpp"

#include <sys/syscall.h>

namespace sbx::plan {

const std::vector<PathCall>& path_calls() {
  static const std::vector<PathCall> table = {
      {.number = SYS_openat, .path = 1, .directory = 0, .flags = 2},
      {.number = SYS_openat2, .path = 1, .directory = 0},
      {.number = SYS_newfstatat, .path = 1, .directory = 0},
      {.number = SYS_statx, .path = 1, .directory = 0},
      {.number = SYS_faccessat, .path = 1, .directory = 0},
      {.number = SYS_faccessat2, .path = 1, .directory = 0},
      {.number = SYS_execve, .path = 0},
      {.number = SYS_execveat, .path = 1, .directory = 0},
      {.number = SYS_chdir, .path = 0},
#ifdef SYS_open  // newer architectures have only the *at calls
      {.number = SYS_open, .path = 0, .flags = 1},
      {.number = SYS_stat, .path = 0},
      {.number = SYS_lstat, .path = 0},
      {.number = SYS_access, .path = 0},
#endif
  };
  return table;
}

std::vector<int> calls_with_paths() {
  std::vector<int> numbers;
  for (const PathCall& call : path_calls()) numbers.push_back(call.number);
  return numbers;
}

}  // namespace sbx::plan

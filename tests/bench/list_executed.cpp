// list_executed PROGRAM [ARGUMENT...]: lists the addresses of PROGRAM's own instructions in the
// order of their first execution, one hexadecimal number per line, relative to the load address.
// Single-steps the program and the processes that it clones until they execute another program; for
// tests/bench/order_functions. Needs root.
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <unordered_set>

namespace {

struct Area {
  unsigned long begin = 0;
  unsigned long end = 0;
};

/// The mapping of `path` in a process.
Area area_of(pid_t process, const std::string& path) {
  Area area;
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (!line.ends_with(path)) continue;
    char* rest = nullptr;
    const unsigned long begin = std::strtoul(line.c_str(), &rest, 16);
    if (area.begin == 0) area.begin = begin;
    area.end = std::strtoul(rest + 1, nullptr, 16);
  }
  return area;
}

pid_t start(char** argv) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  ::raise(SIGSTOP);
  ::close(STDOUT_FILENO);
  (void)::open("/dev/null", O_WRONLY);  // NOLINT(android-cloexec-open): discards the output
  ::execv(argv[0], argv);
  ::_exit(127);
}

}  // namespace

int main(int argc, char** argv) {
  char path[PATH_MAX];
  if (argc < 2 || ::realpath(argv[1], path) == nullptr) return 2;
  const pid_t first = start(argv + 1);
  int status = 0;
  ::waitpid(first, &status, 0);
  ::ptrace(PTRACE_SETOPTIONS, first, nullptr,
           PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
               PTRACE_O_EXITKILL);
  ::ptrace(PTRACE_CONT, first, nullptr, nullptr);
  Area area;
  std::unordered_set<unsigned long> seen;
  for (pid_t stopped = ::waitpid(-1, &status, __WALL); stopped > 0;
       stopped = ::waitpid(-1, &status, __WALL)) {
    if (!WIFSTOPPED(status)) continue;
    const int event = status >> 16;
    if (event == PTRACE_EVENT_EXEC && area.end != 0) {  // the command inside: not to be listed
      ::ptrace(PTRACE_CONT, stopped, nullptr, nullptr);
      continue;
    }
    if (event == PTRACE_EVENT_EXEC) area = area_of(stopped, path);
    user_regs_struct registers{};
    ::ptrace(PTRACE_GETREGS, stopped, nullptr, &registers);
    if (registers.rip >= area.begin && registers.rip < area.end &&
        seen.insert(registers.rip).second)
      std::printf("%lx\n", registers.rip - area.begin);
    const int signal = WSTOPSIG(status);
    const bool is_step = event != 0 || signal == SIGTRAP || signal == SIGSTOP;
    ::ptrace(PTRACE_SINGLESTEP, stopped, nullptr, is_step ? 0 : signal);
  }
  return 0;
}

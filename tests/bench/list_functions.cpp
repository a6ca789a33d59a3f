// list_functions PROGRAM [ARGUMENT...]: lists the functions of PROGRAM that it and the processes
// that it clones execute, in the order of their first execution, until they execute another
// program. Standard input has the addresses of the functions, one hexadecimal number per line,
// relative to the load address; so has the output. For tests/bench/order_functions. Needs root.
//
// Each function begins with a breakpoint until it has been executed: the program runs about as fast
// as by itself, so that none of its clocks ends it.
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
#include <iostream>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace {

constexpr long kLastByte = 0xff;
constexpr long kBreakpoint = 0xcc;  // int3

/// Where `path` is mapped in a process. 0: nowhere.
unsigned long load_address(pid_t process, const std::string& path) {
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.ends_with(path)) return std::strtoul(line.c_str(), nullptr, 16);
  return 0;
}

long word_at(pid_t process, unsigned long address) {
  return ::ptrace(PTRACE_PEEKTEXT, process, address, nullptr);
}

/// Returns the byte that was there.
long put_byte(pid_t process, unsigned long address, long byte) {
  const long word = word_at(process, address);
  ::ptrace(PTRACE_POKETEXT, process, address, (word & ~kLastByte) | byte);
  return word & kLastByte;
}

pid_t start(char** argv) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  ::raise(SIGSTOP);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDOUT_FILENO);
  ::execv(argv[0], argv);
  ::_exit(127);
}

class Lister {
 public:
  explicit Lister(std::string path) : path_(std::move(path)) {
    for (std::string line; std::getline(std::cin, line);)
      bytes_[std::strtoul(line.c_str(), nullptr, 16)] = 0;
  }

  /// Handles the stop of a process, and lets it run on.
  void handle(pid_t process, int status) {
    const int event = status >> 16;
    const int signal = WSTOPSIG(status);
    if (event == PTRACE_EVENT_EXEC && base_ != 0) {  // the command inside: not to be listed
      ::ptrace(PTRACE_DETACH, process, nullptr, nullptr);
      return;
    }
    if (event == PTRACE_EVENT_EXEC) set_breakpoints(process);
    const bool is_ours = event != 0 || signal == SIGSTOP || (signal == SIGTRAP && passed(process));
    ::ptrace(PTRACE_CONT, process, nullptr, is_ours ? 0 : signal);
  }

 private:
  void set_breakpoints(pid_t process) {
    base_ = load_address(process, path_);
    for (auto& [function, byte] : bytes_) byte = put_byte(process, base_ + function, kBreakpoint);
  }

  /// Whether a process stopped at a breakpoint; it executes the function now.
  bool passed(pid_t process) {
    user_regs_struct registers{};
    ::ptrace(PTRACE_GETREGS, process, nullptr, &registers);
    const auto found = bytes_.find(registers.rip - 1 - base_);
    if (found == bytes_.end()) return false;
    if (seen_.insert(found->first).second) std::printf("%lx\n", found->first);
    put_byte(process, base_ + found->first, found->second);
    --registers.rip;
    ::ptrace(PTRACE_SETREGS, process, nullptr, &registers);
    return true;
  }

  std::string path_;
  unsigned long base_ = 0;
  std::unordered_map<unsigned long, long> bytes_;  ///< each function's first byte
  std::unordered_set<unsigned long> seen_;
};

}  // namespace

int main(int argc, char** argv) {
  char path[PATH_MAX];
  if (argc < 2 || ::realpath(argv[1], path) == nullptr) return 2;
  Lister lister(path);
  const pid_t first = start(argv + 1);
  int status = 0;
  ::waitpid(first, &status, 0);
  ::ptrace(PTRACE_SETOPTIONS, first, nullptr,
           PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
               PTRACE_O_EXITKILL);
  ::ptrace(PTRACE_CONT, first, nullptr, nullptr);
  for (pid_t stopped = ::waitpid(-1, &status, __WALL); stopped > 0;
       stopped = ::waitpid(-1, &status, __WALL))
    if (WIFSTOPPED(status)) lister.handle(stopped, status);
  return 0;
}

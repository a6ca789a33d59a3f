// Bare system calls: by number, with bad arguments, in unusual forms. "worked" means that the call
// reached the kernel's own code; EPERM and ENOSYS, the two answers of a filter, mean "refused".
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "probe.hpp"

namespace probe {
namespace {

int raw(Arguments arguments) {
  long values[6] = {};
  for (int i = 0; i < 6 && arguments[1 + i] != nullptr; ++i) values[i] = number(arguments[1 + i]);
  return answer(syscall(number(arguments[0]), values[0], values[1], values[2], values[3], values[4],
                        values[5]));
}

/// Any errno other than those two counts as reached.
int reaches(Arguments arguments) {
  long values[6] = {};
  for (int i = 0; i < 6 && arguments[1 + i] != nullptr; ++i) values[i] = number(arguments[1 + i]);
  if (syscall(number(arguments[0]), values[0], values[1], values[2], values[3], values[4],
              values[5]) != -1) {
    return worked();
  }
  if (errno == EPERM || errno == ENOSYS) return refused();
  std::printf("reached the kernel: %s\n", strerrorname_np(errno));
  return kWorked;
}

/// clone with a namespace flag; the child ends at once.
int clone_with(Arguments arguments) {
  const long child =
      syscall(SYS_clone, static_cast<unsigned long>(number(arguments[0])) | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) _exit(0);
  if (child > 0) waitpid(static_cast<pid_t>(child), nullptr, 0);
  return answer(child);
}

int unshare_with(Arguments arguments) {
  return answer(unshare(static_cast<int>(number(arguments[0]))));
}

/// The i386 gate from 64-bit code, where getpid is number 20.
int old_gate(Arguments) {
#if defined(__x86_64__)
  long result = 20;
  asm volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
  if (result > 0) return worked();
  return refused(static_cast<int>(-result));
#else
  errno = ENOSYS;
  return unasked("not on this architecture");
#endif
}

/// x32: the same numbers with bit 30 set.
int x32_gate(Arguments) {
  const long result = syscall(0x40000000L + SYS_getpid);
  return answer(result);
}

int terminal_request(Arguments arguments) {
  char letter = 'x';
  return answer(syscall(SYS_ioctl, static_cast<int>(number(arguments[1])),
                        static_cast<unsigned long>(number(arguments[0])), &letter));
}

/// Installs a filter; with "listener" one with its own listener.
int own_filter(Arguments arguments) {
  sock_filter instructions[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog program{1, instructions};
  const bool listener = arguments[0] != nullptr && std::strcmp(arguments[0], "listener") == 0;
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return answer(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                        listener ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0UL, &program));
}

/// Runs a command below a filter with a listener, so that a second listener fails with EBUSY.
int run_below_listener(Arguments arguments) {
  sock_filter instructions[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog program{1, instructions};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const long listener =
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  if (listener < 0) return refused();
  // The listener must outlive this program: once it is closed, another one can be installed.
  fcntl(static_cast<int>(listener), F_SETFD, 0);
  execv(arguments[0], arguments);
  return unasked("execv");
}

/// Makes one denied call N times: how many were refused, and with which errno. With "signals" as
/// second argument, a signal arrives every millisecond.
int flood(Arguments arguments) {
  const long count = number(arguments[1]);
  if (arguments[2] != nullptr && std::strcmp(arguments[2], "signals") == 0) {
    struct sigaction action{};
    action.sa_handler = [](int) {};
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    const itimerval often{{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &often, nullptr);
  }
  const long call = number(arguments[0]);
  long permission = 0;
  long other = 0;
  for (long i = 0; i < count; ++i) {
    if (syscall(call, 0, 0, 0, 0, 0, 0) == -1 && errno == EPERM) {
      ++permission;
    } else {
      ++other;
    }
  }
  std::printf("EPERM %ld other %ld\n", permission, other);
  return other == 0 ? kRefused : kWorked;
}

int list_status(Arguments arguments) {
  FILE* status = std::fopen("/proc/self/status", "r");
  if (status == nullptr) return unasked("status");
  char line[512];
  while (std::fgets(line, sizeof line, status) != nullptr) {
    if (arguments[0] == nullptr || std::strncmp(line, arguments[0], std::strlen(arguments[0])) == 0)
      std::fputs(line, stdout);
  }
  return kWorked;
}

constexpr Probe kProbes[] = {
    {"raw", "NUMBER [ARGUMENTS]", 1, raw},
    {"reaches", "NUMBER [ARGUMENTS]", 1, reaches},
    {"clone", "FLAGS", 1, clone_with},
    {"unshare", "FLAGS", 1, unshare_with},
    {"int80", "", 0, old_gate},
    {"x32", "", 0, x32_gate},
    {"terminal-request", "REQUEST FD", 2, terminal_request},
    {"own-filter", "[listener]", 0, own_filter},
    {"below-listener", "PROGRAM [ARGUMENTS]", 1, run_below_listener},
    {"flood", "NUMBER COUNT [signals]", 2, flood},
    {"status", "[PREFIX]", 0, list_status},
};

}  // namespace
const Table kCallProbes{kProbes, sizeof kProbes / sizeof kProbes[0]};
}  // namespace probe

// Questions about other processes: whether they can be traced, killed, limited or read.
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "probe.hpp"

namespace probe {
namespace {

pid_t waiting_child = 0;

/// Without this, PID 1 reaps the child at some later moment, and until then it counts as a process.
void end_waiting_child() {
  if (kill(waiting_child, SIGKILL) == 0) waitpid(waiting_child, nullptr, 0);
}

/// A child that waits to be killed, as the target of a question.
pid_t sleeping_child() {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);  // the parent ended before the line above
    for (;;) pause();
  }
  waiting_child = child;
  if (child > 0) std::atexit(end_waiting_child);
  return child;
}

pid_t target(const char* text) {
  if (std::strcmp(text, "child") == 0) return sleeping_child();
  if (std::strcmp(text, "self") == 0) return getpid();
  return static_cast<pid_t>(number(text));
}

int trace(Arguments arguments) {
  return answer(ptrace(PTRACE_SEIZE, target(arguments[0]), nullptr, nullptr));
}

int send_signal(Arguments arguments) {
  return answer(
      kill(static_cast<pid_t>(number(arguments[0])), static_cast<int>(number(arguments[1]))));
}

int limit_cpu(Arguments arguments) {
  const rlimit nothing{0, 0};
  const pid_t whom = target(arguments[0]);
  return answer(syscall(SYS_prlimit64, whom == getpid() ? 0 : whom, RLIMIT_CPU, &nothing, nullptr));
}

int limit_files_of_itself(Arguments) {
  rlimit limit{};
  if (syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit) != 0) return refused();
  limit.rlim_cur = limit.rlim_cur / 2;
  return answer(syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, nullptr));
}

int read_limit(Arguments arguments) {
  rlimit limit{};
  return answer(syscall(SYS_prlimit64, target(arguments[0]), RLIMIT_NOFILE, nullptr, &limit));
}

int read_memory(Arguments arguments) {
  char mine[16];
  static char theirs[16];
  const iovec local{mine, sizeof mine};
  const iovec remote{theirs, sizeof theirs};
  return answer(process_vm_readv(target(arguments[0]), &local, 1, &remote, 1, 0));
}

int steal_fd(Arguments arguments) {
  const long pidfd = syscall(SYS_pidfd_open, target(arguments[0]), 0);
  if (pidfd < 0) return refused();
  return answer(syscall(SYS_pidfd_getfd, pidfd, 0, 0));
}

int compare(Arguments arguments) {
  return answer(syscall(SYS_kcmp, getpid(), target(arguments[0]), 0 /* KCMP_FILE */, 0, 0));
}

int reschedule(Arguments arguments) {
  return answer(setpriority(PRIO_PROCESS, static_cast<id_t>(target(arguments[0])), 19));
}

int widen_affinity(Arguments) {
  cpu_set_t every;
  std::memset(&every, 0xff, sizeof every);
  return answer(sched_setaffinity(0, sizeof every, &every));
}

int attach_shared_memory(Arguments arguments) {
  return answer(shmget(static_cast<key_t>(number(arguments[0])), 0, 0));
}
int open_message_queue(Arguments arguments) {
  return answer(msgget(static_cast<key_t>(number(arguments[0])), 0));
}
int open_semaphore(Arguments arguments) {
  return answer(semget(static_cast<key_t>(number(arguments[0])), 0, 0));
}

/// Runs a set-user-ID program and checks whether its effective uid differs from its real one.
int run_setuid(Arguments arguments) {
  int in[2];
  if (pipe(in) != 0) return unasked("pipe");
  const pid_t child = fork();
  if (child == 0) {
    dup2(in[0], 0);
    close(in[0]);
    close(in[1]);
    execv(arguments[0], arguments);
    _exit(127);
  }
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/status", child);
  // execve changes the name before the ids: so poll until the program sleeps under its new name, or
  // is dead.
  unsigned real = 0;
  unsigned effective = 0;
  char mine[64] = "";
  if (FILE* own = std::fopen("/proc/self/comm", "r")) {
    if (std::fscanf(own, "%63s", mine) != 1) return unasked("comm");
    std::fclose(own);
  }
  bool ran = false;
  char state = 'R';
  while (!ran || (state != 'S' && state != 'Z')) {
    FILE* status = std::fopen(path, "r");
    if (status == nullptr) break;
    char line[256];
    char name[64] = "";
    while (std::fgets(line, sizeof line, status) != nullptr) {
      std::sscanf(line, "Name: %63s", name);
      std::sscanf(line, "State: %c", &state);
      std::sscanf(line, "Uid: %u %u", &real, &effective);
    }
    std::fclose(status);
    ran = std::strcmp(name, mine) != 0;
    sched_yield();
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (!ran) return unasked("the set-uid program did not start");
  if (real != effective) return worked();
  return refused(EPERM);
}

int count_children_until_refused(Arguments) {
  long made = 0;
  for (; made < 100000; ++made) {
    const pid_t child = fork();
    if (child < 0) break;
    if (child == 0) {
      for (;;) pause();
    }
  }
  const int error = errno;
  std::printf("children %ld\n", made);
  return made == 100000 ? worked() : refused(error);
}

constexpr Probe kProbes[] = {
    {"trace", "PID|child", 1, trace},
    {"signal", "PID SIGNAL", 2, send_signal},
    {"limit-cpu", "PID|self|child", 1, limit_cpu},
    {"limit-own-files", "", 0, limit_files_of_itself},
    {"read-limit", "PID|self|child", 1, read_limit},
    {"read-memory", "PID|child", 1, read_memory},
    {"steal-fd", "PID|child", 1, steal_fd},
    {"compare", "PID|child", 1, compare},
    {"reschedule", "PID|self|child", 1, reschedule},
    {"widen-affinity", "", 0, widen_affinity},
    {"shared-memory", "KEY", 1, attach_shared_memory},
    {"message-queue", "KEY", 1, open_message_queue},
    {"semaphore", "KEY", 1, open_semaphore},
    {"setuid", "PROGRAM [ARGUMENTS]", 1, run_setuid},
    {"fork-bomb", "", 0, count_children_until_refused},
};

}  // namespace
const Table kProcessProbes{kProbes, sizeof kProbes / sizeof kProbes[0]};
}  // namespace probe

// Programs that use CPU time or processes in one particular way each, in a given amount, so that
// the same program also tests usage below the budget. They run only under sbx.
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "amounts.hpp"
#include "probe.hpp"

namespace probe {
namespace {

std::uint64_t own_cpu_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
}

void spin_for(std::uint64_t milliseconds) {
  const std::uint64_t end = own_cpu_milliseconds() + milliseconds;
  while (own_cpu_milliseconds() < end) {
  }
}

/// "waited" or "ignored": COUNT children in succession, each of which uses MS of CPU time. With
/// "ignored" nobody waits for them, so their time is added to no parent.
int spin_in_children(Arguments arguments) {
  const bool ignored = std::strcmp(arguments[0], "ignored") == 0;
  if (ignored) signal(SIGCHLD, SIG_IGN);
  const long count = number(arguments[1]);
  const auto each = static_cast<std::uint64_t>(number(arguments[2]));
  for (long i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child < 0) return refused();
    if (child == 0) {
      spin_for(each);
      _exit(0);
    }
    waitpid(child, nullptr, 0);  // with "ignored" it returns ECHILD once the child is gone
  }
  return worked();
}

/// COUNT processes that use MS of CPU time each, in parallel; with "widen" each first asks for
/// every CPU.
int spin_side_by_side(Arguments arguments) {
  const long count = number(arguments[0]);
  for (long i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child < 0) return refused();
    if (child > 0) continue;
    if (arguments[2] != nullptr) {
      cpu_set_t every;
      std::memset(&every, 0xff, sizeof every);
      (void)sched_setaffinity(0, sizeof every, &every);
    }
    spin_for(static_cast<std::uint64_t>(number(arguments[1])));
    _exit(0);
  }
  return wait_for_children();
}

void* wait_in_thread(void*) {
  for (;;) pause();
}

/// COUNT threads.
int make_threads(Arguments arguments) {
  const long count = number(arguments[0]);
  for (long made = 0; made < count; ++made) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    pthread_t thread;
    const int error = pthread_create(&thread, &attributes, wait_in_thread, nullptr);
    if (error != 0) {
      std::printf("threads %ld\n", made);
      errno = error;
      return refused_for_a_while();
    }
  }
  return worked();
}

/// COUNT children that have ended and are never reaped.
int leave_zombies(Arguments arguments) {
  const long count = number(arguments[0]);
  for (long made = 0; made < count; ++made) {
    const pid_t child = fork();
    if (child < 0) {
      return refused_for_a_while();
    }
    if (child == 0) _exit(0);
  }
  return worked();
}

/// Forks as often as the kernel allows, in the children too, forever: a fork bomb that doesn't give
/// up.
int fork_for_ever(Arguments) {
  for (;;) {
    if (fork() < 0) sched_yield();
  }
}

/// Stops itself; continues if it gets SIGCONT.
int stop_itself(Arguments) {
  raise(SIGSTOP);
  return worked();
}

/// Wakes up every MS ms until its input ends; prints its largest delay in ms.
int tick(Arguments arguments) {
  const long wanted = number(arguments[0]);
  long worst = 0;
  std::puts("ready");
  timespec before{};
  clock_gettime(CLOCK_MONOTONIC, &before);
  for (;;) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    const int ended = poll(&input, 1, static_cast<int>(wanted));
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long passed =
        (now.tv_sec - before.tv_sec) * 1000 + (now.tv_nsec - before.tv_nsec) / 1000000;
    worst = std::max(worst, passed - wanted);
    before = now;
    if (ended != 0) break;
  }
  std::printf("%ld\n", worst);
  return kWorked;
}

constexpr Probe kProbes[] = {
    {"spin-children", "waited|ignored COUNT MS", 3, spin_in_children},
    {"spin-parallel", "COUNT MS [widen]", 2, spin_side_by_side},
    {"threads", "COUNT", 1, make_threads},
    {"zombies", "COUNT", 1, leave_zombies},
    {"fork-for-ever", "", 0, fork_for_ever},
    {"stop", "", 0, stop_itself},
    {"tick", "MS", 1, tick},
};

}  // namespace
const Table kBudgetProbes{kProbes, sizeof kProbes / sizeof kProbes[0]};
}  // namespace probe

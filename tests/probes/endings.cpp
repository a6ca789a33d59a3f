// Programs that end, or refuse to end, in one particular way.
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "probe.hpp"

namespace probe {
namespace {

void ignore_everything() {
  for (int signal_number = 1; signal_number < NSIG; ++signal_number) signal(signal_number, SIG_IGN);
}

[[noreturn]] void wait_for_ever() {
  for (;;) pause();
}

int end_with(Arguments arguments) {
  std::exit(static_cast<int>(number(arguments[0])));
}

int die_of(Arguments arguments) {
  const int what = static_cast<int>(number(arguments[0]));
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  signal(what, SIG_DFL);
  raise(what);
  return unasked("the signal did not end the process");
}

int spin(Arguments) {
  volatile unsigned long turns = 0;
  for (;;) turns = turns + 1;
}

int sleep_on(Arguments) {
  wait_for_ever();
}

/// Writes "ready" and waits; exits with the given status on SIGTERM (and SIGINT, SIGHUP, SIGQUIT).
int wait_politely(Arguments arguments) {
  static int status = 0;
  status = static_cast<int>(number(arguments[0]));
  struct sigaction action{};
  action.sa_handler = [](int) { _exit(status); };
  for (const int what : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaction(what, &action, nullptr);
  std::puts("ready");
  wait_for_ever();
}

int wait_stubbornly(Arguments) {
  ignore_everything();
  std::puts("ready");
  wait_for_ever();
}

/// N bytes of output, as fast as the pipe accepts them; 0 means endless.
int flood_output(Arguments arguments) {
  const long total = number(arguments[0]);
  const int fd = arguments[1] != nullptr ? static_cast<int>(number(arguments[1])) : 1;
  char block[65536];
  std::memset(block, 'y', sizeof block);
  block[sizeof block - 1] = '\n';
  for (long left = total; total == 0 || left > 0;) {
    const std::size_t size = total == 0 || left > static_cast<long>(sizeof block)
                                 ? sizeof block
                                 : static_cast<std::size_t>(left);
    const ssize_t wrote = write(fd, block, size);
    if (wrote < 0) return refused();
    left -= wrote;
  }
  return kWorked;
}

/// Writes N bytes to a file.
int fill_file(Arguments arguments) {
  const int fd = open(arguments[0], O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) return refused();
  static char block[65536];
  for (long left = number(arguments[1]); left > 0;) {
    const std::size_t size =
        left > static_cast<long>(sizeof block) ? sizeof block : static_cast<std::size_t>(left);
    const ssize_t wrote = write(fd, block, size);
    if (wrote < 0) return refused();
    left -= wrote;
  }
  return worked();
}

/// Leaves N processes behind in the named way and exits, or stays if the third argument is "stay".
int leave_behind(Arguments arguments) {
  const char* how = arguments[0];
  const long count = number(arguments[1]);
  for (long i = 0; i < count; ++i) {
    int told[2];
    if (pipe(told) != 0) return unasked("pipe");
    const pid_t child = fork();
    if (child < 0) return refused();
    if (child == 0) {
      if (std::strcmp(how, "daemon") == 0) {
        setsid();
        if (fork() != 0)
          _exit(0);  // the grandchild keeps the pipe of the main process's stdout open
        ignore_everything();
      } else if (std::strcmp(how, "ignore") == 0) {
        ignore_everything();
      } else if (std::strcmp(how, "trace") == 0) {
        const pid_t traced = fork();
        if (traced == 0) wait_for_ever();
        if (ptrace(PTRACE_SEIZE, traced, nullptr, nullptr) != 0) _exit(3);
      } else if (std::strcmp(how, "spin") == 0) {
        if (write(told[1], "x", 1) != 1) _exit(3);
        spin(arguments);
      }
      if (write(told[1], "x", 1) != 1) _exit(3);
      if (std::strcmp(how, "stop") == 0) raise(SIGSTOP);
      wait_for_ever();
    }
    char byte = 0;
    close(told[1]);
    if (read(told[0], &byte, 1) != 1) return refused(ESRCH);  // it died before it was ready
    close(told[0]);
  }
  std::puts("left behind");
  if (arguments[2] != nullptr) wait_for_ever();
  return kWorked;
}

/// Touches every page of N MiB and keeps them.
int hold_memory(Arguments arguments) {
  const auto size = static_cast<std::size_t>(number(arguments[0])) << 20;
  volatile char* const memory =
      static_cast<char*>(std::malloc(size));  // volatile, so that each write happens
  if (memory == nullptr) return refused();
  for (std::size_t i = 0; i < size; i += 4096) memory[i] = 1;
  wait_for_ever();
}

constexpr Probe kProbes[] = {
    {"exit", "STATUS", 1, end_with},
    {"die", "SIGNAL", 1, die_of},
    {"spin", "", 0, spin},
    {"sleep", "", 0, sleep_on},
    {"polite", "STATUS", 1, wait_politely},
    {"stubborn", "", 0, wait_stubbornly},
    {"flood-output", "BYTES [FD]", 1, flood_output},
    {"hold-memory", "MIB", 1, hold_memory},
    {"fill", "FILE BYTES", 2, fill_file},
    {"leave", "daemon|ignore|stop|trace|spin|sleep COUNT [stay]", 2, leave_behind},
};

}  // namespace
const Table kEndingProbes{kProbes, sizeof kProbes / sizeof kProbes[0]};
}  // namespace probe

// PID 1 of a held sandbox, from the moment its root stands: for each call it clones an init in a
// PID namespace and a mount namespace of its own, reports its end, and otherwise waits. Child-safe:
// see child.cpp.

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cstring>

#include "base/resident.hpp"
#include "spawn/child_calls.hpp"
#include "spawn/child_stages.hpp"

namespace sbx::child {
namespace {

/// More than session.calls and session.contexts allow together.
constexpr int kMostCalls = 512;

struct Call {
  pid_t init = 0;    ///< 0: this place is free
  int control = -1;  ///< PID 1's end of the call's socket
};

struct Holder {
  Program& program;
  int signals = -1;
  bool calls_are_stopped = false;
  std::uint64_t* inits = nullptr;  ///< how many there are, in memory that all of them share
  Call calls[kMostCalls] = {};
};

/// An order, which may be one for a call, and the descriptors that came with it.
struct Asked {
  control::CallOrder order;
  Received with;
};

/// Descriptors 0 to 2 stay taken: one that arrives as 0 would be in the way of the command's
/// streams.
void keep_only_control(const Program& program) {
  const auto control = static_cast<unsigned>(program.channels.control);
  for (int fd = 0; fd <= 2; ++fd) {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || (null != fd && ::dup2(null, fd) < 0)) ::_exit(125);
    if (null > 2) ::close(null);
  }
  if (control > 3) call(SYS_close_range, 3U, control - 1, 0);
  call(SYS_close_range, control + 1, ~0U, 0);
}

int watch_children() {
  sigset_t child_ended;
  ::sigemptyset(&child_ended);
  ::sigaddset(&child_ended, SIGCHLD);
  ::sigprocmask(SIG_SETMASK, &child_ended, nullptr);
  return ::signalfd(-1, &child_ended, SFD_CLOEXEC | SFD_NONBLOCK);
}

/// False where nothing more can come: the supervisor is gone.
bool receive(int socket, Asked& asked) {
  asked.order.what = control::FromSupervisor::go;  // no order of a holder's
  const long got =
      receive_order(socket, &asked.order, sizeof asked.order, MSG_DONTWAIT, asked.with);
  if (got == 0) return false;
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  const bool starts_call = asked.order.what == control::FromSupervisor::start_call;
  if (static_cast<std::size_t>(got) != (starts_call ? sizeof asked.order : sizeof(control::Order)))
    asked.order.what = control::FromSupervisor::go;
  return true;
}

void close_all(const Received& received) {
  for (unsigned i = 0; i < received.count; ++i) ::close(received.fds[i]);
}

void report(int socket, control::Report what) {
  Program none{};
  none.channels.control = socket;
  (void)send_report(none, what, nullptr, 0);
}

/// In the new init: only what belongs to this call stays open.
void forget_holder(const Holder& holder) {
  for (const Call& other : holder.calls)
    if (other.init != 0) ::close(other.control);
  ::close(holder.signals);
  ::close(holder.program.channels.control);
}

[[noreturn]] void become_call(const Holder& holder, const Asked& asked) {
  forget_holder(holder);
  const int* const fds = asked.with.fds;
  const Start start{.block = fds[0],
                    .size = asked.order.block_size,
                    .channels = {.control = fds[1],
                                 .errors = fds[2],
                                 .supervisor_pidfd = -1,
                                 .supervisor_ends = {-1, -1},
                                 .streams = {-1, -1, -1},
                                 .argument_area = nullptr,
                                 .argument_area_size = 0,
                                 .group_tasks = fds + 3,
                                 .group_task_count = asked.with.count - 3,
                                 .trees = nullptr,
                                 .scratch_tree = -1,
                                 .lock = -1,
                                 .image = -1,
                                 .kept = 0},
                    .fault = holder.program.fault,
                    .inits = holder.inits,
                    .waits = asked.order.waits};
  run_call(start);
}

bool is_complete(const Asked& asked) {
  return asked.with.count >= 3 && asked.with.count <= 3 + control::kMostGroupFiles;
}

/// The clone needs CAP_SYS_ADMIN in the sandbox's user namespace. The new init has it effective
/// too: it mounts.
void start_call(Holder& holder, const Asked& asked) {
  const int control = asked.with.fds[1];
  Call* place = holder.calls;
  while (place != holder.calls + kMostCalls && place->init != 0) ++place;
  if (place == holder.calls + kMostCalls)
    return report(control, {control::FromPid1::call_refused, EAGAIN});
  clone_args arguments{};
  arguments.flags = CLONE_NEWPID | CLONE_NEWNS;
  arguments.exit_signal = SIGCHLD;
  raise_own_capabilities(holder.program);
  ++*holder.inits;
  const long pid = call(SYS_clone3, &arguments, sizeof arguments);
  const int error = errno;
  if (pid == 0) become_call(holder, asked);
  lower_own_capabilities(holder.program);
  if (pid < 0) --*holder.inits;
  if (pid < 0) return report(control, {control::FromPid1::call_refused, error});
  if (holder.calls_are_stopped) ::kill(static_cast<pid_t>(pid), SIGSTOP);
  place->init = static_cast<pid_t>(pid);
  place->control = static_cast<int>(call(SYS_fcntl, control, F_DUPFD_CLOEXEC, 3));
}

void report_end(Call& ended, int status, const rusage& used) {
  const auto microseconds = [](const timeval& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 +
           static_cast<std::uint64_t>(time.tv_usec);
  };
  control::Report last{control::FromPid1::call_ended, status};
  last.used = {.user_microseconds = microseconds(used.ru_utime),
               .system_microseconds = microseconds(used.ru_stime),
               .blocks_written = static_cast<std::uint64_t>(used.ru_oublock),
               .largest_kib = used.ru_maxrss};
  report(ended.control, last);
  ::close(ended.control);
  ended = Call{};
}

void reap_calls(Holder& holder) {
  int status = 0;
  rusage used{};
  for (;;) {
    const auto pid = static_cast<pid_t>(call(SYS_wait4, -1, &status, WNOHANG | __WALL, &used));
    if (pid <= 0) return;
    for (Call& each : holder.calls)
      if (each.init == pid) {
        --*holder.inits;
        report_end(each, status, used);
      }
  }
}

/// Stops or wakes all calls, their inits included; nothing of this namespace reaches those
/// otherwise.
void obey_supervisor(Holder& holder, const Asked& asked) {
  switch (asked.order.what) {
    case control::FromSupervisor::start_call:
      if (is_complete(asked)) start_call(holder, asked);
      break;
    case control::FromSupervisor::stop_all:
      holder.calls_are_stopped = true;
      ::kill(-1, SIGSTOP);
      report(holder.program.channels.control, {control::FromPid1::stopped, 0});
      break;
    case control::FromSupervisor::continue_all:
      holder.calls_are_stopped = false;
      ::kill(-1, SIGCONT);
      break;
    default:
      break;
  }
  close_all(asked.with);
}

}  // namespace

void serve_calls(Program& program) {
  Holder holder{.program = program};
  const Progress ready{Stage::ready, 0, 0};
  (void)!::write(program.channels.errors, &ready, sizeof ready);
  keep_only_control(program);  // closes the error pipe: set-up is over
  holder.signals = watch_children();
  void* const shared = ::mmap(nullptr, sizeof *holder.inits, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (holder.signals < 0 || shared == MAP_FAILED) ::_exit(125);
  holder.inits = static_cast<std::uint64_t*>(shared);
  // What calls inherit they need not drop: 41 credentials fewer for each, which RCU would free.
  empty_bounding_set(program);
  lower_own_capabilities(program);
  constexpr int kSettled = 20;  // ms, as in child.cpp
  int patience = kSettled;
  for (;;) {
    pollfd watched[2] = {{program.channels.control, POLLIN, 0}, {holder.signals, POLLIN, 0}};
    const int events = ::poll(watched, 2, patience);
    if (events == 0) {
      release_program_pages();
      patience = -1;
    }
    if (events <= 0) continue;
    if (watched[1].revents != 0) {
      signalfd_siginfo drained[4];
      (void)!::read(holder.signals, drained, sizeof drained);
      reap_calls(holder);
    }
    if (watched[0].revents == 0) continue;
    Asked asked;
    if (!receive(program.channels.control, asked)) ::_exit(125);  // the supervisor is gone
    obey_supervisor(holder, asked);
  }
}

}  // namespace sbx::child

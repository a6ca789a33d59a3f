// PID 1 of the sandbox, from clone3 to its last report. It allocates nothing, throws nothing and
// takes no lock. It runs for the whole run as the init that reaps, obeys orders and dies with the
// supervisor.

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include <cstring>

#include "base/control.hpp"
#include "base/resident.hpp"
#include "spawn/child_builder.hpp"
#include "spawn/child_calls.hpp"
#include "spawn/child_stages.hpp"

namespace sbx::child {
namespace {

/// The payload's stack until execve: it shares PID 1's memory (CLONE_VM).
constexpr std::size_t kPayloadStack = 64 * 1024;
alignas(64) char payload_stack[kPayloadStack];

/// Pointers to the words; the places for them are in the block.
void point_to_words(const Words& words) {
  char** const table = words.table;
  // execve(2) does not change what it is given; its prototype only lacks the const.
  char* text = const_cast<char*>(words.texts.get());
  for (std::size_t i = 0; i < words.count; ++i) {
    table[i] = text;
    while (*text != '\0') ++text;
    ++text;
  }
  table[words.count] = nullptr;
}

}  // namespace

/// The one place where the bytes of a program become a program.
Program& map_program(const Start& start) {
  Program none{};  // to report with until there is one
  none.channels = start.channels;
  none.fault = start.fault;
  if (!enter(none, Stage::program)) ::_exit(125);
  // A private copy: what the child writes into it is its own. All pages at once, instead of one
  // fault for each.
  void* const block = ::mmap(nullptr, start.size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_POPULATE, start.block, 0);
  must(none, Stage::program, 0, reinterpret_cast<long>(block));  // MAP_FAILED is -1
  ::close(start.block);
  Program& program = *static_cast<Program*>(block);
  program.channels = start.channels;
  program.fault = start.fault;
  program.inits = start.inits;
  program.waits = start.waits;
  program.terminal_master = program.terminal_slave = program.scratch = program.processes =
      program.landlock_ruleset = program.mount_space = program.listener = -1;
  point_to_words(program.argv);
  point_to_words(program.envp);
  if (program.first.get() != nullptr) point_to_words(program.first_argv);
  return program;
}

/// PID 1 is a copy of the supervisor: while it holds the supervisor's end of the control socket it
/// would never see that the supervisor is gone.
void drop_supervisor_ends(const Program& program) {
  for (const int fd : program.channels.supervisor_ends)
    if (fd >= 0) ::close(fd);
}

void take_identity(const Program& program) {
  if (!program.change_ids || !enter(program, Stage::identity)) return;
  // Without NO_SETUID_FIXUP the change of uid would drop the capabilities that the mounts need,
  // capabilities(7).
  must(program, Stage::identity, 0, ::prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP));
  must(program, Stage::identity, 1, call(SYS_setgroups, 0, nullptr));
  must(program, Stage::identity, 2, call(SYS_setresgid, program.gid, program.gid, program.gid));
  must(program, Stage::identity, 3, call(SYS_setresuid, program.uid, program.uid, program.uid));
}

/// /proc/1/cmdline is world-readable even for a non-dumpable process. Since the clone the pages are
/// this process's own.
void wipe_arguments(const Program& program) {
  if (!enter(program, Stage::wipe)) return;
  for (std::size_t i = 0; i < program.channels.argument_area_size; ++i)
    program.channels.argument_area[i] = 0;
  for (std::size_t i = 0; i < sizeof control::kInitName && i < program.channels.argument_area_size;
       ++i)
    program.channels.argument_area[i] = control::kInitName[i];
  must(program, Stage::wipe, 0, ::prctl(PR_SET_NAME, control::kInitName));
}

void refuse_dumps(const Program& program) {
  if (!enter(program, Stage::non_dumpable)) return;
  must(program, Stage::non_dumpable, 0, ::prctl(PR_SET_DUMPABLE, 0));
}

/// In a new PID namespace getppid() is always 0, so only the pidfd shows a supervisor that is
/// already dead.
void die_with_supervisor(const Program& program) {
  if (!enter(program, Stage::parent_death)) return;
  must(program, Stage::parent_death, 0, ::prctl(PR_SET_PDEATHSIG, SIGKILL));
  pollfd supervisor{program.channels.supervisor_pidfd, POLLIN, 0};
  if (::poll(&supervisor, 1, 0) != 0) ::_exit(125);
}

/// PID 1 moves itself, as the only thread of its process: a move by another process waits for an
/// RCU grace period.
void join_groups(const Program& program) {
  for (std::size_t i = 0; i < program.channels.group_task_count; ++i) {
    must(program, Stage::group, i, ::write(program.channels.group_tasks[i], "0", 1));
    ::close(program.channels.group_tasks[i]);
  }
}

void limit_cpus(const Program& program) {
  if (!program.has_affinity || !enter(program, Stage::affinity)) return;
  must(program, Stage::affinity, 0,
       call(SYS_sched_setaffinity, 0, sizeof(cpu_set_t), &program.affinity));
}

void name_host(const Program& program) {
  if (program.keeps_host_name || !enter(program, Stage::hostname)) return;
  static constexpr char kHost[] = "sandbox";
  must(program, Stage::hostname, 0, call(SYS_sethostname, kHost, sizeof kHost - 1));
  must(program, Stage::hostname, 1, call(SYS_setdomainname, "", 0));
}

void wait_for_go(const Program& program) {
  wait_for_order(program, control::FromSupervisor::go);
}

void open_terminal(Program& program) {
  if (!program.interactive || !enter(program, Stage::terminal)) return;
  const auto step = [&](std::size_t index, long result) {
    return static_cast<int>(must(program, Stage::terminal, index, result));
  };
  program.terminal_master = step(0, ::open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  int unlock = 0;
  step(1, ::ioctl(program.terminal_master, TIOCSPTLCK, &unlock));
  program.terminal_slave =
      step(2, ::ioctl(program.terminal_master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (program.window.ws_row != 0)
    step(3, ::ioctl(program.terminal_master, TIOCSWINSZ, &program.window));
}

void hand_over_descriptors(Program& program) {
  if (!enter(program, Stage::descriptors)) return;
  const int candidates[4] = {program.scratch, program.processes, program.terminal_master,
                             program.mount_space};
  int fds[4];
  std::size_t count = 0;
  int present = 0;
  for (int i = 0; i < 4; ++i) {
    if (candidates[i] < 0) continue;
    fds[count++] = candidates[i];
    present |= 1 << i;
  }
  control::Report report{control::FromPid1::descriptors, present};
  struct statfs disk{};  // by the supervisor's first look the program may have written
  if (program.scratch >= 0 && call(SYS_fstatfs, program.scratch, &disk) == 0)
    report.disk_used = (disk.f_blocks - disk.f_bfree) * static_cast<std::uint64_t>(disk.f_bsize);
  must(program, Stage::descriptors, 0, send_report(program, report, fds, count));
  for (std::size_t i = 0; i < count; ++i) ::close(fds[i]);
}

void wait_for_copies(const Program& program) {
  if (program.waits_for_copies) wait_for_order(program, control::FromSupervisor::filled);
}

namespace {

pid_t start_payload(Program& program) {
  if (!enter(program, Stage::payload)) ::_exit(125);
  // vfork semantics: PID 1 continues when the payload has executed or died. CLONE_FILES leaves the
  // listener, which the payload creates, in this table; execve unshares the payload's.
  const int pid = ::clone(run_payload, payload_stack + kPayloadStack,
                          CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &program);
  return static_cast<pid_t>(must(program, Stage::payload, 0, pid));
}

void hand_over_listener(Program& program) {  // meeting point 5
  if (program.listener < 0) return;
  (void)send_report(program, {control::FromPid1::listener, 0}, &program.listener, 1);
  ::close(program.listener);
}

/// Closes everything that serving doesn't need: the payload's pipes must reach end of file when the
/// payload closes them.
void keep_only_channels(const Program& program, int signals) {
  const int keep[] = {program.channels.control, signals, program.channels.lock};
  int from = 0;
  for (;;) {
    int next = -1;  // the lowest that is left
    for (const int fd : keep)
      if (fd >= from && (next < 0 || fd < next)) next = fd;
    if (next < 0) break;
    if (next > from)
      call(SYS_close_range, static_cast<unsigned>(from), static_cast<unsigned>(next) - 1, 0);
    from = next + 1;
  }
  call(SYS_close_range, static_cast<unsigned>(from), ~0U, 0);
}

struct Service {
  pid_t main;
  bool asked;  ///< Report child_ended awaits its answer
};

/// The payload's peak starts at this value: execve(2) keeps the peak of the replaced memory, which
/// is PID 1's.
std::int32_t own_peak() {
  rusage used{};
  (void)call(SYS_getrusage, RUSAGE_SELF, &used);
  return static_cast<std::int32_t>(used.ru_maxrss);
}

/// What a process called itself that has ended and is not reaped.
void read_comm(pid_t pid, char (&comm)[sizeof control::Report::comm]) {
  char path[sizeof "/proc/18446744073709551615/comm"] = "/proc/";
  char* end = path + sizeof "/proc/" - 1;
  append_number(end, static_cast<std::uint64_t>(pid));
  std::memcpy(end, "/comm", sizeof "/comm");
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  const ssize_t got = ::read(file, comm, sizeof comm);
  ::close(file);
  if (got > 0) comm[got - 1] = '\0';  // instead of the newline
}

/// Kills and counts the remaining processes; without this the kernel would kill them uncounted when
/// PID 1 ends. A program that was refused one more process may be gone before the supervisor has
/// looked. `count` of them are reaped already.
[[noreturn]] void end_all(const Program& program, std::int32_t count) {
  signal_all(program, SIGKILL);
  control::Report report{control::FromPid1::left_behind, count};
  siginfo_t ended{};
  while (call(SYS_waitid, P_ALL, 0, &ended, WEXITED | WNOWAIT | __WALL, nullptr) == 0) {
    // A child of a process that ran may have been a zombie for long: it has its own status.
    const bool ran = ended.si_code == CLD_KILLED && ended.si_status == SIGKILL;
    if (ran && report.running++ == 0 && (!program.outer_proc || program.has_keeper))
      read_comm(ended.si_pid, report.comm);
    ++report.value;
    if (::waitpid(ended.si_pid, nullptr, __WALL) < 0) break;
  }
  report.own_peak = own_peak();
  (void)send_report(program, report, nullptr, 0);
  ::_exit(0);
}

/// `zombies` processes were reaped just before: until then they counted as processes.
[[noreturn]] void main_ended(const Program& program, int status, std::int32_t zombies = 0) {
  siginfo_t ended{};
  long got = 0;
  constexpr int kEnded = WEXITED | WNOHANG | __WALL;
  while ((got = call(SYS_waitid, P_ALL, 0, &ended, kEnded, nullptr)) == 0 && ended.si_pid != 0) {
    ++zombies;
    ended.si_pid = 0;
  }
  if (got < 0 && zombies == 0) {
    (void)send_report(program, {control::FromPid1::main_ended_alone, status, own_peak()}, nullptr,
                      0);
    end_second(program);
    ::_exit(0);
  }
  (void)send_report(program, {control::FromPid1::main_ended, status}, nullptr, 0);
  end_all(program, zombies);
}

/// PTRACE_TRACEME, where the policy allows it, makes PID 1 the tracer of its children, and of
/// processes that lost their parent: wait(2) then tells each of their signals. PID 1 traces nobody,
/// and hands the signal on.
bool was_stop(pid_t pid, int status) {
  if (!WIFSTOPPED(status)) return false;
  const int signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
  (void)call(SYS_ptrace, PTRACE_DETACH, pid, 0, signal);
  return true;
}

/// Reaps all zombies. If the main process has ended, reports it and ends the rest.
void reap(const Program& program, pid_t main) {
  int status = 0;
  std::int32_t others = 0;
  pid_t pid = ::waitpid(-1, &status, WNOHANG | __WALL);
  while (pid > 0) {
    if (!was_stop(pid, status)) {
      if (pid == main) main_ended(program, status, others);
      ++others;
    }
    pid = ::waitpid(-1, &status, WNOHANG | __WALL);
  }
}

/// Orders come only from the supervisor: PID 1 has no handlers, so signals from the payload have no
/// effect.
void handle_order(const Program& program, Service& service) {
  control::Order order{};
  const ssize_t got = ::recv(program.channels.control, &order, sizeof order, MSG_DONTWAIT);
  if (got == 0) {  // the supervisor is gone; of a PID namespace the kernel ends the rest
    if (program.has_keeper) signal_all(program, SIGKILL);
    ::_exit(125);
  }
  if (got != sizeof order) return;
  switch (order.what) {
    case control::FromSupervisor::signal_main:
      ::kill(service.main, order.value);
      break;
    case control::FromSupervisor::signal_group:
      // The payload has a session of its own, and so leads a group.
      ::kill(-service.main, order.value);
      break;
    case control::FromSupervisor::reap:
      service.asked = false;
      reap(program, service.main);
      break;
    case control::FromSupervisor::stop_all:
      signal_all(program, SIGSTOP);
      (void)send_report(program, {control::FromPid1::stopped, 0}, nullptr, 0);
      break;
    case control::FromSupervisor::continue_all:
      signal_all(program, SIGCONT);
      break;
    case control::FromSupervisor::go:
    case control::FromSupervisor::network_ready:
    case control::FromSupervisor::filled:
    case control::FromSupervisor::start_call:
    case control::FromSupervisor::begin_call:
      break;
  }
}

/// Lets the supervisor count tasks before reaping: a program that was refused a process tends to
/// end next, and a reaped slot can be reused immediately.
void child_ended(const Program& program, Service& service) {
  if (!program.asks_before_reaping) return reap(program, service.main);
  int status = 0;
  if (::waitpid(service.main, &status, WNOHANG | __WALL) == service.main &&
      !was_stop(service.main, status))
    main_ended(program, status);
  if (service.asked) return;
  service.asked = true;
  (void)send_report(program, {control::FromPid1::child_ended, 0}, nullptr, 0);
}

[[noreturn]] void serve(const Program& program, pid_t main, int signals) {
  constexpr int kSettled = 20;  // ms; a short run skips the cost of giving memory back
  int patience = kSettled;
  Service service{.main = main, .asked = false};
  child_ended(program, service);
  for (;;) {
    pollfd watched[2] = {{program.channels.control, POLLIN, 0}, {signals, POLLIN, 0}};
    const int events = ::poll(watched, 2, patience);
    if (events == 0) {
      release_program_pages();
      patience = -1;
    }
    if (events <= 0) continue;
    if (watched[1].revents != 0) {
      signalfd_siginfo drained[4];
      (void)!::read(signals, drained,
                    sizeof drained);  // the signal doesn't matter: reap() asks the kernel
      child_ended(program, service);
    }
    if (watched[0].revents != 0) handle_order(program, service);
  }
}

}  // namespace

namespace {

void set_effective(const Program& program, bool raised) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  must(program, Stage::init_capabilities, 0, call(SYS_capget, &header, sets));
  for (auto& set : sets) {
    set.effective = raised ? set.permitted : 0;
    set.inheritable = 0;
  }
  must(program, Stage::init_capabilities, 1, call(SYS_capset, &header, sets));
}

}  // namespace

void raise_own_capabilities(const Program& program) {
  set_effective(program, true);
}

/// The permitted set stays full, so that the payload, with the same uid, can't reschedule PID 1: it
/// may only reschedule processes whose permitted set is a subset of its own, capabilities(7)
/// CAP_SYS_NICE.
void lower_own_capabilities(const Program& program) {
  if (enter(program, Stage::init_capabilities)) set_effective(program, false);
}

long send_report(const Program& program, control::Report report, const int* fds,
                 std::size_t count) {
  iovec body{&report, sizeof report};
  alignas(cmsghdr) char space[CMSG_SPACE(kMostReported * sizeof(int))];
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  if (count > 0) {
    std::memset(space, 0, CMSG_SPACE(count * sizeof(int)));
    message.msg_control = space;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(rights), fds, count * sizeof(int));
  }
  long sent = ::sendmsg(program.channels.control, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR)
    sent = ::sendmsg(program.channels.control, &message, MSG_NOSIGNAL);
  return sent;
}

long receive_order(int socket, void* order, std::size_t size, int flags, Received& received) {
  received.count = 0;
  iovec body{order, size};
  alignas(cmsghdr) char space[CMSG_SPACE(control::kMostCallDescriptors * sizeof(int))];
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
  if (got <= 0) return got;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    received.count = static_cast<unsigned>((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(received.fds, CMSG_DATA(part), received.count * sizeof(int));
  }
  return got;
}

void wait_for_order(const Program& program, control::FromSupervisor expected) {
  control::Order order{};
  ssize_t got = ::recv(program.channels.control, &order, sizeof order, 0);
  while (got < 0 && errno == EINTR) got = ::recv(program.channels.control, &order, sizeof order, 0);
  if (got != sizeof order || order.what != expected) ::_exit(125);
}

/// Meeting points 4 and 5: the command, and what PID 1 does while it runs.
void run_command(Program& program) {
  sigset_t child_ended;
  ::sigemptyset(&child_ended);
  ::sigaddset(&child_ended, SIGCHLD);
  sigset_t waiting = child_ended;
  // A terminal sends these to the caller's process group, and the command belongs to it until it
  // has its own session.
  constexpr int kOfGroup[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
  for (const int signal : kOfGroup) ::sigaddset(&waiting, signal);
  ::sigprocmask(SIG_SETMASK, &waiting, nullptr);
  const int signals = static_cast<int>(
      must(program, Stage::payload, 1, ::signalfd(-1, &child_ended, SFD_CLOEXEC | SFD_NONBLOCK)));

  const pid_t main = start_payload(program);
  hand_over_listener(program);
  lower_own_capabilities(program);
  keep_only_channels(program, signals);  // closes the error pipe: set-up is over
  serve(program, main, signals);
}

void run_init(const Start& start) {
  Program& program = map_program(start);
  const StageTables& tables = tables_of(program.tier);
  walk(program.role == Role::holder ? tables.holder : tables.run, program);
  ::_exit(125);  // the last stage does not return
}

}  // namespace sbx::child

// The init of one call in a held sandbox. It makes the mounts that its PID namespace needs, waits
// for its program, which may come much later, and runs it. Child-safe: see child.cpp.

#include <fcntl.h>
#include <sys/prctl.h>

#include "base/control.hpp"
#include "spawn/child_calls.hpp"
#include "spawn/child_stages.hpp"

namespace sbx::child {
namespace {

/// From here on; what is below belongs to the program's streams and to what it is given.
constexpr int kFirstOwn = 3 + static_cast<int>(control::kMostKept);

/// Moves a descriptor out of the way of those that the program is given; -1 if it can't be moved.
int move_up(int fd) {
  if (fd >= kFirstOwn) return fd;
  const long moved = call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, kFirstOwn);
  ::close(fd);
  return static_cast<int>(moved);
}

/// Gives descriptors the numbers that the program knows them by. `from` is the index of the first
/// in `received`.
bool place_kept(Received& received, unsigned from, unsigned kept) {
  for (unsigned i = 0; i < received.count && kept > 0; ++i) {
    received.fds[i] = move_up(received.fds[i]);
    if (received.fds[i] < 0) return false;
  }
  for (unsigned i = 0; i < kept; ++i) {
    const int fd = received.fds[from + i];
    if (call(SYS_dup3, fd, 3 + i, O_CLOEXEC) < 0) return false;
    ::close(fd);
  }
  return true;
}

/// Waits for the program. Ends this process where the supervisor has gone, or has no use for it any
/// more.
Program& await_program(const Program& mounts) {
  control::CallProgram order{};
  Received received;
  long got = -1;
  do got = receive_order(mounts.channels.control, &order, sizeof order, 0, received);
  while (got < 0 && errno == EINTR);
  const unsigned before_kept = 1U + (order.streams ? 3U : 0U) + (order.image ? 1U : 0U);
  if (got != sizeof order || order.what != control::FromSupervisor::begin_call ||
      order.kept > control::kMostKept || received.count != before_kept + order.kept ||
      !place_kept(received, before_kept, order.kept))
    ::_exit(125);
  const int* next = received.fds + 1;
  Start start{.block = received.fds[0],
              .size = order.block_size,
              .channels = mounts.channels,
              .fault = mounts.fault,
              .inits = mounts.inits};
  if (order.streams)
    for (int& stream : start.channels.streams) stream = *next++;
  if (order.image) start.channels.image = *next++;
  start.channels.kept = order.kept;
  Program& program = map_program(start);
  program.mount_space = mounts.mount_space;
  program.processes = mounts.processes;
  program.landlock_ruleset = mounts.landlock_ruleset;
  return program;
}

}  // namespace

/// Where memory runs out, the kernel ends a call before the holder, with which every call would
/// end; it may be files of ended calls that fill the memory. The program can lower its own score,
/// but not this process's. Only a dumpable process owns its files in /proc; nobody in the sandbox
/// sees this one.
void come_before_holder(const Program&) {
  (void)::prctl(PR_SET_DUMPABLE, 1);
  const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  (void)!::write(score, "500", 3);
  ::close(score);
}

/// Itself, not the holder, so that this is the first message whatever the two do at the same time.
void report_call(const Program& program) {
  const int self = static_cast<int>(must(program, Stage::held, 0, call(SYS_pidfd_open, 1, 0)));
  must(program, Stage::held, 1, send_report(program, {control::FromPid1::call_began, 0}, &self, 1));
  ::close(self);
}

void wait_to_be_placed(const Program& program) {
  if (program.waits) wait_for_go(program);
}

void keep_processes(Program& program) {
  if (program.processes < 0) return;
  program.processes =
      static_cast<int>(must(program, Stage::descriptors, 2, move_up(program.processes)));
}

/// A process that holds the last reference to a mount namespace waits for an RCU grace period (0.3
/// ms) when it exits, before its parent hears of it. So the supervisor takes a reference, and gives
/// it up when it has answered.
void hold_mounts(Program& program) {
  const long space = ::open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
  program.mount_space = move_up(static_cast<int>(must(program, Stage::descriptors, 1, space)));
}

void make_wall_ahead(Program& program) {
  const int ruleset = make_second_wall(program);
  if (ruleset < 0) return;
  program.landlock_ruleset = static_cast<int>(must(program, Stage::landlock, 0, move_up(ruleset)));
}

/// The supervisor of a call is not an ancestor of its init, which dies with the holder; the end of
/// the supervisor is end of file on the control socket.
void run_call(const Start& start) {
  Start own = start;
  int* const held[] = {&own.block, &own.channels.control, &own.channels.errors};
  for (int* const fd : held) {
    *fd = move_up(*fd);
    if (*fd < 0) ::_exit(125);
  }
  Program& mounts = map_program(own);
  walk(tables_of(mounts.tier).call, mounts);
  Program& program = await_program(mounts);
  walk(tables_of(program.tier).begun, program);
  ::_exit(125);  // the last stage does not return
}

}  // namespace sbx::child

// PID 1's part where there is no PID namespace: the keeper. It has a uid of its own and, as the
// effective one, the program's: kill(2) lets it signal processes of the program's uid, and not
// the other way round, because the receiver's real and saved uid count. Where both have the
// caller's uid, domains of Landlock do the same. Child-safe: see child.cpp.

#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include <cstring>

#include "spawn/child_calls.hpp"
#include "spawn/child_stages.hpp"
#include "spawn/landlock.hpp"

namespace sbx::child {
namespace {

/// Root's kill(-1) would end the whole container.
bool has_keepers_ids(const Program& program) {
  uid_t real = 0;
  uid_t effective = 0;
  uid_t saved = 0;
  return call(SYS_getresuid, &real, &effective, &saved) == 0 && program.uid != 0 &&
         real == program.keeper && effective == program.uid && saved == program.keeper;
}

/// The outermost wall: it keeps in signals, and nothing else. Each domain refuses to move a file
/// from one directory to another (EXDEV) unless it handles that right and grants it.
void enter_signal_domain(const Program& program) {
  const landlock::Ruleset attributes{.handled_access_fs = landlock::refer,
                                     .handled_access_net = 0,
                                     .scoped = landlock::kSignalScope};
  const int ruleset =
      static_cast<int>(must(program, Stage::landlock, 0,
                            call(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0U)));
  const int root = static_cast<int>(
      must(program, Stage::landlock, 0, call(SYS_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC)));
  const landlock::PathBeneath everywhere{landlock::refer, root};
  must(program, Stage::landlock, 0,
       call(SYS_landlock_add_rule, ruleset, landlock::kPathBeneath, &everywhere, 0U));
  ::close(root);
  must(program, Stage::landlock, 0, call(SYS_landlock_restrict_self, ruleset, 0U));
  ::close(ruleset);
}

/// Asked of the kernel: the supervisor has the same uid.
bool is_confined(const Program& program) {
  return call(SYS_pidfd_send_signal, program.channels.supervisor_pidfd, 0, nullptr, 0U) != 0 &&
         errno == EPERM;
}

/// The second's stack: it shares the keeper's memory (CLONE_VM), which takes a tenth of the time of
/// a copy and its end.
constexpr std::size_t kSecondStack = 16 * 1024;
alignas(64) char second_stack[kSecondStack];

struct Second {
  const Program* program;
  int keeper;  ///< pidfd
};
Second second_start;

/// When one of the two has ended: a keeper that somebody has stopped does not see the supervisor's
/// end. Nothing that a signal could end or stop but SIGKILL and SIGSTOP, and no other descriptor:
/// the table is a copy. While the keeper lives no call here fails, so that errno, which both share,
/// stays the keeper's.
int end_all_after(void* argument) {
  const Second start = *static_cast<const Second*>(argument);
  sigset_t all;
  std::memset(&all, 0xff, sizeof all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  call(SYS_dup3, start.keeper, 0, O_CLOEXEC);
  call(SYS_dup3, start.program->channels.supervisor_pidfd, 1, O_CLOEXEC);
  call(SYS_close_range, 2U, ~0U, 0U);
  pollfd ended[] = {{.fd = 0, .events = POLLIN, .revents = 0},
                    {.fd = 1, .events = POLLIN, .revents = 0}};
  while (::poll(ended, 2, -1) < 0) {
  }
  signal_all(*start.program, SIGKILL);
  ::_exit(0);
}

}  // namespace

/// In a PID namespace -1 means its processes. Elsewhere it means every process that the sender may
/// signal: the kernel goes through them under a lock, and no fork gets by (copy_process).
void signal_all(const Program& program, int signal) {
  const bool reaches_only_them =
      !program.has_keeper || (program.keeper != 0 ? has_keepers_ids(program) : program.confined);
  if (reaches_only_them) ::kill(-1, signal);
}

void gather_orphans(const Program& program) {
  must(program, Stage::payload, 2, ::prctl(PR_SET_CHILD_SUBREAPER, 1));
  // A terminal's signals are for the supervisor; unlike an init this process would obey them.
  must(program, Stage::session, 1, ::setsid());
}

/// Every capability goes with the change of uid, capabilities(7): no id is 0 then. Before it, while
/// CAP_SETPCAP is there, nothing is left for execve(2) to grant; NO_SETUID_FIXUP would keep them.
void become_keeper(const Program& program) {
  empty_bounding_set(program);
  if (enter(program, Stage::securebits))
    must(program, Stage::securebits, 1,
         ::prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
                                        SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                                        SECBIT_NO_CAP_AMBIENT_RAISE |
                                        SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED));
  if (!enter(program, Stage::identity)) return;
  must(program, Stage::identity, 4, call(SYS_setgroups, 0, nullptr));
  must(program, Stage::identity, 5, call(SYS_setresgid, program.gid, program.gid, program.gid));
  must(program, Stage::identity, 6,
       call(SYS_setresuid, program.keeper, program.uid, program.keeper));
  if (!has_keepers_ids(program)) give_up(program, Stage::identity, 7, EPERM);
  must(program, Stage::no_new_privs, 1, ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

void take_own_uid(const Program& program) {
  if (!enter(program, Stage::identity)) return;
  must(program, Stage::identity, 8, call(SYS_setresuid, program.uid, program.uid, program.uid));
}

void confine_keeper(Program& program) {
  drop_capabilities(program);
  // The caller's keys stay behind, where a container's filter lets that be asked for. The program
  // can't ask for keys in any case.
  (void)call(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  if (enter(program, Stage::landlock)) enter_signal_domain(program);
  program.confined = is_confined(program);
  if (!program.confined) give_up(program, Stage::landlock, 0, EPERM);
}

/// A child of the supervisor, not of the keeper: it is none of the sandbox's processes.
void start_second(Program& program) {
  if (!enter(program, Stage::payload)) return;
  const int keeper = static_cast<int>(
      must(program, Stage::payload, 3, call(SYS_pidfd_open, call(SYS_getpid), 0U)));
  second_start = {&program, keeper};
  const long second = must(program, Stage::payload, 4,
                           ::clone(end_all_after, second_stack + kSecondStack,
                                   CLONE_VM | CLONE_PARENT | SIGCHLD, &second_start));
  ::close(keeper);
  program.second = static_cast<pid_t>(second);
}

/// By the rights of the program, and while the supervisor makes the private directory.
void prepare_second_wall(Program& program) {
  program.landlock_ruleset = make_second_wall(program);
}

/// It would end by itself, after it had looked for processes in vain. The supervisor reaps it, and
/// only after the keeper: no other process can have its number yet.
void end_second(const Program& program) {
  if (program.second > 0) ::kill(program.second, SIGKILL);
}

}  // namespace sbx::child

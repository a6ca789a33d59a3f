// PID 1's part where there is no PID namespace: the keeper. It has a uid of its own and, as the
// effective one, the program's: kill(2) lets it signal processes of the program's uid, and not
// the other way round, because the receiver's real and saved uid count. Child-safe: see child.cpp.

#include <grp.h>
#include <linux/securebits.h>
#include <signal.h>
#include <sys/prctl.h>

#include "spawn/child_calls.hpp"
#include "spawn/child_stages.hpp"

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

}  // namespace

/// In a PID namespace -1 means its processes. Elsewhere it means every process that the sender may
/// signal: the kernel goes through them under a lock, and no fork gets by (copy_process).
void signal_all(const Program& program, int signal) {
  if (program.keeper == 0 || has_keepers_ids(program)) ::kill(-1, signal);
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

}  // namespace sbx::child

// The command's process from its creation to execve: it drops privileges, in an order that matters.
// It shares PID 1's memory and descriptors until execve, so it writes only `listener` and errno.

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/control.hpp"
#include "spawn/child_calls.hpp"
#include "spawn/child_stages.hpp"
#include "spawn/landlock.hpp"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV  // Linux 5.19; Debian 12's headers have it
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

namespace sbx::child {
namespace {

void handle_by(int signal, unsigned long handler) {
  const struct {
    unsigned long handler;
    unsigned long flags;
    void* restorer;
    unsigned long mask;
  } action{
      .handler = handler, .flags = 0, .restorer = nullptr, .mask = 0};  // the kernel's sigaction
  (void)call(SYS_rt_sigaction, signal, &action, nullptr, sizeof action.mask);
}

}  // namespace

/// Leaves the caller's process group. The supervisor handles signals sent to that group so far
/// (Ctrl-C at a terminal). Ignoring a signal discards pending instances; otherwise they would kill
/// the command without a verdict.
void own_session(const Program& program) {
  if (!enter(program, Stage::session)) return;
  must(program, Stage::session, 0, ::setsid());
  constexpr unsigned long kIgnore = 1;  // SIG_IGN
  constexpr int kOfGroup[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
  for (const int signal : kOfGroup) handle_by(signal, kIgnore);
}

void connect_streams(const Program& program) {
  if (!enter(program, Stage::stdio)) return;
  for (int i = 0; i < 3; ++i) {
    const int source = program.interactive ? program.terminal_slave : program.channels.streams[i];
    must(program, Stage::stdio, static_cast<std::size_t>(i), ::dup2(source, i));
  }
  if (program.interactive) must(program, Stage::stdio, 3, ::ioctl(0, TIOCSCTTY, 0));
}

/// Sets close-on-exec instead of closing: until execve PID 1 shares the table. What the program
/// gets besides its streams has its numbers already, become_call().
void mark_descriptors(const Program& program) {
  if (!enter(program, Stage::close_fds)) return;
  const unsigned kept = program.channels.kept;
  must(program, Stage::close_fds, 0, call(SYS_close_range, 3U + kept, ~0U, CLOSE_RANGE_CLOEXEC));
  for (unsigned i = 0; i < kept; ++i)
    must(program, Stage::close_fds, i + 1, call(SYS_fcntl, 3U + i, F_SETFD, 0));
}

void enter_working_directory(const Program& program) {
  ::umask(program.umask);
  const char* const asked = program.call_directory.get();
  if (asked != nullptr && *asked == '/') return;  // the session's need not be there any more
  if (!enter(program, Stage::working_directory)) return;
  must(program, Stage::working_directory, 0, ::chdir(program.working_directory));
}

void empty_bounding_set(const Program& program) {
  if (!enter(program, Stage::bounding_set)) return;
  (void)::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  // A call inherits the set that its holder has emptied: to look costs less than to drop.
  const bool looks = program.role == Role::call;
  int capability = 0;
  for (;; ++capability) {
    if (looks && ::prctl(PR_CAPBSET_READ, capability) == 0) continue;
    if (::prctl(PR_CAPBSET_DROP, capability) != 0) break;
  }
  // EINVAL beyond the last capability that the kernel knows, capabilities(7)
  if (errno != EINVAL || capability == 0)
    give_up(program, Stage::bounding_set, static_cast<std::size_t>(capability), errno);
}

void drop_privileges(const Program& program) {
  empty_bounding_set(program);
  if (enter(program, Stage::securebits))
    must(program, Stage::securebits, 0,
         ::prctl(PR_SET_SECUREBITS,
                 (SECURE_ALL_BITS & ~(1UL << SECURE_KEEP_CAPS)) | SECURE_ALL_LOCKS));
  drop_capabilities(program);
}

void drop_capabilities(const Program& program) {
  if (enter(program, Stage::capabilities)) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    const __user_cap_data_struct none[2] = {};
    must(program, Stage::capabilities, 0, call(SYS_capset, &header, none));
  }
  if (enter(program, Stage::no_new_privs))
    must(program, Stage::no_new_privs, 0, ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

/// Without a privilege, because programs of the session may have put anything there. A link is
/// followed as they would follow it, but none of /proc, which may lead to what PID 1 holds. Before
/// the limits: one of open files must not keep it from being opened.
void enter_call_directory(const Program& program) {
  if (program.call_directory.get() == nullptr || !enter(program, Stage::call_directory)) return;
  const open_how how{
      .flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .mode = 0, .resolve = RESOLVE_NO_MAGICLINKS};
  const long directory =
      must(program, Stage::call_directory, 0,
           call(SYS_openat2, AT_FDCWD, program.call_directory.get(), &how, sizeof how));
  must(program, Stage::call_directory, 0, ::fchdir(static_cast<int>(directory)));
  ::close(static_cast<int>(directory));
}

void set_limits(const Program& program) {
  for (std::size_t i = 0; i < program.limit_count; ++i) {
    if (!enter(program, Stage::limits, i)) return;
    const Limit& limit = program.limits[i];
    // The inits of calls have the program's uid, and come and go: RLIMIT_NPROC counts them,
    // limits.processes does not.
    const bool counts_inits = limit.resource == RLIMIT_NPROC && program.inits != nullptr;
    const std::uint64_t inits = counts_inits ? __atomic_load_n(program.inits, __ATOMIC_RELAXED) : 0;
    const std::uint64_t pair[2] = {limit.soft + inits, limit.hard + inits};  // struct rlimit64
    must(program, Stage::limits, i, call(SYS_prlimit64, 0, limit.resource, pair, nullptr));
  }
}

namespace {

/// In a root of its own nobody swaps names before the program starts. In the machine's, the plan's
/// paths have no links in them: where one has come since, a rule would open what it leads to.
int open_for_rule(const Program& program, const char* path) {
  if (!program.has_keeper) return ::open(path, O_PATH | O_CLOEXEC);
  const open_how how{.flags = O_PATH | O_CLOEXEC,
                     .mode = 0,
                     .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
  return static_cast<int>(call(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
}

void add_rules(const Program& program, int ruleset, bool of_disk) {
  for (std::size_t i = 0; i < program.landlock_rule_count; ++i) {
    const LandlockRule& rule = program.landlock_rules[i];
    if (rule.is_of_disk != of_disk) continue;
    const int directory = open_for_rule(program, rule.path.get());
    if (directory < 0 && errno == ENOENT)
      continue;  // a rule grants; without its path there is nothing to grant
    must(program, Stage::landlock, i + 1, directory);
    const landlock::PathBeneath beneath{rule.rights, directory};
    must(program, Stage::landlock, i + 1,
         call(SYS_landlock_add_rule, ruleset, landlock::kPathBeneath, &beneath, 0U));
    ::close(directory);
  }
}

}  // namespace

int make_second_wall(const Program& program) {
  if (program.landlock_abi == 0 || !enter(program, Stage::landlock)) return -1;
  landlock::Ruleset attributes{};
  attributes.handled_access_fs =
      program.landlock_files ? landlock::file_rights(program.landlock_abi) : 0;
  attributes.scoped = program.landlock_abi >= 6 ? landlock::kScopes : 0;
  if (attributes.handled_access_fs == 0 && attributes.scoped == 0) return -1;
  const int ruleset =
      static_cast<int>(must(program, Stage::landlock, 0,
                            call(SYS_landlock_create_ruleset, &attributes,
                                 landlock::ruleset_size(program.landlock_abi), 0U)));
  add_rules(program, ruleset, false);
  return ruleset;
}

/// Only in the payload: if PID 1 were in the same Landlock domain, the scope would not stop
/// kill(1).
void raise_second_wall(const Program& program) {
  const int ruleset =
      program.landlock_ruleset >= 0 ? program.landlock_ruleset : make_second_wall(program);
  if (ruleset < 0) return;
  add_rules(program, ruleset, true);
  must(program, Stage::landlock, 0, call(SYS_landlock_restrict_self, ruleset, 0U));
  ::close(ruleset);
}

namespace {

/// The last step before "ready": from here on only write, execve and exit_group are sure to be
/// allowed.
void install_filter(Program& program) {
  if (!enter(program, Stage::seccomp)) return;
  const sock_fprog filter{program.filter_length, program.filter.get()};
  unsigned flags = 0;
  if (program.notifies)
    flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
  long listener = call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
  if (listener < 0 && errno == EINVAL &&
      program.notifies)  // before 5.19 a signal may show as EINTR in a denied call
    listener =
        call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
  must(program, Stage::seccomp, 0, listener);
  if (program.notifies) program.listener = static_cast<int>(listener);
}

/// Returns only on failure, with errno.
void execute(const Program& program, const Text& path, const Words& words) {
  (void)call(SYS_execve, path.get(), words.table.get(), program.envp.table.get(),
             control::kOwnExec);
}

}  // namespace

/// Signals that sbx or its caller ignored (SIGPIPE, SIGHUP under nohup) would stay ignored across
/// execve, signal(7).
void reset_signals(const Program&) {
  constexpr int kLastSignal = 64;
  constexpr unsigned long kDefault = 0;  // SIG_DFL
  for (int signal = 1; signal <= kLastSignal; ++signal)
    handle_by(signal, kDefault);  // KILL and STOP: EINVAL
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void execute_program(Program& program) {
  if (!enter(program, Stage::exec)) ::_exit(125);
  install_filter(program);

  const Progress ready{Stage::ready, 0, 0};
  (void)!::write(program.channels.errors, &ready, sizeof ready);
  if (program.channels.image >= 0) {
    (void)call(SYS_execveat, program.channels.image, "", program.argv.table.get(),
               program.envp.table.get(), AT_EMPTY_PATH);
    give_up(program, Stage::exec, 0, errno);
  }
  if (program.first.get() != nullptr) {
    execute(program, program.first, program.first_argv);
    // It isn't there, may not be executed, or is a text without a "#!" line: its interpreter takes
    // it.
    if (errno != ENOENT && errno != EACCES && errno != ENOEXEC && errno != ENOTDIR)
      give_up(program, Stage::exec, 0, errno);
  }
  execute(program, program.executable, program.argv);
  give_up(program, Stage::exec, 0, errno);
}

int run_payload(void* argument) {
  Program& program = *static_cast<Program*>(argument);
  walk(tables_of(program.tier).payload, program);
  return 125;  // the last stage does not return
}

}  // namespace sbx::child

#include "supervise/socket_binder.hpp"

#include <linux/landlock.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <utility>

#include "base/message.hpp"
#include "base/process.hpp"

namespace sbx::supervise {
namespace {

using namespace std::chrono_literals;

std::unexpected<Error> cannot_rule() {
  return fail_errno(ErrorKind::setup, "setup-landlock",
                    "cannot make the rules by which the program's sockets are bound");
}

/// What the worker does; its exit status is the errno.
int bind_confined(const SocketBinder::Work& work, int rules, const ProgramIds& ids) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (work.path.empty() || work.path.size() >= sizeof address.sun_path) return EINVAL;
  std::ranges::copy(work.path, address.sun_path);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + work.path.size() + 1);
  // "/proc/self/fd/N" must not lead to what the supervisor has open.
  process::keep_only({work.socket.get(), work.directory.get(), rules});
  if (!ids.take_for_good() || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::syscall(SYS_landlock_restrict_self, rules, 0) != 0 || ::fchdir(work.directory.get()) != 0)
    return EACCES;
  ::umask(work.umask);
  return ::bind(work.socket.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0 ? 0
                                                                                           : errno;
}

}  // namespace

Result<SocketBinder> SocketBinder::make(const std::vector<int>& directories,
                                        const ProgramIds& ids) {
  SocketBinder binder;
  binder.ids_ = ids;
  landlock_ruleset_attr handled{};
  handled.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_SOCK;
  // All that ABI 1 knows; a newer kernel takes the rest as 0.
  binder.rules_ = UniqueFd(static_cast<int>(
      ::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled.handled_access_fs, 0)));
  if (!binder.rules_.valid()) return cannot_rule();
  for (const int directory : directories) {
    landlock_path_beneath_attr rule{};
    rule.allowed_access = LANDLOCK_ACCESS_FS_MAKE_SOCK;
    rule.parent_fd = directory;
    if (::syscall(SYS_landlock_add_rule, binder.rules_.get(), LANDLOCK_RULE_PATH_BENEATH, &rule,
                  0) != 0)
      return cannot_rule();
  }
  return binder;
}

void SocketBinder::detach() {
  if (loop_ != nullptr && worker_.valid()) {
    loop_->forget(worker_.get());
    process::kill(worker_.get());
    if (process::has_ended(worker_.get(), 1s)) (void)process::reap(worker_.get());
  }
  worker_.reset();
  work_ = {};
  loop_ = nullptr;
}

void SocketBinder::start(Work work) {
  if (loop_ == nullptr) return work.done(EACCES);
  auto child = process::fork([&] { return bind_confined(work, rules_.get(), ids_); });
  if (child && loop_->watch(child->process.get(), EPOLLIN, [this](std::uint32_t) { ended(); })) {
    worker_ = std::move(child->process);
    work_ = std::move(work);
    return;
  }
  if (child) (void)process::reap(child->process.get());
  work.done(ENOMEM);
}

void SocketBinder::ended() {
  siginfo_t info{};
  // At the end of the sandbox what is left of it is reaped by number, and this too: KeptTree.
  const bool is_known = ::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(worker_.get()),
                                 &info, WEXITED | WNOHANG) == 0 &&
                        info.si_pid != 0 && info.si_code == CLD_EXITED;
  loop_->forget(worker_.get());
  worker_.reset();
  Work work = std::exchange(work_, {});
  work.socket.reset();  // who holds it longer keeps peers from seeing the program's close
  work.done(is_known ? info.si_status : EACCES);
}

}  // namespace sbx::supervise

#include "session/session_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/held.hpp"
#include "base/text.hpp"
#include "host/state.hpp"
#include "run/session_directory.hpp"
#include "session/live_sessions.hpp"
#include "session/session_name.hpp"
#include "session/session_place.hpp"

namespace sbx::session {
namespace {

constexpr int kWaiting = 64;  ///< connections that the kernel accepts before the session does

Error exists(const std::string& name) {
  return {.kind = ErrorKind::usage,
          .code = "session-exists",
          .message = "the session \"" + name + "\" exists already",
          .hint = "sbx session exec " + name + " COMMAND uses it, sbx session stop " + name +
                  " ends it"};
}

}  // namespace

Result<SessionDirectory> SessionDirectory::make(const host::Host& host, const std::string& name) {
  SBX_TRY(check_name(name));
  UniqueFd parent = SBX_TRY(run::open_session_directory(host, run::IfMissing::is_made));
  // Also where a command of another environment looks first.
  for (const run::SessionDirectory& each : run::session_directories(host))
    if (const auto there = connect_in(each.open.get(), name); !there || there->valid())
      return fail(exists(name));
  // Another process may sweep the directory between the steps: then they begin anew.
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (!held::make_directory(parent.get(), name, 0700) && errno != EEXIST) break;
    UniqueFd directory = open_place(parent.get(), name);
    if (!directory.valid()) continue;
    // Held during a start: who starts the same one meanwhile waits for its end, and finds a session
    // that answers. The kernel releases it where the start is killed.
    if (::flock(directory.get(), LOCK_EX) != 0) continue;
    UniqueFd lock = open_lock(directory.get());
    if (!lock.valid()) continue;
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return fail(exists(name));
    struct stat facts{};
    if (::fstat(lock.get(), &facts) != 0 || facts.st_nlink == 0) continue;  // it was swept
    (void)held::remove_file(directory.get(), kSocketName);
    return SessionDirectory(name, std::move(parent), std::move(directory), std::move(lock));
  }
  const std::string path = host::runtime_directory(host) + "/sessions/" + name;
  return fail(Error{.kind = ErrorKind::host,
                    .code = "no-session-directory",
                    .message = "cannot make '" + printable(path) + "'",
                    .errno_value = errno,
                    .hint = "XDG_RUNTIME_DIR can name another directory for sessions, of yours and "
                            "of mode 0700"});
}

SessionDirectory::~SessionDirectory() {
  if (directory_.valid()) remove_place(parent_.get(), directory_.get(), name_);
}

UniqueFd SessionDirectory::watch_removal() const {
  UniqueFd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  const std::string path = "/proc/self/fd/" + std::to_string(directory_.get());
  if (!watch.valid() ||
      ::inotify_add_watch(watch.get(), path.c_str(), IN_DELETE | IN_MOVED_FROM | IN_MOVE_SELF) < 0)
    return {};
  return watch;
}

bool SessionDirectory::is_there() const {
  struct stat named{};
  struct stat own{};
  struct stat socket{};
  return ::fstatat(parent_.get(), name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         ::fstat(directory_.get(), &own) == 0 && named.st_dev == own.st_dev &&
         named.st_ino == own.st_ino && ::fstatat(directory_.get(), kSocketName, &socket, 0) == 0;
}

void SessionDirectory::end_start() const {
  (void)::flock(directory_.get(), LOCK_UN);
}

Result<UniqueFd> SessionDirectory::listen() const {
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const Address address = address_in(directory_.get());
  if (!socket.valid() ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.value), address.size) != 0 ||
      ::listen(socket.get(), kWaiting) != 0)
    return fail_errno(ErrorKind::host, "no-session-directory",
                      "cannot listen for the session's users");
  return socket;
}

}  // namespace sbx::session

#include "session/session_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/held.hpp"
#include "base/process.hpp"
#include "base/random.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "cgroup/acquire.hpp"
#include "host/parse.hpp"
#include "host/state.hpp"
#include "policy/keys.hpp"
#include "run/session_directory.hpp"
#include "session/remains.hpp"

namespace sbx::session {
namespace {

constexpr std::size_t kLongestName = 63;
constexpr const char* kSocket = "socket";
constexpr const char* kLock = "lock";
constexpr timeval kAcceptsWithin{.tv_sec = 10, .tv_usec = 0};
constexpr int kWaiting = 64;  ///< connections that the kernel accepts before the session does

bool is_name_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
}

/// Paths of sockets are at most 107 bytes: a long one is reached through a descriptor of its
/// directory.
struct Address {
  sockaddr_un value{};
  socklen_t size = sizeof(sockaddr_un);
};
Address address_in(int directory) {
  Address address;
  address.value.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(directory) + "/" + kSocket;
  std::memcpy(address.value.sun_path, path.c_str(), path.size() + 1);
  return address;
}

UniqueFd open_directory(int parent, const std::string& name) {
  return UniqueFd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

UniqueFd open_lock(int directory) {
  return UniqueFd(::openat(directory, kLock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
}

void remove_session(int parent, int directory, const std::string& name) {
  (void)held::remove_file(directory, kSocket);
  (void)held::remove_file(directory, kLock);
  (void)held::remove_directory(parent, name);
}

/// True if nobody holds the lock; then the directory is removed.
bool is_swept(int parent, const std::string& name) {
  const UniqueFd directory = open_directory(parent, name);
  if (!directory.valid()) return true;
  // Who starts a session in it holds this one before the other: else it would take this look for a
  // session of its name that lives.
  if (::flock(directory.get(), LOCK_EX | LOCK_NB) != 0) return false;
  const UniqueFd lock = open_lock(directory.get());
  if (!lock.valid() || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return false;
  remove_session(parent, directory.get(), name);
  cgroup::sweep_left_groups();
  return true;
}

std::vector<std::string> names_in(int parent) {
  std::vector<std::string> names;
  const int copy = ::openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::fdopendir(copy), &::closedir);
  if (!directory) return names;
  while (const dirent* const entry = ::readdir(directory.get()))
    if (check_name(entry->d_name)) names.emplace_back(entry->d_name);
  std::ranges::sort(names);
  return names;
}

/// Root has no door to other accounts' sessions.
std::string words_for_root(const host::Host& host) {
  if (host.uid != 0) return {};
  const auto set = host.environment.find("XDG_RUNTIME_DIR");
  std::string name = "NAME";
  if (set != host.environment.end())
    if (const auto facts = host.files->look(set->second); facts && facts->uid != 0)
      name = "'#" + std::to_string(facts->uid) + "'";
  return "; those of another account: sudo -u " + name + " sbx session list";
}

std::unexpected<Error> no_such(const host::Host& host,
                               const std::vector<run::SessionDirectory>& directories,
                               const std::string& name) {
  std::vector<std::string> names;
  for (const run::SessionDirectory& each : directories)
    for (std::string& found : names_in(each.open.get()))
      if (!is_swept(each.open.get(), found)) names.push_back(std::move(found));
  if (const auto remains = remains_of(host, name))
    return fail(
        Error{.kind = ErrorKind::usage,
              .code = "no-such-session",
              .message = ended_words(name, *remains),
              .hint = remains_words(*remains) + "\nsbx session start " + name + " starts a new one",
              .obstacle = Obstacle::no_session});
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string_view meant = policy::nearest(name, views);
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "no-such-session",
                    .message = "there is no session \"" + printable(name) + "\"",
                    .hint = meant.empty()
                                ? "sbx session list names those that live; sbx session "
                                  "start " +
                                      printable(name) + " starts it" + words_for_root(host)
                                : "did you mean \"" + std::string(meant) + "\"?",
                    .obstacle = Obstacle::no_session});
}

/// Invalid where none lives in that directory. Errors: host, of one that lives.
Result<UniqueFd> connect_in(int parent, const std::string& name) {
  const UniqueFd directory = open_directory(parent, name);
  if (!directory.valid()) return UniqueFd();
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return fail_errno(ErrorKind::host, "no-socket", "cannot make a socket");
  const Address address = address_in(directory.get());
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kAcceptsWithin, sizeof kAcceptsWithin);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.value), address.size) ==
      0) {
    // A sandbox with a live grant above could have made all of this: it must get no descriptors.
    if (!may_use(socket.get())) return UniqueFd();
    constexpr timeval kForGood{};
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kForGood, sizeof kForGood);
    return socket;
  }
  if (errno == EAGAIN)
    return fail(Error{.kind = ErrorKind::host,
                      .code = "session-silent",
                      .message = "the session \"" + name + "\" takes no more connections",
                      .hint = "its process is busy or stopped: ps -C sbx finds it"});
  if (errno != ENOENT && errno != ECONNREFUSED)
    return fail_errno(ErrorKind::host, "session-gone", "cannot reach the session");
  return UniqueFd();
}

std::string process_of(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  (void)::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return std::to_string(peer.pid);
}

Error exists(const std::string& name) {
  return {.kind = ErrorKind::usage,
          .code = "session-exists",
          .message = "the session \"" + name + "\" exists already",
          .hint = "sbx session exec " + name + " COMMAND uses it, sbx session stop " + name +
                  " ends it"};
}

}  // namespace

Status check_name(std::string_view name) {
  const bool right = !name.empty() && name.size() <= kLongestName && is_name_letter(name.front()) &&
                     std::ranges::all_of(
                         name, [](char letter) { return is_name_letter(letter) || letter == '-'; });
  if (right) return {};
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "bad-session-name",
                    .message = "\"" + printable(name) + "\" can't be the name of a session",
                    .hint =
                        "lower-case letters, digits and hyphens, at most 63, not beginning with "
                        "a hyphen"});
}

std::string make_name() {
  return "s-" + random_hex().substr(8);
}

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
    UniqueFd directory = open_directory(parent.get(), name);
    if (!directory.valid()) continue;
    // Held during a start: who starts the same one meanwhile waits for its end, and finds a session
    // that answers. The kernel releases it where the start is killed.
    if (::flock(directory.get(), LOCK_EX) != 0) continue;
    UniqueFd lock = open_lock(directory.get());
    if (!lock.valid()) continue;
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return fail(exists(name));
    struct stat facts{};
    if (::fstat(lock.get(), &facts) != 0 || facts.st_nlink == 0) continue;  // it was swept
    (void)held::remove_file(directory.get(), kSocket);
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
  if (directory_.valid()) remove_session(parent_.get(), directory_.get(), name_);
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
         named.st_ino == own.st_ino && ::fstatat(directory_.get(), kSocket, &socket, 0) == 0;
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

Result<UniqueFd> connect_to(const host::Host& host, const std::string& name) {
  SBX_TRY(check_name(name));
  const std::vector<run::SessionDirectory> directories = run::session_directories(host);
  UniqueFd found;
  std::string place;
  for (const run::SessionDirectory& each : directories) {
    UniqueFd socket = SBX_TRY(connect_in(each.open.get(), name));
    if (!socket.valid()) continue;
    if (found.valid())
      return fail(Error{.kind = ErrorKind::usage,
                        .code = "session-twice",
                        .message = "two sessions are named \"" + name + "\": in '" +
                                   printable(place) + "' and in '" + printable(each.path) + "'",
                        .hint = "end one of them: kill " + process_of(found.get()) +
                                " the first, kill " + process_of(socket.get()) + " the second"});
    found = std::move(socket);
    place = each.path;
  }
  if (!found.valid()) return no_such(host, directories, name);
  return found;
}

Result<UniqueFd> connect_to(const LiveSession& session) {
  UniqueFd socket = SBX_TRY(connect_in(session.directory->get(), session.name));
  if (socket.valid()) return socket;
  return fail(Error{.kind = ErrorKind::host,
                    .code = "session-gone",
                    .message = "the session \"" + session.name + "\" has ended"});
}

std::vector<LiveSession> live_sessions(const host::Host& host) {
  std::vector<LiveSession> sessions;
  for (run::SessionDirectory& each : run::session_directories(host)) {
    const auto directory = std::make_shared<UniqueFd>(std::move(each.open));
    for (std::string& name : names_in(directory->get()))
      if (!is_swept(directory->get(), name))
        sessions.push_back({.name = std::move(name), .directory = directory});
  }
  std::ranges::sort(sessions, {}, &LiveSession::name);
  return sessions;
}

std::string no_sessions(const host::Host& host) {
  return "no session lives; \"sbx session start\" starts one" + words_for_root(host) + "\n";
}

bool may_use(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  if (peer.uid == 0 || ::geteuid() == 0) return peer.uid == 0;
  if (peer.uid != ::geteuid() || peer.pid <= 0) return false;
  // Not by /proc/PID/status, which hidepid hides.
  const UniqueFd process = process::of_peer(connection);
  if (!process.valid()) return false;
  const auto facts = sys::read_file("/proc/self/fdinfo/" + std::to_string(process.get()), 65536);
  return facts && host::is_of_this_pid_namespace(*facts, peer.pid);
}

}  // namespace sbx::session

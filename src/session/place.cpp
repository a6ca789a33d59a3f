#include "session/place.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/held.hpp"
#include "base/random.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "cgroup/acquire.hpp"
#include "host/parse.hpp"
#include "policy/keys.hpp"
#include "run/session_folder.hpp"

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

/// Paths of sockets are at most 107 bytes: a long one is reached through a descriptor of its directory.
struct Address {
  sockaddr_un value{};
  socklen_t size = sizeof(sockaddr_un);
};
Address address_in(int folder) {
  Address address;
  address.value.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(folder) + "/" + kSocket;
  std::memcpy(address.value.sun_path, path.c_str(), path.size() + 1);
  return address;
}

UniqueFd open_folder(int parent, const std::string& name) {
  return UniqueFd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

UniqueFd open_lock(int folder) {
  return UniqueFd(::openat(folder, kLock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
}

void remove_session(int parent, int folder, const std::string& name) {
  (void)held::remove_file(folder, kSocket);
  (void)held::remove_file(folder, kLock);
  (void)held::remove_directory(parent, name);
}

/// True if nobody holds the lock; then the directory is removed.
bool is_swept(int parent, const std::string& name) {
  const UniqueFd folder = open_folder(parent, name);
  if (!folder.valid()) return true;
  const UniqueFd lock = open_lock(folder.get());
  if (!lock.valid() || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return false;
  remove_session(parent, folder.get(), name);
  cgroup::sweep_left_groups();
  return true;
}

std::vector<std::string> names_in(int parent) {
  std::vector<std::string> names;
  const int copy = ::openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::fdopendir(copy), &::closedir);
  if (!folder) return names;
  while (const dirent* const entry = ::readdir(folder.get()))
    if (check_name(entry->d_name)) names.emplace_back(entry->d_name);
  std::ranges::sort(names);
  return names;
}

std::unexpected<Error> no_such(int parent, const std::string& name) {
  std::vector<std::string> names = parent < 0 ? std::vector<std::string>() : names_in(parent);
  std::erase_if(names, [parent](const std::string& each) { return is_swept(parent, each); });
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string_view meant = policy::nearest(name, views);
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "no-such-session",
                    .message = "there is no session \"" + printable(name) + "\"",
                    .hint = meant.empty() ? "sbx session list names those that live; sbx session "
                                            "start " +
                                                printable(name) + " starts it"
                                          : "did you mean \"" + std::string(meant) + "\"?"});
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

Result<Place> Place::make(const host::Host& host, const std::string& name) {
  SBX_TRY(check_name(name));
  UniqueFd parent = SBX_TRY(run::open_session_folder(host, run::IfMissing::is_made));
  // Another process may sweep the directory between the steps: then they begin anew.
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (!held::make_directory(parent.get(), name, 0700) && errno != EEXIST) break;
    UniqueFd folder = open_folder(parent.get(), name);
    if (!folder.valid()) continue;
    UniqueFd lock = open_lock(folder.get());
    if (!lock.valid()) continue;
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
      return fail(Error{.kind = ErrorKind::usage,
                        .code = "session-exists",
                        .message = "the session \"" + name + "\" exists already",
                        .hint = "sbx session exec " + name + " COMMAND uses it, sbx session stop " +
                                name + " ends it"});
    struct stat facts{};
    if (::fstat(lock.get(), &facts) != 0 || facts.st_nlink == 0) continue;  // it was swept
    (void)held::remove_file(folder.get(), kSocket);
    return Place(name, std::move(parent), std::move(folder), std::move(lock));
  }
  return fail_errno(ErrorKind::host, "no-session-folder",
                    "cannot make a directory for the session \"" + name + "\"");
}

Place::~Place() {
  if (folder_.valid()) remove_session(parent_.get(), folder_.get(), name_);
}

Result<UniqueFd> Place::listen() const {
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const Address address = address_in(folder_.get());
  if (!socket.valid() ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.value), address.size) != 0 ||
      ::listen(socket.get(), kWaiting) != 0)
    return fail_errno(ErrorKind::host, "no-session-folder",
                      "cannot listen for the session's users");
  return socket;
}

Result<UniqueFd> connect_to(const host::Host& host, const std::string& name) {
  SBX_TRY(check_name(name));
  const auto parent = run::open_session_folder(host, run::IfMissing::fails);
  if (!parent) return no_such(-1, name);
  const UniqueFd folder = open_folder(parent->get(), name);
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return fail_errno(ErrorKind::host, "no-socket", "cannot make a socket");
  if (!folder.valid()) return no_such(parent->get(), name);
  const Address address = address_in(folder.get());
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kAcceptsWithin, sizeof kAcceptsWithin);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.value), address.size) ==
      0) {
    // A sandbox with a live grant above could have made all of this: it must get no descriptors.
    if (!may_use(socket.get())) return no_such(-1, name);
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
  return no_such(parent->get(), name);
}

Result<std::vector<std::string>> live_sessions(const host::Host& host) {
  const auto parent = run::open_session_folder(host, run::IfMissing::fails);
  if (!parent) return std::vector<std::string>();
  std::vector<std::string> names = names_in(parent->get());
  std::erase_if(names, [&](const std::string& each) { return is_swept(parent->get(), each); });
  return names;
}

bool may_use(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  if (peer.uid == 0 || ::geteuid() == 0) return peer.uid == 0;
  if (peer.uid != ::geteuid() || peer.pid <= 0) return false;
  // Not by /proc/PID/status, which hidepid hides.
  const UniqueFd process = sys::peer_process(connection);
  if (!process.valid()) return false;
  const auto facts = sys::read_file("/proc/self/fdinfo/" + std::to_string(process.get()), 65536);
  return facts && host::is_of_this_pid_namespace(*facts, peer.pid);
}

}  // namespace sbx::session

#include "session/live_sessions.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/sys.hpp"
#include "base/text.hpp"
#include "cgroup/acquire.hpp"
#include "policy/keys.hpp"
#include "run/session_directory.hpp"
#include "session/peer.hpp"
#include "session/remains.hpp"
#include "session/session_name.hpp"
#include "session/session_place.hpp"

namespace sbx::session {
namespace {

constexpr timeval kAcceptsWithin{.tv_sec = 10, .tv_usec = 0};

/// True if nobody holds the lock; then the directory is removed.
bool is_swept(int parent, const std::string& name) {
  const UniqueFd directory = open_place(parent, name);
  if (!directory.valid()) return true;
  // Who starts a session in it holds this one before the other: else it would take this look for a
  // session of its name that lives.
  if (::flock(directory.get(), LOCK_EX | LOCK_NB) != 0) return false;
  const UniqueFd lock = open_lock(directory.get());
  if (!lock.valid() || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return false;
  remove_place(parent, directory.get(), name);
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
  if (const auto remains = remains_of(host, name)) {
    const std::string words = remains_words(*remains);
    return fail(Error{.kind = ErrorKind::usage,
                      .code = "no-such-session",
                      .message = ended_words(name, *remains),
                      .hint = words + (words.empty() ? "" : "\n") + "sbx session start " + name +
                              ", with the options that it had, starts a new one",
                      .obstacle = Obstacle::no_session});
  }
  if (std::ranges::find(names, name) != names.end())
    return fail(Error{.kind = ErrorKind::usage,
                      .code = "no-such-session",
                      .message = "the session \"" + name +
                                 "\" takes no requests: it is starting or "
                                 "ending",
                      .hint = "try again in a moment",
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

std::string process_of(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  (void)::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return std::to_string(peer.pid);
}

}  // namespace

/// Invalid where none lives in that directory. Errors: host, of one that lives.
Result<UniqueFd> connect_in(int parent, const std::string& name) {
  const UniqueFd directory = open_place(parent, name);
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

}  // namespace sbx::session

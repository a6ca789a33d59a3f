#include "run/under_way.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/process.hpp"
#include "base/sys.hpp"
#include "host/parse.hpp"

namespace sbx::run {
namespace {

constexpr std::string_view kPrefix = "sbx-run-";
constexpr std::size_t kIdSize = 18;  ///< "r_" and 16 digits
constexpr std::size_t kProcLimit = std::size_t{16} << 20;
constexpr std::size_t kCommandLimit = std::size_t{64} << 10;
constexpr int kWaiting = 8;  ///< backlog: the kernel answers that many until the run closes them
constexpr auto kPause = std::chrono::milliseconds(100);
constexpr timeval kAnswersWithin{.tv_sec = 1, .tv_usec = 0};
/// A cancelled run has 2 s of grace; a process in uninterruptible sleep takes longer.
constexpr std::chrono::seconds kEndsWithin{10};

struct Address {
  sockaddr_un value{};
  socklen_t size = 0;
};

Address address_of(std::string_view name) {
  Address address;
  address.value.sun_family = AF_UNIX;
  name = name.substr(0, sizeof address.value.sun_path - 1);
  std::memcpy(address.value.sun_path + 1, name.data(), name.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

bool is_plain(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '-' || letter == '_' || letter == '.';
}

bool is_id(std::string_view text) {
  return text.size() == kIdSize && text.starts_with("r_") &&
         text.find_first_not_of("0123456789abcdef", 2) == std::string_view::npos;
}

/// The process that listens on a name.
struct Listener {
  ucred facts{};
  UniqueFd process;  ///< its pidfd; invalid where it is in a PID namespace that this process does
                     ///< not see
};

/// With network.mode = "host" a program of a sandbox can take a name too. It lives in a PID
/// namespace below.
bool is_sandboxed(const Listener& listener) {
  if (listener.facts.pid <= 0) return false;
  const auto facts =
      sys::read_file("/proc/self/fdinfo/" + std::to_string(listener.process.get()), kCommandLimit);
  return !facts || !host::is_of_this_pid_namespace(*facts, listener.facts.pid);
}

/// Empty if nobody listens, or a sandboxed program.
std::optional<Listener> listener_of(std::string_view name) {
  const UniqueFd asking(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const Address address = address_of(name);
  Listener listener;
  socklen_t size = sizeof listener.facts;
  // Limits how long connect(2) waits when the backlog is full, socket(7).
  if (!asking.valid() ||
      ::setsockopt(asking.get(), SOL_SOCKET, SO_SNDTIMEO, &kAnswersWithin, sizeof kAnswersWithin) !=
          0 ||
      ::connect(asking.get(), reinterpret_cast<const sockaddr*>(&address.value), address.size) !=
          0 ||
      ::getsockopt(asking.get(), SOL_SOCKET, SO_PEERCRED, &listener.facts, &size) != 0)
    return std::nullopt;
  listener.process = process::of_peer(asking.get());
  if (is_sandboxed(listener)) return std::nullopt;
  return listener;
}

std::string listener_name(const UnderWay& run) {
  return std::string(kPrefix) + run.id + "-" + run.policy;
}

/// The abstract names of listening sockets: the last column of /proc/net/unix, with "@" in front.
std::vector<std::string> listening_names(std::string_view table) {
  std::vector<std::string> names;
  while (!table.empty()) {
    const std::size_t end = table.find('\n');
    const std::string_view line = table.substr(0, end);
    table.remove_prefix(end == std::string_view::npos ? table.size() : end + 1);
    const std::size_t at = line.find(" @");
    if (at == std::string_view::npos || !line.substr(at + 2).starts_with(kPrefix)) continue;
    names.emplace_back(line.substr(at + 2));
  }
  return names;
}

/// The kernel returns the table page by page and finds its position again by counting, so a socket
/// that closes meanwhile hides another one. Two reads are unlikely to miss the same one.
Result<std::vector<std::string>> listening_names() {
  std::vector<std::string> names;
  for (int look = 0; look < 2; ++look)
    for (std::string& name : listening_names(SBX_TRY(sys::read_file("/proc/net/unix", kProcLimit))))
      names.push_back(std::move(name));
  // A client that connected a moment ago is listed too, under the same name.
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

std::optional<UnderWay> read_name(std::string_view name) {
  name.remove_prefix(kPrefix.size());
  if (name.size() <= kIdSize || name[kIdSize] != '-' || !is_id(name.substr(0, kIdSize)))
    return std::nullopt;
  return UnderWay{.id = std::string(name.substr(0, kIdSize)),
                  .policy = std::string(name.substr(kIdSize + 1))};
}

/// CLOCK_REALTIME time of the start: field 22 of proc_pid_stat(5) counts from boot.
std::int64_t start_of(pid_t pid) {
  const auto stat = sys::read_file("/proc/" + std::to_string(pid) + "/stat", kCommandLimit);
  const std::size_t after = stat ? stat->rfind(')') : std::string::npos;
  if (after == std::string::npos) return 0;
  std::string_view rest = std::string_view(*stat).substr(after + 1);
  constexpr int kFieldsBetween = 20;
  for (int i = 0; i < kFieldsBetween && !rest.empty(); ++i) {
    const std::size_t blank = rest.find(' ');
    rest.remove_prefix(blank == std::string_view::npos ? rest.size() : blank + 1);
  }
  std::uint64_t ticks = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), ticks);
  timespec now{};
  timespec up{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  ::clock_gettime(CLOCK_BOOTTIME, &up);
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  return now.tv_sec - up.tv_sec + static_cast<std::int64_t>(ticks / per_second);
}

std::vector<std::string> command_of(pid_t pid) {
  std::vector<std::string> words;
  const auto text = sys::read_file("/proc/" + std::to_string(pid) + "/cmdline", kCommandLimit);
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  while (!rest.empty()) {
    const std::size_t end = rest.find('\0');
    words.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return words;
}

std::unexpected<Error> gone(const UnderWay& run) {
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "no-such-run",
                    .message = "the run \"" + run.id + "\" has ended"});
}

}  // namespace

Announcement::Announcement(const std::string& id, const std::string& policy) {
  // A name that a shell, a table or /proc/net/unix would show differently is left out.
  const bool plain = std::ranges::all_of(policy, is_plain);
  const Address address = address_of(listener_name({.id = id, .policy = plain ? policy : ""}));
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.valid() &&
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.value), address.size) == 0 &&
      ::listen(socket.get(), kWaiting) == 0)
    socket_ = std::move(socket);
}

Status Announcement::attach(EventLoop& loop) {
  if (!socket_.valid()) return {};
  return loop.watch(socket_.get(), EPOLLIN, [this, &loop](std::uint32_t) { let_go(loop); });
}

/// Any user of the host may connect: a flood gets only a few answers each time.
void Announcement::let_go(EventLoop& loop) {
  for (int i = 0; i < kWaiting; ++i)
    if (!UniqueFd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)).valid()) return;
  loop.set_events(socket_.get(), 0);
  loop.after(kPause, [this, &loop] { loop.set_events(socket_.get(), EPOLLIN); });
}

Result<std::vector<UnderWay>> runs_under_way() {
  const std::vector<std::string> names = SBX_TRY(listening_names());
  std::vector<UnderWay> list;
  for (const std::string& name : names) {
    auto run = read_name(name);
    const auto listener = run ? listener_of(name) : std::nullopt;
    if (!listener || listener->facts.uid != ::geteuid()) continue;
    run->pid = listener->facts.pid;
    if (run->pid > 0) {
      run->since = start_of(run->pid);
      run->command = command_of(run->pid);
    }
    list.push_back(std::move(*run));
  }
  std::ranges::sort(list, {}, [](const UnderWay& run) { return std::pair(run.since, run.id); });
  return list;
}

Status end_run(const UnderWay& run) {
  if (run.pid <= 0)
    return fail(Error{.kind = ErrorKind::host,
                      .code = "not-ended",
                      .message = "the run \"" + run.id +
                                 "\" belongs to a PID namespace that this process does not see"});
  const auto listener = listener_of(listener_name(run));
  if (!listener || !listener->process.valid() || listener->facts.pid != run.pid ||
      listener->facts.uid != ::geteuid())
    return gone(run);
  const int process = listener->process.get();
  if (!process::send_signal(process, SIGTERM)) {
    if (errno == ESRCH) return gone(run);
    return fail_errno(ErrorKind::host, "not-ended", "the run \"" + run.id + "\" can't be stopped");
  }
  if (process::has_ended(process, kEndsWithin)) return {};
  return fail(Error{.kind = ErrorKind::host,
                    .code = "not-ended",
                    .message = "the run \"" + run.id + "\" has not ended within 10 s"});
}

}  // namespace sbx::run

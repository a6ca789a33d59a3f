#include "supervise/unix_sockets.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "base/held.hpp"
#include "base/sys.hpp"

namespace sbx::supervise {
namespace {

using namespace std::chrono_literals;

constexpr auto kPathAt = offsetof(sockaddr_un, sun_path);
/// With their targets they need descriptors of the supervisor's.
constexpr std::size_t kMostPending = 64;
/// Of those that wait, so many are tried at a time, and then the loop goes on for so long.
constexpr int kTries = 16;
constexpr auto kRetryAfter = 5ms;

bool is_served(std::uint64_t family, std::uint64_t type) {
  const int kind = static_cast<int>(type) & 0xf;
  return static_cast<int>(family) == AF_UNIX && (kind == SOCK_STREAM || kind == SOCK_SEQPACKET);
}

/// Without what is empty, "." or "..", as it is written: links are not followed.
std::string lexically_normal(std::string_view path) {
  std::string normal;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view name = path.substr(at, end - at);
    at = end + 1;
    if (name.empty() || name == ".") continue;
    if (name == "..")
      normal.erase(std::min(normal.rfind('/'), normal.size()));
    else
      normal.append("/").append(name);
  }
  return normal;
}

mode_t umask_of(const CallerMemory& caller) {
  constexpr std::string_view kKey = "\nUmask:\t";
  const auto status = sys::read_file(of_thread(caller, "status"), 4096);
  const std::size_t at = status ? status->find(kKey) : std::string::npos;
  mode_t mask = 0;
  if (at == std::string::npos) return 077;
  const char* const begin = status->data() + at + kKey.size();
  const auto read = std::from_chars(begin, status->data() + status->size(), mask, 8);
  return read.ec == std::errc() ? mask : 077;
}

/// An option of a socket that is left out for a while. The program has the same socket: where it
/// sets the option at this moment, that is lost.
class WithoutOption {
 public:
  WithoutOption(int socket, int option) : socket_(socket), option_(option) {
    socklen_t size = sizeof was_;
    if (::getsockopt(socket_, SOL_SOCKET, option_, &was_, &size) != 0) was_ = 0;
    if (was_ != 0) set(0);
  }
  WithoutOption(const WithoutOption&) = delete;
  WithoutOption& operator=(const WithoutOption&) = delete;
  ~WithoutOption() {
    if (was_ != 0) set(was_);
  }

 private:
  void set(int value) const {
    (void)::setsockopt(socket_, SOL_SOCKET, option_, &value, sizeof value);
  }
  int socket_;
  int option_;
  int was_ = 0;
};

/// The same for a call that must not wait. FIONBIO changes this flag and no other.
class WithoutWaiting {
 public:
  explicit WithoutWaiting(int socket)
      : socket_(socket), waits_((::fcntl(socket, F_GETFL) & O_NONBLOCK) == 0) {
    if (waits_) set(1);
  }
  WithoutWaiting(const WithoutWaiting&) = delete;
  WithoutWaiting& operator=(const WithoutWaiting&) = delete;
  ~WithoutWaiting() {
    if (waits_) set(0);
  }

 private:
  void set(int value) const { (void)::ioctl(socket_, FIONBIO, &value); }
  int socket_;
  bool waits_;
};

/// When a connect(2) that waits gives up, SO_SNDTIMEO; 0: never.
std::uint64_t deadline_of(int socket) {
  timeval most{};
  socklen_t size = sizeof most;
  if (::getsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &most, &size) != 0) return 0;
  const auto longest = static_cast<std::uint64_t>(most.tv_sec) * 1'000'000 +
                       static_cast<std::uint64_t>(most.tv_usec);
  return longest == 0 ? 0 : sys::now_microseconds() + longest;
}

}  // namespace

UnixSockets::UnixSockets(Options options)
    : granted_(std::move(options.granted)), copies_(options.keeper), ids_(std::move(options.ids)) {}

Result<std::unique_ptr<UnixSockets>> UnixSockets::make(Options options) {
  CallerPaths paths = SBX_TRY(CallerPaths::make(options.places));
  SocketBinder binder = SBX_TRY(SocketBinder::make(paths.directories(), options.ids));
  std::unique_ptr<UnixSockets> sockets(new UnixSockets(std::move(options)));
  sockets->paths_ = std::move(paths);
  sockets->binder_ = std::move(binder);
  return sockets;
}

std::vector<Note> UnixSockets::notes() {
  std::vector<Note> notes;
  for (const int number : {SYS_socket, SYS_connect, SYS_bind})
    notes.push_back({.number = number,
                     .look = {},
                     .take = [this](const NotedCall& call, const CallerMemory& caller) {
                       answer(call, caller);
                     }});
  return notes;
}

void UnixSockets::attach(EventLoop& loop) {
  loop_ = &loop;
  binder_.attach(loop);
}

void UnixSockets::detach() {
  binder_.detach();
  pending_.clear();
  if (loop_ != nullptr) loop_->cancel(std::exchange(retry_, EventLoop::kNoTimer));
  loop_ = nullptr;
}

void UnixSockets::answer(const NotedCall& call, const CallerMemory& caller) {
  std::optional<int> error = EACCES;
  {
    const ActingAs program(ids_);
    if (program.is()) switch (call.number) {
        case SYS_socket:
          error = make_socket(call, caller);
          break;
        case SYS_connect:
          error = connect(call, caller);
          break;
        case SYS_bind:
          error = bind(call, caller);
          break;
        default:
          break;
      }
  }
  if (error) caller.finish(*error);
  binder_.start();
}

std::optional<int> UnixSockets::make_socket(const NotedCall& call, const CallerMemory& caller) {
  const auto& a = call.arguments;
  if (!is_served(a[0], a[1])) return EAFNOSUPPORT;
  if (!copies_.has_room()) return EMFILE;
  const int type = static_cast<int>(a[1]);
  UniqueFd made(::socket(AF_UNIX, type | SOCK_CLOEXEC, static_cast<int>(a[2])));
  if (!made.valid()) return errno;
  const int error = caller.give(made.get(), (type & SOCK_CLOEXEC) != 0);
  if (error != 0) return error;
  copies_.add(std::move(made));
  return std::nullopt;
}

/// A socket without a copy here is connected already: it came of accept(2) or socketpair(2), or was
/// connected or bound before.
UnixSockets::Copied UnixSockets::copied(const CallerMemory& caller, std::uint64_t fd,
                                        int otherwise) const {
  const std::string link =
      read_link(of_thread(caller, "fd/" + std::to_string(static_cast<int>(fd))));
  const int why = errno;
  if (!caller.still_waits()) return {.error = EACCES};
  if (link.empty()) return {.error = why == ENOENT ? EBADF : EACCES};
  const auto inode = socket_in_link(link);
  if (!inode) return {.error = ENOTSOCK};
  if (copies_.find(*inode) < 0) return {.error = otherwise};
  return {.inode = *inode};
}

/// As the kernel reads it, unix_validate_addr().
UnixSockets::Address UnixSockets::address_of(const NotedCall& call, const CallerMemory& caller) {
  std::array<char, sizeof(sockaddr_un)> room{};
  const auto length = static_cast<std::int32_t>(call.arguments[2]);
  if (length < static_cast<std::int32_t>(kPathAt) ||
      length > static_cast<std::int32_t>(room.size()))
    return {.error = EINVAL};
  const auto bytes = std::span(room).first(static_cast<std::size_t>(length));
  if (!caller.read(call.arguments[1], std::as_writable_bytes(bytes))) return {.error = EFAULT};
  sa_family_t family = 0;
  std::memcpy(&family, room.data(), sizeof family);
  if (family != AF_UNIX) return {.error = EINVAL};
  const std::string_view path(bytes.data() + kPathAt, bytes.size() - kPathAt);
  return {.path = std::string(path.substr(0, path.find('\0')))};
}

std::optional<int> UnixSockets::connect(const NotedCall& call, const CallerMemory& caller) {
  const Copied copy = copied(caller, call.arguments[0], EISCONN);
  if (copy.error != 0) return copy.error;
  const Address address = address_of(call, caller);
  if (address.error != 0) return address.error;
  if (address.path.empty())
    return call.arguments[2] == kPathAt ? EINVAL : ECONNREFUSED;  // abstract
  CallerPaths::Found found = target(caller, address.path);
  if (found.error != 0) return found.error == EPERM ? EACCES : found.error;
  const int socket = copies_.find(copy.inode);
  const bool waits = (::fcntl(socket, F_GETFL) & O_NONBLOCK) == 0;
  const int error = connect_copy(copy.inode, found.file.get());
  if (error != EAGAIN || !waits || pending_.size() >= kMostPending) return error;
  pending_.push_back({caller, copy.inode, std::move(found.file), deadline_of(socket)});
  try_later();
  return std::nullopt;
}

CallerPaths::Found UnixSockets::target(const CallerMemory& caller, const std::string& path) const {
  const auto named = named_descriptor(path);
  if (named && named->rest.empty()) {
    const std::string link = of_thread(caller, "fd/" + std::to_string(named->number));
    const UniqueFd file(::open(link.c_str(), O_PATH | O_CLOEXEC));
    if (const Granted* const granted = file.valid() ? granted_as(file.get()) : nullptr)
      return copy_of(*granted);
  } else if (const auto whole = CallerPaths::absolute(caller, AT_FDCWD, path)) {
    if (const Granted* const granted = granted_at(lexically_normal(*whole)))
      return copy_of(*granted);
  }
  return paths_.by_path(caller, static_cast<std::uint64_t>(AT_FDCWD), path, 0);
}

CallerPaths::Found UnixSockets::copy_of(const Granted& granted) {
  UniqueFd file(::fcntl(granted.file.get(), F_DUPFD_CLOEXEC, 3));
  const int error = file.valid() ? 0 : EMFILE;
  return {.file = std::move(file), .error = error};
}

const UnixSockets::Granted* UnixSockets::granted_at(const std::string& path) const {
  const auto found = std::ranges::find_if(granted_, [&](const Granted& each) {
    return std::ranges::find(each.paths, path) != each.paths.end();
  });
  return found == granted_.end() ? nullptr : &*found;
}

const UnixSockets::Granted* UnixSockets::granted_as(int file) const {
  const auto identity = held::identity_of(file);
  const auto found = std::ranges::find_if(granted_, [&](const Granted& each) {
    return identity && held::identity_of(each.file.get()) == identity;
  });
  return found == granted_.end() ? nullptr : &*found;
}

/// The errno. A socket that passes credentials would be given an abstract name, unix(7), and could
/// listen there where it can't be connected.
int UnixSockets::connect_copy(Inode inode, int target) {
  constexpr int kPassPidfd = 76;  // SO_PASSPIDFD, Linux 6.5
  const int socket = copies_.find(inode);
  if (socket < 0) return EISCONN;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(own_link(target), address.sun_path);
  int error = 0;
  {
    const WithoutOption credentials(socket, SO_PASSCRED);
    const WithoutOption descriptor(socket, kPassPidfd);
    const WithoutWaiting now(socket);
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      error = errno;
  }
  if (error == 0) copies_.drop(inode);
  return error;
}

void UnixSockets::try_later() {
  if (pending_.empty() || retry_ != EventLoop::kNoTimer || loop_ == nullptr) return;
  retry_ = loop_->after(kRetryAfter, [this] {
    retry_ = EventLoop::kNoTimer;
    try_pending();
    try_later();
  });
}

/// A signal that the program handles doesn't interrupt it meanwhile: it waits killable.
void UnixSockets::try_pending() {
  for (std::size_t tries = std::min<std::size_t>(pending_.size(), kTries); tries > 0; --tries) {
    Pending first = std::move(pending_.front());
    pending_.pop_front();
    if (!first.caller.still_waits()) continue;
    int error = EACCES;
    {
      const ActingAs program(ids_);
      if (program.is()) error = connect_copy(first.inode, first.target.get());
    }
    const bool is_over = first.until != 0 && sys::now_microseconds() >= first.until;
    if (error == EAGAIN && !is_over)
      pending_.push_back(std::move(first));
    else
      first.caller.finish(error);
  }
}

/// Landlock refuses what lies elsewhere. That the path begins with a place keeps the worker from
/// directories of the machine that might not answer.
std::optional<int> UnixSockets::bind(const NotedCall& call, const CallerMemory& caller) {
  const Copied copy = copied(caller, call.arguments[0], EINVAL);
  if (copy.error != 0) return copy.error;
  Address address = address_of(call, caller);
  if (address.error != 0) return address.error;
  if (address.path.empty()) return EPERM;  // abstract, or one of the kernel's choice
  if (named_descriptor(address.path)) return EACCES;
  const auto whole =
      CallerPaths::absolute(caller, static_cast<std::uint64_t>(AT_FDCWD), address.path);
  if (!whole || !paths_.is_below(*whole)) return EACCES;
  const mode_t umask = umask_of(caller);
  UniqueFd directory(::open(of_thread(caller, "cwd").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  UniqueFd socket(::fcntl(copies_.find(copy.inode), F_DUPFD_CLOEXEC, 3));
  if (!caller.still_waits() || !directory.valid() || !socket.valid()) return EACCES;
  binder_.add({.socket = std::move(socket),
               .directory = std::move(directory),
               .path = std::move(address.path),
               .umask = umask,
               .done = [this, caller, inode = copy.inode](int error) {
                 if (error == 0) copies_.drop(inode);
                 caller.finish(error);
               }});
  return std::nullopt;
}

}  // namespace sbx::supervise

#include "supervise/unix_sockets.hpp"

#include <fcntl.h>
#include <sys/socket.h>
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

#include "base/sys.hpp"

namespace sbx::supervise {
namespace {

using namespace std::chrono_literals;

constexpr auto kPathAt = offsetof(sockaddr_un, sun_path);
/// Of those that wait, so many are tried at a time, and then the loop goes on for so long.
constexpr int kTries = 16;
constexpr auto kRetryAfter = 5ms;

bool is_served(std::uint64_t family, std::uint64_t type) {
  const int kind = static_cast<int>(type) & 0xf;
  return static_cast<int>(family) == AF_UNIX && (kind == SOCK_STREAM || kind == SOCK_SEQPACKET);
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

}  // namespace

UnixSockets::UnixSockets(Options options, UnixConnector connector)
    : connector_(std::move(connector)),
      granted_(std::move(options.granted)),
      copies_(options.keeper),
      ids_(std::move(options.ids)) {}

Result<std::unique_ptr<UnixSockets>> UnixSockets::make(Options options) {
  CallerPaths paths = SBX_TRY(CallerPaths::make(options.places));
  SocketBinder binder = SBX_TRY(SocketBinder::make(paths.directories(), options.ids));
  UnixConnector connector = SBX_TRY(UnixConnector::make());
  std::unique_ptr<UnixSockets> sockets(new UnixSockets(std::move(options), std::move(connector)));
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
  bindings_.clear();
  makings_.clear();
  for (EventLoop::TimerId* const timer : {&retry_, &rest_, &turn_})
    if (loop_ != nullptr) loop_->cancel(std::exchange(*timer, EventLoop::kNoTimer));
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
  bind_next();
}

std::optional<int> UnixSockets::make_socket(const NotedCall& call, const CallerMemory& caller) {
  const auto& a = call.arguments;
  if (!is_served(a[0], a[1])) return EAFNOSUPPORT;
  if (copies_.must_rest()) {
    makings_.push_back({call, caller});
    make_later();
    return std::nullopt;
  }
  if (!copies_.has_room()) return EMFILE;
  const int type = static_cast<int>(a[1]);
  UniqueFd made(::socket(AF_UNIX, type | SOCK_CLOEXEC, static_cast<int>(a[2])));
  if (!made.valid()) return errno;
  const int error = caller.give(made.get(), (type & SOCK_CLOEXEC) != 0);
  if (error != 0) return error;
  copies_.add(std::move(made));
  return std::nullopt;
}

void UnixSockets::make_later() {
  if (makings_.empty() || rest_ != EventLoop::kNoTimer || loop_ == nullptr) return;
  rest_ = loop_->at(copies_.rests_until(), [this] {
    rest_ = EventLoop::kNoTimer;
    for (std::size_t left = makings_.size(); left > 0 && !copies_.must_rest(); --left) {
      const Making next = makings_.front();
      makings_.pop_front();
      if (next.caller.still_waits()) answer(next.call, next.caller);
    }
    make_later();
  });
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
  const bool waits = UnixConnector::waits(socket);
  const int error = connect_copy(copy.inode, found.file.get());
  if (error != EAGAIN || !waits || pending_.size() >= copies_.most()) return error;
  pending_.push_back({caller, copy.inode, std::move(found.file), UnixConnector::gives_up(socket)});
  try_later();
  return std::nullopt;
}

CallerPaths::Found UnixSockets::target(const CallerMemory& caller, const std::string& path) const {
  CallerPaths::Found granted = granted_.find(caller, path);
  if (granted.file.valid() || granted.error != 0) return granted;
  return paths_.by_path(caller, static_cast<std::uint64_t>(AT_FDCWD), path, 0);
}

/// The errno.
int UnixSockets::connect_copy(Inode inode, int target) {
  const int socket = copies_.find(inode);
  if (socket < 0) return EISCONN;  // another thread was faster
  const int error = connector_.connect(socket, target);
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
  bindings_.push_back({caller, copy.inode, std::move(address.path)});
  return std::nullopt;
}

/// False: bind_next() comes again when it may.
bool UnixSockets::may_bind() {
  if (bind_pace_.take(sys::now_microseconds())) return true;
  if (turn_ == EventLoop::kNoTimer && loop_ != nullptr)
    turn_ = loop_->at(bind_pace_.next(), [this] {
      turn_ = EventLoop::kNoTimer;
      bind_next();
    });
  return false;
}

void UnixSockets::bind_next() {
  while (!binder_.is_busy() && !bindings_.empty() && may_bind()) {
    const Binding next = std::move(bindings_.front());
    bindings_.pop_front();
    if (auto work = prepare(next))
      binder_.start(std::move(*work));
    else
      next.caller.finish(EACCES);
  }
}

std::optional<SocketBinder::Work> UnixSockets::prepare(const Binding& binding) {
  const CallerMemory& caller = binding.caller;
  const int copy = copies_.find(binding.inode);
  const ActingAs program(ids_);
  if (!program.is() || copy < 0) return std::nullopt;
  SocketBinder::Work work{.socket = UniqueFd(::fcntl(copy, F_DUPFD_CLOEXEC, 3)),
                          .directory = UniqueFd(::open(of_thread(caller, "cwd").c_str(),
                                                       O_PATH | O_DIRECTORY | O_CLOEXEC)),
                          .path = binding.path,
                          .umask = umask_of(caller),
                          .done = [this, caller, inode = binding.inode](int error) {
                            if (error == 0) copies_.drop(inode);
                            caller.finish(error);
                            bind_next();
                          }};
  if (!caller.still_waits() || !work.directory.valid() || !work.socket.valid()) return std::nullopt;
  return work;
}

}  // namespace sbx::supervise

#include "supervise/unix_connector.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/sys.hpp"
#include "supervise/caller_paths.hpp"

namespace sbx::supervise {
namespace {

/// The program has the same socket: where it sets the flag at this moment, that is lost.
/// FIONBIO changes this flag and no other.
class WithoutWaiting {
 public:
  explicit WithoutWaiting(int socket) : socket_(socket), waits_(UnixConnector::waits(socket)) {
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

/// That it is called is all: connect(2) returns.
void interrupt(int) {}

}  // namespace

Result<UnixConnector> UnixConnector::make() {
  UnixConnector connector;
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGURG;
  if (::timer_create(CLOCK_MONOTONIC, &event, &connector.timer_) != 0) {
    auto error =
        fail_errno(ErrorKind::internal, "no-signalfd", "cannot have a timer with a signal");
    if (errno == EAGAIN)  // RLIMIT_SIGPENDING
      error.error().hint = "too many signals wait for this user, or none may: ulimit -i";
    return error;
  }
  struct sigaction action{};
  action.sa_handler = interrupt;  // without SA_RESTART
  ::sigaction(SIGURG, &action, &connector.before_);
  sigset_t urgent;
  sigemptyset(&urgent);
  sigaddset(&urgent, SIGURG);
  ::pthread_sigmask(SIG_UNBLOCK, &urgent, &connector.mask_before_);
  connector.active_ = true;
  return connector;
}

UnixConnector::UnixConnector(UnixConnector&& other) noexcept
    : active_(std::exchange(other.active_, false)),
      timer_(other.timer_),
      before_(other.before_),
      mask_before_(other.mask_before_) {}

UnixConnector::~UnixConnector() {
  if (!active_) return;
  ::timer_delete(timer_);
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  ::sigaction(SIGURG, &before_, nullptr);
}

/// And again after each such time: the signal may come before the call waits. 0: no more.
void UnixConnector::interrupt_after(long nanoseconds) const {
  const itimerspec times{.it_interval = {.tv_sec = 0, .tv_nsec = nanoseconds},
                         .it_value = {.tv_sec = 0, .tv_nsec = nanoseconds}};
  SBX_ASSERT(::timer_settime(timer_, 0, &times, nullptr) == 0);
}

int UnixConnector::connect(int socket, int target) const {
  constexpr long kLongest = 500'000;  // nanoseconds
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(own_link(target), address.sun_path);
  const WithoutWaiting now(socket);
  interrupt_after(kLongest);
  const int answer = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = answer == 0 ? 0 : errno;
  interrupt_after(0);
  return error == EINTR ? EAGAIN : error;
}

bool UnixConnector::waits(int socket) {
  return (::fcntl(socket, F_GETFL) & O_NONBLOCK) == 0;
}

std::uint64_t UnixConnector::gives_up(int socket) {
  timeval most{};
  socklen_t size = sizeof most;
  if (::getsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &most, &size) != 0) return 0;
  const auto longest = static_cast<std::uint64_t>(most.tv_sec) * 1'000'000 +
                       static_cast<std::uint64_t>(most.tv_usec);
  return longest == 0 ? 0 : sys::now_microseconds() + longest;
}

}  // namespace sbx::supervise

#include "supervise/meters/caller_memory.hpp"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "base/process.hpp"
#include "base/sys.hpp"
#include "base/unique_fd.hpp"

namespace sbx::supervise {

bool CallerMemory::still_waits() const {
  std::uint64_t id = id_;
  return ::ioctl(listener_, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/// Copies as much as is readable.
std::size_t CallerMemory::copy(std::uint64_t address, std::span<std::byte> into) const {
  if (thread_ == 0) return 0;
  const iovec local{into.data(), into.size()};
  // process_vm_readv(2) takes the other process's address as a pointer.
  const iovec remote{reinterpret_cast<void*>(address),
                     into.size()};  // NOLINT(performance-no-int-to-ptr)
  const ssize_t got = ::process_vm_readv(static_cast<pid_t>(thread_), &local, 1, &remote, 1, 0);
  if (got >= 0) return static_cast<std::size_t>(got);
  if (errno != EPERM) return 0;
  // That call asks for the real uid; this file goes by the fsuid of the one who opens it, with
  // which root without CAP_SYS_PTRACE can look (LookingAs, ActingAs). ptrace(2), "access mode".
  const std::string path = "/proc/" + std::to_string(thread_) + "/mem";
  const UniqueFd memory(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!memory.valid()) return 0;
  const ssize_t read = ::pread(memory.get(), into.data(), into.size(), static_cast<off_t>(address));
  return read < 0 ? 0 : static_cast<std::size_t>(read);
}

void CallerMemory::finish(int error) const {
  // A newer kernel's structure may be longer than that of our headers.
  alignas(seccomp_notif_resp) std::array<std::byte, 512> room{};
  auto* const response = reinterpret_cast<seccomp_notif_resp*>(room.data());
  response->id = id_;
  response->error = -error;
  (void)::ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, response);
}

int CallerMemory::give(int fd, bool close_on_exec) const {
  seccomp_notif_addfd gift{};
  gift.id = id_;
  gift.flags = SECCOMP_ADDFD_FLAG_SEND;  // Linux 5.14
  gift.srcfd = static_cast<std::uint32_t>(fd);
  gift.newfd_flags = close_on_exec ? O_CLOEXEC : 0;
  int answer = 0;
  do answer = ::ioctl(listener_, SECCOMP_IOCTL_NOTIF_ADDFD, &gift);
  while (answer < 0 && errno == EINTR);
  return answer < 0 && errno != ENOENT ? errno : 0;
}

bool CallerMemory::read(std::uint64_t address, std::span<std::byte> into) const {
  return copy(address, into) == into.size() && still_waits();
}

std::optional<std::string> CallerMemory::text(std::uint64_t address, std::size_t limit) const {
  const std::uint64_t page = sys::page_size();
  std::string result;
  std::array<std::byte, 256> piece;
  while (result.size() < limit) {
    // Never across the end of a page: the next one may be unmapped.
    const std::uint64_t in_page = page - address % page;
    const std::size_t wanted =
        std::min({piece.size(), limit - result.size(), static_cast<std::size_t>(in_page)});
    const std::size_t got = copy(address, std::span(piece).first(wanted));
    if (got == 0) return std::nullopt;
    const auto* const begin = reinterpret_cast<const char*>(piece.data());
    const auto* const end = std::find(begin, begin + got, '\0');
    result.append(begin, end);
    if (end != begin + got) break;
    address += got;
  }
  if (!still_waits()) return std::nullopt;
  return result;
}

namespace {

/// The first thread of its process; 0 if unknown.
pid_t first_thread(std::uint32_t thread) {
  const auto status = sys::read_file("/proc/" + std::to_string(thread) + "/status", 4096);
  constexpr std::string_view kKey = "\nTgid:\t";
  const std::size_t at = status ? status->find(kKey) : std::string::npos;
  pid_t first = 0;
  if (at != std::string::npos)
    std::from_chars(status->data() + at + kKey.size(), status->data() + status->size(), first);
  return first;
}

/// Descriptor `fd` of a thread. Before Linux 6.9 only the first thread of a process has a pidfd;
/// the other threads normally share its descriptors, so the result is checked to be the same file.
UniqueFd descriptor_of(std::uint32_t thread, int fd) {
  constexpr unsigned kThread = O_EXCL;  // PIDFD_THREAD, Linux 6.9
  UniqueFd caller = process::open(static_cast<pid_t>(thread), kThread);
  if (caller.valid()) return process::take_descriptor(caller.get(), fd);
  const pid_t first = first_thread(thread);
  if (first <= 0) return {};
  caller = process::open(first);
  if (!caller.valid()) return {};
  UniqueFd file = process::take_descriptor(caller.get(), fd);
  struct stat held{};
  struct stat named{};
  const std::string place = "/proc/" + std::to_string(thread) + "/fd/" + std::to_string(fd);
  if (!file.valid() || ::fstat(file.get(), &held) != 0 || ::stat(place.c_str(), &named) != 0 ||
      held.st_dev != named.st_dev || held.st_ino != named.st_ino)
    return {};
  return file;
}

}  // namespace

int CallerMemory::socket_protocol(int fd) const {
  if (thread_ == 0) return 0;
  const UniqueFd socket = descriptor_of(thread_, fd);
  int protocol = 0;
  socklen_t size = sizeof protocol;
  if (!socket.valid() ||
      ::getsockopt(socket.get(), SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0 || !still_waits())
    return 0;
  return protocol;
}

std::string CallerMemory::process_name() const {
  return supervise::process_name(thread_);
}

std::string process_name(std::uint32_t thread) {
  if (thread == 0) return {};  // not visible in this PID namespace
  auto name = sys::read_file("/proc/" + std::to_string(thread) + "/comm", 64);
  if (!name) return {};  // the thread has ended
  if (!name->empty() && name->back() == '\n') name->pop_back();
  return std::move(*name);
}

}  // namespace sbx::supervise

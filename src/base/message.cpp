#include "base/message.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace sbx::sys {

Message receive_message(int socket, std::span<std::byte> body) {
  constexpr std::size_t kMostFds = 253;  // SCM_MAX_FD of the kernel
  alignas(cmsghdr) char space[CMSG_SPACE(kMostFds * sizeof(int))];
  iovec into{body.data(), body.size()};
  msghdr header{};
  header.msg_iov = &into;
  header.msg_iovlen = 1;
  header.msg_control = space;
  header.msg_controllen = sizeof space;
  // A peer that closes before it has read all is told once as a reset, unix(7), ahead of what it
  // sent: that can still be received.
  ssize_t got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  while (got < 0 && (errno == EINTR || errno == ECONNRESET))
    got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  Message message;
  if (got < 0) return message;
  message.length = static_cast<std::size_t>(got);
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      message.fds.emplace_back(fd);
    }
  }
  return message;
}

bool send_message(int socket, std::span<const std::byte> body, std::span<const int> descriptors) {
  if (descriptors.size() > kMostDescriptors) {
    errno = EINVAL;
    return false;
  }
  iovec vector{.iov_base = const_cast<std::byte*>(body.data()), .iov_len = body.size()};
  alignas(cmsghdr) char space[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = space;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent = 0;
  do sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(body.size());
}

std::size_t unread_bytes(int socket) {
  int unread = 0;
  return ::ioctl(socket, SIOCOUTQ, &unread) == 0 ? static_cast<std::size_t>(unread) : 0;
}

Error descriptors_in_flight() {
  return {.kind = ErrorKind::host,
          .code = "descriptors-in-flight",
          .message = "too many open files of this user are on their way through unix sockets",
          .errno_value = ETOOMANYREFS,
          .hint =
              "a program has sent descriptors that nobody received: end it, or raise the hard "
              "limit of open files (ulimit -Hn)"};
}

Error send_failure(Error gone) {
  const int error = errno;
  if (error == EPIPE || error == ECONNRESET || error == ENOTCONN) return gone;
  if (error == ETOOMANYREFS) return descriptors_in_flight();
  return {.kind = ErrorKind::host,
          .code = "cannot-send",
          .message = "cannot send a message to another process of sbx",
          .errno_value = error};
}

}  // namespace sbx::sys

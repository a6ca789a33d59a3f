#include "base/message.hpp"

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
  ssize_t got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR) got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
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

}  // namespace sbx::sys

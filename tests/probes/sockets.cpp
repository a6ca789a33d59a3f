// Questions about sockets: which can be created, and which peers can be reached.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "probe.hpp"

namespace probe {
namespace {

int make_socket(Arguments arguments) {
  return answer(socket(static_cast<int>(number(arguments[0])),
                       static_cast<int>(number(arguments[1])),
                       static_cast<int>(number(arguments[2]))));
}

int make_pair(Arguments) {
  int ends[2];
  return answer(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
}

int connect_unix(const char* name, bool abstract) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd < 0) return refused();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(name);
  if (length >= sizeof address.sun_path) return unasked("name too long");
  std::memcpy(address.sun_path + (abstract ? 1 : 0), name, length);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length + 1);
  return answer(connect(fd, reinterpret_cast<const sockaddr*>(&address), size));
}

int connect_abstract(Arguments arguments) {
  return connect_unix(arguments[0], true);
}
int connect_path(Arguments arguments) {
  return connect_unix(arguments[0], false);
}

int connect_tcp(Arguments arguments) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return refused();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(number(arguments[1])));
  if (inet_pton(AF_INET, arguments[0], &address.sin_addr) != 1) return unasked("address");
  return answer(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address));
}

int send_datagram(Arguments arguments) {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return refused();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(number(arguments[1])));
  if (inet_pton(AF_INET, arguments[0], &address.sin_addr) != 1) return unasked("address");
  return answer(sendto(fd, "x", 1, 0, reinterpret_cast<const sockaddr*>(&address), sizeof address));
}

/// A server and a client on the local loopback interface.
int talk_to_itself(Arguments) {
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  if (server < 0) return refused();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(server, reinterpret_cast<const sockaddr*>(&address), size) != 0) return refused();
  if (listen(server, 1) != 0) return refused();
  if (getsockname(server, reinterpret_cast<sockaddr*>(&address), &size) != 0) return refused();
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  return answer(connect(client, reinterpret_cast<const sockaddr*>(&address), size));
}

constexpr Probe kProbes[] = {
    {"socket", "FAMILY TYPE PROTOCOL", 3, make_socket},
    {"socketpair", "", 0, make_pair},
    {"connect-abstract", "NAME", 1, connect_abstract},
    {"connect-path", "PATH", 1, connect_path},
    {"connect-tcp", "ADDRESS PORT", 2, connect_tcp},
    {"send-datagram", "ADDRESS PORT", 2, send_datagram},
    {"talk-to-itself", "", 0, talk_to_itself},
};

}  // namespace
const Table kSocketProbes{kProbes, sizeof kProbes / sizeof kProbes[0]};
}  // namespace probe

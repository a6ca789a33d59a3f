#include "run/connect_note.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace sbx::run {
namespace {

/// Reads the address passed to connect(2). The program may change it before the kernel reads it, so
/// it is only used to report or expect a connection and decides nothing.
void look_at_connect(network::Offline* offline, const Expect& expect,
                     const supervise::NotedCall& call, const supervise::CallerMemory& memory) {
  std::array<std::byte, sizeof(sockaddr_storage)> room;
  // The kernel reads it as an int.
  const auto length = static_cast<std::int32_t>(call.arguments[2]);
  const auto most = static_cast<std::int32_t>(room.size());
  const auto bytes = std::span(room).first(static_cast<std::size_t>(std::clamp(length, 0, most)));
  if (!memory.read(call.arguments[1], bytes)) return;
  if (offline != nullptr && network::asks_for_names(bytes))
    offline->asks(memory.thread(),
                  [thread = memory.thread()] { return supervise::process_name(thread); });
  if (const std::uint16_t port = network::own_port(bytes); offline != nullptr && port != 0)
    offline->connect_inside(port);
  auto destination = network::outside(bytes);
  if (!destination) return;
  if (offline == nullptr) return expect(destination->address, destination->port);
  switch (memory.socket_protocol(static_cast<int>(call.arguments[0]))) {
    case IPPROTO_TCP:
      destination->transport = policy::Transport::tcp;
      break;
    case IPPROTO_UDP:
      destination->transport = policy::Transport::udp;
      break;
    default:
      break;
  }
  offline->connect(*destination, [&] { return memory.process_name(); });
}

}  // namespace

supervise::Note connect_note(network::Offline* offline, Expect expect) {
  return {SYS_connect, [offline, expect = std::move(expect)](const auto& call, const auto& memory) {
            look_at_connect(offline, expect, call, memory);
          }};
}

}  // namespace sbx::run

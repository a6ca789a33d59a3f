#include "session/peer.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "base/process.hpp"
#include "base/sys.hpp"
#include "host/parse.hpp"

namespace sbx::session {

bool may_use(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  if (peer.uid == 0 || ::geteuid() == 0) return peer.uid == 0;
  if (peer.uid != ::geteuid() || peer.pid <= 0) return false;
  // Not by /proc/PID/status, which hidepid hides.
  const UniqueFd process = process::of_peer(connection);
  if (!process.valid()) return false;
  const auto facts = sys::read_file("/proc/self/fdinfo/" + std::to_string(process.get()), 65536);
  return facts && host::is_of_this_pid_namespace(*facts, peer.pid);
}

}  // namespace sbx::session

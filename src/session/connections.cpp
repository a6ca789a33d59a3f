#include "session/connections.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/sys.hpp"
#include "protocol/packet.hpp"
#include "session/peer.hpp"

namespace sbx::session {
namespace {

bool is_out_of_descriptors(int error) {
  return error == EMFILE || error == ENFILE;
}

}  // namespace

Status Connections::begin(UniqueFd socket) {
  socket_ = std::move(socket);
  spare_ = SBX_TRY(sys::open_at(AT_FDCWD, "/dev/null", O_RDONLY));
  return loop_.watch(socket_.get(), EPOLLIN, [this](std::uint32_t) { accept_all(); });
}

void Connections::accept_all() {
  constexpr int kAtOnce = 64;  // a flood of connections leaves time for the rest of the loop
  constexpr std::size_t kMostSilent = 128;
  for (int i = 0; i < kAtOnce; ++i) {
    UniqueFd client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client.valid() && is_out_of_descriptors(errno)) return turn_one_away();
    if (!client.valid()) return;
    if (!may_use(client.get())) continue;
    // sbx asks at once: who has been silent longest wants nothing, or has time to ask again.
    if (silent_.size() >= kMostSilent) drop_oldest();
    (void)await(std::move(client));
  }
}

bool Connections::await(UniqueFd client) {
  const int fd = client.get();
  if (!loop_.watch(fd, EPOLLIN, [this, fd](std::uint32_t) { read(fd); })) return false;
  silent_.push_back(std::move(client));
  return true;
}

bool Connections::await_follower(UniqueFd client) {
  const int fd = client.get();
  if (!await(std::move(client))) return false;
  following_.insert(fd);
  return true;
}

void Connections::drop_oldest() {
  loop_.forget(silent_.front().get());
  following_.erase(silent_.front().get());
  silent_.erase(silent_.begin());
}

/// One that can't be accepted would wake the loop again and again, and its client would wait for
/// good.
void Connections::turn_one_away() {
  if (!silent_.empty()) drop_oldest();
  spare_.reset();
  const UniqueFd turned_away(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  spare_ = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

void Connections::read(int fd) {
  loop_.forget(fd);
  const auto found = std::ranges::find(silent_, fd, &UniqueFd::get);
  if (found == silent_.end()) return;
  UniqueFd client = std::move(*found);
  silent_.erase(found);
  following_.erase(fd);
  auto packet = protocol::receive(client.get());
  // A client of another version learns why, instead of taking the session for gone.
  if (!packet) return (void)protocol::send(client.get(), packet.error());
  hooks_.used();
  auto request = protocol::request_from(std::move(packet->body));
  if (!request) return (void)protocol::send(client.get(), request.error());
  hooks_.request(std::move(*request),
                 {.connection = std::move(client), .fds = std::move(packet->fds)});
}

}  // namespace sbx::session

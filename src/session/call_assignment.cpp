#include "session/call_assignment.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "protocol/packet.hpp"
#include "session/worker_protocol.hpp"

namespace sbx::session {
namespace {

bool take_streams(std::vector<UniqueFd>& fds) {
  if (fds.size() < 3) return false;
  for (const int fd : kCallStreams) {
    UniqueFd& stream = fds[static_cast<std::size_t>(fd)];
    if (::dup2(stream.get(), fd) < 0) return false;
    stream.reset();
  }
  return true;
}

/// Waits until the session sends a call; what came late for the one before is left aside. False:
/// the session is gone.
bool await_call(int link, std::int32_t& descriptors) {
  for (;;) {
    Note note{};
    const ssize_t got = ::recv(link, &note, sizeof note, 0);
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
    if (got != sizeof note || note.what != Note::What::call) continue;
    descriptors = note.value;
    return true;
  }
}

/// While nobody waits for it.
void make_ahead(WorkerState& state) {
  state.ahead = {};
  state.group.reset();
  state.group = state.held.make_call_group();
  state.ahead = run::make_ahead(state.held, state.group.get());
}

}  // namespace

bool take_call(WorkerState& state) {
  make_ahead(state);
  std::int32_t descriptors = 0;
  if (!await_call(state.link.get(), descriptors)) return false;
  auto packet = protocol::receive(state.link.get());
  if (!packet) return false;
  auto assignment = read_fields<Assignment>(std::move(packet->body));
  state.fds = std::move(packet->fds);
  for (auto [bit, place] : {std::pair(CallDescriptors::kImage, &state.image),
                            std::pair(CallDescriptors::kClient, &state.client)}) {
    if ((descriptors & bit) == 0 || state.fds.empty()) continue;
    *place = std::move(state.fds.back());
    state.fds.pop_back();
  }
  // Where memory ran out, the kernel may have killed the init that waits.
  if (!state.ahead.init.lives()) make_ahead(state);
  if (!assignment || !take_streams(state.fds)) return false;  // no sbx would say that
  state.name.number = assignment->call;
  state.asked = std::move(assignment->request);
  state.request = {};
  state.request.id = std::move(state.asked.id);
  state.request.program = std::move(state.asked.program);
  state.request.overrides = std::move(state.asked.overrides);
  state.request.capture = state.asked.capture;
  return true;
}

void forget_call(WorkerState& state) {
  state.client.reset();
  state.mounts.reset();
  state.image.reset();
  state.fds.clear();
  state.ahead = {};
  state.group.reset();
}

}  // namespace sbx::session

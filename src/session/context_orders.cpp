#include "session/context_orders.hpp"

#include <sys/socket.h>

#include <variant>

#include "protocol/packet.hpp"

namespace sbx::session {

void ContextOrders::take() {
  Note note{};
  if (::recv(link_, &note, sizeof note, 0) != sizeof note) return hooks_.closed();
  switch (note.what) {
    case Note::What::cell:
      return take_request();
    case Note::What::interrupt:
      return hooks_.interrupt();
    case Note::What::spend:
      return hooks_.spend(static_cast<Budget>(note.value));
    case Note::What::signal:
      return hooks_.signal(note.value);
    case Note::What::cancel:
      return hooks_.cancel(static_cast<EndCause>(note.value));
    case Note::What::end:
      return hooks_.end();
    case Note::What::claim:
      return hooks_.claim();
    case Note::What::began:
    case Note::What::ended:
    case Note::What::ready:
    case Note::What::answered:
    case Note::What::gone:
    case Note::What::call:
      return;
  }
}

void ContextOrders::take_cells() {
  for (;;) {
    Note note{};
    if (::recv(link_, &note, sizeof note, 0) != sizeof note) return;
    if (note.what == Note::What::cell) take_request();
  }
}

/// It follows its note.
void ContextOrders::take_request() {
  auto packet = protocol::receive(link_);
  if (!packet) return;  // the session sees that it was too late
  auto request = protocol::request_from(std::move(packet->body));
  if (!request) return hooks_.garbled();
  if (auto* const question = std::get_if<protocol::InspectRequest>(&*request))
    return hooks_.question(std::move(*question), std::move(packet->fds));
  auto* const asked = std::get_if<protocol::EvalRequest>(&*request);
  if (asked == nullptr) return hooks_.garbled();
  hooks_.cell(std::move(*asked), std::move(packet->fds));
}

}  // namespace sbx::session

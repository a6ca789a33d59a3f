#include "client/starter.hpp"

#include <sys/epoll.h>

#include <optional>
#include <utility>

#include "base/sys.hpp"
#include "base/tell.hpp"
#include "protocol/packet.hpp"
#include "record/words.hpp"
#include "session/start.hpp"

namespace sbx::client {
namespace {

struct StartOrder {
  std::string name;
  std::string keep_as;
};
SBX_FIELDS(StartOrder, name, keep_as)

int start_when_told(int socket, run::Request request, const Person& person) {
  for (;;) {
    auto packet = protocol::receive(socket);
    if (!packet) return 0;
    const auto order = read_fields<StartOrder>(std::move(packet->body));
    if (!order) return 0;
    request.bring_out.keep = order->keep_as;
    const session::StartAnswer answer =
        session::start(order->name, request, {}, [&](const policy::Findings& findings) {
          person.tell(record::findings_text(findings, {}));
        });
    if (answer.error) {
      (void)protocol::send(socket, *answer.error);
    } else if (answer.status != 0) {  // a signal has cancelled it
      return 0;
    } else {
      person.tell(note_lines(answer.facts.notes));
      (void)protocol::send(socket, answer.facts);
    }
  }
}

}  // namespace

Result<Starter> Starter::fork(const run::Request& request, const Person& person) {
  auto [own, other] = SBX_TRY(sys::make_packet_pair());
  process::Child child = SBX_TRY(process::fork([&]() -> int {
    process::keep_only({other.get(), request.parent});
    return start_when_told(other.get(), request, person);
  }));
  return Starter(std::move(own), std::move(child));
}

Status Starter::start(EventLoop& loop, const std::string& name, const std::string& keep_as,
                      Ended ended) {
  SBX_TRY(protocol::send(socket_.get(), StartOrder{.name = name, .keep_as = keep_as}));
  return loop.watch(socket_.get(), EPOLLIN, [this, &loop, ended](std::uint32_t) {
    auto packet = protocol::receive(socket_.get());
    loop.forget(socket_.get());
    if (!packet) return ended(fail(std::move(packet).error()));
    ended(protocol::answer_from<protocol::SessionFacts>(std::move(packet->body)));
  });
}

}  // namespace sbx::client

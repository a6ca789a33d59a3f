// The processes in which contexts live.

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include <variant>

#include "base/sys.hpp"
#include "session/context_worker.hpp"
#include "session/session.hpp"
#include "session/worker_fork.hpp"
#include "session/worker_protocol.hpp"

namespace sbx::session {

Result<Interpreters::Started> Session::start(const Context& context) {
  if (ending_.has_begun()) return fail(ends());
  SBX_TRY(check_cpu_is_left());
  Call& call = calls_.add();
  call.is_context = true;
  call.command = "context " + context.name + " (" + context.language + ")";
  call.since = ::time(nullptr);
  call.began_microseconds = sys::now_microseconds();
  resume();
  const auto begin = [&]() -> Status {
    call.worker = SBX_TRY(fork_worker({.held = *held_,
                                       .name = {directory_.name(), id_, call.number},
                                       .context = {.name = context.name,
                                                   .language = context.language,
                                                   .directory = context.directory,
                                                   .was_lost = context.life == Life::lost,
                                                   .lost_because = context.lost_because}},
                                      work_as_context));
    return watch(call);
  };
  if (const Status begun = begin(); !begun) {
    forget_unbegun(call);
    rest_between_calls();
    return fail(begun.error());
  }
  return Started{.call = call.number, .since = call.since};
}

namespace {

/// A worker that has no time takes nothing; the session must not wait for it.
bool takes_more(int link) {
  constexpr int kMostUnread = 64 << 10;  // bytes; a socket holds three times as much
  int unread = 0;
  return ::ioctl(link, TIOCOUTQ, &unread) != 0 || unread < kMostUnread;
}

}  // namespace

Interpreters::Passed Session::pass_on(std::uint64_t number, const protocol::Request& request,
                                      const Asker& client) {
  const Call* const call = calls_.find(number);
  if (call == nullptr) return Passed::ended;
  const int link = call->worker.link.get();
  if (!takes_more(link)) return Passed::full;
  const Note note{Note::What::cell, 0};
  std::vector<int> fds{client.connection.get()};
  for (const UniqueFd& each : client.fds) fds.push_back(each.get());
  if (::send(link, &note, sizeof note, MSG_NOSIGNAL) != sizeof note) return Passed::ended;
  const Status sent =
      std::visit([&](const auto& asked) { return protocol::send(link, asked, fds); }, request);
  return sent ? Passed::taken : Passed::ended;
}

void Session::tell(std::uint64_t number, Note::What what) {
  const Call* const call = calls_.find(number);
  const Note note{what, 0};
  if (call != nullptr)
    (void)::send(call->worker.link.get(), &note, sizeof note, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Session::handle_again(protocol::Request request, Asker client) {
  handle(std::move(request), std::move(client));
}

}  // namespace sbx::session

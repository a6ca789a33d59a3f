// The processes in which contexts live.

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <variant>

#include "base/sys.hpp"
#include "session/context_worker.hpp"
#include "session/drivers.hpp"
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
    const bool is_ahead = take_spare(call, context);
    spares_.fit(contexts_.living() + 1);
    if (is_ahead) return watch(call);
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

bool Session::take_spare(Call& call, const Context& context) {
  if (!context.directory.empty()) return false;
  auto spare = spares_.take(context.language);
  if (!spare) return false;
  const int link = spare->worker.link.get();
  const Note note{Note::What::claim, 0};
  const Claim claim{.call = call.number,
                    .context = context.name,
                    .was_lost = context.life == Life::lost,
                    .lost_because = context.lost_because};
  if (::send(link, &note, sizeof note, MSG_NOSIGNAL) != sizeof note ||
      !protocol::send(link, claim)) {
    workers_.dismiss(std::move(spare->worker));
    return false;
  }
  call.worker = std::move(spare->worker);
  call.init = spare->init;
  return true;
}

bool Session::rests() {
  const auto is_waited_for = [](const auto& each) {
    return each.second->runs() && !each.second->is_background && !each.second->is_context;
  };
  return !ending_.has_begun() && !reader_.valid() && !contexts_.is_busy() &&
         std::ranges::none_of(calls_.all(), is_waited_for);
}

/// Three quarters of what programs may use are theirs whatever was started ahead: a cell may take
/// them at once.
bool Session::has_room_for_spares() const {
  if (held_->policy().session.cpu_time.value.count() > 0) return false;
  const run::HeldSandbox::Use use = held_->use();
  const Budgets& budgets = held_->plan().budgets;
  const auto is_free = [](std::uint64_t used, std::uint64_t limit) {
    return limit == 0 || used <= limit / 4;
  };
  return is_free(use.memory_bytes, budgets.memory.count) &&
         is_free(use.processes, budgets.processes);
}

void Session::note_use_of(const Call& context) {
  const Context* const used = contexts_.of_call(context.number);
  const auto driver = used != nullptr ? find_driver(used->language) : fail(Error{});
  if (driver && (*driver)->waits) spares_.note_use(used->language);
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

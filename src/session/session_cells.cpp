// What the session's process does about contexts: it starts them, passes cells on to them, and
// hears of their ends.

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include <concepts>
#include <span>

#include "base/message.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "session/context_worker.hpp"
#include "session/drivers.hpp"
#include "session/session.hpp"
#include "session/worker_protocol.hpp"

namespace sbx::session {
namespace {

/// Cells of one context that run or wait for their turn.
constexpr std::size_t kMostOpen = 16;

Error too_many_contexts(std::uint64_t most, const Origin& origin, const std::string& session) {
  return {.kind = ErrorKind::usage,
          .code = "too-many-contexts",
          .message = std::to_string(most) + " contexts live, and session.contexts allows no more",
          .origin = origin,
          .hint = "end one: sbx session contexts " + session + " lists them, sbx session restart " +
                  session + " CONTEXT ends one"};
}

Error other_language(const Context& context, const std::string& wanted) {
  return {.kind = ErrorKind::usage,
          .code = "other-language",
          .message = "the context \"" + context.name + "\" is one of " + context.language +
                     ", not of " + wanted,
          .hint = "name another one: --context NAME"};
}

Error too_busy(const Context& context) {
  return {.kind = ErrorKind::usage,
          .code = "context-busy",
          .message = std::to_string(context.open) + " cells of the context \"" + context.name +
                     "\" run or wait already",
          .hint = "wait, use another context, or interrupt the one that runs"};
}

Error no_context(const std::string& name, const std::string& session) {
  return {.kind = ErrorKind::usage,
          .code = "no-such-context",
          .message = "the session has no context \"" + printable(name) + "\"",
          .hint = "sbx session contexts " + session + " lists them"};
}

}  // namespace

void Session::answer(protocol::EvalRequest request, Asker client) {
  ask_context(std::move(request), std::move(client));
}

void Session::answer(protocol::InspectRequest request, Asker client) {
  ask_context(std::move(request), std::move(client));
}

void Session::answer(protocol::OpenContextRequest request, Asker client) {
  const auto driver = find_driver(request.language.empty() ? "python" : request.language);
  if (!driver) return refuse(client.connection.get(), driver.error());
  const std::string language((*driver)->language);
  Context& opened = contexts_.add(contexts_.new_name(language), language);
  opened.is_opened = true;
  opened.directory = std::move(request.directory);
  // What asks for the context alone is answered once its interpreter is there, or can't be.
  ask_context(protocol::InspectRequest{.language = language, .context = opened.name},
              std::move(client));
}

template <class Asked>
void Session::ask_context(Asked request, Asker client) {
  const auto context = context_for(request.context, request.language);
  const int connection = client.connection.get();
  if (!context) return refuse(connection, context.error());
  if ((*context)->closes)
    return refuse(connection, no_context((*context)->name, directory_.name()));
  if ((*context)->open >= kMostOpen) return refuse(connection, too_busy(**context));
  if ((*context)->ends)
    return (void)(*context)->pending_cells.emplace_back(std::move(request), std::move(client));
  if ((*context)->call == 0) {
    resume();
    if (const Status begun = start_context(**context); !begun) {
      refuse(connection, begun.error());
      // One that was opened is remembered once it has lived.
      if (!(*context)->was_lost && (*context)->since == 0) contexts_.forget((*context)->name);
      return rest_between_calls();
    }
  }
  pass_on(**context, std::move(request), std::move(client));
}

/// The context that is meant, which may not live yet.
Result<Context*> Session::context_for(const std::string& wanted, std::string language) {
  if (Context* const named = contexts_.find(wanted); language.empty() && named != nullptr)
    return named;
  const Driver* const driver = SBX_TRY(find_driver(language.empty() ? "python" : language));
  language = driver->language;
  const std::string name = SBX_TRY(Contexts::name_of(wanted, language));
  Context* const known = contexts_.find(name);
  if (known == nullptr) return &contexts_.add(name, language);
  if (known->language != language) return fail(other_language(*known, language));
  return known;
}

Status Session::start_context(Context& context) {
  const auto& most = held_->policy().session.contexts;
  if (contexts_.living() >= most.value)
    return fail(too_many_contexts(most.value, most.origin, directory_.name()));
  SBX_TRY(check_cpu_is_left());
  Call& call = calls_.add(0);
  call.is_context = true;
  call.command = "context " + context.name + " (" + context.language + ")";
  call.since = ::time(nullptr);
  call.began_microseconds = sys::now_microseconds();
  auto worker = fork_worker({.held = *held_,
                             .name = {directory_.name(), id_, call.number},
                             .context = {.name = context.name,
                                         .language = context.language,
                                         .directory = context.directory,
                                         .was_lost = context.was_lost,
                                         .lost_because = context.lost_because}},
                            work_as_context);
  if (!worker) {
    calls_.all().erase(call.number);
    return fail(worker.error());
  }
  call.worker = std::move(*worker);
  context.call = call.number;
  context.since = call.since;
  context.is_ready = context.was_lost = false;
  return watch(call);
}

/// A worker that has no time takes nothing; the session must not wait for it.
bool Session::takes_more(const Call& call) {
  constexpr int kMostUnread = 64 << 10;  // bytes; a socket holds three times as much
  int unread = 0;
  return ::ioctl(call.worker.link.get(), TIOCOUTQ, &unread) != 0 || unread < kMostUnread;
}

template <class Asked>
void Session::pass_on(Context& context, Asked request, Asker client) {
  Call* const call = calls_.find(context.call);
  if (call == nullptr) return;
  if (!takes_more(*call)) return refuse(client.connection.get(), too_busy(context));
  const Note note{Note::What::cell, 0};
  std::vector<int> fds{client.connection.get()};
  for (const UniqueFd& each : client.fds) fds.push_back(each.get());
  const int link = call->worker.link.get();
  if (::send(link, &note, sizeof note, MSG_NOSIGNAL) != sizeof note ||
      !protocol::send(link, request, fds)) {
    // It is just ending: the cell is for the next one.
    context.pending_cells.emplace_back(std::move(request), std::move(client));
    return;
  }
  ++context.open;
  if (std::same_as<Asked, protocol::EvalRequest>) ++context.cells;
}

void Session::hear_of_context(const Call& call, Note::What what) {
  Context* const context = contexts_.of_call(call.number);
  if (context == nullptr) return;
  if (what == Note::What::ready) context->is_ready = context->has_lived = true;
  if (what != Note::What::answered || context->open == 0) return;
  --context->open;
  note_use();
}

void Session::context_ended(const Call& call) {
  Context* const found = contexts_.of_call(call.number);
  if (found == nullptr) return;
  const std::string name = found->name;
  auto pending_cells = std::exchange(found->pending_cells, {});
  for (const UniqueFd& each : found->enders)
    (void)protocol::send(each.get(), protocol::DoneAnswer{});
  found->enders.clear();
  found->call = 0;
  found->open = 0;
  found->was_lost = found->is_ready && !found->ends;
  found->lost_because = lossy_utf8(call.record);
  const bool closes = found->closes;
  // Its next one may not begin: a program took the directory away. Under a name that is forgotten a
  // cell would run in another language and directory.
  const bool stays = found->is_opened && found->has_lived && !closes;
  if (stays && found->ends)
    restart_opened(*found);
  else if (!stays && !found->was_lost)
    contexts_.forget(name);
  contexts_.forget_old();
  for (auto& [request, client] : pending_cells)
    closes ? refuse(client.connection.get(), no_context(name, directory_.name()))
           : handle(std::move(request), std::move(client));
}

/// The one of this name; null: the client has been told that there is none.
Context* Session::named_context(const std::string& name, int connection) {
  Context* const found = contexts_.find(name);
  if (found == nullptr) refuse(connection, no_context(name, directory_.name()));
  return found;
}

void Session::tell_context(const Context& context, Note::What what) {
  const Call* const call = calls_.find(context.call);
  const Note note{what, 0};
  if (call != nullptr)
    (void)::send(call->worker.link.get(), &note, sizeof note, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Session::answer(const protocol::ContextsRequest& /*request*/, UniqueFd connection) {
  (void)protocol::send(connection.get(), protocol::ContextsAnswer{.contexts = contexts_.list()});
}

void Session::answer(const protocol::InterruptRequest& request, UniqueFd connection) {
  const Context* const context = named_context(request.context, connection.get());
  if (context == nullptr) return;
  if (context->open > 0) tell_context(*context, Note::What::interrupt);
  (void)protocol::send(connection.get(),
                       protocol::InterruptAnswer{.interrupted = context->open > 0});
}

/// Ends it; the next cell starts another one. Answers when it has ended.
void Session::answer(const protocol::RestartRequest& request, UniqueFd connection) {
  Context* const context = named_context(request.context, connection.get());
  if (context == nullptr) return;
  if (context->call != 0) return end_context(*context, std::move(connection));
  context->is_opened ? restart_opened(*context) : contexts_.forget(context->name);
  (void)protocol::send(connection.get(), protocol::DoneAnswer{});
}

void Session::answer(const protocol::CloseContextRequest& request, UniqueFd connection) {
  Context* const context = named_context(request.context, connection.get());
  if (context == nullptr) return;
  context->closes = true;
  if (context->call != 0) return end_context(*context, std::move(connection));
  contexts_.forget(context->name);
  (void)protocol::send(connection.get(), protocol::DoneAnswer{});
}

void Session::end_context(Context& context, UniqueFd connection) {
  context.ends = true;
  context.enders.push_back(std::move(connection));
  tell_context(context, Note::What::end);
}

/// Whoever opened it expects it to be there. Where it can't be started now, its next cell tries.
void Session::restart_opened(Context& context) {
  context.ends = context.was_lost = false;
  if (stops_) return;
  resume();
  (void)start_context(context);
}

}  // namespace sbx::session

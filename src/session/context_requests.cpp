#include "session/context_requests.hpp"

#include <concepts>
#include <vector>

#include "base/text.hpp"
#include "protocol/packet.hpp"
#include "session/drivers.hpp"

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

void ContextRequests::answer(protocol::EvalRequest request, Asker client) {
  ask(std::move(request), std::move(client));
}

void ContextRequests::answer(protocol::InspectRequest request, Asker client) {
  ask(std::move(request), std::move(client));
}

void ContextRequests::answer(protocol::OpenContextRequest request, Asker client) {
  const auto driver = find_driver(request.language.empty() ? "python" : request.language);
  if (!driver) return (void)protocol::send(client.connection.get(), driver.error());
  const std::string language((*driver)->language);
  Context& opened = contexts_.add(contexts_.new_name(language), language);
  opened.is_opened = true;
  opened.directory = std::move(request.directory);
  // What asks for the context alone is answered once its interpreter is there, or can't be.
  ask(protocol::InspectRequest{.language = language, .context = opened.name}, std::move(client));
}

template <class Asked>
void ContextRequests::ask(Asked request, Asker client) {
  const auto refuse = [&](const Error& error) {
    (void)protocol::send(client.connection.get(), error);
  };
  const auto found = context_for(request.context, request.language);
  if (!found) return refuse(found.error());
  Context& context = **found;
  if (context.closes) return refuse(no_context(context.name, session_));
  if (context.open >= kMostOpen) return refuse(too_busy(context));
  if (context.life == Life::ending)
    return (void)context.pending_cells.emplace_back(std::move(request), std::move(client));
  if (!context.lives()) {
    if (const Status begun = start(context); !begun) {
      refuse(begun.error());
      // One that was opened is remembered once it has lived.
      if (context.life != Life::lost && context.since == 0) contexts_.forget(context.name);
      return;
    }
  }
  pass_on(context, std::move(request), std::move(client));
}

/// The context that is meant, which may not live yet.
Result<Context*> ContextRequests::context_for(const std::string& wanted, std::string language) {
  if (Context* const known = contexts_.find(wanted); language.empty() && known != nullptr)
    return known;
  const Driver* const driver = SBX_TRY(find_driver(language.empty() ? "python" : language));
  language = driver->language;
  const std::string name = SBX_TRY(Contexts::name_of(wanted, language));
  Context* const known = contexts_.find(name);
  if (known == nullptr) return &contexts_.add(name, language);
  if (known->language != language) return fail(other_language(*known, language));
  return known;
}

Status ContextRequests::start(Context& context) {
  if (contexts_.living() >= most_.value)
    return fail(too_many_contexts(most_.value, most_.origin, session_));
  const Interpreters::Started started = SBX_TRY(interpreters_.start(context));
  context.begin(started.call, started.since);
  return {};
}

template <class Asked>
void ContextRequests::pass_on(Context& context, Asked request, Asker client) {
  protocol::Request passed(std::move(request));
  switch (interpreters_.pass_on(context.call, passed, client)) {
    case Interpreters::Passed::full:
      return (void)protocol::send(client.connection.get(), too_busy(context));
    case Interpreters::Passed::ended:
      // The cell is for the next one.
      return (void)context.pending_cells.emplace_back(std::move(passed), std::move(client));
    case Interpreters::Passed::taken:
      ++context.open;
      if (std::same_as<Asked, protocol::EvalRequest>) ++context.cells;
  }
}

void ContextRequests::on_note(std::uint64_t call, Note::What what) {
  Context* const context = contexts_.of_call(call);
  if (context == nullptr) return;
  if (what == Note::What::ready) {
    context->has_lived = true;
    if (context->life == Life::starting) context->life = Life::ready;
  }
  if (what == Note::What::answered && context->open > 0) --context->open;
}

void ContextRequests::on_end(std::uint64_t call, const std::string& why) {
  Context* const found = contexts_.of_call(call);
  if (found == nullptr) return;
  const std::string name = found->name;
  auto pending_cells = std::exchange(found->pending_cells, {});
  for (const UniqueFd& each : std::exchange(found->enders, {}))
    (void)protocol::send(each.get(), protocol::DoneAnswer{});
  const bool was_told_to = found->life == Life::ending;
  const bool closes = found->closes;
  found->end(lossy_utf8(why));
  // Its next one may not begin: a program took the directory away. Under a name that is forgotten a
  // cell would run in another language and directory, and so would what came too late for one that
  // never lived: that asks the next one, which says why it can't begin.
  const bool stays = found->is_opened && !closes && (found->has_lived || !pending_cells.empty());
  if (stays && was_told_to)
    restart_opened(*found);
  else if (!stays && found->life != Life::lost)
    contexts_.forget(name);
  contexts_.forget_old();
  for (auto& [request, client] : pending_cells)
    closes ? (void)protocol::send(client.connection.get(), no_context(name, session_))
           : interpreters_.handle_again(std::move(request), std::move(client));
}

/// The one of this name; null: the client has been told that there is none.
Context* ContextRequests::named(const std::string& name, int connection) {
  Context* const found = contexts_.find(name);
  if (found == nullptr) (void)protocol::send(connection, no_context(name, session_));
  return found;
}

void ContextRequests::answer(const protocol::ContextsRequest& /*request*/, UniqueFd connection) {
  (void)protocol::send(connection.get(), protocol::ContextsAnswer{.contexts = contexts_.list()});
}

void ContextRequests::answer(const protocol::InterruptRequest& request, UniqueFd connection) {
  const Context* const context = named(request.context, connection.get());
  if (context == nullptr) return;
  if (context->open > 0) interpreters_.tell(context->call, Note::What::interrupt);
  (void)protocol::send(connection.get(),
                       protocol::InterruptAnswer{.interrupted = context->open > 0});
}

/// Ends it; the next cell starts another one. Answers when it has ended.
void ContextRequests::answer(const protocol::RestartRequest& request, UniqueFd connection) {
  Context* const context = named(request.context, connection.get());
  if (context == nullptr) return;
  if (context->lives()) return end(*context, std::move(connection));
  context->is_opened ? restart_opened(*context) : contexts_.forget(context->name);
  (void)protocol::send(connection.get(), protocol::DoneAnswer{});
}

void ContextRequests::answer(const protocol::CloseContextRequest& request, UniqueFd connection) {
  Context* const context = named(request.context, connection.get());
  if (context == nullptr) return;
  context->closes = true;
  if (context->lives()) return end(*context, std::move(connection));
  contexts_.forget(context->name);
  (void)protocol::send(connection.get(), protocol::DoneAnswer{});
}

void ContextRequests::end(Context& context, UniqueFd connection) {
  context.life = Life::ending;
  context.enders.push_back(std::move(connection));
  interpreters_.tell(context.call, Note::What::end);
}

/// Whoever opened it expects it to be there. Where it can't be started now, its next cell tries.
void ContextRequests::restart_opened(Context& context) {
  context.life = Life::absent;
  (void)start(context);
}

}  // namespace sbx::session

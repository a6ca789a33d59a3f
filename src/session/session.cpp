#include "session/session.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "base/process.hpp"
#include "base/random.hpp"
#include "base/signals.hpp"
#include "base/sys.hpp"
#include "changes/kept.hpp"
#include "session/call_worker.hpp"
#include "session/context_worker.hpp"
#include "session/remains.hpp"
#include "session/snapshot_store.hpp"
#include "session/worker_fork.hpp"
#include "session/worker_protocol.hpp"
#include "workspace/copy.hpp"

namespace sbx::session {
namespace {

/// A set of that name may be there, from a session before. A longer name would be none.
std::string free_set(const std::string& state_directory, const std::string& wanted) {
  constexpr int kMost = 1000;
  constexpr std::size_t kLongest = 60;
  const auto store = changes::Store::open(state_directory);
  std::string name = wanted;
  for (int i = 2; store && store->has(name) && i < kMost; ++i)
    name = wanted.substr(0, kLongest) + "-" + std::to_string(i);
  return name;
}

}  // namespace

using namespace std::chrono_literals;

Session::Session(SessionDirectory place, std::unique_ptr<run::HeldSandbox> held,
                 std::string policy_sha256, EventLoop loop)
    : loop_(std::move(loop)),
      directory_(std::move(place)),
      id_("s_" + random_hex()),
      started_(::time(nullptr)),
      policy_sha256_(std::move(policy_sha256)),
      held_(std::move(held)),
      clocks_(loop_, held_->policy().session.idle.value,
              {.is_used = [this] { return is_used(); },
               .idle =
                   [this] {
                     end(EndCause::stop,
                         "after " + to_text(held_->policy().session.idle.value) +
                             " without use (session.idle)",
                         Expired::yes);
                   },
               .over =
                   [this] {
                     end(EndCause::lifetime, "at the end of its session.lifetime", Expired::yes);
                   }}),
      connections_(loop_, {.used = [this] { clocks_.note_use(); },
                           .request =
                               [this](protocol::Request request, Asker client) {
                                 handle(std::move(request), std::move(client));
                               }}),
      workers_(loop_, {.start =
                           [this](std::uint64_t call) {
                             return fork_worker(
                                 {.held = *held_, .name = {directory_.name(), id_, call}}, work);
                           },
                       .sweep = [this] { held_->sweep_call_groups(); }}),
      ending_(loop_, {.end_calls = [this](EndCause cause) { end_calls(cause); },
                      .has_calls = [this] { return calls_.living() > 0; },
                      .all_is_told = [this] { return all_is_told(); },
                      .is_reading = [this] { return reader_.valid(); },
                      .keep = [this](const std::string& set) { return keep(set); }}),
      contexts_(*this, held_->policy().session.contexts, directory_.name()),
      spares_(loop_, held_->policy().session.contexts.value,
              {.start =
                   [this](const std::string& language) {
                     return fork_worker({.held = *held_,
                                         .name = {directory_.name(), id_, 0},
                                         .context = {.language = language, .is_spare = true}},
                                        work_as_context);
                   },
               .rests = [this] { return rests(); },
               .has_room = [this] { return has_room_for_spares(); },
               .living = [this] { return contexts_.living(); },
               .dismiss = [this](Worker worker) { workers_.dismiss(std::move(worker)); }}),
      attribution_(calls_, contexts_, directory_.name(),
                   {.memory = [this](pid_t init) { return held_->memory_below(init); },
                    .tasks = [this](pid_t init) { return held_->tasks_below(init); }}) {}

Status Session::begin(UniqueFd owner, std::string keep_as) {
  ending_.keep_as(std::move(keep_as));
  UniqueFd socket = SBX_TRY(directory_.listen());
  drop_remains(directory_.parent(), directory_.name());
  sweep_remains(directory_.parent());
  SBX_TRY(
      held_->attach(loop_, {.refused =
                                [this](const auto& denial, auto count, const auto& process_name) {
                                  attribution_.refused(denial, count, process_name);
                                },
                            .spent = [this](Budget budget) { spent(budget); },
                            .ended =
                                [this] {
                                  workers_.keep_no_more();
                                  ending_.begin_without_calls();
                                }}));
  constexpr std::array kEnd{SIGTERM, SIGINT, SIGQUIT};
  signals_ = SBX_TRY(signals::take(kEnd, signals::Ignored::is_taken_too));
  (void)std::signal(SIGHUP, SIG_IGN);  // of the terminal that it was started at
  SBX_TRY(loop_.watch(signals_.get(), EPOLLIN, [this](std::uint32_t) { handle_signals(); }));
  SBX_TRY(connections_.begin(std::move(socket)));
  owner_ = std::move(owner);
  if (owner_.valid())
    SBX_TRY(loop_.watch(owner_.get(), EPOLLIN, [this](std::uint32_t) {
      loop_.forget(owner_.get());
      end(EndCause::owner, "with the process that it was started for");
    }));
  removal_ = directory_.watch_removal();
  if (removal_.valid())
    SBX_TRY(loop_.watch(removal_.get(), EPOLLIN, [this](std::uint32_t) { look_for_place(); }));
  rest_between_calls();
  clocks_.begin(held_->policy().session.lifetime.value);
  directory_.end_start();
  return {};
}

void Session::run() {
  while (!ending_.is_over())
    if (!loop_.run_once()) break;
  // Everything is gone before whoever waits for the end hears of it.
  end_workers();
  if (const auto remains = end_note_.take(workspace::has_overlay(held_->plan())))
    leave_remains(directory_.parent(), directory_.name(), *remains);
  drop_notes(held_->state_directory(), id_);
  held_.reset();
  connections_.close();
  {
    const SessionDirectory removed = std::move(directory_);
  }
  ending_.tell_stoppers();
}

// ---- budgets ----

void Session::request_kill(Call& call, Budget budget) {
  const Note note{Note::What::spend, static_cast<std::int32_t>(budget)};
  call.kill_requested_at = sys::now_microseconds();
  (void)::send(call.worker.link.get(), &note, sizeof note, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Session::spent(Budget budget) {
  // What was started ahead goes before anything that somebody uses; the next look tells whether
  // that was enough.
  const bool had_spares = spares_.has_any();
  spares_.end_all();
  if (budget == Budget::memory) {
    if (had_spares) return;
    Call* const most = attribution_.most_memory(sys::now_microseconds());
    if (most != nullptr) request_kill(*most, budget);
    return;
  }
  if (budget == Budget::cpu_time) cpu_is_spent_ = true;
  for (const auto& [number, call] : calls_.all())
    if (call->runs() && call->kill_requested_at == 0) request_kill(*call, budget);
}

// ---- the end ----

void Session::end_workers() {
  held_->end();
  spares_.end_all();
  std::vector<Worker> running;
  for (const auto& [number, call] : calls_.all())
    if (call->runs()) running.push_back(std::move(call->worker));
  workers_.end(std::move(running));
}

void Session::resume() {
  held_->resume();
  if (held_->puts_aside() && new_names_ == EventLoop::kNoTimer)
    new_names_ = loop_.after(1s, [this] { watch_new_names(); });
}

void Session::rest_between_calls() {
  if (calls_.living() != 0) return;
  held_->rest();
  loop_.cancel(std::exchange(new_names_, EventLoop::kNoTimer));
}

bool Session::is_used() const {
  // A client that asks nothing has a question of its own open: `apply`.
  return calls_.running() > 0 || contexts_.is_busy() || reader_.valid() || connections_.has_any();
}

void Session::answer(const protocol::ExtendRequest& request, UniqueFd connection) {
  const policy::Session& limits = held_->policy().session;
  // The policy's lifetime bounds each extension: a session can be prolonged again and again, but
  // not by more at a time.
  if (std::cmp_greater(request.milliseconds, limits.lifetime.value.count()))
    return refuse(connection.get(), {.kind = ErrorKind::policy,
                                     .code = "widens-session",
                                     .message = "a session lives on for session.lifetime = \"" +
                                                to_text(limits.lifetime.value) + "\" at most",
                                     .origin = limits.lifetime.origin,
                                     .hint = "extend it by less"});
  clocks_.extend(Milliseconds(request.milliseconds));
  (void)protocol::send(connection.get(), info());
}

/// One that no command finds could be ended by none, and its name be taken anew.
void Session::look_for_place() {
  char events[4096];
  while (::read(removal_.get(), events, sizeof events) > 0) {
  }
  if (directory_.is_there()) return;
  loop_.forget(removal_.get());
  end(EndCause::stop, "because its directory was removed");
}

void Session::handle_signals() {
  while (signals::next(signals_.get()) != 0) end(EndCause::stop, "by a signal");
}

void Session::end_calls(EndCause cause) {
  workers_.keep_no_more();
  spares_.end_all();
  const Note note{Note::What::cancel, static_cast<std::int32_t>(cause)};
  for (const auto& [number, call] : calls_.all())
    if (call->runs())
      (void)::send(call->worker.link.get(), &note, sizeof note, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Session::end(EndCause cause, std::string why, Expired expired) {
  if (!ending_.has_begun()) end_note_.begin(std::move(why), expired == Expired::yes);
  ending_.begin(cause);
}

/// No client waits for the answer.
bool Session::keep(const std::string& set) {
  auto connection = end_note_.expect_answer();
  if (!connection) return false;
  bring_out(protocol::KeepRequest{.set = {free_set(held_->state_directory(), set)}, .silent = true},
            {.connection = std::move(*connection)}, When::at_end);
  return reader_.valid();
}

bool Session::all_is_told() {
  return !connections_.has_followers() && std::ranges::all_of(calls_.all(), [](const auto& each) {
    return each.second->is_drained();
  });
}

}  // namespace sbx::session

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
#include "base/text.hpp"
#include "policy/write.hpp"
#include "record/record.hpp"
#include "session/bring_out_worker.hpp"
#include "session/json.hpp"
#include "session/worker_fork.hpp"
#include "session/worker_protocol.hpp"
#include "workspace/copy.hpp"

namespace sbx::session {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

/// After a stop the calls have 2 s to end, as a cancelled run has, and a moment to be killed.
constexpr auto kStopsWithin = 4s;
/// A program chooses how much there is to keep.
constexpr auto kKeepsWithin = 60s;

/// So many microseconds from now. To the nearest second: cut off, the same moment would be another
/// second each time.
std::int64_t seconds_since_epoch(microseconds ahead) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  constexpr std::int64_t kHalf = 500'000;
  return now.tv_sec + (now.tv_nsec / 1000 + ahead.count() + kHalf) / 1'000'000;
}

}  // namespace

Session::Session(SessionDirectory place, std::unique_ptr<run::HeldSandbox> held, EventLoop loop)
    : loop_(std::move(loop)),
      directory_(std::move(place)),
      id_("s_" + random_hex()),
      started_(::time(nullptr)),
      held_(std::move(held)),
      clocks_(loop_, held_->policy().session.idle.value,
              {.is_used = [this] { return is_used(); },
               .idle = [this] { stop(UniqueFd()); },
               .over = [this] { stop(UniqueFd(), EndCause::lifetime); }}),
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
      contexts_(*this, held_->policy().session.contexts, directory_.name()),
      attribution_(calls_, contexts_, directory_.name(),
                   {.memory = [this](pid_t init) { return held_->memory_below(init); },
                    .tasks = [this](pid_t init) { return held_->tasks_below(init); }}) {}

Status Session::begin(UniqueFd owner, std::string keep_as) {
  keep_as_ = std::move(keep_as);
  UniqueFd socket = SBX_TRY(directory_.listen());
  SBX_TRY(
      held_->attach(loop_, {.refused =
                                [this](const auto& denial, auto count, const auto& process_name) {
                                  attribution_.refused(denial, count, process_name);
                                },
                            .spent = [this](Budget budget) { spent(budget); },
                            .ended =
                                [this] {
                                  stops_ = true;
                                  workers_.keep_no_more();
                                  end_when_calls_have();
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
      stop(UniqueFd(), EndCause::owner);
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
  while (!over_)
    if (!loop_.run_once()) break;
  // Everything is gone before whoever waits for the end hears of it.
  end_workers();
  drop_notes(held_->state_directory(), id_);
  held_.reset();
  connections_.close();
  {
    const SessionDirectory removed = std::move(directory_);
  }
  for (const UniqueFd& each : stoppers_) (void)protocol::send(each.get(), protocol::DoneAnswer{});
}

namespace {

/// The policy's files, and what led to them.
std::vector<std::string> policy_files(const policy::Policy& policy) {
  std::vector<std::string> files = policy.files;
  files.insert(files.end(), policy.ways.begin(), policy.ways.end());
  return files;
}

}  // namespace

protocol::SessionFacts Session::info() const {
  const policy::Policy& policy = held_->policy();
  const std::string mode =
      policy::value_toml(*policy::find_key("filesystem.workspace.mode"), policy);
  // Not what the policy wants where the caller's directory can't be used: plan.notes says so.
  const bool is_empty =
      workspace::has_copy(held_->plan()) && !workspace::has_overlay(held_->plan());
  const std::string& source = policy.filesystem.workspace.source.value;
  const policy::Outputs& outputs = policy.filesystem.outputs;
  protocol::SessionFacts facts{
      .name = directory_.name(),
      .id = id_,
      .pid = ::getpid(),
      .sbx = SBX_VERSION,
      .policy = {.name = policy.name.value,
                 .source = policy.source,
                 .sha256 = sha256_hex(policy::write_for_hash(policy))},
      .started = started_,
      .calls_running = calls_.running(),
      .contexts = contexts_.living(),
      .directory = held_->plan().working_directory,
      .started_in = held_->host().working_directory,
      .workspace = is_empty ? "empty" : mode.substr(1, mode.size() - 2),  // without quotes
      .follows_caller = mode == "\"empty\"" || !source.starts_with('/'),
      .limits = read_fields<protocol::LimitFacts>(record::limits_json(held_->plan()))
                    .value_or(protocol::LimitFacts{}),
      .expires = seconds_since_epoch(clocks_.left()),
      .idle_ms = policy.session.idle.value.count(),
      .outputs = {.max_bytes = outputs.max_bytes.value.count,
                  .max_files = outputs.max_files.value,
                  .max_depth = outputs.max_depth.value},
      .policy_files = policy_files(policy),
      .notes = held_->plan().notes};
  for (const Degraded& each : held_->plan().degraded) {
    protocol::WeakerFacts weaker{.what = each.what(), .why = each.why};
    if (!each.instead.empty()) weaker.instead = each.instead;
    facts.degraded.push_back(std::move(weaker));
  }
  for (const auto& each : policy.network.publish) facts.published.push_back(each.value);
  return facts;
}

// ---- the workspace ----

void Session::answer(const protocol::ChangesRequest& request, Asker client) {
  bring_out(request, std::move(client));
}

void Session::answer(const protocol::SnapshotRequest& request, Asker client) {
  bring_out(request, std::move(client));
}

void Session::answer(const protocol::KeepRequest& request, Asker client) {
  bring_out(request, std::move(client));
}

void Session::answer(const protocol::BringOutRequest& request, Asker client) {
  bring_out(request, std::move(client));
}

void Session::bring_out(ChangesTask task, Asker client) {
  const pid_t session = ::getpid();
  auto reader = process::fork([&]() -> int {
    connections_.close();
    directory_.forget_lock();
    bring_out_and_answer({.held = *held_,
                          .name = directory_.name(),
                          .id = id_,
                          .asked = std::move(task),
                          .fds = std::move(client.fds),
                          .client = std::move(client.connection),
                          .session = session});
  });
  if (!reader) return refuse(client.connection.get(), reader.error());
  reader_ = std::move(reader->process);
  (void)loop_.watch(reader_.get(), EPOLLIN, [this](std::uint32_t) { reader_ended(); });
}

void Session::reader_ended() {
  loop_.forget(reader_.get());
  const bool exited = process::reap(reader_.get());
  reader_.reset();
  if (!exited) held_->continue_calls();  // killed, it woke nobody
  clocks_.note_use();
  for (auto& [request, client] : std::exchange(pending_requests_, {}))
    handle(std::move(request), std::move(client));
  if (stops_) end_when_calls_have();
}

// ---- budgets ----

void Session::request_kill(Call& call, Budget budget) {
  const Note note{Note::What::spend, static_cast<std::int32_t>(budget)};
  call.kill_requested_at = sys::now_microseconds();
  (void)::send(call.worker.link.get(), &note, sizeof note, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Session::spent(Budget budget) {
  if (budget == Budget::memory) {
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
  stop(UniqueFd());
}

void Session::handle_signals() {
  while (signals::next(signals_.get()) != 0) stop(UniqueFd());
}

void Session::stop(UniqueFd connection, EndCause cause) {
  // Whoever stops it has been asked what becomes of the changes.
  if (connection.valid()) {
    stoppers_.push_back(std::move(connection));
    keep_as_.clear();
  }
  if (stops_) return end_when_calls_have();
  stops_ = true;
  workers_.keep_no_more();
  const Note note{Note::What::cancel, static_cast<std::int32_t>(cause)};
  for (const auto& [number, call] : calls_.all())
    if (call->runs())
      (void)::send(call->worker.link.get(), &note, sizeof note, MSG_NOSIGNAL | MSG_DONTWAIT);
  loop_.after(kStopsWithin, [this] { end_late(); });
  end_when_calls_have();
}

void Session::end_late() {
  is_late_ = true;
  if (keep_as_.empty() && !is_keeping_) {
    over_ = true;
    return;
  }
  loop_.after(kKeepsWithin, [this] { over_ = true; });
  end_when_calls_have();
}

void Session::end_when_calls_have() {
  if (reader_.valid() || (calls_.living() > 0 && !is_late_)) return;
  // The output of ended calls may still be on its way to those who follow it.
  const bool all_is_told =
      !connections_.has_followers() &&
      std::ranges::all_of(calls_.all(), [](const auto& each) { return each.second->is_drained(); });
  if (!all_is_told && !is_late_) return (void)loop_.after(1ms, [this] { end_when_calls_have(); });
  if (!begins_to_keep()) over_ = true;
}

/// The end goes on when that process has ended. Nobody hears its answer.
bool Session::begins_to_keep() {
  const std::string set = std::exchange(keep_as_, {});
  auto sockets = sys::make_packet_pair();
  if (set.empty() || !sockets) return false;
  bring_out(protocol::KeepRequest{.set = {set}, .silent = true},
            {.connection = std::move(sockets->first)});
  is_keeping_ = reader_.valid();
  return is_keeping_;
}

}  // namespace sbx::session

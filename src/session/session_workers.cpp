// The processes that supervise calls: forked when one is needed, kept for the next call, ended when
// none comes.

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/process.hpp"
#include "base/sys.hpp"
#include "session/session.hpp"
#include "session/worker_process.hpp"

namespace sbx::session {
namespace {

using namespace std::chrono_literals;

/// As many as calls that are often under way together. Each has an init that waits.
constexpr std::size_t kMostWaiting = plan::kInitsAhead;
/// Longer than a language model takes for its next call.
constexpr auto kWaits = 60s;
/// At the session's end, when the sandbox is dead: they only have to remove their groups.
constexpr std::uint64_t kEndWithin = 1'000'000;  // microseconds

}  // namespace

/// A killed worker's init ends a moment later, and its group can be removed after that.
void Session::sweep_groups() {
  for (const auto delay : {5ms, 50ms, 500ms})
    loop_.after(delay, [this] { held_->sweep_call_groups(); });
}

/// The copy keeps no descriptor but those that calls need: connections of clients and of the
/// network would stay open with it, and it may outlive them.
Result<Worker> Session::fork_worker(WorkerState state, void (*work)(WorkerState)) {
  auto link = SBX_TRY(sys::make_packet_pair());
  auto ask = SBX_TRY(sys::make_packet_pair());
  state.link = std::move(link.second);
  state.ask = std::move(ask.second);
  auto child = process::fork([&]() -> int {
    std::vector<int> kept = held_->descriptors_for_calls();
    kept.insert(kept.end(), {state.link.get(), state.ask.get()});
    process::keep_only(std::move(kept));
    work(std::move(state));
    return 0;
  });
  if (!child)
    return fail_errno(ErrorKind::host, "cannot-clone", "no process can be started for the call",
                      child.error().errno_value);
  return Worker{.pid = child->pid,
                .process = std::move(child->process),
                .link = std::move(link.first),
                .ask = std::move(ask.first)};
}

void Session::reap(const Worker& worker) {
  process::reap(worker.process.get());
}

void Session::keep_waiting(Worker worker) {
  if (waiting_.size() >= kMostWaiting || stops_) return dismiss(std::move(worker));
  const pid_t pid = worker.pid;
  const int process = worker.process.get();
  waiting_.push_back(std::move(worker));
  (void)loop_.watch(process, EPOLLIN, [this, pid](std::uint32_t) { waiting_ended(pid); });
  loop_.cancel(worker_timer_);
  worker_timer_ = loop_.after(kWaits, [this] {
    while (!waiting_.empty()) dismiss(take_waiting());
  });
}

/// The one that waits for the shortest time: its memory is in the caches.
Worker Session::take_waiting() {
  Worker worker = std::move(waiting_.back());
  waiting_.pop_back();
  loop_.forget(worker.process.get());
  return worker;
}

/// It was killed while it waited.
void Session::waiting_ended(pid_t pid) {
  const auto found = std::ranges::find(waiting_, pid, &Worker::pid);
  if (found == waiting_.end()) return;
  loop_.forget(found->process.get());
  reap(*found);
  waiting_.erase(found);
  sweep_groups();
}

/// It ends by itself once the link is closed.
void Session::dismiss(Worker worker) {
  worker.link.reset();
  worker.ask.reset();
  const int process = worker.process.get();
  leaving_.push_back(std::move(worker));
  (void)loop_.watch(process, EPOLLIN, [this, process](std::uint32_t) {
    loop_.forget(process);
    const auto found = std::ranges::find_if(
        leaving_, [process](const Worker& each) { return each.process.get() == process; });
    reap(*found);
    leaving_.erase(found);
    sweep_groups();
  });
}

/// They hold groups inside the sandbox's, which can't be removed before.
void Session::end_workers() {
  held_->end();
  for (const auto& [number, call] : calls_.all())
    if (call->runs()) leaving_.push_back(std::move(call->worker));
  std::ranges::move(waiting_, std::back_inserter(leaving_));
  waiting_.clear();
  for (Worker& each : leaving_) each.link.reset();
  const std::uint64_t until = sys::now_microseconds() + kEndWithin;
  for (const Worker& each : leaving_) {
    const std::uint64_t now = sys::now_microseconds();
    pollfd ended{.fd = each.process.get(), .events = POLLIN, .revents = 0};
    const int left = static_cast<int>((std::max(until, now) - now) / 1000);
    if (::poll(&ended, 1, left) != 1) (void)::kill(each.pid, SIGKILL);
    reap(each);
  }
  held_->sweep_call_groups();
}

}  // namespace sbx::session

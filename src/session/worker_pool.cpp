#include "session/worker_pool.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "base/process.hpp"
#include "plan/plan.hpp"
#include "protocol/packet.hpp"

namespace sbx::session {
namespace {

using namespace std::chrono_literals;

/// Each has an init that waits.
constexpr std::size_t kMostWaiting = plan::kInitsAhead;
/// Longer than a language model takes for its next call.
constexpr auto kWaits = 60s;
/// At the session's end they only have to remove their groups.
constexpr auto kEndWithin = 1000ms;

/// The note and the assignment. Errors: host "session-gone" where the worker was killed.
Status hand_over(const Worker& worker, const Note& note, const Assignment& assignment,
                 const std::vector<int>& fds) {
  const int link = worker.link.get();
  if (::send(link, &note, sizeof note, MSG_NOSIGNAL) != sizeof note)
    return fail(Error{.kind = ErrorKind::host, .code = "session-gone"});
  return protocol::send(link, assignment, fds);
}

}  // namespace

Result<Worker> WorkerPool::give(const Assignment& assignment, const Descriptors& descriptors) {
  std::vector<int> fds;
  for (const UniqueFd& each : descriptors.streams) fds.push_back(each.get());
  Note note{Note::What::call, 0};
  for (const auto& [bit, fd] : {std::pair(CallDescriptors::kClient, descriptors.client),
                                std::pair(CallDescriptors::kImage, descriptors.image)}) {
    if (fd < 0) continue;
    note.value |= bit;
    fds.push_back(fd);
  }
  for (;;) {
    const bool is_new = waiting_.empty();
    Worker worker = is_new ? SBX_TRY(hooks_.start(assignment.call)) : take();
    const Status handed = hand_over(worker, note, assignment, fds);
    if (handed) return worker;
    dismiss(std::move(worker));
    // Another error is the assignment's: the worker waits for it, and may not get it.
    if (handed.error().code != "session-gone") return fail(handed.error());
    if (is_new) return fail_errno(ErrorKind::host, "cannot-clone", "the call's process was killed");
  }
}

Worker WorkerPool::take() {
  Worker worker = std::move(waiting_.back());
  waiting_.pop_back();
  loop_.forget(worker.process.get());
  return worker;
}

void WorkerPool::keep(Worker worker) {
  if (waiting_.size() >= kMostWaiting || !keeps_) return dismiss(std::move(worker));
  const int process = worker.process.get();
  waiting_.push_back(std::move(worker));
  (void)loop_.watch(process, EPOLLIN, [this, process](std::uint32_t) { waiting_ended(process); });
  loop_.cancel(timer_);
  timer_ = loop_.after(kWaits, [this] {
    while (!waiting_.empty()) dismiss(take());
  });
}

/// It was killed while it waited.
void WorkerPool::waiting_ended(int process) {
  const auto found =
      std::ranges::find(waiting_, process, [](const Worker& each) { return each.process.get(); });
  loop_.forget(process);
  bury(*found);
  waiting_.erase(found);
}

void WorkerPool::dismiss(Worker worker) {
  worker.link.reset();
  worker.ask.reset();
  const int process = worker.process.get();
  leaving_.push_back(std::move(worker));
  (void)loop_.watch(process, EPOLLIN, [this, process](std::uint32_t) {
    loop_.forget(process);
    const auto found =
        std::ranges::find(leaving_, process, [](const Worker& each) { return each.process.get(); });
    bury(*found);
    leaving_.erase(found);
  });
}

void WorkerPool::bury(const Worker& worker) {
  process::reap(worker.process.get());
  sweep_soon();
}

/// A killed worker's init ends a moment later, and its group can be removed after that.
void WorkerPool::sweep_soon() {
  for (const auto delay : {5ms, 50ms, 500ms}) loop_.after(delay, hooks_.sweep);
}

/// They hold groups inside the sandbox's, which can't be removed before.
void WorkerPool::end(std::vector<Worker> running) {
  std::ranges::move(running, std::back_inserter(leaving_));
  std::ranges::move(waiting_, std::back_inserter(leaving_));
  waiting_.clear();
  for (Worker& each : leaving_) each.link.reset();
  const auto until = std::chrono::steady_clock::now() + kEndWithin;
  for (const Worker& each : leaving_) {
    const auto left = std::max(until - std::chrono::steady_clock::now(), {});
    const int process = each.process.get();
    if (!process::has_ended(process, std::chrono::duration_cast<std::chrono::milliseconds>(left)))
      process::kill(process);
    process::reap(process);
  }
  leaving_.clear();
  hooks_.sweep();
}

}  // namespace sbx::session

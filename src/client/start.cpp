#include "client/start.hpp"

#include <sys/epoll.h>

#include <chrono>
#include <csignal>
#include <utility>

#include "base/process.hpp"

namespace sbx::client {
namespace {

/// As a session that is stopped.
constexpr std::chrono::seconds kDiesWithin{5};

}  // namespace

Result<std::unique_ptr<Start>> Start::fork(std::string name, run::Request request) {
  request.program.hold = true;
  return std::unique_ptr<Start>(new Start(SBX_TRY(session::fork_session(
      std::move(name), std::move(request), {}, [](const policy::Findings& /*findings*/) {},
      [] {}))));
}

Start::~Start() {
  if (loop_ == nullptr) return;
  cancel();
  loop_->cancel(timer_);
  loop_->forget(starting_.answer.get());
  loop_->forget(starting_.process.process.get());
}

Status Start::attach(EventLoop& loop, Hooks hooks) {
  hooks_ = std::move(hooks);
  SBX_TRY(loop.watch(starting_.answer.get(), EPOLLIN, [this](std::uint32_t) { hear(); }));
  loop_ = &loop;
  return {};
}

void Start::hear() {
  auto facts = session::facts_from_start(starting_);
  if (facts) return end(std::move(facts));
  await_death(std::move(facts).error());
}

void Start::cancel() {
  if (loop_ == nullptr || error_) return;
  (void)process::send_signal(starting_.process.process.get(), SIGTERM);
  timer_ = loop_->after(kDiesWithin, [this] { process::kill(starting_.process.process.get()); });
  await_death({.kind = ErrorKind::host,
               .code = "session-gone",
               .message = "the start of the session was cancelled"});
}

void Start::await_death(Error error) {
  error_ = std::move(error);
  loop_->forget(starting_.answer.get());
  const int process = starting_.process.process.get();
  const Status watched =
      loop_->watch(process, EPOLLIN, [this](std::uint32_t) { end(fail(std::move(*error_))); });
  if (!watched) end(fail(watched.error()));
}

void Start::end(Ended ended) {
  loop_->cancel(std::exchange(timer_, EventLoop::kNoTimer));
  loop_->forget(starting_.answer.get());
  loop_->forget(starting_.process.process.get());
  if (!ended) process::reap(starting_.process.process.get());
  loop_ = nullptr;
  hooks_.ended(std::move(ended));
}

Start::Ended Start::run() {
  EventLoop loop = SBX_TRY(EventLoop::make());
  std::optional<Ended> result;
  SBX_TRY(attach(loop, {.ended = [&](Ended ended) { result.emplace(std::move(ended)); }}));
  return run_until(loop, result);
}

}  // namespace sbx::client

#pragma once

#include <sys/epoll.h>

#include <concepts>
#include <csignal>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/event_loop.hpp"
#include "base/process.hpp"
#include "base/result.hpp"
#include "protocol/requests.hpp"
#include "session/client.hpp"

/// A front end's side of a session: each object is one thing in flight. It lives in the caller's
/// event loop, calls its hooks from there, owns no signals and never waits. A hook may not destroy
/// the object that calls it. What the session says is checked: it is an error with a code where the
/// session is another build's, or hostile.
namespace sbx::client {

/// Runs the loop until `result` is there, and gives that.
template <class Value>
[[nodiscard]] Result<Value> run_until(EventLoop& loop, std::optional<Result<Value>>& result) {
  while (!result) SBX_TRY(loop.run_once());
  return std::move(*result);
}

/// What the client of a request hears first, where it says that the work has begun.
template <class Asked>
struct BeginOf {
  using Type = protocol::DoneAnswer;
};
template <protocol::Begins Asked>
struct BeginOf<Asked> {
  using Type = typename Asked::Begun;
};

/// What it hears until the answer comes, where it hears anything.
template <class Asked>
struct EventOf {
  struct Type {};
};
template <protocol::Tells Asked>
struct EventOf<Asked> {
  using Type = typename Asked::Event;
};

/// A request and its answer. A call, work with files and the reading of changes say between them
/// that they have begun; from then on they take signals.
template <protocol::IsRequest Asked>
class Task {
 public:
  using Answer = typename Asked::Answer;
  static constexpr bool kBegins = protocol::Begins<Asked>;
  using Begun = typename BeginOf<Asked>::Type;
  static constexpr bool kReads = std::same_as<Begun, protocol::ReaderBegun>;
  using Event = typename EventOf<Asked>::Type;
  struct Hooks {
    std::function<void(const Begun& begun)> begun{};
    std::function<void(const Event& event)> event{};
    std::function<void(Result<Answer> answer)> ended;  ///< the last one
  };

  Task(session::Client connection, Asked request)
      : connection_(std::move(connection)), request_(std::move(request)) {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() { leave(); }

  /// Sends the request with its descriptors. Errors: host; then no hook is called.
  [[nodiscard]] Status attach(EventLoop& loop, Hooks hooks, std::span<const int> fds = {}) {
    hooks_ = std::move(hooks);
    connection_.never_wait();
    if constexpr (kReads) connection_.note_senders();
    SBX_TRY(connection_.send(request_, fds));
    SBX_TRY(loop.watch(connection_.fd(), EPOLLIN, [this](std::uint32_t) { hear(); }));
    loop_ = &loop;
    return {};
  }
  /// As if this process were the program: a signal ends, stops or continues the work. One that
  /// comes before it has begun is kept for it.
  void signal(int number) {
    if (loop_ == nullptr) return;
    if (!begun_) return pending_.push_back(number);
    if constexpr (kReads)
      (void)process::send_signal(reader_.get(), number);
    else
      (void)connection_.send(protocol::SignalMessage{.signal = number});
  }
  void cancel() { signal(SIGTERM); }
  [[nodiscard]] bool has_begun() const { return begun_.has_value(); }

  /// For who does nothing else: waits for the end.
  [[nodiscard]] Result<Answer> run(std::span<const int> fds = {}) {
    EventLoop loop = SBX_TRY(EventLoop::make());
    std::optional<Result<Answer>> result;
    SBX_TRY(attach(
        loop, {.ended = [&](Result<Answer> answer) { result.emplace(std::move(answer)); }}, fds));
    return run_until(loop, result);
  }

 private:
  void hear() {
    // Before the packet is taken. What a session writes into it could name any process.
    if (kReads && !begun_) reader_ = connection_.next_sender();
    auto packet = connection_.next();
    if (!packet) return end(fail(std::move(packet).error()));
    if (kBegins && !begun_) return begin(std::move(*packet));
    if constexpr (protocol::Tells<Asked>)
      if (packet->contains(Event::kMark)) return tell(std::move(*packet));
    end(protocol::answer_from<Answer>(std::move(*packet)));
  }

  void begin(Json packet) {
    auto begun = protocol::answer_from<Begun>(std::move(packet));
    if (!begun) return end(fail(std::move(begun).error()));
    begun_ = std::move(*begun);
    for (const int number : std::exchange(pending_, {})) signal(number);
    if (hooks_.begun) hooks_.begun(*begun_);
  }

  void tell(Json packet) {
    auto event = protocol::answer_from<Event>(std::move(packet));
    if (!event) return end(fail(std::move(event).error()));
    if (hooks_.event) hooks_.event(*event);
  }

  void end(Result<Answer> answer) {
    leave();
    hooks_.ended(std::move(answer));
  }

  void leave() {
    if (loop_ != nullptr) loop_->forget(connection_.fd());
    loop_ = nullptr;
  }

  session::Client connection_;
  Asked request_;
  Hooks hooks_;
  EventLoop* loop_ = nullptr;
  std::optional<Begun> begun_;
  std::vector<int> pending_;
  UniqueFd reader_;
};

using Call = Task<protocol::CallRequest>;
using Files = Task<protocol::FilesRequest>;
using Changes = Task<protocol::ChangesRequest>;

}  // namespace sbx::client

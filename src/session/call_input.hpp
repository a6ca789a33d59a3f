#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace sbx::session {

/// The standard input of a background call. The session passes no byte on: it gives its end of a
/// socket to one sender after another. A program that reads nothing keeps its sender waiting, and
/// nobody else.
class CallInput {
 public:
  /// `end`: of a stream socket, whose other end the program reads. `used`: a sender was there.
  CallInput(EventLoop& loop, std::uint64_t call, UniqueFd end, std::function<void()> used)
      : loop_(loop), call_(call), end_(std::move(end)), used_(std::move(used)) {}
  CallInput(const CallInput&) = delete;
  CallInput& operator=(const CallInput&) = delete;
  ~CallInput();

  /// Somebody wants to write to it; the answer may come later.
  void add(UniqueFd sender);
  /// The call has ended, which those who wait are told.
  void close(const Error& why);

 private:
  void give_turn();
  void end_turn();
  void refuse_senders(const Error& error);
  [[nodiscard]] Error ended() const;
  [[nodiscard]] Error closed_by_program() const;

  EventLoop& loop_;
  std::uint64_t call_;
  UniqueFd end_;  ///< invalid: a sender has ended it
  std::function<void()> used_;
  std::vector<UniqueFd> senders_;  ///< the first one writes, the others wait for their turn
  EventLoop::TimerId closed_ = EventLoop::kNoTimer;  ///< the program reads no more, or has ended
};

}  // namespace sbx::session

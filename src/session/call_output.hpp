#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "protocol/requests.hpp"
#include "session/log.hpp"

namespace sbx::session {

/// What a background call writes: the session reads it, and tells those who follow it.
class CallOutput {
 public:
  struct Hooks {
    /// All has been read that the call's programs have written.
    std::function<void()> drained;
    /// Reads what a follower asks next. False: it has left.
    std::function<bool(UniqueFd)> await;
  };
  /// `cap`: bytes that are kept of each stream.
  CallOutput(EventLoop& loop, std::uint64_t cap, Hooks hooks)
      : loop_(loop), hooks_(std::move(hooks)), out_(cap), err_(cap) {}
  CallOutput(const CallOutput&) = delete;
  CallOutput& operator=(const CallOutput&) = delete;
  ~CallOutput();

  /// Reading ends of pipes. Errors: internal.
  Status begin(UniqueFd out, UniqueFd err);
  /// What was written since; at once, or when there is more.
  void answer(const protocol::LogsRequest& request, UniqueFd connection);
  [[nodiscard]] bool is_drained() const { return !out_.pipe.valid() && !err_.pipe.valid(); }
  /// The call's programs have ended: what sbx says of that comes after what they wrote.
  void add_last(std::string_view words);
  /// The call has ended, and this is drained: nothing more comes.
  void end();

  [[nodiscard]] std::uint64_t out_bytes() const { return out_.log.written(); }
  [[nodiscard]] std::uint64_t err_bytes() const { return err_.log.written(); }
  [[nodiscard]] std::size_t memory() const { return out_.log.memory() + err_.log.memory(); }

 private:
  struct Stream {
    explicit Stream(std::uint64_t cap) : log(cap) {}
    UniqueFd pipe{};
    Log log;
  };
  /// Somebody who waits for more, and the offsets that it has.
  struct Follower {
    UniqueFd connection;
    std::uint64_t out = 0;
    std::uint64_t err = 0;
  };
  Status watch(Stream& stream, UniqueFd pipe);
  /// False: there is nothing.
  bool read(Stream& stream);
  [[nodiscard]] Status tell(const Follower& client) const;
  void answer_followers();
  void answer_follower(Follower client);

  EventLoop& loop_;
  Hooks hooks_;
  Stream out_;
  Stream err_;
  std::vector<Follower> followers_;
  bool ended_ = false;
};

}  // namespace sbx::session

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/event_loop.hpp"
#include "base/sys.hpp"
#include "base/unique_fd.hpp"

namespace sbx::network {

/// Pipes between sockets. Data is moved through one that all connections share; a connection keeps
/// it only while its destination takes no more, because the kernel makes pipes tiny once a user has
/// many (pipe-user-pages-soft, pipe(7)). For the same reason few are large: splice(2) reads no more
/// than a page for each place in the pipe.
class Pipes {
 public:
  struct Pipe {
    sys::Pipe ends;
    bool large = false;
  };

  /// An empty pipe. Errors: setup (no descriptors).
  [[nodiscard]] Result<Pipe> take();
  /// An empty one, or none.
  void give_back(Pipe pipe);
  /// With what is in it, or none.
  void drop(Pipe pipe);

 private:
  static constexpr std::size_t kMostSpare = 4;
  static constexpr std::size_t kMostLarge = 8;
  std::vector<Pipe> spare_;
  std::size_t large_ = 0;
};

/// Two connected TCP sockets, each one's bytes sent to the other until both have ended. A side that
/// ends is shut down on the other; a side that breaks is reset on the other. An idle relay costs
/// nothing but its descriptors.
class Relay {
 public:
  struct Bytes {
    std::uint64_t from_near = 0;
    std::uint64_t from_far = 0;
  };
  /// Called once, when all is over; the relay may be destroyed in it.
  using Ended = std::function<void()>;

  Relay(EventLoop& loop, Pipes& pipes, UniqueFd near, UniqueFd far, Ended ended);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay();

  /// Moves what is there already. Errors: internal (epoll).
  [[nodiscard]] Status start();
  /// What was passed on since the last call.
  [[nodiscard]] Bytes take_bytes();
  /// More may come from the near side, or not all of it is passed on yet.
  [[nodiscard]] bool sends() const { return !out_.done; }

 private:
  struct Way {
    int from = -1;
    int to = -1;
    Pipes::Pipe pipe;  ///< held while `held` bytes wait for `to`
    std::size_t held = 0;
    std::uint64_t passed = 0;
    bool at_end = false;  ///< nothing more comes from `from`
    bool done = false;    ///< and `to` knows
  };
  enum class Moved : std::uint8_t { all, some, broken };

  /// `events` of the side that `from_it` comes from and `to_it` leads to.
  void ready(std::uint32_t events, Way& from_it, Way& to_it);
  void go_on(Moved one, Moved other);
  Moved move(Way& way);
  /// 1: empty; 0: blocked; -1: broken.
  int drain(Way& way);
  void finish(bool broken);

  EventLoop& loop_;
  Pipes& pipes_;
  UniqueFd near_;
  UniqueFd far_;
  Ended ended_;
  Way out_;
  Way in_;
  EventLoop::TimerId again_ = EventLoop::kNoTimer;
};

}  // namespace sbx::network

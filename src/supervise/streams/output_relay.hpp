#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/event_loop.hpp"
#include "base/unique_fd.hpp"
#include "supervise/settings.hpp"
#include "supervise/streams/block.hpp"
#include "supervise/streams/capture.hpp"
#include "supervise/streams/escape_filter.hpp"
#include "supervise/streams/sink.hpp"
#include "supervise/streams/terminal_modes.hpp"

namespace sbx::supervise {

/// Forwards or keeps one output stream of the sandbox while it is written: the first `cap` bytes go
/// out at once, the rest is counted and dropped; a terminal gets the last bytes at the end. Uses
/// constant memory.
class OutputRelay {
 public:
  struct Options {
    std::string name;  ///< "stdout"
    Bytes cap{};
    bool capture = false;
    EscapePolicy escapes = EscapePolicy::visible;  ///< if the sink is a terminal
    OnExceed on_exceed = OnExceed::drop;
    std::string before{};            ///< comes first, as if it had just been read
    std::function<void()> cut;       ///< called once, at the first byte over the cap
    std::function<void()> exceeded;  ///< once, at the first byte over a cap that ends the run
    std::function<void()> left;      ///< once, where the sink's reader has left
    std::function<void()> finished;  ///< once: nothing more will be read or written
  };

  /// `source` is the read end (or a pty master) and gets O_NONBLOCK; `sink` is borrowed.
  OutputRelay(EventLoop& loop, UniqueFd source, int sink, Options options);
  OutputRelay(const OutputRelay&) = delete;
  OutputRelay& operator=(const OutputRelay&) = delete;
  ~OutputRelay() {
    loop_.cancel(rest_timer_);
    close_source();
  }

  [[nodiscard]] Status start();
  /// Every process of the sandbox is dead, so the pipe's present contents are the last. (Waiting
  /// for end of file would include other holders of the write end.)
  void source_is_complete();
  /// Stops although the sink has not accepted everything.
  void abandon();

  /// Reads what is there now, without waiting for the loop.
  void look() {
    if (!done_ && !sink_watched_) pump();
  }
  /// Bytes that the sink has been given or will be, without those beyond the cap; captured: all.
  [[nodiscard]] std::uint64_t delivered() const { return capture_ ? bytes_ : passed_; }

  [[nodiscard]] bool done() const { return done_; }
  /// The sink's reader has left: what the source still has was not read.
  [[nodiscard]] bool has_left() const { return has_left_; }
  /// True if bytes are waiting for the sink.
  [[nodiscard]] bool blocked() const { return sink_watched_; }
  /// The stream for the record, once done. Empty text if passed through.
  [[nodiscard]] Stream take();
  /// Notes for the user: "cannot write stdout: No space left on device …".
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  /// The errno with which bytes were lost; 0: none.
  [[nodiscard]] int write_error() const { return write_error_; }

 private:
  enum class Step : std::uint8_t { again, wait_source, wait_sink, end };

  void pump();
  Step step();
  Step step_capture();
  Step step_splice();
  Step step_copy();
  Step step_discard();
  Step step_keep_tail();
  void show_tail();
  [[nodiscard]] bool ends_run() const;
  Step flush();
  Step source_said(ssize_t answer);
  void count(std::size_t bytes);
  Step sink_said(const Taken& taken);
  void wait_for_sink();
  void stop_waiting_for_sink();
  void put_before();
  void keep_last(std::string_view bytes);
  void take_text(std::string_view bytes);
  void close_source();
  void finish();
  [[nodiscard]] bool flows();
  void rest();
  void wake();
  [[nodiscard]] std::uint64_t allowance() const;
  [[nodiscard]] bool dropping() const { return sink_lost_ || sink_.discards() || allowance() == 0; }

  EventLoop& loop_;
  UniqueFd source_;
  Sink sink_;
  Options options_;
  std::optional<Capture> capture_;
  std::optional<EscapeFilter> filter_;
  TerminalModes modes_;          ///< of a terminal that it writes to
  std::optional<Capture> over_;  ///< the part shown on a terminal at the end
  UniqueFd null_;                ///< target for splice of output beyond the cap
  Block block_;
  std::string pending_;  ///< read and counted, not yet accepted by the sink
  std::size_t pending_at_ = 0;
  std::string last_;          ///< the last bytes passed on, for Stream::last
  std::uint64_t bytes_ = 0;   ///< written by the sandbox
  std::uint64_t passed_ = 0;  ///< the part for the sink
  std::uint64_t tail_ = 0;    ///< the part shown at the end
  int write_error_ = 0;
  bool sink_lost_ = false;
  bool has_left_ = false;
  bool sink_watched_ = false;
  bool complete_ = false;
  bool at_end_ = false;
  bool said_exceeded_ = false;
  bool done_ = false;
  bool flows_ = false;
  bool resting_ = false;
  EventLoop::TimerId rest_timer_ = EventLoop::kNoTimer;
  bool has_large_pipe_ = false;
  std::uint64_t window_began_ = 0;  ///< sys::now_microseconds()
  std::uint64_t window_bytes_ = 0;  ///< bytes_ at the beginning of the window
  std::vector<std::string> notes_;
};

}  // namespace sbx::supervise

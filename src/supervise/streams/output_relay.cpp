#include "supervise/streams/output_relay.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/sys.hpp"

namespace sbx::supervise {
namespace {

constexpr std::size_t kSpliceAtMost = 1 << 20;
/// Rounds before the loop serves its other descriptors again.
constexpr int kOutputRounds = 16;
/// Enough for a full pipe when nobody writes any more.
constexpr int kLastRounds = 64;

/// If a program writes much, its output is read at intervals: waking up for each write would cost
/// more than the copying.
constexpr std::uint64_t kWindow = 1000;      ///< microseconds
constexpr std::uint64_t kMuch = 256 * 1024;  ///< bytes in a window
constexpr auto kRest = std::chrono::microseconds(60);
constexpr int kLargePipe = 1 << 20;         ///< fs.pipe-max-size: allowed to every user
constexpr std::uint64_t kTail = 64 * 1024;  ///< bytes shown on a terminal at the end
constexpr std::size_t kLast = 8 * 1024;     ///< bytes of Stream::last
/// After that many bytes a stream is spliced, and its last words are not known.
constexpr std::uint64_t kCopied = 1 << 20;

bool is_pipe(int fd) {
  struct stat facts{};
  return ::fstat(fd, &facts) == 0 && S_ISFIFO(facts.st_mode);
}

}  // namespace

OutputRelay::OutputRelay(EventLoop& loop, UniqueFd source, int sink, Options options)
    : loop_(loop), source_(std::move(source)), sink_(sink), options_(std::move(options)) {
  if (options_.capture) {
    capture_.emplace(options_.cap);
  } else if (sink_.is_terminal()) {
    filter_.emplace(options_.escapes);
  }
}

Status OutputRelay::start() {
  if (!source_.valid()) {
    finish();
    return {};
  }
  // We may set the flag: the sandbox writes through its own open file description.
  const int flags = ::fcntl(source_.get(), F_GETFL);
  ::fcntl(source_.get(), F_SETFL, flags | O_NONBLOCK);
  if (is_pipe(source_.get())) null_ = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  SBX_TRY(loop_.watch(source_.get(), EPOLLIN, [this](std::uint32_t) { pump(); }));
  put_before();
  return {};
}

void OutputRelay::put_before() {
  const std::string text = std::exchange(options_.before, {});
  if (text.empty()) return;
  if (!capture_) {
    take_text(std::string_view(text).substr(0, allowance()));
    count(text.size());
    return pump();
  }
  capture_->append(text);
  count(text.size());
}

/// As what was read: it is passed on next.
void OutputRelay::take_text(std::string_view bytes) {
  passed_ += bytes.size();
  pending_.clear();
  pending_at_ = 0;
  if (filter_) {
    filter_->feed(bytes, pending_);
    modes_.feed(pending_);
  } else {
    pending_ = bytes;
  }
}

void OutputRelay::source_is_complete() {
  complete_ = true;
  if (!done_ && !sink_watched_) pump();
}

void OutputRelay::abandon() {
  if (done_) return;
  notes_.push_back(options_.name + " was not read to its end: the last bytes are dropped");
  sink_lost_ = true;
  finish();
}

std::uint64_t OutputRelay::allowance() const {
  return options_.cap.count > passed_ ? options_.cap.count - passed_ : 0;
}

void OutputRelay::pump() {
  if (done_) return;
  for (int round = 0; round < (complete_ ? kLastRounds : kOutputRounds); ++round) {
    switch (step()) {
      case Step::again:
        continue;
      case Step::wait_sink:
        return wait_for_sink();
      case Step::end:
        return finish();
      case Step::wait_source:
        if (complete_) return finish();
        stop_waiting_for_sink();
        return flows() ? rest() : wake();
    }
  }
  stop_waiting_for_sink();
  wake();
}

/// True if much arrived in the last window.
bool OutputRelay::flows() {
  const std::uint64_t now = sys::now_microseconds();
  if (now - window_began_ < kWindow) return flows_;
  flows_ = bytes_ - window_bytes_ >= kMuch && now - window_began_ < 2 * kWindow;
  window_began_ = now;
  window_bytes_ = bytes_;
  return flows_;
}

void OutputRelay::rest() {
  if (resting_ || done_) return;
  resting_ = true;
  if (!has_large_pipe_) ::fcntl(source_.get(), F_SETPIPE_SZ, kLargePipe);  // else it keeps its size
  has_large_pipe_ = true;
  loop_.set_events(source_.get(), 0);
  rest_timer_ = loop_.after(kRest, [this] {
    resting_ = false;
    pump();
  });
}

void OutputRelay::wake() {
  if (!resting_) loop_.set_events(source_.get(), EPOLLIN);
}

OutputRelay::Step OutputRelay::step() {
  if (pending_at_ < pending_.size()) return flush();
  if (at_end_) return Step::end;
  if (capture_) return step_capture();
  if (filter_ && !sink_lost_ && allowance() == 0) return step_keep_tail();
  if (dropping()) return step_discard();
  const bool can_splice = !filter_ && null_.valid() && sink_.takes_splice();
  return can_splice && bytes_ >= kCopied ? step_splice() : step_copy();
}

/// A read that returned nothing: empty for now, or the end (a pty master reports EIO).
OutputRelay::Step OutputRelay::source_said(ssize_t answer) {
  if (answer < 0 && errno == EAGAIN) return Step::wait_source;
  if (answer < 0 && errno == EINTR) return Step::again;
  at_end_ = true;
  if (filter_ && !sink_lost_) {
    pending_.clear();
    pending_at_ = 0;
    show_tail();
    filter_->finish(pending_);
    modes_.feed(pending_);
    pending_ += modes_.resets();
  }
  return pending_.empty() ? Step::end : Step::again;
}

void OutputRelay::count(std::size_t bytes) {
  bytes_ += bytes;
  if (bytes_ <= options_.cap.count || said_exceeded_) return;
  said_exceeded_ = true;
  if (options_.cut) options_.cut();
  if (ends_run()) options_.exceeded();
}

bool OutputRelay::ends_run() const {
  if (!options_.exceeded) return false;
  if (options_.on_exceed != OnExceed::by_sink) return options_.on_exceed == OnExceed::end_run;
  return !capture_ && !sink_.is_terminal() && !sink_.discards();
}

OutputRelay::Step OutputRelay::step_capture() {
  const std::span<char> space = capture_->space();
  const ssize_t got = ::read(source_.get(), space.data(), space.size());
  if (got <= 0) return source_said(got);
  capture_->commit(static_cast<std::size_t>(got));
  count(static_cast<std::size_t>(got));
  return Step::again;
}

OutputRelay::Step OutputRelay::step_splice() {
  const std::size_t limit =
      static_cast<std::size_t>(std::min<std::uint64_t>(allowance(), kSpliceAtMost));
  const Sink::Spliced moved = sink_.splice_from(source_.get(), limit);
  if (moved.count > 0) {
    last_.clear();  // not the last any more
    passed_ += moved.count;
    count(moved.count);
    return Step::again;
  }
  if (moved.at_end) return source_said(0);
  if (moved.state != SinkState::ready) return sink_said(moved);
  return sink_.takes_splice() ? Step::wait_source : Step::again;
}

OutputRelay::Step OutputRelay::step_copy() {
  const auto limit = static_cast<std::size_t>(std::min<std::uint64_t>(allowance(), Block::kSize));
  const ssize_t got = ::read(source_.get(), block_.data(), limit);
  if (got <= 0) return source_said(got);
  const std::string_view bytes(block_.data(), static_cast<std::size_t>(got));
  keep_last(bytes);
  take_text(bytes);
  count(bytes.size());
  return Step::again;
}

void OutputRelay::keep_last(std::string_view bytes) {
  last_ += bytes.substr(bytes.size() - std::min(bytes.size(), kLast));
  if (last_.size() > 2 * kLast) last_.erase(0, last_.size() - kLast);
}

OutputRelay::Step OutputRelay::step_discard() {
  ssize_t gone = -1;
  if (null_.valid()) {
    gone = ::splice(source_.get(), nullptr, null_.get(), nullptr, kSpliceAtMost,
                    SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  } else {
    gone = ::read(source_.get(), block_.data(), Block::kSize);
  }
  if (gone < 0 && errno == EINVAL && null_.valid()) {
    null_.reset();
    return Step::again;
  }
  if (gone <= 0) return source_said(gone);
  if (sink_.discards())
    passed_ += std::min<std::uint64_t>(allowance(), static_cast<std::uint64_t>(gone));
  count(static_cast<std::size_t>(gone));
  return Step::again;
}

OutputRelay::Step OutputRelay::step_keep_tail() {
  if (!over_) over_.emplace(Bytes{0}, Bytes{std::min(kTail, options_.cap.count)});
  const std::span<char> space = over_->space();
  const ssize_t got = ::read(source_.get(), space.data(), space.size());
  if (got <= 0) return source_said(got);
  over_->commit(static_cast<std::size_t>(got));
  count(static_cast<std::size_t>(got));
  return Step::again;
}

/// Shows the kept part of what a terminal was not shown at once.
void OutputRelay::show_tail() {
  if (!over_) return;
  const Stream kept = over_->take();
  tail_ = kept.tail_bytes;
  if (const std::uint64_t left_out = kept.bytes - tail_; left_out > 0)
    filter_->feed("\n… " + std::to_string(left_out) + " bytes left out …\n", pending_);
  filter_->feed(kept.text.value_or(std::string()), pending_);
}

OutputRelay::Step OutputRelay::flush() {
  if (sink_lost_) {
    pending_at_ = pending_.size();
    return Step::again;
  }
  const Taken taken = sink_.write(std::string_view(pending_).substr(pending_at_));
  pending_at_ += taken.count;
  return taken.state == SinkState::ready ? Step::again : sink_said(taken);
}

OutputRelay::Step OutputRelay::sink_said(const Taken& taken) {
  if (taken.state == SinkState::full) return Step::wait_sink;
  const std::size_t unwritten = pending_.size() - pending_at_;
  if (!filter_) passed_ -= std::min<std::uint64_t>(passed_, unwritten);
  pending_.clear();
  pending_at_ = 0;
  sink_lost_ = true;
  // Closing our end gives the program the SIGPIPE that it would get without us.
  if (taken.state == SinkState::gone) {
    has_left_ = true;
    if (options_.left) options_.left();
    return Step::end;
  }
  write_error_ = taken.error;
  notes_.push_back(
      "cannot write " + options_.name + ": " +
      (taken.error == EBADF
           ? "it is not open for writing; where it isn't wanted: >/dev/null"
           : std::string(::strerrordesc_np(taken.error)) + "; the rest of it is dropped"));
  return Step::again;
}

void OutputRelay::wait_for_sink() {
  if (sink_watched_) return;
  loop_.set_events(source_.get(), 0);
  const auto resume = [this](std::uint32_t) { pump(); };
  if (!loop_.watch(sink_.fd(), EPOLLOUT,
                   resume)) {  // out of kernel memory: waiting is impossible
    sink_lost_ = true;
    loop_.set_events(source_.get(), EPOLLIN);
    return;
  }
  sink_watched_ = true;
}

void OutputRelay::stop_waiting_for_sink() {
  if (!sink_watched_) return;
  sink_watched_ = false;
  loop_.forget(sink_.fd());
}

void OutputRelay::close_source() {
  if (!source_.valid()) return;
  stop_waiting_for_sink();
  loop_.forget(source_.get());
  source_.reset();
}

void OutputRelay::finish() {
  if (done_) return;
  done_ = true;
  close_source();
  if (options_.finished) options_.finished();
}

Stream OutputRelay::take() {
  if (capture_) {
    Stream kept = capture_->take();
    if (kept.text)
      kept.last = kept.text->substr(kept.text->size() - std::min(kept.text->size(), kLast));
    return kept;
  }
  // /dev/null takes everything: where the run goes on, nobody misses what is over the cap.
  const bool takes_all = sink_.discards() && options_.on_exceed != OnExceed::end_run;
  return Stream{.bytes = bytes_,
                .truncated = !takes_all && bytes_ > passed_ + tail_,
                .head_bytes = takes_all ? bytes_ : passed_,
                .tail_bytes = tail_,
                .last = std::move(last_)};
}

}  // namespace sbx::supervise

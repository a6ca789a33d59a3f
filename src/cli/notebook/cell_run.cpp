#include "cli/notebook/cell_run.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/event_loop.hpp"
#include "base/sys.hpp"
#include "cli/cell_words.hpp"
#include "run/terminal_text.hpp"
#include "session/client.hpp"
#include "session/message.hpp"

namespace sbx::cli {
namespace {

/// One stream of a cell: printed while it comes, and kept for the notebook.
class CellStream {
 public:
  CellStream(const char* name, int to, NotebookOutputs& outputs)
      : name_(name), to_(to), outputs_(outputs) {
    if (::isatty(to) == 1) terminal_.emplace();
  }

  /// The writing end.
  Result<UniqueFd> open() {
    sys::Pipe pipe = SBX_TRY(sys::make_pipe());
    (void)::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
    from_ = std::move(pipe.read);
    return std::move(pipe.write);
  }
  [[nodiscard]] int fd() const { return from_.get(); }
  [[nodiscard]] bool failed() const { return failed_; }

  /// Takes what is there, though no more than a pipe holds: a cell that never stops writing must not keep the loop from
  /// signals. False at the end.
  bool drain() {
    constexpr std::size_t kAtOnce = std::size_t{64} << 10;
    constexpr int kMostReads = 16;
    std::string bytes(kAtOnce, '\0');
    for (int i = 0; i < kMostReads; ++i) {
      const ssize_t got = ::read(from_.get(), bytes.data(), bytes.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return got < 0 && errno == EAGAIN;
      const std::string_view text(bytes.data(), static_cast<std::size_t>(got));
      outputs_.write(name_, text);
      print(terminal_ ? terminal_->add(text) : text);
    }
    return true;
  }

  void finish() {
    (void)drain();
    if (terminal_) print(terminal_->end());
  }

 private:
  void print(std::string_view text) {
    if (!failed_) failed_ = !sys::write_all(to_, text);
  }

  const char* name_;
  int to_;
  NotebookOutputs& outputs_;
  std::optional<run::TerminalText> terminal_;
  UniqueFd from_;
  bool failed_ = false;
};

/// Runs one cell as a client of the session: `session eval` with its outputs in their order.
class CellRun {
 public:
  CellRun(const Invocation& typed, const CellPlace& place, std::uint64_t count)
      : typed_(typed),
        place_(place),
        outputs_(count),
        out_("stdout", STDOUT_FILENO, outputs_),
        err_("stderr", STDERR_FILENO, outputs_) {}

  EndedCell run(const Json& wish) {
    Status done = begin(wish);
    while (done && !ended_) done = loop_->run_once();
    out_.finish();
    err_.finish();
    EndedCell end{.record = last_.value("cell", Json::object()),
                  .status = last_.value("status", exit_status::kCouldNot),
                  .outputs = NotebookOutputs(0),
                  .cancelled_by = cancelled_by_,
                  .is_printed = printed_ && !out_.failed()};
    if (!done) failure_ = done.error();
    if (failure_)
      end.error = std::move(failure_);
    else if (const auto error = last_.find("error"); error != last_.end())
      end.error = session::error_from(*error);
    if (place_.captures && !end.record.empty()) outputs_.add_captured(end.record);
    for (const Json& each : late_) keep(each);
    end.outputs = std::move(outputs_);
    return end;
  }

 private:
  Status begin(const Json& wish) {
    client_.emplace(SBX_TRY(session::Client::connect(place_.host, place_.session)));
    loop_.emplace(SBX_TRY(EventLoop::make()));
    const UniqueFd out = SBX_TRY(out_.open());
    const UniqueFd err = SBX_TRY(err_.open());
    const int fds[] = {out.get(), err.get()};
    SBX_TRY(client_->say(wish, fds));
    for (CellStream* const stream : {&out_, &err_})
      SBX_TRY(loop_->watch(stream->fd(), EPOLLIN, [this, stream](std::uint32_t) {
        if (!stream->drain()) loop_->forget(stream->fd());
      }));
    SBX_TRY(loop_->watch(place_.signals, EPOLLIN, [this](std::uint32_t) { pass_signal_on(); }));
    return loop_->watch(client_->fd(), EPOLLIN, [this](std::uint32_t) { hear(); });
  }

  void pass_signal_on() {
    signalfd_siginfo info{};
    while (::read(place_.signals, &info, sizeof info) == sizeof info) {
      cancelled_by_ = static_cast<int>(info.ssi_signo);
      (void)client_->say({{"cancel", cancelled_by_}});
    }
  }

  void hear() {
    auto packet = client_->next();
    if (packet && packet->contains("event")) return take(*packet);
    ended_ = true;
    if (packet)
      last_ = std::move(*packet);
    else
      failure_ = std::move(packet).error();
  }

  /// What was printed before belongs before it.
  void take(const Json& event) {
    (void)out_.drain();
    (void)err_.drain();
    if (place_.captures) return late_.push_back(event);
    keep(event);
    const Json& what = event["what"];
    if (event["event"] == "error") return tell_error(what);
    const char* const cure =
        typed_.bring_out.folder.empty() ? "--out DIR saves it in the notebook" : "";
    printed_ = show_result(what, typed_.output.quiet, cure) && printed_;
  }

  void keep(const Json& event) {
    if (event["event"] == "error") return outputs_.add_error(event["what"]);
    outputs_.add_result(event["what"]);
  }

  const Invocation& typed_;
  const CellPlace& place_;
  NotebookOutputs outputs_;
  CellStream out_;
  CellStream err_;
  std::optional<session::Client> client_;
  std::optional<EventLoop> loop_;
  std::vector<Json> late_;  ///< events that follow the captured streams
  bool ended_ = false;
  bool printed_ = true;
  int cancelled_by_ = 0;
  std::optional<Error> failure_;
  Json last_ = Json::object();
};

}  // namespace

EndedCell run_cell(const Invocation& typed, const CellPlace& place, const Json& wish,
                   std::uint64_t count) {
  return CellRun(typed, place, count).run(wish);
}

}  // namespace sbx::cli

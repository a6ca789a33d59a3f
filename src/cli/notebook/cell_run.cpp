#include "cli/notebook/cell_run.hpp"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/event_loop.hpp"
#include "base/sys.hpp"
#include "cli/cell_stream.hpp"
#include "cli/cell_words.hpp"
#include "protocol/packet.hpp"
#include "run/terminal_text.hpp"
#include "session/client.hpp"
#include "session/json.hpp"

namespace sbx::cli {
namespace {

using session::member_or;
using session::part;

/// One stream of a cell: printed while it comes, and kept for the notebook.
class NotebookStream {
 public:
  NotebookStream(const char* name, int to, NotebookOutputs& outputs, Progress& progress)
      : name_(name), to_(to), outputs_(outputs), progress_(progress) {
    if (::isatty(to) == 1) terminal_.emplace();
  }

  /// The writing end.
  Result<UniqueFd> open() {
    return stream_.open([this](std::string_view text) {
      outputs_.write(name_, text);
      print(terminal_ ? terminal_->add(text) : text);
    });
  }
  [[nodiscard]] CellStream& stream() { return stream_; }
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

  /// What is there when the cell has ended; a process that goes on writing is not waited for.
  void finish() {
    constexpr int kMostReads = 64;
    for (int i = 0; i < kMostReads && stream_.read() && stream_.has_some(); ++i) stream_.deliver();
    stream_.deliver();
    if (terminal_) print(terminal_->end());
  }

 private:
  void print(std::string_view text) {
    if (failure_ || text.empty()) return;
    if (terminal_) progress_.clear(!text.ends_with('\n'));
    if (Status written = sys::write_all(to_, text); !written) {
      failure_ = std::move(written).error();
      failure_->message = std::string("cannot write to ") + name_;
    }
  }

  const char* name_;
  int to_;
  NotebookOutputs& outputs_;
  Progress& progress_;
  std::optional<run::TerminalText> terminal_;
  CellStream stream_;
  std::optional<Error> failure_;
};

/// Text that a record has captured; given away piece by piece.
struct Captured {
  std::string name;
  std::string text;
  std::size_t given = 0;

  [[nodiscard]] std::string_view until(std::uint64_t position) {
    const std::size_t end =
        std::max<std::size_t>(given, std::min<std::uint64_t>(position, text.size()));
    const std::size_t from = std::exchange(given, end);
    return std::string_view(text).substr(from, end - from);
  }
};

/// Nothing where a part is missing or is not text: then bytes have no place in it.
std::optional<Captured> captured_in(const Json& record, const char* name) {
  const Json& stream = part(record, name);
  const Json text = part(stream, "text");
  if (!text.is_string() || member_or(stream, "truncated", false) ||
      member_or(stream, "encoding", "") != "utf-8")
    return std::nullopt;
  return Captured{.name = name, .text = text.get<std::string>()};
}

/// Runs one cell as a client of the session: `session eval` with its outputs in their order.
class NotebookCellRun {
 public:
  NotebookCellRun(const Invocation& typed, const CellPlace& place, std::uint64_t count)
      : typed_(typed),
        place_(place),
        outputs_(count),
        out_("stdout", STDOUT_FILENO, outputs_, place.progress),
        err_("stderr", STDERR_FILENO, outputs_, place.progress) {}

  EndedCell run(const Json& request) {
    place_.progress.begin();
    Status done = begin(request);
    while (done && !ended_) done = loop_->run_once();
    place_.progress.clear();
    out_.finish();
    err_.finish();
    EndedCell end{.record = part(last_, "cell"),
                  .status = member_or(last_, "status", exit_status::kCouldNot),
                  .outputs = NotebookOutputs(0),
                  .cancelled_by = cancelled_by_,
                  .unwritten = unwritten()};
    if (!done) failure_ = done.error();
    if (failure_)
      end.error = std::move(failure_);
    else if (const auto error = last_.find("error"); error != last_.end())
      end.error = protocol::error_from(*error);
    if (place_.captures) keep_captured(end.record);
    end.outputs = std::move(outputs_);
    return end;
  }

 private:
  [[nodiscard]] std::optional<Error> unwritten() const {
    for (const NotebookStream* const each : {&out_, &err_})
      if (each->failure()) return each->failure();
    if (printed_) return std::nullopt;
    return Error{.kind = ErrorKind::host,
                 .code = "cannot-write",
                 .message = "cannot write the values of cells to stdout"};
  }

  Status begin(const Json& request) {
    client_.emplace(SBX_TRY(session::Client::connect(place_.host, place_.session)));
    loop_.emplace(SBX_TRY(EventLoop::make()));
    const UniqueFd out = SBX_TRY(out_.open());
    const UniqueFd err = SBX_TRY(err_.open());
    const int fds[] = {out.get(), err.get()};
    SBX_TRY(client_->send(request, fds));
    for (NotebookStream* const each : {&out_, &err_})
      SBX_TRY(loop_->watch(each->stream().fd(), EPOLLIN,
                           [this, &stream = each->stream()](std::uint32_t) { read(stream); }));
    SBX_TRY(loop_->watch(place_.signals, EPOLLIN, [this](std::uint32_t) { pass_signal_on(); }));
    if (place_.progress.is_shown()) tick_later();
    return loop_->watch(client_->fd(), EPOLLIN, [this](std::uint32_t) { hear_all(); });
  }

  void tick_later() {
    loop_->after(std::chrono::seconds(1), [this] {
      place_.progress.tick(place_.words);
      tick_later();
    });
  }

  void pass_signal_on() {
    signalfd_siginfo info{};
    while (::read(place_.signals, &info, sizeof info) == sizeof info) {
      cancelled_by_ = static_cast<int>(info.ssi_signo);
      (void)client_->send({{"cancel", cancelled_by_}});
    }
  }

  void read(CellStream& stream) {
    const bool has_more = stream.read();
    hear_all();
    stream.deliver();
    if (!has_more) loop_->forget(stream.fd());
  }

  /// What is there: whoever has read a stream may have taken it already.
  void hear_all() {
    while (!ended_ && client_->has_more()) on_message();
  }

  void on_message() {
    auto packet = client_->next_whole();
    if (packet && packet->contains("event")) return take(*packet);
    ended_ = true;
    if (packet)
      last_ = std::move(*packet);
    else
      failure_ = std::move(packet).error();
  }

  /// What was printed before belongs before it.
  void take(const Json& event) {
    if (place_.captures) return late_.push_back(event);
    out_.stream().deliver_until(member_or(event, "after_out", std::uint64_t{0}));
    err_.stream().deliver_until(member_or(event, "after_err", std::uint64_t{0}));
    keep(event);
    const Json& what = part(event, "what");
    const std::string kind = member_or(event, "event", "");
    place_.progress.clear();
    if (kind == "error") return tell_error(what, paint_for(typed_.output.color, STDERR_FILENO));
    if (kind != "result") return;
    const char* const cure =
        typed_.bring_out.directory.empty() ? "--out DIR saves it in the notebook" : "";
    if (out_.failure()) return;  // that is said once
    printed_ = show_result(what, typed_.output.quiet, cure) && printed_;
  }

  void keep_captured(const Json& record) {
    auto out = record.empty() ? std::nullopt : captured_in(record, "stdout");
    auto err = record.empty() ? std::nullopt : captured_in(record, "stderr");
    const bool has_places = out && err;
    if (!has_places && !record.empty()) outputs_.add_captured(record);
    const auto give = [&](std::uint64_t out_end, std::uint64_t err_end) {
      if (!has_places) return;
      outputs_.write(out->name, out->until(out_end));
      outputs_.write(err->name, err->until(err_end));
    };
    for (const Json& each : late_) {
      give(member_or(each, "after_out", std::uint64_t{0}),
           member_or(each, "after_err", std::uint64_t{0}));
      keep(each);
    }
    give(UINT64_MAX, UINT64_MAX);
  }

  void keep(const Json& event) {
    const Json& what = part(event, "what");
    const std::string kind = member_or(event, "event", "");
    if (kind == "error") return outputs_.add_error(what);
    if (kind == "clear") return outputs_.clear(member_or(what, "wait", false));
    if (kind == "place") return outputs_.add_place(member_or(what, "display_id", ""));
    outputs_.add_result(what);
  }

  const Invocation& typed_;
  const CellPlace& place_;
  NotebookOutputs outputs_;
  NotebookStream out_;
  NotebookStream err_;
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

EndedCell run_notebook_cell(const Invocation& typed, const CellPlace& place, const Json& request,
                            std::uint64_t count) {
  return NotebookCellRun(typed, place, count).run(request);
}

}  // namespace sbx::cli

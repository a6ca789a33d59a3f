#include "cli/notebook/cell_run.hpp"

#include <sys/epoll.h>
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
#include "base/signals.hpp"
#include "base/sys.hpp"
#include "cli/cell_words.hpp"
#include "client/cell.hpp"
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

  [[nodiscard]] client::CellStream::Deliver deliver() {
    return [this](std::string_view text) {
      outputs_.write(name_, text);
      print(terminal_ ? terminal_->add(text) : text);
    };
  }
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

  void finish() {
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

  EndedCell run(const protocol::EvalRequest& request) {
    place_.progress.begin();
    Status done = begin(request);
    while (done && !ended_) done = loop_->run_once();
    if (done && *ended_) last_ = std::move(**ended_);
    if (done && !*ended_) failure_ = ended_->error();
    place_.progress.clear();
    out_.finish();
    err_.finish();
    EndedCell end{
        .record = done && *ended_ ? write_fields(last_.cell, Form::document) : Json::object(),
        .status = last_.status,
        .notes = last_.notes.value_or(std::vector<std::string>()),
        .outputs = NotebookOutputs(0),
        .cancelled_by = cancelled_by_,
        .unwritten = unwritten()};
    if (!done) failure_ = done.error();
    if (failure_)
      end.error = std::move(failure_);
    else if (last_.failure)
      end.error = protocol::error_of(std::move(*last_.failure));
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

  Status begin(const protocol::EvalRequest& request) {
    session::Client connection = SBX_TRY(session::Client::connect(place_.host, place_.session));
    loop_.emplace(SBX_TRY(EventLoop::make()));
    cell_.emplace(std::move(connection), request);
    SBX_TRY(cell_->attach(
        *loop_,
        {.out = out_.deliver(),
         .err = err_.deliver(),
         .event = [this](const protocol::CellEvent& event) { take(event); },
         .ended = [this](client::Cell::Ended ended) { ended_.emplace(std::move(ended)); }}));
    if (place_.progress.is_shown()) tick_later();
    return loop_->watch(place_.signals, EPOLLIN, [this](std::uint32_t) { pass_signal_on(); });
  }

  void tick_later() {
    loop_->after(std::chrono::seconds(1), [this] {
      place_.progress.tick(place_.words);
      tick_later();
    });
  }

  void pass_signal_on() {
    while (const int signal = signals::next(place_.signals)) {
      cancelled_by_ = signal;
      cell_->cancel(signal);
    }
  }

  /// What was printed before it has been told.
  void take(const protocol::CellEvent& event) {
    if (place_.captures) return late_.push_back(event);
    keep(event);
    place_.progress.clear();
    if (event.failure)
      return tell_error(*event.failure, paint_for(typed_.output.color, STDERR_FILENO));
    if (!event.result) return;
    const char* const cure =
        typed_.bring_out.directory.empty() ? "--out DIR saves it in the notebook" : "";
    if (out_.failure()) return;  // that is said once
    printed_ = show_result(*event.result, typed_.output.quiet, cure) && printed_;
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
    for (const protocol::CellEvent& each : late_) {
      give(each.after_out, each.after_err);
      keep(each);
    }
    give(UINT64_MAX, UINT64_MAX);
  }

  void keep(const protocol::CellEvent& event) {
    if (event.failure) return outputs_.add_error(*event.failure);
    if (event.clear) return outputs_.clear(event.clear->wait);
    if (event.place) return outputs_.add_place(event.place->display_id);
    if (event.result) outputs_.add_result(*event.result);
  }

  const Invocation& typed_;
  const CellPlace& place_;
  NotebookOutputs outputs_;
  NotebookStream out_;
  NotebookStream err_;
  std::optional<EventLoop> loop_;
  std::optional<client::Cell> cell_;
  std::vector<protocol::CellEvent> late_;  ///< events that follow the captured streams
  std::optional<client::Cell::Ended> ended_;
  bool printed_ = true;
  int cancelled_by_ = 0;
  std::optional<Error> failure_;
  protocol::CellEnded last_{.status = exit_status::kCouldNot};
};

}  // namespace

EndedCell run_notebook_cell(const Invocation& typed, const CellPlace& place,
                            const protocol::EvalRequest& request, std::uint64_t count) {
  return NotebookCellRun(typed, place, count).run(request);
}

}  // namespace sbx::cli

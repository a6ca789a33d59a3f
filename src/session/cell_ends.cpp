#include "session/cell_ends.hpp"

#include <algorithm>
#include <csignal>

#include "record/words.hpp"

namespace sbx::session {
namespace {

using record::CellEnd;
using record::CellState;

}  // namespace

CellEnd end_by_interrupt() {
  return {.how = CellEnd::How::interrupted,
          .signal = SIGINT,
          .detail = "interrupted by sbx session interrupt"};
}

CellEnd end_by_time(Milliseconds limit) {
  return {.how = CellEnd::How::over_budget,
          .budget = Budget::wall_time,
          .detail = "wall-time budget of " + describe(limit) + " spent (limits.wall_time)"};
}

CellEnd end_by_output(const run::CellOutput::Target& target) {
  return {.how = CellEnd::How::over_budget,
          .budget = Budget::output,
          .detail = target.capture ? "more than output.stdout or output.stderr written, with "
                                     "output.exceed = \"kill\""
                                   : "more than " + describe(target.caps->passed.value) +
                                         " written to stdout or stderr (output.passed)"};
}

/// As SIGPIPE ends a call.
CellEnd end_without_reader() {
  return {.how = CellEnd::How::cancelled,
          .signal = SIGPIPE,
          .detail = "cancelled by SIGPIPE (the reader of its output has left)"};
}

CellEnd end_by_client(Json message) {
  const auto asked = read_fields<protocol::CancelMessage>(std::move(message));
  return {.how = CellEnd::How::cancelled, .signal = asked ? asked->cancel : SIGINT};
}

CellEnd end_without_client() {
  return {.how = CellEnd::How::cancelled, .signal = SIGHUP, .detail = "its client has gone"};
}

std::string cause_of(const CellEnd& end) {
  switch (end.how) {
    case CellEnd::How::over_budget:
      return "a cell had spent its " + std::string(name_of(end.budget.value_or(Budget::wall_time)));
    case CellEnd::How::interrupted:
      return "sbx session interrupt";
    default:
      return end.detail.empty()
                 ? "a cell was cancelled by " + record::signal_name(end.signal.value_or(SIGINT))
                 : "a cell was cancelled: " + end.detail;
  }
}

void answer_at_end(OpenCell& cell, const run::Answer& answer, bool was_ready, bool was_lost) {
  const bool was_its_own = cell.said || !was_ready;
  if (!answer.errors.empty()) return cell.answer(answer.errors.front());
  if (was_ready || was_lost) cell.record.state = CellState::lost;  // else there was nothing
  if (cell.said && cell.said->is_done()) {
    // Its answer stands.
  } else if (was_its_own && answer.outcome) {
    (void)cell.decide(record::end_with(*answer.outcome));
  } else {
    (void)cell.decide({.how = CellEnd::How::cancelled,
                       .signal = SIGTERM,
                       .detail = "the context ended before it was this cell's turn"});
  }
  if (answer.outcome && was_its_own) {
    const Usage& used = answer.outcome->usage;
    cell.record.denials = answer.outcome->denials;
    cell.record.limits_met = answer.outcome->limits_met;
    cell.record.network_failures = answer.outcome->network_failures;
    cell.record.cpu_ms = used.user_ms + used.system_ms -
                         std::min(used.user_ms + used.system_ms, cell.cpu_before / 1000);
  }
  cell.answer();
}

}  // namespace sbx::session

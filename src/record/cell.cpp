#include "record/cell.hpp"

#include <csignal>
#include <variant>

#include "base/text.hpp"
#include "record/limit_texts.hpp"
#include "record/parts.hpp"
#include "record/record.hpp"
#include "record/words.hpp"

namespace sbx::record {
namespace {

/// 0: none that would be of use if it were larger.
std::uint64_t value_of(const Cell& cell, Budget budget) {
  const policy::Limits& limits = cell.policy->limits;
  const policy::Output& output = cell.policy->output;
  switch (budget) {
    case Budget::wall_time:
      return static_cast<std::uint64_t>(limits.wall_time.value.count());
    case Budget::cpu_time:
      return static_cast<std::uint64_t>(limits.cpu_time.value.count());
    case Budget::memory:
      return limits.memory.value.count;
    case Budget::file_size:
      return limits.file_size.value.count;
    case Budget::output:
      if (!cell.out.text) return output.passed.value.count;
      return cell.out.truncated ? output.stdout_.value.count : output.stderr_.value.count;
    case Budget::disk:
      return 0;
  }
  return 0;
}

/// What would have let the cell go on. Empty where its budget is not the key that the sentence
/// names: one of the session, or one outside of sbx.
std::string cure_of_budget(const Cell& cell, Budget budget) {
  const std::string name = sbx::name_of(budget);
  const bool is_output = budget == Budget::output;
  const LimitText* const limit = find_limit(name);
  if (!cell.policy || limit == nullptr ||
      cell.end.detail.find(is_output ? "output." : "limits." + name) == std::string::npos)
    return {};
  const std::uint64_t value = value_of(cell, budget);
  if (value == 0) return {};
  return is_output ? twice(*limit, value)
                   : cure_of(*limit, value, option_that_set(&*cell.policy, "limits." + name));
}

/// What a cell's own code decided: its exception, or the status it asked to exit with. An error
/// with a kind is of the directory in which it should have begun: as of a call, nothing ran.
int status_of_answer(const std::optional<protocol::InterpreterAnswer>& answer) {
  if (!answer) return 1;
  if (!answer->ok && answer->error && answer->error->kind) return exit_status::kCouldNot;
  if (!answer->exit) return answer->ok ? 0 : 1;
  const auto status = static_cast<int>(*answer->exit & 0xFF);
  return status == 0 && !answer->ok ? 1 : status;  // 256, say
}

/// Why a cell that answered did not succeed.
std::string failure_of(const std::optional<protocol::InterpreterAnswer>& answer) {
  constexpr std::size_t kMost = 300;
  if (!answer) return "the interpreter gave no answer";
  if (answer->error) {
    const auto& [name, value, traceback, line, kind] = *answer->error;
    const std::string text = name + (value.empty() ? "" : ": " + value);
    return text.size() > kMost ? lossy_utf8(text.substr(0, kMost)) + " ..." : text;
  }
  if (answer->exit) return "the cell exited with status " + std::to_string(*answer->exit);
  return "the cell did not come to its end";
}

std::string detail_of(const Cell& cell) {
  const CellEnd& end = cell.end;
  if (!end.detail.empty()) return lossy_utf8(end.detail);
  if (end.how == CellEnd::How::cancelled)
    return "cancelled by " + signal_name(end.signal.value_or(SIGINT));
  if (end.how == CellEnd::How::answered && status_of_answer(cell.answer) != 0)
    return failure_of(cell.answer);
  if (end.how == CellEnd::How::answered && cell.write_error)
    return "cannot write " + cell.write_error->stream;
  return end.how == CellEnd::How::answered ? "" : name_of(end.how);
}

protocol::CellOutcome outcome_of(const Cell& cell) {
  const CellEnd& end = cell.end;
  protocol::CellOutcome outcome{
      .status = end.how,
      .exit_code = end.exit_code,
      .signal = end.signal,
      .success = end.how == CellEnd::How::answered && status_of_answer(cell.answer) == 0,
      .detail = detail_of(cell)};
  if (end.how == CellEnd::How::denied) outcome.reason = "syscall";
  if (end.how == CellEnd::How::lost) outcome.code = "init-killed";
  if (!end.budget) return outcome;
  outcome.reason = sbx::name_of(*end.budget);
  if (std::string rule = rule_of(cell.policy, sbx::name_of(*end.budget),
                                 cell.out.text ? "output.exceed" : "output.passed");
      !rule.empty())
    outcome.rule = std::move(rule);
  if (std::string cure = cure_of_budget(cell, *end.budget); !cure.empty())
    outcome.hint = std::move(cure);
  return outcome;
}

protocol::CellRecord with_outcome(const Cell& cell, protocol::CellOutcome outcome) {
  protocol::CellRecord record{.sbx = SBX_VERSION,
                              .id = cell.id,
                              .session = {.name = cell.name.session,
                                          .id = cell.name.session_id,
                                          .context = cell.context,
                                          .language = cell.language},
                              .policy = policy_facts(cell.policy),
                              .outcome = std::move(outcome),
                              .state = cell.state,
                              .stdout_ = stream_facts(cell.out),
                              .stderr_ = stream_facts(cell.err),
                              .answer = cell.answer,
                              .denials = cell.denials,
                              .limits_met = limits_met_facts(cell.limits_met, cell.policy),
                              .network = {.failed = cell.network_failures},
                              .late_bytes = cell.late_bytes,
                              .usage = {.wall_ms = cell.wall_ms, .cpu_ms = cell.cpu_ms},
                              .degraded = cell.degraded};
  if (cell.name.number > 0) record.session.call = cell.name.number;
  if (!cell.hints.empty()) record.hints = cell.hints;
  if (cell.write_error) record.write_error = write_error_facts(*cell.write_error);
  if (!cell.lost_because.empty()) record.lost_because = lossy_utf8(cell.lost_because);
  return record;
}

struct EndOf {
  const std::string& detail;

  CellEnd operator()(const Exited& end) const {
    return {.how = CellEnd::How::died,
            .exit_code = end.code,
            .detail = "the interpreter exited with status " + std::to_string(end.code)};
  }
  CellEnd operator()(const Signaled& end) const {
    return {.how = CellEnd::How::died, .signal = end.signal, .detail = detail};
  }
  CellEnd operator()(const OverBudget& end) const {
    return {.how = CellEnd::How::over_budget, .budget = end.budget, .detail = detail};
  }
  CellEnd operator()(const Denied&) const {
    return {.how = CellEnd::How::denied, .detail = detail};
  }
  CellEnd operator()(const Cancelled& end) const {
    return {.how = CellEnd::How::cancelled, .signal = end.signal, .detail = detail};
  }
  CellEnd operator()(const Lost&) const { return {.how = CellEnd::How::lost, .detail = detail}; }
};

}  // namespace

protocol::CellRecord record_of(const Cell& cell) {
  return with_outcome(cell, outcome_of(cell));
}

protocol::CellRecord record_of(const Cell& cell, const Error& error) {
  run::Answer answer;
  answer.errors = {error};
  return with_outcome(cell, read_fields<protocol::CellOutcome>(outcome_json(answer))
                                .value_or(protocol::CellOutcome{
                                    .status = CellEnd::How::setup_failed, .detail = error.text()}));
}

int exit_status_of(const Cell& cell) {
  if (cell.write_error) return exit_status::kCouldNot;
  switch (cell.end.how) {
    case CellEnd::How::answered:
      return status_of_answer(cell.answer);
    case CellEnd::How::over_budget:
      return sbx::exit_status_of(cell.end.budget.value_or(Budget::wall_time));
    case CellEnd::How::interrupted:
    case CellEnd::How::cancelled:
      return sbx::exit_status_of(Cancelled{cell.end.signal.value_or(2)});
    case CellEnd::How::died:
      if (cell.end.signal) return sbx::exit_status_of(Signaled{*cell.end.signal});
      // It did not do what it was asked, whatever it says.
      return cell.end.exit_code.value_or(0) != 0 ? *cell.end.exit_code : 1;
    case CellEnd::How::denied:
      return exit_status::kDeniedCall;
    case CellEnd::How::lost:
    case CellEnd::How::setup_failed:
      return exit_status::kCouldNot;
  }
  return exit_status::kCouldNot;
}

CellEnd end_with(const Outcome& outcome) {
  return std::visit(EndOf{outcome.detail}, outcome.verdict);
}

}  // namespace sbx::record

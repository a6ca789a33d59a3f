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

const char* end_name(CellEnd::How how) {
  switch (how) {
    case CellEnd::How::answered:
      return "answered";
    case CellEnd::How::over_budget:
      return "over-budget";
    case CellEnd::How::interrupted:
      return "interrupted";
    case CellEnd::How::cancelled:
      return "cancelled";
    case CellEnd::How::died:
      return "died";
    case CellEnd::How::lost:
      return "lost";
    case CellEnd::How::denied:
      return "denied";
    case CellEnd::How::setup_failed:
      return "setup-failed";
  }
  return "setup-failed";
}

const char* state_name(CellState state) {
  switch (state) {
    case CellState::fresh:
      return "new";
    case CellState::kept:
      return "kept";
    case CellState::lost:
      return "lost";
  }
  return "lost";
}

Json optional_int(const std::optional<int>& number) {
  return number ? Json(*number) : Json(nullptr);
}

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
int status_of_answer(const Json& answer) {
  if (!answer.is_object()) return 1;
  const bool ok = answer.value("ok", false);
  if (const auto error = answer.find("error");
      !ok && error != answer.end() && error->is_object() && error->contains("kind"))
    return exit_status::kCouldNot;
  const Json exit = answer.value("exit", Json());
  if (!exit.is_number_integer()) return ok ? 0 : 1;
  const auto status = static_cast<int>(exit.get<std::int64_t>() & 0xFF);
  return status == 0 && !ok ? 1 : status;  // 256, say
}

/// Why a cell that answered did not succeed.
std::string failure_of(const Json& answer) {
  constexpr std::size_t kMost = 300;
  if (!answer.is_object()) return "the interpreter gave no answer";
  if (const auto error = answer.find("error"); error != answer.end() && error->is_object()) {
    const std::string value = error->value("value", "");
    const std::string text = error->value("name", "") + (value.empty() ? "" : ": " + value);
    return text.size() > kMost ? lossy_utf8(text.substr(0, kMost)) + " ..." : text;
  }
  const Json exit = answer.value("exit", Json());
  if (exit.is_number_integer())
    return "the cell exited with status " + std::to_string(exit.get<std::int64_t>());
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
  return end.how == CellEnd::How::answered ? "" : end_name(end.how);
}

Json end_json(const Cell& cell) {
  const CellEnd& end = cell.end;
  Json json{{"status", end_name(end.how)},
            {"reason", nullptr},
            {"exit_code", optional_int(end.exit_code)},
            {"signal", optional_int(end.signal)},
            {"success", end.how == CellEnd::How::answered && status_of_answer(cell.answer) == 0},
            {"detail", detail_of(cell)}};
  if (end.how == CellEnd::How::denied) json["reason"] = "syscall";
  if (end.how == CellEnd::How::lost) json["code"] = "init-killed";
  if (!end.budget) return json;
  json["reason"] = sbx::name_of(*end.budget);
  json["rule"] = rule_of(cell.policy, sbx::name_of(*end.budget),
                         cell.out.text ? "output.exceed" : "output.passed");
  if (std::string cure = cure_of_budget(cell, *end.budget); !cure.empty())
    json["hint"] = std::move(cure);
  return json;
}

Json with_outcome(const Cell& cell, Json outcome) {
  Json json{{"schema", "sbx.cell/1"},
            {"sbx", SBX_VERSION},
            {"id", cell.id},
            {"session",
             {{"name", cell.name.session},
              {"id", cell.name.session_id},
              {"context", cell.context},
              {"language", cell.language},
              {"call", cell.name.number > 0 ? Json(cell.name.number) : Json(nullptr)}}},
            {"policy", policy_json(cell.policy)},
            {"outcome", std::move(outcome)},
            {"state", state_name(cell.state)},
            {"stdout", stream_json(cell.out)},
            {"stderr", stream_json(cell.err)},
            {"answer", cell.answer},
            {"denials", denials_json(cell.denials)},
            {"limits_met", limits_met_json(cell.limits_met, cell.policy)},
            {"network", {{"failed", failures_json(cell.network_failures)}}},
            {"late_bytes", cell.late_bytes},
            {"usage", {{"wall_ms", cell.wall_ms}, {"cpu_ms", cell.cpu_ms}}},
            {"degraded", degraded_json(cell.degraded)}};
  if (!cell.hints.empty()) json["hints"] = hints_json(cell.hints);
  if (cell.write_error) json["write_error"] = write_error_json(*cell.write_error);
  if (!cell.lost_because.empty()) json["lost_because"] = lossy_utf8(cell.lost_because);
  return json;
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

Json cell_json(const Cell& cell) {
  return with_outcome(cell, end_json(cell));
}

Json cell_json(const Cell& cell, const Error& error) {
  run::Answer answer;
  answer.errors = {error};
  return with_outcome(cell, outcome_json(answer));
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

#include "record/record.hpp"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>

#include "base/json.hpp"
#include "base/obstacle.hpp"
#include "base/text.hpp"
#include "changes/facts.hpp"
#include "plan/tier/tiers.hpp"
#include "policy/keys.hpp"
#include "policy/load.hpp"
#include "policy/write.hpp"
#include "protocol/entries.hpp"
#include "record/codes.hpp"
#include "record/parts.hpp"

namespace sbx::record {
namespace {

const char* error_reason(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::policy:
      return "policy";
    case ErrorKind::host:
      return "host";
    case ErrorKind::setup:
    case ErrorKind::internal:
      return "setup";
    case ErrorKind::not_found:
      return "not-found";
    case ErrorKind::not_executable:
      return "not-executable";
  }
  return "setup";
}

/// The exceeded limit: limits.disk_files ends a run as limits.disk does.
std::string spent_limit(const Outcome& outcome, Budget budget) {
  const auto met = [&](std::string_view limit) {
    return std::ranges::any_of(outcome.limits_met,
                               [&](const LimitMet& each) { return each.limit == limit; });
  };
  if (budget == Budget::disk && met("disk_files") && !met("disk")) return "disk_files";
  return name_of(budget);
}

Json or_null(std::string text) {
  return text.empty() ? Json(nullptr) : Json(std::move(text));
}

struct OutcomeJson {
  const std::string& detail;

  Json operator()(const Exited& end) const {
    return make("exited", nullptr, end.code, nullptr, end.code == 0);
  }
  Json operator()(const Signaled& end) const {
    return make("signaled", nullptr, nullptr, end.signal, false);
  }
  Json operator()(const OverBudget& end) const {
    return make("over-budget", name_of(end.budget), nullptr, nullptr, false);
  }
  Json operator()(const Denied&) const {
    return make("denied", "syscall", nullptr, nullptr, false);
  }
  Json operator()(const Cancelled& end) const {
    return make("cancelled", nullptr, nullptr, end.signal, false);
  }
  Json operator()(const Lost&) const {
    Json json = make("lost", nullptr, nullptr, nullptr, false);
    json["code"] = "init-killed";
    return json;
  }

  [[nodiscard]] Json make(const char* status, const Json& reason, const Json& code,
                          const Json& signal, bool success) const {
    return {{"status", status}, {"reason", reason},   {"exit_code", code},
            {"signal", signal}, {"success", success}, {"detail", detail}};
  }
};

/// Advice against retrying: the policy would refuse the same again. Paths don't count: they are
/// reported only with
/// --explain, and may not be why the command failed.
std::string with_advice(const Outcome& outcome) {
  constexpr std::size_t kMostNames = 3;
  const auto* exited = std::get_if<Exited>(&outcome.verdict);
  const bool failed =
      exited != nullptr ? exited->code != 0 : std::holds_alternative<Signaled>(outcome.verdict);
  std::string names;
  std::size_t count = 0;
  for (const Denial& denial : outcome.denials) {
    if (!is_refusal(denial.kind) || ++count > kMostNames) continue;
    names += (names.empty() ? "" : ", ") + denial.what;
  }
  if (!failed || count == 0) return outcome.detail;
  if (count > kMostNames) names += " and more";
  return outcome.detail + "; refused: " + names + ": this is policy, retrying can't help";
}

/// The first, and the number of further ones.
Error first_of(const policy::Findings& errors) {
  if (errors.empty()) return {.message = "nothing ran"};
  Error first = errors.front();
  if (errors.size() > 1) first.message += fmt::format(" (and {} more findings)", errors.size() - 1);
  return first;
}

Json network_json(const Outcome& outcome) {
  return {{"used", write_list(outcome.network_used, Form::document)},
          {"failed", write_list(outcome.network_failures, Form::document)}};
}

/// How a budget is shown, by its form in base/budgets.hpp.
namespace shown {
void time(Json& json, const std::string& name, Milliseconds value) {
  json[name + "_ms"] = value.count();
}
void time_or_null(Json& json, const std::string& name, Milliseconds value) {
  json[name + "_ms"] = value.count() > 0 ? Json(value.count()) : Json(nullptr);
}
void size(Json& json, const std::string& name, Bytes value) {
  json[name + "_bytes"] = value.count;
}
template <class Number>
void number(Json& json, const std::string& name, Number value) {
  json[name] = value;
}
template <class Value>
void not_shown(Json& /*json*/, const std::string& /*name*/, Value /*value*/) {}
}  // namespace shown

std::vector<Degraded> all_degraded(const run::Answer& answer) {
  std::vector<Degraded> all;
  if (answer.plan) all = answer.plan->degraded;
  if (answer.outcome)
    all.insert(all.end(), answer.outcome->degraded.begin(), answer.outcome->degraded.end());
  return all;
}

/// The mechanism that keeps a promise: the usual one, or the substitute listed in `degraded`.
Json means_of(Promise promise, const char* own_means, const std::vector<Degraded>& degraded) {
  for (const Degraded& item : degraded)
    if (item.promise == promise) return item.instead.empty() ? Json(nullptr) : Json(item.instead);
  return own_means;
}

const char* means_or(host::Means means, const char* without) {
  return means == host::Means::none ? without : host::name_of(means);
}

Json enforced_json(const plan::Plan& plan, const std::vector<Degraded>& degraded,
                   const std::string& cpu_time_means = "summed") {
  Json json;
  json["namespaces"] = Json::array();
  for (const plan::Namespace space : plan.namespaces)
    json["namespaces"].push_back(plan::name_of(space));
  json["syscalls"] = plan.filter.program.empty() ? Json(nullptr) : Json("seccomp");
  json["landlock"] = plan.landlock_abi > 0 ? Json(plan.landlock_abi) : Json(nullptr);
  json["network"] = plan.network.allow_list      ? Json("gateway")
                    : plan.network.own_namespace ? Json("namespace")
                    : plan.network.closed        ? Json("seccomp")
                                                 : Json(nullptr);
  json["wall_time"] = plan.budgets.wall_time.count() > 0 ? Json("timer") : Json(nullptr);
  json["cpu_time"] = means_of(Promise::cpu_time, cpu_time_means.c_str(), degraded);
  json["cpus"] = means_or(plan.control_group.cpus, "affinity");
  json["memory"] = means_or(plan.control_group.memory, "polled");
  json["processes"] =
      means_or(plan.control_group.processes, plan.counts_tasks ? "counted" : "rlimit");
  json["disk"] = means_of(Promise::disk, "tmpfs", degraded);
  return json;
}

Json isolation_json(const plan::Plan& plan) {
  const plan::Tier& tier = plan::tier_of(plan.tier);
  return {{"tier", tier.name}, {"form", tier.form.empty() ? Json(nullptr) : Json(tier.form)}};
}

Json appeared_json(const std::vector<Appeared>& appeared) {
  Json list = Json::array();
  for (const Appeared& each : appeared) {
    Json json;
    put_name(json, "path", each.path);
    json["guard"] = each.is_hidden ? "filesystem.deny" : "protected";
    list.push_back(std::move(json));
  }
  return list;
}

/// Names in a patch are quoted as git quotes them, but a text file may contain any bytes.
Json patch_json(const changes::Patch& patch) {
  constexpr std::size_t kLongest = std::size_t{4} << 20;
  Json json;
  if (patch.text.size() > kLongest)
    json["text"] = nullptr;
  else
    put_name(json, "text", patch.text);
  json["bytes"] = patch.text.size();
  json["left"] = changes::left_json(patch.left);
  return json;
}

Json collected_json(const std::string& directory, const workspace::Collected& collected) {
  Json json;
  put_name(json, "directory", directory);
  json["files"] = write_list(collected.files, Form::document);
  json["left"] = changes::left_json(collected.left);
  return json;
}

Json interpreter_json(const std::optional<plan::Plan>& plan) {
  if (!plan || plan->interpreter.path.empty()) return nullptr;
  Json json;
  put_name(json, "path", plan->interpreter.path);
  if (!plan->interpreter.reason.empty()) put_name(json, "reason", plan->interpreter.reason);
  return json;
}

Json mounts_json(const plan::Plan& plan) {
  Json list = Json::array();
  for (const plan::Mount& mount : plan.mounts) {
    Json json{{"kind", name_of(mount.kind())}};
    put_name(json, "target", mount.target);
    if (!mount.source().empty()) put_name(json, "source", mount.source());
    json["read_only"] = mount.read_only();
    if (!mount.origin.text().empty()) put_name(json, "rule", mount.origin.text());
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace

Json limits_json(const plan::Plan& plan) {
  Json json;
#define SBX_BUDGET(name, type, initial, form) shown::form(json, #name, plan.budgets.name);
  SBX_BUDGETS(SBX_BUDGET)
#undef SBX_BUDGET
  json["stdout_bytes"] = plan.output.stdout_cap.count;
  json["stderr_bytes"] = plan.output.stderr_cap.count;
  json["passed_bytes"] = plan.output.passed_cap.count;
  return json;
}

std::vector<std::string> variable_names(const plan::Plan& plan) {
  std::vector<std::string> names;
  for (const std::string& variable : plan.environment)
    names.push_back(variable.substr(0, variable.find('=')));
  return names;
}

Json outcome_json(const run::Answer& answer) {
  if (answer.outcome) {
    const std::string detail = with_advice(*answer.outcome);
    Json json = std::visit(OutcomeJson{detail}, answer.outcome->verdict);
    if (const auto* over = std::get_if<OverBudget>(&answer.outcome->verdict))
      json["rule"] = or_null(rule_of(answer.policy, spent_limit(*answer.outcome, over->budget),
                                     answer.outcome->out.text ? "output.exceed" : "output.passed"));
    return json;
  }
  const Error error = first_of(answer.errors);
  Json json{{"status", "setup-failed"}, {"reason", error_reason(error.kind)},
            {"exit_code", nullptr},     {"signal", nullptr},
            {"success", false},         {"detail", error.text()}};
  json["code"] = error.code;
  if (std::string hint = hint_of(error); !hint.empty()) json["hint"] = std::move(hint);
  if (const Obstacle obstacle = obstacle_of(error); obstacle != Obstacle::none) {
    json["kind"] = name_of(obstacle);
    json["side"] = name_of(error.side);
  }
  return json;
}

std::string record_text(const run::Request& request, const run::Answer& answer) {
  const Outcome nothing;
  const Outcome& outcome = answer.outcome ? *answer.outcome : nothing;
  const changes::BroughtOut& out = answer.brought_out;
  const std::vector<Degraded> degraded = all_degraded(answer);
  Json json;
  json["schema"] = "sbx.run/1";
  json["sbx"] = SBX_VERSION;
  json["id"] = request.id;
  if (request.call)
    json["session"] = {{"name", request.call->session},
                       {"id", request.call->session_id},
                       {"call", request.call->number}};
  json["policy"] = policy_json(answer.policy);
  put_names(json, "command", answer.plan ? answer.plan->command : request.program.operands);
  json["interpreter"] = interpreter_json(answer.plan);
  json["outcome"] = outcome_json(answer);
  json["stdout"] = write_fields(stream_facts(outcome.out), Form::document);
  json["stderr"] = write_fields(stream_facts(outcome.err), Form::document);
  if (outcome.write_error)
    json["write_error"] = write_fields(write_error_facts(*outcome.write_error), Form::document);
  json["limits_met"] =
      write_list(limits_met_facts(outcome.limits_met, answer.policy), Form::document);
  json["denials"] = write_list(outcome.denials, Form::document);
  if (!outcome.hints.empty()) json["hints"] = write_list(outcome.hints, Form::document);
  json["network"] = network_json(outcome);
  json["usage"] = protocol::write_entry(outcome.usage);
  json["limits"] = answer.plan ? limits_json(*answer.plan) : Json(nullptr);
  json["changes"] = write_list(outcome.changes, Form::document);
  if (outcome.changes_left_out > 0) json["changes_left_out"] = outcome.changes_left_out;
  if (!outcome.appeared.empty()) json["appeared"] = appeared_json(outcome.appeared);
  if (!outcome.hazards.empty()) json["hazards"] = write_list(outcome.hazards, Form::document);
  if (outcome.hazards_left_out > 0) json["hazards_left_out"] = outcome.hazards_left_out;
  if (outcome.left_running.count > 0)
    json["left_running"] = protocol::write_entry(outcome.left_running);
  if (out.collected) json["out"] = collected_json(request.bring_out.directory, *out.collected);
  if (out.kept) json["kept"] = write_fields(changes::kept_facts(*out.kept), Form::document);
  if (out.patch) json["patch"] = patch_json(*out.patch);
  if (out.applied)
    json["applied"] = write_fields(changes::applied_facts(*out.applied), Form::document);
  json["isolation"] = answer.plan ? isolation_json(*answer.plan) : Json(nullptr);
  json["enforced"] =
      answer.plan ? enforced_json(*answer.plan, degraded, outcome.cpu_time_means) : Json(nullptr);
  json["degraded"] = write_list(degraded, Form::document);
  return dump(json);
}

std::string plan_text(const run::Answer& answer) {
  const plan::Plan& plan = *answer.plan;
  Json json;
  json["schema"] = "sbx.plan/1";
  json["sbx"] = SBX_VERSION;
  json["policy"] = policy_json(answer.policy);
  put_names(json, "command", plan.command);
  put_name(json, "executable", plan.executable);
  json["interpreter"] = interpreter_json(answer.plan);
  put_name(json, "working_directory", plan.working_directory);
  put_names(json, "environment", variable_names(plan));
  json["mounts"] = mounts_json(plan);
  json["limits"] = limits_json(plan);
  json["isolation"] = isolation_json(plan);
  json["enforced"] = enforced_json(plan, plan.degraded);
  json["degraded"] = write_list(plan.degraded, Form::document);
  return dump(json);
}

}  // namespace sbx::record

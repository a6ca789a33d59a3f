#include "cli/doctor_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>

#include <sbx/outcome.hpp>

#include "base/json.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "cli/answer.hpp"
#include "cli/complaint.hpp"
#include "cli/mcp_install/findings.hpp"
#include "doctor/doctor.hpp"
#include "host/state.hpp"
#include "record/words.hpp"
#include "run/user_settings.hpp"

namespace sbx::cli {
namespace {

using doctor::Finding;
using doctor::State;

struct Section {
  const char* name;   ///< in JSON
  const char* title;  ///< for people
  std::vector<Finding> findings;
};

/// The policies on the command line, or all built-in ones. Errors: policy.
Result<std::vector<policy::Policy>> policies_of(const Invocation& typed,
                                                const policy::LoadContext& context) {
  std::vector<policy::PolicyOperand> operands = typed.policies;
  if (operands.empty()) {
    // What sbx run would take: a name that the configuration has and nobody knows.
    if (auto usual = policy::load({}, {}, context); !usual)
      return fail(std::move(usual.error().front()));
    for (const policy::Builtin& builtin : policy::builtins())
      operands.push_back({std::string(builtin.name)});
  }
  std::vector<policy::Policy> list;
  for (const policy::PolicyOperand& operand : operands) {
    auto policy = policy::load({operand}, {}, context);
    if (!policy) return fail(std::move(policy.error().front()));
    list.push_back(std::move(*policy));
  }
  return list;
}

/// Keeps only a policy's rules on interpreters: they decide which are found.
policy::Policy interpreters_of(const policy::Policy& policy, const policy::LoadContext& context) {
  auto plain = policy::load({{"default"}}, {}, context);
  policy::Policy result = plain ? std::move(*plain) : policy;
  result.interpreters = policy.interpreters;
  result.interpreters.allow.clear();
  return result;
}

std::string mark(State state, const Paint& paint) {
  const std::string word = fmt::format("{:<8}", doctor::state_name(state));
  if (state == State::ok) return paint.green(word);
  return state == State::missing ? paint.red(word) : paint.bold(word);
}

/// Long ones are told once: what comes later names the finding that had it.
class Cures {
 public:
  std::string text(const Finding& finding) {
    constexpr std::size_t kShort = 60;
    if (finding.cure.empty()) return {};
    const auto [told, is_new] = told_.try_emplace(finding.cure, finding.name);
    return "; fix: " + (is_new || finding.cure.size() <= kShort ? printable(finding.cure)
                                                                : "as for " + told->second);
  }

 private:
  std::map<std::string, std::string> told_;
};

std::string line(const Finding& finding, Cures& cures, const Paint& paint) {
  std::string text = fmt::format("  {}{:<20} {}", mark(finding.state, paint), finding.name,
                                 printable(finding.fact));
  if (!finding.consequence.empty()) text += "; " + printable(finding.consequence);
  return text + cures.text(finding) + "\n";
}

/// A missing interpreter is not a fault of the machine: one line covers all of them.
bool is_absent(const Finding& finding) {
  return finding.state == State::missing && finding.code == "not-found";
}

std::string absent_line(const std::vector<Finding>& findings) {
  std::string names;
  for (const Finding& finding : findings)
    if (is_absent(finding)) names += (names.empty() ? "" : ", ") + printable(finding.name);
  if (names.empty()) return {};
  return fmt::format(
      "  {:<8}{}; not on PATH, needed only for their scripts (another name: "
      "[interpreters.extensions])\n",
      "absent", names);
}

std::string for_people(const std::vector<Section>& sections, bool quiet, const Paint& paint) {
  std::string text;
  Cures cures;
  for (const Section& section : sections) {
    std::string lines;
    for (const Finding& finding : section.findings)
      if (!is_absent(finding) && (!quiet || finding.state != State::ok))
        lines += line(finding, cures, paint);
    if (!quiet) lines += absent_line(section.findings);
    if (!lines.empty())
      text += (text.empty() ? "" : "\n") + paint.bold(section.title) + "\n" + lines;
  }
  return text;
}

Json finding_json(const Finding& finding) {
  Json json{{"name", finding.name}, {"state", doctor::state_name(finding.state)}};
  put_name(json, "fact", finding.fact);
  const auto put = [&](const char* key, const std::string& text) {
    if (text.empty())
      json[key] = nullptr;
    else
      put_name(json, key, text);
  };
  put("consequence", finding.consequence);
  put("cure", finding.cure);
  if (!finding.code.empty()) json["code"] = finding.code;
  if (!finding.degraded.empty()) {
    Json names = Json::array();
    // A rule with two weaknesses is listed once by name; people get a line for each.
    for (const Degraded& item : finding.degraded)
      if (std::find(names.begin(), names.end(), Json(item.what())) == names.end())
        names.push_back(item.what());
    json["degraded"] = std::move(names);
  }
  return json;
}

std::string for_programs(const std::vector<Section>& sections, const host::Host& host) {
  Json json{{"schema", "sbx.doctor/1"}, {"sbx", SBX_VERSION}};
  json["caller"] = {{"uid", host.uid}, {"privileged", host.privileged}};
  put_name(json, "directory", host.working_directory);
  for (const Section& section : sections) {
    Json list = Json::array();
    for (const Finding& finding : section.findings) list.push_back(finding_json(finding));
    json[section.name] = std::move(list);
  }
  return dump(json);
}

}  // namespace

int doctor_command(const Invocation& typed) {
  constexpr int kMissing = 1;
  if (!typed.operands.empty())
    return complain(typed, {.kind = ErrorKind::usage,
                            .code = "usage",
                            .message = "\"sbx doctor\" takes no operands",
                            .hint = "sbx doctor --policy POLICY asks about one policy"});
  const auto host = host::probe();
  if (!host) return complain(typed, host.error(), exit_status::kCouldNot);
  const auto context = run::load_context(*host);
  if (!context) return complain(typed, context.error(), exit_status::kCouldNot);
  const auto policies = policies_of(typed, *context);
  if (!policies)
    return complain(typed, policies.error(),
                    policies.error().code == "unknown-policy" ? kUsage : kMissing);
  std::vector<Finding> trials;
  for (const policy::Policy& policy : *policies)
    trials.push_back(doctor::try_policy(*host, policy));
  const bool runs = std::ranges::none_of(
      trials, [](const Finding& trial) { return trial.state == State::missing; });
  std::vector<Finding> machine = doctor::examine_machine(*host);
  std::vector<Finding> isolation;
  if (!host->emulated)
    isolation = doctor::examine_isolation(machine, host->changes_ids, [&] {
      policy::Policy without = policies->front();
      without.isolation.value = policy::Isolation::landlock;
      return doctor::try_policy(*host, without);
    });
  const bool is_asked_for = std::ranges::all_of(*policies, [](const policy::Policy& policy) {
    return policy.isolation.value != policy::Isolation::namespaces;
  });
  if (is_asked_for && !isolation.empty() && isolation.back().state == State::weaker)
    isolation.back().cure.clear();
  std::ranges::move(doctor::examine_directories(*host), std::back_inserter(machine));
  const std::vector<Section> sections = {
      {"machine", "This machine and account", std::move(machine)},
      {"isolation", "Isolation, in the order of trying", std::move(isolation)},
      {"means", "Budgets and rules", doctor::examine_means(trials)},
      {"interpreters", "Interpreters of scripts",
       doctor::examine_interpreters(*host, interpreters_of(policies->front(), *context))},
      {"policies", "Policies, tried in this directory", trials},
      {"clients", "Clients that sbx mcp can be registered with",
       mcp_install::examine_clients(*host)}};
  const std::string text =
      typed.output.json
          ? for_programs(sections, *host)
          : for_people(sections, typed.output.quiet, paint_for(typed.output.color, STDOUT_FILENO));
  const int printed = typed.output.json ? print(text) : print_fitted(text);
  if (printed != kDone) return printed;
  return runs ? 0 : kMissing;
}

}  // namespace sbx::cli

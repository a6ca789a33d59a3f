#include <fmt/format.h>
#include <unistd.h>

#include <sbx/outcome.hpp>

#include "base/json.hpp"
#include "base/text.hpp"
#include "cli/policy/command.hpp"
#include "plan/audit.hpp"
#include "record/words.hpp"

namespace sbx::cli::policy_verb {
namespace {

constexpr std::string_view kCaution =
    "This counts what the policy leaves open. It knows nothing of what lies behind a grant, of the "
    "program, or of holes in the kernel: a low number is not proof, and a high one may be what the "
    "job needs.";

double exposure_of(const plan::AuditItem& item) {
  return item.weight * item.percent / 100.0;
}

std::string audit_for_people(const plan::Audit& audit, const std::string& name,
                             const Paint& paint) {
  std::string text = fmt::format("  {:<28} {:>8}  {}\n", "KEY", "EXPOSURE", "WHAT THE POLICY SAYS");
  for (const plan::AuditItem& item : audit.items) {
    const double open = exposure_of(item);
    const std::string place =
        open > 0 && !item.at.file.empty() ? fmt::format("  ({})", printable(item.at.text())) : "";
    const std::string mark = open > 0 ? paint.red("-") : paint.green("+");
    text += fmt::format("{} {:<28} {:>8}  {}{}\n", mark, item.key,
                        open > 0 ? fmt::format("{:.1f}", open) : "", printable(item.words), place);
  }
  text += fmt::format("\n{} leaves open {:.1f} of 10: {}\n", paint.bold(printable(name)),
                      audit.exposure, paint.bold(std::string(plan::grade_name(audit.grade))));
  text += fmt::format("In a session, {}.\n", audit.session);
  return text + std::string(kCaution) + "\n";
}

std::string audit_for_programs(const plan::Audit& audit, const std::string& name) {
  Json json{{"schema", "sbx.audit/1"}, {"sbx", SBX_VERSION}};
  put_name(json, "policy", name);
  json["exposure"] = static_cast<double>(static_cast<int>(audit.exposure * 10 + 0.5)) / 10;
  json["grade"] = plan::grade_name(audit.grade);
  json["caution"] = kCaution;
  json["session"] = audit.session;
  Json items = Json::array();
  for (const plan::AuditItem& item : audit.items) {
    Json entry{{"key", item.key}, {"weight", item.weight}, {"percent", item.percent}};
    put_name(entry, "words", item.words);
    entry["origin"] = origin_json(item.at);
    items.push_back(std::move(entry));
  }
  json["items"] = std::move(items);
  return dump(json);
}

}  // namespace

int audit(const Invocation& typed) {
  if (typed.operands.size() != 1)
    return usage(typed, "\"sbx policy audit\" needs one policy", "\"sbx policy list\" names them");
  const auto place = look();
  if (!place) return complain(typed, place.error(), exit_status::kCouldNot);
  const auto policy = load_operand(typed.operands.front(), {}, place->context);
  if (!policy) return complain(typed, policy.error());
  const plan::Audit audit = plan::audit(*policy);
  if (typed.output.json) return print(audit_for_programs(audit, policy->name.value));
  return print_fitted(
      audit_for_people(audit, policy->name.value, paint_for(typed.output.color, STDOUT_FILENO)));
}

}  // namespace sbx::cli::policy_verb

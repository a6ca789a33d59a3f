#include <fmt/format.h>
#include <unistd.h>

#include <sbx/outcome.hpp>

#include "base/text.hpp"
#include "cli/policy/command.hpp"
#include "cli/policy/findings.hpp"
#include "plan/call_warnings.hpp"
#include "plan/filter/filter.hpp"
#include "policy/warnings.hpp"
#include "record/words.hpp"

namespace sbx::cli::policy_verb {
namespace {

std::string check_for_people(const std::vector<Checked>& files, const Paint& paint) {
  std::string text;
  std::size_t count = 0;
  for (const Checked& checked : files) {
    text += checked.findings.empty() ? fmt::format("{}: good\n", printable(checked.file))
                                     : record::findings_text(checked.findings, paint);
    for (const std::string& warning : checked.warnings)
      text += fmt::format("  {} {}\n", paint.bold("warning:"), printable(warning));
    count += checked.findings.size();
  }
  if (count > 0) text += fmt::format("{} finding{}\n", count, count == 1 ? "" : "s");
  return text;
}

std::string text_of(const std::vector<Checked>& files, const Invocation& typed) {
  if (typed.format == "json") return findings_json(files);
  if (typed.format == "github") return findings_github(files);
  if (typed.format == "sarif") return findings_sarif(files);
  return check_for_people(files, paint_for(typed.output.color, STDOUT_FILENO));
}

}  // namespace

int check(const Invocation& typed) {
  if (typed.operands.empty())
    return usage(typed, "\"sbx policy check\" needs a file",
                 "for example: sbx policy check agent.toml");
  const auto place = look();
  if (!place) return complain(typed, place.error(), exit_status::kCouldNot);
  std::vector<Checked> files;
  bool good = true;
  for (const std::string& file : typed.operands) {
    auto policy = load_operand(file, {}, place->context);
    good = good && policy.has_value();
    Checked& checked = files.emplace_back(Checked{.file = file});
    if (!policy) {
      checked.findings = std::move(policy).error();
      continue;
    }
    // Names of calls and rules are checked only when the filter is compiled.
    if (auto filter = plan::compile_filter(policy->syscalls, {}); !filter) {
      good = false;
      checked.findings.push_back(std::move(filter).error());
    }
    for (auto& list :
         {policy::warnings(*policy, place->context.home), plan::call_warnings(policy->syscalls)})
      for (const policy::Warning& warning : list) checked.warnings.push_back(warning.message);
  }
  const std::string text = text_of(files, typed);
  const int printed = typed.format.empty() ? print_fitted(text) : print(text);
  return printed != kDone ? printed : good ? kDone : kFindings;
}

}  // namespace sbx::cli::policy_verb

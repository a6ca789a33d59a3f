#include "cli/policy/command.hpp"

#include <unistd.h>

#include <array>
#include <string_view>

#include <sbx/outcome.hpp>

#include "base/sys.hpp"
#include "cli/console.hpp"
#include "record/words.hpp"
#include "run/user_settings.hpp"

namespace sbx::cli {
namespace policy_verb {

Result<Surroundings> look() {
  Surroundings place;
  place.host = SBX_TRY(host::probe());
  place.context = SBX_TRY(run::load_context(place.host));
  return place;
}

std::expected<policy::Policy, policy::Findings> load_operand(
    const std::string& operand, const std::vector<policy::Override>& overrides,
    const policy::LoadContext& context) {
  auto policy = policy::load({{operand}}, overrides, context);
  if (policy) return policy;
  for (Error& finding : policy.error())
    if (finding.origin && finding.origin->file == "--policy") finding.origin.reset();
  return policy;
}

std::string_view section_of(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
}

int complain(const Invocation& typed, const policy::Findings& findings) {
  console().tell(record::findings_text(findings, paint_for(typed.output.color, STDERR_FILENO)));
  if (!print_error(typed, findings.front())) return exit_status::kCouldNot;
  return findings.front().code == "unknown-policy" ? kUsage : kFindings;
}

int usage(const Invocation& typed, std::string message, std::string hint) {
  const Error error{.kind = ErrorKind::usage,
                    .code = "usage",
                    .message = std::move(message),
                    .hint = std::move(hint)};
  return cli::complain(typed, error, kUsage);
}

}  // namespace policy_verb

int policy_command(const Invocation& typed) {
  struct Verb {
    std::string_view command;
    int (*run)(const Invocation& typed);
  };
  constexpr auto kVerbs = std::to_array<Verb>({{"policy list", policy_verb::list},
                                               {"policy show", policy_verb::show},
                                               {"policy check", policy_verb::check},
                                               {"policy explain", policy_verb::explain},
                                               {"policy diff", policy_verb::diff},
                                               {"policy schema", policy_verb::schema},
                                               {"policy init", policy_verb::init},
                                               {"policy audit", policy_verb::audit}});
  for (const Verb& verb : kVerbs)
    if (typed.command == verb.command) return verb.run(typed);
  return policy_verb::usage(typed, "\"" + typed.command + "\" is not a command");
}

}  // namespace sbx::cli

#include "cli/mcp_command.hpp"

#include <unistd.h>

#include <utility>

#include "base/text.hpp"
#include "cli/answer.hpp"
#include "cli/complaint.hpp"
#include "cli/console.hpp"
#include "cli/parent.hpp"
#include "cli/usage.hpp"
#include "mcp/serve.hpp"
#include "mcp/tools.hpp"
#include "record/words.hpp"
#include "run/variables.hpp"
#include "session/session_name.hpp"

namespace sbx::cli {
namespace {

Result<agent::Options> server_options(const Invocation& typed, const OwnProcess& process) {
  if (!typed.operands.empty())
    return usage("usage", "\"sbx " + typed.command + "\" takes no operands",
                 "sbx mcp serves on standard input and output");
  if (!typed.session.empty()) SBX_TRY(session::check_name(typed.session));
  agent::Options options{.session = typed.session,
                         .shares_contexts = typed.mcp.shares_contexts,
                         .max_text = typed.mcp.max_text,
                         .log = typed.mcp.log,
                         .allows_apply = typed.mcp.allows_apply,
                         .is_structured = typed.mcp.is_structured};
  options.start.policies = typed.policies;
  if (options.start.policies.empty()) options.start.policies = {{"agent"}};
  // As if it were typed first: a later --set decides otherwise.
  options.start.overrides.push_back(
      {.key = "session.put_aside", .toml = "true", .option = "--set"});
  for (const auto* list : {&typed.sets, &typed.named, &typed.allow_hosts})
    options.start.overrides.insert(options.start.overrides.end(), list->begin(), list->end());
  options.start.program = typed.request;
  for (auto& each : SBX_TRY(run::read_variables(typed.variables)))
    options.start.program.environment.push_back(std::move(each));
  options.start.arguments = process.arguments;
  return options;
}

}  // namespace

int mcp_tools_command(const Invocation& typed, const OwnProcess& process) {
  const auto options = server_options(typed, process);
  if (!options) return complain(typed, options.error());
  auto facts = agent::facts_of(*options);
  if (!facts) return complain(typed, facts.error(), exit_status::kCouldNot);
  const std::string tools = dump(mcp::list_of_tools(*facts));
  const bool printed = console().print(typed.mcp.hashes ? sha256_hex(tools) + "\n" : tools);
  return printed ? kDone : exit_status::kCouldNot;
}

int mcp_command(const Invocation& typed, const OwnProcess& process) {
  const UniqueFd parent = open_parent();
  auto options = server_options(typed, process);
  if (!options) return complain(typed, options.error());
  options->parent = parent.get();
  return mcp::serve(std::move(*options));
}

}  // namespace sbx::cli

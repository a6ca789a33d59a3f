#include "cli/session_start.hpp"

#include <string>
#include <vector>

#include "base/text.hpp"
#include "cli/session_exec.hpp"
#include "policy/load.hpp"
#include "policy/write.hpp"
#include "record/words.hpp"
#include "run/launch.hpp"
#include "run/user_settings.hpp"
#include "session/client.hpp"
#include "session/json.hpp"
#include "session/place.hpp"

namespace sbx::cli {
namespace {

constexpr int kUsage = 2;

int tell(const Invocation& typed, const Error& error, int status) {
  write_stderr(record::error_text(error, paint_for(typed.output.color, STDERR_FILENO)));
  return status;
}

int could_not(const Invocation& typed, const Error& error) {
  return tell(typed, error, exit_status_of(error));
}

/// What a call may set for itself: it is no part of the session's policy.
bool is_of_call(const policy::Override& each) {
  return each.key == "limits.wall_time" || each.key == "limits.cpu_time" ||
         each.key.starts_with("output.");
}

/// `run --session` with a policy other than that of the session that lives would run under less than was asked for.
Status check_same_policy(const Invocation& start, const host::Host& host, const Json& facts) {
  if (start.policies.empty() && start.sets.empty() && start.named.empty() &&
      start.allow_hosts.empty())
    return {};
  const run::UserSettings settings = SBX_TRY(run::user_settings(host));
  std::vector<policy::Override> overrides;
  for (const auto* list : {&start.sets, &start.named, &start.allow_hosts})
    overrides.insert(overrides.end(), list->begin(), list->end());
  const auto policy = policy::load(start.policies, overrides, settings.context);
  if (!policy) return fail(policy.error().front());
  if (sha256_hex(policy::write(*policy)) == facts["policy"].value("sha256", "")) return {};
  const std::string name = printable(facts.value("name", ""));
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "other-policy",
                    .message = "the session \"" + name + "\" has another policy",
                    .hint = "leave out -p and the options that grant or limit, or first: sbx "
                            "session stop " +
                            name});
}

}  // namespace

session::StartAnswer start_session(const Invocation& typed, const OwnProcess& process,
                                   const std::string& name, int owner) {
  run::Request request;
  request.parent = owner;
  request.policies = typed.policies;
  for (const auto* list : {&typed.sets, &typed.named, &typed.allow_hosts})
    request.overrides.insert(request.overrides.end(), list->begin(), list->end());
  request.program = typed.request;
  request.program.hold = true;
  request.variables = typed.variables;
  request.arguments = process.arguments;
  const Paint paint = paint_for(typed.output.color, STDERR_FILENO);
  return session::start(name, std::move(request), {}, [&](const policy::Findings& findings) {
    write_stderr(record::findings_text(findings, paint));
  });
}

int start_command(const Invocation& typed, const OwnProcess& process) {
  if (typed.operands.size() > 1)
    return tell(typed,
                {.kind = ErrorKind::usage,
                 .code = "usage",
                 .message = "\"sbx session start\" takes one name",
                 .hint = "what runs in it is given to sbx session exec"},
                kUsage);
  const session::StartAnswer started =
      start_session(typed, process, typed.operands.empty() ? "" : typed.operands.front());
  if (started.status != 0) return started.status;
  if (typed.output.verbose)
    for (const Json& each : started.facts["degraded"])
      write_stderr("sbx: weaker: " + printable(each.value("what", "")) + ": " +
                   printable(each.value("why", "")) + "\n");
  if (typed.output.quiet) return 0;
  const std::string text = typed.output.json ? dump(session::headed(started.facts))
                                             : started.facts.value("name", "") + "\n";
  return record::print_answer(text) ? 0 : exit_status::kCouldNot;
}

int run_in_session(const Invocation& typed, const OwnProcess& process) {
  const auto host = host::probe();
  if (!host) return could_not(typed, host.error());
  const std::string& name = typed.session;
  if (const Status right = session::check_name(name); !right)
    return could_not(typed, right.error());
  Invocation call = typed;
  call.policies.clear();
  call.sets.clear();
  call.allow_hosts.clear();
  std::erase_if(call.named, [](const policy::Override& each) { return !is_of_call(each); });
  Invocation start = typed;
  start.request = {};
  start.request.inputs = typed.request.inputs;
  std::erase_if(start.named, is_of_call);
  if (auto client = session::Client::connect(*host, name)) {
    const auto facts = client->ask({{"op", "info"}});
    if (!facts) return could_not(typed, facts.error());
    if (const Status same = check_same_policy(start, *host, *facts); !same)
      return could_not(typed, same.error());
  } else {
    const session::StartAnswer started = start_session(start, process, name);
    // Another command may have started it at the same moment.
    if (started.status != 0 && !session::Client::connect(*host, name)) return started.status;
  }
  return session_exec(call, *host, name);
}

}  // namespace sbx::cli

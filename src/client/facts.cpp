#include "client/facts.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "plan/plan.hpp"
#include "plan/program/languages.hpp"
#include "plan/program/lookup.hpp"
#include "policy/write.hpp"

namespace sbx::client {
namespace {

std::vector<std::string> languages_found(const host::Host& host) {
  const plan::Lookup lookup(*host.files, "", host.path);
  std::vector<std::string> found;
  for (const char* const name : {"python", "javascript", "r", "bash"}) {
    const plan::Language* const language = plan::language(name);
    const auto is_there = [&](std::string_view command) {
      return lookup.find(command).has_value();
    };
    if (language != nullptr && std::ranges::any_of(language->commands, is_there))
      found.emplace_back(name);
  }
  return found;
}

void note_access(Facts& facts, const plan::Plan& plan) {
  for (const plan::Access& each : plan.access)
    if (each.is_directory ? each.rights.make : each.rights.write && !each.origin.file.empty())
      facts.writable.push_back(each.path);
    else if (!each.lists_only && !each.origin.file.empty())
      facts.readable.push_back(each.path);
}

}  // namespace

Result<Facts> facts_of(run::Request start, const Operator& chosen) {
  start.program.hold = true;
  run::Answer planned = run::plan_only(start);
  if (!planned.errors.empty()) return fail(std::move(planned.errors.front()));
  Facts facts{.host = SBX_TRY(host::probe_caller()), .policy = std::move(*planned.policy)};
  const plan::Plan& plan = *planned.plan;
  facts.languages = languages_found(facts.host);
  const plan::Lookup lookup(*facts.host.files, "", facts.host.path);
  facts.shell = lookup.find("bash") ? "bash" : "sh";
  facts.directory = plan.working_directory;
  note_access(facts, plan);
  for (const auto& [name, value] : start.program.environment) facts.variables.push_back(name);
  for (const Degraded& each : plan.degraded) facts.weaker.push_back(each.what());
  facts.reaches_network = !plan.network.own_namespace || plan.network.allow_list;
  facts.is_live = !plan.live.empty();
  const auto shown = std::ranges::find_if(plan.mounts, [&](const plan::Mount& each) {
    return each.host_source() != nullptr && each.target == plan.working_directory;
  });
  facts.is_empty = shown == plan.mounts.end();
  facts.is_copy = !facts.is_empty && shown->layered() != nullptr && shown->rights.write;
  const std::string applied = chosen.applies && facts.is_copy ? shown->source() : "";
  SBX_TRY(check_own_files(plan, facts.policy, facts.host, applied, chosen));
  return facts;
}

Status check_same(const Facts& facts, const protocol::SessionFacts& joined) {
  const auto refuse = [&](const char* code, const std::string& what, const std::string& cure) {
    return fail(Error{.kind = ErrorKind::usage,
                      .code = code,
                      .message = "the session \"" + printable(joined.name) + "\" " + what,
                      .hint = cure + ", or first: sbx session stop " + printable(joined.name)});
  };
  policy::Policy policy = facts.policy;
  const auto is_its = [&] {
    return sha256_hex(policy::write_for_hash(policy)) == joined.policy.sha256;
  };
  bool is_same = is_its();
  // A front end may set it, and it means nothing where programs change no directory of the host.
  policy.session.put_aside.value = !policy.session.put_aside.value;
  is_same = is_same || (!facts.is_live && is_its());
  if (!is_same)
    return refuse("other-policy", "has another policy than was asked for",
                  "ask for the policy and the options with which it was started");
  if (joined.directory != facts.directory)
    return refuse("other-directory", "runs in '" + printable(joined.directory) + "'",
                  "start there");
  return {};
}

}  // namespace sbx::client

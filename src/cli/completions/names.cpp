#include "cli/completions/names.hpp"

#include <algorithm>

#include "base/letters.hpp"
#include "changes/kept.hpp"
#include "cli/mcp_install/clients.hpp"
#include "cli/policy/command.hpp"
#include "cli/session_files.hpp"
#include "host/host.hpp"
#include "host/state.hpp"
#include "plan/filter/table.hpp"
#include "plan/program/languages.hpp"
#include "policy/keys.hpp"
#include "protocol/requests.hpp"
#include "record/codes.hpp"
#include "record/terms.hpp"
#include "run/under_way.hpp"
#include "session/client.hpp"
#include "session/drivers.hpp"
#include "session/live_sessions.hpp"

namespace sbx::cli::completion {
namespace {

/// What a live session answers; nothing where it does not.
template <protocol::IsRequest Asked>
typename Asked::Answer answer_of(const std::string& session, const Asked& request) {
  const auto host = host::probe_caller();
  auto client = host ? session::Client::connect(*host, session) : fail(host.error());
  auto answer = client ? client->ask_soon(request) : fail(client.error());
  return std::move(answer).value_or(typename Asked::Answer{});
}

}  // namespace

Offers clients() {
  Offers found;
  for (const mcp_install::Client& each : mcp_install::clients())
    found.push_back({each.name, each.title});
  return found;
}

Offers policies() {
  Offers found;
  for (const policy::Builtin& each : policy::builtins())
    found.push_back({std::string(each.name), "built in"});
  const auto place = policy_verb::look();
  if (!place) return found;
  for (const std::string& directory : place->context.policy_directories)
    if (const auto names = place->host.files->list(directory))
      for (const auto& [name, type] : *names)
        if (name.ends_with(".toml")) found.push_back({name.substr(0, name.size() - 5), directory});
  return found;
}

Offers keys() {
  Offers found;
  for (const policy::Key& each : policy::keys())
    if (!each.of_text())
      found.push_back({std::string(each.name) + "=", std::string(each.documentation)});
  return found;
}

Offers explained() {
  Offers found;
  for (const policy::Key& each : policy::keys())
    if (!each.of_text()) found.push_back({std::string(each.name), "key"});
  for (std::size_t i = 0; i < plan::group_count(); ++i)
    found.push_back({std::string(plan::text_of(static_cast<plan::Group>(i)).name), "group"});
  for (const record::CodeText& each : record::codes())
    if (each.code != "setup-STAGE") found.push_back({std::string(each.code), "code"});
  for (const std::string_view each : record::term_names())
    found.push_back({std::string(each), "word of a record"});
  return found;
}

Offers languages() {
  Offers found;
  const std::string names = plan::language_names();
  for (const std::string_view each : policy::split(names, ','))
    found.push_back({std::string(trimmed(each))});
  return found;
}

Offers languages_of_contexts() {
  Offers found = languages();
  std::erase_if(found, [](const Offer& each) { return !session::find_driver(each.word); });
  return found;
}

Offers sets() {
  Offers found;
  const auto host = host::probe_caller();
  const auto store = host ? changes::Store::open(host::state_directory(*host)) : fail(host.error());
  const auto kept = store ? store->list() : fail(store.error());
  if (!kept) return found;
  for (const changes::KeptFacts& each : *kept) found.push_back({each.name, each.outcome});
  return found;
}

Offers runs() {
  Offers found;
  if (const auto runs = run::runs_under_way())
    for (const run::UnderWay& each : *runs) found.push_back({each.id, each.policy});
  return found;
}

Offers sessions() {
  Offers found;
  if (const auto host = host::probe_caller())
    for (const session::LiveSession& each : session::live_sessions(*host))
      found.push_back({each.name});
  return found;
}

Offers contexts(const std::string& session) {
  Offers found;
  const protocol::ContextsAnswer answer = answer_of(session, protocol::ContextsRequest{});
  for (const protocol::ContextFacts& each : answer.contexts)
    found.push_back({each.context, each.language + ", " + name_of(each.state)});
  return found;
}

Offers calls(const std::string& session, Which which) {
  Offers found;
  const protocol::CallsAnswer answer = answer_of(session, protocol::CallsRequest{});
  for (const protocol::CallFacts& each : answer.calls) {
    if (which != Which::background && each.state != protocol::CallState::running) continue;
    if (which != Which::running && !each.background) continue;
    found.push_back(
        {std::to_string(each.call), std::string(name_of(each.state)) + ": " + each.command});
  }
  return found;
}

Offers paths(const std::string& session, std::string_view begun) {
  Offers found;
  const std::string directory(begun.substr(0, begun.rfind('/') + 1));
  const auto host = host::probe_caller();
  if (!host) return found;
  const auto entries = list_directory(*host, session, directory.empty() ? "." : directory);
  if (!entries) return found;
  for (const transfer::Listed& each : entries->listing.entries)
    found.push_back({directory + each.name + (each.type == FileType::directory ? "/" : ""), ""});
  return found;
}

Offers directories(const std::string& session, std::string_view begun) {
  Offers found = paths(session, begun);
  std::erase_if(found, [](const Offer& each) { return !each.word.ends_with('/'); });
  return found;
}

}  // namespace sbx::cli::completion

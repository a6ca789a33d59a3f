#include "cli/session_life.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/tell.hpp"
#include "base/text.hpp"
#include "cli/answer.hpp"
#include "cli/console.hpp"
#include "cli/session_documents.hpp"
#include "cli/usage.hpp"
#include "host/state.hpp"
#include "policy/values.hpp"
#include "session/client.hpp"
#include "session/json.hpp"
#include "session/live_sessions.hpp"
#include "session/snapshot_store.hpp"

namespace sbx::cli {
namespace {

/// A typing error must stop nothing.
Result<std::vector<session::Client>> clients_of_all(const SessionAsker& asker) {
  std::vector<session::Client> clients;
  for (const std::string& name : asker.operands) {
    auto client = session::Client::connect(asker.host, name);
    if (!client) {
      if (asker.operands.size() > 1) client.error().message += "; nothing was stopped";
      return fail(std::move(client).error());
    }
    clients.push_back(std::move(*client));
  }
  return clients;
}

/// Their names are the operands then.
std::vector<session::Client> clients_of_living(SessionAsker& asker) {
  std::vector<session::Client> clients;
  for (const session::LiveSession& each : session::live_sessions(asker.host)) {
    auto client = session::Client::connect(each);
    if (!client && client.error().code != "session-gone") (void)asker.tell(client.error());
    if (!client) continue;
    clients.push_back(std::move(*client));
    asker.operands.push_back(each.name);
  }
  return clients;
}

/// What ends with a session. Nothing here keeps it from ending.
std::vector<Change> changes_of(const SessionAsker& asker, const std::string& session) {
  auto seen = asker.ask_reader(protocol::ChangesRequest{.view = protocol::View::json}, session);
  if (!seen && seen.error().code != "no-changes-kept" && !is_gone(seen.error()))
    console().tell(fmt::format("sbx: {}: the changes that end with it can't be listed: {}\n",
                               printable(session), printable(seen.error().message)));
  return seen ? std::move(seen->changes) : std::vector<Change>();
}

/// Of paths that a person may miss; those that begin with a dot come last.
std::string first_names(const std::vector<Change>& changes) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> paths;
  for (const Change& each : changes)
    if (!each.path.contains("__pycache__")) paths.push_back(each.path);
  std::ranges::stable_partition(paths,
                                [](const std::string& path) { return !path.starts_with('.'); });
  const std::size_t shown = std::min(paths.size(), kShown);
  std::string names;
  for (const std::string& path : std::span(paths).first(shown))
    names += (names.empty() ? "" : ", ") + printable(path);
  if (paths.size() > shown) names += fmt::format(" and {} more", paths.size() - shown);
  return names;
}

void note_stopped(const SessionAsker& asker, const std::string& session,
                  const std::vector<Change>& changes, StoppedDocument& done) {
  done.stopped.push_back(session);
  if (changes.empty()) return;
  done.lost.push_back({.session = session, .changes = changes});
  const std::string names = first_names(changes);
  if (asker.typed.output.json || names.empty()) return;
  console().tell(
      fmt::format("sbx: changes that were not applied ended with {}: {}\n"
                  "  help: before the end, sbx session apply {} applies them; sbx "
                  "session stop --keep SET {} keeps them for sbx changes\n",
                  printable(session), names, printable(session), printable(session)));
}

std::string budget_lines(const protocol::SessionFacts& facts) {
  const auto time = [](std::uint64_t count) {
    return describe(Milliseconds{static_cast<std::int64_t>(count)});
  };
  const protocol::LimitFacts& limits = facts.limits;
  return fmt::format(
      "  workspace  {}\n  budgets    memory {}, disk {}, {} processes, {} CPUs\n"
      "             of each call: wall time {}, CPU time {}\n",
      printable(facts.workspace), describe(Bytes{limits.memory_bytes}),
      describe(Bytes{limits.disk_bytes}), limits.processes, limits.cpus,
      limits.wall_time_ms ? time(*limits.wall_time_ms) : "any", time(limits.cpu_time_ms));
}

std::string stats_lines(const protocol::UseFacts& use) {
  return fmt::format(
      "  memory     {} of {}\n  disk       {} of {}\n  processes  {} of {}\n  CPU time   {}\n",
      describe(Bytes{use.memory_bytes}), describe(Bytes{use.memory_limit_bytes}),
      describe(Bytes{use.disk_bytes}), describe(Bytes{use.disk_limit_bytes}), use.processes,
      use.processes_limit, describe(Milliseconds{static_cast<std::int64_t>(use.cpu_ms)}));
}

}  // namespace

Result<int> list_sessions(const SessionAsker& asker) {
  SBX_TRY(asker.most(0));
  std::vector<protocol::SessionFacts> sessions;
  std::size_t widest = 4;
  for (const session::LiveSession& each : session::live_sessions(asker.host)) {
    auto client = session::Client::connect(each);
    if (!client) continue;  // it has just ended
    auto facts = client->ask_soon(protocol::InfoRequest{});
    if (!facts && facts.error().code != "session-gone") {
      facts.error().message = "\"" + each.name + "\": " + facts.error().message;
      (void)asker.tell(facts.error());
    }
    if (!facts) continue;
    widest = std::max(widest, each.name.size());
    sessions.push_back(std::move(*facts));
  }
  if (asker.typed.output.json)
    return print(dump(session::headed(protocol::SessionList{std::move(sessions)})));
  if (sessions.empty()) {
    console().tell(session::no_sessions(asker.host));
    return kDone;
  }
  std::string text =
      fmt::format("{:<{}}  {:>7}  {:>5}  {:>8}  {:<19}  {:<14}  {}\n", "NAME", widest, "PID",
                  "CALLS", "CONTEXTS", "EXPIRES", "POLICY", "DIRECTORY");
  for (const protocol::SessionFacts& each : sessions)
    text +=
        fmt::format("{:<{}}  {:>7}  {:>5}  {:>8}  {:<19}  {:<14}  {}\n", printable(each.name),
                    widest, each.pid, each.calls_running, each.contexts, time_text(each.expires),
                    printable(each.policy.name), printable(each.directory));
  return print_fitted(text);
}

Result<int> stop_sessions(const SessionAsker& typed) {
  SessionAsker asker = typed;
  if (asker.operands.empty() != asker.typed.all)
    return usage("usage",
                 asker.typed.all ? "--all and a name exclude each other"
                                 : "\"sbx session stop\" needs the name of a session",
                 "sbx session list names them; --all stops all of them");
  std::vector<session::Client> clients;
  if (asker.typed.all) clients = clients_of_living(asker);
  const std::string& set = asker.typed.bring_out.keep;
  if (!set.empty() && asker.operands.size() != 1)
    return usage("usage", "--keep names the changes of one session",
                 "stop the sessions one by one");
  if (!asker.typed.all) clients = SBX_TRY(clients_of_all(asker));
  StoppedDocument done;
  std::optional<protocol::BroughtOutAnswer> kept_changes;
  const auto answered = [&](int status) {
    Json json = write_fields(done, Form::document);
    if (kept_changes) json.update(write_fields(*kept_changes, Form::document));
    return asker.answered(json, status);
  };
  if (!set.empty()) {
    auto kept = asker.keep_as(set);
    if (!kept) {
      kept.error().message += "; the session lives on";
      return fail(std::move(kept).error());
    }
    kept_changes = std::move(*kept);
    if (kept_changes->failures) {
      if (!asker.typed.output.json)
        console().tell("sbx: the session lives on, because not everything is kept\n");
      return answered(exit_status::kCouldNot);
    }
  }
  int status = kDone;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const std::vector<Change> lost =
        set.empty() ? changes_of(asker, asker.operands[i]) : std::vector<Change>();
    const Status stopped = clients[i].stop_and_wait();
    if (stopped)
      note_stopped(asker, asker.operands[i], lost, done);
    else
      status = asker.tell(stopped.error());
  }
  session::sweep_snapshots(host::state_directory(asker.host));
  return answered(status);
}

Result<int> show_session(const SessionAsker& asker, bool stats) {
  SBX_TRY(asker.most(1));
  protocol::StatsAnswer shown;
  if (stats)
    shown = SBX_TRY(asker.ask(protocol::StatsRequest{}));
  else
    shown.session = SBX_TRY(asker.ask(protocol::InfoRequest{}));
  const protocol::SessionFacts& facts = shown.session;
  if (asker.typed.output.json) {
    return print(dump(stats ? session::headed(StatsDocument{shown.session, shown.use})
                            : session::headed(facts)));
  }
  std::string text =
      fmt::format("{}  policy {} ({}), process {}\n", printable(facts.name),
                  printable(facts.policy.name), printable(facts.policy.source), facts.pid);
  text +=
      fmt::format("  directory  {}\n  started    {}\n  expires    {}, or after {} without use\n",
                  printable(facts.directory), time_text(facts.started), time_text(facts.expires),
                  describe(Milliseconds{facts.idle_ms}));
  text += fmt::format("  calls      {} running, {} context{}\n", facts.calls_running,
                      facts.contexts, facts.contexts == 1 ? "" : "s");
  text += stats ? stats_lines(shown.use) : budget_lines(facts);
  for (const Degraded& each : facts.degraded)
    text += fmt::format("  weaker     {}: {}\n", printable(each.what()), printable(each.why));
  return print_fitted(text);
}

Result<int> extend_session(const SessionAsker& asker) {
  SBX_TRY(asker.most(2));
  if (asker.operands.size() < 2)
    return usage("usage", "\"sbx session extend\" needs a session and a time",
                 "for example 30m or 2h");
  const auto time = parse_duration(asker.operands[1]);
  if (!time || time->count() < 1000)
    return usage("bad-value",
                 fmt::format("\"{}\" is not a time of 1s or more", printable(asker.operands[1])),
                 asker.operands[1].starts_with('-')
                     ? "the time from now, as 5m; sbx session stop NAME ends it"
                     : "a number and a unit: 30s, 30m or 2h");
  const protocol::SessionFacts facts = SBX_TRY(asker.ask(
      protocol::ExtendRequest{.milliseconds = static_cast<std::uint64_t>(time->count())}));
  if (asker.typed.output.json) return print(dump(session::headed(facts)));
  return print("expires " + time_text(facts.expires) + "\n");
}

}  // namespace sbx::cli

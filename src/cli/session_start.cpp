#include "cli/session_start.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/progress.hpp"
#include "base/text.hpp"
#include "changes/kept.hpp"
#include "cli/answer.hpp"
#include "cli/cell_words.hpp"
#include "cli/complaint.hpp"
#include "cli/console.hpp"
#include "cli/parent.hpp"
#include "cli/session_exec.hpp"
#include "cli/start_progress.hpp"
#include "cli/usage.hpp"
#include "host/state.hpp"
#include "policy/keys.hpp"
#include "policy/load.hpp"
#include "policy/write.hpp"
#include "protocol/requests.hpp"
#include "record/words.hpp"
#include "run/launch.hpp"
#include "run/user_settings.hpp"
#include "session/client.hpp"
#include "session/json.hpp"
#include "session/live_sessions.hpp"
#include "session/remains.hpp"
#include "session/session_name.hpp"

namespace sbx::cli {
namespace {

constexpr std::string_view kExists = "session-exists";

int tell(const Invocation& typed, const Error& error, int status) {
  console().complain(error, typed.output.color);
  return status;
}

int not_started(const Invocation& typed, const Error& error) {
  return tell(typed, error, exit_status_of(error));
}

/// What a call may set for itself: it is not part of the session's policy.
bool is_of_call(const policy::Override& each) {
  return each.key == "limits.wall_time" || each.key == "limits.cpu_time" ||
         each.key.starts_with("output.");
}

/// What a run does at its end, or instead of it: a session goes on.
Status check_start_options(const Invocation& typed) {
  const auto& [directory, collect, diff, apply, patterns, yes, keep] = typed.bring_out;
  struct Unfit {
    bool is_given;
    const char* option;
    const char* instead;  ///< a command of the session
  };
  const Unfit unfit[] = {{!keep.empty(), "--keep", "keep"},
                         {apply || yes, apply ? "--apply" : "--yes", "apply"},
                         {diff, "--diff", "diff"},
                         {!directory.empty(), "--out", "get"},
                         {!collect.empty(), "--collect", "get"},
                         {typed.output.dry_run, "--dry-run", "show"},
                         {typed.output.trace_time, "--trace-time", "stats"},
                         {typed.output.github, "--github", "exec"}};
  for (const auto& [is_given, option, instead] : unfit)
    if (is_given)
      return usage("usage", fmt::format("{} and --session exclude each other", option),
                   fmt::format("sbx session {} {}", instead, typed.session));
  return {};
}

/// The first key that differs, with both values where they are short enough for a line.
std::string difference(const policy::Policy& theirs, const policy::Policy& wanted) {
  constexpr std::size_t kLongest = 100;
  for (const policy::Key& key : policy::keys()) {
    if (key.of_text()) continue;
    const std::string has = policy::value_toml(key, theirs);
    const std::string wants = policy::value_toml(key, wanted);
    if (has == wants) continue;
    const bool is_short = (has + wants).find('\n') == std::string::npos && has.size() <= kLongest &&
                          wants.size() <= kLongest;
    return is_short ? fmt::format(": its {} is {}, not {}", key.name, has, wants)
                    : fmt::format(": its {} differs", key.name);
  }
  return {};
}

/// `run --session` with a policy other than that of the session that lives would run under less
/// than was asked for.
Status check_same_policy(const Invocation& start, const host::Host& host,
                         const protocol::SessionFacts& facts) {
  const auto named = host.environment.find("SBX_POLICY");
  const bool is_named = named != host.environment.end() && !named->second.empty();
  if (start.policies.empty() && start.sets.empty() && start.named.empty() &&
      start.allow_hosts.empty() && !is_named)
    return {};
  const run::UserSettings settings = SBX_TRY(run::user_settings(host));
  std::vector<policy::Override> overrides;
  for (const auto* list : {&start.sets, &start.named, &start.allow_hosts})
    overrides.insert(overrides.end(), list->begin(), list->end());
  const auto policy = policy::load(start.policies, overrides, settings.context);
  if (!policy) return fail(policy.error().front());
  if (sha256_hex(policy::write_for_hash(*policy)) == facts.policy.sha256) return {};
  auto client = SBX_TRY(session::Client::connect(host, start.session));
  const auto theirs =
      policy::parse_text(SBX_TRY(client.ask(protocol::PolicyRequest{})).text, "", settings.context);
  std::vector<std::string> causes;
  if (!start.policies.empty()) causes.emplace_back("-p");
  if (is_named && start.policies.empty()) causes.emplace_back("SBX_POLICY");
  if (!start.sets.empty() || !start.named.empty() || !start.allow_hosts.empty())
    causes.emplace_back("the options that grant or limit");
  return usage("other-policy",
               "the session \"" + start.session + "\" has another policy" +
                   (theirs ? difference(*theirs, *policy) : ""),
               fmt::format("leave out {}, or first: sbx session stop {}",
                           fmt::join(causes, " and "), start.session));
}

/// Relative paths, of the command and of the policy, mean the directory in which the session was
/// started.
Status check_same_directory(const Invocation& typed, const host::Host& host,
                            const protocol::SessionFacts& facts) {
  if (!facts.follows_caller || facts.started_in == host.working_directory) return {};
  if (typed.request.directory.starts_with('/')) return {};  // it means the same from anywhere
  const std::string name = printable(facts.name);
  return usage("other-directory",
               fmt::format("the session \"{}\" runs in '{}', and this directory is '{}'", name,
                           printable(facts.started_in), printable(host.working_directory)),
               fmt::format("cd there, name the directory inside with --cwd /PATH, or take another "
                           "name; sbx session exec {} runs there from anywhere",
                           name));
}

/// `typed`: the whole command; `start`: what a session would be started with.
Status check_living(const Invocation& typed, const Invocation& start, const host::Host& host,
                    session::Client& client) {
  const protocol::SessionFacts facts = SBX_TRY(client.ask(protocol::InfoRequest{}));
  if (!start.request.inputs.empty())
    return usage("usage",
                 "--in copies files when a session starts, and \"" + start.session + "\" lives",
                 "sbx session put " + start.session + " FILE");
  SBX_TRY(check_same_policy(start, host, facts));
  return check_same_directory(typed, host, facts);
}

}  // namespace

session::StartAnswer start_session(const Invocation& typed, const OwnProcess& process,
                                   const std::string& name, int owner, IfExists exists) {
  // The session's process has no descriptors but its own.
  auto variables = run::read_variables(typed.variables);
  if (!variables)
    return {.status = not_started(typed, variables.error()), .error = variables.error()};
  run::Request request;
  request.parent = owner;
  request.policies = typed.policies;
  for (const auto* list : {&typed.sets, &typed.named, &typed.allow_hosts})
    request.overrides.insert(request.overrides.end(), list->begin(), list->end());
  request.program = typed.request;
  request.program.hold = true;
  for (auto& each : *variables) request.program.environment.push_back(std::move(each));
  request.arguments = process.arguments;
  request.bring_out.keep = name;  // at an end that nobody asked for
  const Paint paint = paint_for(typed.output.color, STDERR_FILENO);
  Progress progress(STDERR_FILENO, typed.output.quiet || typed.output.json);
  const run::Sinks sinks = sinks_of(progress);
  return session::start(name, std::move(request), sinks, [&](const policy::Findings& findings) {
    if (exists == IfExists::is_told || findings.front().code != kExists)
      console().tell(record::findings_text(findings, paint));
  });
}

namespace {

/// What the caller should know of the sandbox, as `sbx run` says it.
void tell_notes(const protocol::SessionFacts& facts) {
  for (const std::string& each : facts.notes) console().tell("sbx: " + printable(each) + "\n");
}

/// The one of that name that was here before ended by itself.
std::string end_before(const std::string& name, const session::Remains& before) {
  const std::string words = session::remains_words(before);
  return session::ended_words(name, before) + (words.empty() ? "" : ": ") + words;
}

/// That, and what this one could not keep then.
void tell_of_ends(const host::Host& host, const protocol::SessionFacts& facts,
                  const std::optional<session::Remains>& before) {
  if (before) console().tell(note_lines({end_before(facts.name, *before)}));
  const auto store = changes::Store::open(host::state_directory(host));
  if (!store && facts.workspace == "overlay")
    console().tell(note_lines(
        {"changes that are not applied before its end will be lost: " + store.error().text()}));
}

/// In the session of that name, which is started where it does not live. Several commands may do so
/// at once: one starts it, and the others wait for that and find it.
struct Joined {
  std::optional<session::StartAnswer> started{};  ///< by this command, or in vain
  std::optional<session::Client> client{};        ///< it lived
};
Joined join_session(const Invocation& start, const OwnProcess& process, const host::Host& host,
                    const std::string& name) {
  constexpr int kMost = 100;  // of starts while it ends
  constexpr int kPause = 10;  // ms
  Joined joined;
  for (int i = 0; i < kMost; ++i) {
    auto client = session::Client::connect(host, name);
    if (client) {
      joined.client.emplace(std::move(*client));
      joined.started.reset();
      return joined;
    }
    if (client.error().code != "no-such-session") {  // it lives, and can't be asked
      joined.started = {.status = tell(start, client.error(), exit_status_of(client.error())),
                        .error = client.error()};
      return joined;
    }
    joined.started = start_session(start, process, name, -1, IfExists::is_not_told);
    const bool exists = joined.started->error && joined.started->error->code == kExists;
    if (!exists) return joined;
    if (i > 0) (void)::poll(nullptr, 0, kPause);
  }
  (void)tell(start, *joined.started->error, 0);
  return joined;
}

int not_started(const session::StartAnswer& started) {
  if (started.error) return started.status;
  console().tell("sbx: cancelled: no session was started\n");
  if (const auto host = host::probe_caller()) (void)session::live_sessions(*host);  // sweeps
  return started.status;
}

/// Before anything is started that would have to be stopped again.
Status check_name_can_be_told(const Invocation& typed) {
  const int flags = ::fcntl(STDOUT_FILENO, F_GETFL);
  const bool is_open = flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_RDONLY;
  if (is_open || typed.output.quiet) return {};
  return usage("cannot-write",
               "standard output is closed, and the name of the session is printed there",
               "-q starts it without a word");
}

}  // namespace

int start_command(const Invocation& typed, const OwnProcess& process) {
  if (typed.operands.size() > 1)
    return complain(typed, {.kind = ErrorKind::usage,
                            .code = "usage",
                            .message = "\"sbx session start\" takes one name",
                            .hint = "what runs in it is given to sbx session exec"});
  const std::string name = typed.operands.empty() ? session::make_name() : typed.operands.front();
  if (const Status right = session::check_name(name); !right) return complain(typed, right.error());
  if (const Status told = check_name_can_be_told(typed); !told)
    return complain(typed, told.error());
  // Held back until somebody knows the name.
  const auto signals = take_ending_signals();
  if (!signals) return complain(typed, signals.error());
  const UniqueFd parent = typed.die_with_parent ? open_parent() : UniqueFd();
  if (typed.die_with_parent && !parent.valid())
    return complain(typed, {.kind = ErrorKind::host,
                            .code = "no-parent",
                            .message = "the process that started sbx can't be watched",
                            .hint = "without --die-with-parent it lives until it is stopped, idle "
                                    "or at its session.lifetime"});
  const auto host = host::probe_caller();
  if (!host) return complain(typed, host.error());
  const auto before = session::remains_of(*host, name);
  session::StartAnswer started = start_session(typed, process, name, parent.get());
  if (started.status != 0 && started.error)
    return print_error(typed, *started.error) ? started.status : exit_status::kCouldNot;
  if (started.status != 0) return not_started(started);
  if (before) session::forget_remains(*host, name);
  if (before && typed.output.json) started.facts.notes.push_back(end_before(name, *before));
  if (!typed.output.quiet && !typed.output.json) {
    tell_notes(started.facts);
    tell_of_ends(*host, started.facts, before);
  }
  if (typed.output.verbose)
    for (const Degraded& each : started.facts.degraded)
      console().tell("sbx: weaker: " + printable(each.what()) + ": " + printable(each.why) + "\n");
  if (typed.output.quiet) return 0;
  const std::string text =
      typed.output.json ? dump(session::headed(started.facts)) : started.facts.name + "\n";
  if (console().print(text)) return 0;
  // Nobody knows its name.
  if (auto client = session::Client::connect(*host, name)) (void)client->stop_and_wait();
  return exit_status::kCouldNot;
}

int run_in_session(const Invocation& typed, const OwnProcess& process) {
  const auto host = host::probe();
  if (!host) return not_started(typed, host.error());
  const std::string& name = typed.session;
  Invocation call = typed;
  call.policies.clear();
  call.sets.clear();
  call.allow_hosts.clear();
  std::erase_if(call.named, [](const policy::Override& each) { return !is_of_call(each); });
  const auto refuse = [&](const Error& error) { return refuse_exec(call, *host, name, error); };
  if (const Status right = session::check_name(name); !right) return refuse(right.error());
  if (const Status right = check_start_options(typed); !right) return refuse(right.error());
  // Variables are the call's.
  Invocation start = typed;
  start.request = {};
  start.request.inputs = typed.request.inputs;
  start.variables.clear();
  std::erase_if(start.named, is_of_call);
  const auto before = session::remains_of(*host, name);
  Joined joined = join_session(start, process, *host, name);
  if (joined.client)
    if (const Status fits = check_living(typed, start, *host, *joined.client); !fits)
      return refuse(fits.error());
  if (joined.started) {
    const session::StartAnswer& started = *joined.started;
    if (started.status != 0 && !started.error) return not_started(started);
    if (started.status != 0) {
      if (!typed.output.json) return started.status;
      return refuse_exec(call, *host, name, *started.error, WasReported::yes);
    }
    if (before) session::forget_remains(*host, name);
    if (!typed.output.quiet) {  // beside the record of the call, too
      tell_notes(started.facts);
      tell_of_ends(*host, started.facts, before);
    }
  }
  return session_exec(call, *host, name);
}

}  // namespace sbx::cli

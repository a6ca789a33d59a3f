#include "cli/session_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

#include <sbx/outcome.hpp>

#include "cli/complaint.hpp"
#include "cli/repl/command.hpp"
#include "cli/session_asker.hpp"
#include "cli/session_calls.hpp"
#include "cli/session_changes.hpp"
#include "cli/session_contexts.hpp"
#include "cli/session_eval.hpp"
#include "cli/session_exec.hpp"
#include "cli/session_files.hpp"
#include "cli/session_get.hpp"
#include "cli/session_life.hpp"
#include "cli/session_order.hpp"
#include "cli/session_put.hpp"
#include "cli/session_start.hpp"
#include "cli/usage.hpp"
#include "run/session_hints.hpp"
#include "session/live_sessions.hpp"

namespace sbx::cli {
namespace {

Result<int> run_exec(const SessionAsker& asker) {
  return session_exec(asker.typed, asker.host, asker.operands.front());
}

Result<int> run_eval(const SessionAsker& asker) {
  return asker.typed.request.interactive ? session_repl(asker.typed, asker.host)
                                         : run_cell(asker.typed, asker.host).status;
}

/// Of files, whose options differ more.
template <Result<int> (*kRun)(const Invocation& typed, const host::Host& host)>
Result<int> with_files(const SessionAsker& asker) {
  return kRun(asker.typed, asker.host);
}

template <Result<int> (*kRun)(const SessionAsker& asker, bool more), bool kMore>
Result<int> with_more(const SessionAsker& asker) {
  return kRun(asker, kMore);
}

struct SessionCommand {
  std::string_view name;
  Result<int> (*run)(const SessionAsker& asker);
  enum Traits : std::uint8_t {
    usual = 0,
    of_none = 1,     ///< it needs no session
    as_program = 2,  ///< it exits as a call or a cell did, so 2 would be theirs
    fast = 4,        ///< it does not sweep what a killed session has left
  } traits = usual;
};

constexpr SessionCommand kSessionCommands[] = {
    {"list", list_sessions, SessionCommand::of_none},
    {"stop", stop_sessions, SessionCommand::of_none},
    {"exec", run_exec, SessionCommand::Traits{SessionCommand::as_program | SessionCommand::fast}},
    {"eval", run_eval, SessionCommand::Traits{SessionCommand::as_program | SessionCommand::fast}},
    {"wait", wait_for_call, SessionCommand::as_program},
    {"show", with_more<show_session, false>},
    {"stats", with_more<show_session, true>},
    {"extend", extend_session},
    {"calls", list_calls},
    {"logs", show_log},
    {"kill", kill_call},
    {"send", send_to_call},
    {"contexts", list_contexts},
    {"context", open_context},
    {"close", close_context},
    {"interrupt", interrupt_contexts},
    {"restart", restart_contexts},
    {"put", with_files<put_files>},
    {"get", with_files<get_files>},
    {"ls", with_files<list_files>},
    {"stat", with_files<change_files>},
    {"mkdir", with_files<change_files>},
    {"mv", with_files<change_files>},
    {"rm", with_files<change_files>},
    {"changes", with_more<show_changes, false>},
    {"diff", with_more<show_changes, true>},
    {"apply", apply_session},
    {"keep", keep_session},
};

Result<int> run_typed(const SessionCommand& command, const SessionAsker& asker) {
  if ((command.traits & SessionCommand::fast) == 0) (void)session::live_sessions(asker.host);
  if (asker.operands.empty() && (command.traits & SessionCommand::of_none) == 0)
    return usage("usage",
                 fmt::format("\"sbx {}\" needs the name of a session", asker.typed.command),
                 "sbx session list names them");
  return command.run(asker);
}

}  // namespace

int session_command(const Invocation& typed, const OwnProcess& process) {
  if (typed.command == "session start") return start_command(typed, process);
  const auto host = host::probe_caller();
  if (!host) return complain(typed, host.error());
  const std::string_view name = std::string_view(typed.command).substr(8);
  const auto* const command = std::ranges::find(kSessionCommands, name, &SessionCommand::name);
  SBX_ASSERT(command != std::end(kSessionCommands));  // the table of options has no other
  const auto status =
      run_typed(*command, {.typed = typed, .host = *host, .operands = typed.operands});
  if (status) return *status;
  const Error error =
      typed.operands.empty()
          ? status.error()
          : naming_order(run::naming_session(status.error(), typed.operands.front()), typed, *host);
  if ((command->traits & SessionCommand::as_program) != 0)
    return complain(typed, error, exit_status::kCouldNot);
  return complain(typed, error);
}

}  // namespace sbx::cli

#include "plan/call.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <string_view>

#include "plan/enforcement.hpp"
#include "plan/environment.hpp"
#include "plan/limits.hpp"
#include "plan/path_calls.hpp"
#include "plan/program/resolver.hpp"
#include "plan/sight.hpp"
#include "policy/apply.hpp"

namespace sbx::plan {
namespace {

/// The paths that a call looks up are noted only where it asks for them.
Status note_paths(Plan& plan) {
  FilterContext context = plan.filter.context;
  context.noted = calls_with_paths();
  if (plan.network.notes_connect()) context.noted.push_back(SYS_connect);
  plan.filter = SBX_TRY(compile_filter(plan.filter.syscalls, context));
  plan.explain = true;
  return {};
}

}  // namespace

namespace {

/// Copying takes as long as it takes, and ends with its client. The calls that sbx needs for it are
/// those of the base "default", whatever the policy leaves to programs.
Status suit_own_program(Plan& plan) {
  plan.budgets.wall_time = {};
  plan.denied = policy::DeniedCall::errno_;
  FilterContext context = plan.filter.context;
  context.noted.clear();
  plan.filter = SBX_TRY(compile_filter(policy::initial_policy().syscalls, context));
  return {};
}

/// An interpreter's times are those of its cells. The kernel would count its CPU time since its
/// start.
void stay(Plan& plan) {
  plan.budgets.wall_time = {};
  std::erase_if(plan.process_limits,
                [](const ProcessLimit& each) { return each.resource == RLIMIT_CPU; });
}

/// "~" is the home inside, as for what copies files.
Result<std::string> directory_of(const RunRequest& request,
                                 const std::vector<std::string>& environment) {
  const std::string& typed = request.directory;
  if (typed.contains('\0'))
    return fail(Error{.kind = ErrorKind::usage,
                      .code = "bad-directory",
                      .message = "the directory of a call holds a NUL",
                      .hint = "name a directory of the session",
                      .obstacle = Obstacle::not_found,
                      .side = Side::sandbox});
  if (typed != "~" && !typed.starts_with("~/")) return typed;
  constexpr std::string_view kHome = "HOME=";
  for (const std::string& each : environment)
    if (each.starts_with(kHome)) return each.substr(kHome.size()) + typed.substr(1);
  return typed;
}

Result<Program> program_of(Plan& plan, const policy::Policy& policy, const host::Host& host,
                           const RunRequest& request, CallProgram kind) {
  if (kind == CallProgram::own) return Program{.command = request.operands, .executable = "sbx"};
  View view = plan.sight->view;
  Resolver resolver(policy, host, request, plan.sight->system_root, plan.working_directory, view);
  return kind == CallProgram::interpreter ? resolver.resolve_interpreter()
                                          : resolver.resolve_call(plan.first);
}

}  // namespace

Result<Plan> make_call_plan(Plan plan, const policy::Policy& policy, const host::Host& host,
                            const RunRequest& request, CallProgram kind) {
  Program program = SBX_TRY(program_of(plan, policy, host, request, kind));
  for (const std::string& directory : plan.sight->bin_directories)
    if (std::ranges::find(program.bin_directories, directory) == program.bin_directories.end())
      program.bin_directories.push_back(directory);
  plan.command = std::move(program.command);
  plan.executable = std::move(program.executable);
  plan.interpreter = std::move(program.interpreter);
  RunRequest with_all = request;
  with_all.environment.insert(with_all.environment.begin(), plan.sight->environment.begin(),
                              plan.sight->environment.end());
  plan.environment =
      decide_environment(policy.environment, host, with_all, program.bin_directories);
  plan.call_directory = SBX_TRY(directory_of(request, plan.environment));
  if (request.umask) plan.umask = *request.umask;  // an interpreter keeps the session's
  plan.notes = std::move(program.notes);
  plan.explanations = std::move(program.explanations);
  plan.interactive = request.interactive;
  plan.stdin_mode = request.stdin_mode;
  plan.stdin_file = request.stdin_file;
  plan.output = {.stdout_cap = policy.output.stdout_.value,
                 .stderr_cap = policy.output.stderr_.value,
                 .passed_cap = policy.output.passed.value,
                 .exceed = policy.output.exceed.value};
  narrow_limits(policy, host, plan);
  if (kind == CallProgram::own) SBX_TRY(suit_own_program(plan));
  if (kind == CallProgram::interpreter) stay(plan);
  if (request.explain) SBX_TRY(note_paths(plan));
  plan.required = request.require;
  SBX_TRY(check_requirements(plan.required, plan));
  return plan;
}

}  // namespace sbx::plan

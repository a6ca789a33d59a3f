#include "cli/mcp_install/wanted.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/usage.hpp"
#include "host/state.hpp"
#include "policy/load.hpp"
#include "run/user_settings.hpp"

namespace sbx::cli::mcp_install {
namespace {

using policy::Policy;

Result<std::string> own_path(const host::Host& host) {
  std::string path = SBX_TRY(host.files->link_target("/proc/self/exe"));
  if (path.starts_with('/') && !path.ends_with(" (deleted)") && is_utf8(path)) return path;
  return usage("usage", "this sbx has no path that a client could start: '" + printable(path) + "'",
               "start an installed sbx");
}

bool is_relative(const std::string& path) {
  return !path.starts_with('/') && !path.starts_with('~');
}
/// What `-p` takes for a file and looks for where the server is started.
bool is_relative_file(const std::string& policy) {
  return is_relative(policy) && (policy.contains('/') || policy.ends_with(".toml"));
}

Status refuse_values(const Invocation& server) {
  for (const run::VariableSource& each : server.variables) {
    if (each.kind == run::VariableSource::Kind::assignment)
      return usage("bad-value", "--env NAME=VALUE would stand in the settings of the client",
                   "--env NAME passes the variable on, --env-file FILE reads it");
    if (each.kind == run::VariableSource::Kind::descriptor)
      return usage("bad-value", "--env-fd: a client gives its server no such descriptor",
                   "--env-file FILE");
  }
  for (const policy::Override& each : server.sets)
    if (each.key.starts_with("environment.set"))
      return usage("bad-value", "--set environment.set would stand in the settings of the client",
                   "a policy file can have it, or --env-file FILE");
  return {};
}

/// A project in which the client is started must not choose policy or log.
Status refuse_relative(const Invocation& server, Scope scope) {
  if (scope == Scope::project) return {};
  for (const policy::PolicyOperand& each : server.policies)
    if (is_relative_file(each.text))
      return usage(
          "bad-value",
          fmt::format("-p {}: each project would bring a policy of its own", printable(each.text)),
          "its absolute path, or --scope project");
  if (!server.mcp.log.empty() && is_relative(server.mcp.log))
    return usage(
        "bad-value",
        fmt::format("--log {}: each project would have its own", printable(server.mcp.log)),
        "its absolute path, or --scope project");
  return {};
}

std::vector<policy::Override> overrides_of(const Invocation& server) {
  std::vector<policy::Override> list;
  for (const auto* each : {&server.sets, &server.named, &server.allow_hosts})
    list.insert(list.end(), each->begin(), each->end());
  return list;
}

bool names_workspace(const Invocation& server) {
  return std::ranges::any_of(overrides_of(server), [](const policy::Override& each) {
    return each.key.starts_with("filesystem.workspace");
  });
}

Result<Policy> policy_of(const Invocation& server, const host::Host& host) {
  const auto context = SBX_TRY(run::load_context(host));
  std::vector<policy::PolicyOperand> policies = server.policies;
  if (policies.empty()) policies = {{"agent"}};
  auto policy = policy::load(policies, overrides_of(server), context);
  if (!policy) return fail(std::move(policy.error().front()));
  return std::move(*policy);
}

/// The directories of the host that the model's programs would change.
std::vector<std::string> live_directories(const Policy& policy, const host::Host& host) {
  const auto resolved = [&](const std::string& path) {
    const std::string absolute = path.starts_with('~')   ? host.home + path.substr(1)
                                 : path.starts_with('/') ? path
                                                         : host.working_directory + "/" + path;
    return host.files->canonical(absolute).value_or(absolute);
  };
  std::vector<std::string> list;
  const auto& filesystem = policy.filesystem;
  if (filesystem.workspace.mode.value == policy::WorkspaceMode::read_write)
    list.push_back(resolved(filesystem.workspace.source.value));
  for (const auto& each : filesystem.write) list.push_back(resolved(each.value.source));
  return list;
}

/// Else the client would start what the model has made of it.
Status check_binary(const std::string& binary, const std::vector<std::string>& live) {
  for (const std::string& each : live)
    if (host::lies_below(binary, each))
      return usage("own-file-writable",
                   fmt::format("sbx itself, '{}', lies where the model's programs can change it",
                               printable(binary)),
                   "start an sbx that is installed elsewhere");
  return {};
}

}  // namespace

Status check_server_name(const std::string& name) {
  constexpr std::size_t kLongest = 32;
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
  if (!name.empty() && name.size() <= kLongest && name.front() != '-' &&
      name.find_first_not_of(kLetters) == std::string::npos)
    return {};
  return usage("bad-value", "--name: \"" + printable(name) + "\" is not a name for a server",
               "1 to 32 letters, digits and -, for example --name sbx");
}

Result<Invocation> server_line(const std::vector<std::string>& arguments) {
  std::vector<const char*> words{"mcp"};
  for (const std::string& each : arguments) {
    if (!is_utf8(each))
      return usage("bad-value", "\"" + printable(each) + "\" is not UTF-8",
                   "settings of clients hold nothing else");
    words.push_back(each.c_str());
  }
  Invocation server = SBX_TRY(parse_command_line(words));
  if (server.command == "mcp" && server.operands.empty() && !server.help) return server;
  return usage("usage", "what follows \"--\" are options of \"sbx mcp\", and nothing else",
               "for example -- -p data-analysis");
}

Result<Registration> wanted_of(const Invocation& typed, const host::Host& host) {
  const McpInstallOptions& options = typed.install;
  SBX_TRY(check_server_name(options.name));
  std::vector<std::string> arguments = options.passed_on;
  Invocation server = SBX_TRY(server_line(arguments));
  SBX_TRY(refuse_values(server));
  SBX_TRY(refuse_relative(server, options.for_project ? Scope::project : Scope::user));
  if (options.replaces_shell && !names_workspace(server)) {
    if (server.mcp.allows_apply)
      return usage(
          "usage",
          "--replace-shell gives the model the directory itself: there is nothing to apply",
          "without --allow-apply, or with --workspace .:overlay");
    arguments.insert(arguments.end(), {"--workspace", ".:read-write"});
    server = SBX_TRY(server_line(arguments));
  }
  const Policy policy = SBX_TRY(policy_of(server, host));
  const auto live = live_directories(policy, host);
  Registration wanted{.name = options.name,
                      .words = {SBX_TRY(own_path(host)), "mcp"},
                      .replaces_shell = options.replaces_shell,
                      // Whoever started a session has chosen what is live in it.
                      .is_live = !live.empty() || !server.session.empty(),
                      .allows_apply = server.mcp.allows_apply};
  SBX_TRY(check_binary(wanted.words.front(), live));
  wanted.words.insert(wanted.words.end(), arguments.begin(), arguments.end());
  return wanted;
}

}  // namespace sbx::cli::mcp_install

#include "plan/files/workspace.hpp"

#include <cerrno>

#include "plan/files/grants.hpp"
#include "plan/files/inside.hpp"
#include "plan/files/path_text.hpp"

namespace sbx::plan {
namespace {

GrantKind kind_of(policy::WorkspaceMode mode) {
  switch (mode) {
    case policy::WorkspaceMode::empty:
      return GrantKind::empty;
    case policy::WorkspaceMode::read_only:
      return GrantKind::read;
    case policy::WorkspaceMode::overlay:
      return GrantKind::copy;
    case policy::WorkspaceMode::read_write:
      return GrantKind::live;
  }
  return GrantKind::empty;
}

/// Why a directory can't be the workspace; empty if it can.
std::string unfit(const host::Host& host, const std::string& directory,
                  const std::string& home_inside, policy::WorkspaceMode mode) {
  if (directory == "/") return "the root directory";
  if (directory == "/tmp") return "the shared temporary directory";
  if (!host.home.empty()) {
    const auto canonical = host.files->canonical(host.home);
    const std::string& home = canonical ? *canonical : host.home;
    if (directory == home) return "the home directory";
    if (is_within(home, directory)) return "above the home directory";
  }
  if (is_within(home_inside, directory)) return "where the sandbox has its home directory";
  if (is_forbidden(directory) || directory == "/etc" ||
      (mode == policy::WorkspaceMode::empty && is_system_directory(directory)))
    return "a system directory";
  return {};
}

/// The text of filesystem.workspace.source, absolute.
Result<std::string> written_path(const host::Host& host,
                                 const policy::Sourced<std::string>& source) {
  const std::string& text = source.value;
  if (text == "~" || text.starts_with("~/")) {
    if (host.home.empty())
      return fail({.kind = ErrorKind::policy,
                   .code = "no-home",
                   .message = "'" + text + "' needs a home and the caller has none",
                   .origin = source.origin});
    return host.home + text.substr(1);
  }
  if (text.starts_with('/')) return text;
  if (host.working_directory.empty())
    return fail({.kind = ErrorKind::policy,
                 .code = "missing-workspace",
                 .message = "the working directory of the caller has no path",
                 .origin = source.origin,
                 .hint = "name an absolute directory with --workspace"});
  return joined(host.working_directory, text);
}

WorkspaceChoice fallback(const Origin& origin, std::string note) {
  return {.grant = {.kind = GrantKind::empty,
                    .source = {},
                    .target = kFallbackWorkspace,
                    .facts = {},
                    .origin = origin},
          .working_directory = kFallbackWorkspace,
          .note = std::move(note)};
}

/// The caller's working directory, which nobody named: if it is unfit, the run gets an empty
/// workspace.
WorkspaceChoice default_workspace(const host::Host& host, const policy::Workspace& workspace,
                                  const std::string& home, const DenyRules& denials) {
  const std::string& directory = host.working_directory;
  std::string reason;
  if (directory.empty() || !host.files->may_read(directory))
    reason = "it can't be read";
  else if (const std::string why = unfit(host, directory, home, workspace.mode.value); !why.empty())
    reason = why;
  else if (const DenyRule* rule = denials.covers(directory))
    reason = "hidden by " + describe(*rule);
  const auto facts = host.files->look(directory);
  if (reason.empty() && !facts) reason = "it can't be read";
  if (!reason.empty())
    return fallback(workspace.source.origin,
                    (directory.empty() ? "the working directory" : "'" + directory + "'") +
                        " can't be used as the workspace (" + reason + "); running in an empty " +
                        kFallbackWorkspace + "; --workspace DIR chooses another");
  return {.grant = {.kind = kind_of(workspace.mode.value),
                    .source = directory,
                    .target = directory,
                    .facts = *facts,
                    .origin = workspace.mode.origin},
          .working_directory = directory,
          .note = {}};
}

/// A user who names a directory means to show it; a policy written before knows nothing of it.
Status check_mode(const policy::Workspace& workspace, const std::string& directory) {
  if (workspace.mode.value != policy::WorkspaceMode::empty ||
      workspace.mode.origin.layer >= workspace.source.origin.layer)
    return {};
  const bool typed = workspace.source.origin.layer == Layer::command_line;
  return fail({.kind = ErrorKind::policy,
               .code = "no-workspace-mode",
               .message = "'" + directory + "' is named as the workspace, and " +
                          workspace.mode.origin.text() +
                          " leaves it empty: the program would see none of its files",
               .origin = workspace.source.origin,
               .hint = typed
                           ? "--workspace DIR:overlay shows them and keeps the directory as it is; "
                             "DIR:empty if that is meant"
                           : "mode = \"overlay\" beside source shows them and keeps the directory "
                             "as it is; mode = \"empty\" if that is meant"});
}

}  // namespace

bool is_system_directory(const std::string& directory) {
  if (is_within(directory, "/usr/src")) return false;  // container images keep applications there
  return directory == "/etc" || is_within(directory, "/usr") || is_within(directory, "/bin") ||
         is_within(directory, "/sbin") || is_within(directory, "/lib") ||
         is_within(directory, "/lib64");
}

Result<WorkspaceChoice> choose_workspace(const host::Host& host, const policy::Workspace& workspace,
                                         const std::string& home, const DenyRules& denials) {
  const Layer layer = workspace.source.origin.layer;
  if (workspace.source.value == "." && (layer == Layer::key_default || layer == Layer::builtin))
    return default_workspace(host, workspace, home, denials);

  // Nothing of the host, whatever it has there.
  if (workspace.mode.value == policy::WorkspaceMode::empty && workspace.source.value == home)
    return WorkspaceChoice{.grant = {.kind = GrantKind::empty,
                                     .source = {},
                                     .target = home,
                                     .facts = {},
                                     .origin = workspace.source.origin},
                           .working_directory = home,
                           .note = {}};

  const auto refuse = [&](std::string code, std::string message, int errno_value = 0,
                          const std::string& cure = {}) {
    return fail({.kind = ErrorKind::policy,
                 .code = std::move(code),
                 .message = std::move(message),
                 .errno_value = errno_value,
                 .origin = workspace.source.origin,
                 .hint = cure + (cure.empty() ? "" : ", or ") + "name a directory of the project"});
  };
  const std::string written = SBX_TRY(written_path(host, workspace.source));
  auto directory = host.files->canonical(written);
  if (!directory)
    return refuse("missing-workspace", "cannot use the workspace '" + written + "'",
                  directory.error().errno_value,
                  directory.error().errno_value == EACCES ? cure_of_unreadable(host, written) : "");
  const host::FileFacts facts = SBX_TRY(host.files->look(*directory));
  if (facts.type != host::FileType::directory)
    return refuse("unfit-workspace", "the workspace '" + written + "' is not a directory");
  if (const std::string why = unfit(host, *directory, home, workspace.mode.value); !why.empty())
    return refuse("unfit-workspace", "'" + *directory + "' can't be the workspace: it is " + why);
  if (const DenyRule* rule = denials.covers(*directory))
    return denied_grant("use the workspace '" + written + "'", *rule, workspace.source.origin);
  if (!host.files->may_read(*directory))
    return refuse("unfit-workspace", "cannot read the workspace '" + *directory + "'", EACCES,
                  cure_of_unreadable(host, *directory));
  SBX_TRY(check_mode(workspace, *directory));
  WorkspaceChoice choice{.grant = {.kind = kind_of(workspace.mode.value),
                                   .source = *directory,
                                   .target = *directory,
                                   .facts = facts,
                                   .origin = workspace.source.origin},
                         .working_directory = *directory,
                         .note = {}};
  if (!host.working_directory.empty() && is_within(host.working_directory, *directory))
    choice.working_directory = host.working_directory;
  return choice;
}

}  // namespace sbx::plan

#include "cli/hints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "cli/text.hpp"

namespace sbx::cli {
namespace {

/// Ended from outside, as by Ctrl-C: nothing was missing inside.
bool was_stopped(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT ||
         signal == SIGKILL;
}

/// A shell exits with 128 and the number of the signal that ended its last command.
bool failed(const Verdict& verdict) {
  if (const auto* exited = std::get_if<Exited>(&verdict))
    return exited->code != 0 && !was_stopped(exited->code - 128);
  const auto* signaled = std::get_if<Signaled>(&verdict);
  return signaled != nullptr && !was_stopped(signaled->signal);
}

bool shows_files(plan::MountKind kind) {
  return kind == plan::MountKind::bind || kind == plan::MountKind::overlay ||
         kind == plan::MountKind::copy || kind == plan::MountKind::file ||
         kind == plan::MountKind::proc;
}

/// Whether the plan makes something of the host visible at or above this path inside.
bool is_inside(const plan::Plan& plan, const std::string& path) {
  return std::any_of(plan.mounts.begin(), plan.mounts.end(), [&](const plan::Mount& mount) {
    if (!shows_files(mount.kind)) return false;
    return path == mount.target || path.starts_with(mount.target + "/") || mount.target == "/";
  });
}

/// The first argument that names a file of the host which the sandbox does not have.
std::string missing_argument(const plan::Plan& plan, const host::Host& host,
                             const Invocation& typed) {
  for (const std::string& argument : typed.request.operands) {
    // "." and ".." are the workspace's own hint.
    const bool names_a_file = argument.find_first_not_of("./") != std::string::npos;
    if (!names_a_file || argument.front() == '-' || host.working_directory.empty()) continue;
    const std::string path =
        argument.front() == '/' ? argument : host.working_directory + "/" + argument;
    if (is_inside(plan, path)) continue;
    const auto facts = host.files->look(path);
    if (facts &&
        (facts->type == host::FileType::regular || facts->type == host::FileType::directory))
      return argument;
  }
  return {};
}

std::string option_word(const std::string& path) {
  std::string word;
  for (const char c : path) {
    if (c == ':' || c == '\\') word += '\\';
    word += c;
  }
  return word;
}

}  // namespace

std::vector<std::string> hints_after(const Outcome& outcome, const policy::Policy& policy,
                                     const plan::Plan& plan, const host::Host& host,
                                     const Invocation& typed) {
  if (!failed(outcome.verdict) || host.files == nullptr) return {};
  // The script itself is bound alone; what it was told to read may not be.
  const std::string missing = missing_argument(plan, host, typed);
  if (!missing.empty())
    return {fmt::format("\"{}\" exists here but not in the sandbox: --read {} shows it", missing,
                        shell_word(option_word(missing)))};
  if (policy.filesystem.workspace.mode.value != policy::WorkspaceMode::empty) return {};
  // Elsewhere means that this folder is none to work in (/tmp, the home): the plan has said so.
  if (host.working_directory.empty() || plan.working_directory != host.working_directory) return {};
  if (!typed.request.inputs.empty()) return {};
  const auto names = host.files->list(host.working_directory);
  if (!names || names->empty()) return {};
  return {"the sandbox's working folder is empty, this one is not: --workspace .:overlay shows it"};
}

}  // namespace sbx::cli

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "plan/files/steps.hpp"
#include "plan/plan.hpp"
#include "plan/program/lookup.hpp"

/// A project's own programs, which are used by default: those of a `.venv` directory, and those of
/// `node_modules` that run its scripts.
namespace sbx::plan {

/// A directory that is searched before the caller's PATH.
struct ProjectEnvironment {
  std::string directory;  ///< canonical, on the host; empty: not used
  std::string note;       ///< why it isn't used, for stderr
};

/// Looks for `.venv` in the directory of the script, then in the parents, as far up as the
/// workspace is shown. Empty for an empty workspace, and if the caller has activated an
/// environment.
///
/// An earlier run may have written what lies in the workspace. So the environment must not widen
/// what this run sees: its programs must be files of the workspace or links to its interpreter, and
/// its interpreter must belong to the system, to the caller's PATH or to a version manager.
[[nodiscard]] std::optional<ProjectEnvironment> project_environment(const host::Host& host,
                                                                    const RunRequest& request,
                                                                    const Lookup& lookup,
                                                                    const View& view);

/// The program `name` of the project's `node_modules/.bin`, from the directory of the script up, as
/// far as the workspace is shown. One that leads out of its `node_modules` is passed over. Asks
/// nothing but the file system.
[[nodiscard]] std::optional<std::string> project_program(const host::Host& host,
                                                         const RunRequest& request,
                                                         const Lookup& lookup, const View& view,
                                                         const std::string& name);

/// ".venv" for ".venv/bin/python": the virtual environment that a name of a program in it means, by
/// its text alone. Empty for other names, and for those with other characters than letters, digits,
/// '.', '_', '-' and '/'.
[[nodiscard]] std::string environment_named(std::string_view name);

}  // namespace sbx::plan

#pragma once

#include <optional>
#include <string>

#include "plan/files/steps.hpp"
#include "plan/plan.hpp"
#include "plan/program/lookup.hpp"

/// A project's own virtual environment: the `.venv` directory that nobody named.
namespace sbx::plan {

/// Where a program is looked for before the caller's PATH.
struct ProjectEnvironment {
  std::string folder;  ///< on the host, canonical; empty: it is not used
  std::string note;    ///< why it is not used, for stderr
};

/// Looks for `.venv` in the directory of the script, then in those above it, as far up as the
/// workspace is shown. Nothing where the workspace is empty, and where the caller has activated an
/// environment.
///
/// An earlier run may have written what lies in the workspace. So the environment must not widen
/// what this run sees: its programs must be files of the workspace or links to its interpreter, and
/// its interpreter must belong to the system, to the caller's PATH or to a version manager.
[[nodiscard]] std::optional<ProjectEnvironment> project_environment(const host::Host& host,
                                                                    const RunRequest& request,
                                                                    const Lookup& lookup,
                                                                    const View& view);

}  // namespace sbx::plan

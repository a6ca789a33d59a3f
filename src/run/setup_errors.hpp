#pragma once

#include <string>

#include "base/result.hpp"

/// The errors that a run reports for failed set-up steps, for code that tries such steps alone.
namespace sbx::run {

/// clone3 of the sandbox's namespaces was refused.
[[nodiscard]] Error no_namespaces(int errno_value);
/// The mounts in the new mount namespace could not be made private.
[[nodiscard]] Error no_private_mounts(int errno_value);
/// A procfs of the new PID namespace could not be mounted.
[[nodiscard]] Error no_root(int errno_value);
[[nodiscard]] Error no_procfs(int errno_value);

/// For the mutation tests: every set-up stage known to SBX_TEST_FAIL and SBX_TEST_SKIP, one per
/// line: name, kind and meaning, separated by tabs.
[[nodiscard]] std::string stage_table();

}  // namespace sbx::run

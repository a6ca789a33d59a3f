#pragma once

#include <string>

#include "base/result.hpp"

/// What a run would say of a set-up step that failed, for those who try such steps alone.
namespace sbx::run {

/// clone3 of the sandbox's namespaces was refused.
[[nodiscard]] Error no_namespaces(int errno_value);
/// The mounts in the new mount namespace could not be made private.
[[nodiscard]] Error no_private_mounts(int errno_value);
/// A procfs of the new PID namespace could not be mounted.
[[nodiscard]] Error no_procfs(int errno_value);

/// For the mutation tests: every set-up stage that SBX_TEST_FAIL and SBX_TEST_SKIP know, one a line: name, kind,
/// meaning, divided by tabs.
[[nodiscard]] std::string stage_table();

}  // namespace sbx::run

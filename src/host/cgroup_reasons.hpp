#pragma once

#include <string_view>

/// Why budgets are polled, where what helps depends on it.
namespace sbx::host {

/// Only a root of the host makes control groups there, wherever sbx is started.
inline constexpr std::string_view kLegacyIsRoots = "cgroup v1 can be used by root only";

}  // namespace sbx::host

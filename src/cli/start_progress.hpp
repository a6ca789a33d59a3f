#pragma once

#include "base/progress.hpp"
#include "run/launch.hpp"

namespace sbx::cli {

/// Tells a person what takes long before a program starts. `progress` is borrowed.
[[nodiscard]] run::Sinks sinks_of(Progress& progress);

}  // namespace sbx::cli

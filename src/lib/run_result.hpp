#pragma once

#include <sbx/run.hpp>

#include "lib/process.hpp"

namespace sbx::lib {

/// Reads what a process answered that wrote a record of schema "sbx.run/1".
[[nodiscard]] RunAnswer answer_of(End end);

}  // namespace sbx::lib

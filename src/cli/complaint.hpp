#pragma once

#include <sbx/error.hpp>

#include "cli/invocation.hpp"

namespace sbx::cli {

/// Says on stderr why a command failed, and on stdout in JSON where that was asked for: schema
/// "sbx.error/1". For commands whose answer has no place for it. Returns `status`, or 125 where
/// stdout can't be written.
int complain(const Invocation& typed, const Error& error, int status);
/// The JSON alone, for what was said already. False where stdout can't be written.
[[nodiscard]] bool print_error(const Invocation& typed, const Error& error);
/// The same with 2 for a mistake of usage, 125 for all else.
int complain(const Invocation& typed, const Error& error);

}  // namespace sbx::cli

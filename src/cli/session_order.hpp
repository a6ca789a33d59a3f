#pragma once

#include "cli/invocation.hpp"
#include "host/host.hpp"

namespace sbx::cli {

/// `session get a work`: where the first word names no session and a later one does, the error says
/// the command in the right order. Any other error is given back as it is.
[[nodiscard]] Error naming_order(Error error, const Invocation& typed, const host::Host& host);

}  // namespace sbx::cli

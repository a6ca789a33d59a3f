#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "run/launch.hpp"

/// Serialises a request for another process.
namespace sbx::worker {

/// Everything in a request except what belongs to one process: descriptors, the argument area, a
/// policy that is already parsed and the sources of variables. The sender has already read those.
[[nodiscard]] std::string pack(const run::Request& request);

/// Errors: internal "bad-request", for bytes that pack() did not produce.
[[nodiscard]] Result<run::Request> unpack(std::string_view bytes);

}  // namespace sbx::worker

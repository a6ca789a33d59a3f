#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "run/launch.hpp"

/// A request on its way to another process, as bytes.
namespace sbx::worker {

/// All of a request but what belongs to one process alone: descriptors, the argument area, a policy that was already
/// read and the sources of variables. Whoever sends it has read those.
[[nodiscard]] std::string pack(const run::Request& request);

/// Errors: internal "bad-request", for bytes that pack() did not make.
[[nodiscard]] Result<run::Request> unpack(std::string_view bytes);

}  // namespace sbx::worker

#pragma once

#include <string>

#include "hints/places.hpp"
#include "host/host.hpp"

namespace sbx::hints {

/// Another python3 of the caller's PATH whose directories of packages have this module; empty if
/// there is none. Runs nothing: it looks for the module's directory or file.
[[nodiscard]] std::string interpreter_with(const std::string& module, const std::string& chosen,
                                           const host::Host& host, const Places& places);

}  // namespace sbx::hints

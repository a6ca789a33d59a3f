#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sbx/outcome.hpp>

#include "hints/last_words.hpp"
#include "hints/places.hpp"
#include "host/host.hpp"

namespace sbx::hints {

/// Another python3 of the caller's PATH whose directories of packages have this module; empty if
/// there is none. Runs nothing: it looks for the module's directory or file.
[[nodiscard]] std::string interpreter_with(const std::string& module, const std::string& chosen,
                                           const host::Host& host, const Places& places);

/// What to do where no interpreter has the module: `trouble` is one of a module. A program chooses
/// its last words, so no command that installs something names the module.
[[nodiscard]] Hint about_absent_module(Trouble trouble, const std::string& module);

}  // namespace sbx::hints

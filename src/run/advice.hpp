#pragma once

#include <string>
#include <string_view>

#include <sbx/outcome.hpp>

#include "hints/places.hpp"
#include "host/host.hpp"
#include "plan/plan.hpp"

/// What the words of well-known programs call for, where no path, module or port says it.
namespace sbx::run {

/// After a failure: a variable that is not in the sandbox, or a system's Python that installs
/// nothing. Empty: neither. A program can write such words of any variable, so names that mean
/// secrets are never offered, and only a person learns whether the caller has the variable. `how`:
/// what the user does with an option.
[[nodiscard]] std::string note_of_words(const Outcome& outcome, const plan::Plan& plan,
                                        const host::Host& host, hints::Reader reader,
                                        std::string_view how);

/// --out brought nothing out, and the program's own text says why: it shows a picture and saves
/// none, or saves outside its working directory. Empty: it does not.
[[nodiscard]] std::string note_of_unsaved(std::string_view program);

}  // namespace sbx::run

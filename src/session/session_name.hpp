#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace sbx::session {

/// [a-z0-9][a-z0-9-]{0,62}. Errors: usage "bad-session-name".
[[nodiscard]] Status check_name(std::string_view name);
/// A name that no session has: "s-" and 8 hexadecimal digits of getrandom(2).
[[nodiscard]] std::string make_name();

}  // namespace sbx::session

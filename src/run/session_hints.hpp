#pragma once

#include <string>

#include "base/result.hpp"

namespace sbx::run {

/// With the session's name where its help says "sbx session ls NAME".
[[nodiscard]] Error naming_session(Error error, const std::string& session);

}  // namespace sbx::run

#pragma once

#include <string>
#include <utility>

#include "base/result.hpp"

namespace sbx::plan {

/// The failure of a rule of the policy about files.
[[nodiscard]] inline std::unexpected<Error> refuse(std::string code, std::string message,
                                                   const Origin& origin, std::string hint = {},
                                                   int errno_value = 0) {
  return fail({.kind = ErrorKind::policy,
               .code = std::move(code),
               .message = std::move(message),
               .errno_value = errno_value,
               .origin = origin,
               .hint = std::move(hint)});
}

}  // namespace sbx::plan

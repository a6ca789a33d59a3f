#pragma once

#include <string>
#include <utility>

#include "base/result.hpp"

namespace sbx::cli {

/// The failure of a command that can't be done as it was typed.
[[nodiscard]] inline std::unexpected<Error> usage(std::string code, std::string message,
                                                  std::string hint = {}) {
  return fail(Error{.kind = ErrorKind::usage,
                    .code = std::move(code),
                    .message = std::move(message),
                    .hint = std::move(hint)});
}

/// The failure of an option that has no such value.
[[nodiscard]] inline std::unexpected<Error> bad_value(std::string message, std::string hint = {}) {
  return usage("bad-value", std::move(message), std::move(hint));
}

}  // namespace sbx::cli

#pragma once

#include <cerrno>
#include <expected>
#include <string>
#include <utility>

#include <sbx/error.hpp>

namespace sbx {

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

[[nodiscard]] inline std::unexpected<Error> fail(Error error) {
  return std::unexpected<Error>(std::move(error));
}

/// The kernel refused; `errno_value` is taken before anything else can change it.
[[nodiscard]] inline std::unexpected<Error> fail_errno(ErrorKind kind, std::string code,
                                                       std::string message,
                                                       int errno_value = errno) {
  return std::unexpected<Error>(Error{.kind = kind,
                                      .code = std::move(code),
                                      .message = std::move(message),
                                      .errno_value = errno_value});
}

namespace detail {
template <class T>
T take(Result<T>& result) {
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}
}  // namespace detail

}  // namespace sbx

/// The value of a Result, or return its error from the enclosing function. A GNU statement
/// expression, so that it can stand inside an initialiser.
#define SBX_TRY(...)                                                          \
  __extension__({                                                             \
    auto sbx_result_ = (__VA_ARGS__);                                         \
    if (!sbx_result_) return std::unexpected(std::move(sbx_result_).error()); \
    ::sbx::detail::take(sbx_result_);                                         \
  })

namespace sbx {
/// Says which invariant of sbx broke, on fd 2, and aborts. Never for what a user or the kernel did.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);
}  // namespace sbx
#define SBX_ASSERT(expression) \
  ((expression) ? static_cast<void>(0) : ::sbx::assertion_failed(#expression, __FILE__, __LINE__))

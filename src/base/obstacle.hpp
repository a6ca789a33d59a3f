#pragma once

#include <string_view>

#include <sbx/error.hpp>

namespace sbx {

/// What an errno says; `none` where it says something else.
[[nodiscard]] Obstacle obstacle_of(int errno_value);
/// The error's own, else that of its errno. An errno of a step of the set-up is about sbx's own
/// doing: `none`.
[[nodiscard]] Obstacle obstacle_of(const Error& error);

/// "not-found".
[[nodiscard]] constexpr const char* name_of(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::none:
      return "none";
    case Obstacle::not_found:
      return "not-found";
    case Obstacle::exists:
      return "exists";
    case Obstacle::is_directory:
      return "is-directory";
    case Obstacle::not_a_directory:
      return "not-a-directory";
    case Obstacle::not_permitted:
      return "not-permitted";
    case Obstacle::no_space:
      return "no-space";
    case Obstacle::too_large:
      return "too-large";
    case Obstacle::time_out:
      return "time-out";
    case Obstacle::no_session:
      return "no-session";
  }
  return "";
}

[[nodiscard]] constexpr const char* name_of(Side side) {
  switch (side) {
    case Side::host:
      return "host";
    case Side::sandbox:
      return "sandbox";
  }
  return "";
}

}  // namespace sbx

#pragma once

#include <string>
#include <vector>

#include "host/host.hpp"

namespace sbx::host {

/// Where sbx keeps what outlives a run: $XDG_STATE_HOME/sbx where that lies below the home, else
/// ~/.local/state/sbx. Empty when the caller has no home. Nothing is made.
[[nodiscard]] std::string state_directory(const Host& host);

/// That, and where it is without XDG_STATE_HOME: what is kept in either is to be trusted by a later
/// run. Empty when the caller has no home.
[[nodiscard]] std::vector<std::string> state_directories(const Host& host);

/// Why $HOME is not the home: it is not an absolute path, or there is no such directory. Empty
/// where it is, is not set, or is another user's, as sudo(8) leaves it.
[[nodiscard]] std::string why_home_is_ignored(const Host& host);

/// "/home/me/x" below "/home/me"; a path with ".." in it lies nowhere.
[[nodiscard]] bool lies_below(const std::string& path, const std::string& directory);

/// What sessions are kept in: $XDG_RUNTIME_DIR/sbx where that is an absolute directory of the
/// caller's own, closed to others; else state_directory(). Empty: neither.
[[nodiscard]] std::string runtime_directory(const Host& host);

/// Where sessions of the caller can be, the directory for new ones first: runtime_directory(),
/// state_directory(), and the runtime directory that a command of another environment has used, as
/// cron and a terminal do.
[[nodiscard]] std::vector<std::string> session_directories(const Host& host);
/// A link in state_directory() to the last runtime directory that a session was started in.
inline constexpr const char* kRuntimeLink = "runtime";

}  // namespace sbx::host

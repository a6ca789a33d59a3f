#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "host/host.hpp"

namespace sbx::run {

enum class IfMissing : std::uint8_t { fails, is_made };

/// The directory that holds one directory for each of the caller's sessions, 0700 and the caller's
/// own. Errors: host.
[[nodiscard]] Result<UniqueFd> open_session_directory(const host::Host& host, IfMissing missing);

/// The same, and others where commands with another environment keep sessions, of which those that
/// exist are opened: the first is that of new ones.
struct SessionDirectory {
  std::string path;
  UniqueFd open;
};
[[nodiscard]] std::vector<SessionDirectory> session_directories(const host::Host& host);
/// For them: notes where new ones are. A convenience: failure changes nothing.
void note_session_directory(const host::Host& host);

/// The directory of what people have typed, in the state directory, 0700 and the caller's own.
/// Errors: host.
[[nodiscard]] Result<UniqueFd> open_history_directory(const host::Host& host);

}  // namespace sbx::run

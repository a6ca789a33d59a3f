#pragma once

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "host/host.hpp"

namespace sbx::run {

enum class IfMissing : std::uint8_t { fails, is_made };

/// The directory that holds one directory for each of the caller's sessions, 0700 and the caller's own. Errors: host.
[[nodiscard]] Result<UniqueFd> open_session_folder(const host::Host& host, IfMissing missing);

/// The directory of what people have typed, in the state directory, 0700 and the caller's own. Errors: host.
[[nodiscard]] Result<UniqueFd> open_history_folder(const host::Host& host);

}  // namespace sbx::run
